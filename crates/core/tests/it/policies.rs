//! Policies, and where projects break them.

use crate::library::library;
use patter_core::declare::project::{Finding, Project};
use patter_core::library::Layer;
use patter_core::query::{Limits, Policy, ProjectGraph, Violation};

/// What the organisation of the examples forbids.
const SHARED: &str = r#"
[no_secrets:Policy { forbid: "(t:Tool { name: \"secrets/*\" })", because: "secrets stay where they are", sealed: true }]
[open:Policy { forbid: "(a:Agent { name: \"open\" })", because: "it is open" }]
[base:Policies { sealed: true } | [named:Policy { forbid: "(a:Agent { name: \"x\" })", because: "x says nothing" }]]
"#;

fn read(project: &Project, layer: Layer) -> Vec<Policy> {
    Policy::read_all(project, layer).into_iter().filter_map(Result::ok).collect()
}

pub(crate) fn violations(project: &Project) -> (Vec<Violation>, Vec<Finding>) {
    let shared = Project::read([("org.gram", SHARED)]);
    let (policies, findings) = Policy::merge(read(&shared, Layer::Org), read(project, Layer::Project));
    let library = library(&[("sayHello", "(personName::Text)==>(::Text)")]);
    let graph = ProjectGraph { project, library: &library, rules: &[], findings: &[] }.build();
    let broken = policies.iter().flat_map(|policy| policy.violations(project, &graph, Limits::default()));
    (broken.collect(), findings)
}

pub(crate) fn findings(project: &Project) -> Vec<Finding> {
    let (violations, mut findings) = violations(project);
    findings.extend(violations.into_iter().map(|violation| violation.finding));
    findings
}

fn check(text: &str, expected: &[&str]) {
    let project = Project::read([("a.gram", text)]);
    let found = findings(&project);
    let show = |finding: &Finding| format!("{}: {}", finding.diagnostic.code, finding.diagnostic.message);
    assert_eq!(found.iter().map(show).collect::<Vec<_>>(), expected, "{text}");
}

const AGENTS: &str = "
    [desk:Agent { instruction: 'Help.', model: 'demo' } | sayHello, writer]
    [writer:Agent { instruction: 'Write.', model: 'demo' } | sayHello]
    [open:Agent { instruction: 'Open.', model: 'demo' }]";

#[test]
fn a_violation_is_found_where_the_pattern_starts_with_its_path() {
    let policy = r#"[greetings:Policy {
        forbid: "(a:Agent { name: \"desk\" })-[:calls { hops: 2 }]->(t:Tool)",
        because: "greetings are for the desk alone"
    }]"#;
    let project = Project::read([("policy.gram", policy), ("agents.gram", AGENTS)]);
    let (violations, _) = violations(&project);
    let [_, violation] = violations.as_slice() else { panic!("{violations:#?}") };
    let diagnostic = &violation.finding.diagnostic;
    assert_eq!(violation.finding.file, 1);
    assert_eq!(diagnostic.span.slice(AGENTS), "[desk:Agent");
    assert_eq!(diagnostic.message, "the policy `greetings` is broken: greetings are for the desk alone");
    let hint = "found desk -[calls]-> writer -[calls]-> sayHello; the policy is declared in policy.gram:1:1";
    assert_eq!(diagnostic.hint.as_deref(), Some(hint));
    let related: Vec<_> = diagnostic.related.iter().map(|it| (it.span.slice(AGENTS), it.message.as_ref())).collect();
    assert_eq!(related, [("writer", "desk -[calls]-> writer"), ("sayHello", "writer -[calls]-> sayHello")]);
}

