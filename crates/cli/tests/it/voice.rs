//! Patter speaks plain English: phrases that readers stumbled over stay out of code, documents and messages.

use regex::Regex;
use std::path::{Path, PathBuf};

/// Phrases that are not idiomatic, as regular expressions without regard to case.
const PHRASES: &[&str] = &[
    r"\b(is|are|was|were|be) no (JSON|recording|id|name|type|model|API|gram|glob|number|price|schema|language)\b",
    r"\bwhat is no (JSON|reply|id|name)\b",
    r"\ball is well\b",
    r"\bmend(s|ed|ing)?\b",
    r"\bgo(es|ing)? on with\b",
    r"\blook(s|ed)? whether\b",
    r"\b(is|are|was|were) (told|heard)\b",
    r"\bif nothing is said\b",
    r"\bso (many|often) in a\b",
    r"\bin which form\b",
    r"\bwhat (came|comes|becomes) of\b",
    r"\b(is|are|be) held to\b",
    r"\bdecided otherwise\b",
    r"\bhalf way\b",
    r"\bof now\b",
    r"\bthere already\b",
    r"\bhas not (the|its)\b",
    r"\bhave not (the|their)\b",
    r"\bgave something else\b",
];

/// Collects the text files that people read: sources, documents and rule pages. Fixtures and recordings are left out.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", ".git", "node_modules", "recordings", "wire", "openapi", "corpus"].contains(&name.as_str())
                || path.ends_with("src/wire")
                || path.ends_with("src/openapi")
            {
                collect(&path, found);
            }
        } else if ["rs", "md", "gram", "toml", "snap"].iter().any(|extension| name.ends_with(&format!(".{extension}")))
        {
            found.push(path);
        }
    }
}

#[test]
fn text_is_plain_english() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["crates", "docs", "examples", "bench"] {
        collect(&root.join(folder), &mut files);
    }
    let documents = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"];
    files.extend(documents.map(|name| root.join(name)));
    assert!(files.len() > 300, "only {} files found", files.len());
    let phrases: Vec<Regex> = PHRASES.iter().map(|phrase| Regex::new(&format!("(?i){phrase}")).unwrap()).collect();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| !file.ends_with("voice.rs")) {
        let text = std::fs::read_to_string(file).unwrap();
        for (number, line) in text.lines().enumerate() {
            if let Some(phrase) = phrases.iter().find(|phrase| phrase.is_match(line)) {
                let place = file.strip_prefix(&root).unwrap_or(file).display();
                findings.push(format!("{place}:{}: {} ({phrase})", number + 1, line.trim()));
            }
        }
    }
    assert!(findings.is_empty(), "{} lines to rephrase:\n{}", findings.len(), findings.join("\n"));
}
