//! Changes to signatures and record types.

use super::{Differ, Judgement, Subject};
use crate::declare::project::Project;
use crate::declare::{Agent, ToolSpec};
use crate::types::compatibility::{accepts_earlier, keeps_promise};
use crate::types::schema::collect_record_names;
use crate::types::signature::{Facets, Field, Presence, Signature, Type};
use std::collections::HashSet;

/// Where a list of fields is used, which decides what a change to it means.
#[derive(Clone, Copy)]
struct FieldUse {
    is_argument: bool,
    is_result: bool,
}

impl FieldUse {
    const ARGUMENT: Self = Self { is_argument: true, is_result: false };

    /// Judges a change that breaks callers who pass the fields, or those who receive them.
    fn judge(self, breaks_arguments: bool, breaks_results: bool) -> Judgement {
        if self.is_argument && breaks_arguments || self.is_result && breaks_results {
            Judgement::Breaking
        } else {
            Judgement::Compatible
        }
    }
}

/// How two versions of a type compare.
struct TypeChange {
    /// The new version accepts everything that the old one accepted.
    accepts: bool,
    /// The new version keeps everything that the old one promised.
    keeps: bool,
    /// The old version accepted everything that the new one accepts.
    accepted: bool,
    /// The old version kept everything that the new one promises.
    kept: bool,
}

impl TypeChange {
    fn is_none(&self) -> bool {
        self.accepts && self.keeps && self.accepted && self.kept
    }
}

impl Differ<'_> {
    /// Compares signatures from the point of view of a caller: every valid call should remain valid, and every result
    /// should match the old type.
    pub(super) fn compare_signatures(&mut self, subject: &Subject, old: &Signature, new: &Signature) {
        self.compare_field_lists(subject, "parameter", FieldUse::ARGUMENT, &old.parameters, &new.parameters);
        self.compare_results(subject, &old.returns, &new.returns);
    }

    /// Compares the types of results.
    pub(super) fn compare_results(&mut self, subject: &Subject, old: &Type, new: &Type) {
        let change = self.compare_types(old, new);
        let types = describe_types(old, new);
        if change.is_none() {
            return self.compare_annotations(subject, "the result", &old.facets, &new.facets);
        }
        let (judgement, verb) = match (change.keeps, change.kept) {
            (true, _) => (Judgement::Compatible, "narrowed"),
            (false, true) => (Judgement::Breaking, "widened"),
            (false, false) => (Judgement::Breaking, "changed"),
        };
        self.push(subject, judgement, format!("type of the result {verb} {types}"));
    }

    pub(super) fn compare_records(&mut self, subject: &Subject, name: &str) {
        let (Some(old), Some(new)) = (self.old.records().get(name), self.new.records().get(name)) else { return };
        let is_used =
            |find: fn(&Project) -> HashSet<String>| find(self.old).contains(name) || find(self.new).contains(name);
        let fields = FieldUse { is_argument: is_used(records_in_arguments), is_result: is_used(records_in_results) };
        // Where it is used is unknown if nothing in the project does.
        let fields = match fields {
            FieldUse { is_argument: false, is_result: false } => FieldUse { is_argument: true, is_result: true },
            fields => fields,
        };
        self.compare_field_lists(subject, "field", fields, &old.fields, &new.fields);
    }

    fn compare_field_lists(&mut self, subject: &Subject, noun: &str, used: FieldUse, old: &[Field], new: &[Field]) {
        let before = self.changes.len();
        for field in new {
            match old.iter().find(|earlier| earlier.name == field.name) {
                Some(earlier) => self.compare_fields(subject, noun, used, earlier, field),
                None => {
                    let is_required = field.presence == Presence::Required;
                    let presence = if is_required { "required" } else { "optional" };
                    let change = format!("{presence} {noun} `{}` added", field.name);
                    self.push(subject, used.judge(is_required, false), change);
                }
            }
        }
        for field in old.iter().filter(|field| !new.iter().any(|other| other.name == field.name)) {
            // An argument would be lost, or a result is missing.
            let is_promised = field.presence == Presence::Required;
            self.push(subject, used.judge(true, is_promised), format!("{noun} `{}` removed", field.name));
        }
        let names = |fields: &[Field]| fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
        if self.changes.len() == before && names(old) != names(new) {
            self.push(subject, Judgement::Cosmetic, format!("{noun}s reordered"));
        }
    }

    fn compare_fields(&mut self, subject: &Subject, noun: &str, used: FieldUse, old: &Field, new: &Field) {
        let name = &new.name;
        match (&old.presence, &new.presence) {
            (old, new) if old == new => {}
            (_, Presence::Required) => {
                self.push(subject, used.judge(true, false), format!("{noun} `{name}` is now required"));
            }
            (Presence::Required, _) => {
                self.push(subject, used.judge(false, true), format!("{noun} `{name}` is no longer required"));
            }
            (_, Presence::Default(default)) => {
                self.push(subject, Judgement::Compatible, format!("default of `{name}` set to {default}"));
            }
            (_, Presence::Optional) => {
                self.push(subject, Judgement::Compatible, format!("default of `{name}` removed"));
            }
        }
        let change = self.compare_types(&old.ty, &new.ty);
        if change.is_none() {
            return self.compare_annotations(subject, &format!("{noun} `{name}`"), &old.ty.facets, &new.ty.facets);
        }
        let verb = match (change.accepts, change.accepted) {
            (true, _) => "widened",
            (false, true) => "narrowed",
            (false, false) => "changed",
        };
        let types = describe_types(&old.ty, &new.ty);
        self.push(subject, used.judge(!change.accepts, !change.keeps), format!("type of `{name}` {verb} {types}"));
    }

    fn compare_types(&self, old: &Type, new: &Type) -> TypeChange {
        let old = (old, self.old.records());
        let new = (new, self.new.records());
        TypeChange {
            accepts: accepts_earlier(old, new),
            keeps: keeps_promise(old, new),
            accepted: accepts_earlier(new, old),
            kept: keeps_promise(new, old),
        }
    }

    /// Compares the parts of facets that constrain nothing.
    fn compare_annotations(&mut self, subject: &Subject, part: &str, old: &Facets, new: &Facets) {
        if old.description != new.description {
            let before = old.description.as_deref().unwrap_or_default();
            let after = new.description.as_deref().unwrap_or_default();
            let description = format!("description of {part} changed");
            self.push_text(subject, Judgement::Compatible, &description, before, after);
        }
        if old.format != new.format {
            self.push(subject, Judgement::Compatible, format!("format of {part} changed"));
        }
    }
}

