//! Invalid inputs to a run, and invalid saved runs.

use super::Event::{Approves, CallFails, Calls, Cancel, Fails, Refuses, Returns, Says, Starts, Tick};
use super::*;
use patter_core::run::StartError;

#[test]
fn empty_input_and_invalid_answer_schemas_are_rejected() {
    for input in ["", " \n\t"] {
        let error = Run::start(spec(), Vec::new(), input, 0).unwrap_err();
        assert_eq!((error.name(), error.to_string().as_str()), ("ValidationError", "the input is empty"));
    }
    let returns = RunSpec { returns: Some(json!({"type": "strng"})), ..spec() };
    let error = Run::start(returns, Vec::new(), "Hi", 0).unwrap_err();
    assert_eq!(error.name(), "ConfigurationError");
    assert!(error.to_string().starts_with("invalid answer schema: not a valid JSON Schema: "), "{error}");
}

#[test]
fn invalid_inputs_are_rejected_and_change_nothing() {
    let check_rejected = |run: &Run, event: Event, expected: &str| {
        let mut changed = run.clone();
        assert_eq!(apply(&mut changed, &event).unwrap_err().to_string(), expected, "{event:?}");
        assert_eq!(changed, *run, "{event:?}");
    };
    let run = play(spec(), Vec::new(), &[]);
    check_rejected(&run, Returns("a", json!(1)), "there is no call `a`");

    let calls = Calls(&[("a", "sayHello", "{}"), ("b", "askMe", "{}"), ("c", "denied", "{}"), ("d", "mail/send", "")]);
    let mut run = play(spec(), Vec::new(), &[(calls, "tools a d"), (Returns("d", json!(1)), "tools a")]);
    let no_reply = "no model reply is expected";
    for (event, expected) in [
        (Says("Hello!"), no_reply),
        (Calls(&[("z", "sayHello", "{}")]), no_reply),
        (Fails("down"), no_reply),
        (Starts("z"), "there is no call `z`"),
        (Returns("z", json!(1)), "there is no call `z`"),
        (Approves("z"), "there is no call `z`"),
        (Refuses("z", "no"), "there is no call `z`"),
        (Starts("b"), "the call `b` has not been approved"),
        (Returns("b", json!(1)), "the call `b` has not been approved"),
        (Approves("a"), "the call `a` is not waiting for approval"),
        (Refuses("a", "no"), "the call `a` is not waiting for approval"),
        (Starts("d"), "the call `d` already has a result"),
        (CallFails("d", "late"), "the call `d` already has a result"),
        (Approves("c"), "the call `c` already has a result"),
        (Refuses("d", "no"), "the call `d` already has a result"),
    ] {
        check_rejected(&run, event, expected);
    }
    apply(&mut run, &Returns("a", json!(1))).unwrap();
    apply(&mut run, &Refuses("b", "no")).unwrap();
    check_rejected(&run, Returns("a", json!(1)), "the call `a` already has a result");
    apply(&mut run, &Says("Bye")).unwrap();
    for event in [Says("x"), Fails("x"), Starts("a"), Returns("a", json!(1)), Approves("b"), Cancel, Tick(9)] {
        check_rejected(&run, event, "the run has ended");
    }
}

