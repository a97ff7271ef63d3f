//! The modules of the pages have types, in comments, which a compiler checks.

use crate::npm;
use std::path::Path;
use std::process::Command;

#[test]
fn modules_have_types() {
    let Some(packages) = npm::installed("studio") else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("studio");
    let modules = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let modules: Vec<_> = modules.filter(|path| path.extension().is_some_and(|ending| ending == "js")).collect();
    for module in &modules {
        let lines = std::fs::read_to_string(module).unwrap().lines().count();
        assert!(lines < 400, "{} has {lines} lines", module.display());
    }
    let mut compiler = Command::new("node");
    compiler.arg(packages.join("typescript").join("bin").join("tsc"));
    compiler.args(["--allowJs", "--checkJs", "--strict", "--noEmit", "--skipLibCheck", "--noUncheckedIndexedAccess"]);
    compiler.args(["--target", "es2023", "--module", "esnext", "--moduleResolution", "bundler"]);
    compiler.args(["--lib", "es2023,dom,dom.iterable", "--types", ""]);
    let output = compiler.args(&modules).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
