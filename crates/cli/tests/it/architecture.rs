//! The doors between the crates stay closed.

use std::process::Command;

/// Returns the crates that a crate needs, itself included.
fn needs(package: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--package",
            package,
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
            "--locked",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn the_notation_and_the_decisions_know_nothing_of_effects() {
    for package in ["patter-gram", "patter-core"] {
        let needs = needs(package);
        assert!(needs.contains(&package.to_owned()), "{needs:?}");
        for effect in ["tokio", "reqwest", "hyper", "sqlx", "clap", "anstream"] {
            assert!(!needs.contains(&effect.to_owned()), "{package} reaches {effect}");
        }
    }
}

#[test]
fn dependencies_go_one_way() {
    let order = ["patter-gram", "patter-core", "patter", "patter-cli"];
    for (index, package) in order.iter().enumerate() {
        let needs = needs(package);
        for above in &order[index + 1..] {
            assert!(!needs.contains(&(*above).to_owned()), "{package} reaches {above}");
        }
    }
    let gram = needs("patter-gram");
    assert!(gram.len() < 20, "the notation needs only small crates, found {gram:?}");
}

#[test]
fn the_library_has_no_terminal() {
    let needs = needs("patter");
    for terminal in ["clap", "anstream", "indicatif"] {
        assert!(!needs.contains(&terminal.to_owned()), "patter reaches {terminal}");
    }
}
