//! Wrong workflows: each has one finding, at the right place.

use super::check_workflow;

/// Checks that a workflow has one finding: its code, the text that it marks, and what its message contains.
fn check_one(workflow: &str, code: &str, marked: &str, message: &str) {
    let findings = check_workflow(workflow);
    let found: Vec<_> = findings
        .iter()
        .map(|finding| {
            let span = finding.diagnostic.span;
            (finding.diagnostic.code, span.slice(workflow), finding.diagnostic.message.as_ref())
        })
        .collect();
    assert!(found.len() == 1, "{workflow}\n{found:?}");
    assert_eq!((found[0].0, found[0].1), (code, marked), "{workflow}\n{found:?}");
    assert!(found[0].2.contains(message), "{workflow}\n{found:?}");
    assert!(findings[0].diagnostic.hint.is_some() || ["P005", "P169"].contains(&code), "{workflow}");
}

/// Checks that a workflow has no findings.
fn check_none(workflow: &str) {
    let findings = check_workflow(workflow);
    assert!(findings.is_empty(), "{workflow}\n{findings:?}");
}

#[test]
fn steps() {
    check_one("[w:Workflow | (writer)-->(editr)]", "P160", "editr", "no agent, tool or workflow is named `editr`");
    check_one("[w:Workflow | (a:writr)-->(editor)]", "P160", ":writr", "`writr`");
    check_one("[w:Workflow | (writer)-->()]", "P161", "()", "this step has no name");
    check_one("[w:Workflow | (writer)-->(ask:Human)]", "P161", "(ask:Human)", "has no `question`");
    check_one("[w:Workflow | (all:Each:writer)]", "P161", "(all:Each:writer)", "has no `of`");
    check_one("[w:Workflow | (writer)-->(x:Give)]", "P161", "(x:Give)", "has no `value`");
    check_one("[w:Workflow | (a:writer:editor)]", "P161", "(a:writer:editor)", "calls `writer` and `editor`");
    check_one("[w:Workflow | (a:writer)-->(b:editor)-->(a:editor)]", "P161", "(a:editor)", "`a` is declared twice");
    check_one("[w:Workflow | (takes:writer)]", "P161", "(takes:writer)", "cannot be named `takes`");
    check_one("[w:Workflow | writer]", "P161", "writer", "paths of steps");
    check_one("[w:Workflow {takes: 'Text'}]", "P161", "[w:Workflow", "no steps");
    check_one("[w:Workflow | (writer {aks: 'x'})]", "P004", "aks", "has no property `aks`");
}

#[test]
fn edges() {
    check_one("[w:Workflow | (writer)-[:Whne {a: 1}]->(editor)]", "P162", "-[:Whne {a: 1}]->", "the label `Whne`");
    check_one("[w:Workflow | (writer)--(editor)]", "P162", "--", "must point");
    check_one("[w:Workflow | (reviewer)-[:When]->(writer)]", "P162", "-[:When]->", "no condition");
    check_one(
        "[w:Workflow | (writer)-[{atMost: 2}]->(editor)]",
        "P162",
        "-[{atMost: 2}]->",
        "only for edges that lead back",
    );
    check_one("[w:Workflow | (writer)-[:Exhausted]->(editor)]", "P162", "-[:Exhausted]->", "nothing can be exhausted");
    check_one("[w:Workflow | (writer)-[:Otherwise]->(editor)]", "P162", "-[:Otherwise]->", "no other edge");
    check_one("[w:Workflow | (x:Give {value: 'a'})-->(editor)]", "P162", "-->", "nothing can follow");
    check_one(
        "[w:Workflow | (reviewer)-[:When {verdict: 'good', comment: 'x'}]->(writer)]",
        "P162",
        "comment: 'x'",
        "two conditions",
    );
    check_one("[w:Workflow | (count)-[:Handoff]->(writer)]", "P177", "-[:Handoff]->", "`count` has no conversation");
}

