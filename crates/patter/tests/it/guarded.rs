//! What is guarded of a project: its files of settings and secrets, and the paths that rules speak of.

use patter::permission::{Decision, Permissions, Rule};
use patter::project::{Config, Environment, Project, Tools};
use patter::tool::{Call, Executor};
use serde_json::{Value as Json, json};
use std::fs as real;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use tempfile::TempDir;

/// A project in a folder that holds more.
struct World {
    _temp: TempDir,
    project: PathBuf,
}

impl World {
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

async fn ended(executor: &Executor, tool: &str, arguments: Json) -> String {
    match executor.call(Call::new(tool, arguments)).await {
        Ok(result) => result.to_string(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn rules_see_every_spelling_of_a_path() {
    let world = World::new();
    let rules = "permissions = {allow = ['fs/*'], deny = [\"fs/readFile when path matches 'secret/*'\"]}";
    let executor = world.executor(rules);
    let absolute = world.absolute("secret/a.txt");
    let detour = world.absolute("open/../secret/./a.txt");
    let spellings = ["secret/a.txt", "project:secret/a.txt", "project:/secret/a.txt", "project:x/../secret/a.txt"];
    for path in spellings.into_iter().chain([&*absolute, &detour]) {
        let said = ended(&executor, "fs/readFile", json!({ "path": path })).await;
        assert!(said.contains("is not permitted"), "{path}: {said}");
        let verdict = executor.verdict("fs/readFile", &json!({ "path": path })).unwrap();
        assert_eq!(verdict.decision, Decision::Deny, "{path}");
    }
    for path in ["open.txt", "project:open.txt", &world.absolute("open.txt")] {
        let said = ended(&executor, "fs/readFile", json!({ "path": path })).await;
        assert!(said.contains("\"content\":\"open\""), "{path}: {said}");
    }

    // Only what is allowed in both forms is allowed.
    let executor = world.executor("permissions = {allow = [\"fs/readFile when path matches 'project:*'\"]}");
    let said = ended(&executor, "fs/readFile", json!({"path": "project:open.txt"})).await;
    assert!(said.contains("no rule allows it"), "{said}");
}

#[tokio::test]
async fn rules_see_a_file_of_two_roots_as_one() {
    let world = World::new();
    let config = "fs = {roots = ['.', 'secret', '..']}\n\
        permissions = {allow = ['fs/*'], deny = [\"fs/readFile when path matches 'secret/*'\"]}";
    let executor = world.executor(config);
    for path in ["secret:a.txt", "..:project/secret/a.txt", &world.absolute("secret/a.txt"), ".:secret/a.txt"] {
        let said = ended(&executor, "fs/readFile", json!({ "path": path })).await;
        assert!(said.contains("is not permitted"), "{path}: {said}");
    }
    let executor = world.executor(&config.replace("'secret/*'", "'..:other/*'"));
    let other = world.project.with_file_name("other").join("x").display().to_string();
    for path in ["..:other/x", "..:/project/../other/x", &other] {
        let said = ended(&executor, "fs/readFile", json!({ "path": path })).await;
        assert!(said.contains("is not permitted"), "{path}: {said}");
    }
}

#[tokio::test]
async fn the_secrets_of_a_project_within_a_root_are_guarded() {
    let world = World::new();
    let executor = world.executor("fs = {roots = ['..']}");
    let said = ended(&executor, "fs/readFile", json!({"path": "project/.env"})).await;
    assert!(said.ends_with("`project/.env` holds secrets, and is not for tools"), "{said}");
    let said = ended(&executor, "fs/searchFiles", json!({"regex": "hunter2"})).await;
    assert_eq!(said, "{\"matches\":[],\"hasMore\":false}");
}

#[tokio::test]
async fn what_sets_up_a_project_is_not_written() {
    let world = World::new();
    real::hard_link(world.project.join("patter.toml"), world.project.join("hard.txt")).unwrap();
    symlink("patter.toml", world.project.join("link.txt")).unwrap();
    symlink(".git", world.project.join("kept")).unwrap();
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
    let nested = world.executor("fs = {roots = ['..']}");
    let executor = world.executor("");
    for path in paths {
        for mode in ["create", "overwrite", "append"] {
            for (executor, path) in [(&executor, path.to_owned()), (&nested, format!("project/{path}"))] {
                let arguments = json!({"path": path, "content": "x", "mode": mode});
                let said = ended(executor, "fs/writeFile", arguments).await;
                let expected = format!("`{path}` sets up the project, and is not for tools to write");
                assert!(said.ends_with(&expected), "{mode}: {said}");
            }
        }
    }
    assert_eq!(real::read_to_string(world.project.join("patter.toml")).unwrap(), "");
    assert!(!world.project.join(".git/new").exists() && !world.project.join("nested").exists());
    let said = ended(&executor, "fs/readFile", json!({"path": "patter.toml"})).await;
    assert!(said.contains("\"content\":\"\""), "{said}");
    let said = ended(&executor, "fs/writeFile", json!({"path": ".gitignore", "content": "x"})).await;
    assert_eq!(said, "{\"path\":\".gitignore\",\"bytes\":1}");
}

#[tokio::test]
async fn an_empty_list_of_roots_is_no_folder() {
    let world = World::new();
    let read = json!({"path": "open.txt"});
    let said = ended(&world.executor("fs = {roots = []}"), "fs/readFile", read.clone()).await;
    assert!(said.ends_with("no folder may be used"), "{said}");
    let said = ended(&world.executor("[fs]"), "fs/readFile", read).await;
    assert!(said.contains("\"content\":\"open\""), "{said}");
}
