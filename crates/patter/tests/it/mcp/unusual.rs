//! A server that is unusual in every way that is allowed, and in some that are not.

use super::{call, tool, unusual};
use patter::check::{Options, check};
use patter::live::LiveProject;
use patter::project::{Config, Environment, Project, ServerReport, ServerSelection, Tools};
use patter::text::Glob;
use patter::tool::mcp::{ToolWarning, declarations};
use patter::tool::standard::standard_library;
use patter::tool::{Effect, Tool, ToolContext, ToolFailure, ToolResources};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::Arc;

#[tokio::test]
async fn warns_about_unsupported_tools() {
    let Some(server) = unusual("env = {TOKEN = '${TOKEN}'}") else { return };
    let listing = server.tools().await.unwrap();
    let names: Vec<_> = listing.tools.iter().map(Tool::name).collect();
    assert_eq!(
        names,
        ["strict", "say_hello", "bare", "promise", "fail", "parts", "tree", "ask", "hang", "env", "tell", "rename"]
    );
    let warnings: Vec<_> = listing.warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(warnings.join("\n"));
    let declared: Vec<_> = listing.tools.iter().map(|tool| tool.definition.to_string()).collect();
    insta::assert_snapshot!(declared.join("\n"));
    let ask = listing.tools.iter().find(|tool| tool.name() == "ask").unwrap();
    assert_eq!((ask.effect, ask.idempotent), (Effect::Network, true));
    let text = declarations(&server, &[]).await.unwrap().text;
    assert!(text.contains("// Note: the tool `broken` is skipped"), "{text}");
    assert!(text.contains("[Node:Object | (children::Array"), "{text}");
    let findings = check(&Project::read([("demo.gram", &text)]), &Options::default());
    assert_eq!(findings.len(), 0, "{findings:?} {text}");
    // Beside an agent that uses one of them, the others are not reported as unused, and their names are full.
    assert!(text.contains("[`demo/tree`:Tool"), "{text}");
    let agent = "[a:Agent {instruction: 'Use `demo/ask`.', model: 'demo'} | `demo/ask`]";
    let options = Options { library: &["demo/*"], ..Options::default() };
    let findings = check(&Project::read([("a.gram", agent), ("demo.gram", text.as_str())]), &options);
    assert_eq!(findings.len(), 0, "{findings:?} {text}");
    let only = declarations(&server, &[Glob::new("demo/t*"), Glob::new("ask")]).await.unwrap();
    assert_eq!(only.declared, ["demo/tree", "demo/ask", "demo/tell"]);
    assert!(!only.text.contains("Note"), "{}", only.text);
}

#[tokio::test]
async fn converts_results_to_values() {
    let Some(server) = unusual("env = {TOKEN = '${TOKEN}'}\ntimeout = '2s'") else { return };
    let expect = async |name: &str, arguments: Json, expected: Result<Json, &str>| {
        let result = call(&server, name, arguments.clone()).await;
        let result = result.as_ref().map_err(ToolFailure::message);
        assert_eq!(result, expected.as_ref().map_err(|message| *message), "{name} {arguments}");
    };
    expect("strict", json!({"a": 1}), Ok(json!("taken"))).await;
    let both = "invalid arguments for `strict`: {\"a\":1,\"b\":2} is valid under more than one of the schemas listed in the 'oneOf' keyword";
    expect("strict", json!({"a": 1, "b": 2}), Err(both)).await;
    let more = "invalid arguments for `strict`: Additional properties are not allowed ('c' was unexpected)";
    expect("strict", json!({"a": 1, "c": 2}), Err(more)).await;
    expect("bare", json!({}), Ok(json!("free"))).await;
    expect("promise", json!({"keep": "yes"}), Ok(json!({"n": 2}))).await;
    expect("promise", json!({"keep": "text"}), Ok(json!({"n": 1}))).await;
    let broken = "the MCP server `demo` responded without the structured content it declares";
    expect("promise", json!({"keep": "no"}), Err(broken)).await;
    expect("fail", json!({"how": "loudly"}), Err("no more [redacted]")).await;
    expect("fail", json!({"how": "long"}), Err(&format!("{}[redac…", "x".repeat(4090)))).await;
    expect("fail", json!({"how": "silently"}), Err("the MCP server `demo` reported an error without a message")).await;
    expect("parts", json!({"count": 0}), Ok(json!(""))).await;
    expect("parts", json!({"count": 1}), Ok(json!("one"))).await;
    expect(
        "parts",
        json!({"count": 3}),
        Ok(json!([
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {
                "type": "audio", "mimeType": "audio/wav", "bytes": 2,
                "note": "not shown: models receive only text, images and PDF documents from tools",
            },
        ])),
    )
    .await;
    let parts = call(&server, "parts", json!({"count": 6})).await.unwrap();
    assert_eq!(parts[3]["bytes"], 6);
    let cut = parts[4]["text"].as_str().unwrap();
    assert!(
        cut.len() < 66_000 && cut.contains("[cut: these are 65536 of 70000 bytes; read on with `text/read`"),
        "{cut}"
    );
    assert_eq!(parts[5]["uri"], "demo://link");
    expect("ask", json!({"method": "sampling/createMessage"}), Ok(json!("error -32601"))).await;
    expect("ask", json!({"method": "roots/list"}), Ok(json!("error -32601"))).await;
    expect("ask", json!({"method": "elicitation/create"}), Ok(json!("decline"))).await;
    expect("tell", json!({"times": 2}), Ok(json!("[redacted][redacted]"))).await;
    expect("hang", json!({}), Err("the MCP server `demo` did not respond within 2 s")).await;
    // It still works after that, in the same process.
    expect("strict", json!({"b": 1}), Ok(json!("taken"))).await;
}

