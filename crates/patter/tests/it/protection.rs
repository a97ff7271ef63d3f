//! Protection of a project: its settings and secrets, and the paths that rules apply to.

use patter::permission::{Decision, Permissions, Rule};
use patter::project::{Config, Environment, Project, Tools};
use patter::tool::{Approval, CallRequest, Executor};
use serde_json::{Value as Json, json};
use std::fs as real;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use tempfile::TempDir;

/// A project in a larger folder.
struct Fixture {
    _temp: TempDir,
    project: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let temp = TempDir::new().unwrap();
        let project = temp.path().canonicalize().unwrap().join("project");
        real::create_dir_all(project.join("secret/deep")).unwrap();
        real::create_dir_all(project.join(".git/hooks")).unwrap();
        real::write(project.join("secret/a.txt"), "hidden").unwrap();
        real::write(project.join("open.txt"), "open").unwrap();
        real::write(project.join("patter.toml"), "").unwrap();
        real::write(project.join(".env"), "TOKEN=hunter2").unwrap();
        Self { _temp: temp, project }
    }

    fn executor(&self, config: &str) -> Executor {
        let config = Config::parse(config).unwrap();
        let nothing = Project::read::<&str, &str>([]);
        let tools = Tools::read(&nothing, Some(&self.project), &config, &Environment::default()).unwrap();
        let rules = config.permissions.rules().unwrap();
        let all = Rule::parse("allow *", "the test").unwrap();
        let rules = if rules.is_empty() { vec![all] } else { rules };
        Executor::new(tools.library().unwrap().into(), Permissions::default().with_all(rules))
    }

    fn absolute(&self, path: &str) -> String {
        self.project.join(path).display().to_string()
    }
}

