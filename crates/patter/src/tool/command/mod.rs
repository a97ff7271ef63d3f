//! Tools that run a command of this machine.
//!
//! There is no shell, and the environment has only [`INHERITED_VARIABLES`] and the variables that the tool lists. A call ends
//! with the program: processes that it left behind in its group are killed, as is the whole group when the call is
//! cancelled.

mod outcome;

use super::idempotency;
use super::kept::MAX_KEPT_BYTES;
use super::process::{Confinement, Places, ProcessCommand, ProcessOutcome, RunningProcess, StdinSource};
use super::redact::Redactor;
use super::sandbox::{Sandbox, SandboxPolicy};
use super::scripts::{ScriptHashes, Scripts};
use super::{BoxFuture, Definition, Effect, Implementation, Tool, ToolContext, ToolFailure, ToolKind, VariableLookup};
use crate::os_error;
use patter_core::declare::CommandSpec;
use patter_core::declare::command::CommandLine;
use patter_core::declare::template::Template;
use patter_core::library::ToolFacts;
use serde_json::{Map, Value as Json};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use patter_core::declare::command::INHERITED_VARIABLES;

/// Creates a tool that runs a command.
///
/// The command runs in the root of the project or in the folder that `cwd` names. A program with a relative path is
/// looked up in the root.
///
/// ```
/// use patter::declare::CommandSpec;
/// use patter::tool::{Definition, ToolContext, command::command_tool};
/// use std::{path::Path, sync::Arc};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let text = "[echo:Command {description: 'Echoes', run: ['echo', '{text}']} | (text::Text)==>(::Text)]";
/// let (tree, _) = patter::gram::parse(text);
/// let definition = Definition::new("echo", "Echoes", "(text::Text)==>(::Text)").unwrap();
/// let spec = CommandSpec::read(tree.patterns().next().unwrap(), &definition.signature).unwrap();
/// let echo = command_tool(definition, spec, Path::new("."), Arc::new(|name| std::env::var(name).ok()));
/// let arguments = serde_json::json!({"text": "$HOME; ls"});
/// let output = echo.implementation.call(arguments, &ToolContext::new("1")).await.unwrap();
/// assert_eq!(output, "$HOME; ls");
/// # }
/// ```
pub fn command_tool(definition: Definition, spec: CommandSpec, root: &Path, variables: VariableLookup) -> Tool {
    let scripts = command_scripts(&spec, root, &mut ScriptHashes::default());
    command_tool_in(definition, spec, root, variables, SandboxPolicy::default(), scripts)
}

/// Reads the scripts of the project that a command runs.
pub(crate) fn command_scripts(spec: &CommandSpec, root: &Path, hashes: &mut ScriptHashes) -> Scripts {
    Scripts::read(&literal_words(spec), &[&working_folder(spec, root), root], root, hashes)
}

fn working_folder(spec: &CommandSpec, root: &Path) -> PathBuf {
    spec.cwd.as_ref().map_or_else(|| root.to_owned(), |folder| root.join(folder))
}

/// Creates a tool that runs a command in a sandbox: its own, or the default of a policy. It runs scripts only as they were
/// read.
pub(crate) fn command_tool_in(
    definition: Definition,
    spec: CommandSpec,
    root: &Path,
    variables: VariableLookup,
    policy: SandboxPolicy,
    scripts: Scripts,
) -> Tool {
    let conduct = spec.options.clone();
    let folder = working_folder(&spec, root);
    let sandbox = policy.sandbox(spec.sandbox.as_ref());
    let implementation =
        CommandTool { spec, root: root.to_owned(), folder, variables, sandbox: sandbox.clone(), policy, scripts };
    let tool = Tool::new(definition, ToolKind::Command, implementation).with_conduct(&conduct, Effect::Writes);
    tool.sandboxed(sandbox)
}

struct CommandTool {
    spec: CommandSpec,
    root: PathBuf,
    folder: PathBuf,
    variables: VariableLookup,
    sandbox: Sandbox,
    policy: SandboxPolicy,
    scripts: Scripts,
}

impl Implementation for CommandTool {
    fn call<'a>(&'a self, arguments: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<Json, ToolFailure>> {
        Box::pin(async move {
            self.scripts.check()?;
            let arguments = match arguments {
                Json::Object(arguments) => arguments,
                _ => Map::new(),
            };
            let invocation = self
                .spec
                .invocation(&arguments, &|name| (self.variables)(name))
                .map_err(|error| ToolFailure::new(error.to_string()).with_detail(error.hint()))?;
            let redactor = Redactor::new(&invocation.secrets);
            match self.run(&invocation, &arguments, context, &redactor).await {
                Ok(result) => Ok(redactor.redact_json(result)),
                Err(failure) => Err(redactor.redact_failure(&failure)),
            }
        })
    }

    fn files(&self) -> Vec<PathBuf> {
        named_files(&literal_words(&self.spec), &[&self.folder, &self.root])
    }

    fn scripts(&self) -> Vec<(PathBuf, String)> {
        self.scripts.hashes()
    }

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            command: self.spec.run.iter().map(Template::to_string).collect(),
            folder: self.spec.cwd.clone(),
            environment: self.spec.env.keys().cloned().collect(),
            ..ToolFacts::default()
        }
    }
}

/// Returns the words of a command that do not depend on arguments.
pub(crate) fn literal_words(spec: &CommandSpec) -> Vec<String> {
    spec.run.iter().filter_map(Template::literal).map(str::to_owned).collect()
}

