//! Schedules, with one server and several.

use crate::lab::{Lab, until};
use patter::store::{self, NewWork, SessionId, Store, StoreLocation};
use patter_core::declare::project::Project;
use patter_core::schedule::Schedule;
use serde_json::{Value as Json, json};
use std::sync::Arc;

const EVERY_SECOND: &str = "[often:Schedule { agent: 'greeter', at: '* * * * * *', input: 'Hi' }]";
const EVERY_MINUTE: &str = "[minutely:Schedule { agent: 'greeter', at: '* * * * *', input: 'Hi' }]";
const YEARLY: &str = "[yearly:Schedule { agent: 'greeter', at: '@yearly', timezone: 'Europe/Zurich', input: 'Hi' }]";

/// Returns a server that was started again with a schedule.
async fn lab_with(schedule: &str) -> Lab {
    let mut lab = Lab::new().await;
    lab.shut_down().await;
    add(&lab, schedule);
    lab.start_again().await;
    lab
}

fn add(lab: &Lab, schedule: &str) {
    let path = lab.folder.path().join("a.gram");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}\n{schedule}\n")).unwrap();
}

fn remove(lab: &Lab, schedule: &str) {
    let path = lab.folder.path().join("a.gram");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace(schedule, "")).unwrap();
}

async fn open_store(lab: &Lab) -> Arc<dyn Store> {
    store::open(&StoreLocation::Sqlite(lab.folder.path().join("s.db"))).await.unwrap()
}

async fn sessions(lab: &Lab) -> Vec<SessionId> {
    open_store(lab).await.ids("schedule-", 1000).await.unwrap()
}

async fn fleet(lab: &Lab) -> Json {
    lab.get("/api/fleet").await.json()
}

fn read(schedule: &str) -> Schedule {
    let agent = "[greeter:Agent { instruction: 'x', model: 'demo' }]";
    Schedule::read_all(&Project::read([("a.gram", format!("{agent}{schedule}"))])).pop().unwrap()
}

/// Adds a tick that nobody has run.
async fn add_overdue(lab: &Lab, schedule: &Schedule, now_ms: u64) {
    let tick = schedule.previous(now_ms).unwrap();
    let task = json!({"task": "tick", "schedule": schedule.name, "tick_ms": tick.as_ms(), "at": schedule.at.to_string(),
        "timezone": schedule.timezone, "previous_ms": schedule.previous(tick.as_ms() - 1).unwrap().as_ms(),
        "previous_session": schedule.session(schedule.previous(tick.as_ms() - 1).unwrap())});
    let new = NewWork {
        key: schedule.key(tick),
        session: SessionId::parse(&schedule.session(tick)).unwrap(),
        agent: schedule.agent.clone(),
        tenant: "schedule".to_owned(),
        task: task.to_string(),
        worker: None,
        due_ms: Some(tick.as_ms()),
    };
    assert!(open_store(lab).await.queue().unwrap().add(new).await.unwrap().is_some());
}

#[tokio::test]
async fn each_tick_runs_once_on_one_of_several_servers() {
    let first = lab_with(EVERY_SECOND).await;
    let second = first.beside().await;
    let third = second.beside().await;
    until(async || sessions(&third).await.len() >= 4).await;
    for mut lab in [third, second] {
        lab.shut_down().await;
    }
    let found = sessions(&first).await;
    // No second between the first tick and the last one is missing.
    let second_of = |id: &SessionId| {
        let text = id.as_str().strip_prefix("schedule-often-").unwrap().to_owned();
        jiff::civil::DateTime::strptime("%Y%m%d-%H%M%S", text).unwrap().to_zoned(jiff::tz::TimeZone::UTC).unwrap()
    };
    let seconds: Vec<_> = found.iter().map(|id| second_of(id).timestamp().as_second()).collect();
    let expected: Vec<_> = (seconds[0]..).take(seconds.len()).collect();
    assert_eq!(seconds, expected);
    for id in &found {
        until(async || first.get(&format!("/api/sessions/{id}")).await.json()["state"] == "idle").await;
        let session = first.get(&format!("/api/sessions/{id}")).await.json();
        assert_eq!(session["turns"].as_array().unwrap().len(), 1, "{session}");
    }
    let fleet = fleet(&first).await;
    let schedule = &fleet["schedules"][0];
    assert_eq!(
        (&schedule["name"], &schedule["agent"], &schedule["timezone"]),
        (&json!("often"), &json!("greeter"), &json!("UTC"))
    );
    let ran = first.get("/metrics").await.body;
    assert!(ran.contains("patter_schedule_ticks_total{outcome=\"started\"}"), "{ran}");
    assert_eq!(fleet["queue"]["parked"], 0);
}

