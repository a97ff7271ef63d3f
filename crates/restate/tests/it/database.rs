//! A PostgreSQL server for the tests.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

/// A PostgreSQL server that ends with this value.
pub(crate) struct Database {
    folder: String,
    child: Child,
    input: Option<ChildStdin>,
}

impl Database {
    /// Starts the server. Returns `None` if PostgreSQL is not installed, unless `CI` is set.
    pub(crate) fn start() -> Option<Self> {
        const SCRIPT: &str = include_str!("../../../patter/tests/postgres.sh");
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.process_group(0).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        match line.trim().strip_prefix("folder ") {
            Some(folder) => Some(Self { folder: folder.to_owned(), child, input: Some(input) }),
            None => {
                drop(input);
                let _ = child.wait();
                assert!(std::env::var_os("CI").is_none(), "cannot start PostgreSQL: {line}");
                eprintln!("skipped: cannot start PostgreSQL: {line}");
                None
            }
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres:///postgres?host={}&user=postgres", self.folder)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The script ends the server when its input does.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
