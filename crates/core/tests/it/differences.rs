//! Tests of the changes between two versions and their judgements.

use patter_core::declare::project::Project;
use patter_core::diff::{Change, Judgement, diff};

fn changes(old: &str, new: &str) -> Vec<Change> {
    diff(&Project::read([("a.gram", old)]), &Project::read([("a.gram", new)]))
}

/// Checks the changes between two versions: the first two letters of the judgement, then the change.
fn check(old: &str, new: &str, expected: &[&str]) {
    let found: Vec<_> =
        changes(old, new).iter().map(|change| format!("{} {change}", &change.judgement.name()[..2])).collect();
    assert_eq!(found, expected, "\n{old}\n{new}");
}

fn tool(signature: &str) -> String {
    format!("[t:Tool {{ description: 'x' }} | {signature}]")
}

fn check_signature(old: &str, new: &str, expected: &str) {
    check(&tool(old), &tool(new), &[expected]);
}

#[test]
fn equal_versions_have_no_changes() {
    check(&tool("()==>(::Int)"), &tool("()==>(::Int)"), &[]);
}

#[test]
fn layout_and_comments_are_cosmetic() {
    check(
        "[a:Agent {model: 'demo'}]",
        "// x\n[ a:Agent { model: \"demo\" } ]",
        &["co files: only the formatting changed"],
    );
    let change = &changes("[a:Agent {model: 'demo'}]", "[a:Agent { model: 'demo' }]")[0];
    assert_eq!(change.judgement, Judgement::Cosmetic);
}

#[test]
fn cases_are_not_part_of_an_agent() {
    let cases = |text: &str| format!("[c:Cases | [a:Case {{input: '{text}'}}]]");
    check(&cases("x"), &cases("y"), &["co list of cases `c`: changed"]);
    check(&cases("x"), "", &["co list of cases `c`: removed"]);
}

#[test]
fn parameters_are_compared() {
    let check = check_signature;
    check("(a::Text)==>(::Text)", "(a::Text)==>(b::Int)==>(::Text)", "br tool `t`: required parameter `b` added");
    check(
        "(a::Text)==>(::Text)",
        "(a::Text)==>(b::Int {default: 1})==>(::Text)",
        "co tool `t`: optional parameter `b` added",
    );
    check("(a::Text)==>(b::Int)==>(::Text)", "(a::Text)==>(::Text)", "br tool `t`: parameter `b` removed");
    check(
        "(a::Text {optional: true})==>(::Text)",
        "(a::Text)==>(::Text)",
        "br tool `t`: parameter `a` is now required",
    );
    check(
        "(a::Text)==>(::Text)",
        "(a::Text {optional: true})==>(::Text)",
        "co tool `t`: parameter `a` is no longer required",
    );
    check(
        "(a::Int {default: 1})==>(::Text)",
        "(a::Int {default: 2})==>(::Text)",
        "co tool `t`: default of `a` set to 2",
    );
    check("(a::Int)==>(::Text)", "(a::Double)==>(::Text)", "co tool `t`: type of `a` widened from Int to Double");
    check("(a::Double)==>(::Text)", "(a::Int)==>(::Text)", "br tool `t`: type of `a` narrowed from Double to Int");
    check("(a::Int)==>(::Text)", "(a::Text)==>(::Text)", "br tool `t`: type of `a` changed from Int to Text");
    check(
        "(a::Int)==>(::Text)",
        "(a::Int {range: 1..5})==>(::Text)",
        "br tool `t`: type of `a` narrowed (Int, with different constraints)",
    );
    check("(a::Int)==>(b::Int)==>(::Text)", "(b::Int)==>(a::Int)==>(::Text)", "co tool `t`: parameters reordered");
    check(
        "(a::Int {description: 'x'})==>(::Text)",
        "(a::Int {description: 'y'})==>(::Text)",
        "co tool `t`: description of parameter `a` changed",
    );
}

#[test]
fn results_are_compared() {
    let check = check_signature;
    check("()==>(::Int)", "()==>(::Double)", "br tool `t`: type of the result widened from Int to Double");
    check("()==>(::Double)", "()==>(::Int)", "co tool `t`: type of the result narrowed from Double to Int");
    check("()==>(::Int)", "()==>(::Text)", "br tool `t`: type of the result changed from Int to Text");
}

#[test]
fn agents_and_their_tools_are_added_and_removed() {
    check("[a:Agent]", "[a:Agent] [b:Agent]", &["co agent `b`: added"]);
    check("[a:Agent] [b:Agent]", "[a:Agent]", &["br agent `b`: removed"]);
    check("[a:Agent | x]", "[a:Agent | x, y]", &["co agent `a`: can now call `y`"]);
    check("[a:Agent | x, y]", "[a:Agent | x]", &["br agent `a`: can no longer call `y`"]);
    check(
        "[a:Agent | [t:Tool {description: 'x'} | ()==>(::Int)]]",
        "[a:Agent | [t:Tool {description: 'x'} | (b::Int)==>(::Int)]]",
        &["br tool `t` of agent `a`: required parameter `b` added"],
    );
}

#[test]
fn changes_of_instructions_include_the_texts() {
    let change = &changes("[a:Agent {instruction: 'Be kind.'}]", "[a:Agent {instruction: 'Be very kind.'}]")[0];
    assert_eq!((change.judgement, change.description.as_str()), (Judgement::Compatible, "`instruction` changed"));
    assert_eq!(change.texts, Some(("Be kind.".to_owned(), "Be very kind.".to_owned())));
    check(
        "[a:Agent {instruction: 'Be  kind.'}]",
        "[a:Agent {instruction: 'Be kind.'}]",
        &["co agent `a`: only the white space of `instruction` changed"],
    );
}

#[test]
fn settings_and_permissions_are_judged() {
    check(
        "[a:Agent {model: 'demo'}]",
        "[a:Agent {model: 'OpenAI/x'}]",
        &["co agent `a`: `model` changed from \"demo\" to \"OpenAI/x\""],
    );
    check(
        "[a:Agent {seed: 1}]",
        "[a:Agent {temperature: 1}]",
        &["co agent `a`: `temperature` set to 1", "co agent `a`: `seed` removed"],
    );
    check(
        "[a:Agent {allow: ['x']}]",
        "[a:Agent {allow: ['x', 'fs/*']}]",
        &["br agent `a`: permission `allow fs/*` added"],
    );
    check("[a:Agent {deny: 'fs/*'}]", "[a:Agent]", &["br agent `a`: permission `deny fs/*` removed"]);
    check("[a:Agent]", "[a:Agent {deny: 'fs/*'}]", &["co agent `a`: permission `deny fs/*` added"]);
}

#[test]
fn record_types_and_toolboxes_are_compared() {
    check(
        "[A:Object | (x::Int)]",
        "[A:Object | (x::Int), (y::Int)]",
        &["br record type `A`: required field `y` added"],
    );
    check(
        "[b:Toolbox | [t:Command {description: 'x', run: ['a']} | ()==>(::Int)]]",
        "[b:Toolbox | [t:Command {description: 'x', run: ['b']} | ()==>(::Int)], [u:Command | ()==>(::Int)]]",
        &["co tool `t` of toolbox `b`: `run` changed from [\"a\"] to [\"b\"]", "co tool `u` of toolbox `b`: added"],
    );
}
