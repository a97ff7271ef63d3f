//! The static check, which finds mistakes in a project before a model is called.

mod broken_spans;
mod library;
mod property;
mod tool;
mod toolkit;
mod agent;
mod extend;
mod callable;
mod instruction;
mod workflow;
mod provider_schema;
mod reference;
mod depth;
mod case;
mod policy;
mod schedule;
mod secret;
mod notation;

use crate::declare::project::{Declaration, File, Finding, Project};
use crate::declare::scope::Scope;
use crate::declare::workflow::is_workflow;
use crate::declare::{DeclarationKind, head_span};
use crate::parallel::map_batches;
use crate::permission;
use crate::rule;
use crate::text::{nearest, with_article};
use crate::types::signature::Signature;
use broken_spans::BrokenSpans;
pub use case::check_cases;
use library::LibraryNames;
use patter_gram::{Diagnostic, Kind, Pattern, PatternKind, Span, Syntax, SyntaxId, quote_name};
use reference::Calls;
pub(crate) use reference::infinite_records;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tool::ParameterUse;

/// Options of a check.
#[derive(Debug, Clone, Default)]
pub struct Options<'o> {
    /// The tools in the library, which agents may refer to: full names, or whole toolboxes such as `files/*`.
    pub library: &'o [&'o str],
    /// The full names of the tools that the project must not override.
    pub sealed: &'o [&'o str],
    /// The full names of the tools in the library that change something, where those of a toolbox change the same things.
    pub writing: &'o [&'o str],
    /// The permission rules that apply to all agents, besides their own.
    pub rules: &'o [permission::Rule],
    /// Whether to report also what many projects do without.
    pub pedantic: bool,
}

/// Checks a project. Findings are sorted by file and position. Nothing more is reported about text with syntax errors.
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
    /// The number of files that a thread takes at once.
    const BATCH: usize = 64;
    let checker = Checker::new(project, options);
    let count = project.files().len();
    let mut parts = map_batches(count, BATCH, |files| checker.check_files(files));
    // Which names get a suggestion must not depend on the threads.
    if checker.has_spent_suggestions() {
        checker.suggestions.store(0, Ordering::Relaxed);
        parts = vec![checker.check_files(0..count)];
    }
    let mut findings = checker.check_together(parts);
    findings.sort_by_key(|finding| (finding.file, finding.diagnostic.span.start, finding.diagnostic.code));
    findings.dedup();
    findings.iter_mut().for_each(|finding| secret::mask(&mut finding.diagnostic));
    findings
}

/// Returns the findings that prevent a file from being run: errors, and duplicate keys, of which only one would count.
pub fn file_errors(project: &Project, file: usize) -> &[Finding] {
    project.file_errors(file, || find_file_errors(project, file))
}

fn find_file_errors(project: &Project, file: usize) -> Vec<Finding> {
    let Some(source) = project.files().get(file) else { return Vec::new() };
    let options = &Options::default();
    let mut checker = Checker { file, ..Checker::new(project, options) };
    checker.check_declarations(source);
    let mut findings = checker.findings;
    findings.extend_from_slice(project.record_findings());
    findings.extend(notation::diagnostics(source).into_iter().map(|diagnostic| Finding { file, diagnostic }));
    findings.retain(|found| {
        found.file == file && (found.diagnostic.is_error() || found.diagnostic.code == patter_gram::code::DUPLICATE_KEY)
    });
    findings.sort_by_key(|finding| (finding.diagnostic.span.start, finding.diagnostic.code));
    findings.dedup();
    findings.iter_mut().for_each(|finding| secret::mask(&mut finding.diagnostic));
    findings
}

/// What is found by name together, so that names must be unique in it.
#[derive(PartialEq, Eq, Hash)]
enum Namespace {
    Callables,
    Types,
    Policies,
    Schedules,
}

/// Checks files, and collects what the checks of the whole project need. Clones share what they know of the project.
#[derive(Clone)]
struct Checker<'p> {
    project: &'p Project,
    options: &'p Options<'p>,
    /// The syntax errors of each file.
    broken: Arc<[BrokenSpans]>,
    /// The infinitely recursive record types.
    infinite: Arc<HashSet<String>>,
    library: Arc<LibraryNames<'p>>,
    /// The number of names that a similar one was looked for.
    suggestions: Arc<AtomicUsize>,
    findings: Vec<Finding>,
    /// What is found in the text of files, even where it is broken.
    text_findings: Vec<Finding>,
    /// The file that is being checked.
    file: usize,
    /// The agents around the part that is being checked.
    scope: Scope<'p>,
    /// The valid signatures of each file read so far, by the id of their path.
    signatures: HashMap<usize, HashMap<SyntaxId, Signature>>,
    /// The parameters of tools, in the order of the files.
    parameters: Vec<ParameterUse<'p>>,
    /// The names that references mean.
    used: HashSet<String>,
    /// The names of the record types in signatures.
    records: HashSet<String>,
    calls: Calls<'p>,
}

