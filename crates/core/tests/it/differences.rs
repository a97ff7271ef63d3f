//! Differences between two versions, each with its judgement.

use patter_core::declare::project::Project;
use patter_core::diff::{Change, Judgement, diff};

fn changes(old: &str, new: &str) -> Vec<Change> {
    diff(&Project::read([("a.gram", old)]), &Project::read([("a.gram", new)]))
}

/// Checks the changes between two versions: the first letter of the judgement, then what is said.
fn check(old: &str, new: &str, expected: &[&str]) {
    let found: Vec<_> = changes(old, new)
        .iter()
        .map(|change| format!("{} {} {}", &change.judgement.word()[..2], change.subject, change.what))
        .collect();
    assert_eq!(found, expected, "\n{old}\n{new}");
}

fn tool(signature: &str) -> String {
    format!("[t:Tool {{ description: 'x' }} | {signature}]")
}

fn check_signature(old: &str, new: &str, expected: &str) {
    check(&tool(old), &tool(new), &[expected]);
}

#[test]
fn nothing_changes_where_nothing_is_changed() {
    check(&tool("()==>(::Int)"), &tool("()==>(::Int)"), &[]);
}

#[test]
fn layout_and_comments_are_cosmetic() {
    check(
        "[a:Agent {model: 'demo'}]",
        "// x\n[ a:Agent { model: \"demo\" } ]",
        &["co the text is written otherwise, and means the same"],
    );
    let change = &changes("[a:Agent {model: 'demo'}]", "[a:Agent { model: 'demo' }]")[0];
    assert_eq!(change.judgement, Judgement::Cosmetic);
}

#[test]
fn cases_are_no_part_of_an_agent() {
    let cases = |text: &str| format!("[c:Cases | [a:Case {{input: '{text}'}}]]");
    check(&cases("x"), &cases("y"), &["co list of cases `c` asks something else"]);
    check(&cases("x"), "", &["co list of cases `c` is gone"]);
}

#[test]
fn parameters_come_go_and_change() {
    let check = check_signature;
    check(
        "(a::Text)==>(::Text)",
        "(a::Text)==>(b::Int)==>(::Text)",
        "br tool `t` takes the new parameter `b`, which is required",
    );
    check(
        "(a::Text)==>(::Text)",
        "(a::Text)==>(b::Int {default: 1})==>(::Text)",
        "co tool `t` may take the new parameter `b`",
    );
    check(
        "(a::Text)==>(b::Int)==>(::Text)",
        "(a::Text)==>(::Text)",
        "br tool `t` does not take the parameter `b` any more",
    );
    check(
        "(a::Text {optional: true})==>(::Text)",
        "(a::Text)==>(::Text)",
        "br tool `t` requires the parameter `a` now",
    );
    check(
        "(a::Text)==>(::Text)",
        "(a::Text {optional: true})==>(::Text)",
        "co tool `t` does not require the parameter `a` any more",
    );
    check(
        "(a::Int {default: 1})==>(::Text)",
        "(a::Int {default: 2})==>(::Text)",
        "co tool `t` has the default 2 for `a` now",
    );
    check("(a::Int)==>(::Text)", "(a::Double)==>(::Text)", "co tool `t` takes more for `a`: Double instead of Int");
    check("(a::Double)==>(::Text)", "(a::Int)==>(::Text)", "br tool `t` takes less for `a`: Int instead of Double");
    check(
        "(a::Int)==>(::Text)",
        "(a::Text)==>(::Text)",
        "br tool `t` takes something else for `a`: Text instead of Int",
    );
    check(
        "(a::Int)==>(::Text)",
        "(a::Int {range: 1..5})==>(::Text)",
        "br tool `t` takes less for `a`: Int, with other bounds",
    );
    check(
        "(a::Int)==>(b::Int)==>(::Text)",
        "(b::Int)==>(a::Int)==>(::Text)",
        "co tool `t` has its parameters in another order",
    );
    check(
        "(a::Int {description: 'x'})==>(::Text)",
        "(a::Int {description: 'y'})==>(::Text)",
        "co tool `t` describes the parameter `a` otherwise",
    );
}

#[test]
fn results_are_promises() {
    let check = check_signature;
    check("()==>(::Int)", "()==>(::Double)", "br tool `t` returns more: Double instead of Int");
    check("()==>(::Double)", "()==>(::Int)", "co tool `t` returns less: Int instead of Double");
    check("()==>(::Int)", "()==>(::Text)", "br tool `t` returns Text instead of Int");
}

#[test]
fn agents_and_their_tools_come_and_go() {
    check("[a:Agent]", "[a:Agent] [b:Agent]", &["co agent `b` is new"]);
    check("[a:Agent] [b:Agent]", "[a:Agent]", &["br agent `b` is gone"]);
    check("[a:Agent | x]", "[a:Agent | x, y]", &["co agent `a` may call `y` now"]);
    check("[a:Agent | x, y]", "[a:Agent | x]", &["br agent `a` cannot call `y` any more"]);
    check(
        "[a:Agent | [t:Tool {description: 'x'} | ()==>(::Int)]]",
        "[a:Agent | [t:Tool {description: 'x'} | (b::Int)==>(::Int)]]",
        &["br tool `t` of agent `a` takes the new parameter `b`, which is required"],
    );
}

#[test]
fn prompts_change_with_their_texts() {
    let change = &changes("[a:Agent {instruction: 'Be kind.'}]", "[a:Agent {instruction: 'Be very kind.'}]")[0];
    assert_eq!((change.judgement, change.what.as_str()), (Judgement::Compatible, "has another `instruction`"));
    assert_eq!(change.texts, Some(("Be kind.".to_owned(), "Be very kind.".to_owned())));
    check(
        "[a:Agent {instruction: 'Be  kind.'}]",
        "[a:Agent {instruction: 'Be kind.'}]",
        &["co agent `a` has its `instruction` laid out otherwise"],
    );
}

#[test]
fn settings_and_permissions_are_judged() {
    check(
        "[a:Agent {model: 'demo'}]",
        "[a:Agent {model: 'OpenAI/x'}]",
        &["co agent `a` has `model` \"OpenAI/x\" instead of \"demo\""],
    );
    check(
        "[a:Agent {seed: 1}]",
        "[a:Agent {temperature: 1}]",
        &["co agent `a` has `temperature` 1 now", "co agent `a` has no `seed` any more"],
    );
    check(
        "[a:Agent {allow: ['x']}]",
        "[a:Agent {allow: ['x', 'fs/*']}]",
        &["br agent `a` has the permission `allow fs/*` now"],
    );
    check("[a:Agent {deny: 'fs/*'}]", "[a:Agent]", &["br agent `a` has the permission `deny fs/*` no more"]);
    check("[a:Agent]", "[a:Agent {deny: 'fs/*'}]", &["co agent `a` has the permission `deny fs/*` now"]);
}

#[test]
fn record_types_and_toolboxes_are_compared() {
    check(
        "[A:Object | (x::Int)]",
        "[A:Object | (x::Int), (y::Int)]",
        &["br record type `A` takes the new field `y`, which is required"],
    );
    check(
        "[b:Toolbox | [t:Command {description: 'x', run: ['a']} | ()==>(::Int)]]",
        "[b:Toolbox | [t:Command {description: 'x', run: ['b']} | ()==>(::Int)], [u:Command | ()==>(::Int)]]",
        &["co tool `t` of toolbox `b` has `run` [\"b\"] instead of [\"a\"]", "co tool `u` of toolbox `b` is new"],
    );
}
