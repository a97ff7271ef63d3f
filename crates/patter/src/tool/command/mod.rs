//! Tools that run a command of this machine.
//!
//! There is no shell, and no environment beyond [`ALWAYS_PASSED`] and what the tool names. A call ends when the program
//! does: what the program started and left behind in its process group is ended with it, and so is everything when the
//! call is given up.

mod outcome;
mod process;

use super::secrets::Secrets;
use super::{BoxFuture, Definition, Effect, Failure, Implementation, Kind, Tool, ToolContext, Variables};
use patter_core::declare::CommandSpec;
use patter_core::declare::command::Invocation;
pub(crate) use process::{Ended, Finished, Group};
use serde_json::{Map, Value as Json};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;

pub use patter_core::declare::command::ALWAYS_PASSED;

/// Makes a tool that runs a command.
///
/// The command runs in the root of the project, or in the folder that it names there; so is a program that is named by a
/// relative path looked up there.
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
/// let said = echo.implementation.call(arguments, &ToolContext::new("1")).await.unwrap();
/// assert_eq!(said, "$HOME; ls");
/// # }
/// ```
pub fn command_tool(definition: Definition, spec: CommandSpec, root: &Path, variables: Variables) -> Tool {
    let conduct = spec.conduct.clone();
    let folder = spec.cwd.as_ref().map_or_else(|| root.to_owned(), |folder| root.join(folder));
    let command = Command { spec, root: root.to_owned(), folder, variables };
    Tool::new(definition, Kind::Command, command).conducted(&conduct, Effect::Writes)
}

struct Command {
    spec: CommandSpec,
    root: PathBuf,
    folder: PathBuf,
    variables: Variables,
}

impl Implementation for Command {
    fn call<'a>(&'a self, arguments: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<Json, Failure>> {
        Box::pin(async move {
            let arguments = match arguments {
                Json::Object(arguments) => arguments,
                _ => Map::new(),
            };
            let invocation = self
                .spec
                .invocation(&arguments, &|name| (self.variables)(name))
                .map_err(|error| Failure::new(error.to_string()).with_detail(error.hint()))?;
            let secrets = Secrets::new(&invocation.secrets);
            match self.run(&invocation, &arguments, context, &secrets).await {
                Ok(result) => Ok(secrets.redact_json(result)),
                Err(failure) => Err(secrets.redact_failure(&failure)),
            }
        })
    }
}

impl Command {
    async fn run(
        &self,
        invocation: &Invocation,
        arguments: &Map<String, Json>,
        context: &ToolContext,
        secrets: &Secrets,
    ) -> Result<Json, Failure> {
        let group = self.start(invocation)?;
        let stdin = invocation.stdin.clone().unwrap_or_default().into_bytes();
        match group.run(stdin, self.spec.max_bytes, outcome::STDERR_BYTES + secrets.margin()).await? {
            Ended::Flooded { stderr } => {
                let message = format!("the command was stopped: it wrote more than {} bytes", self.spec.max_bytes);
                Err(Failure::new(message).with_detail(outcome::stderr_detail(&stderr, secrets)))
            }
            Ended::Finished(finished) => outcome::of(&self.spec, arguments, finished, context, secrets),
        }
    }

    fn start(&self, invocation: &Invocation) -> Result<Group, Failure> {
        if !self.folder.is_dir() {
            let folder = self.spec.cwd.as_deref().unwrap_or(".");
            return Err(Failure::new(format!("the command cannot run: there is no folder `{folder}`"))
                .with_detail(format!("looked for {}", self.folder.display())));
        }
        let is_path = invocation.program.contains('/');
        let program = if is_path { self.root.join(&invocation.program) } else { PathBuf::from(&invocation.program) };
        let mut command = tokio::process::Command::new(&program);
        command.args(&invocation.arguments).current_dir(&self.folder).env_clear();
        command.envs(ALWAYS_PASSED.iter().filter_map(|name| Some((name, (self.variables)(name)?))));
        command.envs(invocation.env.iter().map(|(name, value)| (name, value)));
        command.stdin(if invocation.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        Group::spawn(&mut command).map_err(|error| self.not_started(&invocation.program, &program, &error))
    }

    fn not_started(&self, name: &str, program: &Path, error: &std::io::Error) -> Failure {
        let path = (self.variables)("PATH").unwrap_or_default();
        let is_there = if program.is_absolute() || name.contains('/') {
            program.exists()
        } else {
            std::env::split_paths(&path).any(|folder| folder.join(program).exists())
        };
        let message = match error.kind() {
            ErrorKind::NotFound if is_there => {
                format!("the program `{name}` cannot run: the interpreter that its first line names is not there")
            }
            ErrorKind::NotFound => format!("there is no program `{name}` on this machine"),
            ErrorKind::PermissionDenied => format!("the program `{name}` may not be executed"),
            ErrorKind::ArgumentListTooLong => "the arguments are longer than a command can take".to_owned(),
            _ => format!("the program `{name}` could not be started"),
        };
        let looked = if name.contains('/') { program.display().to_string() } else { format!("PATH: {path}") };
        Failure::new(message).with_detail(format!("{error}; looked in {looked}"))
    }
}
