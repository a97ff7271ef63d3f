//! `patter new`.

use crate::folder::{Folder, PATTER};
use std::process::Command;

macro_rules! snapshot {
    ($name:literal, $output:expr) => {
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!($name, $output) })
    };
}

/// Runs `patter` in a subfolder, with a PATH for the programs of tools.
fn run_in(folder: &Folder, below: &str, arguments: &[&str]) -> String {
    let output = Command::new(PATTER)
        .args(arguments)
        .current_dir(folder.path().join(below))
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("XDG_STATE_HOME", folder.path().join(".state"))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    format!("exit {}\n{}{}", output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_new_project_works() {
    let folder = Folder::new();
    snapshot!("new", run_in(&folder, "", &["new", "greeter"]));
    let run = |arguments: &[&str]| run_in(&folder, "greeter", arguments);
    assert_eq!(run(&["fmt", "--check"]), "exit 0\n2 files unchanged\n");
    assert_eq!(run(&["check", "--deny-warnings"]), "exit 0\nchecked 2 files, 1 agent, 1 tool: no problems found\n");
    assert_eq!(
        run(&["check", "--deny-warnings", "--bind"]),
        "exit 0\nchecked 2 files, 1 agent, 1 tool: no problems found\n"
    );
    assert_eq!(run(&["call", "sayHello", "{\"personName\":\"Ada\"}"]), "exit 0\nHello, Ada!\n");
    assert_eq!(run(&["call", "example/wordCount", "{\"text\":\"one two three\"}"]), "exit 0\n3\n");
    let readme = folder.read("greeter/README.md");
    assert!(readme.starts_with("# greeter\n"), "{readme}");
    // Every command in the README exists.
    for line in readme.lines().filter_map(|line| line.strip_prefix("    patter ")) {
        let verb = line.split(' ').next().unwrap();
        assert!(run(&[verb, "--help"]).starts_with("exit 0"), "{line}");
    }
}

/// The commands that `patter new` prints work when they are pasted.
#[test]
fn printed_commands_work() {
    for arguments in [&["new", "greeter"] as &[&str], &["new"]] {
        let folder = Folder::new();
        let printed = run_in(&folder, "", arguments);
        let commands: Vec<_> = printed.lines().skip_while(|line| *line != "Next:").skip(1).map(str::trim).collect();
        let verbs = ["check", "run", "chat"];
        assert!(verbs.iter().all(|verb| commands.iter().any(|line| line.starts_with(&format!("patter {verb}")))));
        let bin = std::path::Path::new(PATTER).parent().unwrap().display().to_string();
        let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-ec", &commands.join("\n")]).current_dir(folder.path()).env_clear().env("PATH", path);
        shell.env("XDG_STATE_HOME", folder.path().join(".state"));
        let output = shell.stdin(std::process::Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("Hello, Ada!"), "{output:?}");
    }
}

#[test]
fn commented_settings_are_valid() {
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
fn a_project_is_created_in_the_current_folder() {
    let folder = Folder::new();
    folder.write("here/notes.txt", "kept");
    let printed = run_in(&folder, "here", &["new"]);
    assert!(printed.starts_with("exit 0\ncreated patter.toml\n"), "{printed}");
    assert!(!printed.contains("  cd "), "{printed}");
    assert!(folder.read("here/README.md").starts_with("# here\n"));
    assert_eq!(folder.read("here/notes.txt"), "kept");
}

#[test]
fn existing_files_are_never_overwritten() {
    let folder = Folder::new();
    folder.write("greeter/README.md", "mine");
    snapshot!("new_exists", folder.run(&["new", "greeter"]));
    let refused = run_in(&folder, "greeter", &["new"]);
    assert_eq!(
        refused,
        "exit 1\nerror: `README.md` already exists; no files were written\n  \
         help: start in an empty folder, or name a new one: `patter new NAME`\n"
    );
    assert_eq!(folder.read("greeter/README.md"), "mine");
    assert_eq!(std::fs::read_dir(folder.path().join("greeter")).unwrap().count(), 1);
    folder.write("other/agents", "a file where a folder would go");
    assert!(run_in(&folder, "other", &["new"]).contains("`agents/hello.gram` already exists"));
}

#[test]
fn project_names_are_validated() {
    let folder = Folder::new();
    for name in ["", ".", "..", "a/b", "../a", "-a", ".a", "a b", "é", &"a".repeat(65)] {
        let refused = folder.run(&["new", "--", name]);
        assert!(refused.starts_with("exit 2"), "{name}: {refused}");
        assert!(refused.contains(&format!("error: `{name}` is not a valid project name")), "{refused}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(folder.run(&["new", "a-1_b.c"]).starts_with("exit 0"));
}
