//! The tools for files, and attempts to leave their folders.

use patter::tool::standard::fs::{Root, fs};
use patter::tool::{Effect, ToolContext, ToolFailure, ToolKind};
use serde_json::{Value as Json, json};
use std::fs as real;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// An allowed folder, next to one that is not allowed.
struct Fixture {
    _temp: TempDir,
    root: PathBuf,
    outside: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let temp = TempDir::new().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let root = base.join("root");
        let outside = base.join("outside");
        real::create_dir_all(root.join("sub/deep")).unwrap();
        real::create_dir_all(&outside).unwrap();
        real::write(root.join("a.txt"), "one\ntwo\nthree\n").unwrap();
        real::write(root.join("sub/b.txt"), "in sub").unwrap();
        real::write(outside.join("secret.txt"), "SECRET").unwrap();
        Self { _temp: temp, root, outside }
    }

    async fn call(&self, name: &str, arguments: Json) -> Result<Json, ToolFailure> {
        call(vec![Root::new("project", &self.root)], name, arguments).await.0
    }

    async fn ok(&self, name: &str, arguments: Json) -> Json {
        self.call(name, arguments).await.unwrap()
    }

    async fn fails(&self, name: &str, arguments: Json) -> String {
        self.call(name, arguments.clone()).await.expect_err(&arguments.to_string()).message().to_owned()
    }

    fn outside_message(&self, path: &str) -> String {
        format!("`{path}` is outside the allowed folder `project:` ({})", self.root.display())
    }
}

async fn call(roots: Vec<Root>, name: &str, arguments: Json) -> (Result<Json, ToolFailure>, Vec<String>) {
    let tools = fs("/no/project", roots);
    let tool = tools.iter().find(|tool| tool.name() == name).unwrap();
    let messages = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&messages);
    let context =
        ToolContext::new("1").with_progress(Arc::new(move |progress| listener.lock().unwrap().push(progress.message)));
    let call = tool.implementation.call(arguments, &context);
    let result = tokio::time::timeout(Duration::from_secs(60), call).await.expect("the call hangs");
    if let Ok(result) = &result {
        let returns = &tool.definition.signature.returns;
        assert_eq!(returns.check(result, &tool.definition.records), Ok(()), "{name}: {result}");
    }
    let messages = messages.lock().unwrap().clone();
    (result, messages)
}

#[test]
fn returns_five_tools() {
    let tools = fs("/", vec![Root::new("project", "/")]);
    let shown: Vec<_> = tools.iter().map(|tool| (tool.name(), tool.kind, tool.effect, tool.idempotent)).collect();
    assert_eq!(
        shown,
        [
            ("readFile", ToolKind::Native, Effect::Reads, true),
            ("listFolder", ToolKind::Native, Effect::Reads, true),
            ("searchFiles", ToolKind::Native, Effect::Reads, true),
            ("writeFile", ToolKind::Native, Effect::Writes, false),
            ("editFile", ToolKind::Native, Effect::Writes, false),
        ]
    );
}

#[tokio::test]
async fn reads_images_and_documents_as_a_whole() {
    let fixture = Fixture::new();
    for (name, content, kind, mime_type, data) in [
        ("photo.jpg", &b"\x89PNG\r\n\x1a\n...."[..], "image", "image/png", "iVBORw0KGgouLi4u"),
        ("report", b"%PDF-1.7\n....", "document", "application/pdf", "JVBERi0xLjcKLi4uLg=="),
    ] {
        real::write(fixture.root.join(name), content).unwrap();
        let found = fixture.ok("readFile", json!({"path": name, "fromLine": 7})).await;
        assert_eq!(found["media"], json!({"type": kind, "mimeType": mime_type, "data": data}));
        assert_eq!(
            (&found["content"], &found["bytes"], &found["hasMore"]),
            (&json!(""), &json!(content.len()), &json!(false))
        );
    }
    real::write(fixture.root.join("large.png"), [&b"\x89PNG\r\n\x1a\n"[..], &vec![0; 3 << 20]].concat()).unwrap();
    let failure = fixture.fails("readFile", json!({"path": "large.png"})).await;
    assert_eq!(failure, "`large.png` is an image of more than 3 MiB");
}

