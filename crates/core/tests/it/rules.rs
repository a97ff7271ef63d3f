//! Tests of the rules and the examples on their pages: a file that violates the rule, and the corrected file.

use crate::library::library;
use patter_core::check::{Options, check};
use patter_core::declare::project::{Finding, Project};
use patter_core::gram::{Dialect, LineIndex, Rendering, Rule, format, render};
use patter_core::library::{find_unbound, find_unused_rules};
use patter_core::rule;
use patter_core::text::mask_secrets;
use std::path::Path;

/// Rules without examples: bytes that are not UTF-8, a text larger than 4 GiB, more than a hundred tools, a query that takes
/// too long, and thousands of routes.
const WITHOUT_EXAMPLES: [&str; 5] = ["G036", "G037", "P057", "P154", "P175"];
/// Rules that cannot be violated alone: an ambiguous name is also declared twice.
const TWO_FINDINGS: [&str; 1] = ["P041"];

/// The examples on a page.
struct Page {
    broken: String,
    fixed: String,
}

fn has_examples(rule: &Rule) -> bool {
    !WITHOUT_EXAMPLES.contains(&rule.code)
}

fn page(rule: &Rule) -> Page {
    let text = rule::page(rule.code).unwrap();
    let block = |language: &str| {
        let ticks = if text.contains("````") { "````" } else { "```" };
        let after = text.split_once(&format!("\n{ticks}{language}\n"));
        let (_, after) = after.unwrap_or_else(|| panic!("the page of {} has no block `{language}`", rule.code));
        after.split_once(&format!("{ticks}\n")).unwrap().0.to_owned()
    };
    Page { broken: block("gram,broken"), fixed: block("gram") }
}

fn rules_with_examples() -> impl Iterator<Item = (&'static Rule, Page)> {
    rule::all().filter(|rule| has_examples(rule)).map(|rule| (rule, page(rule)))
}

/// Checks a text as a project with one file, in the portable dialect if the rule is about it.
fn findings(rule: &Rule, text: &str) -> Vec<Finding> {
    let dialect = if rule.code == "G034" { Dialect::Portable } else { Dialect::Patter };
    let project = Project::read_dialect([("example.gram", text)], dialect);
    let files: &[&str] = if rule.code == "P140" { &["fs/writeFile", "fs/editFile"] } else { &[] };
    let pedantic = rule.code == "P066";
    let options = Options { library: files, sealed: &["mail/send"], writing: files, pedantic, ..Options::default() };
    let mut findings = check(&project, &options);
    let library = library(&[("sayHello", "(personName::Text)==>(::Text)")]);
    match rule.code {
        "P045" => findings.extend(find_unbound(&project, &library)),
        "P046" => findings.extend(find_unused_rules(&project, &library)),
        "P152" | "P153" => findings.extend(crate::policies::findings(&project)),
        _ => {}
    }
    findings
}

fn render_all(findings: &[Finding], text: &str) -> String {
    let text = &*mask_secrets(text);
    let index = LineIndex::new(text);
    let render = |finding: &Finding| render(&finding.diagnostic, text, &index, "example.gram", Rendering::Plain);
    findings.iter().map(render).collect::<Vec<_>>().join("\n\n")
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
        assert!(rule::page(code).is_some() && rule::rule(code).is_some(), "{name} is not the page of a rule");
    }
}

#[test]
fn a_broken_example_violates_its_rule() {
    for (rule, page) in rules_with_examples() {
        let found = findings(rule, &page.broken);
        let rendered = render_all(&found, &page.broken);
        let violation = found.iter().map(|finding| &finding.diagnostic).find(|found| found.code == rule.code);
        let violation =
            violation.unwrap_or_else(|| panic!("{} is not reported for\n{}\n{rendered}", rule.code, page.broken));
        assert_eq!(violation.severity, rule.level, "{}", rule.code);
        assert!(found.len() == 1 || TWO_FINDINGS.contains(&rule.code), "one mistake, several findings\n{rendered}");
        insta::with_settings!({ description => &page.broken, omit_expression => true }, {
            insta::assert_snapshot!(rule.code, rendered);
        });
    }
}

#[test]
fn a_fixed_example_has_no_findings_and_is_formatted() {
    for (rule, page) in rules_with_examples() {
        let found = findings(rule, &page.fixed);
        assert!(found.is_empty(), "{}\n{}", rule.code, render_all(&found, &page.fixed));
        assert_eq!(format(&page.fixed).unwrap(), page.fixed, "{}", rule.code);
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
        "docs/rules.md is out of date; update it with\n\n    UPDATE_DOCS=1 cargo test -p patter-core --test it rules\n"
    );
}

fn index() -> String {
    let mut text = "<!-- Generated by crates/core/tests/it/rules.rs; do not edit. -->\n\n# Rules\n\n\
        The mistakes that `patter check` finds before a model is called. Each rule has a page with a file that violates it\n\
        and the corrected file. The meaning of a code never changes.\n"
        .to_owned();
    for (heading, letter) in [("The notation", 'G'), ("Agents, tools and projects", 'P')] {
        text += &format!("\n## {heading}\n\n| code | level | title |\n|---|---|---|\n");
        for rule in rule::all().filter(|rule| rule.code.starts_with(letter)) {
            let Rule { code, level, title } = rule;
            text += &format!("| [{code}](../crates/core/rules/{code}.md) | {level} | {title} |\n");
        }
    }
    text
}
