//! Toolkits: named sets of tools, which agents and permission rules refer to by one name.

use super::extend::extends_span;
use super::project::{Declaration, Project};
use super::scope::Scope;
use super::workflow::{callable_elements, callee};
use super::{Agent, DeclarationKind, Element, OwnedPattern};
use indexmap::IndexSet;
use patter_gram::{Pattern, PatternKind, Span};
use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// A named set of tools.
///
/// ```
/// use patter_core::{declare::Toolkit, gram::parse};
/// let (tree, _) = parse("[editing:Toolkit { description: 'Changes files' } | `fs/readFile`, `fs/writeFile`]");
/// let toolkit = Toolkit::cast(tree.patterns().next().unwrap()).unwrap();
/// assert_eq!(toolkit.name().as_deref(), Some("editing"));
/// assert_eq!(toolkit.elements().count(), 2);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Toolkit {
    pattern: OwnedPattern,
}

declaration!(Toolkit);

impl Toolkit {
    /// Views a pattern as a toolkit, if it has the right label.
    pub fn cast(pattern: Pattern<'_>) -> Option<Self> {
        (DeclarationKind::from_pattern(pattern) == Some(DeclarationKind::Toolkit))
            .then(|| Self { pattern: OwnedPattern::new(pattern) })
    }

    /// Iterates over its tools and the toolkits that it includes, in order.
    pub fn elements(&self) -> impl Iterator<Item = Element> {
        let elements: Vec<_> =
            self.pattern().into_iter().flat_map(callable_elements).filter_map(Element::cast).collect();
        elements.into_iter()
    }
}

/// Something that an agent may call: an element of the agent, or of a toolkit among its elements.
#[derive(Debug, Clone, Copy)]
pub struct Member<'p> {
    /// The element.
    pub pattern: Pattern<'p>,
    /// The element of the agent that refers to the toolkit.
    pub toolkit: Option<Pattern<'p>>,
    /// The agent that has the element, if the agent inherits it.
    pub base: Option<Pattern<'p>>,
}

impl<'p> Member<'p> {
    /// Returns the element of the agent: the member itself, or the reference to its toolkit.
    pub fn element(&self) -> Pattern<'p> {
        self.toolkit.unwrap_or(self.pattern)
    }

    /// Returns where an agent says that it has the member: its element, or `extends` if it inherits the member.
    pub fn span(&self, agent: Pattern<'_>) -> Span {
        if self.base.is_some() { extends_span(agent) } else { self.element().span() }
    }

    /// Returns the name of the agent that it is inherited from.
    pub fn base_name(&self) -> Option<Cow<'p, str>> {
        self.base.and_then(Pattern::name)
    }

    /// Returns the name under which the agent calls it.
    pub fn name(&self) -> Option<Cow<'p, str>> {
        if self.pattern.kind() == PatternKind::Node { callee(self.pattern) } else { self.pattern.name() }
    }

    /// Returns the name of the toolkit.
    pub fn toolkit_name(&self) -> Option<Cow<'p, str>> {
        self.toolkit.and_then(Pattern::name)
    }
}

impl Project {
    /// Returns everything that an agent may call, with toolkits replaced by their tools: its own elements, and those of the
    /// agents that it extends. A tool that is there more than once because of toolkits is returned once, and so is one that
    /// the agent and its base have.
    ///
    /// ```
    /// use patter_core::declare::project::Project;
    /// let text = "[a:Agent | look, edit, find] [look:Toolkit | find, list] [edit:Toolkit | look, write]";
    /// let project = Project::read([("a.gram", text)]);
    /// let agent = project.main_agent(None).unwrap();
    /// let names: Vec<_> = project.members(&agent).iter().filter_map(|member| member.pattern.name()).collect();
    /// assert_eq!(names, ["find", "list", "write"]);
    /// ```
    pub fn members<'p>(&'p self, agent: &'p Agent) -> Vec<Member<'p>> {
        let Some(pattern) = agent.pattern() else { return Vec::new() };
        let mut scope = Scope::new(agent);
        scope.inherit(self.bases_of(pattern));
        self.members_in(&scope, pattern)
    }

    /// Formats the location of a member for people: `file:line:column`.
    pub fn member_location(&self, member: &Member<'_>) -> String {
        self.location(self.file_of(member.pattern).unwrap_or_default(), member.pattern.span())
    }

