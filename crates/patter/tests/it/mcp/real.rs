//! Tools of real servers.

use super::{call, installed, is_alive, node, pid, quoted, server, shell, tool, until};
use patter::check::{Options, check};
use patter::message::conversation::ToolOutcome;
use patter::project::Project;
use patter::tool::mcp::declarations;
use patter::tool::{Effect, Progress, ToolContext, ToolKind};
use serde_json::json;
use std::fs;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

#[tokio::test]
async fn lists_and_calls_tools() {
    let Some(program) = installed("server-everything") else { return };
    let server = node(&program, "");
    let listing = server.tools().await.unwrap();
    assert_eq!(listing.warnings, []);
    let echo = listing.tools.iter().find(|tool| tool.name() == "echo").unwrap();
    assert_eq!((echo.kind, echo.effect, echo.idempotent), (ToolKind::Mcp, Effect::Reads, true));
    assert_eq!(&*echo.source, "MCP server demo");
    assert_eq!(
        echo.definition.to_string(),
        "[echo:Tool { description: \"Echoes back the input string\" } | (message::Text { description: \"Message to echo\" })==>(::Any)]"
    );
    for (name, arguments, expected) in [
        ("echo", json!({"message": "hello"}), json!("Echo: hello")),
        ("get-sum", json!({"a": 2, "b": 40}), json!("The sum of 2 and 40 is 42.")),
        (
            "get-structured-content",
            json!({"location": "Chicago"}),
            json!({"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}),
        ),
    ] {
        assert_eq!(call(&server, name, arguments).await.unwrap(), expected, "{name}");
    }
    let image = call(&server, "get-tiny-image", json!({})).await.unwrap();
    assert_eq!(image[1]["type"], "image");
    assert_eq!((&image[1]["mimeType"], &image[1]["data"].as_str().unwrap()[..4]), (&json!("image/png"), "iVBO"));
    let shown = ToolOutcome::Value { value: image.clone() }.text();
    assert!(shown.contains("\"bytes\":") && !shown.contains("iVBO"), "{shown}");
    // The executor would reject wrong arguments; here the server does.
    let wrong = call(&server, "echo", json!({})).await.unwrap_err();
    assert!(wrong.message().contains("message"), "{wrong:?}");
}

#[tokio::test]
async fn reads_resources_and_prompts() {
    let Some(program) = installed("server-everything") else { return };
    let server = node(&program, "");
    let resources = call(&server, "list_resources", json!({})).await.unwrap();
    let uri = resources["resources"][0]["uri"].as_str().unwrap();
    assert!(!resources["templates"].as_array().unwrap().is_empty(), "{resources}");
    let read = call(&server, "read_resource", json!({"uri": uri})).await.unwrap();
    assert!(read["text"].as_str().unwrap().len() > 10, "{read}");
    let missing = call(&server, "read_resource", json!({"uri": "demo://none"})).await.unwrap_err();
    assert!(missing.message().starts_with("the MCP server `demo` returned an error: "), "{missing:?}");
    let prompts = call(&server, "list_prompts", json!({})).await.unwrap();
    let named = |name: &str| prompts.as_array().unwrap().iter().any(|prompt| prompt["name"] == name);
    assert!(named("simple-prompt") && named("args-prompt"), "{prompts}");
    let arguments = json!({"name": "args-prompt", "arguments": {"city": "Bern"}});
    let prompt = call(&server, "get_prompt", arguments).await.unwrap();
    assert!(prompt["messages"][0]["content"]["text"].as_str().unwrap().contains("Bern"), "{prompt}");
    let tool = tool(&server, "read_resource").await;
    assert_eq!((tool.effect, tool.idempotent), (Effect::Network, true));

    let without = node(&program, "resources = false\nexcept = ['list_prompts']");
    let names: Vec<_> = without.tools().await.unwrap().tools.iter().map(|tool| tool.name().to_owned()).collect();
    let left_out = ["list_resources", "read_resource", "list_prompts"];
    assert!(!names.iter().any(|name| left_out.contains(&name.as_str())), "{names:?}");
    assert!(names.iter().any(|name| name == "get_prompt"), "{names:?}");
}

#[tokio::test]
async fn reads_files_in_allowed_folders() {
    let Some(program) = installed("server-filesystem") else { return };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::write(root.join("note.txt"), "remember").unwrap();
    let server = server(&format!("command = 'node'\nargs = [{}, {}]", quoted(&program), quoted(&root)));
    let note = json!({"path": root.join("note.txt")});
    assert_eq!(call(&server, "read_text_file", note).await.unwrap(), json!({"content": "remember"}));
    let denied = call(&server, "read_text_file", json!({"path": "/etc/hostname"})).await.unwrap_err();
    assert!(denied.message().starts_with("Access denied - path outside allowed directories"), "{denied:?}");
    let written = tool(&server, "write_file").await;
    assert_eq!((written.effect, written.idempotent), (Effect::Writes, true));
}

#[tokio::test]
async fn reports_progress() {
    let Some(program) = installed("server-everything") else { return };
    let server = node(&program, "");
    let events = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&events);
    let context =
        ToolContext::new("call").with_progress(Arc::new(move |progress| listener.lock().unwrap().push(progress)));
    let tool = tool(&server, "trigger-long-running-operation").await;
    let done = tool.implementation.call(json!({"duration": 0.4, "steps": 4}), &context).await.unwrap();
    assert_eq!(done, json!("Long running operation completed. Duration: 0.4 seconds, Steps: 4."));
    let fractions: Vec<_> =
        events.lock().unwrap().iter().map(|progress: &Progress| progress.fraction.unwrap()).collect();
    assert!(!fractions.is_empty() && fractions.is_sorted() && fractions.iter().all(|it| (0.0..=1.0).contains(it)));
}

#[tokio::test]
async fn cancels_a_dropped_call_at_the_server() {
    let Some(program) = installed("server-everything") else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = shell("tee $1/sent | node $0", &program, folder.path());
    let tool = tool(&server, "trigger-long-running-operation").await;
    let (sender, mut progress) = mpsc::unbounded_channel();
    let context = ToolContext::new("call").with_progress(Arc::new(move |progress| sender.send(progress).unwrap()));
    tokio::select! {
        result = tool.implementation.call(json!({"duration": 600, "steps": 6000}), &context) => panic!("{result:?}"),
        received = progress.recv() => assert!(received.is_some()),
    }
    let sent = || fs::read_to_string(folder.path().join("sent")).ok();
    let sent = until("a cancellation", || sent().filter(|sent| sent.contains("notifications/cancelled"))).await;
    assert!(sent.contains("the result is no longer needed"), "{sent}");
    // The server still works.
    assert_eq!(call(&server, "echo", json!({"message": "still"})).await.unwrap(), "Echo: still");
}

#[tokio::test]
async fn writes_stable_and_valid_declarations() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for (name, arguments) in [("server-everything", None), ("server-filesystem", Some(&root))] {
        let Some(program) = installed(name) else { return };
        let arguments = arguments.map_or_else(String::new, |root| format!(", {}", quoted(root)));
        let settings = format!("command = 'node'\nargs = [{}{arguments}]", quoted(&program));
        let text = declarations(&server(&settings), &[]).await.unwrap().text;
        assert_eq!(text, declarations(&server(&settings), &[]).await.unwrap().text);
        insta::assert_snapshot!(name, text);
        let project = Project::read([("demo.gram", &text)]);
        let findings = check(&project, &Options::default());
        let shown: Vec<_> = findings.iter().map(|finding| &finding.diagnostic.message).collect();
        assert!(shown.is_empty(), "{shown:?}");
        assert!(project.tools().count() > 10);
    }
}

