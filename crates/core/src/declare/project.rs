//! Projects: files that are read together.

use crate::declare::scope::Scope;
use crate::declare::{Agent, DeclarationKind, Element, ToolSpec};
use crate::text::nearest;
use crate::types::signature::{Record, Records, TypeReader};
use indexmap::IndexMap;
use patter_gram::{Diagnostic, Dialect, Pattern, Span, Tree, parse_bytes};
use std::collections::HashMap;
use std::sync::OnceLock;
use thiserror::Error;

/// Files that are read together, so that each can use the declarations of the others.
///
/// ```
/// use patter_core::declare::project::Project;
/// let project = Project::read([
///     ("a.gram", "[hi:Agent {instruction: 'Greet.', model: 'demo'} | sayHello]"),
///     ("tools.gram", "[sayHello:Tool {description: 'Greets'} | (name::Text)==>(::Text)]"),
/// ]);
/// assert_eq!(project.agents().count(), 1);
/// assert_eq!(project.find("sayHello").len(), 1);
/// ```
#[derive(Debug, Clone)]
pub struct Project {
    files: Vec<File>,
    declarations: Vec<Declaration>,
    /// The indices of top-level agents and tools, by name.
    callable: IndexMap<String, Vec<usize>>,
    /// The tools of toolboxes, by full name and by name.
    in_toolboxes: IndexMap<String, Vec<Declaration>>,
    records: Records,
    record_findings: Vec<Finding>,
    /// The indices of the files, by where the source of their tree is in memory.
    by_source: HashMap<usize, usize>,
    /// What prevents each file from being run, once somebody asked for it.
    errors: Vec<OnceLock<Vec<Finding>>>,
}

/// An error when selecting an agent in a file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AgentSelectionError {
    /// There are no agents.
    #[error("`{file}` has no agents")]
    None {
        /// The file.
        file: String,
    },
    /// There is no agent with that name.
    #[error("`{file}` has no agent `{name}`")]
    Unknown {
        /// The file.
        file: String,
        /// The name.
        name: String,
        /// The name of a similar agent.
        nearest: Option<String>,
        /// The names of all agents.
        names: Vec<String>,
    },
    /// There are several agents, and no name was given.
    #[error("`{file}` has several agents: {}", list(names))]
    Several {
        /// The file.
        file: String,
        /// Their names.
        names: Vec<String>,
    },
}

impl AgentSelectionError {
    /// Returns a hint on how to fix the error, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            AgentSelectionError::None { .. } => {
                Some("declare one: `[name:Agent { instruction: \"…\", model: \"…\" }]`".to_owned())
            }
            AgentSelectionError::Unknown { nearest: Some(near), .. } => Some(format!("did you mean `{near}`?")),
            AgentSelectionError::Unknown { names, .. } if names.is_empty() => {
                Some("the file declares no agents".to_owned())
            }
            AgentSelectionError::Unknown { names, .. } => Some(format!("its agents are {}", list(names))),
            AgentSelectionError::Several { file, names } => {
                names.first().map(|first| format!("choose one, as in `{file}#{first}`"))
            }
        }
    }
}

/// The maximum number of names in a message.
const MAX_NAMES: usize = 12;

/// Lists names, up to a limit.
fn list(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(MAX_NAMES).map(|name| format!("`{name}`")).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        hidden => format!("{} and {hidden} more", shown.join(", ")),
    }
}

/// A file of a project.
#[derive(Debug, Clone)]
pub struct File {
    /// The path, for people.
    pub path: String,
    /// The parsed content.
    pub tree: Tree,
    /// The diagnostics of the parser.
    pub diagnostics: Vec<Diagnostic>,
}

impl File {
    /// Parses a file in a dialect.
    pub fn read(path: impl Into<String>, content: impl AsRef<[u8]>, dialect: Dialect) -> Self {
        let (tree, diagnostics) = parse_bytes(content.as_ref(), dialect);
        Self { path: path.into(), tree, diagnostics }
    }
}

/// A declaration at the top level of a file, or in a toolbox.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// The index of the file in [`Project::files`].
    pub file: usize,
    /// The kind of declaration.
    pub kind: DeclarationKind,
    /// The name, or an empty string if there is none.
    pub name: String,
    /// The span in the file.
    pub span: Span,
    id: patter_gram::SyntaxId,
}

/// A diagnostic for a file of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The index of the file in [`Project::files`].
    pub file: usize,
    /// The diagnostic.
    pub diagnostic: Diagnostic,
}

impl Project {
    /// Reads files, given as paths and contents, in Patter's dialect of gram.
    pub fn read<N: Into<String>, B: AsRef<[u8]>>(files: impl IntoIterator<Item = (N, B)>) -> Self {
        Self::read_dialect(files, Dialect::Patter)
    }

    /// Reads files in a dialect.
    pub fn read_dialect<N: Into<String>, B: AsRef<[u8]>>(
        files: impl IntoIterator<Item = (N, B)>,
        dialect: Dialect,
    ) -> Self {
        Self::from_files(files.into_iter().map(|(path, content)| File::read(path, content, dialect)).collect())
    }

