//! The walls between crates, and between the rooms of `patter-core`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the crates that a crate depends on, itself included.
fn dependencies(package: &str) -> Vec<String> {
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
fn gram_and_core_depend_on_nothing_with_effects() {
    for package in ["patter-gram", "patter-core"] {
        let found = dependencies(package);
        assert!(found.contains(&package.to_owned()), "{found:?}");
        for effect in ["tokio", "reqwest", "hyper", "sqlx", "rusqlite", "clap", "anstream", "axum"] {
            assert!(!found.contains(&effect.to_owned()), "{package} depends on {effect}");
        }
    }
}

#[test]
fn dependencies_between_crates_go_one_way() {
    let order = ["patter-gram", "patter-core", "patter", "patter-serve", "patter-cli"];
    for (index, package) in order.iter().enumerate() {
        let found = dependencies(package);
        for above in &order[index + 1..] {
            assert!(!found.contains(&(*above).to_owned()), "{package} depends on {above}");
        }
    }
    let gram = dependencies("patter-gram");
    assert!(gram.len() < 20, "patter-gram depends on small crates only, found {gram:?}");
}

#[test]
fn the_library_has_no_terminal_and_no_server() {
    let found = dependencies("patter");
    for other in ["clap", "anstream", "indicatif", "axum"] {
        assert!(!found.contains(&other.to_owned()), "patter depends on {other}");
    }
    assert!(!dependencies("patter-serve").contains(&"clap".to_owned()), "patter-serve has no command line");
}

/// Which room of core uses which, with a file that does.
type Uses = BTreeMap<(String, String), PathBuf>;

/// Returns the modules that a source file reaches through `crate::`, comments left out.
fn reached(source: &str) -> BTreeSet<String> {
    let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
        match rest.strip_prefix('{') {
            None => {
                found.insert(name(rest));
            }
            // The members of `use crate::{a::b, c};`, at the outermost level.
            Some(group) => {
                let mut depth = 1;
                let mut is_start = true;
                for (at, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        ',' if depth == 1 => is_start = true,
                        c if c.is_whitespace() => {}
                        _ if depth == 1 && is_start => {
                            found.insert(name(&group[at..]));
                            is_start = false;
                        }
                        _ => {}
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
        }
    }
    found
}

fn collect(folder: &Path, room: &str, uses: &mut Uses) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, room, uses);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            for other in reached(&std::fs::read_to_string(&path).unwrap()) {
                uses.entry((room.to_owned(), other)).or_insert_with(|| path.clone());
            }
        }
    }
}

/// `lib.rs` lists the rooms of core in reading order: each uses only rooms above it, so there is no cycle.
#[test]
fn rooms_of_core_form_no_cycle() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src");
    let lib = std::fs::read_to_string(source.join("lib.rs")).unwrap();
    let rooms: Vec<String> =
        lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).map(str::to_owned).collect();
    assert!(rooms.len() > 10, "{rooms:?}");
    let mut uses = Uses::new();
    for room in &rooms {
        let file = source.join(format!("{room}.rs"));
        if file.exists() {
            for other in reached(&std::fs::read_to_string(&file).unwrap()) {
                uses.entry((room.clone(), other)).or_insert_with(|| file.clone());
            }
        } else {
            collect(&source.join(room), room, &mut uses);
        }
    }
    let position = |room: &str| rooms.iter().position(|one| one == room);
    assert!(uses.contains_key(&("library".to_owned(), "types".to_owned())), "the scan found nothing");
    for ((room, other), file) in &uses {
        if let (Some(here), Some(there)) = (position(room), position(other)) {
            assert!(there <= here, "`{room}` uses `{other}`, which is listed below it, in {}", file.display());
        }
    }
}

/// Text from elsewhere is escaped by the writer in `ui/output.rs`, so nothing else of the program may write.
#[test]
fn one_module_writes_to_the_terminal() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let writers: BTreeSet<PathBuf> = ["ui/output.rs", "ui/terminal.rs"].iter().map(|file| source.join(file)).collect();
    let mut folders = vec![source];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            seen += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            for way in ["io::stdout", "io::stderr", "print!(", "println!("] {
                let writes = text.contains(way) && !writers.contains(&path);
                assert!(!writes, "{} uses {way}: write with `ui::print` or `ui::status`", path.display());
            }
        }
    }
    assert!(seen > 50, "{seen} files");
}
