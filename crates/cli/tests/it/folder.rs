//! A temporary folder for each test, in which the program runs.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) const PATTER: &str = env!("CARGO_BIN_EXE_patter");

/// An empty folder that is removed after the test.
pub(crate) struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file, and creates the folders above it.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// Runs `patter` and returns its exit code and output, for snapshots.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        self.run_with(arguments, "")
    }

    /// Runs `patter` with text on stdin.
    pub(crate) fn run_with(&self, arguments: &[&str], stdin: &str) -> String {
        let output = self.output(arguments, stdin);
        let code = output.status.code().unwrap();
        let stdout = text(&output.stdout);
        let stderr = text(&output.stderr);
        format!("exit {code}\n--- stdout\n{stdout}--- stderr\n{stderr}")
    }

    pub(crate) fn output(&self, arguments: &[&str], stdin: &str) -> Output {
        let mut child = self.command().args(arguments).spawn().unwrap();
        // A program that fails early does not read its input.
        let written = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        assert!(written.is_ok() || written.unwrap_err().kind() == ErrorKind::BrokenPipe);
        child.wait_with_output().unwrap()
    }

    /// Returns the command that runs the program in this folder, which it trusts, with an empty environment.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.untrusting_command();
        command.env("PATTER_TRUST", "1");
        command
    }

    /// Returns the command that runs the program in this folder, without trusting it.
    pub(crate) fn untrusting_command(&self) -> Command {
        let mut command = Command::new(PATTER);
        command.current_dir(self.path()).env_clear();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns an MCP server in shell. It runs `start` first; `tools` is the list of its tools, and `text` what each call
/// returns. Both are inside single quotes of the shell.
pub(crate) fn shell_server(start: &str, tools: &str, text: &str) -> String {
    const LOOP: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}';;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"tools":[TOOLS]}}';;
    *'"tools/call"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"content":[{"type":"text","text":"TEXT"}]}}';;
  esac
done
"#;
    format!("{start}{}", LOOP.replace("TOOLS", tools).replace("TEXT", text))
}

/// Returns the command that runs the program in the root of the repository, which it trusts.
pub(crate) fn repository_command() -> Command {
    let mut command = Command::new(PATTER);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("PATTER_TRUST", "1").stdin(Stdio::null());
    command
}
