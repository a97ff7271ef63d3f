//! A project: the files of a team, read together.

use crate::declare::{Agent, Declares, ToolSpec};
use crate::text::nearest;
use crate::types::signature::{Reader, Record, Records};
use indexmap::IndexMap;
use patter_gram::{Diagnostic, Dialect, Pattern, Span, Tree, parse_bytes};
use thiserror::Error;

/// Files that are read together: what one declares, the others may use.
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
    /// Agents and tools at the top level, by name.
    callable: IndexMap<String, Vec<usize>>,
    /// Tools of toolboxes, by their full names and by their own.
    in_toolboxes: IndexMap<String, Vec<Declaration>>,
    records: Records,
    record_findings: Vec<Finding>,
}

/// Why it is not clear which agent of a file is meant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChoiceError {
    /// There is none.
    #[error("`{file}` has no agents")]
    None {
        /// The file.
        file: String,
    },
    /// There is none of the name.
    #[error("`{file}` has no agent `{name}`")]
    Unknown {
        /// The file.
        file: String,
        /// The name.
        name: String,
        /// One of a name that is much like it.
        nearest: Option<String>,
    },
    /// There are several.
    #[error("`{file}` has several agents: {}", names.join(", "))]
    Several {
        /// The file.
        file: String,
        /// Their names.
        names: Vec<String>,
    },
}

impl ChoiceError {
    /// Returns what to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            ChoiceError::None { .. } => None,
            ChoiceError::Unknown { nearest, .. } => nearest.as_ref().map(|near| format!("did you mean `{near}`?")),
            ChoiceError::Several { file, names } => {
                names.first().map(|first| format!("name one, as in `{file}#{first}`"))
            }
        }
    }
}

/// A file of a project.
#[derive(Debug, Clone)]
pub struct File {
    /// How people call it.
    pub path: String,
    /// What it says.
    pub tree: Tree,
    /// What is wrong with it as gram.
    pub diagnostics: Vec<Diagnostic>,
}

/// A declaration at the top level of a file.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// The file, by its place in [`Project::files`].
    pub file: usize,
    /// What is declared.
    pub declares: Declares,
    /// Its name; empty where there is none.
    pub name: String,
    /// Where it stands.
    pub span: Span,
    id: patter_gram::SyntaxId,
}

/// Something that is wrong in a file of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, by its place in [`Project::files`].
    pub file: usize,
    /// What is wrong.
    pub diagnostic: Diagnostic,
}

impl Project {
    /// Reads files, given by name and content, in Patter's gram.
    pub fn read<N: Into<String>, B: AsRef<[u8]>>(files: impl IntoIterator<Item = (N, B)>) -> Self {
        Self::read_dialect(files, Dialect::Patter)
    }

    /// Reads files in a dialect.
    pub fn read_dialect<N: Into<String>, B: AsRef<[u8]>>(
        files: impl IntoIterator<Item = (N, B)>,
        dialect: Dialect,
    ) -> Self {
        let files = files.into_iter().map(|(path, content)| {
            let (tree, diagnostics) = parse_bytes(content.as_ref(), dialect);
            File { path: path.into(), tree, diagnostics }
        });
        let mut project = Self {
            files: files.collect(),
            declarations: Vec::new(),
            callable: IndexMap::new(),
            in_toolboxes: IndexMap::new(),
            records: Records::default(),
            record_findings: Vec::new(),
        };
        project.index();
        project.read_records();
        project
    }

    /// Returns the files, in the order in which they were given.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Returns everything that is declared at the top level, in order.
    pub fn declarations(&self) -> &[Declaration] {
        &self.declarations
    }

    /// Returns the record types.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Iterates over the agents at the top level, with their declarations.
    pub fn agents(&self) -> impl Iterator<Item = (&Declaration, Agent)> {
        self.declarations.iter().filter_map(|declaration| Some((declaration, Agent::cast(self.pattern(declaration)?)?)))
    }

    /// Iterates over the tools at the top level, with their declarations.
    pub fn tools(&self) -> impl Iterator<Item = (&Declaration, ToolSpec)> {
        let tools = self.declarations.iter().filter(|declaration| declaration.declares == Declares::Tool);
        tools.filter_map(|declaration| Some((declaration, ToolSpec::cast(self.pattern(declaration)?)?)))
    }

    /// Returns what a name stands for among the elements of an agent: agents and tools at the top level, else tools of
    /// toolboxes, by their full names (`box/tool`) or their own.
    pub fn find(&self, name: &str) -> Vec<&Declaration> {
        let found = self.callable.get(name).into_iter().flatten();
        let found: Vec<_> = found.filter_map(|index| self.declarations.get(*index)).collect();
        if found.is_empty() { self.in_toolboxes.get(name).into_iter().flatten().collect() } else { found }
    }

    /// Iterates over the names that stand for something among the elements of an agent.
    pub fn callable_names(&self) -> impl Iterator<Item = &str> {
        self.callable.keys().chain(self.in_toolboxes.keys()).map(String::as_str)
    }

