//! Limits, structured answers, and agents that call agents.

use super::Event::{Calls, Returns, Says, Stops, Tick};
use super::*;
use patter_core::provider::price::{Bill, Cost};
use patter_core::run::{ChildError, ContextPolicy, ContextSpec};

const CALL: Event = Calls(&[("1", "denied", "{}")]);

#[test]
fn a_run_makes_at_most_ten_model_calls() {
    let mut events = vec![(CALL, "model"); 9];
    events.push((CALL, "ToolError: reached the limit of 10 model calls without an answer"));
    let run = play(spec(), Vec::new(), &events);
    assert_eq!((run.model_calls(), run.conversation().len(), run.response().tools_used.len()), (10, 21, 10));

    let mut events = vec![(CALL, "model"); 9];
    events.push((Says("Hello!"), "answer Hello!"));
    play(spec(), Vec::new(), &events);
}

#[test]
fn limits_end_a_run_before_the_model_is_called_again() {
    let called = Calls(&[("1", "sayHello", "{}"), ("2", "sayHello", "{}")]);
    let calls_and_result = || vec![(called.clone(), "tools 1 2"), (Returns("1", json!(1)), "tools 2")];
    let mut events = calls_and_result();
    events.push((Returns("2", json!(1)), "ToolError: the run used 10 tokens without an answer (limit: 10)"));
    play(spec_with_limits(|limits| limits.max_tokens = Some(10)), Vec::new(), &events);

    let mut events = calls_and_result();
    events.push((Returns("2", json!(1)), "ToolError: the run took 3 ms without an answer (limit: 3 ms)"));
    play(spec_with_limits(|limits| limits.deadline_ms = Some(3)), Vec::new(), &events);

    let mut run =
        play(spec_with_limits(|limits| limits.max_cost = Cost::from_dollars(0.02)), Vec::new(), &calls_and_result());
    run.charge(Bill::from(Cost::from_dollars(0.025))).unwrap();
    run.call_finished("2", patter_core::message::conversation::ToolOutcome::Cancelled, 1, 4).unwrap();
    assert_eq!(format_step(&run), "ToolError: the run cost $0.025 without an answer (limit: $0.02)");

    let unread =
        (Stops(FinishReason::Malformed, ""), "ToolError: reached the limit of 1 model calls without an answer");
    play(spec_with_limits(|limits| limits.max_model_calls = 1), Vec::new(), &[unread]);

    let none = Run::start(spec_with_limits(|limits| limits.max_model_calls = 0), Vec::new(), "Hi", 0).unwrap();
    assert_eq!(format_step(&none), "ToolError: reached the limit of 0 model calls without an answer");
}

#[test]
fn an_answer_is_accepted_even_if_a_limit_is_reached() {
    let spec = spec_with_limits(|limits| {
        limits.max_tokens = Some(1);
        limits.deadline_ms = Some(1);
    });
    play(spec, Vec::new(), &[(Says("Hello!"), "answer Hello!")]);
}

#[test]
fn too_many_tool_calls_end_the_run_before_any_is_made() {
    let two = Calls(&[("1", "sayHello", "{}"), ("2", "fly", "{}")]);
    let end = "ToolError: the model requested 3 tool calls (limit: 2)";
    let run =
        play(spec_with_limits(|limits| limits.max_tool_calls = Some(2)), Vec::new(), &[(CALL, "model"), (two, end)]);
    assert_eq!(transcript(run.conversation())[4..], ["1-2=sayHello: cancelled", "2=fly: cancelled"]);
    let two = Calls(&[("1", "denied", "{}"), ("2", "denied", "{}")]);
    play(spec_with_limits(|limits| limits.max_tool_calls = Some(2)), Vec::new(), &[(two, "model")]);
}

