//! A pseudo-terminal for tests: keys go in, and a screen comes out.

use crate::folder::{Folder, PATTER};
use pty_process::blocking::{Command, Pty, open};
use std::io::{Read, Write};
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The time after which a test fails.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Terminal {
    pty: Arc<Pty>,
    pieces: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    received: Vec<u8>,
    child: Child,
}

impl Terminal {
    /// Starts `patter` in a folder, at a terminal of this width. Its state, such as the history, is in the folder too.
    pub(crate) fn start(folder: &Folder, arguments: &[&str], columns: u16) -> Self {
        Self::start_with(folder, arguments, columns, &[])
    }

    /// Starts `patter` with more variables.
    pub(crate) fn start_with(folder: &Folder, arguments: &[&str], columns: u16, variables: &[(&str, &str)]) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(pty_process::Size::new(ROWS, columns)).unwrap();
        let command =
            Command::new(PATTER).args(arguments).current_dir(folder.path()).env_clear().env("PATTER_TRUST", "1");
        let state = folder.path().join("state");
        let command = command.envs(variables.iter().copied());
        let child = command.env("TERM", "xterm-256color").env("XDG_STATE_HOME", state).spawn(pts).unwrap();
        let pty = Arc::new(pty);
        let (sender, pieces) = channel();
        let reader = Arc::clone(&pty);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The terminal returns an error when the program ends.
            while let Ok(read @ 1..) = (&*reader).read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        let size = (ROWS.try_into().unwrap(), columns.try_into().unwrap());
        Self { pty, pieces, parser: vt100::Parser::new(size.0, size.1, 0), received: Vec::new(), child }
    }

    /// Presses keys.
    pub(crate) fn keys(&mut self, keys: &str) -> &mut Self {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
        self
    }

    /// Waits until the screen matches.
    pub(crate) fn until(&mut self, what: &str, matches: impl Fn(&vt100::Screen) -> bool) -> &mut Self {
        let begin = Instant::now();
        while !matches(self.parser.screen()) {
            match self.pieces.recv_timeout(TIMEOUT.saturating_sub(begin.elapsed())) {
                Ok(piece) => self.process_piece(&piece),
                Err(error) => panic!("{error}, and no {what} on the screen\n{}", self.screen()),
            }
        }
        self
    }

    fn process_piece(&mut self, piece: &[u8]) {
        self.parser.process(piece);
        self.received.extend_from_slice(piece);
    }

    /// Returns all that the terminal received so far.
    pub(crate) fn received(&self) -> &[u8] {
        &self.received
    }

    /// Waits for a text.
    pub(crate) fn shows(&mut self, text: &str) -> &mut Self {
        self.until(&format!("`{text}`"), |screen| screen.contents().contains(text))
    }

    /// Waits for a line to be typed in, with a text in it.
    pub(crate) fn prompts(&mut self, text: &str) -> &mut Self {
        let line = format!("› {text}");
        self.until(&format!("line with `{text}`"), |screen| {
            let (row, _) = screen.cursor_position();
            let (_, columns) = screen.size();
            let current = screen.rows(0, columns.into()).nth(row.into()).unwrap_or_default();
            screen.bracketed_paste() && current.trim_end() == line.trim_end()
        })
    }

    /// Waits for a question, which ends with a text.
    pub(crate) fn asks(&mut self, text: &str) -> &mut Self {
        self.until(&format!("question `{text}`"), |screen| {
            let (row, _) = screen.cursor_position();
            let (_, columns) = screen.size();
            screen.rows(0, columns.into()).nth(row.into()).is_some_and(|line| line.trim_end().ends_with(text))
        })
    }

    /// Returns the contents of the screen, without times.
    pub(crate) fn screen(&self) -> String {
        timeless(self.parser.screen().contents().trim_end())
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Kills the program.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end of the program, and returns its exit code.
    pub(crate) fn ends(&mut self) -> Option<i32> {
        let begin = Instant::now();
        // The last output must be read, or the program blocks.
        while let Ok(piece) = self.pieces.recv_timeout(TIMEOUT.saturating_sub(begin.elapsed())) {
            self.process_piece(&piece);
        }
        assert!(begin.elapsed() < TIMEOUT, "it does not end\n{}", self.screen());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const ROWS: u16 = 50;

/// Replaces durations in a text by `N`.
pub(crate) fn timeless(text: &str) -> String {
    let line = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let is_time = |at: usize| matches!(words.get(at + 1), Some(&("s" | "ms"))) && words[at].parse::<f64>().is_ok();
        let words: Vec<_> = words.iter().enumerate().map(|(at, word)| if is_time(at) { "N" } else { word }).collect();
        words.join(" ").trim_end().to_owned() + "\n"
    };
    text.lines().map(line).collect()
}