#[tokio::test]
async fn reads_lines() {
    let fixture = Fixture::new();
    let check = async |arguments: Json, content: &str, lines: [u64; 2], has_more: bool| {
        let found = fixture.ok("readFile", arguments.clone()).await;
        let [from, to] = lines;
        let bytes = found["bytes"].clone();
        let expected = json!({"content": content, "fromLine": from, "toLine": to, "hasMore": has_more, "bytes": bytes});
        assert_eq!(found, expected, "{arguments}");
    };
    check(json!({"path": "a.txt"}), "one\ntwo\nthree\n", [1, 3], false).await;
    check(json!({"path": "a.txt", "lines": 2}), "one\ntwo\n", [1, 2], true).await;
    check(json!({"path": "./sub/../a.txt", "fromLine": 3}), "three\n", [3, 3], false).await;
    check(json!({"path": "a.txt", "fromLine": 4}), "", [4, 3], false).await;
    check(json!({"path": fixture.root.join("sub/b.txt")}), "in sub", [1, 1], false).await;
    check(json!({"path": "project:sub/b.txt"}), "in sub", [1, 1], false).await;
    assert_eq!(fixture.fails("readFile", json!({"path": "a.txt", "fromLine": 9})).await, "`a.txt` has only 3 lines");
    assert_eq!(fixture.fails("readFile", json!({"path": "none"})).await, "`none` does not exist");
    assert_eq!(fixture.fails("readFile", json!({"path": "sub"})).await, "`sub` is a folder, not a file");
    assert_eq!(fixture.fails("readFile", json!({"path": "a.txt/x"})).await, "a parent of `a.txt/x` is not a folder");
    assert_eq!(fixture.fails("readFile", json!({"path": "a\0"})).await, "the path contains a NUL byte");
    let long = "x".repeat(5000);
    assert_eq!(fixture.fails("readFile", json!({ "path": long })).await, "the path is too long");
    real::write(fixture.root.join("empty"), "").unwrap();
    check(json!({"path": "empty"}), "", [1, 0], false).await;
}