/// Large results are cut and kept, like those of other tools.
#[tokio::test]
async fn large_results_are_cut_and_kept() {
    let Some(server) = unusual("env = {TOKEN = '${TOKEN}'}") else { return };
    let standard = standard_library(&ToolResources::new(Path::new("."), Environment::default()));
    let read = standard.tools().find(|(name, _)| name.as_str() == "text/read").unwrap().1;
    let kept = |text: &str| text.split_once("kept: \"").unwrap().1.split_once('"').unwrap().0.to_owned();
    let read_at = async |id: &str, start: usize| {
        let arguments = json!({"kept": id, "start": start, "length": 10});
        read.implementation.call(arguments, &ToolContext::new("c")).await.unwrap().to_string()
    };

    let text = call(&server, "tell", json!({"times": 200_000})).await.unwrap();
    let text = text.as_str().unwrap();
    assert!(text.starts_with("[redacted][redacted]") && text.len() < (1 << 20) + 200, "{}", &text[..40]);
    assert!(text.contains("[cut: these are 1048576 of 2000000 bytes"), "{}", &text[1 << 20..]);
    assert!(read_at(&kept(text), 1_500_000).await.contains("[redacted]"));

    // Parts become a text; images stay images.
    let parts = call(&server, "parts", json!({"count": 7})).await.unwrap();
    assert!(parts[0].as_str().unwrap().contains("[cut: these are 1048576 of"), "{}", parts[1]);
    assert_eq!(parts[1], json!({"type": "image", "mimeType": "image/png", "data": "AAAA"}));
    // What has a schema cannot be cut.
    let failure = call(&server, "promise", json!({"keep": "large"})).await.unwrap_err();
    let expected = "more than the 1048576 that are returned at once; read it with `text/read`, kept: \"";
    assert!(failure.message().contains(expected), "{failure:?}");
    assert!(read_at(&kept(failure.message()), 0).await.contains("{"));
}

/// Warnings and misconfigured servers are reported, and the other tools are added.
#[tokio::test]
async fn reports_problems_with_servers() {
    if unusual("").is_none() {
        return;
    }
    let program = super::quoted(&Path::new(super::FILES).join("unusual.mjs"));
    let config = format!(
        "[mcp.wrong]\ncommand = 'x'\nargs = ['${{NO_SUCH}}']\n[mcp.demo]\ncommand = 'node'\nargs = [{program}]\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let read = || {
        let config = Config::parse(&config).unwrap();
        let project = Project::read::<&str, &str>([]);
        Tools::read(&project, Some(folder.path()), &config, &Environment::from_process()).unwrap()
    };
    let project = Project::read::<&str, &str>([]);
    let mut tools = read();
    let report = tools.add_servers(&project, &ServerSelection::All).await;
    let servers: Vec<_> = report.problems.iter().map(|problem| problem.server.as_str()).collect();
    assert_eq!(servers, ["wrong"]);
    assert_eq!(report.problems[0].hint().unwrap(), "set it, or write `${NO_SUCH:-default}` to provide a default");
    let skipped = "the MCP server `demo`: the tool `broken` is skipped: ";
    assert!(report.warnings.iter().any(|warning| warning.starts_with(skipped)), "{:?}", report.warnings);
    assert!(tools.names().any(|name| name.as_str() == "demo/strict"));
    assert_eq!(read().add_servers(&project, &ServerSelection::None).await, ServerReport::default());
    assert_eq!(read().add_servers(&project, &ServerSelection::ForTool("demo/strict".into())).await.problems, []);
}

/// An agent that changes may need a server that was not started.
#[tokio::test]
async fn accepted_changes_start_servers() {
    if super::installed("server-everything").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = super::quoted(&Path::new(super::FILES).join("unusual.mjs"));
    std::fs::write(folder.path().join("patter.toml"), format!("[mcp.demo]\ncommand = 'node'\nargs = [{program}]\n"))
        .unwrap();
    let path = folder.path().join("a.gram");
    let write = |tool: &str| {
        let text = format!("[a:Agent {{instruction: 'Use the tool.', model: 'demo'}} | {tool}]");
        std::fs::write(&path, text).unwrap();
    };
    write("sayHello");
    let project = LiveProject::open(&path).read().await.unwrap();
    assert_eq!(project.driver().library().missing_servers(), ["demo"]);
    write("`demo/bare`");
    let changes = project.changes().unwrap().unwrap();
    let report = project.accept(changes).await.unwrap();
    assert_eq!(report.problems, []);
    assert!(project.driver().compile_named("a").unwrap().is_ok());
    assert!(project.driver().library().missing_servers().is_empty());
}