#[test]
fn shapes() {
    check_one("[w:Workflow | (writer), (editor)]", "P163", "editor", "nothing leads to the step `editor`");
    check_one(
        "[w:Workflow | (writer)-->(reviewer)-[:When {verdict: ['good', 'again', 'bad'], atMost: 3}]->(writer)]",
        "P164",
        "reviewer",
        "to an end",
    );
    check_one("[w:Workflow | (writer)-->(editor)-->(writer)]", "P165", "-->", "always leads back");
    check_one(
        "[w:Workflow | (writer)-->(reviewer)-[:When {verdict: 'again'}]->(writer), (reviewer)-[:Otherwise]->(editor)]",
        "P165",
        "-[:When {verdict: 'again'}]->",
        "any number of times",
    );
    check_one(
        "[w:Workflow | (writer)-->(editor)-->(reviewer), (writer)-->(reviewer), \
         (reviewer)-[:When {verdict: 'again', atMost: 1}]->(editor), (reviewer)-[:Otherwise]->(x:Give {value: 'a'})]",
        "P166",
        "editor",
        "`editor` and `reviewer` wait for each other",
    );
}

#[test]
fn routes() {
    check_one(
        "[w:Workflow | (reviewer)-[:When {verdict: 'good'}]->(writer), (reviewer)-[:When {verdict: 'bad'}]->(editor)]",
        "P167",
        "-[:When {verdict: 'good'}]->",
        "no route from `reviewer` is for \"again\"",
    );
    check_one("[w:Workflow | (flag)-[:When {is: true}]->(writer)]", "P167", "-[:When {is: true}]->", "for false");
    check_one("[w:Workflow | (writer)-[:When {is: 'a'}]->(editor)]", "P167", "-[:When {is: 'a'}]->", "every value");
    let otherwise = "(reviewer)-[:Otherwise]->(writer)";
    check_one(
        &format!("[w:Workflow | (reviewer)-[:When {{verdict: 'goood'}}]->(editor), {otherwise}]"),
        "P168",
        "'goood'",
        "is never \"goood\"",
    );
    check_one(
        &format!("[w:Workflow | (reviewer)-[:When {{verdct: 'good'}}]->(editor), {otherwise}]"),
        "P168",
        "verdct",
        "no field `verdct`",
    );
    check_one(
        &format!(
            "[w:Workflow | (reviewer)-[:When {{verdict: 'good'}}]->(editor), (reviewer)-[:When {{comment: 'x'}}]->(clerk), {otherwise}]"
        ),
        "P162",
        "comment",
        "test `verdict` and `comment`",
    );
}

#[test]
fn types() {
    check_one("[w:Workflow | (count)-->(flag)]", "P169", "-->", "`count` passes Int");
    check_one("[w:Workflow | (writer)-->(clerk)]", "P169", "-->", "`clerk` takes Ticket");
    check_one("[w:Workflow | (search)]", "P169", "search", "`search` takes (query::Text)==>(limit::Int)");
    check_one("[w:Workflow | (writer)-->(search {ask: '{writer}'})]", "P169", "'{writer}'", "`ask` is a text");
    check_one("[w:Workflow | (search {with: {query: 'a', limt: '{takes}'}})]", "P169", "'{takes}'", "takes no `limt`");
    check_one("[w:Workflow | (search {with: {query: 'a'}})]", "P169", "{query: 'a'}", "needs `limit`");
    check_one(
        "[w:Workflow | (search {with: {query: 'a', limit: '{takes}'}})]",
        "P169",
        "'{takes}'",
        "is Int, but this is Text",
    );
    check_one(
        "[w:Workflow {takes: 'Ticket'} | (all:Each:writer {of: '{takes.customer}'})]",
        "P169",
        "'{takes.customer}'",
        "not a list",
    );
    check_one("[w:Workflow {returns: 'Verdict'} | (reviewer)-->(writer)]", "P172", "writer", "returns Text");
    check_one(
        "[w:Workflow {returns: 'Verdict'} | (reviewer)-->(x:Give {value: '{reviewer.verdict}'})]",
        "P172",
        "'{reviewer.verdict}'",
        "returns Text",
    );
}

