//! Several processes sharing one store, some of which are killed.

use super::{TestStore, claim_error, id, new};
use patter::store::{self, SessionState, Store, StoreError, StoreLocation};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The store and the role of the other processes.
const STORE: &str = "PATTER_TEST_STORE";
const ROLE: &str = "PATTER_TEST_ROLE";
/// The number of entries per append.
const BATCH: u64 = 3;
/// The number of appends of each process.
const TURNS: u64 = 20;
/// The open files that a process may have which claims many sessions.
const FEW_FILES: u64 = 64;
/// The time limit for waits that should be short.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs the test below in a process of its own.
fn spawn(test_store: &TestStore, role: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "store::processes::in_another_process", "--ignored", "--nocapture"]);
    command.env(STORE, test_store.location.to_string()).env(ROLE, role);
    command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
}

#[tokio::test]
#[ignore = "run by the other tests in processes of their own"]
async fn in_another_process() {
    // Without the variables, someone runs all ignored tests.
    let (Ok(location), Ok(role)) = (std::env::var(STORE), std::env::var(ROLE)) else { return };
    let store = store::open(&StoreLocation::parse(&location).unwrap()).await.unwrap();
    let session = id("shared");
    match role.as_str() {
        "append forever" => {
            let mut claim = store.claim(&session).await.unwrap();
            loop {
                let next = claim.entries();
                let entries: Vec<_> = (next..next + BATCH).map(entry).collect();
                claim.append(&entries, SessionState::Running, next).await.unwrap();
            }
        }
        "take turns" => {
            for _ in 0..TURNS {
                let start = Instant::now();
                let mut claim = loop {
                    match store.claim(&session).await {
                        Ok(claim) => break claim,
                        Err(StoreError::Busy { .. }) => assert!(start.elapsed() < TIMEOUT, "the session stays busy"),
                        Err(error) => panic!("{error}"),
                    }
                };
                let next = claim.entries();
                claim.append(&[entry(next)], SessionState::Idle, next).await.unwrap();
            }
        }
        "fill the disk" => {
            drop(store.create(new("shared"), 1).await.unwrap());
            let mut claim = store.claim(&session).await.unwrap();
            let error = loop {
                let next = claim.entries();
                let entries: Vec<_> = (next..next + BATCH).map(entry).collect();
                if let Err(error) = claim.append(&entries, SessionState::Running, next).await {
                    break error;
                }
            };
            let message = format!("the session store `{}` cannot grow: the disk is full", &location[7..]);
            assert_eq!(error.to_string(), message);
            assert_eq!(error.hint().unwrap(), "free some disk space and try again");
            assert_eq!(checked_length(&*store).await, claim.entries());
        }
        "claim many" => {
            let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
            setrlimit(Resource::Nofile, Rlimit { current: Some(FEW_FILES), maximum }).unwrap();
            let mut claims = Vec::new();
            for number in 0..4 * FEW_FILES {
                claims.push(store.create(new(&format!("s{number}")), 1).await.unwrap());
            }
            drop(claims);
            // Without any descriptor, claims wait until there is one.
            let mut files: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
            assert!(!files.is_empty());
            let waiting = tokio::spawn(async move { store.claim(&id("s1")).await.map(|claim| claim.entries()) });
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(!waiting.is_finished());
            files.truncate(0);
            assert_eq!(waiting.await.unwrap().unwrap(), 0);
        }
        role => panic!("{role}"),
    }
    // Leases outlive a process that does not wait.
    assert!(store::wait_for_releases(TIMEOUT));
}

/// Returns the nth entry of the log. Lengths vary, so that incomplete writes tear pages.
fn entry(number: u64) -> String {
    format!("{{\"number\":{number},\"fill\":\"{}\"}}", "x".repeat((number as usize * 997) % 9000))
}

async fn checked_length(store: &dyn Store) -> u64 {
    let stored = store.read(&id("shared")).await.unwrap();
    for (number, found) in (0..).zip(&stored.entries) {
        assert!(*found == entry(number), "entry {number} is torn");
    }
    stored.summary.entries
}

async fn log_of_a_killed_process_is_complete(test_store: &TestStore) {
    let store = test_store.open().await;
    drop(store.create(new("shared"), 1).await.unwrap());
    for _ in 0..3 {
        let before = checked_length(&*store).await;
        let mut child = spawn(test_store, "append forever");
        let start = Instant::now();
        while checked_length(&*store).await < before + 10 * BATCH {
            assert!(start.elapsed() < TIMEOUT, "nothing was appended");
            assert!(child.try_wait().unwrap().is_none(), "the other process ended");
        }
        let busy = claim_error(store.claim(&id("shared")).await).to_string();
        assert!(busy.contains(&format!("process {} on ", child.id())), "{busy}");
        child.kill().unwrap();
        child.wait().unwrap();
        let claim = store.claim(&id("shared")).await.unwrap();
        let after = checked_length(&*store).await;
        assert_eq!((after % BATCH, claim.entries()), (0, after));
        assert_eq!(store.list(1).await.unwrap()[0].state, SessionState::Running);
    }
}

async fn processes_take_turns(test_store: &TestStore) {
    let store = test_store.open().await;
    drop(store.create(new("shared"), 1).await.unwrap());
    let children: Vec<_> = (0..3).map(|_| spawn(test_store, "take turns")).collect();
    for mut child in children {
        // The runtime must not be blocked: it releases the session.
        let ended = tokio::task::spawn_blocking(move || child.wait().unwrap());
        assert!(ended.await.unwrap().success());
    }
    assert_eq!(checked_length(&*store).await, 3 * TURNS);
}

#[tokio::test]
async fn log_of_a_killed_process_is_complete_in_sqlite() {
    log_of_a_killed_process_is_complete(&TestStore::sqlite()).await;
}

#[tokio::test]
async fn log_of_a_killed_process_is_complete_in_postgres() {
    if let Some(test_store) = TestStore::postgres().await {
        log_of_a_killed_process_is_complete(&test_store).await;
    }
}

#[tokio::test]
async fn processes_take_turns_in_sqlite() {
    processes_take_turns(&TestStore::sqlite()).await;
}

#[tokio::test]
async fn processes_take_turns_in_postgres() {
    if let Some(test_store) = TestStore::postgres().await {
        processes_take_turns(&test_store).await;
    }
}

#[tokio::test]
async fn processes_take_turns_through_a_pooler() {
    if let Some(test_store) = TestStore::pooled().await {
        processes_take_turns(&test_store).await;
    }
}

#[test]
fn claims_need_few_descriptors() {
    let test_store = TestStore::sqlite();
    assert!(spawn(&test_store, "claim many").wait().unwrap().success());
}

#[test]
fn full_disk_is_reported_and_loses_nothing() {
    // A small file system in a mount namespace of its own.
    let folder = tempfile::tempdir().unwrap();
    let mut small = Command::new("unshare");
    small.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    small.arg("mount -t tmpfs -o size=1m tmpfs \"$1\" || exit 99; shift; exec \"$@\"").arg("sh").arg(folder.path());
    small.arg(std::env::current_exe().unwrap());
    small.args(["--exact", "store::processes::in_another_process", "--ignored", "--nocapture"]);
    small.env(STORE, format!("sqlite:{}/sessions.db", folder.path().display())).env(ROLE, "fill the disk");
    match small.output() {
        Ok(output) if output.status.code() == Some(101) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Ok(output) if output.status.success() => {}
        _ => eprintln!("skipped: cannot mount a small file system"),
    }
}
