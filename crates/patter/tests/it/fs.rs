//! The tools for files, and every way out of their folders.

use patter::tool::standard::fs::{Root, fs};
use patter::tool::{Effect, Failure, Kind, ToolContext};
use serde_json::{Value as Json, json};
use std::fs as real;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// A folder that may be used, with a neighbour that may not.
struct World {
    _temp: TempDir,
    root: PathBuf,
    outside: PathBuf,
}

impl World {
    fn new() -> Self {
        let temp = TempDir::new().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let (root, outside) = (base.join("root"), base.join("outside"));
        real::create_dir_all(root.join("sub/deep")).unwrap();
        real::create_dir_all(&outside).unwrap();
        real::write(root.join("a.txt"), "one\ntwo\nthree\n").unwrap();
        real::write(root.join("sub/b.txt"), "in sub").unwrap();
        real::write(outside.join("secret.txt"), "SECRET").unwrap();
        Self { _temp: temp, root, outside }
    }

    async fn call(&self, name: &str, arguments: Json) -> Result<Json, Failure> {
        call(vec![Root::new("project", &self.root)], name, arguments).await.0
    }

    async fn ok(&self, name: &str, arguments: Json) -> Json {
        self.call(name, arguments).await.unwrap()
    }

    async fn fails(&self, name: &str, arguments: Json) -> String {
        self.call(name, arguments.clone()).await.expect_err(&arguments.to_string()).message().to_owned()
    }

    fn outside_message(&self, path: &str) -> String {
        format!("`{path}` is outside of the only folder that may be used, `project:` ({})", self.root.display())
    }
}

async fn call(roots: Vec<Root>, name: &str, arguments: Json) -> (Result<Json, Failure>, Vec<String>) {
    let tools = fs("/no/project", roots);
    let tool = tools.iter().find(|tool| tool.name() == name).unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&heard);
    let context =
        ToolContext::new("1").with_progress(Arc::new(move |progress| listener.lock().unwrap().push(progress.message)));
    let call = tool.implementation.call(arguments, &context);
    let result = tokio::time::timeout(Duration::from_secs(60), call).await.expect("the call hangs");
    if let Ok(result) = &result {
        let returns = &tool.definition.signature.returns;
        assert_eq!(returns.check(result, &tool.definition.records), Ok(()), "{name}: {result}");
    }
    let heard = heard.lock().unwrap().clone();
    (result, heard)
}

#[test]
fn there_are_four_tools() {
    let tools = fs("/", vec![Root::new("project", "/")]);
    let shown: Vec<_> = tools.iter().map(|tool| (tool.name(), tool.kind, tool.effect, tool.idempotent)).collect();
    assert_eq!(
        shown,
        [
            ("readFile", Kind::Native, Effect::Reads, true),
            ("listFolder", Kind::Native, Effect::Reads, true),
            ("searchFiles", Kind::Native, Effect::Reads, true),
            ("writeFile", Kind::Native, Effect::Writes, false),
        ]
    );
}

#[tokio::test]
async fn lines_are_read() {
    let world = World::new();
    let check = async |arguments: Json, content: &str, lines: [u64; 2], has_more: bool| {
        let found = world.ok("readFile", arguments.clone()).await;
        let [from, to] = lines;
        let bytes = found["bytes"].clone();
        let expected = json!({"content": content, "fromLine": from, "toLine": to, "hasMore": has_more, "bytes": bytes});
        assert_eq!(found, expected, "{arguments}");
    };
    check(json!({"path": "a.txt"}), "one\ntwo\nthree\n", [1, 3], false).await;
    check(json!({"path": "a.txt", "lines": 2}), "one\ntwo\n", [1, 2], true).await;
    check(json!({"path": "./sub/../a.txt", "fromLine": 3}), "three\n", [3, 3], false).await;
    check(json!({"path": "a.txt", "fromLine": 4}), "", [4, 3], false).await;
    check(json!({"path": world.root.join("sub/b.txt")}), "in sub", [1, 1], false).await;
    check(json!({"path": "project:sub/b.txt"}), "in sub", [1, 1], false).await;
    assert_eq!(world.fails("readFile", json!({"path": "a.txt", "fromLine": 9})).await, "`a.txt` has only 3 lines");
    assert_eq!(world.fails("readFile", json!({"path": "none"})).await, "there is no `none`");
    assert_eq!(world.fails("readFile", json!({"path": "sub"})).await, "`sub` is a folder, not a file");
    assert_eq!(
        world.fails("readFile", json!({"path": "a.txt/x"})).await,
        "`a.txt/x` leads through something that is no folder"
    );
    assert_eq!(world.fails("readFile", json!({"path": "a\0"})).await, "a path holds no NUL byte");
    let long = "x".repeat(5000);
    assert_eq!(world.fails("readFile", json!({ "path": long })).await, "the path is longer than a path can be");
    real::write(world.root.join("empty"), "").unwrap();
    check(json!({"path": "empty"}), "", [1, 0], false).await;
}

