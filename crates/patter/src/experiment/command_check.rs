//! Checks that are programs.

use super::arm::Ran;
use crate::project::Environment;
use crate::tool::command::{ALWAYS_PASSED, Ended, Finished, Group};
use patter_core::case::Case;
use patter_core::provider::price::Cost;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// How long a check may take where nothing is said.
const TIME: Duration = Duration::from_secs(30);
/// How much a check may write, in bytes.
const MOST: usize = 64 * 1024;
/// How much of that is kept, in characters.
const KEPT: usize = 500;

/// Runs checks that are programs: without a shell, and with no more of the environment than command tools get.
#[derive(Clone)]
pub struct Programs {
    root: PathBuf,
    environment: Environment,
}

impl Programs {
    /// Returns what runs programs in a folder.
    pub fn new(root: &Path, environment: Environment) -> Self {
        Self { root: root.to_owned(), environment }
    }

    /// Runs a check on what came of a case, which it reads as JSON. It passes with exit code 0, and says why on stdout.
    pub(super) async fn check(
        &self,
        run: &[String],
        timeout_ms: Option<u64>,
        case: &Case,
        ran: &Ran,
    ) -> (bool, String) {
        let Some((program, arguments)) = run.split_first() else { return (false, "there is no program".to_owned()) };
        let path = if program.contains('/') { self.root.join(program) } else { PathBuf::from(program) };
        let mut command = Command::new(path);
        command.args(arguments).current_dir(&self.root).env_clear().stdin(Stdio::piped());
        command.envs(ALWAYS_PASSED.iter().filter_map(|name| Some((name, self.environment.get(name)?))));
        let group = match Group::spawn(&mut command) {
            Ok(group) => group,
            Err(error) => return (false, format!("the program `{program}` could not be started: {error}")),
        };
        let time = timeout_ms.map_or(TIME, Duration::from_millis);
        match tokio::time::timeout(time, group.run(observed(case, ran), MOST, MOST)).await {
            Err(_) => (false, format!("the program `{program}` took longer than {} s", time.as_secs_f64())),
            Ok(Err(error)) => (false, format!("the program `{program}` failed: {error}")),
            Ok(Ok(Ended::Flooded { .. })) => (false, format!("the program `{program}` wrote more than {MOST} bytes")),
            Ok(Ok(Ended::Finished(Finished { status, stdout, stderr, .. }))) => {
                let said = [stdout, stderr.bytes].into_iter().map(|bytes| said(&bytes)).find(|text| !text.is_empty());
                (status.success(), said.unwrap_or_else(|| format!("the program `{program}` ended with {status}")))
            }
        }
    }
}

/// Returns what came of a case, as a program reads it.
fn observed(case: &Case, ran: &Ran) -> Vec<u8> {
    let observed = json!({
        "case": case.id,
        "input": case.turns,
        "content": ran.content,
        "value": ran.value,
        "failure": ran.failure.as_ref().map(|failure| &failure.message),
        "tools_used": ran.tools,
        "model_calls": ran.model_calls,
        "latency_ms": ran.latency_ms,
        "cost_usd": ran.cost.map(Cost::dollars),
        "conversation": ran.conversation,
    });
    observed.to_string().into_bytes()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().chars().take(KEPT).collect()
}
