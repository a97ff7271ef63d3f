//! The static check: everything that can be known of a project before a token is spent.

mod agent;
mod broken;
mod case;
mod expressible;
mod instruction;
mod property;
mod reference;
mod tool;

use crate::declare::Declares;
use crate::declare::head_span;
use crate::declare::project::{Declaration, Finding, Project};
use crate::declare::property::Takes;
use crate::text::with_article;
use crate::types::signature::Signature;
use crate::{rule, text::nearest};
use broken::Broken;
use patter_gram::{Diagnostic, Pattern, PatternKind, Span, Syntax, SyntaxId, quote_name};
pub(crate) use reference::endless as endless_records;
use std::collections::{HashMap, HashSet};

/// What a check should know beyond the files.
#[derive(Debug, Clone, Default)]
pub struct Options<'o> {
    /// Tools that the library has, so that agents may refer to them: by name, or all of a toolbox as in `files/*`.
    pub library: &'o [&'o str],
}

/// Checks a project. Findings come in the order of files and places. Text that cannot be read as gram is reported as
/// such, and nothing more is said of it.
///
/// ```
/// use patter_core::{check::{Options, check}, declare::project::Project};
/// let project = Project::read([("a.gram", "[hi:Agent {instruction: 'Greet.', modle: 'demo'}]")]);
/// let findings = check(&project, &Options::default());
/// let messages: Vec<_> = findings.iter().map(|finding| finding.diagnostic.message.as_ref()).collect();
/// assert_eq!(messages, ["an agent has no property `modle`"]);
/// assert_eq!(findings[0].diagnostic.hint.as_deref(), Some("did you mean `model`?"));
/// ```
pub fn check(project: &Project, options: &Options<'_>) -> Vec<Finding> {
    let broken = project.files().iter().map(|file| Broken::of(&file.diagnostics)).collect();
    let findings = project.record_findings().to_vec();
    let endless = reference::endless(project.records());
    let mut checker = Checker { project, options, broken, findings, file: 0, signatures: HashMap::new(), endless };
    for (file, source) in project.files().iter().enumerate() {
        checker.file = file;
        for pattern in source.tree.patterns() {
            checker.top_level(pattern);
        }
    }
    checker.duplicates();
    checker.references();
    checker.cases();
    checker.parameter_types();
    let Checker { mut findings, broken, .. } = checker;
    findings.retain(|Finding { file, diagnostic }| broken.get(*file).is_none_or(|it| !it.overlaps(diagnostic.span)));
    for (file, source) in project.files().iter().enumerate() {
        findings.extend(source.diagnostics.iter().cloned().map(|diagnostic| Finding { file, diagnostic }));
    }
    findings.sort_by_key(|finding| (finding.file, finding.diagnostic.span.start, finding.diagnostic.code));
    findings.dedup();
    findings
}

/// Finds what is wrong with one file by itself, so that nothing in it should be run: mistakes, and keys that are given
/// twice, of which only one would count.
pub fn errors_in(project: &Project, file: usize) -> Vec<Finding> {
    let Some(source) = project.files().get(file) else { return Vec::new() };
    let broken = project.files().iter().map(|file| Broken::of(&file.diagnostics)).collect();
    let endless = reference::endless(project.records());
    let (options, findings) = (&Options::default(), project.record_findings().to_vec());
    let mut checker = Checker { project, options, broken, findings, file, signatures: HashMap::new(), endless };
    for pattern in source.tree.patterns() {
        checker.top_level(pattern);
    }
    let mut findings = checker.findings;
    findings.extend(source.diagnostics.iter().cloned().map(|diagnostic| Finding { file, diagnostic }));
    findings
        .retain(|found| found.file == file && (found.diagnostic.is_error() || found.diagnostic.code == DUPLICATE_KEY));
    findings.sort_by_key(|finding| (finding.diagnostic.span.start, finding.diagnostic.code));
    findings.dedup();
    findings
}

/// The code of keys that are given twice.
const DUPLICATE_KEY: &str = "G033";

struct Checker<'p> {
    project: &'p Project,
    options: &'p Options<'p>,
    /// What could not be read, for each file.
    broken: Vec<Broken>,
    findings: Vec<Finding>,
    /// The file that is being checked.
    file: usize,
    /// The signatures without mistakes that have been read, by the file and the place of their path.
    signatures: HashMap<(usize, SyntaxId), Signature>,
    /// The record types that no value can have.
    endless: HashSet<String>,
}

impl<'p> Checker<'p> {
    fn report(&mut self, diagnostic: Diagnostic) {
        self.findings.push(Finding { file: self.file, diagnostic });
    }

    fn report_at(&mut self, declaration: &Declaration, diagnostic: Diagnostic) {
        self.findings.push(Finding { file: declaration.file, diagnostic });
    }

    /// Tells whether a piece of the file could not be read, so that what it lacks may be there.
    fn is_broken(&self, span: Span) -> bool {
        self.broken.get(self.file).is_some_and(|broken| broken.overlaps(span))
    }