#[tokio::test]
async fn stops_the_server_with_the_last_handle() {
    let Some(program) = installed("server-everything") else { return };
    let folder = tempfile::tempdir().unwrap();
    // The shell and `sleep` outlive the end of their input, since they do not read it.
    let server = shell("sleep 1000 & echo $! > $1/pid; node $0; wait", &program, folder.path());
    let echo = tool(&server, "echo").await;
    drop(server);
    let pid = pid(&folder.path().join("pid")).await;
    assert!(is_alive(pid));
    let context = ToolContext::new("call");
    assert_eq!(echo.implementation.call(json!({"message": "still"}), &context).await.unwrap(), "Echo: still");
    drop(echo);
    until("the end of the process", || (!is_alive(pid)).then_some(())).await;
}

#[test]
fn stops_the_server_with_the_runtime() {
    let Some(program) = installed("server-everything") else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = shell("sleep 1000 & echo $! > $1/pid; node $0; wait", &program, folder.path());
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let pid = runtime().block_on(async {
        server.tools().await.unwrap();
        pid(&folder.path().join("pid")).await
    });
    runtime().block_on(async {
        until("the end of the process", || (!is_alive(pid)).then_some(())).await;
        // Another runtime starts the server again.
        assert_eq!(call(&server, "echo", json!({"message": "again"})).await.unwrap(), "Echo: again");
    });
}
