//! How far a run may go, answers with a form, and agents that call agents.

use super::Event::{Calls, Gives, Says, Stops, Tick};
use super::*;
use patter_core::run::ChildError;

const CALL: Event = Calls(&[("1", "denied", "{}")]);

#[test]
fn the_model_is_called_ten_times() {
    let mut events = vec![(CALL, "model"); 9];
    events.push((CALL, "ToolError: the limit of 10 model calls is reached, and there is no answer"));
    let run = play(spec(), Vec::new(), &events);
    assert_eq!((run.model_calls(), run.conversation().len(), run.response().tools_used.len()), (10, 21, 10));

    let mut events = vec![(CALL, "model"); 9];
    events.push((Says("Hello!"), "answer Hello!"));
    play(spec(), Vec::new(), &events);
}

#[test]
fn limits_end_a_run_before_the_model_is_called_again() {
    let called = Calls(&[("1", "sayHello", "{}"), ("2", "sayHello", "{}")]);
    let gives = || vec![(called.clone(), "tools 1 2"), (Gives("1", json!(1)), "tools 2")];
    let mut events = gives();
    events.push((Gives("2", json!(1)), "ToolError: the run used 10 tokens without an answer, and 10 are allowed"));
    play(limited(|limits| limits.max_tokens = Some(10)), Vec::new(), &events);

    let mut events = gives();
    events.push((Gives("2", json!(1)), "ToolError: the run took 3 ms without an answer, and 3 ms are allowed"));
    play(limited(|limits| limits.deadline_ms = Some(3)), Vec::new(), &events);

    let unread =
        (Stops(Finish::Malformed, ""), "ToolError: the limit of 1 model calls is reached, and there is no answer");
    play(limited(|limits| limits.max_model_calls = 1), Vec::new(), &[unread]);

    let none = Run::start(limited(|limits| limits.max_model_calls = 0), Vec::new(), "Hi", 0).unwrap();
    assert_eq!(shown_step(&none), "ToolError: the limit of 0 model calls is reached, and there is no answer");
}

#[test]
fn an_answer_is_taken_also_where_a_limit_is_reached() {
    let spec = limited(|limits| (limits.max_tokens, limits.deadline_ms) = (Some(1), Some(1)));
    play(spec, Vec::new(), &[(Says("Hello!"), "answer Hello!")]);
}

#[test]
fn no_call_is_made_where_the_model_asks_for_too_many() {
    let two = Calls(&[("1", "sayHello", "{}"), ("2", "fly", "{}")]);
    let end = "ToolError: the model asked for 3 calls of tools, and 2 are allowed";
    let run = play(limited(|limits| limits.max_tool_calls = Some(2)), Vec::new(), &[(CALL, "model"), (two, end)]);
    assert_eq!(shown(run.conversation())[4..], ["1-2=sayHello: cancelled", "2=fly: cancelled"]);
    let two = Calls(&[("1", "denied", "{}"), ("2", "denied", "{}")]);
    play(limited(|limits| limits.max_tool_calls = Some(2)), Vec::new(), &[(two, "model")]);
}

#[test]
fn one_reply_makes_only_so_many_calls() {
    let mut run = Run::start(spec(), Vec::new(), "Hi", 0).unwrap();
    let calls = vec![("", "sayHello", "{}"); 130];
    run.reply(reply("", &calls, Finish::Stop), 1, &decide).unwrap();
    let Step::CallTools { calls } = run.step() else { panic!("{:?}", run.step()) };
    assert_eq!(calls.len(), patter_core::run::MAX_CALLS_IN_REPLY);
    run.cancel(2).unwrap();
    let transcript = shown(run.conversation());
    assert_eq!(
        (transcript.len(), transcript[131].as_str()),
        (132, "call-130=sayHello: error: only 128 calls of one reply are made")
    );
}