    fn top_level(&mut self, pattern: Pattern<'p>) {
        match Declares::of(pattern) {
            Some(Declares::Agent) => self.agent(pattern),
            Some(Declares::Tool) => self.tool(pattern),
            Some(Declares::Toolbox) => self.toolbox(pattern),
            Some(Declares::Record) => self.record(pattern),
            Some(Declares::Implementation) => self.implementation(pattern, ""),
            // They are read file by file.
            Some(Declares::Cases | Declares::Case) => {}
            None => self.declares_nothing(pattern),
        }
    }

    fn declares_nothing(&mut self, pattern: Pattern<'p>) {
        if self.is_broken(pattern.span()) {
            return;
        }
        let labels = pattern.labels().filter(|_| pattern.kind() == PatternKind::Bracket);
        let near = labels.into_iter().find_map(|label| nearest(&label, Declares::LABELS));
        let found = rule::UNKNOWN_DECLARATION.at(head_span(pattern), "this pattern declares nothing");
        self.report(found.with_hint(match (near, pattern.kind()) {
            (Some(label), _) => format!("did you mean the label `{label}`?"),
            (None, PatternKind::Bracket) => {
                "declarations have the label Agent, Tool, Toolbox, Object or Cases".to_owned()
            }
            (None, _) => "agents and tools are bracket patterns: `[name:Agent {…} | …]`".to_owned(),
        }));
    }

    /// Reports a declaration without a name, or with one that is not allowed.
    fn name(&mut self, pattern: Pattern<'p>, noun: &str) {
        let is_named = pattern.name().is_some_and(|name| !name.trim().is_empty());
        let label = label_of(pattern);
        if let Some(property) = pattern.property("name") {
            let name = property.value().and_then(Syntax::read_text).filter(|name| !name.trim().is_empty());
            let name = quote_name(name.as_deref().unwrap_or("name"));
            let message = format!("the name of {} is not a property", with_article(noun));
            self.report(rule::NAME_PROPERTY.at(property.syntax().span(), message).with_hint(if is_named {
                "the name stands before the label; remove this".to_owned()
            } else {
                format!("write it before the label, `[{name}:{label} …`, and remove this")
            }));
        } else if !is_named {
            let found = rule::UNNAMED.at(head_span(pattern), format!("this {noun} has no name"));
            self.report(found.with_hint(format!("write the name before the label: `[name:{label} …`")));
        }
    }

    fn record(&mut self, pattern: Pattern<'p>) {
        self.name(pattern, "record type");
        self.known_properties(pattern, "record type", &["description"]);
        let name = pattern.name().unwrap_or_default();
        if crate::types::signature::is_built_in(&name) {
            let found = rule::DUPLICATE_DECLARATION
                .at(head_span(pattern), format!("`{name}` is a type that needs no declaration"));
            self.report(found.with_hint("give the record type another name"));
        }
        if self.endless.contains(name.as_ref()) {
            let found = rule::ENDLESS_RECORD
                .at(head_span(pattern), format!("no value can be {}: it always holds another", with_article(&name)));
            self.report(found.with_hint("make a field that leads back to it optional, or an array"));
        }
        if let Some(record) = self.project.records().get(&name) {
            self.record_defaults(pattern, &record.fields);
        }
    }

    /// Reports names that are declared twice, among agents and tools, and among record types.
    fn duplicates(&mut self) {
        let mut first: HashMap<(bool, &str), &Declaration> = HashMap::new();
        let project = self.project;
        for declaration in project.declarations().iter().filter(|declaration| !declaration.name.is_empty()) {
            // Nothing refers to cases, so their lists may be called anything.
            if matches!(declaration.declares, Declares::Cases | Declares::Case) {
                continue;
            }
            let is_type = declaration.declares == Declares::Record;
            let key = (is_type, declaration.name.as_str());
            let Some(earlier) = first.get(&key) else {
                first.insert(key, declaration);
                continue;
            };
            let message = format!("the name `{}` is declared twice", declaration.name);
            let pattern = project.pattern(declaration);
            let span = pattern.and_then(Pattern::identifier).map_or(declaration.span, Syntax::span);
            let mut found = rule::DUPLICATE_DECLARATION.at(span, message);
            if earlier.file == declaration.file {
                let span = project.pattern(earlier).and_then(Pattern::identifier).map_or(earlier.span, Syntax::span);
                found =
                    found.with_related(span, "first declared here").with_hint("rename one of the two, or remove it");
            } else {
                let place = project.place(earlier.file, earlier.span);
                found = found.with_hint(format!("the other one is in {place}; rename one of the two, or remove it"));
            }
            self.report_at(declaration, found);
        }
    }
}

/// Names a declaration for messages.
fn the(noun: &str, pattern: Pattern<'_>) -> String {
    match pattern.name() {
        Some(name) => format!("the {noun} `{name}`"),
        None => format!("this {noun}"),
    }
}

fn label_of(pattern: Pattern<'_>) -> String {
    pattern.labels().next().unwrap_or_default().into_owned()
}