impl<'p> Checker<'p> {
    fn new(project: &'p Project, options: &'p Options<'p>) -> Self {
        Self {
            project,
            options,
            broken: project.files().iter().map(|file| BrokenSpans::new(&file.diagnostics)).collect(),
            infinite: Arc::new(infinite_records(project.records())),
            library: Arc::new(LibraryNames::new(options)),
            suggestions: Arc::default(),
            findings: Vec::new(),
            text_findings: Vec::new(),
            file: 0,
            scope: Scope::default(),
            signatures: HashMap::new(),
            parameters: Vec::new(),
            used: HashSet::new(),
            records: HashSet::new(),
            calls: Calls::default(),
        }
    }

    /// Checks files one by one.
    fn check_files(&self, files: Range<usize>) -> Self {
        let mut checker = self.clone();
        for (file, source) in self.project.files().iter().enumerate().take(files.end).skip(files.start) {
            checker.file = file;
            checker.check_declarations(source);
            checker.check_references(source);
            checker.collect_parameters(source);
            checker.collect_records(source);
            let found = secret::secrets(source).into_iter().chain(notation::diagnostics(source));
            checker.text_findings.extend(found.map(|diagnostic| Finding { file, diagnostic }));
        }
        checker
    }

    /// Checks the project as a whole, after its files. Returns all findings.
    fn check_together(mut self, parts: Vec<Self>) -> Vec<Finding> {
        self.findings.extend_from_slice(self.project.record_findings());
        for part in parts {
            self.findings.extend(part.findings);
            self.text_findings.extend(part.text_findings);
            self.parameters.extend(part.parameters);
            self.used.extend(part.used);
            self.records.extend(part.records);
            self.calls.extend(part.calls);
        }
        self.check_duplicates();
        self.report_unused();
        self.check_cycles();
        self.check_depth();
        self.check_cases();
        self.check_parameter_types();
        let Self { mut findings, broken, text_findings, .. } = self;
        findings
            .retain(|Finding { file, diagnostic }| broken.get(*file).is_none_or(|it| !it.overlaps(diagnostic.span)));
        findings.extend(text_findings);
        findings
    }

    /// Checks the declarations of the current file, apart from their references.
    fn check_declarations(&mut self, source: &'p File) {
        for pattern in source.tree.patterns() {
            self.check_declaration(pattern);
        }
        self.check_labels();
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.findings.push(Finding { file: self.file, diagnostic });
    }

    fn report_at(&mut self, declaration: &Declaration, diagnostic: Diagnostic) {
        self.findings.push(Finding { file: declaration.file, diagnostic });
    }

    /// Returns whether a part of the file has syntax errors, so that what seems to be missing may be there.
    fn is_broken(&self, span: Span) -> bool {
        self.broken.get(self.file).is_some_and(|broken| broken.overlaps(span))
    }

    fn check_declaration(&mut self, pattern: Pattern<'p>) {
        match DeclarationKind::from_pattern(pattern) {
            Some(DeclarationKind::Agent) if is_workflow(pattern) => self.check_workflow(pattern),
            Some(DeclarationKind::Agent) => self.check_agent(pattern),
            Some(DeclarationKind::Tool) => self.check_tool(pattern),
            Some(DeclarationKind::Toolbox) => self.check_toolbox(pattern),
            Some(DeclarationKind::Toolkit) => self.check_toolkit(pattern),
            Some(DeclarationKind::Record) => self.check_record(pattern),
            Some(DeclarationKind::Implementation) => self.check_implementation(pattern, ""),
            Some(DeclarationKind::Policy) => self.check_policy(pattern),
            Some(DeclarationKind::Policies) => self.check_policies(pattern),
            Some(DeclarationKind::Schedule) => self.check_schedule(pattern),
            // Cases are checked file by file.
            Some(DeclarationKind::Cases | DeclarationKind::Case) => {}
            None => self.report_unknown_declaration(pattern),
        }
    }

    /// Reports patterns of the file with labels of different declarations. Only the first would count.
    fn check_labels(&mut self) {
        let project = self.project;
        let Some(source) = project.files().get(self.file) else { return };
        for pattern in source.tree.walk().filter(|pattern| pattern.kind() == PatternKind::Bracket) {
            let labels = pattern.syntax().children().filter(|part| part.kind() == Kind::Label).zip(pattern.labels());
            let mut declaring = labels.filter(|(_, label)| DeclarationKind::LABELS.contains(&label.as_ref()));
            // Both labels declare a tool, the second one in old files.
            let noun = |label: &str| if label == "ToolSpecification" { "Tool" } else { label }.to_owned();
            let Some((first, name)) = declaring.next() else { continue };
            let Some((second, other)) = declaring.find(|(_, other)| noun(other) != noun(&name)) else { continue };
            let message = format!("a declaration cannot have both labels `{name}` and `{other}`");
            let found = rule::SEVERAL_KINDS.at(second.span(), message).with_related(first.span(), "the first label");
            self.report(found.with_hint("remove one of them, or write two declarations"));
        }
    }