#[test]
fn open_calls_of_the_history_are_cancelled() {
    let call = |id: &str| ToolCall { id: id.into(), tool: "sayHello".into(), arguments: "{}".into() };
    let result = |id: &str| Message::Tool {
        call_id: id.into(),
        tool: "sayHello".into(),
        outcome: conversation::ToolOutcome::Value { value: json!("x") },
    };
    let requests = |ids: &[&str]| Message::assistant("", ids.iter().map(|id| call(id)).collect());
    let history = vec![Message::user("A"), requests(&["1", "2"]), result("1"), Message::user("B"), requests(&["3"])];
    let run = Run::start(spec(), history, "C", 0).unwrap();
    assert_eq!(
        transcript(run.conversation()),
        [
            "user: A",
            "model:  1=sayHello({}) 2=sayHello({})",
            "1=sayHello: x",
            "2=sayHello: cancelled",
            "user: B",
            "model:  3=sayHello({})",
            "3=sayHello: cancelled",
            "user: C"
        ]
    );
    for (history, number, id) in [
        (vec![result("1")], 1, "1"),
        (vec![requests(&["1", "2"]), result("2"), result("1")], 2, "2"),
        (vec![requests(&["1"]), result("1"), result("1")], 3, "1"),
        (vec![requests(&["1"]), Message::user("A"), result("1")], 3, "1"),
    ] {
        let error = Run::start(spec(), history, "C", 0).unwrap_err();
        assert_eq!(error, StartError::Conversation { number, id: id.into() });
        let expected = format!(
            "message {number} of the conversation is a result of the call `{id}`, which is not open at that point"
        );
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn saved_runs_have_a_version() {
    let run = play(spec(), Vec::new(), &[(Calls(&[("a", "askMe", "{}"), ("b", "denied", "{}")]), "ask a")]);
    let json = serde_json::to_value(&run).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(serde_json::from_value::<Run>(json.clone()).unwrap(), run);
    for (version, expected) in [
        (json!(2), "the run was saved in format version 2; only version 1 is supported"),
        (json!("one"), "the run was saved in format version \"one\"; only version 1 is supported"),
    ] {
        // The version is checked before anything else.
        let other = json!({"spec": 7, "version": version});
        assert_eq!(Run::load(&other.to_string()).unwrap_err().to_string(), expected);
    }
    let mut other = json;
    other["version"] = json!(2);
    let error = serde_json::from_value::<Run>(other.clone()).unwrap_err();
    assert_eq!(error.to_string(), "the run was saved in format version 2; only version 1 is supported");
    other.as_object_mut().unwrap().remove("version");
    for text in [other.to_string().as_str(), "", "[]", "{\"version\": 1}"] {
        let error = Run::load(text).unwrap_err().to_string();
        assert!(error.starts_with("not a saved run: "), "{error}");
    }
}

#[test]
fn values_nested_too_deeply_to_be_saved_are_rejected() {
    let nested = |levels: usize| (1..levels).fold(json!([]), |inside, _| json!([inside]));
    let returns = RunSpec { returns: Some(json!({"type": "array"})), ..spec() };
    for (levels, arguments, result, answer) in [
        (100, "a=sayHello: [[", "b=sayHello: [[", "answer [["),
        (
            101,
            "a=sayHello: error: the arguments of `sayHello` are nested more than 100 levels deep",
            "b=sayHello: error: the result is nested more than 100 levels deep",
            "model",
        ),
    ] {
        let text = nested(levels).to_string();
        let mut run = Run::start(returns.clone(), Vec::new(), "Hi", 0).unwrap();
        run.model_replied(
            reply("", &[("a", "sayHello", &text), ("b", "sayHello", "")], FinishReason::Stop),
            1,
            &decide,
        )
        .unwrap();
        run = reload(&run);
        let value = || conversation::ToolOutcome::Value { value: nested(levels) };
        run.call_finished("b", value(), 1, 1).unwrap();
        if levels == 100 {
            run.call_finished("a", value(), 1, 1).unwrap();
        }
        run = reload(&run);
        let messages = transcript(run.conversation());
        assert!(messages[2].starts_with(arguments) && messages[3].starts_with(result), "{messages:?}");
        let opaque = Some(conversation::Opaque { wire: "gemini".into(), origin: String::new(), data: nested(levels) });
        run.model_replied(Reply { opaque, ..reply(&text, &[], FinishReason::Stop) }, 1, &decide).unwrap();
        let end = "LLMAPIError: the reply is nested more than 100 levels deep";
        let expected = if levels == 100 { answer } else { end };
        assert!(format_step(&reload(&run)).starts_with(expected), "{}", format_step(&run));

        let mut run = Run::start(returns.clone(), Vec::new(), "Hi", 0).unwrap();
        run.model_replied(reply(&text, &[], FinishReason::Stop), 1, &decide).unwrap();
        assert!(format_step(&reload(&run)).starts_with(answer), "{}", format_step(&run));
    }
}