    /// Creates a project from files that have been parsed.
    pub fn from_files(files: Vec<File>) -> Self {
        let errors = files.iter().map(|_| OnceLock::new()).collect();
        let by_source = files.iter().enumerate().map(|(index, file)| (address(&file.tree), index)).collect();
        let mut project = Self {
            files,
            declarations: Vec::new(),
            callable: IndexMap::new(),
            in_toolboxes: IndexMap::new(),
            records: Records::default(),
            record_findings: Vec::new(),
            by_source,
            errors,
        };
        project.index();
        project.read_records();
        project
    }

    /// Returns the files in the order in which they were given.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Returns what prevents a file from being run. It is found once: all agents of the file need it.
    pub(crate) fn file_errors(&self, file: usize, find: impl FnOnce() -> Vec<Finding>) -> &[Finding] {
        self.errors.get(file).map_or(&[], |errors| errors.get_or_init(find))
    }

    /// Returns the top-level declarations, in order.
    pub fn declarations(&self) -> &[Declaration] {
        &self.declarations
    }

    /// Returns the record types.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Iterates over the top-level agents with their declarations.
    pub fn agents(&self) -> impl Iterator<Item = (&Declaration, Agent)> {
        self.declarations.iter().filter_map(|declaration| Some((declaration, self.agent(self.pattern(declaration)?)?)))
    }

    /// Iterates over the top-level tools with their declarations.
    pub fn tools(&self) -> impl Iterator<Item = (&Declaration, ToolSpec)> {
        let tools = self.declarations.iter().filter(|declaration| declaration.kind == DeclarationKind::Tool);
        tools.filter_map(|declaration| Some((declaration, ToolSpec::cast(self.pattern(declaration)?)?)))
    }

    /// Returns the declarations that a name refers to among the elements of an agent: top-level agents and tools, or
    /// else tools of toolboxes, by full name (`box/tool`) or name.
    pub fn find(&self, name: &str) -> Vec<&Declaration> {
        let found = self.callable.get(name).into_iter().flatten();
        let found: Vec<_> = found.filter_map(|index| self.declarations.get(*index)).collect();
        if found.is_empty() { self.in_toolboxes.get(name).into_iter().flatten().collect() } else { found }
    }

    /// Iterates over the names that the elements of an agent can refer to.
    pub fn callable_names(&self) -> impl Iterator<Item = &str> {
        self.callable.keys().chain(self.in_toolboxes.keys()).map(String::as_str)
    }

