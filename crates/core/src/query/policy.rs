//! Policies: queries that must have no answer.

use super::pattern::Query;
use super::project::ProjectGraph;
use super::property_graph::{FilePlace, PropertyGraph, Relation, VertexIndex};
use super::schema::PROJECT_SCHEMA;
use super::search::{Evidence, Limits, Search};
use crate::declare::project::{Finding, Project};
use crate::declare::property::{self, ValueKind};
use crate::declare::{DeclarationKind, head_span};
use crate::library::{Layer, LibraryTool, Sealing};
use crate::rule;
use patter_gram::{Diagnostic, Kind, Pattern, Severity, Span, Syntax, Value};
use std::collections::HashMap;

/// The properties of a policy.
pub(crate) const PROPERTIES: &[(&str, ValueKind)] = &[
    ("description", ValueKind::String),
    ("forbid", ValueKind::String),
    ("because", ValueKind::String),
    ("level", ValueKind::OneOf(&["error", "warning"])),
    ("sealed", ValueKind::Boolean),
];

/// Something that a project must not do: a query that must have no answer.
///
/// ```
/// use patter_core::declare::project::Project;
/// use patter_core::library::Layer;
/// use patter_core::query::Policy;
/// let text = r#"[no_orphans:Policy { forbid: "(t:Tool { callers: 0 })", because: "unused tools are a risk" }]"#;
/// let policies = Policy::read_all(&Project::read([("policies.gram", text)]), Layer::Project);
/// assert_eq!(policies[0].as_ref().unwrap().name, "no_orphans");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The name, with the name of its set.
    pub name: String,
    /// What must not be found.
    pub forbid: Query,
    /// That, as it is written.
    pub forbid_text: String,
    /// The reason, for those who break it.
    pub because: String,
    /// How bad it is to break it.
    pub level: Severity,
    /// The layer that has it.
    pub layer: Layer,
    /// Whether a project can replace it.
    pub sealing: Sealing,
    /// Where it is declared, for people.
    pub source: String,
    /// Where it is declared in its own project.
    place: FilePlace,
}

/// A policy that cannot be read, with where it is and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    /// The name.
    pub name: String,
    /// Where the mistake is, for people.
    pub place: String,
    /// The mistake.
    pub diagnostic: Diagnostic,
}

/// A place where a project breaks a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// The name of the policy.
    pub policy: String,
    /// Whether the project can ignore it.
    pub sealing: Sealing,
    /// The finding, at what the policy names first.
    pub finding: Finding,
    /// What leads there, step by step.
    pub path: Vec<PathPart>,
}

/// A step of the path that breaks a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPart {
    /// The step, in words: `desk -[calls]-> mail/send`, or a name.
    pub text: String,
    /// Where it is written, if that is in a file of the project.
    pub place: Option<FilePlace>,
    /// Where it comes from, for people.
    pub source: Option<String>,
}

impl Policy {
    /// Reads the policies of a project: those at the top level of files, and those in sets.
    pub fn read_all(project: &Project, layer: Layer) -> Vec<Result<Self, Box<PolicyError>>> {
        let mut policies = Vec::new();
        for declaration in project.declarations() {
            let Some(pattern) = project.pattern(declaration) else { continue };
            let mut read = |pattern: Pattern<'_>, set: Option<Pattern<'_>>| {
                policies.push(read_policy(project, declaration.file, pattern, set, layer));
            };
            match declaration.kind {
                DeclarationKind::Policy => read(pattern, None),
                DeclarationKind::Policies => {
                    let is_policy =
                        |it: &Pattern<'_>| DeclarationKind::from_pattern(*it) == Some(DeclarationKind::Policy);
                    pattern.elements().filter(is_policy).for_each(|policy| read(policy, Some(pattern)));
                }
                _ => {}
            }
        }
        policies
    }

    /// Merges the policies of an organisation with those of a project. A policy of the project replaces one of the
    /// organisation with the same name; if that is sealed, both apply, and the attempt is a finding.
    pub fn merge(shared: Vec<Self>, own: Vec<Self>) -> (Vec<Self>, Vec<Finding>) {
        let mut findings = Vec::new();
        for policy in &own {
            let Some(sealed) = shared.iter().find(|it| it.name == policy.name && it.sealing == Sealing::Sealed) else {
                continue;
            };
            let message = format!("the policy `{}` is sealed by the {} layer", policy.name, sealed.layer);
            let diagnostic = rule::SEALED_POLICY.at(policy.place.span, message);
            let hint = format!("rename this one; the other is declared in {}", sealed.source);
            findings.push(Finding { file: policy.place.file, diagnostic: diagnostic.with_hint(hint) });
        }
        let is_replaced =
            |policy: &Policy| policy.sealing == Sealing::Open && own.iter().any(|other| other.name == policy.name);
        let kept: Vec<_> = shared.into_iter().filter(|policy| !is_replaced(policy)).collect();
        (kept.into_iter().chain(own).collect(), findings)
    }

