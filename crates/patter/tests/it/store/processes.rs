//! Several processes at one store, some of which are killed.

use super::{Place, id, new, refused};
use patter::store::{self, Location, SessionState, Store, StoreError};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What the other processes are told: where the store is, and what to do there.
const STORE: &str = "PATTER_TEST_STORE";
const ROLE: &str = "PATTER_TEST_ROLE";
/// How many entries are appended at once.
const BATCH: u64 = 3;
/// How often each of several processes appends.
const TURNS: u64 = 20;
/// How long something may take that should be soon.
const SOON: Duration = Duration::from_secs(60);

/// Runs the test below in a process of its own.
fn other(place: &Place, role: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "store::processes::in_another_process", "--ignored", "--nocapture"]);
    command.env(STORE, place.location.to_string()).env(ROLE, role);
    command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
}

#[tokio::test]
#[ignore = "what the other tests run in processes of their own"]
async fn in_another_process() {
    // Whoever runs all ignored tests has nothing for it to do.
    let (Ok(location), Ok(role)) = (std::env::var(STORE), std::env::var(ROLE)) else { return };
    let store = store::open(&Location::parse(&location).unwrap()).await.unwrap();
    let session = id("shared");
    match role.as_str() {
        "for ever" => {
            let mut claim = store.claim(&session).await.unwrap();
            loop {
                let next = claim.entries();
                let entries: Vec<_> = (next..next + BATCH).map(entry).collect();
                claim.append(&entries, SessionState::Running, next).await.unwrap();
            }
        }
        "in turns" => {
            for _ in 0..TURNS {
                let start = Instant::now();
                let mut claim = loop {
                    match store.claim(&session).await {
                        Ok(claim) => break claim,
                        Err(StoreError::Busy { .. }) => assert!(start.elapsed() < SOON, "it is never our turn"),
                        Err(error) => panic!("{error}"),
                    }
                };
                let next = claim.entries();
                claim.append(&[entry(next)], SessionState::Idle, next).await.unwrap();
            }
        }
        "until it is full" => {
            drop(store.create(new("shared"), 1).await.unwrap());
            let mut claim = store.claim(&session).await.unwrap();
            let error = loop {
                let next = claim.entries();
                let entries: Vec<_> = (next..next + BATCH).map(entry).collect();
                if let Err(error) = claim.append(&entries, SessionState::Running, next).await {
                    break error;
                }
            };
            let message = format!("the store of sessions `{}` cannot grow: the disk is full", &location[7..]);
            assert_eq!(error.to_string(), message);
            assert_eq!(error.hint().unwrap(), "make room, and try again");
            assert_eq!(whole(&*store).await, claim.entries());
        }
        role => panic!("{role}"),
    }
}

/// Returns what is at a place of the log. The lengths differ, so that pages are torn if anything is.
fn entry(number: u64) -> String {
    format!("{{\"number\":{number},\"fill\":\"{}\"}}", "x".repeat((number as usize * 997) % 9000))
}

async fn whole(store: &dyn Store) -> u64 {
    let stored = store.read(&id("shared")).await.unwrap();
    for (number, found) in (0..).zip(&stored.entries) {
        assert!(*found == entry(number), "entry {number} is torn");
    }
    stored.summary.entries
}

async fn the_log_of_a_killed_process_is_whole(place: &Place) {
    let store = place.open().await;
    drop(store.create(new("shared"), 1).await.unwrap());
    for _ in 0..3 {
        let before = whole(&*store).await;
        let mut child = other(place, "for ever");
        let start = Instant::now();
        while whole(&*store).await < before + 10 * BATCH {
            assert!(start.elapsed() < SOON, "nothing is appended");
            assert!(child.try_wait().unwrap().is_none(), "the other process ended");
        }
        let busy = refused(store.claim(&id("shared")).await).to_string();
        assert!(busy.contains(&format!("process {} on ", child.id())), "{busy}");
        child.kill().unwrap();
        child.wait().unwrap();
        let claim = store.claim(&id("shared")).await.unwrap();
        let after = whole(&*store).await;
        assert_eq!((after % BATCH, claim.entries()), (0, after));
        assert_eq!(store.list(1).await.unwrap()[0].state, SessionState::Running);
    }
}

async fn processes_take_turns(place: &Place) {
    let store = place.open().await;
    drop(store.create(new("shared"), 1).await.unwrap());
    let others: Vec<_> = (0..3).map(|_| other(place, "in turns")).collect();
    for mut other in others {
        assert!(other.wait().unwrap().success());
    }
    assert_eq!(whole(&*store).await, 3 * TURNS);
}

#[tokio::test]
async fn the_log_of_a_killed_process_is_whole_in_sqlite() {
    the_log_of_a_killed_process_is_whole(&Place::sqlite()).await;
}

#[tokio::test]
async fn the_log_of_a_killed_process_is_whole_in_postgres() {
    if let Some(place) = Place::postgres().await {
        the_log_of_a_killed_process_is_whole(&place).await;
    }
}

#[tokio::test]
async fn processes_take_turns_in_sqlite() {
    processes_take_turns(&Place::sqlite()).await;
}

#[tokio::test]
async fn processes_take_turns_in_postgres() {
    if let Some(place) = Place::postgres().await {
        processes_take_turns(&place).await;
    }
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    // A small disk that only this process and its children see.
    let folder = tempfile::tempdir().unwrap();
    let mut small = Command::new("unshare");
    small.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    small.arg("mount -t tmpfs -o size=1m tmpfs \"$1\" || exit 99; shift; exec \"$@\"").arg("sh").arg(folder.path());
    small.arg(std::env::current_exe().unwrap());
    small.args(["--exact", "store::processes::in_another_process", "--ignored", "--nocapture"]);
    small.env(STORE, format!("sqlite:{}/sessions.db", folder.path().display())).env(ROLE, "until it is full");
    match small.output() {
        Ok(output) if output.status.code() == Some(101) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Ok(output) if output.status.success() => {}
        _ => eprintln!("skipped: there can be no small disk here"),
    }
}