#[tokio::test]
async fn reports_large_and_binary_files() {
    let fixture = Fixture::new();
    let file = real::File::create(fixture.root.join("huge")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert_eq!(
        fixture.fails("readFile", json!({"path": "huge", "lines": 1})).await,
        format!("`huge` is a binary file of {} bytes", 1_u64 << 40)
    );
    real::write(fixture.root.join("many"), "0123456789\n".repeat(200_000)).unwrap();
    let found = fixture.ok("readFile", json!({"path": "many", "lines": 10_000})).await;
    assert_eq!((&found["toLine"], &found["hasMore"]), (&json!(10_000), &json!(true)));
    real::write(fixture.root.join("wide"), format!("{}\nnext\n", "w".repeat(100_000))).unwrap();
    let roots = || vec![Root::new("project", &fixture.root)];
    let (found, messages) = call(roots(), "readFile", json!({"path": "wide"})).await;
    let content = found.unwrap()["content"].as_str().unwrap().to_owned();
    let (first, rest) = content.split_once('\n').unwrap();
    assert!(first.starts_with("www") && first.ends_with("w … [83617 more bytes in this line]"), "{}", first.len());
    assert_eq!(rest, "next\n");
    assert_eq!(messages, ["long lines were truncated"]);
    real::write(fixture.root.join("latin"), b"caf\xe9").unwrap();
    let (found, messages) = call(roots(), "readFile", json!({"path": "latin"})).await;
    assert_eq!(found.unwrap()["content"], "caf\u{fffd}");
    assert_eq!(messages, ["the file is not UTF-8; invalid bytes are replaced by `\u{fffd}`"]);
}

#[tokio::test]
async fn lists_folders_by_name() {
    let fixture = Fixture::new();
    symlink("a.txt", fixture.root.join("link")).unwrap();
    let expected = json!({"entries": [
        {"name": "a.txt", "kind": "file", "bytes": 14},
        {"name": "link", "kind": "link"},
        {"name": "sub", "kind": "folder"},
    ], "hasMore": false});
    for path in [json!({}), json!({"path": ""}), json!({"path": "sub/.."}), json!({ "path": fixture.root })] {
        assert_eq!(fixture.ok("listFolder", path).await, expected);
    }
    assert_eq!(fixture.fails("listFolder", json!({"path": "a.txt"})).await, "`a.txt` is not a folder");
    for index in 0..1001 {
        real::write(fixture.root.join(format!("sub/deep/{index:04}")), "").unwrap();
    }
    let found = fixture.ok("listFolder", json!({"path": "sub/deep"})).await;
    let entries = found["entries"].as_array().unwrap();
    assert_eq!((entries.len(), &found["hasMore"]), (1000, &json!(true)));
    assert_eq!((&entries[0]["name"], &entries[999]["name"]), (&json!("0000"), &json!("0999")));
}

#[tokio::test]
async fn searches_files() {
    let fixture = Fixture::new();
    real::write(fixture.root.join(".gitignore"), "target/\n*.log\n!keep.log\n").unwrap();
    real::create_dir_all(fixture.root.join("target")).unwrap();
    real::create_dir_all(fixture.root.join(".git")).unwrap();
    for (path, content) in [
        ("target/built.txt", "two"),
        (".git/config", "two"),
        ("noise.log", "two"),
        ("sub/keep.log", "two"),
        ("sub/deep/c.txt", "x two\ny\nTWO"),
        ("binary.txt", "two\0"),
    ] {
        real::write(fixture.root.join(path), content).unwrap();
    }
    symlink(&fixture.outside, fixture.root.join("out")).unwrap();
    symlink(fixture.outside.join("secret.txt"), fixture.root.join("out.txt")).unwrap();
    let check = async |arguments: Json, expected: &[&str]| {
        let found = fixture.ok("searchFiles", arguments.clone()).await;
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
    assert!(fixture.fails("searchFiles", json!({"regex": "("})).await.starts_with("invalid regular expression: "));
    assert!(fixture.fails("searchFiles", json!({"names": "{a"})).await.starts_with("invalid glob `{a`: "));
    let wide = fixture.fails("searchFiles", json!({"regex": "(a{1000}){1000}"})).await;
    assert!(wide.contains("size limit"), "{wide}");
}

#[tokio::test]
async fn writes_files() {
    let fixture = Fixture::new();
    let read = |path: &str| real::read_to_string(fixture.root.join(path)).unwrap();
    let write = |path: &str, content: &str, mode: &str| json!({"path": path, "content": content, "mode": mode});
    let written = fixture.ok("writeFile", json!({"path": "new/er/c.txt", "content": "c"})).await;
    assert_eq!(written, json!({"path": "new/er/c.txt", "bytes": 1}));
    assert_eq!(
        fixture.fails("writeFile", write("new/er/c.txt", "d", "create")).await,
        "`new/er/c.txt` already exists; use the mode `overwrite` to replace it, or `append` to add to it"
    );
    fixture.ok("writeFile", write("new/er/c.txt", "+", "append")).await;
    fixture.ok("writeFile", write("fresh.txt", "made", "append")).await;
    assert_eq!((read("new/er/c.txt"), read("fresh.txt")), ("c+".to_owned(), "made".to_owned()));

    real::set_permissions(fixture.root.join("a.txt"), real::Permissions::from_mode(0o640)).unwrap();
    symlink("a.txt", fixture.root.join("link")).unwrap();
    fixture.ok("writeFile", write("link", "over", "overwrite")).await;
    assert_eq!(read("a.txt"), "over");
    assert!(real::symlink_metadata(fixture.root.join("link")).unwrap().is_symlink());
    assert_eq!(real::metadata(fixture.root.join("a.txt")).unwrap().permissions().mode() & 0o777, 0o640);
    let left: Vec<_> = real::read_dir(&fixture.root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".new")), "{left:?}");

    for mode in ["overwrite", "append"] {
        assert_eq!(fixture.fails("writeFile", write("sub", "x", mode)).await, "`sub` is a folder, not a file");
    }
    for path in ["", ".", "fresh/", "sub/../"] {
        let message = fixture.fails("writeFile", write(path, "x", "create")).await;
        assert_eq!(message, format!("`{path}` is not a file path"));
    }
    let large = "x".repeat((16 << 20) + 1);
    let message = fixture.fails("writeFile", write("large", &large, "create")).await;
    assert_eq!(message, "the content has 16777217 bytes; at most 16777216 are allowed");
    assert!(!fixture.root.join("large").exists());
}

