//! Secrets in what programs and servers say, and who can read what is written to files.

use crate::folder::{Folder, shell_server};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

const SECRET: &str = "tiger-Lily-9?";

/// An MCP server that returns its secret, plain and encoded, and logs it as it ends.
fn server() -> String {
    let start = r#"echo "token $TOKEN" >&2
[ "$1" = broken ] && exit 3
encoded=$(printf 'user:%s!' "$TOKEN" | base64)"#;
    let tools = r#"{"name":"tell","description":"Tells","inputSchema":{"type":"object"}}"#;
    shell_server(start, tools, r#"'"mode $MODE, $TOKEN, $encoded, $(printf %s "$TOKEN" | base64)"'"#)
}

/// Returns whether a text contains the secret, or most of it in another form.
fn is_told(text: &str) -> bool {
    // The encodings of the secret by itself and after `user:`, without what depends on the text around it.
    [SECRET, "dGlnZXItTGlseS05", "RpZ2VyLUxpbHktO", "74696765722d4c696c79", "tiger-Lily"]
        .iter()
        .any(|form| text.contains(form))
}

#[test]
fn values_of_the_environment_of_servers_are_redacted() {
    let folder = Folder::new();
    let config = |argument: &str| {
        format!(
            "[mcp.s]\ncommand = \"sh\"\nargs = [\"server.sh\", \"{argument}\"]\nenv = {{ TOKEN = \"{SECRET}\", MODE = \"true\" }}\n"
        )
    };
    folder.write("patter.toml", config("whole"));
    folder.write("server.sh", server());
    let printed = folder.run(&["call", "s/tell", "--yes"]);
    assert!(printed.starts_with("exit 0") && !is_told(&printed), "{printed}");
    // Evident settings are not hidden.
    assert!(printed.contains("mode true, [redacted], "), "{printed}");
    folder.write("patter.toml", config("broken"));
    for arguments in [&["call", "s/tell", "--yes"][..], &["tools"], &["doctor", "--offline"], &["-vvv", "tools"]] {
        let printed = folder.run(arguments);
        assert!(printed.contains("token [redacted]") && !is_told(&printed), "{arguments:?}\n{printed}");
    }
}

#[test]
fn encoded_secrets_of_commands_are_redacted() {
    let folder = Folder::new();
    folder.write("patter.toml", "");
    folder.write(".env", format!("TOKEN='{SECRET}'\n"));
    let script = "printf %s \\\"user:$TOKEN\\\" | base64; printf %s $TOKEN | base64 >&2; \
        printf %s $TOKEN | od -An -tx1 | tr -d ' '; printf 'tiger-Lily-9%%3f tiger-Lily-9%%3F' >&2; exit $CODE";
    let tool = |name: &str, code: u8| {
        format!(
            "[{name}:Command {{ description: \"Tells\", run: [\"sh\", \"-c\", \"{script}\"], env: {{TOKEN: \"${{TOKEN}}\", CODE: \"{code}\"}} }} | ()==>(::Text)]"
        )
    };
    folder.write("t.gram", format!("[t:Toolbox | {}, {}]\n", tool("good", 0), tool("bad", 3)));
    for name in ["t/good", "t/bad"] {
        let printed = folder.run(&["call", name, "--yes"]);
        assert!(printed.contains("[redacted]") && !is_told(&printed), "{printed}");
    }
}

#[test]
fn recordings_and_exports_are_private() {
    let folder = Folder::new();
    folder.write("patter.toml", "[store]\nurl = \"s.db\"\n");
    folder.write("a.gram", "[a:Agent { instruction: \"Write.\", model: \"scripted/script.json\" }]\n");
    folder.write("script.json", json!(vec![json!({"text": "Done."}); 9]).to_string());
    folder.write("cases.jsonl", json!({"id": "one", "input": "hi", "checks": []}).to_string());
    folder.run(&["run", "a.gram", "hi", "--record", "run.jsonl"]);
    folder.run_with(&["chat", "a.gram"], "hi\n/save talk.md\n/save talk.json\n");
    folder.run(&["eval", "a.gram", "-c", "cases.jsonl", "--record", "trials"]);
    // A file that others can read is not written into again.
    let trial = folder.path().join("trials/agent/one-1.jsonl");
    std::fs::set_permissions(&trial, PermissionsExt::from_mode(0o644)).unwrap();
    folder.run(&["eval", "a.gram", "-c", "cases.jsonl", "--record", "trials", "--new"]);
    for format in ["markdown", "json", "gram", "recording"] {
        let printed = folder.run(&["sessions", "export", "latest", "--format", format, "-o", &format!("out.{format}")]);
        assert!(printed.starts_with("exit 0"), "{printed}");
    }
    folder.run(&["sessions", "backup", "backup.db"]);
    let files = [
        "run.jsonl",
        "talk.md",
        "talk.json",
        "trials/agent/one-1.jsonl",
        "out.markdown",
        "out.json",
        "out.gram",
        "out.recording",
        "backup.db",
        "s.db",
    ];
    for file in files {
        let mode = folder.path().join(file).metadata().unwrap_or_else(|_| panic!("no {file}")).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}
