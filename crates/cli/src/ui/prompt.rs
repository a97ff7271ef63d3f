//! Questions to the person at the terminal.

use super::output::write_stderr;
use std::io::{self, BufRead};
use tokio::sync::oneshot;

/// Writes a question to stderr, without ending the line.
pub(crate) fn ask(question: &str) -> io::Result<()> {
    write_stderr(question)
}

/// Asks a yes-or-no question; anything but yes is no. The answer is read on a thread of its own, so that a signal can stop
/// the program meanwhile.
pub(crate) async fn confirm(question: String) -> bool {
    let (answer, answered) = oneshot::channel();
    std::thread::spawn(move || {
        // The receiver is gone if the program is stopping.
        let _ = answer.send(read_answer(&question).unwrap_or(false));
    });
    answered.await.unwrap_or(false)
}

fn read_answer(question: &str) -> io::Result<bool> {
    ask(&format!("{question} [y/N] "))?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
