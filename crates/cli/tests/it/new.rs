//! `patter new`.

use crate::folder::{Folder, PATTER};
use std::process::Command;

macro_rules! snapshot {
    ($name:literal, $output:expr) => {
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!($name, $output) })
    };
}

/// Runs `patter` in a folder below, with the programs that tools need.
fn run_in(folder: &Folder, below: &str, arguments: &[&str]) -> String {
    let output = Command::new(PATTER)
        .args(arguments)
        .current_dir(folder.path().join(below))
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    format!("exit {}\n{}{}", output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_new_project_works_at_once() {
    let folder = Folder::new();
    snapshot!("new", folder.run(&["new", "greeter"]));
    let run = |arguments: &[&str]| run_in(&folder, "greeter", arguments);
    assert_eq!(run(&["fmt", "--check"]), "exit 0\n2 files unchanged\n");
    assert_eq!(run(&["check", "--deny-warnings"]), "exit 0\nchecked 2 files, 1 agent, 1 tool: all is well\n");
    assert_eq!(run(&["check", "--deny-warnings", "--bind"]), "exit 0\nchecked 2 files, 1 agent, 1 tool: all is well\n");
    assert_eq!(run(&["call", "sayHello", "{\"personName\":\"Ada\"}"]), "exit 0\nHello, Ada!\n");
    assert_eq!(run(&["call", "example/wordCount", "{\"text\":\"one two three\"}"]), "exit 0\n3\n");
    let readme = folder.read("greeter/README.md");
    assert!(readme.starts_with("# greeter\n"), "{readme}");
    // Every command that the README names is one.
    for line in readme.lines().filter_map(|line| line.strip_prefix("    patter ")) {
        let verb = line.split(' ').next().unwrap();
        assert!(run(&[verb, "--help"]).starts_with("exit 0"), "{line}");
    }
}

#[test]
fn what_the_configuration_suggests_is_valid() {
    let folder = Folder::new();
    folder.run(&["new", "a"]);
    let lines: String = folder
        .read("a/patter.toml")
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .filter(|line| line.starts_with('[') || line.contains(" = "))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(lines.contains("[permissions]"), "{lines}");
    folder.write("a/patter.toml", lines);
    assert!(run_in(&folder, "a", &["check"]).starts_with("exit 0"));
}

#[test]
fn a_project_can_start_in_the_current_folder() {
    let folder = Folder::new();
    folder.write("here/notes.txt", "kept");
    let made = run_in(&folder, "here", &["new"]);
    assert!(made.starts_with("exit 0\nmade patter.toml\n"), "{made}");
    assert!(!made.contains("  cd "), "{made}");
    assert!(folder.read("here/README.md").starts_with("# here\n"));
    assert_eq!(folder.read("here/notes.txt"), "kept");
}

#[test]
fn nothing_is_ever_overwritten() {
    let folder = Folder::new();
    folder.write("greeter/README.md", "mine");
    snapshot!("new_exists", folder.run(&["new", "greeter"]));
    let refused = run_in(&folder, "greeter", &["new"]);
    assert_eq!(
        refused,
        "exit 1\nerror: `README.md` is here already, and nothing was written\n  \
         help: start in an empty folder, or name a new one: `patter new NAME`\n"
    );
    assert_eq!(folder.read("greeter/README.md"), "mine");
    assert_eq!(std::fs::read_dir(folder.path().join("greeter")).unwrap().count(), 1);
    folder.write("other/agents", "a file where a folder would go");
    assert!(run_in(&folder, "other", &["new"]).contains("`agents/hello.gram` is here already"));
}

#[test]
fn names_are_those_of_folders() {
    let folder = Folder::new();
    for name in ["", ".", "..", "a/b", "../a", "-a", ".a", "a b", "é", &"a".repeat(65)] {
        let refused = folder.run(&["new", "--", name]);
        assert!(refused.starts_with("exit 2"), "{name}: {refused}");
        assert!(refused.contains(&format!("error: `{name}` cannot be the name of a project")), "{refused}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(folder.run(&["new", "a-1_b.c"]).starts_with("exit 0"));
}