/// The file of secrets is protected, also through links.
#[tokio::test]
async fn protects_the_file_of_secrets() {
    let fixture = Fixture::new();
    let secret = |path: &str| format!("`{path}` contains secrets, which tools cannot access");
    assert_eq!(fixture.fails("writeFile", json!({"path": ".env", "content": "A=b"})).await, secret(".env"));
    real::write(fixture.root.join(".env"), "TOKEN=hunter2\n").unwrap();
    symlink(".env", fixture.root.join("notes.txt")).unwrap();
    real::hard_link(fixture.root.join(".env"), fixture.root.join("hard.txt")).unwrap();
    for path in [".env", "./.env", "sub/../.env", "notes.txt", "hard.txt"] {
        assert_eq!(fixture.fails("readFile", json!({"path": path})).await, secret(path));
        for mode in ["overwrite", "append"] {
            let arguments = json!({"path": path, "content": "x", "mode": mode});
            assert_eq!(fixture.fails("writeFile", arguments).await, secret(path));
        }
    }
    let found = fixture.ok("searchFiles", json!({"regex": "hunter2"})).await;
    assert_eq!(found["matches"], json!([]));
    assert_eq!(real::read_to_string(fixture.root.join(".env")).unwrap(), "TOKEN=hunter2\n");
}

#[tokio::test]
async fn rejects_paths_that_lead_outside() {
    let fixture = Fixture::new();
    symlink(fixture.outside.join("secret.txt"), fixture.root.join("file-link")).unwrap();
    symlink("../outside", fixture.root.join("folder-link")).unwrap();
    symlink("folder-link", fixture.root.join("chain")).unwrap();
    symlink("../root/../outside/secret.txt", fixture.root.join("detour")).unwrap();
    symlink(fixture.outside.join("made.txt"), fixture.root.join("dangling")).unwrap();
    let neighbour = fixture.root.with_file_name("rooted");
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
        &format!("{}/../outside/secret.txt", fixture.root.display()),
    ];
    for path in paths {
        let message = fixture.outside_message(path);
        assert_eq!(fixture.fails("readFile", json!({ "path": path })).await, message);
        assert_eq!(fixture.fails("listFolder", json!({ "path": path })).await, message);
        assert_eq!(fixture.fails("searchFiles", json!({ "path": path })).await, message);
        for mode in ["create", "overwrite", "append"] {
            let arguments = json!({"path": path, "content": "BROKEN", "mode": mode});
            assert_eq!(fixture.fails("writeFile", arguments).await, message, "{mode}");
        }
    }
    let left: Vec<_> = real::read_dir(&fixture.outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["secret.txt"]);
    assert_eq!(real::read_to_string(fixture.outside.join("secret.txt")).unwrap(), "SECRET");

    symlink("circle", fixture.root.join("circle")).unwrap();
    assert_eq!(
        fixture.fails("readFile", json!({"path": "circle"})).await,
        "`circle` contains a loop of symbolic links"
    );
}

#[tokio::test]
async fn resolves_paths_in_several_roots() {
    let one = Fixture::new();
    let two = Fixture::new();
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
            assert_eq!(message.message(), "`d.txt` does not exist");
        } else {
            let start = format!("`{path}` is outside the allowed folders: `project:` (");
            assert!(message.message().starts_with(&start), "{message:?}");
        }
    }
    let gone = call(vec![Root::new("gone", "/no/such")], "readFile", json!({"path": "x"})).await.0.unwrap_err();
    assert_eq!(gone.message(), "cannot open the folder `gone:` (/no/such)");
    let none = call(Vec::new(), "readFile", json!({"path": "x"})).await.0.unwrap_err();
    assert_eq!(none.message(), "no folders are allowed");
}

#[tokio::test]
async fn does_not_block_on_pipes_and_devices() {
    let fixture = Fixture::new();
    let pipe = fixture.root.join("pipe.txt");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let message = "`pipe.txt` is a device, a pipe or a socket, not a file";
    assert_eq!(fixture.fails("readFile", json!({"path": "pipe.txt"})).await, message);
    for mode in ["overwrite", "append"] {
        let arguments = json!({"path": "pipe.txt", "content": "x", "mode": mode});
        assert_eq!(fixture.fails("writeFile", arguments).await, message);
    }
    real::create_dir(fixture.root.join("folder")).unwrap();
    std::process::Command::new("mkfifo").arg(fixture.root.join("folder/.gitignore")).status().unwrap();
    let found = fixture.ok("searchFiles", json!({"names": "*.txt", "regex": "."})).await;
    assert_eq!(found["matches"].as_array().unwrap().len(), 4, "{found}");
    let device = call(vec![Root::new("dev", "/dev")], "readFile", json!({"path": "zero"})).await.0.unwrap_err();
    assert_eq!(device.message(), "`zero` is a device, a pipe or a socket, not a file");
}

