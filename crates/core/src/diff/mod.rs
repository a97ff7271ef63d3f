//! Comparison of two versions of a project, with a judgement of each change.

mod signature;
mod permission;
mod tool;
mod agent;
mod toolkit;

pub use permission::diff_rules;

use crate::declare::project::{Declaration, Project};
use crate::declare::{DeclarationKind, ToolSpec, Toolkit};
use indexmap::IndexMap;
use patter_gram::{LineIndex, Span};
use std::fmt;

/// A change between two versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What the change means for users.
    pub judgement: Judgement,
    /// The thing that changed: ``agent `hello` ``, ``tool `sayHello` of agent `hello` ``.
    pub subject: String,
    /// A description of the change, such as ``parameter `b` removed``.
    pub description: String,
    /// The location in the old version.
    pub old: Option<ChangeLocation>,
    /// The location in the new version.
    pub new: Option<ChangeLocation>,
    /// The old and the new text, if the change is one of text that people want to compare.
    pub texts: Option<(String, String)>,
}

/// What a change means for users, from the least to the most severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// Only the layout changed.
    Cosmetic,
    /// Existing uses still work, though possibly with different results.
    Compatible,
    /// Existing uses may no longer work, or something may happen that could not happen before.
    Breaking,
}

impl Judgement {
    /// Returns the name of the judgement.
    pub const fn name(self) -> &'static str {
        match self {
            Judgement::Cosmetic => "cosmetic",
            Judgement::Compatible => "compatible",
            Judgement::Breaking => "breaking",
        }
    }
}

/// Formats the subject and the description.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.description)
    }
}

/// A location in a file, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeLocation {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

/// Compares two versions of a project. Changes are in the order of the new version; removed declarations come last.
///
/// ```
/// use patter_core::{diff::{Judgement, diff}, declare::project::Project};
/// let old = Project::read([("t.gram", "[t:Tool {description: 'x'} | (a::Text)==>(::Text)]")]);
/// let new = Project::read([("t.gram", "[t:Tool {description: 'x'} | (a::Text)==>(b::Int)==>(::Text)]")]);
/// let changes = diff(&old, &new);
/// assert_eq!(changes[0].judgement, Judgement::Breaking);
/// assert_eq!(changes[0].to_string(), "tool `t`: required parameter `b` added");
/// ```
pub fn diff(old: &Project, new: &Project) -> Vec<Change> {
    let mut differ = Differ { old, new, changes: Vec::new() };
    let before = declarations_by_name(old);
    let after = declarations_by_name(new);
    for (key, declaration) in &after {
        match before.get(key) {
            Some(earlier) => differ.compare_declarations(earlier, declaration),
            None => differ.report_added(declaration),
        }
    }
    for (key, declaration) in &before {
        if !after.contains_key(key) {
            differ.report_removed(declaration);
        }
    }
    if differ.changes.is_empty() {
        differ.report_layout_change();
    }
    differ.changes
}

/// Returns the declarations by kind and name. Of declarations with the same name, the first one counts.
fn declarations_by_name(project: &Project) -> IndexMap<(DeclarationKind, &str), &Declaration> {
    let mut by_name = IndexMap::new();
    for declaration in project.declarations() {
        by_name.entry((declaration.kind, declaration.name.as_str())).or_insert(declaration);
    }
    by_name
}

struct Differ<'p> {
    old: &'p Project,
    new: &'p Project,
    changes: Vec<Change>,
}

/// The subject of a change: its name, and its locations in both versions.
#[derive(Clone)]
struct Subject {
    name: String,
    old: Option<FileSpan>,
    new: Option<FileSpan>,
}

/// A span in a file of a version.
#[derive(Clone, Copy)]
struct FileSpan {
    file: usize,
    span: Span,
}

impl FileSpan {
    fn new(declaration: &Declaration) -> Option<Self> {
        Some(Self { file: declaration.file, span: declaration.span })
    }
}

impl Subject {
    /// Returns a subject inside this one.
    fn inner(&self, noun: &str, name: &str, old: Option<Span>, new: Option<Span>) -> Self {
        let within = |place: Option<FileSpan>, span: Option<Span>| Some(FileSpan { span: span?, ..place? });
        Self {
            name: format!("{noun} `{name}` of {}", self.name),
            old: within(self.old, old),
            new: within(self.new, new),
        }
    }
}

impl<'p> Differ<'p> {
    fn push(&mut self, subject: &Subject, judgement: Judgement, description: impl Into<String>) {
        self.changes.push(Change {
            judgement,
            subject: subject.name.clone(),
            description: description.into(),
            old: subject.old.and_then(|place| location(self.old, place)),
            new: subject.new.and_then(|place| location(self.new, place)),
            texts: None,
        });
    }

