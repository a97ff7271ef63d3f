//! Agents that call agents: which one runs, in new, resumed and replayed runs.

use patter::drive::{RunEvent, RunEventKind};
use patter::live::LiveProject;
use patter::project::Environment;
use patter::session::replay::OnDifference;
use patter::session::{AgentSelection, Playback, Recorder, Recording, Session};
use patter::tool::{CancellationToken, Tool};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A private helper that can write, a public one that cannot, and an agent inside another of the same name.
const AGENTS: &str = "
[boss:Agent {instruction: 'x', model: 'scripted/FOLDER/lead.json'} |
  [helper:Agent {instruction: 'x', model: 'scripted/FOLDER/private.json'} | write]]
[clerk:Agent {instruction: 'x', model: 'scripted/FOLDER/lead.json'} | helper]
[helper:Agent {instruction: 'x', model: 'scripted/FOLDER/public.json'}]
[twin:Agent {instruction: 'x', model: 'scripted/FOLDER/twin.json'} |
  [twin:Agent {instruction: 'x', model: 'scripted/FOLDER/public.json'}]]
[both:Agent {instruction: 'x', model: 'scripted/FOLDER/both.json'} | boss, helper]
";

fn ask(agent: &str) -> Json {
    json!({"tool": agent, "arguments": {"input": "Help"}})
}

fn write_agents(folder: &Path) {
    let scripts = [
        ("lead.json", json!([{"calls": [ask("helper")]}, {"text": "Done."}])),
        ("twin.json", json!([{"calls": [ask("twin")]}, {"text": "Done."}])),
        ("both.json", json!([{"calls": [ask("boss"), ask("helper")]}, {"text": "Done."}])),
        ("private.json", json!([{"calls": [{"tool": "write", "arguments": {}}]}, {"text": "private"}])),
        ("public.json", json!([{"text": "public"}])),
    ];
    for (name, script) in scripts {
        std::fs::write(folder.join(name), script.to_string()).unwrap();
    }
    std::fs::write(folder.join("a.gram"), AGENTS.replace("FOLDER", &folder.display().to_string())).unwrap();
}

/// Returns a session with an agent. Its tool counts how often it is called.
async fn session(folder: &Path, agent: &str, events: &Arc<Mutex<Vec<RunEvent>>>, writes: &Arc<AtomicUsize>) -> Session {
    let writes = Arc::clone(writes);
    let write = Tool::native("write", "Writes", "()==>(::Text)", move |_, _| {
        writes.fetch_add(1, Ordering::SeqCst);
        async { Ok(json!("written")) }
    });
    let project = LiveProject::open(folder.join("a.gram")).with_tools(vec![write.unwrap()]);
    let project = project.with_environment(Environment::default()).read().await.unwrap();
    let source = AgentSelection { agent: Some(agent.to_owned()), ..AgentSelection::default() };
    let events = Arc::clone(events);
    Session::new(project.into()).with_source(source).with_driver(move |driver| {
        let events = Arc::clone(&events);
        driver.with_listener(move |event: &RunEvent| events.lock().unwrap().push(event.clone()))
    })
}

/// Returns the agents that answered, with their answers.
fn answers(events: &[RunEvent]) -> Vec<String> {
    let answers = events.iter().filter_map(|event| match &event.kind {
        RunEventKind::Text { text } => Some(format!("{}: {text}", event.agent)),
        _ => None,
    });
    answers.collect()
}

#[tokio::test]
async fn the_agent_that_a_name_refers_to_runs() {
    for (agent, expected, expected_writes) in [
        ("clerk", vec!["helper: public", "clerk: Done."], 0),
        ("boss", vec!["boss/helper: private", "boss: Done."], 1),
        ("twin", vec!["twin/twin: public", "twin: Done."], 0),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write_agents(folder.path());
        let events = Arc::default();
        let writes = Arc::default();
        let mut session = session(folder.path(), agent, &events, &writes).await;
        session.say("Hello", &CancellationToken::new()).await.unwrap();
        assert_eq!(answers(&events.lock().unwrap()), expected);
        assert_eq!(writes.load(Ordering::SeqCst), expected_writes, "{agent}");
    }
}

/// An argument that an agent does not have would be lost, as one that a tool does not have.
#[tokio::test]
async fn an_unknown_argument_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    write_agents(folder.path());
    let call = json!({"tool": "helper", "arguments": {"input": "x", "urgent": true}});
    let error = "error: `helper` has no parameter `urgent`";
    let script = json!([{"calls": [call]}, {"text": "Done.", "expect": {"results": [error]}}]);
    std::fs::write(folder.path().join("lead.json"), script.to_string()).unwrap();
    let events = Arc::default();
    let mut session = session(folder.path(), "clerk", &events, &Arc::default()).await;
    session.say("Hello", &CancellationToken::new()).await.unwrap();
    assert_eq!(answers(&events.lock().unwrap()), ["clerk: Done."]);
}

#[tokio::test]
async fn two_agents_of_one_name_are_recorded_and_compared_apart() {
    let folder = tempfile::tempdir().unwrap();
    write_agents(folder.path());
    let path = folder.path().join("recording.jsonl");
    let events = Arc::default();
    let writes = Arc::default();
    let mut session = session(folder.path(), "both", &events, &writes).await;
    session.record(Recorder::create(&path).unwrap());
    session.say("Hello", &CancellationToken::new()).await.unwrap();
    let live = answers(&events.lock().unwrap());
    let mut names: Vec<_> = live.iter().map(|answer| answer.split(':').next().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["boss", "boss/helper", "both", "helper"]);
    let mut playback = Playback::default();
    let entries = Recording::read(&path).unwrap().entries;
    let played: Vec<_> = entries.clone().into_iter().flat_map(|entry| playback.play(entry).unwrap()).collect();
    assert_eq!(answers(&played), live);
    // The private helper is compared with the private one, not with the other of its name.
    let compare = |session: &mut Session| {
        let (driver, compiled) = session.prepare(None).unwrap();
        driver.compare(&compiled, entries.clone(), OnDifference::Continue).unwrap()
    };
    let same = compare(&mut session);
    assert_eq!((same.identical, same.divergences.len()), (7, 0), "{:?}", same.divergences);
    let file = folder.path().join("a.gram");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("private.json'} | write", "private.json', topK: 5} | write")).unwrap();
    let mut edited = self::session(folder.path(), "both", &Arc::default(), &Arc::default()).await;
    let changed = compare(&mut edited);
    let agents: Vec<_> = changed.divergences.iter().map(|found| found.location.agents.join(" ")).collect();
    assert_eq!(agents, ["both boss boss/helper"], "{:?}", changed.divergences);
}
