//! Hooks that are commands.

use super::{HookAction, HookCall, HookVerdict};
use crate::os_error;
use crate::tool::command::INHERITED_VARIABLES;
use crate::tool::process::{ProcessCommand, ProcessOutcome, ProcessOutput, RunningProcess, StdinSource};
use crate::tool::redact::Redactor;
use crate::tool::scripts::{ScriptHashes, Scripts};
use crate::tool::{BoxFuture, ToolFailure, VariableLookup};
use patter_core::text::truncate;
use serde::Deserialize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The size limit of an answer, in bytes.
const MAX_ANSWER: usize = 64 * 1024;
/// The number of bytes at the end of stderr that are kept.
const STDERR_BYTES: usize = 8 * 1024;
/// The number of characters of a reason that the model reads.
const MAX_REASON: usize = 1000;
/// Where programs are searched if `PATH` is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// The exit code that refuses a call.
const REFUSED: i32 = 2;

/// A hook that is a command. It reads a call as JSON from stdin and answers by its exit code, or by JSON on stdout.
pub struct CommandHook {
    program: String,
    arguments: Vec<String>,
    root: PathBuf,
    /// The names of the variables that it receives besides those that all commands receive.
    passed: Vec<String>,
    variables: VariableLookup,
    scripts: Scripts,
}

/// An answer on stdout.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    decision: AnswerDecision,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum AnswerDecision {
    Allow,
    Refuse,
}

impl CommandHook {
    /// Creates a hook from the words of a command, which runs in the root of the project. There is no shell.
    pub fn new(
        words: &[String],
        root: impl Into<PathBuf>,
        passed: Vec<String>,
        variables: VariableLookup,
    ) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        let root = root.into();
        let scripts = Scripts::read(words, &[&root], &root, &mut ScriptHashes::default());
        Some(Self { program: program.clone(), arguments: arguments.to_vec(), root, passed, variables, scripts })
    }

    /// Returns the path of the program, if it names one.
    fn program_path(&self) -> Option<PathBuf> {
        self.program.contains('/').then(|| ProcessCommand::program_file(&self.root, &self.program))
    }

    async fn decide(&self, call: &HookCall, redactor: &Redactor) -> Result<HookVerdict, ToolFailure> {
        self.scripts.check()?;
        let program = ProcessCommand::program_file(&self.root, &self.program);
        let names = INHERITED_VARIABLES.iter().copied().chain(self.passed.iter().map(String::as_str));
        let command = ProcessCommand::new(&program)
            .args(&self.arguments)
            .envs(names.filter_map(|name| Some((name, (self.variables)(name)?))))
            .folder(&self.root)
            .stdin(StdinSource::Pipe);
        let process = RunningProcess::spawn(&command).await;
        let process = process
            .map_err(|error| ToolFailure::new("it cannot be started").with_detail(os_error::describe(&error)))?;
        let stdin = call.to_json().to_string().into_bytes();
        match process.run(stdin, MAX_ANSWER, STDERR_BYTES + redactor.margin()).await? {
            ProcessOutcome::OutputLimit { .. } => {
                Err(ToolFailure::new(format!("it wrote more than {MAX_ANSWER} bytes to stdout")))
            }
            ProcessOutcome::Exited(output) => read_answer(&output, redactor),
        }
    }
}

impl HookAction for CommandHook {
    fn run<'a>(&'a self, call: &'a HookCall) -> BoxFuture<'a, Result<HookVerdict, ToolFailure>> {
        Box::pin(async move {
            let secrets: Vec<_> = self.passed.iter().filter_map(|name| (self.variables)(name)).collect();
            let redactor = Redactor::new(&secrets);
            match self.decide(call, &redactor).await {
                Ok(HookVerdict::Allow) => Ok(HookVerdict::Allow),
                Ok(HookVerdict::Refuse { reason }) => {
                    Ok(HookVerdict::refuse(truncate(redactor.redact(&reason).trim(), MAX_REASON)))
                }
                Err(failure) => Err(redactor.redact_failure(&failure)),
            }
        })
    }

    fn problem(&self) -> Option<String> {
        let program = &self.program;
        if let Some(path) = self.program_path() {
            return match std::fs::metadata(&path) {
                Err(_) => Some(format!("the program `{program}` does not exist")),
                Ok(metadata) if !is_executable(&metadata) => Some(format!("`{program}` is not an executable file")),
                Ok(_) => None,
            };
        }
        let path = (self.variables)("PATH").unwrap_or_else(|| DEFAULT_PATH.to_owned());
        let mut places = std::env::split_paths(&path).map(|folder| folder.join(program));
        let is_found = places.any(|place: PathBuf| is_program(&place));
        (!is_found).then(|| format!("the program `{program}` was not found in PATH"))
    }
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| is_executable(&metadata))
}

fn is_executable(metadata: &std::fs::Metadata) -> bool {
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

fn read_answer(output: &ProcessOutput, redactor: &Redactor) -> Result<HookVerdict, ToolFailure> {
    let stderr = output.stderr.text(redactor);
    match output.status.code() {
        Some(0) => {
            let text = String::from_utf8_lossy(&output.stdout);
            if text.trim().is_empty() {
                return Ok(HookVerdict::Allow);
            }
            let answer: Answer = serde_json::from_str(&text).map_err(|error| {
                ToolFailure::new("it wrote something to stdout that is not an answer").with_detail(format!(
                    "{error}; expected nothing, or {{\"decision\": \"allow\"}} or \
                     {{\"decision\": \"refuse\", \"reason\": \"…\"}}"
                ))
            })?;
            Ok(match answer.decision {
                AnswerDecision::Allow => HookVerdict::Allow,
                AnswerDecision::Refuse => HookVerdict::refuse(answer.reason.unwrap_or_else(no_reason)),
            })
        }
        Some(REFUSED) => Ok(HookVerdict::refuse(if stderr.is_empty() { no_reason() } else { stderr })),
        Some(code) => Err(ToolFailure::new(format!("it exited with code {code}")).with_detail(stderr)),
        None => Err(ToolFailure::new("it was killed by a signal").with_detail(stderr)),
    }
}

fn no_reason() -> String {
    "no reason given".to_owned()
}