/// Another thread swaps links and folders while calls run.
#[tokio::test]
async fn rejects_links_that_change_during_a_call() {
    let fixture = Fixture::new();
    let root = fixture.root.clone();
    let outside = fixture.outside.clone();
    let is_done = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&is_done);
    real::create_dir(root.join("real")).unwrap();
    real::write(root.join("real/secret.txt"), "harmless").unwrap();
    symlink("real", root.join("swap")).unwrap();
    let swapper = std::thread::spawn(move || {
        let swap = root.join("swap");
        let next = root.join("next");
        let mut swaps = 0_u32;
        while !stop.load(Ordering::Relaxed) && swaps < 10_000_000 {
            for target in [PathBuf::from("real"), outside.clone()] {
                symlink(&target, &next).unwrap();
                real::rename(&next, &swap).unwrap();
                swaps += 1;
            }
        }
        swaps
    });
    let modes = ["create", "overwrite", "append"];
    let mut inside = 0;
    let mut refused = 0;
    for round in 0..600 {
        match fixture.call("readFile", json!({"path": "swap/secret.txt"})).await {
            Ok(found) => {
                assert_eq!(found["content"], "harmless");
                inside += 1;
            }
            Err(_) => refused += 1,
        }
        let arguments = json!({"path": format!("swap/{round}.txt"), "content": "x", "mode": modes[round % 3]});
        fixture.call("writeFile", arguments).await.ok();
        if round % 50 == 0 {
            let found = fixture.ok("searchFiles", json!({"regex": "SECRET"})).await;
            assert_eq!(found["matches"], json!([]));
        }
    }
    is_done.store(true, Ordering::Relaxed);
    let swaps = swapper.join().unwrap();
    assert!(inside > 0 && refused > 0 && swaps > 10, "no race took place: {inside} {refused} {swaps}");
    let left: Vec<_> = real::read_dir(&fixture.outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["secret.txt"]);
}

#[tokio::test]
async fn edits_files() {
    let fixture = Fixture::new();
    let read = |path: &str| real::read_to_string(fixture.root.join(path)).unwrap();
    let edit = |path: &str, old: &str, new: &str| json!({"path": path, "oldText": old, "newText": new});
    real::set_permissions(fixture.root.join("a.txt"), real::Permissions::from_mode(0o640)).unwrap();
    symlink("a.txt", fixture.root.join("link")).unwrap();
    let edited = fixture.ok("editFile", edit("link", "two\nthree", "2\n3")).await;
    assert_eq!(edited, json!({"path": "link", "replaced": 1, "line": 2}));
    assert_eq!(read("a.txt"), "one\n2\n3\n");
    assert!(real::symlink_metadata(fixture.root.join("link")).unwrap().is_symlink());
    assert_eq!(real::metadata(fixture.root.join("a.txt")).unwrap().permissions().mode() & 0o777, 0o640);

    real::write(fixture.root.join("many"), "a\nb\na\nb\na a\n").unwrap();
    assert_eq!(
        fixture.fails("editFile", edit("many", "a", "x")).await,
        "`many` contains `oldText` 4 times, in lines 1, 3, 5; include more of the text around it, or set `all`"
    );
    // Overlapping occurrences are ambiguous too.
    real::write(fixture.root.join("overlap"), "aaa").unwrap();
    assert!(fixture.fails("editFile", edit("overlap", "aa", "x")).await.contains("2 times, in line 1;"));
    real::write(fixture.root.join("lots"), "x\n".repeat(100)).unwrap();
    let message = fixture.fails("editFile", edit("lots", "x", "y")).await;
    assert!(message.contains("more than 10 times, in lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …;"), "{message}");
    let mut all = edit("many", "a", "x");
    all["all"] = true.into();
    assert_eq!(fixture.ok("editFile", all).await, json!({"path": "many", "replaced": 4, "line": 1}));
    assert_eq!(read("many"), "x\nb\nx\nb\nx x\n");

    real::write(fixture.root.join("code"), "fn f() {\n    one();\n    two();\n}\n").unwrap();
    for (old, hint) in [
        ("fn f() {\n  one();\n  two();\n}", "the text at line 1 differs only in white space"),
        ("    two();\n    three();", "line 3 starts like it, but the lines after it differ; read the file again"),
        ("nothing", "read the file again, and copy the text exactly"),
    ] {
        let message = fixture.fails("editFile", edit("code", old, "x")).await;
        assert_eq!(message, format!("`code` does not contain `oldText`; {hint}"));
    }
    real::write(fixture.root.join("dos"), "one\r\ntwo\r\n").unwrap();
    fixture.ok("editFile", edit("dos", "one\ntwo", "1\n2")).await;
    assert_eq!(read("dos"), "1\r\n2\r\n");

    real::write(fixture.root.join("latin"), b"caf\xe9").unwrap();
    for (path, old, new, expected) in [
        ("latin", "caf", "x", "`latin` is not a text file in UTF-8"),
        ("none", "a", "b", "`none` does not exist"),
        ("sub", "a", "b", "`sub` is a folder, not a file"),
        ("a.txt", "", "b", "`oldText` is empty; use `writeFile` to write a whole file"),
        ("a.txt", "b", "b", "`oldText` and `newText` are equal, so there is nothing to change"),
    ] {
        assert_eq!(fixture.fails("editFile", edit(path, old, new)).await, expected);
    }
    let large = "y".repeat(16 << 20);
    let message = fixture.fails("editFile", edit("a.txt", "one", &large)).await;
    assert_eq!(message, "the file would have 16777221 bytes; at most 16777216 are allowed");
    let left: Vec<_> = real::read_dir(&fixture.root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".new")), "{left:?}");
}