    fn push_text(&mut self, subject: &Subject, judgement: Judgement, description: &str, old: &str, new: &str) {
        self.push(subject, judgement, description);
        if let Some(last) = self.changes.last_mut() {
            last.texts = Some((old.to_owned(), new.to_owned()));
        }
    }

    fn compare_declarations(&mut self, before: &'p Declaration, after: &'p Declaration) {
        let subject = Subject {
            name: format!("{} `{}`", after.kind.noun(), after.name),
            old: FileSpan::new(before),
            new: FileSpan::new(after),
        };
        let (Some(old), Some(new)) = (self.old.pattern(before), self.new.pattern(after)) else { return };
        match after.kind {
            DeclarationKind::Agent => {
                if let (Some(old), Some(new)) = (self.old.agent(old), self.new.agent(new)) {
                    self.compare_agents(&subject, &old, &new);
                }
            }
            DeclarationKind::Tool | DeclarationKind::Implementation => {
                if let (Some(old), Some(new)) = (ToolSpec::cast(old), ToolSpec::cast(new)) {
                    self.compare_tools(&subject, &old, &new);
                }
            }
            DeclarationKind::Toolbox => self.compare_toolboxes(&subject, old, new),
            DeclarationKind::Toolkit => {
                if let (Some(old), Some(new)) = (Toolkit::cast(old), Toolkit::cast(new)) {
                    self.compare_toolkits(&subject, &old, &new);
                }
            }
            DeclarationKind::Record => self.compare_records(&subject, &after.name),
            // Cases are not part of the agent that they test.
            DeclarationKind::Cases | DeclarationKind::Case if old != new => {
                self.push(&subject, Judgement::Compatible, "changed");
            }
            DeclarationKind::Cases | DeclarationKind::Case => {}
            // A policy that forbids something else may permit what was forbidden.
            DeclarationKind::Policy | DeclarationKind::Policies if old != new => {
                let is_same = |key: &str| {
                    let values =
                        |pattern: patter_gram::Pattern<'_>| pattern.walk().map(|it| it.value(key)).collect::<Vec<_>>();
                    values(old) == values(new)
                };
                let is_harmless = ["forbid", "level", "sealed"].into_iter().all(is_same);
                let judgement = if is_harmless { Judgement::Compatible } else { Judgement::Breaking };
                self.push(&subject, judgement, "changed");
            }
            DeclarationKind::Policy | DeclarationKind::Policies => {}
            // Nobody calls a schedule.
            DeclarationKind::Schedule if old != new => self.push(&subject, Judgement::Compatible, "changed"),
            DeclarationKind::Schedule => {}
        }
    }

    fn report_added(&mut self, declaration: &Declaration) {
        let subject = Subject {
            name: format!("{} `{}`", declaration.kind.noun(), declaration.name),
            old: None,
            new: FileSpan::new(declaration),
        };
        match self.new.pattern(declaration) {
            Some(toolbox) if declaration.kind == DeclarationKind::Toolbox => {
                self.report_added_toolbox(&subject, toolbox);
            }
            _ => self.push(&subject, Judgement::Compatible, "added"),
        }
    }

    fn report_removed(&mut self, declaration: &Declaration) {
        let subject = Subject {
            name: format!("{} `{}`", declaration.kind.noun(), declaration.name),
            old: FileSpan::new(declaration),
            new: None,
        };
        // What uses a record type is compared by the fields, whatever their type is called.
        let is_used =
            !matches!(declaration.kind, DeclarationKind::Cases | DeclarationKind::Case | DeclarationKind::Record);
        self.push(&subject, if is_used { Judgement::Breaking } else { Judgement::Compatible }, "removed");
    }

    /// Reports files that differ only in layout.
    fn report_layout_change(&mut self) {
        let texts = |project: &Project| -> Vec<String> {
            project.files().iter().map(|file| file.tree.source().to_owned()).collect()
        };
        if texts(self.old) != texts(self.new) {
            let subject = Subject { name: "files".to_owned(), old: None, new: None };
            self.push(&subject, Judgement::Cosmetic, "only the formatting changed");
        }
    }
}

fn location(project: &Project, place: FileSpan) -> Option<ChangeLocation> {
    let file = project.files().get(place.file)?;
    let (line, column) = LineIndex::new(file.tree.source()).line_column(place.span.start);
    Some(ChangeLocation { file: file.path.clone(), line, column })
}
