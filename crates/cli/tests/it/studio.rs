//! `patter studio` as a process, in a browser. The pages that need no other process are tested with the server.

use crate::folder::{Folder, PATTER};
use crate::npm;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a scenario may take, on a machine that does other things too.
const TIMEOUT: Duration = Duration::from_secs(150);

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Starts the studio, and returns its address.
fn start(folder: &Folder, options: &[&str]) -> (Process, String) {
    let mut command = Command::new(PATTER);
    command.args([
        "studio",
        "hello.gram",
        "--no-open",
        "--listen",
        "127.0.0.1:0",
        "--model",
        "demo",
        "--store",
        "s.db",
    ]);
    command.args(options);
    command.current_dir(folder.path()).env("PATTER_TRUST", "1").stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = lines.find_map(|line| {
        let line = line.unwrap();
        line.strip_prefix("the studio is at ").map(|address| address.trim_end_matches('/').to_owned())
    });
    std::thread::spawn(move || lines.for_each(drop));
    (Process(child), address.unwrap())
}

#[test]
fn people_start_watch_and_stop_experiments() {
    play("experiments", &["hello.gram", "sayHelloA.gram", "sayHelloB.gram", "cases.gram"], &[]);
}

#[test]
fn a_conversation_uses_other_tools() {
    play("variant", &["hello.gram", "sayHelloB.gram"], &["--variant", "terse=sayHelloB.gram"]);
}

/// Plays a scenario with files of an example, and further options of the studio.
fn play(scenario: &str, files: &[&str], options: &[&str]) {
    if !Path::new("/usr/bin/chromium").exists() && std::env::var_os("CHROMIUM").is_none() {
        assert!(std::env::var_os("CI").is_none(), "there is no browser");
        eprintln!("skipped: there is no browser");
        return;
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../serve");
    let Some(packages) = npm::installed_from(&tests, "studio") else { return };
    let folder = Folder::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ab");
    for name in files {
        folder.write(name, std::fs::read_to_string(examples.join(name)).unwrap());
    }
    let (_process, address) = start(&folder, options);
    let mut command = Command::new("node");
    command.arg(tests.join(format!("tests/studio/{scenario}.mjs"))).arg(address).arg(packages);
    let mut scenario = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while scenario.try_wait().unwrap().is_none() {
        if start.elapsed() > TIMEOUT {
            scenario.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = scenario.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stdout));
}