    /// Returns the pattern of a declaration.
    pub fn pattern(&self, declaration: &Declaration) -> Option<Pattern<'_>> {
        self.files.get(declaration.file)?.tree.get(declaration.id).and_then(Pattern::cast)
    }

    /// Returns how people call the file that an agent stands at the top level of.
    pub fn file_of(&self, agent: &Agent) -> Option<&str> {
        let (declaration, _) = self.agents().find(|(_, other)| other == agent)?;
        self.files.get(declaration.file).map(|file| file.path.as_str())
    }

    /// Names a place for people: `file:line:column`.
    pub fn place(&self, file: usize, span: Span) -> String {
        let Some(file) = self.files.get(file) else { return String::new() };
        let (line, column) = patter_gram::LineIndex::new(file.tree.source()).line_column(span.start);
        format!("{}:{line}:{column}", file.path)
    }

    /// Finds an agent by name, also one inside of another.
    pub fn any_agent(&self, name: &str) -> Option<Agent> {
        let all = self.files.iter().flat_map(|file| file.tree.walk().filter_map(Agent::cast));
        all.into_iter().find(|agent| agent.name().as_deref() == Some(name))
    }

    /// Returns the place among the files of the one that an agent stands in, also inside of another.
    pub fn file_with(&self, agent: &Agent) -> Option<usize> {
        self.files.iter().position(|file| file.tree.walk().filter_map(Agent::cast).any(|other| other == *agent))
    }

    /// Finds the agent that is meant in the first file: by its name, or else the one that no other of the file calls.
    ///
    /// ```
    /// use patter_core::declare::project::Project;
    /// let project = Project::read([("a.gram", "[desk:Agent | press] [press:Agent | print]")]);
    /// assert_eq!(project.main_agent(None).unwrap().name().unwrap(), "desk");
    /// let error = project.main_agent(Some("pres")).unwrap_err();
    /// assert_eq!(error.to_string(), "`a.gram` has no agent `pres`");
    /// assert_eq!(error.hint().unwrap(), "did you mean `press`?");
    /// ```
    pub fn main_agent(&self, name: Option<&str>) -> Result<Agent, ChoiceError> {
        let agents: Vec<_> = self.agents().filter(|(declaration, _)| declaration.file == 0).collect();
        let file = self.files.first().map(|file| file.path.clone()).unwrap_or_default();
        let names = || agents.iter().map(|(declaration, _)| declaration.name.as_str());
        let called: Vec<_> = agents.iter().flat_map(|(_, agent)| agent.elements()).collect();
        let is_called = |agent: &Agent| called.iter().any(|element| element.name() == agent.name());
        let is_meant = |agent: &&Agent| match name {
            Some(name) => agent.name().as_deref() == Some(name),
            None => agents.len() == 1 || !is_called(agent),
        };
        let mut found = agents.iter().map(|(_, agent)| agent).filter(is_meant);
        match (found.next(), found.next(), name) {
            (Some(agent), None, _) => Ok(agent.clone()),
            (None, _, Some(name)) => {
                let nearest = nearest(name, names()).map(str::to_owned);
                Err(ChoiceError::Unknown { file, name: name.to_owned(), nearest })
            }
            (None, _, None) => Err(ChoiceError::None { file }),
            (Some(_), Some(_), _) => Err(ChoiceError::Several { file, names: names().map(str::to_owned).collect() }),
        }
    }

    /// Returns what is wrong with the record types.
    pub(crate) fn record_findings(&self) -> &[Finding] {
        &self.record_findings
    }

    fn index(&mut self) {
        for (file, source) in self.files.iter().enumerate() {
            for pattern in source.tree.patterns() {
                let Some(declares) = Declares::of(pattern) else { continue };
                let name = pattern.name().unwrap_or_default().into_owned();
                let is_callable = matches!(declares, Declares::Agent | Declares::Tool | Declares::Implementation);
                if is_callable && !name.is_empty() {
                    self.callable.entry(name.clone()).or_default().push(self.declarations.len());
                }
                let id = pattern.syntax().id();
                for tool in pattern.elements().filter(|_| declares == Declares::Toolbox) {
                    let (Some(declares), Some(own)) = (Declares::of(tool), tool.name()) else { continue };
                    let full = format!("{name}/{own}");
                    let (span, id) = (tool.span(), tool.syntax().id());
                    let declaration = Declaration { file, declares, name: full.clone(), span, id };
                    self.in_toolboxes.entry(full).or_default().push(declaration.clone());
                    self.in_toolboxes.entry(own.into_owned()).or_default().push(declaration);
                }
                self.declarations.push(Declaration { file, declares, name, span: pattern.span(), id });
            }
        }
    }

    /// Reads the record types. All their names are known first, since they may name one another.
    fn read_records(&mut self) {
        let names: std::collections::HashSet<_> = self
            .declarations
            .iter()
            .filter(|declaration| declaration.declares == Declares::Record)
            .map(|declaration| declaration.name.clone())
            .collect();
        let mut records = Records::default();
        let mut findings = Vec::new();
        for declaration in self.declarations.iter().filter(|declaration| declaration.declares == Declares::Record) {
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

fn read_record(pattern: Pattern<'_>, is_record: &dyn Fn(&str) -> bool) -> (Record, Vec<Diagnostic>) {
    let mut reader = Reader::new(is_record);
    let record = reader.record(pattern);
    (record, reader.diagnostics)
}