    /// Returns everything that the innermost agent of a scope may call.
    pub(crate) fn members_in<'p>(&'p self, scope: &Scope<'p>, agent: Pattern<'p>) -> Vec<Member<'p>> {
        let mut members: Vec<Member<'p>> = Vec::new();
        let mut by_name: HashMap<Cow<'p, str>, usize> = HashMap::new();
        for member in self.members_of(scope, agent, None) {
            let name = member.name().unwrap_or_default();
            let earlier = by_name.get(&name).and_then(|index| members.get(*index));
            // Only toolkits may overlap: a tool that the agent itself has twice is a mistake.
            let is_from_toolkit = |earlier: &Member<'p>| earlier.toolkit.or(member.toolkit).is_some();
            if earlier.is_some_and(|earlier| is_from_toolkit(earlier) && earlier.pattern == member.pattern) {
                continue;
            }
            by_name.entry(name).or_insert(members.len());
            members.push(member);
        }
        // The check reports inherited tools that differ from those of the agent.
        for base in self.bases_of(agent) {
            for member in self.members_of(scope, base, Some(base)) {
                if let Entry::Vacant(place) = by_name.entry(member.name().unwrap_or_default()) {
                    place.insert(members.len());
                    members.push(member);
                }
            }
        }
        members
    }

    /// Returns what the elements of one agent are, with toolkits replaced by their tools. The scope is that of the agent that
    /// has them, or of one that inherits them from `base`.
    pub(crate) fn members_of<'p>(
        &'p self,
        scope: &Scope<'p>,
        agent: Pattern<'p>,
        base: Option<Pattern<'p>>,
    ) -> Vec<Member<'p>> {
        let mut members = Vec::new();
        for element in callable_elements(agent).into_iter().filter(|element| Element::can_cast(*element)) {
            let found = match element.kind() {
                PatternKind::Reference => self.resolve(scope, &element.name().unwrap_or_default()),
                _ => Vec::new(),
            };
            match found.as_slice() {
                [one] if one.kind == DeclarationKind::Toolkit => {
                    let tools = self.tools_of(one.pattern);
                    members.extend(tools.into_iter().map(|pattern| Member { pattern, toolkit: Some(element), base }));
                }
                _ => members.push(Member { pattern: element, toolkit: None, base }),
            }
        }
        members
    }

    /// Returns the tools of a toolkit, and of the toolkits that it includes. A toolkit that includes itself adds nothing.
    pub(crate) fn tools_of<'p>(&'p self, toolkit: Pattern<'p>) -> Vec<Pattern<'p>> {
        let mut seen = HashSet::new();
        let mut open = vec![toolkit];
        let mut tools = Vec::new();
        while let Some(pattern) = open.pop() {
            let is_toolkit = DeclarationKind::from_pattern(pattern) == Some(DeclarationKind::Toolkit);
            if is_toolkit {
                if seen.insert((self.file_of(pattern), pattern.syntax().id())) {
                    let elements: Vec<_> = pattern.elements().collect();
                    open.extend(elements.into_iter().rev());
                }
                continue;
            }
            match self.included_toolkit(pattern) {
                Some(inner) => open.push(inner),
                None if pattern.kind() != PatternKind::Node && Element::can_cast(pattern) => tools.push(pattern),
                None => {}
            }
        }
        tools
    }

    /// Returns the toolkit that an element of a toolkit refers to.
    pub(crate) fn included_toolkit(&self, element: Pattern<'_>) -> Option<Pattern<'_>> {
        let name = element.name().filter(|_| element.kind() == PatternKind::Reference)?;
        match self.find(&name).as_slice() {
            [one] if one.kind == DeclarationKind::Toolkit => self.pattern(one),
            _ => None,
        }
    }

    /// Returns the declarations of the toolkits that an agent has, and of those that they include.
    pub(crate) fn toolkits_of(&self, agent: &Agent) -> Vec<&Declaration> {
        let mut open: Vec<_> =
            self.members(agent).iter().filter_map(Member::toolkit_name).map(Cow::into_owned).collect();
        let mut found: Vec<&Declaration> = Vec::new();
        while let Some(name) = open.pop() {
            let Some((declaration, toolkit)) = self.toolkits().find(|(toolkit, _)| toolkit.name == name) else {
                continue;
            };
            if !found.iter().any(|other| other.name == declaration.name) {
                found.push(declaration);
                open.extend(toolkit.elements().filter_map(|element| element.name().map(Cow::into_owned)));
            }
        }
        found.sort_by_key(|declaration| (declaration.file, declaration.span.start));
        found
    }

    /// Iterates over the toolkits, each with its declaration.
    pub fn toolkits(&self) -> impl Iterator<Item = (&Declaration, Toolkit)> {
        let toolkits = self.declarations().iter().filter(|one| one.kind == DeclarationKind::Toolkit);
        toolkits.filter_map(|declaration| Some((declaration, Toolkit::cast(self.pattern(declaration)?)?)))
    }

    /// Returns the names of the tools of a toolkit, and of the toolkits that it includes.
    pub fn toolkit_tools(&self, toolkit: &Toolkit) -> Vec<String> {
        let tools = toolkit.pattern().into_iter().flat_map(|pattern| self.tools_of(pattern));
        let names: IndexSet<_> = tools.filter_map(Pattern::name).map(Cow::into_owned).collect();
        names.into_iter().collect()
    }
}
