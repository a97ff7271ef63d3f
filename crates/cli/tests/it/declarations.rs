//! `patter check`, `patter show` and `patter schema`.

use crate::folder::Folder;
use serde_json::Value as Json;

const HELLO: &str = include_str!("../../../../examples/hello.gram");

const BROKEN: &str = "[hi:Agent { instruction: \"Use `sayHallo`.\", modle: \"demo\" } |
  [sayHello:Tool { description: \"Greets\" } | (name::Txt)==>(::Text)]
]
";

macro_rules! snapshot {
    ($name:literal, $output:expr) => {
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!($name, $output) })
    };
}

#[test]
fn check_reports_findings_and_fails() {
    let folder = Folder::new();
    folder.write("hello.gram", HELLO);
    assert_eq!(
        folder.run(&["check"]),
        "exit 0\n--- stdout\n--- stderr\nchecked 1 file, 1 agent, 1 tool: no problems found\n"
    );
    folder.write("broken.gram", BROKEN);
    snapshot!("check_text", folder.run(&["check"]));
    snapshot!("check_json", folder.run(&["check", "broken.gram", "--format", "json"]));
    snapshot!("check_sarif", folder.run(&["check", "broken.gram", "--format", "sarif"]));
}

#[test]
fn check_can_deny_warnings() {
    let folder = Folder::new();
    folder.write("a.gram", "[hi:Agent { instruction: 'Greet.', model: 'demo' } | sayHello]\n");
    assert!(folder.run(&["check"]).starts_with("exit 0"));
    assert!(folder.run(&["check", "--deny-warnings"]).starts_with("exit 1"));
    folder.write("patter.toml", "[check]\ndeny-warnings = true\n");
    assert!(folder.run(&["check"]).starts_with("exit 1"));
    folder.write("patter.toml", "[check]\ndeny-warnings = true\nignore = [\"P040\", \"P061\"]\n");
    assert!(folder.run(&["check"]).starts_with("exit 0"));
}

#[test]
fn check_reads_the_whole_project_and_reports_the_named_files() {
    let folder = Folder::new();
    folder.write("agents/a.gram", "[hi:Agent { instruction: 'Use greetAll.', model: 'demo' } | greetAll]\n");
    folder.write("tools/t.gram", "[greetAll:Tool { description: 'Greets' } | (name::Text)==>(::Text)]\n[x:Tool]\n");
    let alone = folder.run(&["check", "agents", "--deny-warnings"]);
    assert!(alone.contains("`greetAll` is not declared in this project"), "{alone}");
    folder.write("patter.toml", "");
    let together = folder.run(&["check", "agents", "--deny-warnings"]);
    assert_eq!(together, "exit 0\n--- stdout\n--- stderr\nchecked 1 file, 1 agent: no problems found\n");
}

#[test]
fn a_file_named_twice_is_checked_once() {
    let folder = Folder::new();
    folder.write("hello.gram", HELLO);
    std::os::unix::fs::symlink("hello.gram", folder.path().join("link.gram")).unwrap();
    let found = folder.run(&["check", "hello.gram", ".", "./hello.gram"]);
    assert_eq!(found, "exit 0\n--- stdout\n--- stderr\nchecked 1 file, 1 agent, 1 tool: no problems found\n");
}

#[test]
fn check_portable_reports_the_extension() {
    let folder = Folder::new();
    folder.write(
        "a.gram",
        "[t:Tool { description: 'x' } | (a::Object { fields: [{ name: 'x', type: 'Int' }] })==>(::Text)]\n",
    );
    assert!(folder.run(&["check"]).starts_with("exit 0"));
    assert!(folder.run(&["check", "--portable"]).contains("error[G034]: a map in an array is not plain gram"));
}

#[test]
fn check_reports_unreadable_input() {
    let folder = Folder::new();
    snapshot!("check_missing", folder.run(&["check", "missing.gram"]));
    snapshot!("check_empty", folder.run(&["check"]));
    folder.write("patter.toml", "[chekc]\n");
    snapshot!("check_config", folder.run(&["check"]));
}

