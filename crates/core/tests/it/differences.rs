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
    check("[a:Agent | x]", "[a:Agent | x, y]", &["br agent `a`: can now call `y`"]);
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
        &["br tool `t` of toolbox `b`: `run` changed from [\"a\"] to [\"b\"]", "co tool `u` of toolbox `b`: added"],
    );
}

/// Checks that a change of a part of an agent with a tool is judged as expected.
fn check_part(place: &str, old: &str, new: &str, expected: &[&str]) {
    check(&place.replace('_', old), &place.replace('_', new), expected);
}

#[test]
fn gained_power_is_breaking() {
    let agent = "[a:Agent {_} | x]";
    check_part(agent, "ask: 'x'", "", &["br agent `a`: permission `ask x` removed"]);
    check_part(
        agent,
        "deny: 'x'",
        "ask: 'x'",
        &["co agent `a`: permission `ask x` added", "br agent `a`: permission `deny x` removed"],
    );
    check_part(
        agent,
        "ask: 'x'",
        "deny: 'x'",
        &["br agent `a`: permission `deny x` added", "co agent `a`: permission `ask x` removed"],
    );
    // What is still covered is not loosened.
    check_part(agent, "deny: ['x', '*']", "deny: '*'", &["co agent `a`: permission `deny x` removed"]);
    check_part(
        agent,
        "ask: 'x when n > 1'",
        "ask: 'x when n > 5'",
        &["br agent `a`: permission `ask x when n > 5` added", "br agent `a`: permission `ask x when n > 1` removed"],
    );
    check_part(agent, "allow: 'x when n < 9'", "", &["br agent `a`: permission `allow x when n < 9` removed"]);
    check_part(agent, "allow: 'x'", "", &["co agent `a`: permission `allow x` removed"]);
    // A call that worked may fail.
    check_part(agent, "", "ask: 'x'", &["br agent `a`: permission `ask x` added"]);
    check_part(agent, "", "deny: 'y'", &["co agent `a`: permission `deny y` added"]);
    let boxed = "[b:Toolbox | [t:Command {description: 'x', run: ['echo']_} | ()==>(::Int)]]";
    let subject = "tool `t` of toolbox `b`:";
    for (old, new, expected) in [
        (", effect: 'pure'", ", effect: 'writes'", "br effect changed from pure to writes"),
        (", effect: 'pure'", "", "br effect changed from pure to writes"),
        ("", ", effect: 'pure'", "br effect changed from writes to pure"),
        (", effect: 'network'", ", effect: 'reads'", "co effect changed from network to reads"),
        (", sealed: true", "", "br `sealed` removed"),
        ("", ", sealed: true", "co `sealed` set to true"),
        ("", ", idempotent: true", "br `idempotent` set to true"),
        (", idempotent: true", "", "co `idempotent` removed"),
        ("", ", env: {TOKEN: '${TOKEN}'}", "br `env` set to { TOKEN: \"${TOKEN}\" }"),
        ("", ", stdin: 'x'", "br `stdin` set to \"x\""),
        ("", ", cwd: '/'", "br `cwd` set to \"/\""),
        ("", ", dashes: 'allow'", "br `dashes` set to \"allow\""),
        ("", ", timeout: 5s", "br `timeout` set to 5s"),
        (", timeout: 1m", ", timeout: 90s", "co `timeout` changed from 1m to 90s"),
        (", timeout: 1m", ", timeout: 30", "br `timeout` changed from 1m to 30"),
    ] {
        let (judgement, what) = expected.split_once(' ').unwrap();
        check_part(boxed, old, new, &[&format!("{judgement} {subject} {what}")]);
    }
    let http = "[b:Toolbox | [t:Http {description: 'x', url: '_} | ()==>(::Int)]]";
    for (old, new, expected) in [
        (
            "https://a.example/'",
            "https://b.example/'",
            "`url` changed from \"https://a.example/\" to \"https://b.example/\"",
        ),
        ("https://a.example/'", "https://a.example/', result: 'status'", "`result` set to \"status\""),
        (
            "https://a.example/'",
            "https://a.example/', headers: {Authorization: 'Bearer ${KEY}'}",
            "`headers` set to { Authorization: \"Bearer ${KEY}\" }",
        ),
    ] {
        check_part(http, old, new, &[&format!("br {subject} {expected}")]);
    }
    check_part(
        http,
        "https://a.example/'",
        "https://a.example/', method: 'DELETE'",
        &[
            &format!("br {subject} effect changed from network to writes"),
            &format!("br {subject} `method` set to \"DELETE\""),
        ],
    );
    check(
        "[b:Toolbox | [t:Http {description: 'x', url: 'https://a.example'} | ()==>(::Int)]]",
        "[b:Toolbox | [t:Command {description: 'x', run: ['rm']} | ()==>(::Int)]]",
        &[
            &format!("br {subject} implementation changed from Http to Command"),
            &format!("br {subject} effect changed from network to writes"),
            &format!("br {subject} `run` set to [\"rm\"]"),
            &format!("br {subject} `url` removed"),
        ],
    );
}

