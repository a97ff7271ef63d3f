//! Tests of what names refer to: agents inside other agents are visible only there.

use crate::library::{Tool, library};
use patter_core::check::{Options, check};
use patter_core::compile::CompiledAgent;
use patter_core::declare::Agent;
use patter_core::declare::project::Project;
use patter_core::library::{Library, MatchMode, Target, bind, find_unbound};
use patter_core::run::CallTarget;

/// A private helper with more power, a public one, and an agent that means the public one.
const HELPERS: &str = "[boss:Agent {description: 'y', instruction: 'Ask `helper`.', model: 'demo'} |
  [helper:Agent {description: 'Writes files', instruction: 'Use `write`.', model: 'demo'} | write]]
[clerk:Agent {description: 'y', instruction: 'Ask `helper`.', model: 'demo'} | helper]
[helper:Agent {description: 'Answers questions', instruction: 'Answer.', model: 'demo'}]";

fn agent(project: &Project, path: &str) -> Agent {
    let mut agents = project.files().iter().flat_map(|file| file.tree.walk().filter_map(Agent::cast));
    agents.find(|agent| agent.path().to_string() == path).unwrap()
}

/// Checks what the elements of an agent are bound to.
fn check_targets(files: &[(&str, &str)], caller: &str, expected: &[&str]) {
    let project = Project::read(files.iter().copied());
    let caller = agent(&project, caller);
    let library = library(&[("write", "(text::Text)==>(::Text)"), ("box/plan", "()==>(::Text)")]);
    let found = match bind(&caller, &project, &library, MatchMode::Compatible) {
        Err(error) => vec![error.to_string()],
        Ok(bindings) => {
            let target = |target: &Target| match target {
                Target::Agent { agent } => format!("agent {}", agent.path()),
                Target::Tool { name, declared } => format!("tool {name}: {}", declared.description),
            };
            bindings.iter().map(|binding| format!("{} -> {}", binding.name, target(&binding.target))).collect()
        }
    };
    assert_eq!(found, expected);
}

/// Checks the findings of a text: the code, the message and the hint.
fn check_findings(text: &str, expected: &[&str]) {
    let findings = check(&Project::read([("a.gram", text)]), &Options { library: &["write"], ..Options::default() });
    let found: Vec<_> = findings
        .iter()
        .map(|finding| {
            let found = &finding.diagnostic;
            format!("{} {} | {}", found.code, found.message, found.hint.as_deref().unwrap_or_default())
        })
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn agents_inside_others_are_visible_only_there() {
    check_targets(&[("a.gram", HELPERS)], "clerk", &["helper -> agent helper"]);
    check_targets(&[("a.gram", HELPERS)], "boss", &["helper -> agent boss/helper"]);
    check_targets(&[("a.gram", HELPERS)], "boss/helper", &["write -> tool write: Does it"]);
    // Neither the order of the files nor that of the declarations matters.
    let (boss, others) = HELPERS.split_once("[clerk").unwrap();
    let others = format!("[clerk{others}");
    check_targets(&[("a.gram", &others), ("b.gram", boss)], "clerk", &["helper -> agent helper"]);
    check_targets(&[("b.gram", boss), ("a.gram", &others)], "clerk", &["helper -> agent helper"]);
    // Without the public one, nothing is left to call.
    let (without, _) = HELPERS.rsplit_once('[').unwrap();
    check_targets(
        &[("a.gram", without)],
        "clerk",
        &["the agent `clerk` cannot run: nothing implements the tool `helper`"],
    );
}

#[test]
fn agents_inside_others_see_their_neighbours() {
    let text = "[boss:Agent {description: 'y', instruction: 'x', model: 'demo'} |
      [plan:Tool {description: 'Plans for the boss'} | ()==>(::Text)],
      [editor:Agent {description: 'y', instruction: 'x', model: 'demo'}],
      [writer:Agent {description: 'y', instruction: 'x', model: 'demo'} |
        editor, plan, outside, [desk:Agent {description: 'y', instruction: 'x', model: 'demo'} | editor]]]
     [editor:Agent {description: 'y', instruction: 'x', model: 'demo'}]
     [outside:Agent {description: 'y', instruction: 'x', model: 'demo'}]";
    check_targets(
        &[("a.gram", text)],
        "boss/writer",
        &[
            "editor -> agent boss/editor",
            "plan -> tool box/plan: Plans for the boss",
            "outside -> agent outside",
            "desk -> agent boss/writer/desk",
        ],
    );
    check_targets(&[("a.gram", text)], "boss/writer/desk", &["editor -> agent boss/editor"]);
}

#[test]
fn an_inner_agent_with_the_name_of_its_parent_is_not_the_parent() {
    let text = "[boss:Agent {description: 'y', instruction: 'Ask `boss`.', model: 'demo'} | [boss:Agent {description: 'y', instruction: 'x', model: 'demo'}]]";
    check_targets(&[("a.gram", text)], "boss", &["boss -> agent boss/boss"]);
    check_findings(
        text,
        &[
            "P047 `boss` has two meanings: this agent, and the agent in a.gram:1:1 | inside `boss` the name refers to this agent; rename one of them",
        ],
    );
}

