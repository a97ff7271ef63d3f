//! Which declaration a name refers to.
//!
//! An agent that is declared inside another is visible only there: to the agent that contains it, and to the other agents
//! inside that one. A name refers to the innermost declaration around it, then to one at the top level of a file, and
//! otherwise to the library. Every command resolves names here, so that all of them agree.

use super::project::Project;
use super::{Agent, DeclarationKind};
use patter_gram::{Pattern, PatternKind};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::iter;

/// The path to an agent: the names of the agents that contain it, outermost first, and its own.
///
/// ```
/// use patter_core::declare::Agent;
/// use patter_core::gram::parse;
/// let (tree, _) = parse("[boss:Agent | [helper:Agent]]");
/// let helper = tree.walk().filter_map(Agent::cast).nth(1).unwrap();
/// assert_eq!(helper.path().to_string(), "boss/helper");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentPath(Vec<String>);

impl AgentPath {
    /// Returns whether the agent is inside another.
    pub fn is_nested(&self) -> bool {
        self.0.len() > 1
    }
}

impl fmt::Display for AgentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("/"))
    }
}

impl Agent {
    /// Returns the path to the agent in its file.
    pub fn path(&self) -> AgentPath {
        let names = enclosing(self).into_iter().map(|agent| agent.name().unwrap_or_default().into_owned());
        AgentPath(names.collect())
    }
}

/// The agents around a reference, whose declarations it may refer to.
#[derive(Debug, Clone, Default)]
pub struct Scope<'p> {
    /// The agents, outermost first. The last one has the reference.
    levels: Vec<Level<'p>>,
}

/// An agent of a scope, with the declarations inside it by name.
#[derive(Debug, Clone)]
struct Level<'p> {
    in_place: HashMap<Cow<'p, str>, Vec<Pattern<'p>>>,
}

/// A declaration that a name may refer to.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'p> {
    /// The kind of declaration.
    pub kind: DeclarationKind,
    /// The declaration.
    pub pattern: Pattern<'p>,
    /// The index of its file in [`Project::files`], unless it is inside an agent that is not part of the project.
    pub file: Option<usize>,
}

impl<'p> Scope<'p> {
    /// Returns the scope of the references of an agent.
    pub fn new(agent: &'p Agent) -> Self {
        let mut scope = Self::default();
        enclosing(agent).into_iter().for_each(|agent| scope.push(agent));
        scope.inherit(agent.bases());
        scope
    }

    /// Enters an agent inside the current one.
    pub(crate) fn enter(&mut self, project: &'p Project, agent: Pattern<'p>) {
        self.push(agent);
        self.inherit(project.bases_of(agent));
    }

    fn push(&mut self, agent: Pattern<'p>) {
        self.levels.push(Level { in_place: declarations_in(agent) });
    }

    /// Adds what the agents that the current one extends declare, nearest first. Its own declarations come first.
    pub(super) fn inherit(&mut self, bases: impl IntoIterator<Item = Pattern<'p>>) {
        let Some(level) = self.levels.last_mut() else { return };
        for (name, declarations) in bases.into_iter().flat_map(declarations_in) {
            level.in_place.entry(name).or_insert(declarations);
        }
    }

    /// Leaves the current agent.
    pub(crate) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Returns the declarations with a name in the innermost agent that has any, not counting the `skipped` innermost
    /// agents.
    fn find(&self, name: &str, skipped: usize) -> &[Pattern<'p>] {
        let found = self.levels.iter().rev().skip(skipped).find_map(|level| level.in_place.get(name));
        found.map(Vec::as_slice).unwrap_or_default()
    }
}

impl Project {
    /// Returns the declarations that a reference in a scope refers to: several if it is ambiguous, and none if only the
    /// library can have it.
    ///
    /// ```
    /// use patter_core::declare::{project::Project, scope::Scope};
    /// let text = "[clerk:Agent | helper] [boss:Agent | [helper:Agent]] [helper:Agent]";
    /// let project = Project::read([("a.gram", text)]);
    /// let clerk = project.main_agent(Some("clerk")).unwrap();
    /// let found = project.resolve(&Scope::new(&clerk), "helper");
    /// assert_eq!(found.len(), 1);
    /// assert_eq!(found[0].pattern.span().slice(text), "[helper:Agent]");
    /// assert_eq!(found[0].pattern.span().start, 53, "the helper of `boss` is visible only inside it");
    /// ```
    pub fn resolve<'p>(&'p self, scope: &Scope<'p>, name: &str) -> Vec<Candidate<'p>> {
        self.resolve_outside(scope, name, 0)
    }

    /// Returns what a name refers to outside of the innermost agent of a scope.
    pub(crate) fn resolve_outer<'p>(&'p self, scope: &Scope<'p>, name: &str) -> Vec<Candidate<'p>> {
        self.resolve_outside(scope, name, 1)
    }

    fn resolve_outside<'p>(&'p self, scope: &Scope<'p>, name: &str, skipped: usize) -> Vec<Candidate<'p>> {
        let inner = scope.find(name, skipped);
        if !inner.is_empty() {
            let candidate = |pattern: &Pattern<'p>| {
                let file = self.file_of(*pattern);
                Some(Candidate { kind: callable_kind(*pattern)?, pattern: *pattern, file })
            };
            return inner.iter().filter_map(candidate).collect();
        }
        let found = self.find(name).into_iter().filter_map(|declaration| {
            let pattern = self.pattern(declaration)?;
            Some(Candidate { kind: declaration.kind, pattern, file: Some(declaration.file) })
        });
        found.collect()
    }

    /// Formats the location of a candidate for people: `file:line:column`.
    pub fn location_of(&self, candidate: &Candidate<'_>) -> String {
        match candidate.file {
            Some(file) => self.location(file, candidate.pattern.span()),
            None => "the same agent".to_owned(),
        }
    }
}

/// Returns the declarations inside an agent, by name.
fn declarations_in(agent: Pattern<'_>) -> HashMap<Cow<'_, str>, Vec<Pattern<'_>>> {
    let mut in_place: HashMap<_, Vec<_>> = HashMap::new();
    for element in agent.elements().filter(|element| callable_kind(*element).is_some()) {
        if let Some(name) = element.name().filter(|name| !name.is_empty()) {
            in_place.entry(name).or_default().push(element);
        }
    }
    in_place
}

/// Returns the kind of a declaration that agents can call.
fn callable_kind(pattern: Pattern<'_>) -> Option<DeclarationKind> {
    if pattern.kind() == PatternKind::Reference {
        return None;
    }
    DeclarationKind::from_pattern(pattern)
        .filter(|kind| matches!(kind, DeclarationKind::Agent | DeclarationKind::Tool | DeclarationKind::Implementation))
}

/// Returns the agents that contain an agent, outermost first, and the agent itself.
fn enclosing(agent: &Agent) -> Vec<Pattern<'_>> {
    let own = agent.pattern().map(Pattern::syntax);
    let around = iter::successors(own, |syntax| syntax.parent()).filter_map(Pattern::cast);
    let is_agent = |pattern: &Pattern<'_>| DeclarationKind::from_pattern(*pattern) == Some(DeclarationKind::Agent);
    let mut path: Vec<_> = around.filter(is_agent).collect();
    path.reverse();
    path
}
