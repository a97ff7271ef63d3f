//! Hooks before and after calls.

use patter::library::Layer;
use patter::permission::{Permissions, Rule};
use patter::project::{Config, Environment, Project, Tools};
use patter::tool::{
    CallRequest, CancellationToken, Executor, Hook, HookStage, HookVerdict, Tool, ToolEvent, ToolFailure, Workspace,
    merge,
};
use serde_json::{Value as Json, json};
use std::fs as real;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// Returns an executor for a tool that counts its calls.
fn executor(hooks: impl IntoIterator<Item = Hook>) -> (Executor, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&count);
    let tool = Tool::native("add", "Adds", "(n::Int {default: 1})==>(::Int)", move |arguments, _| {
        let calls = Arc::clone(&calls);
        async move {
            calls.fetch_add(1, Ordering::SeqCst);
            match arguments["n"].as_i64() {
                Some(13) => Err(ToolFailure::new("unlucky")),
                n => Ok(json!(n.unwrap() + 1)),
            }
        }
    });
    let workspace = Workspace::builder().toolbox("math", |toolbox| toolbox.tool(tool.unwrap())).build().unwrap();
    let workspace = hooks.into_iter().fold(workspace, |workspace, hook| workspace.with_hook(&hook));
    let library = merge([(Layer::Project, workspace)]).unwrap();
    let allow = Rule::parse("allow *", "the test").unwrap();
    (Executor::new(library.into(), Permissions::default().with(allow)), count)
}

async fn call(executor: &Executor, arguments: Json) -> Result<Json, String> {
    executor.call(CallRequest::new("math/add", arguments)).await.map_err(|error| format!("{}: {error}", error.kind()))
}