#[tokio::test]
async fn what_is_large_or_no_text_is_told() {
    let world = World::new();
    let file = real::File::create(world.root.join("huge")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert_eq!(
        world.fails("readFile", json!({"path": "huge", "lines": 1})).await,
        format!("`huge` is no text, but binary, with {} bytes", 1_u64 << 40)
    );
    real::write(world.root.join("many"), "0123456789\n".repeat(200_000)).unwrap();
    let found = world.ok("readFile", json!({"path": "many", "lines": 10_000})).await;
    assert_eq!((&found["toLine"], &found["hasMore"]), (&json!(10_000), &json!(true)));
    real::write(world.root.join("wide"), format!("{}\nnext\n", "w".repeat(100_000))).unwrap();
    let roots = || vec![Root::new("project", &world.root)];
    let (found, heard) = call(roots(), "readFile", json!({"path": "wide"})).await;
    let content = found.unwrap()["content"].as_str().unwrap().to_owned();
    let (first, rest) = content.split_once('\n').unwrap();
    assert!(first.starts_with("www") && first.ends_with("w … [83617 more bytes in this line]"), "{}", first.len());
    assert_eq!(rest, "next\n");
    assert_eq!(heard, ["a line is too long to be read as a whole"]);
    real::write(world.root.join("latin"), b"caf\xe9").unwrap();
    let (found, heard) = call(roots(), "readFile", json!({"path": "latin"})).await;
    assert_eq!(found.unwrap()["content"], "caf\u{fffd}");
    assert_eq!(heard, ["the file is not UTF-8; what cannot be read is replaced by `\u{fffd}`"]);
}

#[tokio::test]
async fn folders_are_listed_by_name() {
    let world = World::new();
    symlink("a.txt", world.root.join("link")).unwrap();
    let expected = json!({"entries": [
        {"name": "a.txt", "kind": "file", "bytes": 14},
        {"name": "link", "kind": "link"},
        {"name": "sub", "kind": "folder"},
    ], "hasMore": false});
    for path in [json!({}), json!({"path": ""}), json!({"path": "sub/.."}), json!({ "path": world.root })] {
        assert_eq!(world.ok("listFolder", path).await, expected);
    }
    assert_eq!(world.fails("listFolder", json!({"path": "a.txt"})).await, "`a.txt` is no folder");
    for index in 0..1001 {
        real::write(world.root.join(format!("sub/deep/{index:04}")), "").unwrap();
    }
    let found = world.ok("listFolder", json!({"path": "sub/deep"})).await;
    let entries = found["entries"].as_array().unwrap();
    assert_eq!((entries.len(), &found["hasMore"]), (1000, &json!(true)));
    assert_eq!((&entries[0]["name"], &entries[999]["name"]), (&json!("0000"), &json!("0999")));
}

#[tokio::test]
async fn files_are_searched() {
    let world = World::new();
    real::write(world.root.join(".gitignore"), "target/\n*.log\n!keep.log\n").unwrap();
    real::create_dir_all(world.root.join("target")).unwrap();
    real::create_dir_all(world.root.join(".git")).unwrap();
    for (path, content) in [
        ("target/built.txt", "two"),
        (".git/config", "two"),
        ("noise.log", "two"),
        ("sub/keep.log", "two"),
        ("sub/deep/c.txt", "x two\ny\nTWO"),
        ("binary.txt", "two\0"),
    ] {
        real::write(world.root.join(path), content).unwrap();
    }
    symlink(&world.outside, world.root.join("out")).unwrap();
    symlink(world.outside.join("secret.txt"), world.root.join("out.txt")).unwrap();
    let check = async |arguments: Json, expected: &[&str]| {
        let found = world.ok("searchFiles", arguments.clone()).await;
        let shown = found["matches"].as_array().unwrap().iter().map(|found| {
            let parts = [&found["path"], &found["line"], &found["text"]].map(|part| match part {
                Json::String(text) => text.clone(),
                Json::Null => String::new(),
                other => other.to_string(),
            });
            parts.join(":").trim_end_matches(':').to_owned()
        });
        assert_eq!(shown.collect::<Vec<_>>(), expected, "{arguments}");
        found["hasMore"].clone()
    };
    let txt = ["a.txt", "binary.txt", "sub/b.txt", "sub/deep/c.txt"];
    assert_eq!(check(json!({"names": "*.txt"}), &txt).await, false);
    check(json!({"names": "sub/**/*.txt"}), &txt[2..]).await;
    check(json!({"names": "/*.txt"}), &txt[..2]).await;
    check(json!({"names": "*.log"}), &["sub/keep.log"]).await;
    check(json!({"path": "sub", "names": "*.txt"}), &txt[2..]).await;
    check(json!({"path": "sub", "names": "/*.txt"}), &txt[2..3]).await;
    let two = ["a.txt:2:two", "sub/deep/c.txt:1:x two", "sub/keep.log:1:two"];
    check(json!({"regex": "two"}), &two).await;
    check(json!({"regex": "(?i)^two$"}), &["a.txt:2:two", "sub/deep/c.txt:3:TWO", "sub/keep.log:1:two"]).await;
    assert_eq!(check(json!({"regex": "two", "limit": 3}), &two).await, false);
    assert_eq!(check(json!({"regex": "two", "limit": 2}), &two[..2]).await, true);
    check(json!({"regex": "SECRET"}), &[]).await;
    assert!(world.fails("searchFiles", json!({"regex": "("})).await.starts_with("`regex` is no regular expression"));
    assert!(world.fails("searchFiles", json!({"names": "{a"})).await.starts_with("`{a` is no glob"));
    let wide = world.fails("searchFiles", json!({"regex": "(a{1000}){1000}"})).await;
    assert!(wide.contains("size limit"), "{wide}");
}

#[tokio::test]
async fn files_are_written() {
    let world = World::new();
    let read = |path: &str| real::read_to_string(world.root.join(path)).unwrap();
    let write = |path: &str, content: &str, mode: &str| json!({"path": path, "content": content, "mode": mode});
    let written = world.ok("writeFile", json!({"path": "new/er/c.txt", "content": "c"})).await;
    assert_eq!(written, json!({"path": "new/er/c.txt", "bytes": 1}));
    assert_eq!(
        world.fails("writeFile", write("new/er/c.txt", "d", "create")).await,
        "`new/er/c.txt` is there already; the mode `overwrite` replaces it, `append` adds to it"
    );
    world.ok("writeFile", write("new/er/c.txt", "+", "append")).await;
    world.ok("writeFile", write("fresh.txt", "made", "append")).await;
    assert_eq!((read("new/er/c.txt"), read("fresh.txt")), ("c+".to_owned(), "made".to_owned()));

    real::set_permissions(world.root.join("a.txt"), real::Permissions::from_mode(0o640)).unwrap();
    symlink("a.txt", world.root.join("link")).unwrap();
    world.ok("writeFile", write("link", "over", "overwrite")).await;
    assert_eq!(read("a.txt"), "over");
    assert!(real::symlink_metadata(world.root.join("link")).unwrap().is_symlink());
    assert_eq!(real::metadata(world.root.join("a.txt")).unwrap().permissions().mode() & 0o777, 0o640);
    let left: Vec<_> = real::read_dir(&world.root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".new")), "{left:?}");

    for mode in ["overwrite", "append"] {
        assert_eq!(world.fails("writeFile", write("sub", "x", mode)).await, "`sub` is a folder, not a file");
    }
    for path in ["", ".", "fresh/", "sub/../"] {
        let message = world.fails("writeFile", write(path, "x", "create")).await;
        assert_eq!(message, format!("`{path}` names no file"));
    }
    let large = "x".repeat((16 << 20) + 1);
    let message = world.fails("writeFile", write("large", &large, "create")).await;
    assert_eq!(message, "the content has 16777217 bytes; 16777216 can be written at once");
    assert!(!world.root.join("large").exists());
}