#[tokio::test]
async fn a_tick_that_ran_is_not_run_again() {
    let lab = lab_with(EVERY_MINUTE).await;
    let schedule = read(EVERY_MINUTE);
    let now = patter::drive::now_ms();
    add_overdue(&lab, &schedule, now).await;
    let id = schedule.session(schedule.previous(now).unwrap());
    until(async || lab.get(&format!("/api/sessions/{id}")).await.json()["state"] == "idle").await;
    // Somebody adds it again.
    add_overdue(&lab, &schedule, now).await;
    until(async || fleet(&lab).await["queue"]["queued"] == 0 && fleet(&lab).await["queue"]["running"] == 0).await;
    let session = lab.get(&format!("/api/sessions/{id}")).await.json();
    assert_eq!(session["turns"].as_array().unwrap().len(), 1, "{session}");
    let schedules = fleet(&lab).await["schedules"].clone();
    assert_eq!(schedules[0]["last"]["status"], "answered", "{schedules}");
    // The log says what started the run.
    let stored = open_store(&lab).await.read(&SessionId::parse(&id).unwrap()).await.unwrap();
    assert!(stored.entries.iter().any(|entry| entry.contains("schedule/minutely/")), "{:?}", stored.entries);
}

#[tokio::test]
async fn of_missed_ticks_only_the_last_one_runs() {
    let mut lab = lab_with(EVERY_MINUTE).await;
    until(async || fleet(&lab).await["queue"]["scheduled"] == 1).await;
    lab.shut_down().await;
    let schedule = read(EVERY_MINUTE);
    let now = patter::drive::now_ms();
    let minutes = |count: u64| now - count * 60_000;
    add_overdue(&lab, &schedule, minutes(10)).await;
    add_overdue(&lab, &schedule, minutes(5)).await;
    lab.start_again().await;
    until(async || fleet(&lab).await["queue"]["queued"] == 0 && !sessions(&lab).await.is_empty()).await;
    let first = schedule.session(schedule.previous(now).unwrap());
    let found = sessions(&lab).await;
    assert!(found.iter().all(|id| id.as_str() >= first.as_str()), "{found:?} and {first}");
    assert!(found.len() <= 2, "a minute may have begun meanwhile: {found:?}");
    let metrics = lab.get("/metrics").await.body;
    assert!(metrics.contains("patter_schedule_ticks_total{outcome=\"skipped\"} 2\n"), "{metrics}");
}

#[tokio::test]
async fn a_tick_that_was_missed_for_too_long_is_left_out() {
    let mut lab = lab_with(YEARLY).await;
    until(async || fleet(&lab).await["queue"]["scheduled"] == 1).await;
    lab.shut_down().await;
    add_overdue(&lab, &read(YEARLY), patter::drive::now_ms()).await;
    lab.start_again().await;
    until(async || lab.get("/metrics").await.body.contains("ticks_total{outcome=\"skipped\"} 1\n")).await;
    assert!(sessions(&lab).await.is_empty());
    let schedules = fleet(&lab).await["schedules"].clone();
    assert_eq!((&schedules[0]["at"], &schedules[0]["last"]["status"]), (&json!("@yearly"), &json!("not_run")));
}

#[tokio::test]
async fn schedules_that_change_lose_their_next_tick() {
    let mut lab = lab_with(YEARLY).await;
    let next = async |lab: &Lab| fleet(lab).await["schedules"][0]["next_ms"].clone();
    until(async || next(&lab).await.is_u64()).await;
    let before = next(&lab).await;
    lab.shut_down().await;
    remove(&lab, YEARLY);
    let later = YEARLY.replace("@yearly", "0 7 1 1 *");
    add(&lab, &later);
    lab.start_again().await;
    until(async || next(&lab).await.is_u64() && next(&lab).await != before).await;
    assert_eq!(fleet(&lab).await["queue"]["scheduled"], 1);
    lab.shut_down().await;
    remove(&lab, &later);
    lab.start_again().await;
    until(async || fleet(&lab).await["queue"]["scheduled"] == 0).await;
    assert_eq!(fleet(&lab).await["schedules"], json!([]));
}

/// While a project is being replaced, servers with both versions run.
#[tokio::test]
async fn a_server_without_the_schedule_leaves_its_ticks_to_others() {
    let old = Lab::new().await;
    add(&old, EVERY_SECOND);
    let new = old.beside().await;
    until(async || sessions(&new).await.len() >= 3).await;
    assert_eq!(fleet(&new).await["queue"]["parked"], 0);
    drop(old);
}

#[tokio::test]
async fn a_change_in_the_studio_changes_the_next_tick() {
    let mut lab = Lab::with(|settings| settings.editing = patter_serve::Editing::On).await;
    lab.shut_down().await;
    add(&lab, YEARLY);
    lab.start_again().await;
    until(async || fleet(&lab).await["queue"]["scheduled"] == 1).await;
    let path = lab.folder.path().join("a.gram").canonicalize().unwrap();
    let address = format!("/studio/edit/{}", path.display().to_string().replace('/', "%2F"));
    // The first attempt says what the file is now.
    let now = lab.post(&address, &json!({"text": "", "hash": ""})).await.json();
    let text = now["text"].as_str().unwrap().replace(YEARLY, "");
    let saved = lab.post(&address, &json!({"text": text, "hash": now["hash"]})).await.json();
    assert_eq!(saved["used"], true, "{saved}");
    until(async || fleet(&lab).await["queue"]["scheduled"] == 0).await;
}