    /// Returns the pattern of a declaration.
    pub fn pattern(&self, declaration: &Declaration) -> Option<Pattern<'_>> {
        self.files.get(declaration.file)?.tree.get(declaration.id).and_then(Pattern::cast)
    }

    /// Returns the path of the file that contains an agent.
    pub fn agent_path(&self, agent: &Agent) -> Option<&str> {
        self.files.get(self.agent_file(agent)?).map(|file| file.path.as_str())
    }

    /// Returns the index of the file that a pattern is part of.
    pub(crate) fn file_of(&self, pattern: Pattern<'_>) -> Option<usize> {
        self.by_source.get(&address(pattern.syntax().tree())).copied()
    }

    /// Formats a location for people: `file:line:column`.
    pub fn location(&self, file: usize, span: Span) -> String {
        let Some(file) = self.files.get(file) else { return String::new() };
        let (line, column) = file.tree.line_index().line_column(span.start);
        format!("{}:{line}:{column}", file.path)
    }

    /// Finds an agent at the top level of a file. If there are several with that name, the first one counts.
    pub fn find_agent(&self, name: &str) -> Option<Agent> {
        let indices = self.callable.get(name).into_iter().flatten();
        let declarations = indices.filter_map(|index| self.declarations.get(*index));
        declarations.filter_map(|declaration| self.pattern(declaration)).find_map(|pattern| self.agent(pattern))
    }

    /// Returns the index of the file that contains an agent, at the top level or inside another agent.
    pub fn agent_file(&self, agent: &Agent) -> Option<usize> {
        let pattern = agent.pattern()?;
        let is_equal = |file: &File| file.tree.walk().any(|other| other == pattern);
        // An agent that was read separately is in the file that has an equal one.
        self.file_of(pattern).or_else(|| self.files.iter().position(is_equal))
    }

    /// Selects an agent of the first file: by name, or the agent that no other agent in the file calls.
    ///
    /// ```
    /// use patter_core::declare::project::Project;
    /// let project = Project::read([("a.gram", "[desk:Agent | press] [press:Agent | print]")]);
    /// assert_eq!(project.main_agent(None).unwrap().name().unwrap(), "desk");
    /// let error = project.main_agent(Some("pres")).unwrap_err();
    /// assert_eq!(error.to_string(), "`a.gram` has no agent `pres`");
    /// assert_eq!(error.hint().unwrap(), "did you mean `press`?");
    /// ```
    pub fn main_agent(&self, name: Option<&str>) -> Result<Agent, AgentSelectionError> {
        let agents: Vec<_> = self.agents().filter(|(declaration, _)| declaration.file == 0).collect();
        let file = self.files.first().map(|file| file.path.clone()).unwrap_or_default();
        let names = || agents.iter().map(|(declaration, _)| declaration.name.as_str());
        let called: Vec<_> = agents.iter().flat_map(|(_, agent)| self.agents_called_from(agent)).collect();
        let is_called = |agent: &Agent| called.contains(&agent.span());
        let is_selected = |agent: &&Agent| match name {
            Some(name) => agent.name().as_deref() == Some(name),
            None => agents.len() == 1 || !is_called(agent),
        };
        let mut found = agents.iter().map(|(_, agent)| agent).filter(is_selected);
        match (found.next(), found.next(), name) {
            (Some(agent), None, _) => Ok(agent.clone()),
            (None, _, Some(name)) => {
                let nearest = nearest(name, names()).map(str::to_owned);
                let names = names().map(str::to_owned).collect();
                Err(AgentSelectionError::Unknown { file, name: name.to_owned(), nearest, names })
            }
            (None, _, None) if agents.is_empty() => Err(AgentSelectionError::None { file }),
            // Agents that call each other in a circle are all called.
            (None, _, None) | (Some(_), Some(_), _) => {
                Err(AgentSelectionError::Several { file, names: names().map(str::to_owned).collect() })
            }
        }
    }

    /// Returns the spans of the agents in the first file that an agent of that file, or one inside it, calls by reference.
    fn agents_called_from(&self, agent: &Agent) -> Vec<Span> {
        let inside = agent.pattern().into_iter().flat_map(Pattern::walk).filter_map(|pattern| self.agent(pattern));
        let mut called = Vec::new();
        for caller in inside {
            let scope = Scope::new(&caller);
            for member in self.members(&caller) {
                let Some(Element::Reference { name, .. }) = Element::cast(member.pattern) else { continue };
                let found = self.resolve(&scope, &name);
                let found = found.iter().filter(|found| found.file == Some(0) && found.pattern.span() != agent.span());
                called.extend(found.map(|found| found.pattern.span()));
            }
        }
        called
    }

    /// Returns the diagnostics for the record types.
    pub(crate) fn record_findings(&self) -> &[Finding] {
        &self.record_findings
    }

    fn index(&mut self) {
        for (file, source) in self.files.iter().enumerate() {
            for pattern in source.tree.patterns() {
                let Some(kind) = DeclarationKind::from_pattern(pattern) else { continue };
                let name = pattern.name().unwrap_or_default().into_owned();
                let is_callable = matches!(
                    kind,
                    DeclarationKind::Agent
                        | DeclarationKind::Tool
                        | DeclarationKind::Implementation
                        | DeclarationKind::Toolkit
                );
                if is_callable && !name.is_empty() {
                    self.callable.entry(name.clone()).or_default().push(self.declarations.len());
                }
                let id = pattern.syntax().id();
                for tool in pattern.elements().filter(|_| kind == DeclarationKind::Toolbox) {
                    let (Some(kind), Some(own)) = (DeclarationKind::from_pattern(tool), tool.name()) else { continue };
                    let full = format!("{name}/{own}");
                    let id = tool.syntax().id();
                    let declaration = Declaration { file, kind, name: full.clone(), span: tool.span(), id };
                    self.in_toolboxes.entry(full).or_default().push(declaration.clone());
                    self.in_toolboxes.entry(own.into_owned()).or_default().push(declaration);
                }
                self.declarations.push(Declaration { file, kind, name, span: pattern.span(), id });
            }
        }
    }

    /// Reads the record types. All names are collected first, because record types may refer to each other.
    fn read_records(&mut self) {
        let names: std::collections::HashSet<_> = self
            .declarations
            .iter()
            .filter(|declaration| declaration.kind == DeclarationKind::Record)
            .map(|declaration| declaration.name.clone())
            .collect();
        let mut records = Records::default();
        let mut findings = Vec::new();
        for declaration in self.declarations.iter().filter(|declaration| declaration.kind == DeclarationKind::Record) {
            let Some(pattern) = self.pattern(declaration) else { continue };
            let (record, found) = read_record(pattern, &|name| names.contains(name));
            let file = declaration.file;
            findings.extend(found.into_iter().map(|diagnostic| Finding { file, diagnostic }));
            if !declaration.name.is_empty() && records.get(&declaration.name).is_none() {
                records.insert(declaration.name.clone(), record);
            }
        }
        self.records = records;
        self.record_findings = findings;
    }
}

/// Returns where the source of a tree is in memory, which all clones of the tree share.
fn address(tree: &Tree) -> usize {
    tree.source().as_ptr().addr()
}

fn read_record(pattern: Pattern<'_>, is_record: &dyn Fn(&str) -> bool) -> (Record, Vec<Diagnostic>) {
    let mut reader = TypeReader::new(is_record);
    let record = reader.record(pattern);
    (record, reader.diagnostics)
}