/// The secrets of a project are not for models, whatever way leads to them.
#[tokio::test]
async fn the_file_of_secrets_is_out_of_reach() {
    let world = World::new();
    let secret = |path: &str| format!("`{path}` holds secrets, and is not for tools");
    assert_eq!(world.fails("writeFile", json!({"path": ".env", "content": "A=b"})).await, secret(".env"));
    real::write(world.root.join(".env"), "TOKEN=hunter2\n").unwrap();
    symlink(".env", world.root.join("notes.txt")).unwrap();
    real::hard_link(world.root.join(".env"), world.root.join("hard.txt")).unwrap();
    for path in [".env", "./.env", "sub/../.env", "notes.txt", "hard.txt"] {
        assert_eq!(world.fails("readFile", json!({"path": path})).await, secret(path));
        for mode in ["overwrite", "append"] {
            let arguments = json!({"path": path, "content": "x", "mode": mode});
            assert_eq!(world.fails("writeFile", arguments).await, secret(path));
        }
    }
    let found = world.ok("searchFiles", json!({"regex": "hunter2"})).await;
    assert_eq!(found["matches"], json!([]));
    assert_eq!(real::read_to_string(world.root.join(".env")).unwrap(), "TOKEN=hunter2\n");
}

#[tokio::test]
async fn no_path_leads_out() {
    let world = World::new();
    symlink(world.outside.join("secret.txt"), world.root.join("file-link")).unwrap();
    symlink("../outside", world.root.join("folder-link")).unwrap();
    symlink("folder-link", world.root.join("chain")).unwrap();
    symlink("../root/../outside/secret.txt", world.root.join("detour")).unwrap();
    symlink(world.outside.join("made.txt"), world.root.join("dangling")).unwrap();
    let neighbour = world.root.with_file_name("rooted");
    let paths = [
        "../outside/secret.txt",
        "sub/../../outside/secret.txt",
        "project:../outside/secret.txt",
        "file-link",
        "folder-link/secret.txt",
        "chain/secret.txt",
        "detour",
        "dangling",
        "/etc/passwd",
        "/",
        neighbour.to_str().unwrap(),
        &format!("{}/../outside/secret.txt", world.root.display()),
    ];
    for path in paths {
        let message = world.outside_message(path);
        assert_eq!(world.fails("readFile", json!({ "path": path })).await, message);
        assert_eq!(world.fails("listFolder", json!({ "path": path })).await, message);
        assert_eq!(world.fails("searchFiles", json!({ "path": path })).await, message);
        for mode in ["create", "overwrite", "append"] {
            let arguments = json!({"path": path, "content": "BROKEN", "mode": mode});
            assert_eq!(world.fails("writeFile", arguments).await, message, "{mode}");
        }
    }
    let left: Vec<_> = real::read_dir(&world.outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["secret.txt"]);
    assert_eq!(real::read_to_string(world.outside.join("secret.txt")).unwrap(), "SECRET");

    symlink("circle", world.root.join("circle")).unwrap();
    assert_eq!(world.fails("readFile", json!({"path": "circle"})).await, "`circle` leads through links in a circle");
}