#[test]
fn a_project_replaces_open_policies_and_keeps_sealed_ones() {
    let broken = "P152: the policy `open` is broken: it is open";
    check(AGENTS, &[broken]);
    let replaced = format!(r#"{AGENTS} [open:Policy {{ forbid: "(m:Model {{ name: \"x\" }})", because: "x" }}]"#);
    check(&replaced, &[]);
    let sealed = r#"[no_secrets:Policy { forbid: "(m:Model { name: \"x\" })", because: "x" }]"#;
    check(sealed, &["P153: the policy `no_secrets` is sealed by the org layer"]);
    let set = r#"[base:Policies | [named:Policy { forbid: "(m:Model { name: \"x\" })", because: "x" }]]
        [x:Agent { instruction: 'X.', model: 'demo' }]"#;
    check(
        set,
        &[
            "P153: the policy `base/named` is sealed by the org layer",
            "P152: the policy `base/named` is broken: x says nothing",
        ],
    );
}

#[test]
fn a_policy_may_warn() {
    let text = r#"[a:Policy { forbid: "(a:Agent)", because: "b", level: "warning" }] [x1:Agent { instruction: 'X.', model: 'demo' }]"#;
    let found = findings(&Project::read([("a.gram", text)]));
    assert!(!found[0].diagnostic.is_error());
}

#[test]
fn a_policy_that_takes_too_long_is_not_kept() {
    let text = format!("{AGENTS} [a:Policy {{ forbid: \"(a:Agent) (b:Agent)\", because: \"b\" }}]");
    let project = Project::read([("a.gram", text.as_str())]);
    let policy = read(&project, Layer::Project).remove(0);
    let library = library(&[("sayHello", "(personName::Text)==>(::Text)")]);
    let graph = ProjectGraph { project: &project, library: &library, rules: &[], findings: &[] }.build();
    let found = policy.violations(&project, &graph, Limits { steps: 1_000, rows: 5 });
    let diagnostic = &found[0].finding.diagnostic;
    assert_eq!(diagnostic.code, "P154");
    assert_eq!(diagnostic.message, "the policy `a` cannot be checked: the query was stopped after 5 rows");
    assert_eq!(diagnostic.span.slice(&text), "[a:Policy");
}

#[test]
fn policies_are_checked() {
    use patter_core::check::{Options, check};
    let messages = |text: &str| {
        let found = check(&Project::read([("a.gram", text)]), &Options::default());
        let show = |finding: &Finding| {
            let diagnostic = &finding.diagnostic;
            format!("{} `{}`: {}", diagnostic.code, diagnostic.span.slice(text), diagnostic.message)
        };
        found.iter().map(show).collect::<Vec<_>>()
    };
    let table: &[(&str, &[&str])] = &[
        (r#"[a:Policy { forbid: "(a:Agent)", because: "b", level: "warning", sealed: true, description: "d" }]"#, &[]),
        (r#"[a:Policy { because: "b" }]"#, &["P002 `[a:Policy`: the policy `a` has no `forbid`"]),
        (r#"[a:Policy { forbid: "(a:Agent)" }]"#, &["P002 `[a:Policy`: the policy `a` has no `because`"]),
        (r#"[a:Policy { forbid: "(a:Agnt)", because: "b" }]"#, &["P151 `:Agnt`: there is no label `Agnt`"]),
        (
            r#"[a:Policy { forbid: "(a:Agent { name: \"x\", modl: 1 })", because: "b" }]"#,
            &[r#"P151 `"(a:Agent { name: \"x\", modl: 1 })"`: `Agent` has no property `modl`"#],
        ),
        (
            r#"[a:Policy { forbid: "(a:Agent)", because: "b", level: "fatal" }]"#,
            &[r#"P006 `"fatal"`: `level` cannot be `fatal`"#],
        ),
        (r#"[a:Policy { forbid: "(a:Agent)", because: "b" } | x]"#, &["P010 `x`: a policy has no elements"]),
        (r#"[s:Policies | x]"#, &["P010 `x`: a set of policies can contain only policies"]),
        (
            r#"[a:Policy { forbid: "(a:Agent)", because: "b" }] [a:Policy { forbid: "(t:Tool)", because: "b" }]"#,
            &["P012 `a`: the name `a` is declared twice"],
        ),
    ];
    for (text, expected) in table {
        assert_eq!(messages(text), *expected, "{text}");
    }
}