#[test]
fn sarif_matches_its_schema() {
    let folder = Folder::new();
    folder.write("broken.gram", BROKEN);
    let output = folder.output(&["check", "--format", "sarif"], "");
    let sarif: Json = serde_json::from_slice(&output.stdout).unwrap();
    let schema = std::fs::read_to_string(sarif_schema()).unwrap();
    // The pattern for languages in the published schema is not a valid regular expression.
    let schema = schema.replace("^[a-zA-Z]{2}|^[a-zA-Z]{2}-[a-zA-Z]{2}]?$", "^[a-zA-Z]{2}(-[a-zA-Z]{2})?$");
    let schema: Json = serde_json::from_str(&schema).unwrap();
    let errors: Vec<_> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&sarif).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 3);
}

/// Returns the published schema of SARIF 2.1.0, which is part of a dev-dependency.
fn sarif_schema() -> std::path::PathBuf {
    // Only the dependencies of this platform have been fetched.
    let version = std::process::Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", host])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: Json = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == "serde-sarif").unwrap();
    let manifest = std::path::Path::new(package["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap().join("src/schema.json")
}

#[test]
fn show_summarizes_agents() {
    let folder = Folder::new();
    folder.write("hello.gram", HELLO);
    snapshot!("show_hello", folder.run(&["show", "hello.gram"]));
    folder.write(
        "team.gram",
        "[lead:Agent { description: 'Leads', instruction: 'Ask `helper`.', model: 'Anthropic/claude' } |
  helper, [add:Tool { description: 'Adds' } | (a::Int)==>(b::Int { optional: true })==>(::Int)], weather
]
[helper:Agent { description: 'Helps', instruction: 'Help.', model: 'demo' }]\n",
    );
    snapshot!("show_team", folder.run(&["show", "team.gram", "lead"]));
    snapshot!("show_wrong", folder.run(&["show", "team.gram", "laed"]));
}

#[test]
fn schema_prints_inputs_or_outputs() {
    let folder = Folder::new();
    folder.write("hello.gram", HELLO);
    snapshot!("schema_all", folder.run(&["schema", "hello.gram"]));
    snapshot!("schema_output", folder.run(&["schema", "hello.gram", "sayHello", "--output"]));
    snapshot!("schema_provider", folder.run(&["schema", "hello.gram", "sayHello", "--provider", "openai"]));
    snapshot!("schema_wrong", folder.run(&["schema", "hello.gram", "sayHelo"]));
    folder.write("broken.gram", BROKEN);
    snapshot!("schema_broken", folder.run(&["schema", "broken.gram", "sayHello"]));
}

#[test]
fn the_examples_have_no_warnings() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folder = Folder::new();
    let checked = folder.run(&["check", "--deny-warnings", examples.to_str().unwrap()]);
    assert!(checked.starts_with("exit 0"), "{checked}");
    let formatted = folder.run(&["fmt", "--check", examples.to_str().unwrap()]);
    assert!(formatted.starts_with("exit 0"), "{formatted}");
}

#[test]
fn explain_documents_rules() {
    let folder = Folder::new();
    snapshot!("explain", folder.run(&["explain", "P026"]));
    assert_eq!(folder.run(&["explain", "g021"]), folder.run(&["explain", "G021"]));
    snapshot!("explain_wrong", folder.run(&["explain", "P2"]));
    let all = folder.run(&["explain"]);
    assert!(all.contains("P020  error    an unknown type\n"), "{all}");
}