#[test]
fn a_tool_that_takes_over_a_name_is_breaking() {
    let agent = "[a:Agent | greet]";
    let greet = "[mine:Toolbox | [greet:Command {description: 'x', run: ['rm']} | ()==>(::Int)]]";
    let other = "[mine:Toolbox | [other:Command {description: 'x', run: ['rm']} | ()==>(::Int)]]";
    let taken = "br tool `greet` of toolbox `mine`: added, and agents already call a tool of that name";
    check(agent, &format!("{agent} {greet}"), &["co toolbox `mine`: added", taken]);
    check(agent, &format!("{agent} {other}"), &["co toolbox `mine`: added"]);
    let both = other.replace("]]", "], [greet:Command {description: 'x', run: ['rm']} | ()==>(::Int)]]");
    check(&format!("{agent} {other}"), &format!("{agent} {both}"), &[taken]);
}

#[test]
fn limits_and_promises_of_agents_are_judged() {
    let agent = "[a:Agent {_}]";
    for (old, new, expected) in [
        ("maxTurns: 9", "maxTurns: 2", "br `maxTurns` changed from 9 to 2"),
        ("maxTurns: 2", "maxTurns: 9", "co `maxTurns` changed from 2 to 9"),
        ("", "maxTurns: 3", "br `maxTurns` set to 3"),
        ("", "maxTurns: 30", "co `maxTurns` set to 30"),
        ("maxTurns: 30", "", "br `maxTurns` removed"),
        ("", "timeout: 5s", "br `timeout` set to 5s"),
        ("timeout: 5s", "", "co `timeout` removed"),
        ("maxToolCalls: 5", "maxToolCalls: 4", "br `maxToolCalls` changed from 5 to 4"),
        ("maxCost: 0.5", "maxCost: 0.25", "br `maxCost` changed from 0.5 to 0.25"),
        ("maxCost: 0.5", "maxCost: 1", "co `maxCost` changed from 0.5 to 1"),
        ("", "maxTotalTokens: 9000", "br `maxTotalTokens` set to 9000"),
        ("", "fallback: ['demo']", "co `fallback` set to [\"demo\"]"),
        ("returns: 'Int'", "", "br `returns` removed"),
        ("", "returns: 'Int'", "co `returns` set to \"Int\""),
        ("returns: 'Int'", "returns: 'Double'", "br type of the result widened from Int to Double"),
        ("returns: 'Double'", "returns: 'Int'", "co type of the result narrowed from Double to Int"),
        ("returns: 'Int'", "returns: 'Integer'", ""),
    ] {
        let what = expected.split_once(' ').map(|(judgement, what)| format!("{judgement} agent `a`: {what}"));
        let expected = what.as_deref().unwrap_or("co files: only the formatting changed");
        check_part(agent, old, new, &[expected]);
    }
}