/// Calls that write one file at the same time leave one file, with what one of them wrote or all of them added.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn serialises_calls_that_write_one_file() {
    let fixture = Fixture::new();
    real::create_dir(fixture.root.join("box")).unwrap();
    real::write(fixture.root.join("box/a.txt"), "0\n").unwrap();
    real::write(fixture.root.join("box/counters"), (0..40).map(|index| format!("<{index}>\n")).collect::<String>())
        .unwrap();
    symlink("a.txt", fixture.root.join("box/link")).unwrap();
    let calls = (0..40_usize).flat_map(|index| {
        let path = if index % 2 == 0 { "box/a.txt" } else { "box/link" };
        [
            ("writeFile", json!({"path": path, "content": format!("{index}\n"), "mode": "overwrite"})),
            ("writeFile", json!({"path": path, "content": "+\n", "mode": "append"})),
            ("writeFile", json!({"path": "box/log", "content": format!("{index}\n"), "mode": "append"})),
            (
                "editFile",
                json!({"path": "box/counters", "oldText": format!("<{index}>"), "newText": format!("[{index}]")}),
            ),
        ]
    });
    let root = fixture.root.clone();
    let tasks: Vec<_> = calls
        .map(|(tool, arguments)| {
            let root = root.clone();
            tokio::spawn(async move { call(vec![Root::new("project", root)], tool, arguments).await.0.unwrap() })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let mut left: Vec<_> = real::read_dir(root.join("box")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["a.txt", "counters", "link", "log"]);
    let text = real::read_to_string(root.join("box/a.txt")).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    assert!(first.parse::<usize>().is_ok() && rest.lines().all(|line| line == "+"), "{text}");
    let mut log: Vec<usize> =
        real::read_to_string(root.join("box/log")).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    log.sort_unstable();
    assert_eq!(log, (0..40).collect::<Vec<_>>());
    let counters: String = (0..40).map(|index| format!("[{index}]\n")).collect();
    assert_eq!(real::read_to_string(root.join("box/counters")).unwrap(), counters);
}

/// A name that another program keeps changing to the settings of the project never leads there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn does_not_write_settings_through_names_that_change() {
    let fixture = Fixture::new();
    let root = fixture.root.clone();
    real::write(root.join("patter.toml"), "# settings\n").unwrap();
    real::write(root.join("notes"), "").unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&is_done);
    let folder = root.clone();
    let swapper = std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            symlink("patter.toml", folder.join("swap")).ok();
            real::rename(folder.join("swap"), folder.join("notes")).ok();
            real::hard_link(folder.join("patter.toml"), folder.join("swap")).ok();
            real::rename(folder.join("swap"), folder.join("notes")).ok();
            real::write(folder.join("swap"), "").ok();
            real::rename(folder.join("swap"), folder.join("notes")).ok();
        }
    });
    for index in 0..400 {
        let (tool, arguments) = match index % 3 {
            0 => ("writeFile", json!({"path": "notes", "content": "broken", "mode": "append"})),
            1 => ("writeFile", json!({"path": "notes", "content": "broken", "mode": "overwrite"})),
            _ => ("editFile", json!({"path": "notes", "oldText": "settings", "newText": "broken"})),
        };
        fixture.call(tool, arguments).await.ok();
    }
    is_done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(real::read_to_string(root.join("patter.toml")).unwrap(), "# settings\n");
    let left: Vec<_> = real::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("deleted")), "{left:?}");
}
