//! MCP clients for Python, unmodified, against `patter serve`: over HTTP and over stdio, in both versions of the protocol.

use crate::folder::{Folder, PATTER};
use crate::python;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const AGENTS: &str = "
[greeter:Agent {instruction: 'Greet.', model: 'scripted/FOLDER/greeter.json'}]
[counter:Agent {instruction: 'Count.', model: 'scripted/FOLDER/counter.json', returns: 'Count'}]
[clerk:Agent {instruction: 'Write.', model: 'scripted/FOLDER/clerk.json', ask: ['fs/writeFile']} | `fs/writeFile`]
[Count:Object | (count::Integer)]
[deciding:Workflow {description: 'Decides'} |
  (refund:Human {question: 'Pay it back?', returns: 'Bool'})-[:When {is: true}]->(paid:Give {value: 'Paid back.'}),
  (refund)-[:Otherwise]->(kept:Give {value: 'Kept.'})
]
";

/// The server over HTTP, which ends with the test.
struct HttpServer {
    child: Child,
    url: String,
}

impl HttpServer {
    fn start(folder: &Folder) -> Self {
        let mut command = folder.command();
        command.args(["serve", "--tools", "--listen", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("/mcp")).expect("the server does not start");
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
        // What it prints later must not block it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn project() -> Folder {
    let folder = Folder::new();
    let at = folder.path().display().to_string();
    folder.write("patter.toml", "[permissions]\ndeny = [\"dateTime/*\"]\n");
    folder.write("agents.gram", AGENTS.replace("FOLDER", &at));
    folder.write("greeter.json", r#"[{"text": "Hello!"}, {"text": "Hello again!"}]"#);
    folder.write("counter.json", r#"[{"text": "{\"count\": 3}"}]"#);
    let call = r#"{"tool": "fs/writeFile", "arguments": {"path": "plan.txt", "content": "buy milk"}}"#;
    folder.write("clerk.json", format!(r#"[{{"calls": [{call}]}}, {{"text": "Done.", "expect": {{}}}}]"#));
    folder
}

/// Runs the script, which fails if anything is not as it expects it.
fn use_with(client: &str) {
    let Some(python) = python::installed("mcp-python") else { return };
    let folder = project();
    let server = HttpServer::start(&folder);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp-python/session.py");
    let mut command = Command::new(python);
    command.arg(script).arg(client).arg(folder.path()).arg(&server.url);
    command.args([PATTER, "serve", "--mcp", "--tools"]).stdin(Stdio::null());
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.trim() == "ok", "{client}: {said}\n{complaint}");
}

#[test]
fn mcp_for_python_uses_agents_and_tools() {
    use_with("mcp");
}

#[test]
fn fastmcp_uses_agents_and_tools() {
    use_with("fastmcp");
}