#[test]
fn the_number_of_calls_in_one_reply_is_limited() {
    let mut run = Run::start(spec(), Vec::new(), "Hi", 0).unwrap();
    let calls = vec![("", "sayHello", "{}"); 130];
    run.model_replied(reply("", &calls, FinishReason::Stop), 1, &decide).unwrap();
    let Step::CallTools { calls } = run.step() else { panic!("{:?}", run.step()) };
    assert_eq!(calls.len(), patter_core::run::MAX_CALLS_IN_REPLY);
    run.cancel(2).unwrap();
    let messages = transcript(run.conversation());
    assert_eq!(
        (messages.len(), messages[131].as_str()),
        (132, "call-130=sayHello: error: only the first 128 calls of a reply are executed")
    );
}

#[test]
fn a_deadline_cancels_open_calls() {
    let late = "ToolError: the run took 90 ms without an answer (limit: 50 ms)";
    let called = Calls(&[("1", "sayHello", "{}")]);
    let events = [(called, "tools 1"), (Tick(49), "tools 1"), (Tick(20), "tools 1"), (Tick(90), late)];
    let run = play(spec_with_limits(|limits| limits.deadline_ms = Some(50)), Vec::new(), &events);
    assert_eq!(transcript(run.conversation())[2], "1=sayHello: cancelled");
    // Setting the clock back does not extend the deadline.
    let mut run = Run::start(spec_with_limits(|limits| limits.deadline_ms = Some(50)), Vec::new(), "Hi", 1000).unwrap();
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
fn structured_answers_are_parsed() {
    let text = json!({"type": "string"});
    let color = json!({"type": "string", "enum": ["red", "blue"]});
    for (spec, text, expected) in [
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
        play(spec, Vec::new(), &[(Says(text), expected)]);
    }
}

#[test]
fn an_invalid_structured_answer_is_retried() {
    let complaint = "this answer does not match the required schema";
    let again = "answer again with only the requested JSON";
    let end = "LLMAPIError: the answer does not match the required schema: it is not valid JSON: expected ident at line 1 column 2";
    let events = [(Says("Ada"), "model"), (Says(r#"{"age": "old"}"#), "model"), (Says("no"), end)];
    let run = play(person(), Vec::new(), &events);
    let wrong = "`name`: expected a Text, found nothing; `age`: expected an Int, found \"old\"";
    assert_eq!(
        transcript(run.conversation()),
        [
            "user: Hi",
            "model: Ada",
            &format!("user: {complaint}: it is not valid JSON: expected value at line 1 column 1; {again}"),
            r#"model: {"age": "old"}"#,
            &format!("user: {complaint}: {wrong}; {again}"),
            "model: no",
        ]
    );
    let events = [(Says("Ada"), "model"), (CALL, "model"), (Says(r#"{"name":"Ada"}"#), r#"answer {"name":"Ada"}"#)];
    play(person(), Vec::new(), &events);

    // The reason is included even if another limit is reached first.
    let mut spec = person();
    spec.limits.max_model_calls = 1;
    let end = "ToolError: reached the limit of 1 model calls without an answer: \
               it is not valid JSON: expected value at line 1 column 1";
    play(spec, Vec::new(), &[(Says("Ada"), end)]);
}

#[test]
fn long_lists_of_mismatches_are_truncated() {
    let schema = json!({"type": "array", "items": {"type": "integer"}});
    let run = play(returning(schema), Vec::new(), &[(Says(r#"["","","","","","","","","","","",""]"#), "model")]);
    let complaint = transcript(run.conversation()).pop().unwrap();
    assert!(complaint.contains("; `[9]`: expected an Int, found \"\"; and 2 more; answer again"), "{complaint}");
}

#[test]
fn an_agent_calls_an_agent() {
    let parent = spec_with_limits(|limits| {
        limits.max_depth = 2;
        limits.deadline_ms = Some(100);
        limits.max_tokens = Some(50);
    });
    let calls = Calls(&[("a", "editor", r#"{"input": "Shorten this"}"#), ("b", "editor", r#"{"message": {"n": 1}}"#)]);
    let mut run = play(parent, Vec::new(), &[(calls, "tools a b")]);
    let mut child = run.start_child("a", spec_with_limits(|limits| limits.deadline_ms = Some(1000)), 40).unwrap();
    assert_eq!((child.depth(), transcript(child.conversation())), (1, vec!["user: Shorten this".to_owned()]));
    let Limits { max_depth, deadline_ms, max_tokens, .. } = child.spec().limits.clone();
    assert_eq!((max_depth, deadline_ms, max_tokens), (1, Some(60), Some(40)));
    apply(&mut child, &Says("Short.")).unwrap();
    run.add_usage(child.usage());
    run.call_finished("a", conversation::ToolOutcome::Value { value: child.response().content.into() }, 9, 50).unwrap();
    assert_eq!(run.usage().input_tokens, 14);

    let own = spec_with_limits(|limits| {
        limits.max_depth = 0;
        limits.deadline_ms = Some(1);
        limits.max_tokens = Some(2);
    });
    let child = run.start_child("b", own.clone(), 40).unwrap();
    assert_eq!((transcript(child.conversation()), child.spec()), (vec![r#"user: {"n":1}"#.to_owned()], &own));
    // The deadline of the calling run has passed.
    assert!(format_step(&run.start_child("b", spec(), 100).unwrap()).starts_with("ToolError: the run took 0 ms"));
    assert_eq!(run.start_child("a", spec(), 0).unwrap_err().to_string(), "the call `a` already has a result");
}

#[test]
fn the_nesting_depth_of_agents_is_limited() {
    let calls = Calls(&[("1", "editor", r#"{"input": "x"}"#)]);
    let mut run = play(spec_with_limits(|limits| limits.max_depth = 2), Vec::new(), &[]);
    for depth in 0..2 {
        apply(&mut run, &calls).unwrap();
        assert_eq!((run.depth(), format_step(&run).as_str()), (depth, "tools 1"));
        run = reload(&run.start_child("1", spec(), 1).unwrap());
    }
    apply(&mut run, &calls).unwrap();
    let refusal = "1=editor: error: cannot call the agent `editor`: agents are nested too deeply";
    assert_eq!(
        (run.depth(), format_step(&run).as_str(), transcript(run.conversation())[2].as_str()),
        (2, "model", refusal)
    );
}

#[test]
fn calls_to_agents_need_an_input() {
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
    let no_input = "the agent `editor` expects an object with a text field `input`";
    for (id, expected) in [
        ("a", no_input),
        ("b", "the input is empty"),
        ("c", "`sayHello` is not an agent"),
        ("d", "the call `d` has not been approved"),
        ("e", no_input),
        ("f", no_input),
        ("g", "the call `g` already has a result"),
        ("z", "there is no call `z`"),
    ] {
        assert_eq!(run.start_child(id, spec(), 1).unwrap_err().to_string(), expected);
    }
    run.cancel(2).unwrap();
    assert_eq!(run.start_child("a", spec(), 1), Err(ChildError::Call(RunError::Ended)));
}

#[test]
fn a_fallback_has_its_own_window() {
    let long =
        vec![Message::user("word ".repeat(2000)), Message::assistant("noted", Vec::new()), Message::user("more")];
    for (policy, expected) in [(ContextPolicy::Compact, "compact"), (ContextPolicy::Error, "done")] {
        let context = ContextSpec { policy, window: Some(100_000), ..ContextSpec::default() };
        let mut run = Run::start(RunSpec { context, ..spec() }, long.clone(), "and now?", 0).unwrap();
        assert!(matches!(run.step(), Step::CallModel { .. }));
        run.fall_back("demo".into(), Some(ContextSpec { window: Some(1000), ..context }), 5).unwrap();
        let step = match run.step() {
            Step::Compact => "compact",
            Step::Done(RunOutcome::Failed(failure)) if failure.message.contains("the window of the model 1000") => {
                "done"
            }
            _ => "other",
        };
        assert_eq!(step, expected);
    }
}
