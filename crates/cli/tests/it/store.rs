//! What the program does when the store of its sessions fails, hangs or is short of resources.

use crate::folder::{Folder, PATTER};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use std::io::Read;
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The time in which the program has to end whose store hangs. Without a signal or a limit it takes far longer.
const SOON: Duration = Duration::from_secs(8);

/// A project with an agent that greets, and one whose tool is a shell script.
fn project(script: &str) -> Folder {
    let folder = Folder::new();
    folder.write("patter.toml", "");
    folder.write(
        "hello.gram",
        "[greeter:Agent { instruction: \"Greet with `sayHello`.\", model: \"demo\" } | sayHello]\n",
    );
    let replies = folder.path().join("work.json").display().to_string();
    let agent = r#"[worker:Agent { instruction: "Use `work`.", model: "scripted/REPLIES" } | `jobs/work`]
[jobs:Toolbox | [work:Command { description: "Works", run: ["sh", "-c", SCRIPT] } | ()==>(::Text)]]
"#;
    let script = format!("'{}'", script.replace('\'', "\\'"));
    folder.write("work.gram", agent.replace("REPLIES", &replies).replace("SCRIPT", &script));
    folder.write("work.json", json!([{"calls": [{"tool": "jobs/work"}]}, {"text": "It is done."}]).to_string());
    folder
}

/// Runs a shell command in which `$0` is the program.
fn shell(folder: &Folder, command: &str) -> (i32, String, String) {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command, PATTER])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("PATTER_TRUST", "1");
    parts(shell.stdin(Stdio::null()).output().unwrap())
}

fn parts(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("not killed by a signal"), text(output.stdout), text(output.stderr))
}

