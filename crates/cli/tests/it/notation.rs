//! `patter parse` and `patter fmt`.

use crate::folder::Folder;
use crate::terminal::Terminal;
use std::os::unix::fs::PermissionsExt;

const AGENT: &str =
    "[hello:Agent {model: 'demo'} | // tools\n  [sayHello:Tool {description: 'Greets'} | (name::Text)==>(::Text)]\n]\n";

macro_rules! snapshot {
    ($name:literal, $output:expr) => {
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!($name, $output) })
    };
}

#[test]
fn help_describes_the_commands() {
    let folder = Folder::new();
    snapshot!("help", folder.run(&["--help"]));
    snapshot!("help_parse", folder.run(&["parse", "--help"]));
    snapshot!("help_fmt", folder.run(&["fmt", "--help"]));
    assert!(folder.run(&[]).starts_with("exit 2"));
}

#[test]
fn parse_prints_the_tree_in_three_formats() {
    let folder = Folder::new();
    folder.write("agent.gram", AGENT);
    snapshot!("parse_tree", folder.run(&["parse", "agent.gram"]));
    snapshot!("parse_json", folder.run(&["parse", "agent.gram", "--format", "json"]));
    snapshot!("parse_sexp", folder.run_with(&["parse", "-", "--format", "sexp"], AGENT));
}

#[test]
fn parse_reports_every_mistake_and_fails() {
    let folder = Folder::new();
    snapshot!(
        "parse_mistakes",
        folder.run_with(&["parse", "-", "--format", "sexp"], "(a)->(b)\n[c | (d {x: 1, x: 2})\n")
    );
    snapshot!(
        "parse_limit",
        folder.run_with(&["parse", "-", "--format", "sexp", "--max-errors", "1"], "(a)->(b)->(c)->(d)")
    );
    let warned = folder.run_with(&["parse", "-"], "({x: 1, x: 2})");
    assert!(warned.starts_with("exit 0") && warned.ends_with("<stdin>: 1 warning\n"), "{warned}");
}

#[test]
fn parse_portable_refuses_the_extension() {
    let folder = Folder::new();
    assert!(folder.run_with(&["parse", "-"], "({x: []})").starts_with("exit 0"));
    snapshot!("parse_portable", folder.run_with(&["parse", "-", "--format", "sexp", "--portable"], "({x: []})"));
}

#[test]
fn parse_reports_unreadable_input() {
    let folder = Folder::new();
    folder.write("folder/x.gram", "(a)");
    folder.write("latin1.gram", b"(a) // caf\xe9\n");
    snapshot!("parse_missing", folder.run(&["parse", "missing.gram"]));
    snapshot!("parse_folder", folder.run(&["parse", "folder"]));
    snapshot!("parse_latin1", folder.run(&["parse", "latin1.gram"]));
    snapshot!("parse_usage", folder.run(&["parse", "x.gram", "--format", "xml"]));
}

#[test]
fn colours_are_used_only_where_enabled() {
    let folder = Folder::new();
    let stderr = |arguments: &[&str]| String::from_utf8(folder.output(arguments, "(a").stderr).unwrap();
    assert!(!stderr(&["parse", "-"]).contains('\u{1b}'));
    assert!(stderr(&["parse", "-", "--color", "always"]).contains('\u{1b}'));
    assert!(!stderr(&["parse", "-", "--color", "never"]).contains('\u{1b}'));
}

#[test]
fn data_is_exact_in_a_pipe_and_escaped_at_a_terminal() {
    let folder = Folder::new();
    let text = "(a { text: \"\0\u{7}\u{b}\u{1b}[1m👩\u{200d}👧 می\u{200c}خواهم \u{202e}\" })\n";
    assert_eq!(String::from_utf8(folder.output(&["fmt", "-"], text).stdout).unwrap(), text);
    folder.write("a.gram", text);
    let diff = String::from_utf8(folder.output(&["fmt", "--diff", "-"], &text.replace("(a ", "(a  ")).stdout).unwrap();
    assert!(diff.contains(&format!("+{text}")), "{diff:?}");
    folder.write("a.gram", text.replace("(a ", "(a  "));
    let mut terminal = Terminal::start(&folder, &["fmt", "--diff", "a.gram"], 100);
    terminal.shows("\\u{0}\\u{7}\\u{b}\\u{1b}[1m").shows("می\u{200c}خواهم \\u{202e}");
    assert_eq!(terminal.ends(), Some(0));
}

