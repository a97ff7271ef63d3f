//! What changed between two versions of a project, and what that means.

mod agent;
mod signature;

use crate::declare::project::{Declaration, Project};
use crate::declare::{Agent, Declares, ToolSpec};
use indexmap::IndexMap;
use patter_gram::{LineIndex, Span};

/// A change between two versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What it means.
    pub judgement: Judgement,
    /// What has changed: ``agent `hello` ``, ``tool `sayHello` of agent `hello` ``.
    pub subject: String,
    /// How it has changed, in words.
    pub what: String,
    /// Where it was.
    pub old: Option<Location>,
    /// Where it is now.
    pub new: Option<Location>,
    /// The text before and after, where a text has changed that people want to compare.
    pub texts: Option<(String, String)>,
}

/// What a change means for those who use what has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// Nothing but how it looks.
    Cosmetic,
    /// What worked still works, maybe otherwise.
    Compatible,
    /// What worked may not work any more, or may do what it might not do before.
    Breaking,
}

impl Judgement {
    /// Returns the word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Judgement::Cosmetic => "cosmetic",
            Judgement::Compatible => "compatible",
            Judgement::Breaking => "breaking",
        }
    }
}

/// A place in a file, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1.
    pub column: usize,
}

/// Compares two versions of a project. Changes come in the order of the new version; what is gone comes last.
///
/// ```
/// use patter_core::{diff::{Judgement, diff}, declare::project::Project};
/// let old = Project::read([("t.gram", "[t:Tool {description: 'x'} | (a::Text)==>(::Text)]")]);
/// let new = Project::read([("t.gram", "[t:Tool {description: 'x'} | (a::Text)==>(b::Int)==>(::Text)]")]);
/// let changes = diff(&old, &new);
/// assert_eq!(changes[0].judgement, Judgement::Breaking);
/// assert_eq!(changes[0].what, "takes the new parameter `b`, which is required");
/// ```
pub fn diff(old: &Project, new: &Project) -> Vec<Change> {
    let mut differ = Differ { old, new, changes: Vec::new() };
    let (before, after) = (named(old), named(new));
    for (key, declaration) in &after {
        match before.get(key) {
            Some(earlier) => differ.declaration(earlier, declaration),
            None => differ.added(declaration),
        }
    }
    for (key, declaration) in &before {
        if !after.contains_key(key) {
            differ.removed(declaration);
        }
    }
    if differ.changes.is_empty() {
        differ.layout();
    }
    differ.changes
}

/// Returns the declarations by what they are and how they are called; the first, where a name is given twice.
fn named(project: &Project) -> IndexMap<(Declares, &str), &Declaration> {
    let mut named = IndexMap::new();
    for declaration in project.declarations() {
        named.entry((declaration.declares, declaration.name.as_str())).or_insert(declaration);
    }
    named
}

struct Differ<'p> {
    old: &'p Project,
    new: &'p Project,
    changes: Vec<Change>,
}

/// A subject in both versions: how to call it, and where it stands.
#[derive(Clone)]
struct Subject {
    name: String,
    old: Option<Spot>,
    new: Option<Spot>,
}

/// A place in a version: a file of it, and a span there.
#[derive(Clone, Copy)]
struct Spot {
    file: usize,
    span: Span,
}

impl Spot {
    fn of(declaration: &Declaration) -> Option<Self> {
        Some(Self { file: declaration.file, span: declaration.span })
    }
}

impl Subject {
    /// Returns something inside this one.
    fn inner(&self, noun: &str, name: &str, old: Option<Span>, new: Option<Span>) -> Self {
        let within = |spot: Option<Spot>, span: Option<Span>| Some(Spot { span: span?, ..spot? });
        Self {
            name: format!("{noun} `{name}` of {}", self.name),
            old: within(self.old, old),
            new: within(self.new, new),
        }
    }
}

impl<'p> Differ<'p> {
    fn push(&mut self, subject: &Subject, judgement: Judgement, what: impl Into<String>) {
        self.changes.push(Change {
            judgement,
            subject: subject.name.clone(),
            what: what.into(),
            old: subject.old.and_then(|spot| location(self.old, spot)),
            new: subject.new.and_then(|spot| location(self.new, spot)),
            texts: None,
        });
    }

    fn push_text(&mut self, subject: &Subject, judgement: Judgement, what: &str, old: &str, new: &str) {
        self.push(subject, judgement, what);
        if let Some(last) = self.changes.last_mut() {
            last.texts = Some((old.to_owned(), new.to_owned()));
        }
    }

    fn declaration(&mut self, before: &'p Declaration, after: &'p Declaration) {
        let subject = Subject {
            name: format!("{} `{}`", after.declares.noun(), after.name),
            old: Spot::of(before),
            new: Spot::of(after),
        };
        let (Some(old), Some(new)) = (self.old.pattern(before), self.new.pattern(after)) else { return };
        match after.declares {
            Declares::Agent => {
                if let (Some(old), Some(new)) = (Agent::cast(old), Agent::cast(new)) {
                    self.agent(&subject, &old, &new);
                }
            }
            Declares::Tool | Declares::Implementation => {
                if let (Some(old), Some(new)) = (ToolSpec::cast(old), ToolSpec::cast(new)) {
                    self.tool(&subject, &old, &new);
                }
            }
            Declares::Toolbox => self.toolbox(&subject, old, new),
            Declares::Record => self.record(&subject, &after.name),
            // What they ask of an agent is no part of it.
            Declares::Cases | Declares::Case if old != new => {
                self.push(&subject, Judgement::Compatible, "asks something else");
            }
            Declares::Cases | Declares::Case => {}
        }
    }

    fn added(&mut self, declaration: &Declaration) {
        let subject = Subject {
            name: format!("{} `{}`", declaration.declares.noun(), declaration.name),
            old: None,
            new: Spot::of(declaration),
        };
        self.push(&subject, Judgement::Compatible, "is new");
    }

    fn removed(&mut self, declaration: &Declaration) {
        let subject = Subject {
            name: format!("{} `{}`", declaration.declares.noun(), declaration.name),
            old: Spot::of(declaration),
            new: None,
        };
        let is_used = !matches!(declaration.declares, Declares::Cases | Declares::Case);
        self.push(&subject, if is_used { Judgement::Breaking } else { Judgement::Compatible }, "is gone");
    }

    /// Notes files that say the same in another way.
    fn layout(&mut self) {
        let texts = |project: &Project| -> Vec<String> {
            project.files().iter().map(|file| file.tree.source().to_owned()).collect()
        };
        if texts(self.old) != texts(self.new) {
            let subject = Subject { name: "the text".to_owned(), old: None, new: None };
            self.push(&subject, Judgement::Cosmetic, "is written otherwise, and means the same");
        }
    }
}

fn location(project: &Project, spot: Spot) -> Option<Location> {
    let file = project.files().get(spot.file)?;
    let (line, column) = LineIndex::new(file.tree.source()).line_column(spot.span.start);
    Some(Location { file: file.path.clone(), line, column })
}
