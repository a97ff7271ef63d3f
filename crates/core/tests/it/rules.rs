//! The pages of the rules: each shows a file that breaks its rule and the same file mended, and both are true.

use crate::library::library;
use patter_core::check::{Options, check};
use patter_core::declare::project::{Finding, Project};
use patter_core::gram::{Dialect, LineIndex, Rendering, Rule, format, render};
use patter_core::library::unbound;
use patter_core::rule;
use std::path::Path;

/// Rules that no text can show: bytes that are not UTF-8, and a text past 4 GiB.
const NO_TEXT_SHOWS: [&str; 2] = ["G036", "G037"];
/// Rules that cannot be broken alone: a name that is ambiguous is declared twice.
const TWO_FINDINGS: [&str; 1] = ["P041"];

/// A page, taken apart.
struct Page {
    broken: String,
    mended: String,
}

fn has_examples(rule: &Rule) -> bool {
    !NO_TEXT_SHOWS.contains(&rule.code)
}

fn page(rule: &Rule) -> Page {
    let text = rule::page(rule.code).unwrap();
    let block = |language: &str| {
        let ticks = if text.contains("````") { "````" } else { "```" };
        let after = text.split_once(&format!("\n{ticks}{language}\n"));
        let (_, after) = after.unwrap_or_else(|| panic!("the page of {} has no block `{language}`", rule.code));
        after.split_once(&format!("{ticks}\n")).unwrap().0.to_owned()
    };
    Page { broken: block("gram,broken"), mended: block("gram") }
}

fn rules_with_examples() -> impl Iterator<Item = (&'static Rule, Page)> {
    rule::all().filter(|rule| has_examples(rule)).map(|rule| (rule, page(rule)))
}

/// Checks a text as a project of one file; plain gram is asked for where the rule is about it.
fn findings(rule: &Rule, text: &str) -> Vec<Finding> {
    let dialect = if rule.code == "G034" { Dialect::Portable } else { Dialect::Patter };
    let project = Project::read_dialect([("example.gram", text)], dialect);
    let mut findings = check(&project, &Options::default());
    if matches!(rule.code, "P045" | "P046") {
        findings.extend(unbound(&project, &library(&[("sayHello", "(personName::Text)==>(::Text)")])));
    }
    findings
}

fn shown(findings: &[Finding], text: &str) -> String {
    let index = LineIndex::new(text);
    let shown = |finding: &Finding| render(&finding.diagnostic, text, &index, "example.gram", Rendering::Plain);
    findings.iter().map(shown).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn every_rule_has_a_page_with_its_title_and_its_level() {
    for rule in rule::all() {
        let text = rule::page(rule.code).unwrap();
        let head = format!("# {}: {}\n\nLevel: {}\n\n", rule.code, rule.title, rule.level);
        assert!(text.starts_with(&head), "the page of {} does not start with\n{head}", rule.code);
        assert_eq!(text.contains("```gram"), has_examples(rule), "{}", rule.code);
    }
    assert_eq!(rule::page("P000"), None);
}

#[test]
fn every_page_has_a_rule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let code = name.strip_suffix(".md").unwrap();
        assert!(rule::page(code).is_some() && rule::rule(code).is_some(), "{name} is the page of no rule");
    }
}

#[test]
fn a_broken_example_breaks_its_rule() {
    for (rule, page) in rules_with_examples() {
        let found = findings(rule, &page.broken);
        let shown = shown(&found, &page.broken);
        let breach = found.iter().map(|finding| &finding.diagnostic).find(|found| found.code == rule.code);
        let breach = breach.unwrap_or_else(|| panic!("nothing says {} of\n{}\n{shown}", rule.code, page.broken));
        assert_eq!(breach.severity, rule.level, "{}", rule.code);
        assert!(found.len() == 1 || TWO_FINDINGS.contains(&rule.code), "one mistake, several findings\n{shown}");
        insta::with_settings!({ description => &page.broken, omit_expression => true }, {
            insta::assert_snapshot!(rule.code, shown);
        });
    }
}

#[test]
fn a_mended_example_is_without_fault_and_formatted() {
    for (rule, page) in rules_with_examples() {
        let found = findings(rule, &page.mended);
        assert!(found.is_empty(), "{}\n{}", rule.code, shown(&found, &page.mended));
        assert_eq!(format(&page.mended).unwrap(), page.mended, "{}", rule.code);
    }
}

#[test]
fn the_index_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
    let expected = index();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/rules.md is out of date; write it anew with\n\n    UPDATE_DOCS=1 cargo test -p patter-core --test it rules\n"
    );
}

fn index() -> String {
    let mut text = "<!-- Written by crates/core/tests/it/rules.rs; do not edit. -->\n\n# The rules\n\n\
        Everything that Patter can find wrong before a token is spent. Each rule has a page with a file that breaks it and\n\
        the same file mended. A code never changes its meaning.\n"
        .to_owned();
    for (heading, letter) in [("The notation", 'G'), ("Agents, tools and projects", 'P')] {
        text += &format!("\n## {heading}\n\n| code | level | about |\n|---|---|---|\n");
        for rule in rule::all().filter(|rule| rule.code.starts_with(letter)) {
            let Rule { code, level, title } = rule;
            text += &format!("| [{code}](../crates/core/rules/{code}.md) | {level} | {title} |\n");
        }
    }
    text
}
