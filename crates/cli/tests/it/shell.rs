//! Completions, manual pages and logging.

use crate::folder::Folder;
use std::process::{Command, Stdio};

#[test]
fn completions_name_the_commands() {
    let folder = Folder::new();
    for (shell, marks) in [
        ("bash", ["_patter()", "complete -F _patter"]),
        ("zsh", ["#compdef patter", "_patter"]),
        ("fish", ["complete -c patter", "-l format"]),
    ] {
        let output = folder.output(&["completions", shell], "");
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{shell}");
        for mark in marks.into_iter().chain(["experiments", "doctor", "stream-json"]) {
            assert!(script.contains(mark), "{shell}: no {mark}");
        }
        folder.write(&format!("patter.{shell}"), script);
    }
    // The syntax is checked by the one shell that is always there.
    let checked = Command::new("bash").arg("-n").arg(folder.path().join("patter.bash")).status().unwrap();
    assert!(checked.success());
}

#[test]
fn manual_pages() {
    let folder = Folder::new();
    let page = folder.run(&["man"]);
    assert!(page.starts_with("exit 0\n--- stdout\n") && page.contains(".TH patter 1"), "{page}");
    let written = folder.run(&["man", "--dir", "man/man1"]);
    assert_eq!(written, "exit 0\n--- stdout\n--- stderr\nwrote the manual pages to man/man1\n");
    for name in ["patter", "patter-run", "patter-sessions-export", "patter-import-openapi"] {
        assert!(folder.read(&format!("man/man1/{name}.1")).contains(".TH"), "{name}");
    }
    folder.write("file", "");
    assert!(
        folder.run(&["man", "--dir", "file"]).starts_with("exit 1\n--- stdout\n--- stderr\nerror: cannot write `file`")
    );
}

#[test]
fn verbose_runs_are_logged() {
    let folder = Folder::new();
    folder.write("a.gram", "[greeter:Agent { instruction: \"Greet with `sayHello`.\", model: \"demo\" } | sayHello]\n");
    let run = ["run", "a.gram", "Hello! My name is Ada.", "--store", "none"];
    let log = |options: &[&str], variable: Option<&str>| {
        let mut command = folder.command();
        command.args(run).args(options).stdin(Stdio::null()).envs(variable.map(|value| ("PATTER_LOG", value)));
        let output = command.output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "Hello, Ada!\n");
        String::from_utf8(output.stderr).unwrap()
    };
    let quiet = log(&[], None);
    assert!(!quiet.contains("INFO") && !quiet.contains("DEBUG"), "{quiet}");
    let verbose = log(&["-v"], None);
    for expected in ["INFO patter::run: calling the model", "model replied", "calling a tool", "tool=\"sayHello\""] {
        assert!(verbose.contains(expected), "no {expected}\n{verbose}");
    }
    assert!(!verbose.contains("DEBUG") && !verbose.contains('\u{1b}'), "{verbose}");
    assert!(log(&["-vv"], None).contains("DEBUG patter::run: arguments of the call"));
    assert!(log(&[], Some("patter::run=debug")).contains("DEBUG patter::run"));
    assert!(!log(&["-vv"], Some("off")).contains("DEBUG"));
    assert!(log(&["-v", "--color", "always"], None).contains('\u{1b}'));
    let wrong = folder.command().args(run).env("PATTER_LOG", "patter=loud").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("`PATTER_LOG` is not a valid log filter"));
}
