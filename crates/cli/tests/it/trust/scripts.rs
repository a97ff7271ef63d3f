//! Scripts that change while they are in use.

use crate::folder::Folder;
use crate::terminal::Terminal;
use serde_json::json;

/// A project whose tool `c/modify` changes the script of the tool `c/go`.
fn changing_script() -> Folder {
    let folder = Folder::new();
    folder.write("go.sh", "echo first\n");
    folder.write("new.txt", "echo second | tee taken\n");
    folder.write(
        "a.gram",
        "[c:Toolbox |\n  [go:Command { description: \"Goes\", run: [\"sh\", \"go.sh\"] } | ()==>(::Text)],\n  \
         [modify:Command { description: \"Changes it\", run: [\"cp\", \"new.txt\", \"go.sh\"] } | ()==>(::Text)]\n]\n\
         [a:Agent { instruction: \"Use `c/go` and `c/modify`.\", model: \"scripted/script.json\" } | `c/go`, `c/modify`]\n",
    );
    let call = |tool: &str| json!({"calls": [{"tool": tool, "arguments": {}}]});
    let script =
        json!([call("c/go"), call("c/modify"), call("c/go"), {"text": "Done."}, call("c/go"), {"text": "Again."}]);
    folder.write("script.json", script.to_string());
    folder
}

#[test]
fn scripts_that_change_during_a_run_do_not_run() {
    let folder = changing_script();
    let run = ["run", "a.gram", "hi", "--yes", "--store", "none", "--format", "json"];
    let printed = folder.run(&run);
    assert!(printed.contains("first") && printed.contains("changed since the project was read"), "{printed}");
    assert!(!folder.path().join("taken").exists(), "{printed}");
    // The changed script is what the next run starts with.
    let printed = folder.run(&run);
    assert!(folder.path().join("taken").exists(), "{printed}");

    // The project may say otherwise.
    let folder = changing_script();
    folder.write("patter.toml", "[fs]\nwritable = [\"go.sh\"]\n");
    let printed = folder.run(&run);
    assert!(folder.path().join("taken").exists(), "{printed}");

    // The scripts of hooks are no different.
    let folder = changing_script();
    folder.write("patter.toml", "[[hooks]]\nbefore = [\"c/*\"]\nrun = [\"/bin/sh\", \"hook.sh\"]\n");
    folder.write("hook.sh", "exit 0\n");
    let text = folder.read("a.gram").replace("\"go.sh\"] } | ()==>(::Text)]\n]", "\"hook.sh\"] } | ()==>(::Text)]\n]");
    folder.write("a.gram", text);
    let printed = folder.run(&run);
    assert!(printed.contains("first") && printed.contains("hook.sh` changed since"), "{printed}");
    assert!(!folder.path().join("taken").exists(), "{printed}");
}

#[test]
fn a_chat_asks_about_changed_scripts() {
    let folder = changing_script();
    let mut terminal = Terminal::start(&folder, &["chat", "a.gram", "--yes", "--store", "none"], 120);
    terminal.prompts("").keys("hi\r").shows("Done.").prompts("");
    assert!(!folder.path().join("taken").exists());
    terminal.keys("again\r").asks("keep the version from before:");
    assert!(terminal.screen().contains("go.sh"), "{}", terminal.screen());
    terminal.keys("y").shows("Again.");
    assert!(folder.path().join("taken").exists(), "{}", terminal.screen());
}