#[test]
fn a_deadline_ends_what_is_under_way() {
    let late = "ToolError: the run took 90 ms without an answer, and 50 ms are allowed";
    let called = Calls(&[("1", "sayHello", "{}")]);
    let events = [(called, "tools 1"), (Tick(49), "tools 1"), (Tick(20), "tools 1"), (Tick(90), late)];
    let run = play(limited(|limits| limits.deadline_ms = Some(50)), Vec::new(), &events);
    assert_eq!(shown(run.conversation())[2], "1=sayHello: cancelled");
    // A clock that is set back gives no time back.
    let mut run = Run::start(limited(|limits| limits.deadline_ms = Some(50)), Vec::new(), "Hi", 1000).unwrap();
    run.tick(1030).unwrap();
    run.tick(7).unwrap();
    assert_eq!((run.time_left(0), run.time_left(1040), run.time_left(5000)), (Some(20), Some(10), Some(0)));
}

fn returning(schema: Json) -> RunSpec {
    RunSpec { returns: Some(schema), ..spec() }
}

fn person() -> RunSpec {
    let properties = json!({"name": {"type": "string"}, "age": {"type": "integer"}});
    returning(json!({"type": "object", "properties": properties, "required": ["name"]}))
}

#[test]
fn an_answer_with_a_form_is_read() {
    let text = json!({"type": "string"});
    let color = json!({"type": "string", "enum": ["red", "blue"]});
    for (spec, said, expected) in [
        (person(), r#" {"name": "Ada", "age": 36} "#, r#"answer {"name":"Ada","age":36}"#),
        (person(), "```json\n{\"name\": \"Ada\"}\n```", r#"answer {"name":"Ada"}"#),
        (person(), "```\n{\"name\": \"Ada\"}```", r#"answer {"name":"Ada"}"#),
        (returning(text.clone()), "Hello, Ada!", r#"answer "Hello, Ada!""#),
        (returning(text.clone()), r#""Hello""#, r#"answer "Hello""#),
        (returning(text), "42", r#"answer "42""#),
        (returning(color.clone()), "red\n", r#"answer "red""#),
        (returning(color), "green", "model"),
        (returning(json!({"type": ["integer", "null"]})), "null", "answer null"),
        (person(), "```yaml\n{}\n```", "model"),
        (person(), "Here it is: {\"name\": \"Ada\"}", "model"),
        (person(), "```json", "model"),
        (person(), "``````", "model"),
    ] {
        play(spec, Vec::new(), &[(Says(said), expected)]);
    }
}

#[test]
fn an_answer_without_its_form_is_asked_for_again() {
    let form = "this answer has not the form that it must have";
    let again = "answer again, with nothing but the JSON that was asked for";
    let end =
        "LLMAPIError: the answer has not the form that it must have: it is not JSON: expected ident at line 1 column 2";
    let events = [(Says("Ada"), "model"), (Says(r#"{"age": "old"}"#), "model"), (Says("no"), end)];
    let run = play(person(), Vec::new(), &events);
    let wrong = "`name`: expected a Text, found nothing; `age`: expected an Int, found \"old\"";
    assert_eq!(
        shown(run.conversation()),
        [
            "user: Hi",
            "model: Ada",
            &format!("user: {form}: it is not JSON: expected value at line 1 column 1; {again}"),
            r#"model: {"age": "old"}"#,
            &format!("user: {form}: {wrong}; {again}"),
            "model: no",
        ]
    );
    let events = [(Says("Ada"), "model"), (CALL, "model"), (Says(r#"{"name":"Ada"}"#), r#"answer {"name":"Ada"}"#)];
    play(person(), Vec::new(), &events);

    // The reason is told also where another limit comes first.
    let mut spec = person();
    spec.limits.max_model_calls = 1;
    let end = "ToolError: the limit of 1 model calls is reached, and there is no answer: \
               it is not JSON: expected value at line 1 column 1";
    play(spec, Vec::new(), &[(Says("Ada"), end)]);
}

#[test]
fn many_mistakes_are_told_in_short() {
    let schema = json!({"type": "array", "items": {"type": "integer"}});
    let run = play(returning(schema), Vec::new(), &[(Says(r#"["","","","","","","","","","","",""]"#), "model")]);
    let told = shown(run.conversation()).pop().unwrap();
    assert!(told.contains("; `[9]`: expected an Int, found \"\"; and 2 more; answer again"), "{told}");
}

#[test]
fn an_agent_calls_an_agent() {
    let parent = limited(|limits| {
        (limits.max_depth, limits.deadline_ms, limits.max_tokens) = (2, Some(100), Some(50));
    });
    let calls = Calls(&[("a", "editor", r#"{"input": "Shorten this"}"#), ("b", "editor", r#"{"message": {"n": 1}}"#)]);
    let mut run = play(parent, Vec::new(), &[(calls, "tools a b")]);
    let mut child = run.child("a", limited(|limits| limits.deadline_ms = Some(1000)), 40).unwrap();
    assert_eq!((child.depth(), shown(child.conversation())), (1, vec!["user: Shorten this".to_owned()]));
    let Limits { max_depth, deadline_ms, max_tokens, .. } = child.spec().limits.clone();
    assert_eq!((max_depth, deadline_ms, max_tokens), (1, Some(60), Some(40)));
    tell(&mut child, &Says("Short.")).unwrap();
    run.add_usage(child.usage());
    run.finished("a", conversation::ToolOutcome::Value { value: child.response().content.into() }, 9, 50).unwrap();
    assert_eq!(run.usage().input_tokens, 14);

    let own = limited(|limits| (limits.max_depth, limits.deadline_ms, limits.max_tokens) = (0, Some(1), Some(2)));
    let child = run.child("b", own.clone(), 40).unwrap();
    assert_eq!((shown(child.conversation()), child.spec()), (vec![r#"user: {"n":1}"#.to_owned()], &own));
    // The deadline of the caller has passed.
    assert!(shown_step(&run.child("b", spec(), 100).unwrap()).starts_with("ToolError: the run took 0 ms"));
    assert_eq!(run.child("a", spec(), 0).unwrap_err().to_string(), "the call `a` has its result already");
}

#[test]
fn agents_call_one_another_only_so_deep() {
    let calls = Calls(&[("1", "editor", r#"{"input": "x"}"#)]);
    let mut run = play(limited(|limits| limits.max_depth = 2), Vec::new(), &[]);
    for depth in 0..2 {
        tell(&mut run, &calls).unwrap();
        assert_eq!((run.depth(), shown_step(&run).as_str()), (depth, "tools 1"));
        run = loaded(&run.child("1", spec(), 1).unwrap());
    }
    tell(&mut run, &calls).unwrap();
    let told = "1=editor: error: the agent `editor` is not called, as too many agents called one another";
    assert_eq!((run.depth(), shown_step(&run).as_str(), shown(run.conversation())[2].as_str()), (2, "model", told));
}

#[test]
fn an_agent_must_be_asked_something() {
    let calls = Calls(&[
        ("a", "editor", r#"{"text": "x"}"#),
        ("b", "editor", r#"{"input": "  "}"#),
        ("c", "sayHello", "{}"),
        ("d", "askMe", "{}"),
        ("e", "editor", "[1]"),
        ("f", "editor", r#"{"input": null}"#),
        ("g", "fly", ""),
    ]);
    let mut run = play(spec(), Vec::new(), &[(calls, "tools a b c e f")]);
    let takes = "the agent `editor` takes an object with `input`, the text for it";
    for (id, expected) in [
        ("a", takes),
        ("b", "the input is empty"),
        ("c", "`sayHello` is no agent"),
        ("d", "the call `d` is not approved"),
        ("e", takes),
        ("f", takes),
        ("g", "the call `g` has its result already"),
        ("z", "there is no call `z`"),
    ] {
        assert_eq!(run.child(id, spec(), 1).unwrap_err().to_string(), expected);
    }
    run.cancel(2).unwrap();
    assert_eq!(run.child("a", spec(), 1), Err(ChildError::Call(RunError::Over)));
}