#[test]
fn a_person_is_told_that_stdin_is_read() {
    let folder = Folder::new();
    let mut terminal = Terminal::start(&folder, &["parse", "-", "--format", "sexp"], 100);
    terminal.shows("type the text, and end it with Ctrl-D on an empty line").keys("(a)\n\u{4}").shows("identifier");
    assert_eq!(terminal.ends(), Some(0));
    // A pipe needs no such line.
    assert!(!folder.run_with(&["parse", "-"], "(a)").contains("Ctrl-D"));
}

#[test]
fn fmt_formats_folders_in_place() {
    let folder = Folder::new();
    folder.write("b/agent.gram", "( a )");
    folder.write("a.gram", "(a)\n");
    folder.write("broken.gram", "(a");
    folder.write("ignored/x.gram", "( x )");
    folder.write(".hidden/x.gram", "( x )");
    folder.write(".gitignore", "ignored\n");
    folder.write("notes.txt", "( x )");
    snapshot!("fmt_folder", folder.run(&["fmt"]));
    assert_eq!(folder.read("b/agent.gram"), "(a)\n");
    assert_eq!(folder.read("broken.gram"), "(a");
    assert_eq!(folder.read("ignored/x.gram"), "( x )");
    assert_eq!(folder.read(".hidden/x.gram"), "( x )");
    let left: Vec<_> = std::fs::read_dir(folder.path().join("b")).unwrap().collect();
    assert_eq!(left.len(), 1, "a temporary file was left");
}

#[test]
fn fmt_check_and_diff_write_nothing() {
    let folder = Folder::new();
    folder.write("one.gram", "( a )\n(b)\n");
    folder.write("two.gram", "(b)\n");
    snapshot!("fmt_check", folder.run(&["fmt", "--check"]));
    snapshot!("fmt_diff", folder.run(&["fmt", "--diff", "one.gram"]));
    assert!(folder.run(&["fmt", "--check", "--diff"]).starts_with("exit 1"));
    assert!(folder.run(&["fmt", "--check", "two.gram"]).starts_with("exit 0"));
    assert_eq!(folder.read("one.gram"), "( a )\n(b)\n");
}

#[test]
fn fmt_reads_stdin_and_writes_stdout() {
    let folder = Folder::new();
    assert_eq!(folder.run_with(&["fmt", "-"], "( a )"), "exit 0\n--- stdout\n(a)\n--- stderr\n");
    let broken = folder.run_with(&["fmt", "-"], "( a ");
    assert!(broken.starts_with("exit 1\n--- stdout\n--- stderr\nerror[G002]"), "{broken}");
    assert!(folder.run_with(&["fmt", "-", "--check"], "( a )").starts_with("exit 1\n--- stdout\n<stdin>\n"));
}

#[test]
fn fmt_reports_what_it_cannot_format() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    snapshot!("fmt_missing", folder.run(&["fmt", "missing", "empty"]));
}

#[test]
fn fmt_preserves_permissions_and_links() {
    let folder = Folder::new();
    let path = folder.write("real.gram", "( a )");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("real.gram", folder.path().join("link.gram")).unwrap();
    assert!(folder.run(&["fmt", "link.gram"]).starts_with("exit 0"));
    assert_eq!(folder.read("real.gram"), "(a)\n");
    assert!(folder.path().join("link.gram").is_symlink());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = Folder::new();
    folder.write("large.gram", "(a)\n".repeat(100_000));
    let mut child = folder.command().args(["parse", "large.gram"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    // Errors are still reported, and the exit code does not change.
    folder.write("broken.gram", "(a\n".repeat(10_000));
    let mut child = folder.command().args(["parse", "broken.gram"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().ends_with("broken.gram: 10000 errors\n"));
}

#[test]
fn a_pipe_with_the_name_of_a_file_does_not_hang() {
    let folder = Folder::new();
    folder.write("a.gram", "(a)\n");
    let status = std::process::Command::new("mkfifo").arg(folder.path().join("pipe.gram")).status().unwrap();
    assert!(status.success());
    assert_eq!(folder.run(&["fmt"]), "exit 0\n--- stdout\n--- stderr\n1 file unchanged\n");
}