#[tokio::test]
async fn several_roots_have_names() {
    let (one, two) = (World::new(), World::new());
    let roots =
        || vec![Root::new("project", &one.root), Root::new("docs", &two.root), Root::new("sub", one.root.join("sub"))];
    real::write(two.root.join("d.txt"), "docs").unwrap();
    let absolute = two.root.join("d.txt");
    for path in ["docs:d.txt", "docs:/d.txt", absolute.to_str().unwrap()] {
        assert_eq!(call(roots(), "readFile", json!({ "path": path })).await.0.unwrap()["content"], "docs");
    }
    let found = call(roots(), "searchFiles", json!({"path": "docs:", "regex": "docs"})).await.0.unwrap();
    assert_eq!(found["matches"], json!([{"path": "docs:d.txt", "line": 1, "text": "docs"}]));
    let inner = one.root.join("sub/../a.txt");
    for path in ["d.txt", "docs:../root/d.txt", "sub:../a.txt", inner.to_str().unwrap(), "/etc/passwd"] {
        let message = call(roots(), "readFile", json!({ "path": path })).await.0.unwrap_err();
        if path == "d.txt" {
            assert_eq!(message.message(), "there is no `d.txt`");
        } else {
            let start = format!("`{path}` is outside of the folders that may be used: `project:` (");
            assert!(message.message().starts_with(&start), "{message:?}");
        }
    }
    let gone = call(vec![Root::new("gone", "/no/such")], "readFile", json!({"path": "x"})).await.0.unwrap_err();
    assert_eq!(gone.message(), "the folder `gone:` (/no/such) cannot be used");
    let none = call(Vec::new(), "readFile", json!({"path": "x"})).await.0.unwrap_err();
    assert_eq!(none.message(), "no folder may be used");
}