#[test]
fn two_declarations_at_one_level_are_ambiguous() {
    let text = "[a:Agent {description: 'y', instruction: 'Ask `b`.', model: 'demo'} | b]";
    let b = "[b:Agent {description: 'y', instruction: 'x', model: 'demo'}]";
    check_targets(
        &[("a.gram", text), ("b.gram", b), ("c.gram", b)],
        "a",
        &["the agent `a` cannot run: `b` is ambiguous: it is declared in b.gram:1:1 and c.gram:1:1"],
    );
}

#[test]
fn two_meanings_of_a_name_are_reported() {
    check_findings(
        HELPERS,
        &[
            "P047 `helper` has two meanings: this agent, and the agent in a.gram:4:1 | inside `boss` the name refers to this agent; rename one of them",
        ],
    );
    // A tool that hides an agent, two levels up.
    check_findings(
        "[a:Agent {description: 'y', instruction: 'Ask `b`.', model: 'demo'} |
           [b:Agent {description: 'y', instruction: 'Ask `c`.', model: 'demo'} |
             [c:Agent {description: 'y', instruction: 'Call `b`.', model: 'demo'} |
               [b:Tool {description: 'x'} | ()==>(::Text)]]]]",
        &[
            "P047 `b` has two meanings: this tool, and the agent in a.gram:2:12 | inside `c` the name refers to this tool; rename one of them",
        ],
    );
    // Private agents of different parents never meet, and tools of one name are one tool of the library.
    let own = "[helper:Agent {description: 'y', instruction: 'Use `write`.', model: 'demo'} | [write:Tool {description: 'x'} | ()==>(::Text)]]";
    check_findings(
        &format!(
            "[a:Agent {{description: 'y', instruction: 'Ask `helper`.', model: 'demo'}} | {own}]
             [b:Agent {{description: 'y', instruction: 'Ask `helper` and `write`.', model: 'demo'}} | {own}, write]
             [write:Tool {{description: 'x'}} | ()==>(::Text)]"
        ),
        &[],
    );
}

#[test]
fn cycles_follow_what_names_refer_to() {
    let inner = |name: &str| {
        format!(
            "[a:Agent {{description: 'y', instruction: '`b`', model: 'demo'}} | [b:Agent {{description: 'y', instruction: '`{name}`', model: 'demo'}} | {name}]]"
        )
    };
    let hint = "a run might never end; remove one of the references";
    check_findings(&inner("b"), &[&format!("P042 the agent `b` delegates to itself | {hint}")]);
    check_findings(&inner("a"), &[&format!("P042 agents delegate in a cycle: `a` → `b` → `a` | {hint}")]);
    // The private `b` is not the `b` that `c` calls.
    let text = format!(
        "{} [c:Agent {{description: 'y', instruction: '`d`', model: 'demo'}} | d] [d:Agent {{description: 'y', instruction: 'x', model: 'demo'}}]",
        inner("c")
    );
    check_findings(&text, &[]);
}

#[test]
fn the_main_agent_is_the_one_that_no_other_calls() {
    let main = |text: &str| match Project::read([("a.gram", text)]).main_agent(None) {
        Ok(agent) => agent.path().to_string(),
        Err(error) => error.to_string(),
    };
    // The private `b` of `a` is not the public one.
    assert_eq!(main("[a:Agent | [b:Agent]] [b:Agent]"), "`a.gram` has several agents: `a`, `b`");
    assert_eq!(main("[a:Agent | [c:Agent | b]] [b:Agent]"), "a", "an agent inside `a` calls `b`");
    assert_eq!(main("[a:Agent | a] [b:Agent | a]"), "b");
    assert_eq!(main("[a:Agent | b] [b:Agent | a]"), "`a.gram` has several agents: `a`, `b`");
}

fn write_tool() -> Library<Tool> {
    library(&[("write", "(text::Text)==>(::Text)")])
}

#[test]
fn a_compiled_agent_knows_which_agents_it_calls() {
    let project = Project::read([("a.gram", HELPERS)]);
    let library = write_tool();
    let compile = |path: &str| CompiledAgent::new(&agent(&project, path), &project, &library, None).unwrap();
    for (caller, called, description) in
        [("boss", "boss/helper", "Writes files"), ("clerk", "helper", "Answers questions")]
    {
        let compiled = compile(caller);
        assert_eq!(compiled.offered_tools()[0].description, description, "the model reads the declared description");
        assert_eq!(compiled.delegate("helper").unwrap().path().to_string(), called);
        assert_eq!(compiled.spec().tools[0].target, CallTarget::Agent { name: called.to_owned() });
        let line = &compiled.bindings().agents[0].calls[0];
        assert!(line.starts_with(&format!("helper: agent {called}: ")), "{line}");
    }
    let helper = compile("boss/helper");
    assert_eq!((helper.name(), helper.bindings().agents[0].name.as_str()), ("boss/helper", "boss/helper"));
    assert!(find_unbound(&project, &library).is_empty());
}

#[test]
fn a_delegate_without_a_description_is_named() {
    let text = "[a:Agent {instruction: 'x', model: 'demo'} | [b:Agent {instruction: 'x', model: 'demo'}]]";
    let project = Project::read([("a.gram", text)]);
    let compiled = CompiledAgent::new(&agent(&project, "a"), &project, &write_tool(), None).unwrap();
    assert_eq!(compiled.offered_tools()[0].description, "Asks the agent b");
}