/// Returns the files that words of a command name, each in the first of the folders that has it. A word may be a whole
/// command for a shell, or an option with a value.
pub(crate) fn named_files(words: &[String], folders: &[&Path]) -> Vec<PathBuf> {
    let find = |word: &str| folders.iter().map(|folder| folder.join(word)).find(|path| path.is_file());
    let mut found = Vec::new();
    for word in words {
        let new: Vec<_> = names_in(word).filter_map(find).filter(|path| !found.contains(path)).collect();
        found.extend(new);
    }
    found
}

/// Returns what may be the names of files in an argument: all of it, and its words.
pub(crate) fn names_in(argument: &str) -> impl Iterator<Item = &str> {
    std::iter::once(argument).chain(inner_words(argument))
}

/// Returns the words of an argument that may be a script for a shell, except the names of files that it writes.
fn inner_words(argument: &str) -> Vec<&str> {
    let is_separator = |c: char| c.is_whitespace() || "=;&|()<>'\"`".contains(c);
    let mut words = Vec::new();
    let mut start = 0;
    for piece in argument.split_inclusive(is_separator) {
        let is_output = argument.get(..start).is_some_and(|before| before.trim_end().ends_with('>'));
        start += piece.len();
        let word = piece.trim_end_matches(is_separator);
        if !word.is_empty() && word != argument && !is_output {
            words.push(word);
        }
    }
    words
}

impl CommandTool {
    async fn run(
        &self,
        invocation: &CommandLine,
        arguments: &Map<String, Json>,
        context: &ToolContext,
        redactor: &Redactor,
    ) -> Result<Json, ToolFailure> {
        match self.policy.check(&self.sandbox) {
            Ok(None) => {}
            Ok(Some(warning)) => context.progress(None, warning),
            Err(reason) => return Err(ToolFailure::new(reason).with_detail("`required` is set under `[sandbox]`")),
        }
        let process = self.start(invocation, context).await?;
        let program = redactor.redact(&invocation.program);
        tracing::debug!(program, "command started");
        let started = Instant::now();
        let stdin = invocation.stdin.clone().unwrap_or_default().into_bytes();
        let max_stdout = self.spec.max_bytes.max(MAX_KEPT_BYTES);
        let outcome = process.run(stdin, max_stdout, outcome::STDERR_BYTES + redactor.margin()).await?;
        let duration = started.elapsed();
        match outcome {
            ProcessOutcome::OutputLimit { stderr } => {
                tracing::debug!(program, ?duration, "command killed: too much output");
                let message = format!("the command was killed: it wrote more than {max_stdout} bytes");
                Err(ToolFailure::new(message).with_detail(outcome::stderr_detail(&stderr, redactor)))
            }
            ProcessOutcome::Exited(output) => {
                tracing::debug!(program, ?duration, status = %output.status, "command exited");
                outcome::read_result(&self.spec, arguments, output, context, redactor)
            }
        }
    }

    async fn start(&self, invocation: &CommandLine, context: &ToolContext) -> Result<RunningProcess, ToolFailure> {
        if !self.folder.is_dir() {
            let folder = self.spec.cwd.as_deref().unwrap_or(".");
            return Err(ToolFailure::new(format!("cannot run the command: the folder `{folder}` does not exist"))
                .with_detail(format!("looked for {}", self.folder.display())));
        }
        let is_path = invocation.program.contains('/');
        let program = if is_path { self.root.join(&invocation.program) } else { PathBuf::from(&invocation.program) };
        let file = ProcessCommand::program_file(&self.root, &invocation.program);
        let key = context.idempotency_key();
        let command = ProcessCommand::new(&file)
            .args(&invocation.arguments)
            .envs(INHERITED_VARIABLES.iter().filter_map(|name| Some((name, (self.variables)(name)?))))
            .envs(key.as_deref().map(|key| (idempotency::VARIABLE, key)))
            .envs(invocation.env.iter().map(|(name, value)| (name, value)))
            .folder(&self.folder)
            .stdin(if invocation.stdin.is_some() { StdinSource::Pipe } else { StdinSource::Null })
            .confined(self.confinement(is_path.then_some(file.as_path())));
        let process = RunningProcess::spawn(&command).await;
        process.map_err(|error| self.start_failure(&invocation.program, &program, &error))
    }

    /// Returns what the command may do.
    fn confinement(&self, program: Option<&Path>) -> Confinement {
        Confinement::new(
            &self.sandbox,
            &Places {
                root: &self.root,
                folder: &self.folder,
                program,
                search_path: (self.variables)("PATH"),
                home: (self.variables)("HOME").map(PathBuf::from),
            },
        )
    }

    fn start_failure(&self, name: &str, program: &Path, error: &std::io::Error) -> ToolFailure {
        let path = (self.variables)("PATH").unwrap_or_default();
        let exists = if program.is_absolute() || name.contains('/') {
            program.exists()
        } else {
            std::env::split_paths(&path).any(|folder| folder.join(program).exists())
        };
        let message = match error.kind() {
            ErrorKind::NotFound if exists => {
                format!("cannot run `{name}`: the interpreter in its first line was not found")
            }
            ErrorKind::NotFound => format!("the program `{name}` was not found"),
            ErrorKind::PermissionDenied if !self.sandbox.is_none() => {
                format!("the sandbox does not allow to run `{name}`; its folder may have to be in `readable`")
            }
            ErrorKind::PermissionDenied => format!("permission denied to run `{name}`"),
            // Nothing of the system says why.
            ErrorKind::Other => format!("cannot start `{name}`: {error}"),
            ErrorKind::ArgumentListTooLong => "the arguments are too long for a command".to_owned(),
            _ => format!("cannot start `{name}`"),
        };
        let searched = if name.contains('/') { program.display().to_string() } else { format!("PATH: {path}") };
        ToolFailure::new(message).with_detail(format!("{}; looked in {searched}", os_error::describe(error)))
    }
}