#[test]
fn values() {
    let routes = "(reviewer)-[:When {verdict: 'good'}]->(writer), (reviewer)-[:Otherwise]->(editor {ask: '{writer}'})";
    check_one(&format!("[w:Workflow | {routes}]"), "P170", "'{writer}'", "`{writer}` may be missing");
    check_one(
        "[w:Workflow | (reviewer)-->(editor {ask: '{reviewer.comment}'})]",
        "P170",
        "'{reviewer.comment}'",
        "optional",
    );
    check_one("[w:Workflow | (writer)-[:Failed]->(editor {ask: '{writer}'})]", "P170", "'{writer}'", "may be missing");
    check_one("[w:Workflow | (writer)-->(editor {ask: '{writr}'})]", "P171", "'{writr}'", "not the value of a step");
    check_one(
        "[w:Workflow | (reviewer)-->(editor {ask: '{reviewer.score}'})]",
        "P171",
        "'{reviewer.score}'",
        "no field `score`",
    );
    check_one("[w:Workflow | (writer)-->(editor {ask: '${KEY}'})]", "P171", "'${KEY}'", "not available");
    check_one("[w:Workflow | (writer)-->(editor {ask: '{writer'})]", "P070", "'{writer'", "not closed");
    check_one(
        "[w:Workflow | (writer)-->(editor), (writer)-->(reviewer)]",
        "P173",
        "reviewer",
        "both `editor` and `reviewer`",
    );
    check_one("[w:Workflow | (a:writer)-->(editor), (b:writer)-->(editor)]", "P174", "editor", "`a` and `b`");
    check_one("[w:Workflow {maxModelCalls: 15} | (writer)-->(editor)]", "P176", "15", "20 times");
    let agent = "[a:Agent {instruction: 'Help {customer} with {question} ({prio})', model: 'demo', takes: 'Ticket'}]";
    check_one(agent, "P171", "'Help {customer} with {question} ({prio})'", "no field `prio`");
}

#[test]
fn too_many_routes() {
    let routes: Vec<_> = (0..13)
        .map(|n| {
            format!("(a)-->(r{n}:reviewer)-[:When {{verdict: 'good'}}]->(x{n}:writer)-->(z), (r{n})-[:Otherwise]->(z)")
        })
        .collect();
    let text = format!("[w:Workflow | (a:writer), {}, (z:Give {{value: 'x'}})]", routes.join(", "));
    check_one(&text, "P175", "[w:Workflow", "more routes than can be checked");
}

#[test]
fn right_ones() {
    check_none("[w:Workflow | (writer)]");
    check_none("[w:Workflow {takes: 'Ticket'} | (clerk)-->(editor)]");
    check_none("[w:Workflow {takes: 'Ticket'} | (writer {ask: '{takes.question}'})-->(flag)]");
    check_none("[w:Workflow | (planner)-->(all:Each:writer {of: '{planner.tasks}', width: 2, ask: 'Write {item}'})]");
    check_none("[w:Workflow | (a:writer)-->(editor {ask: '{a} {b}'}), (b:writer)-->(editor)]");
    check_none(
        "[w:Workflow {maxModelCalls: 60} | (writer)-->(reviewer)-[:When {verdict: 'again', atMost: 2, ask: 'Improve {writer}'}]->(writer), \
         (reviewer)-[:Exhausted]->(ask:Human {question: 'Good enough? {writer}', expires: 2d}), \
         (reviewer)-[:Otherwise]->(done:Give {value: '{writer}'})]",
    );
    check_none("[w:Workflow | (writer)-[:Failed {atMost: 2, ask: '{takes}'}]->(writer)]");
    check_none("[w:Workflow | (writer)-[:Handoff]->(editor)]");
    check_none(
        "[w:Workflow | (flag)-[:When {is: true}]->(writer {ask: 'yes'}), (flag)-[:When {is: false}]->(editor {ask: 'no'})]",
    );
    check_none("[w:Workflow | [inner:Agent {instruction: 'x', model: 'demo'}], (inner)-->(writer)]");
    check_none("[w:Workflow | (inner)-->(writer)] [inner:Workflow | (editor)]");
}