#[test]
fn elements_are_compared_by_what_they_refer_to() {
    let inner = "[helper:Agent {instruction: 'x'} | write]";
    let outer = "[helper:Agent {instruction: 'x'}]";
    // A private agent takes the place of the public one, and can do more.
    check(
        &format!("[a:Agent | helper] {outer}"),
        &format!("[a:Agent | {inner}] {outer}"),
        &["br agent `helper` of agent `a`: can now call `write`"],
    );
    check(
        &format!("[a:Agent | helper] {outer}"),
        &format!("[a:Agent | {outer}] {outer}"),
        &["co files: only the formatting changed"],
    );
    check(
        "[a:Agent | helper]",
        &format!("[a:Agent | helper] {outer}"),
        &["br agent `a`: `helper` is now an agent instead of a tool", "co agent `helper`: added"],
    );
    let tool = "[t:Tool {description: 'x'} | ()==>(::Int)]";
    check("[a:Agent | t]", &format!("[a:Agent | {tool}]"), &["co agent `a`: `t` is now declared"]);
    check(
        &format!("[a:Agent | t] {tool}"),
        &format!("[a:Agent | {tool}] {tool}"),
        &["co files: only the formatting changed"],
    );
}

#[test]
fn fields_are_judged_by_where_they_are_used() {
    let types = |signature: &str, fields: &str| format!("{} [R:Object | (x::Int){fields}]", tool(signature));
    let check_fields = |signature: &str, old: &str, new: &str, expected: &[&str]| {
        check(&types(signature, old), &types(signature, new), expected);
    };
    let argument = "(a::R)==>(::Int)";
    let result = "()==>(::R)";
    let added = ", (y::Int {optional: true})";
    check_fields(
        argument,
        "",
        added,
        &[
            "co tool `t`: type of `a` widened (R, with different constraints)",
            "co record type `R`: optional field `y` added",
        ],
    );
    check_fields(
        argument,
        "",
        ", (y::Int)",
        &[
            "br tool `t`: type of `a` changed (R, with different constraints)",
            "br record type `R`: required field `y` added",
        ],
    );
    check_fields(
        argument,
        added,
        "",
        &["br tool `t`: type of `a` narrowed (R, with different constraints)", "br record type `R`: field `y` removed"],
    );
    check_fields(
        result,
        "",
        ", (y::Int)",
        &[
            "co tool `t`: type of the result narrowed (R, with different constraints)",
            "co record type `R`: required field `y` added",
        ],
    );
    check_fields(
        result,
        ", (y::Int)",
        "",
        &[
            "br tool `t`: type of the result widened (R, with different constraints)",
            "br record type `R`: field `y` removed",
        ],
    );
    check_fields(
        result,
        ", (y::Int)",
        added,
        &[
            "br tool `t`: type of the result widened (R, with different constraints)",
            "br record type `R`: field `y` is no longer required",
        ],
    );
    // Used in both places, the stricter judgement applies.
    check_fields(
        "(a::R)==>(::R)",
        "",
        ", (y::Int)",
        &[
            "br tool `t`: type of `a` changed (R, with different constraints)",
            "co tool `t`: type of the result narrowed (R, with different constraints)",
            "br record type `R`: required field `y` added",
        ],
    );
    // The same fields without a name.
    check(&types(argument, ""), &tool("(a::Object {fields: {x: 'Int'}})==>(::Int)"), &["co record type `R`: removed"]);
    check(&tool("(a::Object {fields: {x: 'Int'}})==>(::Int)"), &types(argument, ""), &["co record type `R`: added"]);
}

#[test]
fn a_range_is_a_list_of_whole_numbers() {
    let range = tool("(a::Int {range: 1..5})==>(::Int {range: 1..3})");
    let listed = tool("(a::Int {enum: [5, 4, 3, 2, 1]})==>(::Int {enum: [1, 2, 3]})");
    check(&range, &listed, &["co files: only the formatting changed"]);
    check(&listed, &range, &["co files: only the formatting changed"]);
    let fewer = tool("(a::Int {enum: [1, 2, 4, 5]})==>(::Int {range: 1..3})");
    check(&range, &fewer, &["br tool `t`: type of `a` narrowed (Int, with different constraints)"]);
}
