//! Agents that extend others.
//!
//! An agent with `extends` has everything that its base has: properties that it does not set itself, and the elements of the
//! base beside its own. Permission rules add up, so an agent cannot drop a rule of its base. Nothing is copied: everything is
//! read from the patterns of both.

use super::project::Project;
use super::workflow::is_workflow;
use super::{Agent, DeclarationKind};
use patter_gram::{Pattern, Property, Span, Syntax};
use std::borrow::Cow;
use std::collections::HashSet;

/// The property that names the agent that an agent extends.
pub(crate) const EXTENDS: &str = "extends";

/// How many agents an agent can extend, one through the other.
pub const MAX_BASES: usize = 8;

/// Returns the name of the agent that an agent extends, as it is written.
pub(crate) fn base_name(agent: Pattern<'_>) -> Option<Cow<'_, str>> {
    agent.get(EXTENDS).and_then(Syntax::read_text).filter(|_| !is_workflow(agent))
}

/// Returns where an agent says what it extends, or else where it is.
pub(crate) fn extends_span(agent: Pattern<'_>) -> Span {
    agent.get(EXTENDS).map_or(agent.span(), Syntax::span)
}

impl Agent {
    /// Iterates over the agents that it extends, nearest first. An agent that was not found with its project has none.
    ///
    /// ```
    /// use patter_core::declare::project::Project;
    /// let text = "[desk:Agent {instruction: 'Help.', model: 'demo'} | mail] [night:Agent {extends: 'desk'} | wake]";
    /// let project = Project::read([("a.gram", text)]);
    /// let night = project.find_agent("night").unwrap();
    /// assert_eq!(night.instruction().unwrap(), "Help.");
    /// assert_eq!(night.bases().next().unwrap().name().unwrap(), "desk");
    /// let names: Vec<_> = project.members(&night).iter().filter_map(|member| member.name()).collect();
    /// assert_eq!(names, ["wake", "mail"]);
    /// ```
    pub fn bases(&self) -> impl Iterator<Item = Pattern<'_>> {
        self.pattern.bases()
    }

    /// Returns the name of the agent that a property is inherited from, if the agent does not have it itself.
    pub fn inherited_from(&self, key: &str) -> Option<Cow<'_, str>> {
        if self.pattern().is_some_and(|pattern| pattern.get(key).is_some()) {
            return None;
        }
        self.bases().find(|base| base.get(key).is_some())?.name()
    }

    /// Returns the value of a property, its own or an inherited one.
    pub(crate) fn property(&self, key: &str) -> Option<Syntax<'_>> {
        self.pattern.property(key)
    }

    /// Returns all properties: its own, and those that it inherits.
    pub(crate) fn properties(&self) -> Vec<Property<'_>> {
        let mut seen = HashSet::new();
        let own = self.pattern().into_iter().flat_map(Pattern::properties);
        let inherited = self.bases().flat_map(Pattern::properties).filter(|property| property.key() != EXTENDS);
        own.chain(inherited).filter(|property| seen.insert(property.key())).collect()
    }
}

impl Project {
    /// Views a pattern as an agent, together with the agents that it extends.
    pub fn agent(&self, pattern: Pattern<'_>) -> Option<Agent> {
        Agent::cast(pattern).map(|agent| self.complete(agent))
    }

    /// Returns an agent with what other declarations say about it: the agents that it extends, and the tools that a pipe
    /// starts and ends with.
    #[must_use]
    pub fn complete(&self, agent: Agent) -> Agent {
        let bases = agent.pattern().map_or_else(Vec::new, |pattern| self.bases_of(pattern));
        let signature = self.pipe_signature(&agent);
        let agent = agent.extending(bases);
        if let Some(signature) = signature { agent.with_signature(signature) } else { agent }
    }

    /// Returns the agents that an agent extends, nearest first: the name of each, and where it is, for people.
    pub fn base_locations(&self, agent: &Agent) -> Vec<(String, String)> {
        let bases = agent.bases().map(|base| {
            let file = self.file_of(base).unwrap_or_default();
            (base.name().unwrap_or_default().into_owned(), self.location(file, base.span()))
        });
        bases.collect()
    }

    /// Iterates over all agents, also those inside of others, each with the index of its file.
    pub fn all_agents(&self) -> impl Iterator<Item = (usize, Agent)> {
        let files = self.files().iter().enumerate();
        files.flat_map(|(file, source)| {
            source.tree.walk().filter_map(|pattern| self.agent(pattern)).map(move |agent| (file, agent))
        })
    }

    /// Returns the agents that an agent extends, nearest first. The list ends before an agent that is not known, one that
    /// was there before, and after [`MAX_BASES`] agents; the check reports all of these.
    pub(crate) fn bases_of<'p>(&'p self, agent: Pattern<'_>) -> Vec<Pattern<'p>> {
        let mut bases: Vec<Pattern<'p>> = Vec::new();
        let id = |pattern: Pattern<'_>| (self.file_of(pattern), pattern.syntax().id());
        let own = id(agent);
        let mut next = self.base_of(agent);
        while let Some(base) = next {
            let is_known = id(base) == own || bases.iter().any(|other| id(*other) == id(base));
            if is_known || bases.len() == MAX_BASES {
                break;
            }
            bases.push(base);
            next = self.base_of(base);
        }
        bases
    }

    /// Returns the agent that an agent names as its base, if there is exactly one at the top level of a file.
    pub(crate) fn base_of<'p>(&'p self, agent: Pattern<'_>) -> Option<Pattern<'p>> {
        let name = base_name(agent)?;
        match self.find(&name).as_slice() {
            [one] if one.kind == DeclarationKind::Agent => self.pattern(one).filter(|base| !is_workflow(*base)),
            _ => None,
        }
    }
}