async fn call(executor: &Executor, tool: &str, arguments: Json) -> String {
    match executor.call(CallRequest::new(tool, arguments)).await {
        Ok(result) => result.to_string(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn rules_apply_to_every_spelling_of_a_path() {
    let fixture = Fixture::new();
    let rules = "permissions = {allow = ['fs/*'], deny = [\"fs/readFile when path matches 'secret/*'\"]}";
    let executor = fixture.executor(rules);
    let absolute = fixture.absolute("secret/a.txt");
    let detour = fixture.absolute("open/../secret/./a.txt");
    let spellings = ["secret/a.txt", "project:secret/a.txt", "project:/secret/a.txt", "project:x/../secret/a.txt"];
    for path in spellings.into_iter().chain([&*absolute, &detour]) {
        let outcome = call(&executor, "fs/readFile", json!({ "path": path })).await;
        assert!(outcome.contains("is not permitted"), "{path}: {outcome}");
        let verdict = executor.verdict("fs/readFile", &json!({ "path": path })).unwrap();
        assert_eq!(verdict.decision, Decision::Deny, "{path}");
    }
    for path in ["open.txt", "project:open.txt", &fixture.absolute("open.txt")] {
        let outcome = call(&executor, "fs/readFile", json!({ "path": path })).await;
        assert!(outcome.contains("\"content\":\"open\""), "{path}: {outcome}");
    }

    // A call is allowed only if both forms of the path are.
    let executor = fixture.executor("permissions = {allow = [\"fs/readFile when path matches 'project:*'\"]}");
    let outcome = call(&executor, "fs/readFile", json!({"path": "project:open.txt"})).await;
    assert!(outcome.contains("no rule allows it"), "{outcome}");
}

#[tokio::test]
async fn rules_apply_to_a_file_in_two_roots() {
    let fixture = Fixture::new();
    let config = "fs = {roots = ['.', 'secret', '..']}\n\
        permissions = {allow = ['fs/*'], deny = [\"fs/readFile when path matches 'secret/*'\"]}";
    let executor = fixture.executor(config);
    for path in ["secret:a.txt", "..:project/secret/a.txt", &fixture.absolute("secret/a.txt"), ".:secret/a.txt"] {
        let outcome = call(&executor, "fs/readFile", json!({ "path": path })).await;
        assert!(outcome.contains("is not permitted"), "{path}: {outcome}");
    }
    let executor = fixture.executor(&config.replace("'secret/*'", "'..:other/*'"));
    let other = fixture.project.with_file_name("other").join("x").display().to_string();
    for path in ["..:other/x", "..:/project/../other/x", &other] {
        let outcome = call(&executor, "fs/readFile", json!({ "path": path })).await;
        assert!(outcome.contains("is not permitted"), "{path}: {outcome}");
    }
}

/// Rules over paths apply to what a call reads, not only to its argument `path`.
#[tokio::test]
async fn rules_apply_to_the_files_that_a_call_reads() {
    let fixture = Fixture::new();
    real::write(fixture.project.join("secret.txt"), "hidden").unwrap();
    real::write(fixture.project.join("shown.txt"), "hidden? no").unwrap();
    symlink("secret.txt", fixture.project.join("link.txt")).unwrap();
    symlink("secret", fixture.project.join("folder")).unwrap();
    let rule = |rule: &str| format!("permissions = {{allow = ['fs/*'], deny = [\"{rule}\"]}}");
    let executor = fixture.executor(&rule("fs/* when path matches 'secret*'"));
    for path in [".", "", "project:", &fixture.absolute("")] {
        let outcome = call(&executor, "fs/searchFiles", json!({"path": path, "regex": "hidden"})).await;
        assert_eq!(outcome, r#"{"matches":[{"path":"shown.txt","line":1,"text":"hidden? no"}],"hasMore":false}"#);
        let outcome = call(&executor, "fs/listFolder", json!({ "path": path })).await;
        assert!(outcome.contains("shown.txt") && !outcome.contains("secret"), "{outcome}");
    }
    // Names are found by what they are, not by what links call them.
    for path in ["link.txt", "folder/a.txt", "./link.txt", &fixture.absolute("folder/a.txt")] {
        let outcome = call(&executor, "fs/readFile", json!({ "path": path })).await;
        assert!(outcome.contains("is not permitted"), "{path}: {outcome}");
        let arguments = json!({"path": path, "content": "x", "mode": "overwrite"});
        let outcome = call(&executor, "fs/writeFile", arguments).await;
        assert!(outcome.contains("is not permitted"), "{path}: {outcome}");
    }
    for tool in ["fs/searchFiles", "fs/listFolder"] {
        let outcome = call(&executor, tool, json!({"path": "folder"})).await;
        assert!(outcome.contains("is not permitted"), "{tool}: {outcome}");
    }
    // The name of a link counts too, however it is written.
    let executor = fixture.executor(&rule("fs/* when path is 'link.txt'"));
    for path in ["link.txt", "project:link.txt", &fixture.absolute("link.txt")] {
        let outcome = call(&executor, "fs/readFile", json!({ "path": path })).await;
        assert!(outcome.contains("is not permitted"), "{path}: {outcome}");
    }
    // A folder that must not be listed is not searched either.
    let executor = fixture.executor(&rule("fs/* when path is 'secret'"));
    let outcome = call(&executor, "fs/searchFiles", json!({"regex": "hidden$"})).await;
    assert!(outcome.contains("secret.txt") && !outcome.contains("a.txt"), "{outcome}");
    // A link does not lead out of what is allowed.
    let executor = fixture.executor("permissions = {allow = [\"fs/readFile when path matches '*.txt'\"]}");
    symlink("patter.toml", fixture.project.join("settings.txt")).unwrap();
    let outcome = call(&executor, "fs/readFile", json!({"path": "settings.txt"})).await;
    assert!(outcome.contains("no rule allows it"), "{outcome}");
    // A folder is allowed with what it contains.
    let executor = fixture.executor("permissions = {allow = [\"fs/searchFiles when path is 'secret'\"]}");
    let outcome = call(&executor, "fs/searchFiles", json!({"path": "secret", "regex": "hidden"})).await;
    assert!(outcome.contains("secret/a.txt"), "{outcome}");
}

/// An approval covers what was asked about, and nothing else.
#[tokio::test]
async fn an_approved_search_excludes_what_needs_another_approval() {
    let fixture = Fixture::new();
    let search = async |config: &str| {
        let executor = fixture.executor(config);
        let mut request = CallRequest::new("fs/searchFiles", json!({"regex": "hidden|open"}));
        request.approval = Approval::Given;
        executor.call(request).await.unwrap()["matches"].as_array().unwrap().len()
    };
    let ask = "permissions = {ask = [\"fs/* when path matches 'secret*'\"], allow = ['fs/*']}";
    assert_eq!(search(ask).await, 1);
    assert_eq!(search(&ask.replace("allow", "deny = [], allow").replace("ask = [", "ask = ['searchFiles', ")).await, 1);
    assert_eq!(search("permissions = {ask = ['searchFiles']}").await, 2);
}

mod properties {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::{select, subsequence};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever the files, the links and the rule, no call returns the text of a file that the rule is about.
        #[test]
        fn no_call_returns_the_text_of_a_denied_file(
            files in subsequence(vec!["a", "b", "s/a", "s/b", "s/t/a", "t/s", "u/a"], 1..=7),
            links in subsequence(vec![("l", "s"), ("m", "a"), ("t/l", "../s"), ("n", "l/t"), ("u/b", "../b")], 0..=5),
            pattern in select(vec!["a", "s*", "s/*", "*/a", "?/t*", "*b", "u", "t/?"]),
        ) {
            let temp = TempDir::new().unwrap();
            let project = temp.path().canonicalize().unwrap();
            for file in &files {
                real::create_dir_all(project.join(file).parent().unwrap()).unwrap();
                real::write(project.join(file), format!("text of {file}")).unwrap();
            }
            for (link, target) in &links {
                real::create_dir_all(project.join(link).parent().unwrap()).unwrap();
                symlink(target, project.join(link)).unwrap();
            }
            let glob = patter::text::Glob::new(pattern);
            let fixture = Fixture { _temp: temp, project };
            let config = format!("permissions = {{allow = ['fs/*'], deny = [\"fs/* when path matches '{pattern}'\"]}}");
            let executor = fixture.executor(&config);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let places = [".", "s", "t", "u", "l", "n", "t/l", "s/t", "s/../t"];
            let searches = places.map(|place| ("fs/searchFiles", json!({"path": place, "regex": "text"})));
            let paths = files.iter().map(|file| (*file).to_owned());
            let linked = links.iter().flat_map(|(link, _)| ["", "/a", "/b", "/t/a"].map(|rest| format!("{link}{rest}")));
            let reads = paths.chain(linked).map(|path| ("fs/readFile", json!({ "path": path })));
            for (tool, arguments) in searches.into_iter().chain(reads.collect::<Vec<_>>()) {
                let outcome = runtime.block_on(call(&executor, tool, arguments.clone()));
                for file in files.iter().filter(|file| glob.matches(file)) {
                    prop_assert!(!outcome.contains(&format!("text of {file}\"")), "{} {}: {}", tool, arguments, outcome);
                }
            }
            // What the rule is not about can still be read.
            for file in files.iter().filter(|file| !glob.matches(file)) {
                let outcome = runtime.block_on(call(&executor, "fs/readFile", json!({ "path": file })));
                prop_assert!(outcome.contains(&format!("text of {file}\"")), "{}: {}", file, outcome);
            }
        }
    }
}

#[tokio::test]
async fn protects_the_secrets_of_a_project_within_a_root() {
    let fixture = Fixture::new();
    let executor = fixture.executor("fs = {roots = ['..']}");
    let outcome = call(&executor, "fs/readFile", json!({"path": "project/.env"})).await;
    assert!(outcome.ends_with("`project/.env` contains secrets, which tools cannot access"), "{outcome}");
    let outcome = call(&executor, "fs/searchFiles", json!({"regex": "hunter2"})).await;
    assert_eq!(outcome, "{\"matches\":[],\"hasMore\":false}");
}

#[tokio::test]
async fn protects_the_configuration_of_a_project() {
    let fixture = Fixture::new();
    real::hard_link(fixture.project.join("patter.toml"), fixture.project.join("hard.txt")).unwrap();
    symlink("patter.toml", fixture.project.join("link.txt")).unwrap();
    symlink(".git", fixture.project.join("kept")).unwrap();
    let paths = [
        "patter.toml",
        "./secret/../patter.toml",
        "patter.lock",
        "nested/patter.toml",
        "hard.txt",
        "link.txt",
        ".git/hooks/pre-commit",
        ".git/new/er",
        "new/../.git/x",
        "kept/hooks/pre-commit",
        "kept/new/er",
        "nested/.GIT/config",
        ".git",
    ];
    let nested = fixture.executor("fs = {roots = ['..']}");
    let executor = fixture.executor("");
    for path in paths {
        for mode in ["create", "overwrite", "append"] {
            for (executor, path) in [(&executor, path.to_owned()), (&nested, format!("project/{path}"))] {
                let arguments = json!({"path": path, "content": "x", "mode": mode});
                let outcome = call(executor, "fs/writeFile", arguments).await;
                let expected = format!("`{path}` configures the project, and tools cannot write it");
                assert!(outcome.ends_with(&expected), "{mode}: {outcome}");
            }
        }
    }
    assert_eq!(real::read_to_string(fixture.project.join("patter.toml")).unwrap(), "");
    assert!(!fixture.project.join(".git/new").exists() && !fixture.project.join("nested").exists());
    let outcome = call(&executor, "fs/readFile", json!({"path": "patter.toml"})).await;
    assert!(outcome.contains("\"content\":\"\""), "{outcome}");
    let outcome = call(&executor, "fs/writeFile", json!({"path": ".gitignore", "content": "x"})).await;
    assert_eq!(outcome, "{\"path\":\".gitignore\",\"bytes\":1}");
}

#[tokio::test]
async fn an_empty_list_of_roots_allows_no_folder() {
    let fixture = Fixture::new();
    let read = json!({"path": "open.txt"});
    let outcome = call(&fixture.executor("fs = {roots = []}"), "fs/readFile", read.clone()).await;
    assert!(outcome.ends_with("no folders are allowed"), "{outcome}");
    let outcome = call(&fixture.executor("[fs]"), "fs/readFile", read).await;
    assert!(outcome.contains("\"content\":\"open\""), "{outcome}");
}

/// A project with agents, scripts and servers, in which a tool may try to write them.
fn defined(fixture: &Fixture, config: &str) -> Executor {
    let project = &fixture.project;
    let toolbox = "[t:Toolbox |\n  [check:Command {description: 'Checks', run: ['sh', 'scripts/check.sh', '{a}']} | (a::Text)==>(::Text)],\n  \
        [later:Command {description: 'Runs', run: ['./bin/later', 'missing.py', '--rules=conf/rules']} | ()==>(::Text)],\n  \
        [any:Command {description: 'Runs', run: ['sh', './steps/{a}.sh']} | (a::Text)==>(::Text)],\n  \
        [shell:Command {description: 'Runs', run: ['sh', '-c', 'exec tools/run --fast']} | ()==>(::Text)]]";
    real::create_dir_all(project.join("agents")).unwrap();
    real::create_dir_all(project.join("scripts")).unwrap();
    real::write(project.join("agents/a.gram"), toolbox).unwrap();
    real::write(project.join("scripts/check.sh"), "true").unwrap();
    real::write(project.join("server.js"), "1").unwrap();
    real::write(
        project.join("servers.json"),
        "{\"mcpServers\": {\"s\": {\"command\": \"node\", \"args\": [\"server.js\"]}, \
         \"off\": {\"command\": \"node\", \"args\": [\"off.js\"], \"disabled\": true}}}",
    )
    .unwrap();
    let config = Config::parse(&format!("mcp-servers = 'servers.json'\n{config}")).unwrap();
    let declared = project.join("declared.txt").display().to_string();
    let read = Project::read([("agents/a.gram".to_owned(), toolbox), (declared, "[x:Agent]")]);
    let tools = Tools::read(&read, Some(project), &config, &Environment::default()).unwrap();
    let rules = vec![Rule::parse("allow *", "the test").unwrap()];
    Executor::new(tools.library().unwrap().into(), Permissions::default().with_all(rules))
}

#[tokio::test]
async fn tools_cannot_write_what_defines_the_project() {
    let fixture = Fixture::new();
    let executor = defined(&fixture, "[mcp.asleep]\ncommand = './bin/asleep'\ndisabled = true");
    let project = &fixture.project;
    symlink("agents/a.gram", project.join("soft.txt")).unwrap();
    symlink("agents", project.join("folder")).unwrap();
    real::hard_link(project.join("agents/a.gram"), project.join("hard.txt")).unwrap();
    real::hard_link(project.join("scripts/check.sh"), project.join("script.txt")).unwrap();
    let paths = [
        "agents/a.gram",
        "agents/new.gram",
        "agents/NEW.GRAM",
        "x/../agents/./a.gram",
        "folder/a.gram",
        "folder/new.gram",
        "soft.txt",
        "hard.txt",
        "script.txt",
        "servers.json",
        "SERVERS.json",
        "server.js",
        "off.js",
        "bin/asleep",
        "scripts/check.sh",
        "bin/later",
        "missing.py",
        "conf/rules",
        "tools/run",
        "steps/new.sh",
        "Steps/NEW.sh",
        "declared.txt",
        ".patter/sessions.db",
        ".patter/new",
        "patter.loc\u{212a}",
        ".g\u{200c}it/config",
        &fixture.absolute("agents/a.gram"),
    ];
    for path in paths {
        for mode in ["create", "overwrite", "append"] {
            let arguments = json!({"path": path, "content": "[x:Agent]", "mode": mode});
            let outcome = call(&executor, "fs/writeFile", arguments).await;
            assert!(outcome.ends_with("configures the project, and tools cannot write it"), "{path} {mode}: {outcome}");
        }
        let outcome = call(&executor, "fs/editFile", json!({"path": path, "oldText": "a", "newText": "b"})).await;
        assert!(outcome.ends_with("configures the project, and tools cannot write it"), "{path}: {outcome}");
    }
    // A link to a file that does not exist yet would create that file.
    symlink("agents/later.gram", project.join("log.txt")).unwrap();
    for mode in ["create", "overwrite", "append"] {
        let outcome = call(&executor, "fs/writeFile", json!({"path": "log.txt", "content": "x", "mode": mode})).await;
        assert!(outcome.ends_with("`log.txt` is a link to a file that does not exist"), "{mode}: {outcome}");
    }
    assert!(!project.join("agents/later.gram").exists() && !project.join(".patter").exists());
    assert_eq!(real::read_to_string(project.join("scripts/check.sh")).unwrap(), "true");
    let outcome = call(&executor, "fs/readFile", json!({"path": "agents/a.gram"})).await;
    assert!(outcome.contains("Toolbox"), "{outcome}");
    for path in ["agents/notes.txt", "steps/notes.txt", "tools/other", "run.sh"] {
        let outcome = call(&executor, "fs/writeFile", json!({"path": path, "content": "x"})).await;
        assert_eq!(outcome, format!("{{\"path\":\"{path}\",\"bytes\":1}}"));
    }
}

#[tokio::test]
async fn a_project_may_let_tools_write_definitions() {
    let fixture = Fixture::new();
    let executor =
        defined(&fixture, "[fs]\nwritable = ['agents/*.gram', 'servers.json', 'patter.toml', '.env', '.git/*']");
    for path in ["agents/a.gram", "agents/new.gram", "servers.json"] {
        let arguments = json!({"path": path, "content": "//", "mode": "overwrite"});
        let outcome = call(&executor, "fs/writeFile", arguments).await;
        assert_eq!(outcome, format!("{{\"path\":\"{path}\",\"bytes\":2}}"));
    }
    for path in ["patter.toml", ".env", ".git/config", "other.gram", "scripts/check.sh"] {
        let arguments = json!({"path": path, "content": "//", "mode": "overwrite"});
        let outcome = call(&executor, "fs/writeFile", arguments).await;
        assert!(outcome.contains("tools cannot"), "{path}: {outcome}");
    }
}
