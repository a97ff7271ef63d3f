//! What the program refuses.

use std::fs;
use std::process::Command;

/// Runs the program, which does not start. Returns what it prints.
fn refused(folder: &std::path::Path, options: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_patter-restate"));
    command.current_dir(folder).env("HOME", folder).env_remove("PATTER_TRUST").env_remove("PATTER_STORE").args(options);
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_cannot_work_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    assert_eq!(refused(path, &[]), "error: no *.gram files in `.`\n");
    fs::write(path.join("a.gram"), "// Nothing yet.\n").unwrap();
    assert!(refused(path, &[]).contains("error: there are no agents to host\nhint: name a file with agents"));
    fs::write(path.join("a.gram"), "[hi:Agent {instruction: 'Greet.', model: 'demo'} | sayHello, list]\n").unwrap();
    let unbound = refused(path, &[]);
    assert!(unbound.contains("`list`"), "{unbound}");
    fs::write(path.join("a.gram"), "[hi:Agent {instruction: 'Greet.', model: 'demo'} | sayHello]\n").unwrap();
    let open = refused(path, &["--listen", "0.0.0.0:0"]);
    assert!(open.contains("error: 0.0.0.0:0 can be reached from other machines"), "{open}");
    assert!(open.contains("hint: pass --identity-key"), "{open}");
    let key = refused(path, &["--identity-key", "abc"]);
    assert!(key.starts_with("error: "), "{key}");
    let store = refused(path, &["--store", "mysql://db"]);
    assert!(store.contains("`mysql://` is not supported"), "{store}");
    let model = refused(path, &["--model", "gpt"]);
    assert!(model.contains("`gpt`"), "{model}");
    let rule = "[permissions]\ndeny = [\"nothing/*\"]\n";
    fs::write(path.join("patter.toml"), rule).unwrap();
    let unused = refused(path, &[]);
    assert!(unused.contains("a permission rule is about nothing"), "{unused}");
    fs::write(path.join("patter.toml"), "[models.OpenAI]\nbase-url = \"http://127.0.0.1:1/v1\"\n").unwrap();
    let untrusted = refused(path, &[]);
    assert!(untrusted.contains("the project is not trusted, so nothing was started"), "{untrusted}");
    assert!(untrusted.contains("hint: review these, then run `patter trust`"), "{untrusted}");
}