#[tokio::test]
async fn offers_roots_if_they_are_configured() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let Some(server) = unusual(&format!("roots = [{}]", super::quoted(&root))) else { return };
    let roots = call(&server, "ask", json!({"method": "roots/list"})).await.unwrap();
    assert_eq!(roots, format!("[{{\"uri\":\"file://{}\"}}]", root.display()));
}

/// Servers are asked for their tools only if an agent may need one of them.
#[test]
fn only_needed_servers_are_started() {
    let config = "[mcp.files]\ncommand = 'x'\n[mcp.web]\ncommand = 'x'\nonly = ['lookup', 'get_*']\n\
                  [mcp.git]\ncommand = 'x'\nexcept = ['lookup']\n";
    let config = Config::parse(config).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let check = |elements: &str, expected: &[&str]| {
        let text = format!(
            "[a:Agent {{instruction: 'x', model: 'demo'}} | {elements}]
             [b:Agent {{instruction: 'x', model: 'demo'}} | `files/read`]
             [kit:Toolkit | `git/log`]
             [own:Toolbox | [get_own:Command {{description: 'x', run: ['true']}} | ()==>(::Text)]]"
        );
        let project = Project::read([("a.gram", text)]);
        let tools = Tools::read(&project, Some(folder.path()), &config, &Environment::default()).unwrap();
        let needed = tools.needed_servers(&project, &ServerSelection::ForAgent(Some("a".into())));
        assert_eq!(needed, expected, "{elements}");
        assert_eq!(tools.needed_servers(&project, &ServerSelection::None), [""; 0]);
        assert_eq!(tools.needed_servers(&project, &ServerSelection::All), ["files", "git", "web"]);
        assert!(tools.needed_servers(&project, &ServerSelection::ForAgents).contains(&"files"));
    };
    check("sayHello", &[]);
    check("get_own, readFile, `fs/readFile`", &[]);
    check("`web/anything`", &["web"]);
    check("kit", &["git"]);
    check("b", &["files"]);
    // A bare name may be of any server whose filter does not exclude it.
    check("unknown", &["files", "git"]);
    check("get_page", &["files", "git", "web"]);
    check("lookup", &["files", "web"]);
    check("[lookup:Tool {description: 'x'} | ()==>(::Text)]", &["files", "web"]);
    check("`no-such-server/x`", &[]);
}

#[tokio::test]
async fn limits_the_environment_of_a_server() {
    let Some(server) = unusual("env = {TOKEN = '${TOKEN}'}") else { return };
    let Json::String(names) = call(&server, "env", json!({})).await.unwrap() else { panic!("no text") };
    let allowed = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "SHELL", "TOKEN"];
    assert!(names.split(' ').all(|name| allowed.contains(&name) || name.starts_with("LC_")), "{names}");
    assert!(names.contains("PATH") && names.contains("TOKEN"), "{names}");
}

#[tokio::test]
async fn redacts_secrets() {
    let Some(server) = unusual("env = {TOKEN = '${TOKEN}'}\ntimeout = '1s'") else { return };
    let (sender, mut messages) = tokio::sync::mpsc::unbounded_channel();
    let context =
        ToolContext::new("call").with_progress(Arc::new(move |progress| sender.send(progress.message).unwrap()));
    let hang = tool(&server, "hang").await;
    let failure = hang.implementation.call(json!({}), &context).await.unwrap_err();
    assert_eq!(messages.try_recv().unwrap(), "[redacted]");
    assert_eq!(failure.detail(), Some("stderr: the token is [redacted]"));
}

#[tokio::test]
async fn truncates_an_endless_list() {
    let Some(server) = unusual("env = {ENDLESS = 'yes'}") else { return };
    let listing = server.tools().await.unwrap();
    assert_eq!(listing.tools.len(), 1000);
    assert_eq!(listing.warnings, [ToolWarning::TooMany]);
}

#[tokio::test]
async fn refreshes_a_list_that_changed() {
    let Some(server) = unusual("") else { return };
    let bare = tool(&server, "bare").await;
    let context = ToolContext::new("call");
    assert_eq!(bare.implementation.call(json!({}), &context).await.unwrap(), "free");
    let rename = tool(&server, "rename").await;
    assert_eq!(rename.implementation.call(json!({}), &context).await.unwrap(), "renamed");
    // The notification and the response arrive in any order.
    let start = std::time::Instant::now();
    let failure = loop {
        match bare.implementation.call(json!({}), &context).await {
            Err(failure) => break failure,
            Ok(_) => assert!(start.elapsed() < super::SOON, "the list is not refreshed"),
        }
    };
    let expected = "the MCP server `demo` no longer has the tool `bare`; did you mean `bare2`?";
    assert_eq!(failure.message(), expected);
}