#[tokio::test]
async fn pipes_and_devices_hold_nobody_up() {
    let world = World::new();
    let pipe = world.root.join("pipe.txt");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let message = "`pipe.txt` is no regular file, but a device, a pipe or a socket";
    assert_eq!(world.fails("readFile", json!({"path": "pipe.txt"})).await, message);
    for mode in ["overwrite", "append"] {
        let arguments = json!({"path": "pipe.txt", "content": "x", "mode": mode});
        assert_eq!(world.fails("writeFile", arguments).await, message);
    }
    real::create_dir(world.root.join("folder")).unwrap();
    std::process::Command::new("mkfifo").arg(world.root.join("folder/.gitignore")).status().unwrap();
    let found = world.ok("searchFiles", json!({"names": "*.txt", "regex": "."})).await;
    assert_eq!(found["matches"].as_array().unwrap().len(), 4, "{found}");
    let device = call(vec![Root::new("dev", "/dev")], "readFile", json!({"path": "zero"})).await.0.unwrap_err();
    assert_eq!(device.message(), "`zero` is no regular file, but a device, a pipe or a socket");
}

/// Another thread puts links and folders in each other's place while calls run.
#[tokio::test]
async fn links_that_change_during_a_call_lead_nowhere() {
    let world = World::new();
    let (root, outside) = (world.root.clone(), world.outside.clone());
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    real::create_dir(root.join("real")).unwrap();
    real::write(root.join("real/secret.txt"), "harmless").unwrap();
    symlink("real", root.join("swap")).unwrap();
    let swapper = std::thread::spawn(move || {
        let (swap, next) = (root.join("swap"), root.join("next"));
        let mut swaps = 0_u32;
        while !over.load(Ordering::Relaxed) && swaps < 10_000_000 {
            for target in [PathBuf::from("real"), outside.clone()] {
                symlink(&target, &next).unwrap();
                real::rename(&next, &swap).unwrap();
                swaps += 1;
            }
        }
        swaps
    });
    let modes = ["create", "overwrite", "append"];
    let (mut inside, mut refused) = (0, 0);
    for round in 0..600 {
        match world.call("readFile", json!({"path": "swap/secret.txt"})).await {
            Ok(found) => {
                assert_eq!(found["content"], "harmless");
                inside += 1;
            }
            Err(_) => refused += 1,
        }
        let arguments = json!({"path": format!("swap/{round}.txt"), "content": "x", "mode": modes[round % 3]});
        world.call("writeFile", arguments).await.ok();
        if round % 50 == 0 {
            let found = world.ok("searchFiles", json!({"regex": "SECRET"})).await;
            assert_eq!(found["matches"], json!([]));
        }
    }
    is_over.store(true, Ordering::Relaxed);
    let swaps = swapper.join().unwrap();
    assert!(inside > 0 && refused > 0 && swaps > 10, "no race took place: {inside} {refused} {swaps}");
    let left: Vec<_> = real::read_dir(&world.outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["secret.txt"]);
}