const CHANGED: &str = "// The smallest agent with a tool.
[hello_world_agent:Agent {
  description: \"Greets people by name\",
  instruction: ```
    You are a kind assistant. When the user greets you, use the `sayHello` tool.
  ```,
  model: \"OpenAI/gpt-5\"
} |
  [sayHello:Tool { description: \"Returns a friendly greeting for the given name\" } |
    (personName::Text)==>(language::Text)==>(::String)
  ]
]
";

#[test]
fn diff_judges_changes() {
    let folder = Folder::new();
    folder.write("old.gram", HELLO);
    folder.write("new.gram", CHANGED);
    snapshot!("diff_text", folder.run(&["diff", "old.gram", "new.gram"]));
    snapshot!("diff_json", folder.run(&["diff", "old.gram", "new.gram", "--format", "json"]));
    assert_eq!(folder.run(&["diff", "old.gram", "old.gram"]), "exit 0\n--- stdout\nno changes\n--- stderr\n");
    snapshot!("diff_usage", folder.run(&["diff", "old.gram"]));
    snapshot!("diff_missing", folder.run(&["diff", "old.gram", "missing.gram"]));
}

#[test]
fn diff_compares_folders() {
    let folder = Folder::new();
    folder.write("old/a.gram", "[a:Agent { instruction: 'x', model: 'demo' }]\n");
    folder.write("new/b.gram", "[a:Agent { instruction: 'x', model: 'demo' }]\n");
    folder.write("new/c.gram", "[c:Agent { instruction: 'x', model: 'demo' }]\n");
    let found = folder.run(&["diff", "old", "new"]);
    assert_eq!(found, "exit 0\n--- stdout\ncompatible  agent `c`: added  new/c.gram:1:1\n1 compatible\n--- stderr\n");
}

/// What `patter.toml` permits is compared too.
#[test]
fn diff_compares_settings() {
    let folder = Folder::new();
    let agent = "[a:Agent { instruction: 'x', model: 'demo' }]\n";
    let settings = [
        ("old", "[permissions]\ndeny = ['fs/*']\n[fs]\nroots = ['x']\n"),
        ("new", "[mcp.x]\ncommand = 'evil'\nenv = {KEY = 's3cret'}\n"),
        (
            "url",
            "[mcp.x]\nurl = 'https://a.example/?key=s3cret'\n[models.OpenAI]\nbase-url = 'https://u:s3cret@b.example'\n",
        ),
        ("prices", "[check]\npedantic = true\n"),
    ];
    for (version, text) in settings {
        folder.write(&format!("{version}/a.gram"), agent);
        folder.write(&format!("{version}/patter.toml"), text);
    }
    folder.write("none/a.gram", agent);
    insta::assert_snapshot!("diff_settings", folder.run(&["diff", "old", "new"]));
    insta::assert_snapshot!("diff_servers", folder.run(&["diff", "new", "url"]));
    assert_eq!(folder.run(&["diff", "new", "new"]), "exit 0\n--- stdout\nno changes\n--- stderr\n");
    assert_eq!(folder.run(&["diff", "prices", "none"]), "exit 0\n--- stdout\nno changes\n--- stderr\n");
}

#[test]
fn diff_is_a_git_diff_driver() {
    let folder = Folder::new();
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git")
            .args(["-c", "user.name=x", "-c", "user.email=x@example.com"])
            .args(arguments)
            .current_dir(folder.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q"]);
    folder.write(".gitattributes", "*.gram diff=patter\n");
    folder.write("hello.gram", HELLO);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    git(&["config", "diff.patter.command", &format!("{} diff --git", crate::folder::PATTER)]);
    folder.write("hello.gram", CHANGED);
    let shown = git(&["diff"]);
    assert!(shown.starts_with("patter diff hello.gram\n"), "{shown}");
    assert!(shown.contains("required parameter `language` added"), "{shown}");
    // The other version of an added or deleted file is `/dev/null`.
    std::fs::remove_file(folder.path().join("hello.gram")).unwrap();
    assert!(git(&["diff"]).contains("agent `hello_world_agent`: removed"));
}

#[test]
fn check_never_prints_a_secret() {
    let folder = Folder::new();
    let key = ["sk-", "proj-a8Zk2mQ0rT5vXw9yB3cD6eF1gH4i"].concat();
    // The second finding is on the same line, so its excerpt would show the key too.
    folder.write("a.gram", format!("[a:Agent {{ instruction: 'The key is {key}', model: 'demo', modle: 'x' }}]\n"));
    for format in ["text", "json", "sarif"] {
        let output = folder.run(&["check", "--format", format]);
        assert!(output.starts_with("exit 1") && output.contains("P058") && output.contains("P004"), "{output}");
        assert!(!output.contains("a8Zk2mQ0"), "{output}");
    }
    let run = folder.run(&["run", "a.gram", "hi"]);
    assert!(run.contains("P004") && !run.contains("a8Zk2mQ0"), "{run}");
}

#[test]
fn check_reports_overrides_of_sealed_tools() {
    let folder = Folder::new();
    let send = |sealed: &str| {
        format!(
            "[mail:Toolbox | [send:Command {{ description: 'Sends', run: ['true']{sealed} }} | (to::Text)==>(::Text)]]\n"
        )
    };
    folder.write("org/mail.gram", send(", sealed: true"));
    folder.write("own/mail.gram", send(""));
    folder.write("own/patter.toml", "[org]\ntools = [\"../org\"]\n");
    let output = folder.run(&["check", "own"]);
    assert!(output.starts_with("exit 1") && output.contains("P059"), "{output}");
    folder.write("org/mail.gram", send(""));
    let output = folder.run(&["check", "own"]);
    assert!(!output.contains("P059"), "{output}");
}

#[test]
fn check_reports_more_if_asked() {
    let folder = Folder::new();
    folder.write("t.gram", "[t:Tool { description: 'Finds' } | (a::Text)==>(::Text)]\n");
    assert!(folder.run(&["check"]).contains("no problems found"));
    assert!(folder.run(&["check", "--pedantic"]).contains("P066"));
    folder.write("patter.toml", "[check]\npedantic = true\n");
    assert!(folder.run(&["check"]).contains("P066"));
}

#[test]
fn schema_prints_all_tools_that_have_one() {
    let folder = Folder::new();
    folder.write("patter.toml", "");
    folder.write("t.gram", "[near:Tool { description: 'x' } | (b::Int)==>(::Int)]\n[ours:Toolbox | [far:Command { description: 'x', run: ['echo'] } | (c::Int)==>(::Text)]]\n");
    folder.write(
        "a.gram",
        "[a:Agent { instruction: 'x', model: 'demo' } | sayHello, near, far, `ours/far`, missing, b,
           [here:Tool { description: 'x' } | (a::Int)==>(::Int)],
           [broken:Tool { description: 'x' } | (a::Itn)==>(::Int)]]
         [b:Agent { instruction: 'x', model: 'demo' }]\n",
    );
    let output = folder.output(&["schema", "a.gram"], "");
    let schemas: Json = serde_json::from_slice(&output.stdout).unwrap();
    let parameters: Vec<_> = schemas
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, schema)| format!("{name} {}", schema["properties"].as_object().unwrap().keys().next().unwrap()))
        .collect();
    assert_eq!(parameters, ["sayHello personName", "near b", "far c", "ours/far c", "here a"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("the tool `missing` has no schema: there is no tool `missing`"), "{errors}");
    assert!(errors.contains("the tool `broken` has no schema: invalid signature: unknown type `Itn`"), "{errors}");
    assert_eq!(output.status.code(), Some(1));
    assert!(folder.run(&["schema", "a.gram", "sayHello"]).starts_with("exit 0"));
    assert!(folder.run(&["schema", "a.gram", "missing"]).starts_with("exit 1"));
    folder.write("b.gram", "[b:Agent { instruction: 'x', model: 'demo' }]\n");
    let none = folder.run(&["schema", "b.gram"]);
    assert_eq!(none, "exit 0\n--- stdout\n{}\n--- stderr\n`b.gram` declares no tools, and its agents call none\n");
}

#[test]
fn what_cannot_be_read_is_a_problem() {
    let folder = Folder::new();
    folder.write("a.gram", "[a:Agent { instruction: 'x', model: 'demo' }]\n");
    let found = folder.run(&["check", "a.gram", "missing.gram"]);
    assert!(found.starts_with("exit 1") && found.ends_with("checked 1 file, 1 agent: 1 other problem\n"), "{found}");
    let locked = folder.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    // Root may read every folder, so there is nothing to see then.
    if std::fs::read_dir(&locked).is_err() {
        let found = folder.run(&["check", "locked"]);
        assert!(found.starts_with("exit 1") && found.contains("cannot read `locked`"), "{found}");
        assert!(!found.contains("no problems"), "{found}");
    }
    std::fs::set_permissions(&locked, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
}