#[test]
fn run_fails_if_its_store_disappears() {
    for script in ["rm .patter/sessions.db", "rm .patter/*", "mv .patter/sessions.db x.db; cp x.db .patter/sessions.db"]
    {
        let folder = project(script);
        let (code, stdout, errors) = shell(&folder, "\"$0\" run work.gram Go --format json --new --session job");
        assert_eq!(code, 1, "{script}: {errors}");
        let document: Json = serde_json::from_str(&stdout).unwrap();
        assert_eq!(document["error"]["kind"], "StoreError", "{script}");
        let message = document["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("cannot save the run: the session store `"), "{message}");
        assert!(message.contains("was removed or replaced while it was in use"), "{message}");
        let hint = "`patter sessions show job` shows what was saved; `patter resume job` continues from there";
        assert_eq!(document["error"]["hint"], hint);
        // The model is not asked again.
        assert_eq!(document["model_calls"], 1, "{script}");
    }
}

#[test]
fn file_size_limit_is_an_error() {
    let folder = project("true");
    let long = "x".repeat(100_000);
    folder.write("prompt", format!("Hello! {long}"));
    // The unit is 512 bytes.
    let command = "ulimit -f 128; \"$0\" run hello.gram - < prompt";
    let (code, _, errors) = shell(&folder, command);
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("cannot grow: files of this process are limited to 65536 bytes"), "{errors}");
    assert!(errors.contains("raise the limit with `ulimit -f`"), "{errors}");
    // Programs of tools do not inherit how Patter deals with the signal.
    folder.write("work.gram", folder.read("work.gram").replace("true", "head -c 200000 /dev/zero > big; echo $?"));
    let (_, stdout, errors) = shell(&folder, "ulimit -f 256; \"$0\" run work.gram Go --store none --format json");
    let result = &serde_json::from_str::<Json>(&stdout).unwrap()["tools_used"][0]["result"]["success"];
    // The exit code of a program that SIGXFSZ ended.
    assert!(result.as_str().is_some_and(|result| result.contains("153")), "{result} {errors}");
}

#[test]
fn sessions_are_backed_up() {
    let folder = project("true");
    let run = |command: &str| shell(&folder, command);
    assert_eq!(run("\"$0\" run hello.gram 'Hello! My name is Bob.' --new --session bob").0, 0);
    let (code, _, errors) = run("\"$0\" sessions backup copy.db");
    assert_eq!((code, errors.as_str()), (0, "copied all sessions to `copy.db`\n"));
    let (code, _, errors) = run("\"$0\" sessions backup copy.db");
    assert_eq!(code, 1);
    assert!(errors.contains("cannot write the copy `copy.db`: it already exists"), "{errors}");
    let (_, printed, _) = run("\"$0\" sessions backup --format json other.db");
    assert_eq!(serde_json::from_str::<Json>(&printed).unwrap(), json!({"file": "other.db"}));
    let (code, answer, errors) = run("\"$0\" run hello.gram 'Please greet me' --session bob --store copy.db");
    assert_eq!((code, answer.as_str()), (0, "Hello, Bob!\n"), "{errors}");
    // The original is as it was.
    assert!(!run("\"$0\" sessions show bob").1.contains("Please greet me"));
}

#[test]
fn old_sessions_are_deleted_and_others_copied() {
    let folder = project("echo worked");
    assert_eq!(shell(&folder, "$0 run hello.gram 'Hello! My name is Ada.' --store a.db").0, 0);
    let (code, out, err) = shell(&folder, "$0 store --store a.db");
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("1 session, "), "{out}");
    let (code, out, err) = shell(&folder, "sleep 0.1; $0 store prune --older-than 10ms --store a.db");
    assert_eq!((code, out.lines().count(), err.as_str()), (0, 1, "--delete deletes 1 session permanently\n"));
    assert_eq!(
        shell(&folder, "$0 store copy b.db --store a.db"),
        (0, String::new(), "copied 1 session to `sqlite:b.db`\n".to_owned())
    );
    let (_, out, _) = shell(&folder, "$0 store copy b.db --store a.db --format json");
    assert_eq!(serde_json::from_str::<Json>(&out).unwrap(), json!({"copied": 0, "alreadyThere": 1, "differing": []}));
    // What was continued there is kept.
    assert_eq!(shell(&folder, "$0 run hello.gram Hello --continue --store b.db").0, 0);
    let (code, _, err) = shell(&folder, "$0 store copy b.db --store a.db");
    assert_eq!(code, 1);
    assert!(err.contains("which differs there"), "{err}");

    let (code, _, err) = shell(&folder, "$0 store prune --older-than 10ms --delete --store a.db");
    assert_eq!((code, err.as_str()), (0, "deleted 1 session\n"));
    let (code, _, err) = shell(&folder, "$0 store vacuum --store a.db");
    assert_eq!(code, 0, "{err}");
    let (_, out, _) = shell(&folder, "$0 store --store a.db --format json");
    assert_eq!(serde_json::from_str::<Json>(&out).unwrap()["sessions"], 0);
    let (code, _, err) = shell(&folder, "$0 store prune --older-than soon --store a.db");
    assert_eq!(code, 2);
    assert!(err.contains("write a time above 0, such as 90d or 12h"), "{err}");
}

#[test]
fn runs_at_once_are_limited_by_open_files() {
    let folder = project("true");
    let case = json!({"id": "bob", "input": "Hello! My name is Bob.", "checks": [{"contains": "Bob"}]}).to_string();
    folder.write("cases.jsonl", case);
    let (code, stdout, errors) =
        shell(&folder, "ulimit -n 128; \"$0\" eval hello.gram -c cases.jsonl --repeats 50 --concurrency 1000");
    let expected = "warning: running 16 at once instead of 1000: only 128 open files are allowed (`ulimit -n`)";
    assert!(errors.contains(expected), "{errors}");
    assert!(code == 0 && stdout.contains("passed 50 of 50"), "{stdout}{errors}");
    // The soft limit is raised if the hard limit allows it.
    let (code, _, errors) =
        shell(&folder, "ulimit -Sn 128; \"$0\" eval hello.gram -c cases.jsonl --repeats 50 --concurrency 100");
    assert!(code == 0 && !errors.contains("at once"), "{errors}");
}

/// Starts the program with a server as its store that accepts connections and never answers.
fn start(folder: &Folder, arguments: &[&str], server: &TcpListener) -> Child {
    let store = format!("postgres://ada@127.0.0.1:{}/patter", server.local_addr().unwrap().port());
    let mut command = folder.command();
    command.args(arguments).args(["--store", &store]).stdin(Stdio::null());
    command.spawn().unwrap()
}

/// Waits for the program to end, and returns its exit code and what it printed on stderr.
fn wait(mut child: Child, since: Instant) -> (Option<i32>, String) {
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if since.elapsed() > SOON {
            child.kill().unwrap();
            panic!("the program does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    (status.code(), errors)
}

#[test]
fn server_that_never_answers_does_not_delay_the_end() {
    let folder = project("true");
    folder.write("cases.jsonl", json!({"id": "bob", "input": "Hello!"}).to_string());
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let run: &[&str] = &["run", "hello.gram", "Hello!"];
    let eval: &[&str] = &["eval", "hello.gram", "-c", "cases.jsonl"];
    for (arguments, signal) in [(run, Signal::INT), (run, Signal::TERM), (eval, Signal::INT), (eval, Signal::TERM)] {
        let child = start(&folder, arguments, &server);
        let connection = server.accept().unwrap();
        let since = Instant::now();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let (code, errors) = wait(child, since);
        assert!(code.is_none_or(|code| code != 0), "{arguments:?} {signal:?}: {errors}");
        drop(connection);
    }
    let since = Instant::now();
    let child = start(&folder, &["run", "hello.gram", "Hello!", "--timeout", "1s"], &server);
    let (code, errors) = wait(child, since);
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("the session store did not answer within the time limit of the turn"), "{errors}");
}
