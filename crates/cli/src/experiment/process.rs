//! Experiments that are started from the studio: each is a process of this program, so that it is the same as on the command
//! line, and neither can disturb the other.

use crate::setup::is_trust_given;
use patter::store::SessionId;
use patter::tool::{BoxFuture, CancellationToken};
use patter_serve::{ExperimentRequest, ExperimentRunner};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

/// How long a process may take to end after it was interrupted.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
/// How much of its messages is kept.
const MAX_MESSAGES: usize = 16 << 10;

/// Starts the processes.
pub(crate) struct ExperimentProcesses {
    /// The options of the server that concern experiments too.
    pub(crate) options: Vec<OsString>,
    /// The store that the server was started with. Other users must not see it, so it is no option.
    pub(crate) store: Option<String>,
}

impl ExperimentRunner for ExperimentProcesses {
    fn run(
        &self,
        request: ExperimentRequest,
        started: oneshot::Sender<SessionId>,
        stop: CancellationToken,
    ) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let mut command = self.command(&request).map_err(|error| error.to_string())?;
            let mut child = command.spawn().map_err(|error| format!("cannot start the experiment: {error}"))?;
            let (Some(output), Some(messages)) = (child.stdout.take(), child.stderr.take()) else {
                return Err("cannot read what the experiment prints".to_owned());
            };
            let (status, is_stored, messages) =
                tokio::join!(wait(&mut child, &stop), read_id(output, started), read_last(messages));
            match status {
                Ok(_) if stop.is_cancelled() => Ok(()),
                // 1 is a finding, such as a failed case.
                Ok(status) if is_stored && matches!(status.code(), Some(0 | 1)) => Ok(()),
                Ok(_) => Err(describe(&messages)),
                Err(error) => Err(error.to_string()),
            }
        })
    }
}

impl ExperimentProcesses {
    fn command(&self, request: &ExperimentRequest) -> std::io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        let name = if request.arms.is_empty() { "eval" } else { "ab" };
        let mut agent = OsString::from(std::path::absolute(&request.file)?);
        agent.push(format!("#{}", request.agent));
        command.args(["--color=never", name]).arg(agent);
        for file in &request.cases {
            command.arg("--cases").arg(file);
        }
        for arm in &request.arms {
            command.arg(format!("--arm={arm}"));
        }
        command.arg(format!("--repeats={}", request.repeats));
        if request.stops_early && !request.arms.is_empty() {
            command.arg("--stop-early");
        }
        match &request.resumed {
            Some(id) => command.arg(format!("--resume={id}")),
            None => command.arg("--new").arg(format!("--request={}", request.asked)),
        };
        command.arg("--print-id").args(&self.options);
        if is_trust_given() {
            command.arg("--trust");
        }
        if let Some(store) = &self.store {
            command.env("PATTER_STORE", store);
        }
        command.kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }
}

/// Waits for a process, and interrupts it when it has to stop.
async fn wait(child: &mut Child, stop: &CancellationToken) -> std::io::Result<std::process::ExitStatus> {
    if let Some(ended) = stop.run_until_cancelled(child.wait()).await {
        return ended;
    }
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    if let Some(pid) = pid {
        let _ = kill_process(pid, Signal::INT);
    }
    if let Ok(ended) = tokio::time::timeout(STOP_TIMEOUT, child.wait()).await {
        return ended;
    }
    child.kill().await?;
    child.wait().await
}

/// Reads the first line, which is the id, and ignores the report that follows. Returns whether there was an id.
async fn read_id(output: impl AsyncRead + Unpin, started: oneshot::Sender<SessionId>) -> bool {
    let mut output = BufReader::new(output);
    let mut line = String::new();
    let read = (&mut output).take(1 << 10).read_line(&mut line).await;
    let id = read.ok().and_then(|_| SessionId::parse(line.trim()).ok());
    let is_stored = id.is_some();
    if let Some(id) = id {
        // Nobody waits if the server stops.
        let _ = started.send(id);
    }
    let _ = tokio::io::copy(&mut output, &mut tokio::io::sink()).await;
    is_stored
}

/// Reads everything, and returns the end of it.
async fn read_last(mut messages: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut last = Vec::new();
    let mut buffer = vec![0; MAX_MESSAGES];
    while let Ok(length @ 1..) = messages.read(&mut buffer).await {
        last.extend_from_slice(buffer.get(..length).unwrap_or_default());
        let surplus = last.len().saturating_sub(MAX_MESSAGES);
        last.drain(..surplus);
    }
    last
}

/// Returns what went wrong: the errors among the messages, or else the last line.
fn describe(messages: &[u8]) -> String {
    let text = String::from_utf8_lossy(messages);
    let lines = || text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let errors: Vec<_> = lines().skip_while(|line| !line.starts_with("error: ")).collect();
    let told = match errors.is_empty() {
        true => lines().next_back().unwrap_or("the experiment failed").to_owned(),
        false => errors.join("\n"),
    };
    told.strip_prefix("error: ").unwrap_or(&told).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_found_among_messages() {
        assert_eq!(describe(b"loading\nerror: no cases\n  help: add some\n"), "no cases\n  help: add some");
        assert_eq!(describe(b"loading\nkilled\n"), "killed");
        assert_eq!(describe(b""), "the experiment failed");
    }

    #[tokio::test]
    async fn only_the_end_of_messages_is_kept() {
        let text = "x".repeat(3 * MAX_MESSAGES) + "end";
        let last = read_last(text.as_bytes()).await;
        assert_eq!(last.len(), MAX_MESSAGES);
        assert!(last.ends_with(b"end"));
    }
}
