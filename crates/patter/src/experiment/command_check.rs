//! Checks that run a command.

use super::arm::TrialRun;
use super::judge::Judgement;
use crate::file::file_hash;
use crate::os_error::describe;
use crate::project::Environment;
use crate::tool::command::{INHERITED_VARIABLES, named_files};
use crate::tool::process::{ProcessCommand, ProcessOutcome, ProcessOutput, RunningProcess, StdinSource};
use patter_core::case::Case;
use patter_core::provider::price::Cost;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The default time limit of a check.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum output of a check in bytes.
const MAX_OUTPUT: usize = 64 * 1024;
/// The number of characters of the output to keep.
const MAX_REASON: usize = 500;

/// Runs the commands of checks: without a shell, and with as little of the environment as command tools get.
#[derive(Clone)]
pub struct CommandChecks {
    root: PathBuf,
    environment: Environment,
}

impl CommandChecks {
    /// Returns checks that run in a folder.
    pub fn new(root: &Path, environment: Environment) -> Self {
        Self { root: root.to_owned(), environment }
    }

    /// Returns hashes of the files that a check runs.
    pub(super) fn script_hashes(&self, run: &[String]) -> Vec<String> {
        named_files(run, &[&self.root]).iter().map(|path| file_hash(path)).collect()
    }

    /// Runs a check, which reads the result of a case as JSON on stdin. Exit code 0 means passed, another one failed; stdout is
    /// the reason. If the program does not exit by itself, there is no result.
    pub(super) async fn check(
        &self,
        run: &[String],
        timeout_ms: Option<u64>,
        case: &Case,
        trial: &TrialRun,
    ) -> Judgement {
        let Some((program, arguments)) = run.split_first() else {
            return Judgement::Error("the check names no program".to_owned());
        };
        let path = if program.contains('/') { self.root.join(program) } else { PathBuf::from(program) };
        let command = ProcessCommand::new(path)
            .args(arguments)
            .envs(INHERITED_VARIABLES.iter().filter_map(|name| Some((name, self.environment.get(name)?))))
            .folder(&self.root)
            .stdin(StdinSource::Pipe);
        let process = match RunningProcess::spawn(&command).await {
            Ok(process) => process,
            Err(error) => return Judgement::Error(format!("cannot start `{program}`: {}", describe(&error))),
        };
        let timeout = timeout_ms.map_or(DEFAULT_TIMEOUT, Duration::from_millis);
        match tokio::time::timeout(timeout, process.run(input(case, trial), MAX_OUTPUT, MAX_OUTPUT)).await {
            Err(_) => Judgement::Error(format!("`{program}` took longer than {} s", timeout.as_secs_f64())),
            Ok(Err(error)) => Judgement::Error(format!("`{program}` failed: {}", describe(&error))),
            Ok(Ok(ProcessOutcome::OutputLimit { .. })) => {
                Judgement::Error(format!("`{program}` wrote more than {MAX_OUTPUT} bytes"))
            }
            Ok(Ok(ProcessOutcome::Exited(ProcessOutput { status, stdout, stderr, .. }))) => {
                let reason = [&*stdout, stderr.bytes()].into_iter().map(reason).find(|text| !text.is_empty());
                let reason = reason.unwrap_or_else(|| format!("`{program}` ended with {status}"));
                match status.code() {
                    Some(0) => Judgement::Passed(reason),
                    Some(_) => Judgement::Failed(reason),
                    // A signal ended it.
                    None => Judgement::Error(reason),
                }
            }
        }
    }
}

/// Returns the result of a case as the command reads it.
fn input(case: &Case, trial: &TrialRun) -> Vec<u8> {
    let input = json!({
        "case": case.id,
        "input": case.turns,
        "content": trial.content,
        "value": trial.value,
        "failure": trial.failure.as_ref().map(|failure| &failure.message),
        "tools_used": trial.tools,
        "model_calls": trial.model_calls,
        "latency_ms": trial.latency_ms,
        "cost_usd": trial.cost.map(Cost::dollars),
        "conversation": trial.conversation,
    });
    input.to_string().into_bytes()
}

fn reason(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().chars().take(MAX_REASON).collect()
}