#[tokio::test]
async fn functions_decide_in_order() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noting = |stage, calls: &str, name: &'static str, reason: Option<&'static str>| {
        let seen = Arc::clone(&seen);
        let note = move |call: patter::tool::HookCall| {
            seen.lock().unwrap().push(format!("{name} {}", call.to_json()));
            async move { Ok(reason.map_or(HookVerdict::Allow, HookVerdict::refuse)) }
        };
        Hook::native(stage, calls, name, note).unwrap()
    };
    let (executor, count) = executor([
        noting(HookStage::Before, "add", "first", None),
        noting(HookStage::Before, "math/* when n > 10", "large", Some("too large")),
        noting(HookStage::Before, "*", "last", None),
        noting(HookStage::After, "math/add", "after", None),
        noting(HookStage::After, "add when n is 5", "withhold", Some("five")),
        noting(HookStage::Before, "other/*", "other", Some("never")),
    ]);
    assert_eq!(call(&executor, json!({})).await, Ok(json!(2)));
    let document = |stage: &str, rest: &str| {
        format!(r#"{{"version":1,"stage":"{stage}","tool":"math/add","callId":"","arguments":{{"n":1}}{rest}}}"#)
    };
    let expected = [
        format!("first {}", document("before", "")),
        format!("last {}", document("before", "")),
        format!("after {}", document("after", r#","result":2"#)),
    ];
    assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), expected);

    let refused = "permission_denied: the call to `math/add` is not permitted: the hook `large` refused it: too large";
    assert_eq!(call(&executor, json!({"n": 11})).await, Err(refused.to_owned()));
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert_eq!(seen.lock().unwrap().len(), 2);

    let withheld = "failed: `math/add` failed: the call was made, but its result is withheld: \
        the hook `withhold` refused it: five";
    assert_eq!(call(&executor, json!({"n": 5})).await, Err(withheld.to_owned()));
    assert_eq!(count.load(Ordering::SeqCst), 2);
    // Invalid calls reach no hook.
    seen.lock().unwrap().clear();
    assert!(call(&executor, json!({"n": "x"})).await.unwrap_err().starts_with("invalid_input"));
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_hook_sees_errors_after_the_call() {
    let seen = Arc::new(Mutex::new(None));
    let log = Arc::clone(&seen);
    let hook = Hook::native(HookStage::After, "add", "log", move |call| {
        *log.lock().unwrap() = call.outcome.clone();
        async { Ok(HookVerdict::Allow) }
    });
    let (executor, _) = executor([hook.unwrap()]);
    assert!(call(&executor, json!({"n": 13})).await.unwrap_err().ends_with("unlucky"));
    assert_eq!(*seen.lock().unwrap(), Some(Err("`math/add` failed: unlucky".to_owned())));
}

#[tokio::test]
async fn a_hook_that_fails_refuses() {
    let failing =
        Hook::native(HookStage::Before, "add", "failing", |_| async { Err(ToolFailure::new("no luck")) }).unwrap();
    let panicking = Hook::native(HookStage::Before, "add", "panicking", |_| async { panic!("oh") }).unwrap();
    let slow = Hook::native(HookStage::Before, "add", "slow", |_| std::future::pending()).unwrap();
    for (hook, expected) in [
        (failing, "the hook `failing` failed: no luck"),
        (panicking, "the hook `panicking` failed: it panicked"),
        (slow.timeout(Duration::from_millis(20)), "the hook `slow` failed: it did not finish within 20 ms"),
    ] {
        let (executor, count) = executor([hook.clone()]);
        let error = call(&executor, json!({})).await.unwrap_err();
        assert!(error.ends_with(expected), "{error}");
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn a_call_can_be_cancelled_while_a_hook_runs() {
    let slow = Hook::native(HookStage::Before, "add", "slow", |_| std::future::pending()).unwrap();
    let (executor, _) = executor([slow.timeout(Duration::from_secs(600))]);
    let cancellation = CancellationToken::new();
    let request = CallRequest { cancellation: cancellation.clone(), ..CallRequest::new("math/add", json!({})) };
    let (result, ()) = tokio::join!(executor.call(request), async { cancellation.cancel() });
    assert_eq!(result.unwrap_err().kind(), "cancelled");
}

#[tokio::test]
async fn reports_what_came_of_hooks() {
    let allow = Hook::native(HookStage::Before, "add", "nod", |_| async { Ok(HookVerdict::Allow) }).unwrap();
    let refuse =
        Hook::native(HookStage::Before, "add", "no", |_| async { Ok(HookVerdict::refuse("not now")) }).unwrap();
    let (executor, _) = executor([allow, refuse]);
    let events = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&events);
    let executor =
        executor.with_listener(move |event: &ToolEvent<'_>| log.lock().unwrap().extend(event.kind.hook_message()));
    call(&executor, json!({})).await.unwrap_err();
    let events = events.lock().unwrap();
    assert!(events[0].starts_with("hook `nod` before the call allowed ("), "{events:?}");
    assert!(events[1].starts_with("hook `no` before the call refused: not now ("), "{events:?}");
}

/// A project with hooks that are scripts.
struct Fixture {
    folder: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        real::write(folder.path().join("notes.txt"), "text").unwrap();
        Self { folder }
    }

    fn script(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        real::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        real::set_permissions(path, real::Permissions::from_mode(0o755)).unwrap();
    }

    fn executor(&self, config: &str) -> Executor {
        let config = Config::parse(config).unwrap();
        let nothing = Project::read::<&str, &str>([]);
        let path = std::env::var("PATH").unwrap();
        let variables = [("PATH", path.as_str()), ("SESAME", "open-sesame"), ("CARGO_PKG_NAME", "hidden")];
        let environment = Environment::from_variables(variables);
        let tools = Tools::read(&nothing, Some(self.folder.path()), &config, &environment).unwrap();
        let allow = Rule::parse("allow *", "the test").unwrap();
        Executor::new(tools.library().unwrap().into(), Permissions::default().with(allow))
    }

    async fn read(&self, executor: &Executor) -> Result<Json, (String, Option<String>)> {
        let call = CallRequest::new("fs/readFile", json!({"path": "./notes.txt"}));
        let result = executor.call(call).await.map(|value| value["content"].clone());
        result.map_err(|error| (error.to_string(), error.detail().map(str::to_owned)))
    }
}

#[tokio::test]
async fn commands_decide_by_exit_code_and_answer() {
    let fixture = Fixture::new();
    let executor = fixture.executor("[[hooks]]\nbefore = [\"readFile when path is 'notes.txt'\"]\nrun = ['./hook']");
    let prefix = "the call to `fs/readFile` is not permitted: the hook `./hook`";
    for (script, expected) in [
        ("cat > seen", Ok(())),
        ("exit 0", Ok(())),
        (r#"echo '{"decision": "allow"}'"#, Ok(())),
        (r#"echo '{"decision": "refuse", "reason": "secret"}'"#, Err("refused it: secret")),
        (r#"echo '{"decision": "refuse"}'"#, Err("refused it: no reason given")),
        ("echo 'not today' >&2; exit 2", Err("refused it: not today")),
        ("exit 2", Err("refused it: no reason given")),
        ("exit 1", Err("failed: it exited with code 1")),
        ("kill -9 $$", Err("failed: it was killed by a signal")),
        ("echo fine", Err("failed: it wrote something to stdout that is not an answer")),
        (r#"echo '{"decision": "maybe"}'"#, Err("failed: it wrote something to stdout that is not an answer")),
        ("yes | head -c 100000", Err("failed: it wrote more than 65536 bytes to stdout")),
    ] {
        fixture.script("hook", script);
        match (fixture.read(&executor).await, expected) {
            (Ok(content), Ok(())) => assert_eq!(content, "text"),
            (Err((message, _)), Err(expected)) => assert_eq!(message, format!("{prefix} {expected}"), "{script}"),
            (found, _) => panic!("{script}: {found:?}"),
        }
    }
    // Any form of the arguments makes the hook run, and it sees what the tool receives.
    let seen: Json = serde_json::from_str(&real::read_to_string(fixture.folder.path().join("seen")).unwrap()).unwrap();
    assert_eq!((&seen["tool"], &seen["stage"]), (&json!("fs/readFile"), &json!("before")));
    assert_eq!(seen["arguments"], json!({"path": "./notes.txt", "fromLine": 1, "lines": 2000}));
    real::remove_file(fixture.folder.path().join("hook")).unwrap();
    let (message, detail) = fixture.read(&executor).await.unwrap_err();
    assert_eq!(message, format!("{prefix} failed: it cannot be started"));
    assert!(detail.unwrap().contains("no such file"));
}

#[tokio::test]
async fn commands_that_take_too_long_are_ended() {
    let fixture = Fixture::new();
    let executor = fixture.executor("[[hooks]]\nbefore = ['fs/*']\nrun = ['./hook']\ntimeout = '200ms'");
    fixture.script("hook", "echo $$ > pid; exec sleep 600");
    let (message, _) = fixture.read(&executor).await.unwrap_err();
    assert!(message.ends_with("failed: it did not finish within 200 ms"), "{message}");
    let pid: i32 = real::read_to_string(fixture.folder.path().join("pid")).unwrap().trim().parse().unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while std::path::Path::new(&format!("/proc/{pid}/fd/0")).exists() {
        assert!(std::time::Instant::now() < deadline, "the hook is still running");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn commands_receive_only_listed_variables_and_reveal_none() {
    let fixture = Fixture::new();
    fixture.script("hook", "echo \"[$SESAME] [$CARGO_PKG_NAME]\" >&2; exit 2");
    let config = "[[hooks]]\nbefore = ['fs/*']\nrun = ['./hook']\n";
    let (message, _) = fixture.read(&fixture.executor(config)).await.unwrap_err();
    assert!(message.ends_with("refused it: [] []"), "{message}");
    let (message, _) = fixture.read(&fixture.executor(&format!("{config}env = ['SESAME']"))).await.unwrap_err();
    assert!(message.ends_with("refused it: [[redacted]] []"), "{message}");
}

#[tokio::test]
async fn the_result_of_a_call_can_be_withheld() {
    let fixture = Fixture::new();
    let executor = fixture.executor("[[hooks]]\nafter = ['fs/readFile']\nrun = ['./hook']");
    fixture.script("hook", "if grep -q '\"content\":\"text\"'; then echo private >&2; exit 2; fi");
    let (message, _) = fixture.read(&executor).await.unwrap_err();
    assert!(message.ends_with("its result is withheld: the hook `./hook` refused it: private"), "{message}");
    real::write(fixture.folder.path().join("notes.txt"), "other").unwrap();
    assert_eq!(fixture.read(&executor).await.unwrap(), "other");
}

/// A model cannot rewrite the hook that restricts it.
#[tokio::test]
async fn tools_cannot_write_hooks() {
    let fixture = Fixture::new();
    fixture.script("hook", "exit 0");
    let executor = fixture.executor("[[hooks]]\nbefore = ['fs/*']\nrun = ['./hook']");
    let arguments = json!({"path": "hook", "content": "#!/bin/sh", "mode": "overwrite"});
    let error = executor.call(CallRequest::new("fs/writeFile", arguments)).await.unwrap_err();
    assert!(error.to_string().ends_with("`hook` configures the project, and tools cannot write it"), "{error}");
}

#[test]
fn invalid_hooks_are_errors_of_the_configuration() {
    let check = |text: &str, expected: &str| {
        assert_eq!(Config::parse(&format!("[[hooks]]\n{text}")).unwrap_err(), expected);
    };
    let example = "for example, `before = [\"fs/*\"]` and `run = [\"./check.sh\"]`";
    check("before = ['fs/*']", &format!("a hook has nothing to run; {example}"));
    check("run = ['a', 'b']", &format!("the hook `a b` has neither `before` nor `after`; {example}"));
    let names = "use a full name, such as `fs/writeFile`, or all tools of a toolbox, such as `fs/*`";
    check("run = ['a']\nbefore = ['fs//x']", &format!("the hook `a`: `fs//x` is not a tool name or pattern; {names}"));
    check(
        "run = ['a']\nafter = ['x']\ntimeout = 'soon'",
        "the hook `a`: `soon` is not a time limit; for example, `timeout = \"5s\"`",
    );
}
