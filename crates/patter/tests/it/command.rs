//! Command tools with real processes.

use patter::declare::CommandSpec;
use patter::tool::command::command_tool;
use patter::tool::{Definition, Effect, Tool, ToolContext, ToolFailure, ToolKind};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

const SECRET: &str = "tok-ABCDEFGHIJKLMNOP";

/// Looks up a variable in the test environment.
fn variable(name: &str) -> Option<String> {
    match name {
        "PATH" => std::env::var("PATH").ok(),
        "HOME" => Some("/home/ada".to_owned()),
        "TOKEN" => Some(SECRET.to_owned()),
        "PIN" => Some("90210".to_owned()),
        "EMPTY" => Some(String::new()),
        "PLAIN" => Some("a plain value".to_owned()),
        _ => None,
    }
}

pub(crate) fn tool_in(root: &Path, run: &[&str], more: &str, signature: &str) -> Tool {
    let run: Vec<_> = run.iter().map(|element| patter::gram::quote(element)).collect();
    let text = format!("[tool:Command {{ run: [{}] {more} }} | {signature}]", run.join(", "));
    let (tree, diagnostics) = patter::gram::parse(&text);
    assert!(diagnostics.is_empty(), "{diagnostics:?}\n{text}");
    let definition = Definition::new("tool", "Does it", signature).unwrap();
    let spec = CommandSpec::read(tree.patterns().next().unwrap(), &definition.signature).unwrap();
    command_tool(definition, spec, root, Arc::new(variable))
}

/// Calls a tool, and returns its result and progress messages.
pub(crate) async fn call(tool: &Tool, arguments: Json) -> (Result<Json, ToolFailure>, Vec<String>) {
    let messages = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&messages);
    let context =
        ToolContext::new("1").with_progress(Arc::new(move |progress| listener.lock().unwrap().push(progress.message)));
    let call = tool.implementation.call(arguments, &context);
    let result = tokio::time::timeout(Duration::from_secs(60), call).await.expect("the call hangs");
    let messages = messages.lock().unwrap().clone();
    (result, messages)
}

async fn check(run: &[&str], more: &str, signature: &str, arguments: Json, expected: Json) {
    let (result, _) = call(&tool_in(Path::new("/"), run, more, signature), arguments).await;
    assert_eq!(result.unwrap(), expected, "{run:?} {more}");
}

async fn fails(run: &[&str], more: &str, signature: &str, arguments: Json, message: &str) -> String {
    let (result, _) = call(&tool_in(Path::new("/"), run, more, signature), arguments).await;
    let failure = result.expect_err(message);
    assert_eq!(failure.message(), message, "{run:?} {more}");
    failure.detail().unwrap_or_default().to_owned()
}