    /// Finds where a project breaks the policy.
    pub fn violations(&self, project: &Project, graph: &PropertyGraph, limits: Limits) -> Vec<Violation> {
        let stopped = |stop: super::search::Stop| {
            let message = format!("the policy `{}` cannot be checked: {stop}", self.name);
            let diagnostic = rule::UNCHECKED_POLICY.at(self.span_in_project(), message).with_hint(stop.hint());
            let finding = Finding { file: self.file_in(project), diagnostic };
            vec![Violation { policy: self.name.clone(), sealing: self.sealing, finding, path: Vec::new() }]
        };
        let mut search = match Search::new(graph, &self.forbid, limits) {
            Ok(search) => search,
            Err(stop) => return stopped(stop),
        };
        let rows = match search.rows() {
            Ok(rows) => rows,
            Err(stop) => return stopped(stop),
        };
        let mut violations = Vec::new();
        let mut heads = Heads { project, files: HashMap::new() };
        for row in rows {
            match search.evidence(&row) {
                Ok(evidence) => violations.push(self.violation(&mut heads, graph, &evidence)),
                Err(stop) => {
                    violations.extend(stopped(stop));
                    break;
                }
            }
        }
        violations
    }

    fn violation(&self, heads: &mut Heads<'_>, graph: &PropertyGraph, evidence: &Evidence) -> Violation {
        let project = heads.project;
        let path = path_parts(graph, evidence);
        let places = evidence.vertices.iter().filter_map(|vertex| graph.vertex(*vertex)?.place);
        let place = places.chain(path.iter().filter_map(|part| part.place)).next();
        let file = place.map_or_else(|| self.file_in(project), |place| place.file);
        let span = place.map_or_else(|| self.span_in_project(), |place| heads.find(place));
        let message = format!("the policy `{}` is broken: {}", self.name, self.because);
        let mut diagnostic = Diagnostic { severity: self.level, ..rule::BROKEN_POLICY.at(span, message) };
        for part in &path {
            let Some(place) = part.place.filter(|place| place.file == file) else { continue };
            let span = heads.find(place);
            if span != diagnostic.span {
                diagnostic = diagnostic.with_related(span, part.text.clone());
            }
        }
        let path_text = describe_path(graph, evidence);
        let diagnostic = diagnostic.with_hint(format!("found {path_text}; the policy is declared in {}", self.source));
        let finding = Finding { file, diagnostic };
        Violation { policy: self.name.clone(), sealing: self.sealing, finding, path }
    }

    /// Returns the file of a finding that is about the policy itself. A policy of an organisation is not in the project.
    fn file_in(&self, project: &Project) -> usize {
        if self.layer == Layer::Project { self.place.file.min(project.files().len()) } else { 0 }
    }

    fn span_in_project(&self) -> Span {
        if self.layer == Layer::Project { self.place.span } else { Span::at(0) }
    }
}

/// Finds where a project breaks policies, with what is known about its tools. The findings of the check can be asked for by
/// policies, too. Without policies, nothing is built.
pub fn find_violations<T: LibraryTool>(
    policies: &[Policy],
    source: &ProjectGraph<'_, T>,
    limits: Limits,
) -> Vec<Violation> {
    if policies.is_empty() {
        return Vec::new();
    }
    let graph = source.build();
    policies.iter().flat_map(|policy| policy.violations(source.project, &graph, limits)).collect()
}

/// Returns the diagnostics for a policy that cannot be read.
pub(crate) fn query_errors(pattern: Pattern<'_>) -> Vec<Diagnostic> {
    let Some(syntax) = pattern.get("forbid") else { return Vec::new() };
    let Some(text) = syntax.read_text().filter(|text| !text.trim().is_empty()) else { return Vec::new() };
    let Err(errors) = Query::parse(&text, &PROJECT_SCHEMA) else { return Vec::new() };
    errors.into_iter().map(|error| in_file(error, syntax, &text)).collect()
}

/// Moves a diagnostic about a query to the file that has the query as text.
fn in_file(error: Diagnostic, syntax: Syntax<'_>, text: &str) -> Diagnostic {
    let source = syntax.text();
    // Escapes and indentation move the text; then the whole value is marked.
    let start = match syntax.kind() {
        Kind::String => source.find(text).map(|at| syntax.span().start + u32::try_from(at).unwrap_or(0)),
        _ => None,
    };
    let span = match start {
        Some(start) => Span::new(start + error.span.start, start + error.span.end.max(error.span.start)),
        None => syntax.span(),
    };
    let found = rule::INVALID_QUERY.at(span, error.message);
    Diagnostic { hint: error.hint, ..found }
}