fn describe_types(old: &Type, new: &Type) -> String {
    if old.to_string() == new.to_string() {
        return format!("({new}, with different constraints)");
    }
    format!("from {old} to {new}")
}

/// Returns the names of the record types that arguments may contain.
fn records_in_arguments(project: &Project) -> HashSet<String> {
    let arguments = signatures(project).into_iter().flat_map(|signature| signature.parameters);
    reachable_records(project, arguments.map(|parameter| parameter.ty))
}

/// Returns the names of the record types that results of tools and answers of agents may contain.
fn records_in_results(project: &Project) -> HashSet<String> {
    let agents = project.files().iter().flat_map(|file| file.tree.walk()).filter_map(Agent::cast);
    let answers = agents.filter_map(|agent| agent.returns(project.records())?.ok());
    let results = signatures(project).into_iter().map(|signature| signature.returns);
    reachable_records(project, results.chain(answers))
}

fn signatures(project: &Project) -> Vec<Signature> {
    let tools = project.files().iter().flat_map(|file| file.tree.walk()).filter_map(ToolSpec::cast);
    tools.filter_map(|tool| tool.signature(project.records()).ok()).collect()
}

/// Returns the names of the record types in types, and of those inside them.
fn reachable_records(project: &Project, types: impl Iterator<Item = Type>) -> HashSet<String> {
    let mut open: Vec<String> = Vec::new();
    for ty in types {
        let mut names = Vec::new();
        collect_record_names(&ty, &mut names);
        open.extend(names.into_iter().map(str::to_owned));
    }
    let mut found = HashSet::new();
    while let Some(name) = open.pop() {
        if found.contains(&name) {
            continue;
        }
        let mut names = Vec::new();
        for field in project.records().get(&name).into_iter().flat_map(|record| &record.fields) {
            collect_record_names(&field.ty, &mut names);
        }
        open.extend(names.into_iter().map(str::to_owned));
        found.insert(name);
    }
    found
}