    fn report_unknown_declaration(&mut self, pattern: Pattern<'p>) {
        // An exported session declares nothing, and says what it is.
        if self.is_broken(pattern.span()) || pattern.has_label("Session") {
            return;
        }
        let labels = pattern.labels().filter(|_| pattern.kind() == PatternKind::Bracket);
        let near = labels.into_iter().find_map(|label| nearest(&label, DeclarationKind::LABELS));
        let name = pattern.name().unwrap_or_default();
        let is_label = pattern.labels().next().is_none() && DeclarationKind::LABELS.contains(&&*name);
        let found = rule::UNKNOWN_DECLARATION.at(head_span(pattern), "this pattern declares nothing");
        self.report(
            found.with_hint(match (near, pattern.kind()) {
                _ if is_label => format!("write `[name:{name} {{…}}]`; without a colon, `{name}` is read as the name"),
                (Some(label), _) => format!("did you mean the label `{label}`?"),
                (None, PatternKind::Bracket) => {
                    "declarations need one of the labels Agent, Workflow, Pipe, Tool, Command, Http, Toolbox, Toolkit, Object, Cases, Policy and Schedule"
                        .to_owned()
                }
                (None, _) => "agents and tools are bracket patterns: `[name:Agent {…} | …]`".to_owned(),
            }),
        );
    }

    /// Reports a declaration without a name, or with a `name` property.
    fn check_name(&mut self, pattern: Pattern<'p>, noun: &str) {
        let is_named = pattern.name().is_some_and(|name| !name.trim().is_empty());
        let label = label_of(pattern);
        if let Some(property) = pattern.property("name") {
            let name = property.value().and_then(Syntax::read_text).filter(|name| !name.trim().is_empty());
            let name = quote_name(name.as_deref().unwrap_or("name"));
            let message = format!("the name of {} is not a property", with_article(noun));
            self.report(rule::NAME_PROPERTY.at(property.syntax().span(), message).with_hint(if is_named {
                "the name is already before the label; remove this property".to_owned()
            } else {
                format!("write it before the label, `[{name}:{label} …`, and remove this property")
            }));
        } else if !is_named {
            let found = rule::MISSING_NAME.at(head_span(pattern), format!("this {noun} has no name"));
            self.report(found.with_hint(format!("write the name before the label: `[name:{label} …`")));
        }
    }

    fn check_record(&mut self, pattern: Pattern<'p>) {
        self.check_name(pattern, "record type");
        self.report_unknown_properties(pattern, "record type", &["description"]);
        let name = pattern.name().unwrap_or_default();
        if crate::types::signature::is_built_in(&name) {
            let found = rule::DUPLICATE_DECLARATION.at(head_span(pattern), format!("`{name}` is a built-in type"));
            self.report(found.with_hint("rename the record type"));
        }
        if self.infinite.contains(name.as_ref()) {
            let found = rule::INFINITE_RECORD
                .at(head_span(pattern), format!("no value can have the type `{name}`: it always contains another"));
            self.report(found.with_hint("make the recursive field optional, or an array"));
        }
        if let Some(record) = self.project.records().get(&name) {
            self.check_record_defaults(pattern, &record.fields);
        }
    }

    /// Reports duplicate names, among agents and tools, among record types, among policies and among schedules.
    fn check_duplicates(&mut self) {
        let mut first: HashMap<(Namespace, &str), &Declaration> = HashMap::new();
        let project = self.project;
        for declaration in project.declarations().iter().filter(|declaration| !declaration.name.is_empty()) {
            // Nothing refers to lists of cases, so they may have any name.
            if matches!(declaration.kind, DeclarationKind::Cases | DeclarationKind::Case) {
                continue;
            }
            let namespace = match declaration.kind {
                DeclarationKind::Record => Namespace::Types,
                DeclarationKind::Policy | DeclarationKind::Policies => Namespace::Policies,
                DeclarationKind::Schedule => Namespace::Schedules,
                _ => Namespace::Callables,
            };
            let key = (namespace, declaration.name.as_str());
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
                found = found.with_related(span, "first declared here").with_hint("rename or remove one of them");
            } else {
                let location = project.location(earlier.file, earlier.span);
                found = found.with_hint(format!("it is also declared in {location}; rename or remove one of them"));
            }
            self.report_at(declaration, found);
        }
    }
}

/// Describes a declaration for messages.
fn describe_declaration(noun: &str, pattern: Pattern<'_>) -> String {
    match pattern.name() {
        Some(name) => format!("the {noun} `{name}`"),
        None => format!("this {noun}"),
    }
}

fn label_of(pattern: Pattern<'_>) -> String {
    pattern.labels().next().unwrap_or_default().into_owned()
}
