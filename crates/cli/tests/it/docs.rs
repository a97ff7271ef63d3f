//! The examples in the documents are run: every `gram` block is parsed and formatted, every `console` block is typed.
//!
//! A `gram` block whose first line is `// file: NAME` is written to that file for the commands after it. In a `console`
//! block each line after `$ ` is a command, and the lines up to the next one are its whole output. A block marked
//! `gram,broken` contains a mistake.
//!
//! `UPDATE_DOCS=1 cargo test -p patter-cli --test it docs` writes the present output into the documents.

use crate::folder::{Folder, PATTER};
use std::path::Path;
use std::process::Command;

struct Block {
    language: String,
    text: String,
}

/// Reads the fenced blocks of a Markdown text.
fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut fence: Option<(String, Block)> = None;
    for line in markdown.lines() {
        match &mut fence {
            Some((closing, _)) if line.trim() == closing => blocks.push(fence.take().unwrap().1),
            Some((_, block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {
                let ticks: String = line.chars().take_while(|c| *c == '`').collect();
                if ticks.len() >= 3 {
                    let language = line[ticks.len()..].trim().to_owned();
                    fence = Some((ticks, Block { language, text: String::new() }));
                }
            }
        }
    }
    blocks
}

/// An output that differs from what a document shows.
struct Mismatch {
    command: String,
    shown: String,
    found: String,
}

/// Types the commands of a `console` block and returns those whose output differs.
fn type_commands(folder: &Folder, text: &str) -> Vec<Mismatch> {
    let bin = Path::new(PATTER).parent().unwrap().display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let mut mismatches = Vec::new();
    for session in format!("\n{text}").split("\n$ ").skip(1) {
        let (command, shown) = session.split_once('\n').unwrap_or((session, ""));
        let output = Command::new("sh")
            .args(["-c", &format!("{{ {command}\n}} 2>&1")])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("PATTER_TRUST", "1")
            // Sessions and logins of the person who runs the tests are neither used nor added to.
            .env("HOME", folder.path())
            .env("XDG_STATE_HOME", folder.path().join("state"))
            .env_remove("PATTER_STORE")
            .output()
            .unwrap();
        let found = String::from_utf8(output.stdout).unwrap();
        if found.trim_end() != shown.trim_end() {
            let (command, shown, found) =
                (command.to_owned(), shown.trim_end().to_owned(), found.trim_end().to_owned());
            mismatches.push(Mismatch { command, shown, found });
        }
    }
    mismatches
}

fn check(document: &str) {
    check_in(&Folder::new(), document);
}

/// Checks a document whose commands are typed in a folder.
fn check_in(folder: &Folder, document: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let mut markdown = std::fs::read_to_string(&path).unwrap();
    let mut mismatches = Vec::new();
    let mut checked = 0;
    for block in blocks(&markdown) {
        match block.language.as_str() {
            "gram" => {
                let formatted = patter::gram::format(&block.text)
                    .unwrap_or_else(|found| panic!("{document} shows gram with mistakes: {found:?}\n{}", block.text));
                assert_eq!(formatted, block.text, "{document} shows gram that is not formatted");
            }
            "gram,broken" => assert!(patter::gram::format(&block.text).is_err(), "{}", block.text),
            "console" => mismatches.extend(type_commands(folder, &block.text)),
            _ => continue,
        }
        if let Some(name) = block.text.lines().next().and_then(|line| line.strip_prefix("// file: ")) {
            folder.write(name, &block.text);
        }
        checked += 1;
    }
    assert!(checked > 0, "{document} has nothing to check");
    let is_update = std::env::var_os("UPDATE_DOCS").is_some();
    for Mismatch { command, shown, found } in mismatches {
        assert!(is_update, "{document} shows other output for `{command}`, expected:\n{shown}\nfound:\n{found}");
        let session = |output: &str| match output {
            "" => format!("$ {command}\n"),
            output => format!("$ {command}\n{output}\n"),
        };
        markdown = markdown.replacen(&session(&shown), &session(&found), 1);
    }
    if is_update {
        std::fs::write(path, markdown).unwrap();
    }
}

#[test]
fn readme() {
    check("README.md");
}

#[test]
fn gram_reference() {
    check("docs/gram.md");
}

#[test]
fn agents_guide() {
    check("docs/agents.md");
}

#[test]
fn tools_guide() {
    check("docs/tools.md");
}

#[test]
fn query_guide() {
    check("docs/query.md");
}

#[test]
fn trust_guide() {
    check("docs/trust.md");
}

#[test]
fn comparing_guide() {
    check("docs/comparing.md");
}

#[test]
fn operations_guide_names_what_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = std::fs::read_to_string(root.join("docs/operations.md")).unwrap();
    for (agent, expected) in [("maxTurns: 10", true), ("maxTurn: 10", false)] {
        let text = format!("[a:Agent {{instruction: 'Hi', model: 'demo', {agent}, maxToolCalls: 5, timeout: 2m}}]");
        let project = patter::project::Project::read([("a.gram", text)]);
        let options = patter::check::Options::default();
        assert_eq!(patter::check::check(&project, &options).is_empty(), expected, "{agent}");
    }
    let kinds = ["ValidationError", "ConfigurationError", "ToolError", "LLMAPIError", "StoreError"];
    assert!(
        kinds.iter().all(|kind| guide.contains(kind)) && guide.contains("maxTurns") && guide.contains("maxToolCalls")
    );
}

/// Writes the files of a folder of examples.
fn write_examples(folder: &Folder, examples: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(examples);
    for entry in std::fs::read_dir(source).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let name = format!("{examples}/{}", path.file_name().unwrap().to_str().unwrap());
            folder.write(&name, std::fs::read(&path).unwrap());
        }
    }
}

#[test]
fn workflows_guide() {
    let folder = Folder::new();
    for examples in ["examples", "examples/workflows"] {
        write_examples(&folder, examples);
    }
    check_in(&folder, "docs/workflows.md");
}

#[test]
fn cli_reference() {
    check("docs/cli.md");
}

#[test]
fn the_readme_names_the_test_command_that_ci_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ci = std::fs::read_to_string(root.join(".ci/check")).unwrap();
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let command = ci.lines().last().unwrap();
    assert!(readme.contains(&format!("    {command}\n")) || readme.contains(&format!("\n{command}\n")), "{command}");
}