fn read_policy(
    project: &Project,
    file: usize,
    pattern: Pattern<'_>,
    set: Option<Pattern<'_>>,
    layer: Layer,
) -> Result<Policy, Box<PolicyError>> {
    let own = pattern.name().unwrap_or_default();
    let name = match set.and_then(Pattern::name) {
        Some(set) => format!("{set}/{own}"),
        None => own.clone().into_owned(),
    };
    let failed = |diagnostic: Diagnostic| {
        let place = project.location(file, diagnostic.span);
        Box::new(PolicyError { name: name.clone(), place, diagnostic })
    };
    let wrong = PROPERTIES.iter().find_map(|(key, kind)| property::check_value(pattern.property(key)?, *kind));
    if let Some(error) = wrong.or_else(|| query_errors(pattern).into_iter().next()) {
        return Err(failed(error));
    }
    let missing = |key: &str| {
        let found = rule::MISSING_PROPERTY.at(head_span(pattern), format!("the policy `{name}` has no `{key}`"));
        failed(found.with_hint(format!("add `{key}: \"…\"` to its record")))
    };
    let text = |key: &str| pattern.get(key).and_then(Syntax::read_text).filter(|text| !text.trim().is_empty());
    let forbid = text("forbid").ok_or_else(|| missing("forbid"))?;
    let because = text("because").ok_or_else(|| missing("because"))?;
    let forbid_text = forbid.split_whitespace().collect::<Vec<_>>().join(" ");
    let forbid = Query::parse(&forbid, &PROJECT_SCHEMA).map_err(|_| missing("forbid"))?;
    let is_warning =
        matches!(pattern.value("level"), Some(Value::String(word) | Value::Symbol(word)) if word == "warning");
    let is_sealed = |pattern: Pattern<'_>| pattern.value("sealed") == Some(Value::Boolean(true));
    let is_sealed = is_sealed(pattern) || set.is_some_and(is_sealed);
    Ok(Policy {
        forbid,
        forbid_text,
        because: because.split_whitespace().collect::<Vec<_>>().join(" "),
        level: if is_warning { Severity::Warning } else { Severity::Error },
        layer,
        sealing: if is_sealed { Sealing::Sealed } else { Sealing::Open },
        source: project.location(file, pattern.span()),
        place: FilePlace { file, span: head_span(pattern) },
        name,
    })
}

/// The heads of the declarations in some files, read once for each file.
struct Heads<'p> {
    project: &'p Project,
    files: HashMap<usize, HashMap<Span, Span>>,
}

impl Heads<'_> {
    /// Returns the span of the head of a declaration, or the span itself if no declaration is there.
    fn find(&mut self, place: FilePlace) -> Span {
        let heads = self.files.entry(place.file).or_insert_with(|| {
            let patterns = self.project.files().get(place.file).into_iter().flat_map(|file| file.tree.walk());
            let declared = patterns.filter(|pattern| DeclarationKind::from_pattern(*pattern).is_some());
            declared.map(|pattern| (pattern.span(), head_span(pattern))).collect()
        });
        heads.get(&place.span).copied().unwrap_or(place.span)
    }
}

/// Returns what makes a row an answer, step by step.
fn path_parts(graph: &PropertyGraph, evidence: &Evidence) -> Vec<PathPart> {
    let mut parts: Vec<PathPart> = Vec::new();
    for relation in evidence.walks.iter().flatten().filter_map(|index| graph.relations().get(*index)) {
        let source = graph.vertex(relation.from).and_then(|vertex| vertex.source.clone());
        let place = relation.place.or_else(|| graph.vertex(relation.from)?.place);
        parts.push(PathPart { text: describe_step(graph, relation), place, source });
    }
    // The ends, and vertices that no relation leads to.
    for vertex in evidence.vertices.iter().filter_map(|vertex| graph.vertex(*vertex)) {
        let text = format!("{} {}", vertex.label().to_lowercase(), vertex.name);
        parts.push(PathPart { text, place: vertex.place, source: vertex.source.clone() });
    }
    parts
}

fn describe_step(graph: &PropertyGraph, relation: &Relation) -> String {
    let name = |vertex: VertexIndex| graph.vertex(vertex).map_or("", |vertex| vertex.name.as_str());
    format!("{} -[{}]-> {}", name(relation.from), describe_relation(relation), name(relation.to))
}

fn describe_relation(relation: &Relation) -> String {
    match relation.properties.get("decision").and_then(|decision| decision.as_str()) {
        Some(decision) => format!("{} {decision}", relation.name),
        None => relation.name.to_owned(),
    }
}

/// Describes the evidence of a row in a line: `desk -[calls]-> writer -[may allow]-> mail/send`.
pub fn describe_path(graph: &PropertyGraph, evidence: &Evidence) -> String {
    let name = |vertex: VertexIndex| graph.vertex(vertex).map_or("", |vertex| vertex.name.as_str());
    let mut out = String::new();
    let mut last = None;
    let mut shown = Vec::new();
    for relation in evidence.walks.iter().flatten().filter_map(|index| graph.relations().get(*index)) {
        if last != Some(relation.from) {
            let separator = if out.is_empty() { "" } else { "; " };
            out.push_str(&format!("{separator}{}", name(relation.from)));
        }
        out.push_str(&format!(" -[{}]-> {}", describe_relation(relation), name(relation.to)));
        last = Some(relation.to);
        shown.extend([relation.from, relation.to]);
    }
    for vertex in evidence.vertices.iter().filter(|vertex| !shown.contains(vertex)) {
        let separator = if out.is_empty() { "" } else { "; " };
        out.push_str(&format!("{separator}{}", name(*vertex)));
    }
    out
}