/// Prints each argument in angle brackets.
const SHOW: [&str; 4] = ["sh", "-c", r#"for a in "$@"; do printf '<%s>' "$a"; done"#, "sh"];

async fn shows(elements: &[&str], more: &str, signature: &str, arguments: Json, expected: &str) {
    check(&[&SHOW, elements].concat(), more, signature, arguments, json!(expected)).await;
}

#[tokio::test]
async fn passes_each_element_as_one_argument() {
    let one = "(a::Text)==>(::Text)";
    for text in [
        "two words",
        "it's \"quoted\"",
        "line\nbreak\n",
        "$HOME `id` ;|&>*?~\\",
        "Grüße 🎈 日本",
        "",
        " ",
        "{b}",
        "a -b",
    ] {
        shows(&["{a}"], "", one, json!({ "a": text }), &format!("<{text}>")).await;
        shows(&["--x={a}", "y"], "", one, json!({ "a": text }), &format!("<--x={text}><y>")).await;
    }
    let many = "(a::Any {optional: true})==>(b::Any {optional: true})==>(::Text)";
    for (elements, arguments, expected) in [
        (&["{a}"][..], json!({"a": ["x y", 1, null, {"k": [true]}, ""]}), "<x y><1><{\"k\":[true]}><>"),
        (&["{a}", "end"], json!({}), "<end>"),
        (&["{a}", "end"], json!({"a": null}), "<end>"),
        (&["{a}", "end"], json!({"a": []}), "<end>"),
        (&["--limit={a}", "end"], json!({}), "<end>"),
        (&["--limit={a}", "end"], json!({"a": 3}), "<--limit=3><end>"),
        (&["{a}:{b}"], json!({"a": 1.5, "b": [1, 2]}), "<1.5:[1,2]>"),
        (&["{{a}}", "${PLAIN}"], json!({}), "<{a}><[redacted]>"),
    ] {
        shows(elements, "", many, arguments, expected).await;
    }
}

#[tokio::test]
async fn rejects_arguments_that_look_like_options() {
    let signature = "(a::Any)==>(b::Text {default: ''})==>(::Text)";
    let message = "`a` would be treated as an option, because the argument would start with `-`";
    for (elements, a) in [
        ("{a}", json!("-rf")),
        ("{a}", json!("-")),
        ("{a}", json!("--")),
        ("{a}", json!(-1)),
        ("{a}", json!(["fine", "-x"])),
        ("{a}-{b}", json!("")),
        ("${EMPTY}{a}", json!("--all")),
    ] {
        let run = [&SHOW[..], &[elements]].concat();
        let detail = fails(&run, "", signature, json!({"a": a, "b": "x"}), message).await;
        assert!(detail.contains("put `--` before"), "{detail}");
        let rendered = elements.replace("${EMPTY}", "");
        let texts: Vec<_> = a.as_array().cloned().unwrap_or_else(|| vec![a.clone()]);
        let expected: String = texts
            .iter()
            .map(|text| text.as_str().map_or(text.to_string(), str::to_owned))
            .map(|text| format!("<{}>", rendered.replace("{a}", &text).replace("{b}", "x")))
            .collect();
        shows(&[elements], ", dashes: allow", signature, json!({"a": a, "b": "x"}), &expected).await;
        shows(&["--", elements], "", signature, json!({"a": a, "b": "x"}), &format!("<-->{expected}")).await;
    }
    shows(&["x{a}", "-{a}"], "", signature, json!({"a": "-y"}), "<x-y><--y>").await;
}

#[tokio::test]
async fn reports_why_a_command_cannot_run() {
    let one = "(a::Text)==>(::Text)";
    let nul = "`a` contains a NUL byte, which a command cannot receive as an argument";
    fails(&["echo", "{a}"], "", one, json!({"a": "x\0y"}), nul).await;
    fails(&["echo", "{a}"], "", "(a::Any)==>(::Text)", json!({"a": ["x\0y"]}), nul).await;
    fails(&["echo"], ", env: { X: \"{a}\" }", one, json!({"a": "\0"}), nul).await;
    let detail = fails(
        &["echo", "${NOPE}"],
        "",
        "()==>(::Text)",
        json!({}),
        "the tool needs the environment variable `NOPE`, which is not set",
    )
    .await;
    assert_eq!(detail, "set `NOPE` in the environment, or in `.env`");
    let detail =
        fails(&["no-such-program"], "", "()==>(::Text)", json!({}), "the program `no-such-program` was not found")
            .await;
    assert!(detail.contains("looked in PATH: "), "{detail}");
    fails(&["./no/such"], "", "()==>(::Text)", json!({}), "the program `./no/such` was not found").await;
    fails(&["/etc/passwd"], "", "()==>(::Text)", json!({}), "permission denied to run `/etc/passwd`").await;
    let missing = "cannot run the command: the folder `no/such` does not exist";
    let detail = fails(&["true"], ", cwd: 'no/such'", "()==>(::Text)", json!({}), missing).await;
    assert_eq!(detail, "looked for /no/such");
    let long = "x".repeat(4 << 20);
    fails(&["echo", "{a}"], "", one, json!({"a": long}), "the arguments are too long for a command").await;

    let folder = TempDir::new().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (result, _) = call(&tool_in(folder.path(), &["./script"], "", "()==>(::Text)"), json!({})).await;
    assert_eq!(result.unwrap_err().message(), "cannot run `./script`: the interpreter in its first line was not found");
}

#[tokio::test]
async fn reads_output_according_to_the_signature() {
    let printf = |text: &'static str| ["printf", text];
    for (output, more, returns, expected) in [
        ("two\\n\\n", "", "Text", json!("two\n")),
        ("win\\r\\n", "", "Text", json!("win")),
        ("42", "", "Text", json!("42")),
        (" 42\\n", "", "Int", json!(42)),
        ("{{\"a\": [1]}}", "", "Any", json!({"a": [1]})),
        ("[1]", ", result: text", "Any", json!("[1]")),
        ("\"x\"", ", result: \"json\"", "Text", json!("x")),
        ("whatever", ", result: exit", "Int", json!(0)),
        ("", "", "Text", json!("")),
    ] {
        check(&printf(output), more, &format!("()==>(::{returns})"), json!({}), expected).await;
    }
    let invalid = "the output of the command is not valid JSON: ";
    for (output, reason) in
        [("", "it is empty"), ("\\377", "it is not UTF-8"), ("four", "expected ident at line 1 column 2")]
    {
        let detail = fails(&printf(output), "", "()==>(::Int)", json!({}), &format!("{invalid}{reason}")).await;
        assert!(detail.starts_with("stdout: "), "{detail}");
    }
    let (result, messages) = call(&tool_in(Path::new("/"), &printf("a\\377b"), "", "()==>(::Text)"), json!({})).await;
    assert_eq!(result.unwrap(), "a\u{fffd}b");
    assert_eq!(messages, ["the output of the command is not UTF-8; invalid bytes are replaced by `\u{fffd}`"]);
}

#[tokio::test]
async fn treats_exit_codes_as_failures_unless_declared() {
    let sh = |script: &'static str| ["sh", "-c", script];
    let none = "()==>(::Text)";
    fails(&sh("exit 3"), "", none, json!({}), "the command failed with exit code 3").await;
    let detail = fails(
        &sh("echo first >&2; printf '\\033[31mno\\tluck\\007\\033[0m\\n' >&2; exit 1"),
        "",
        none,
        json!({}),
        "the command failed with exit code 1: first\nno luck",
    )
    .await;
    assert!(detail.starts_with("stderr: first\n\u{1b}[31mno"), "{detail:?}");
    let (result, _) = call(
        &tool_in(
            Path::new("/"),
            &sh("i=0; while [ $i -lt 999 ]; do echo line $i >&2; i=$((i+1)); done; exit 9"),
            "",
            none,
        ),
        json!({}),
    )
    .await;
    let failure = result.unwrap_err();
    assert!(failure.message().starts_with("the command failed with exit code 9: …line 9"), "{failure:?}");
    assert!(failure.message().ends_with("line 998") && failure.message().chars().count() < 350, "{failure:?}");
    let detail = failure.detail().unwrap();
    assert!(
        detail.starts_with("the end of stderr: ") && detail.len() > 8000 && detail.len() < 9000,
        "{}",
        detail.len()
    );
    fails(&sh("kill -9 $$"), "", none, json!({}), "the command was killed by signal 9 (SIGKILL)").await;
    fails(&sh("kill -15 $$"), "", none, json!({}), "the command was killed by signal 15 (SIGTERM)").await;

    let errors = ", errors: { `1`: \"nothing matches {a}\" }";
    let one = "(a::Text)==>(::Text)";
    let grep = ["grep", "--", "{a}", "/dev/null"];
    fails(&grep, errors, one, json!({"a": "x y"}), "nothing matches x y").await;
    check(&grep, ", succeeds: [0, 1]", one, json!({"a": "x"}), json!("")).await;
    check(&sh("exit 7"), ", result: exit", "()==>(::Int)", json!({}), json!(7)).await;
    let failed = "the command failed with exit code 7";
    fails(&sh("exit 7"), ", result: exit, succeeds: [0, 1]", "()==>(::Int)", json!({}), failed).await;
    fails(&sh("exit 0"), ", errors: { `0`: \"too good\" }", none, json!({}), "too good").await;
}

#[tokio::test]
async fn writes_stdin_while_reading_output() {
    let one = "(a::Any {optional: true})==>(::Text)";
    let large = "0123456789abcdef".repeat(1 << 18);
    let more = ", stdin: \"{a}\", maxBytes: 8388608";
    check(&["cat"], more, one, json!({"a": large}), json!(large)).await;
    check(&["echo", "did not read"], more, one, json!({"a": large}), json!("did not read")).await;
    check(&["sh", "-c", "exec <&-; echo closed"], more, one, json!({"a": large}), json!("closed")).await;
    check(&["cat"], more, one, json!({"a": {"b": [1, null]}}), json!("{\"b\":[1,null]}")).await;
    check(&["cat"], more, one, json!({"a": "nul \0 is fine"}), json!("nul \0 is fine")).await;
    check(&["cat"], more, one, json!({}), json!("")).await;
    check(&["cat"], ", stdin: \"none\"", "()==>(::Text)", json!({}), json!("")).await;
    check(&["cat"], "", "()==>(::Text)", json!({}), json!("")).await;
    check(&["cat"], ", stdin: \"<{a}>\"", one, json!({"a": 1}), json!("<1>")).await;
}

#[tokio::test]
async fn stops_commands_that_write_too_much() {
    let limit = "the command was killed: it wrote more than 16777216 bytes";
    fails(&["yes"], ", maxBytes: 1000", "()==>(::Text)", json!({}), limit).await;
    check(
        &["head", "-c", "1000", "/dev/zero"],
        ", maxBytes: 1000",
        "()==>(::Text)",
        json!({}),
        json!("\0".repeat(1000)),
    )
    .await;
    let script = "head -c 9000000 /dev/zero | tr '\\0' x >&2; echo done";
    check(&["sh", "-c", script], "", "()==>(::Text)", json!({}), json!("done")).await;
}

#[tokio::test]
async fn clears_the_environment() {
    let (result, _) = call(&tool_in(Path::new("/"), &["env"], "", "()==>(::Text)"), json!({})).await;
    let shown = result.unwrap();
    let names: Vec<_> =
        shown.as_str().unwrap().lines().filter_map(|line| line.split_once('=')).map(|it| it.0).collect();
    assert_eq!(names, ["HOME", "PATH"]);
    for (env, expected) in [
        ("[\"PLAIN\", \"UNSET\"]", "PLAIN=[redacted]"),
        ("{ GREETING: \"hi {a}\", HOME: \"/tmp\" }", "GREETING=hi you\nHOME=/tmp"),
        ("{ GONE: \"{b}\", EMPTY: \"\" }", "EMPTY="),
        ("{ T: \"Bearer ${TOKEN}\" }", "T=Bearer [redacted]"),
        ("[\"TOKEN\"]", "TOKEN=[redacted]"),
    ] {
        let signature = "(a::Text)==>(b::Text {optional: true})==>(::Text)";
        let tool = tool_in(Path::new("/"), &["env"], &format!(", env: {env}"), signature);
        let result = call(&tool, json!({"a": "you"})).await.0.unwrap();
        let mut lines: Vec<_> = result.as_str().unwrap().lines().filter(|line| !line.starts_with("PATH=")).collect();
        lines.retain(|line| *line != "HOME=/home/ada");
        lines.sort_unstable();
        assert_eq!(lines.join("\n"), expected);
    }
}

#[tokio::test]
async fn runs_in_the_root_or_a_folder_of_it() {
    let root = TempDir::new().unwrap();
    let path = root.path().canonicalize().unwrap();
    std::fs::create_dir(path.join("sub")).unwrap();
    std::fs::write(path.join("where"), "#!/bin/sh\npwd\n").unwrap();
    std::fs::set_permissions(path.join("where"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (more, folder) in [("", path.clone()), (", cwd: \"sub\"", path.join("sub"))] {
        let result = call(&tool_in(&path, &["./where"], more, "()==>(::Text)"), json!({})).await.0;
        assert_eq!(result.unwrap(), folder.to_str().unwrap());
    }
}

#[tokio::test]
async fn redacts_secrets() {
    let env = ", env: { T: \"${TOKEN}\", P: \"${PIN}\" }";
    let sh = |script| ["sh", "-c", script];
    check(&sh("echo a $T b $T"), env, "()==>(::Text)", json!({}), json!("a [redacted] b [redacted]")).await;
    let printed = "printf '{{\"%s\": [\"x%s\", %s]}}' $T $T $P";
    let expected = json!({"[redacted]": ["x[redacted]", "[redacted]"]});
    check(&sh(printed), env, "()==>(::Any)", json!({}), expected).await;
    let failed = "the command failed with exit code 1: bad [redacted]";
    let detail = fails(&sh("echo bad $T >&2; exit 1"), env, "()==>(::Text)", json!({}), failed).await;
    assert_eq!(detail, "stderr: bad [redacted]");
    let missing = "the program `[redacted]` was not found";
    fails(&["${TOKEN}"], "", "()==>(::Text)", json!({}), missing).await;

    // Only the end of stderr is kept, which may start within a secret.
    for before in (8150..8250).step_by(7) {
        let script = format!("printf 'start %s' $T >&2; head -c {before} /dev/zero | tr '\\0' x >&2; exit 1");
        let tool = tool_in(Path::new("/"), &["sh", "-c", &script], env, "()==>(::Text)");
        let failure = call(&tool, json!({})).await.0.unwrap_err();
        let detail = failure.detail().unwrap();
        assert!(!(4..SECRET.len()).any(|at| detail.contains(&SECRET[at..])), "{before}: {detail}");
        assert!(detail.len() > 8000, "{before}: {}", detail.len());
    }
}

#[test]
fn applies_declared_properties_to_the_tool() {
    let more = ", timeout: 250ms, effect: reads, sealed: true, concurrency: 2";
    let tool = tool_in(Path::new("/"), &["true"], more, "()==>(::Text)");
    assert_eq!(
        (tool.kind, tool.effect, tool.idempotent, tool.timeout, tool.concurrency, tool.sealed),
        (ToolKind::Command, Effect::Reads, true, Duration::from_millis(250), Some(2), true)
    );
    let tool = tool_in(Path::new("/"), &["true"], ", effect: pure, idempotent: false", "()==>(::Text)");
    assert_eq!((tool.effect, tool.idempotent, tool.sealed), (Effect::Pure, false, false));
    assert_eq!(tool_in(Path::new("/"), &["true"], "", "()==>(::Text)").effect, Effect::Writes);
}

/// Programs that embed the library have sandboxes too, without a supervisor.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_sandbox_restricts_the_command() {
    let support = patter::tool::sandbox::SandboxSupport::detect();
    if support.gap().is_some() {
        eprintln!("skipped: this system does not enforce sandboxes ({})", support.describe());
        return;
    }
    let root = TempDir::new().unwrap();
    std::fs::create_dir(root.path().join("out")).unwrap();
    let script = "echo x > a 2>/dev/null && echo through; echo x > out/b && echo allowed; \
                  perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0) and print \"through\n\"'; \
                  kill -0 $PPID 2>/dev/null && echo through; true";
    let sandbox = ", sandbox: 'read-only', writable: ['out']";
    let tool = tool_in(root.path(), &["sh", "-c", script], sandbox, "()==>(::Text)");
    assert_eq!(tool.sandbox.as_ref().unwrap().to_string(), "read-only, no network, writable out");
    assert_eq!(call(&tool, json!({})).await.0.unwrap(), "allowed");
    // This thread, and what it starts later, is not restricted.
    let free = tool_in(root.path(), &["sh", "-c", "echo x > a && echo allowed"], "", "()==>(::Text)");
    assert_eq!(call(&free, json!({})).await.0.unwrap(), "allowed");
    let missing =
        tool_in(root.path(), &["true"], ", sandbox: 'read-only', writable: ['no-such-folder']", "()==>(::Text)");
    let failure = call(&missing, json!({})).await.0.unwrap_err();
    assert!(failure.message().contains("no-such-folder` does not exist"), "{}", failure.message());
}

/// An output beyond `maxBytes` is cut, and kept as a whole. A secret at the cut is not revealed.
#[tokio::test]
async fn cuts_large_outputs_and_keeps_them() {
    let read = patter::tool::standard::tools().into_iter().find(|(_, tool)| tool.name() == "read").unwrap().1;
    let find = patter::tool::standard::tools().into_iter().find(|(_, tool)| tool.name() == "find").unwrap().1;
    let context = ToolContext::new("1");
    let script = ["sh", "-c", "yes line | head -n 10000; printf $TOKEN; yes more | head -n 10000; echo needle"];
    for limit in [1000, 50_002] {
        let tool = tool_in(Path::new("/"), &script, &format!(", env: ['TOKEN'], maxBytes: {limit}"), "()==>(::Text)");
        let shown = call(&tool, json!({})).await.0.unwrap();
        let shown = shown.as_str().unwrap();
        let (start, note) = shown.rsplit_once("\n\n[cut: ").unwrap();
        assert_eq!(start.len(), limit);
        let kept = note.split('"').nth(1).unwrap();
        let mut whole = String::new();
        let mut next = Some(0);
        while let Some(from) = next {
            let arguments = json!({"kept": kept, "start": from, "length": 40_000});
            let part = read.implementation.call(arguments, &context).await.unwrap();
            whole.push_str(part["text"].as_str().unwrap());
            next = part["next"].as_u64();
        }
        let expected = format!("{}[redacted]{}needle", "line\n".repeat(10_000), "more\n".repeat(10_000));
        assert!(whole == expected && whole.starts_with(start), "{} {}", whole.len(), expected.len());
        let arguments = json!({"text": kept, "pattern": "need.*", "limit": 10});
        let found = find.implementation.call(arguments, &context).await.unwrap();
        assert_eq!(found["matches"][0]["text"], "needle");
    }
    let tool = tool_in(Path::new("/"), &["sh", "-c", "yes 1 | head -n 1000"], ", maxBytes: 100", "()==>(::Int)");
    let failure = call(&tool, json!({})).await.0.unwrap_err();
    let expected = "the result has 1999 bytes, more than the 100 that are returned at once; read it with `text/read`, ";
    assert!(failure.message().starts_with(expected), "{failure:?}");
    let unknown = read.implementation.call(json!({"kept": "kept-1", "start": 0, "length": 1}), &context).await;
    let expected = "no result is kept as `kept-1`; call the tool that returned it again";
    assert_eq!(unknown.unwrap_err().message(), expected);
}
