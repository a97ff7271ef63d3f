//! What cannot be told to a run, and what is no run.

use super::Event::{Approved, Breaks, Calls, Cancel, Fails, Gives, Refused, Says, Starts, Tick};
use super::*;
use patter_core::run::StartError;

#[test]
fn a_run_needs_something_to_answer() {
    for input in ["", " \n\t"] {
        let error = Run::start(spec(), Vec::new(), input, 0).unwrap_err();
        assert_eq!((error.name(), error.to_string().as_str()), ("ValidationError", "the input is empty"));
    }
    let returns = RunSpec { returns: Some(json!({"type": "strng"})), ..spec() };
    let error = Run::start(returns, Vec::new(), "Hi", 0).unwrap_err();
    assert_eq!(error.name(), "ConfigurationError");
    assert!(error.to_string().starts_with("the schema of the answer is wrong: this is not a JSON Schema: "), "{error}");
}

#[test]
fn what_is_wrong_is_refused_and_changes_nothing() {
    let wrong = |run: &Run, event: Event, expected: &str| {
        let mut changed = run.clone();
        assert_eq!(tell(&mut changed, &event).unwrap_err().to_string(), expected, "{event:?}");
        assert_eq!(changed, *run, "{event:?}");
    };
    let run = play(spec(), Vec::new(), &[]);
    wrong(&run, Gives("a", json!(1)), "there is no call `a`");

    let calls = Calls(&[("a", "sayHello", "{}"), ("b", "askMe", "{}"), ("c", "denied", "{}"), ("d", "mail/send", "")]);
    let mut run = play(spec(), Vec::new(), &[(calls, "tools a d"), (Gives("d", json!(1)), "tools a")]);
    let no_reply = "no reply of the model is awaited";
    for (event, expected) in [
        (Says("Hello!"), no_reply),
        (Calls(&[("z", "sayHello", "{}")]), no_reply),
        (Fails("down"), no_reply),
        (Starts("z"), "there is no call `z`"),
        (Gives("z", json!(1)), "there is no call `z`"),
        (Approved("z"), "there is no call `z`"),
        (Refused("z", "no"), "there is no call `z`"),
        (Starts("b"), "the call `b` is not approved"),
        (Gives("b", json!(1)), "the call `b` is not approved"),
        (Approved("a"), "the call `a` waits for no approval"),
        (Refused("a", "no"), "the call `a` waits for no approval"),
        (Starts("d"), "the call `d` has its result already"),
        (Breaks("d", "late"), "the call `d` has its result already"),
        (Approved("c"), "the call `c` has its result already"),
        (Refused("d", "no"), "the call `d` has its result already"),
    ] {
        wrong(&run, event, expected);
    }
    tell(&mut run, &Gives("a", json!(1))).unwrap();
    tell(&mut run, &Refused("b", "no")).unwrap();
    wrong(&run, Gives("a", json!(1)), "the call `a` has its result already");
    tell(&mut run, &Says("Bye")).unwrap();
    for event in [Says("x"), Fails("x"), Starts("a"), Gives("a", json!(1)), Approved("b"), Cancel, Tick(9)] {
        wrong(&run, event, "the run has ended");
    }
}

#[test]
fn a_conversation_that_was_left_open_is_closed() {
    let call = |id: &str| ToolCall { id: id.into(), tool: "sayHello".into(), arguments: "{}".into() };
    let result = |id: &str| Message::Tool {
        call_id: id.into(),
        tool: "sayHello".into(),
        outcome: conversation::ToolOutcome::Value { value: json!("x") },
    };
    let asks = |ids: &[&str]| Message::assistant("", ids.iter().map(|id| call(id)).collect());
    let history = vec![Message::user("A"), asks(&["1", "2"]), result("1"), Message::user("B"), asks(&["3"])];
    let run = Run::start(spec(), history, "C", 0).unwrap();
    assert_eq!(
        shown(run.conversation()),
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
        (vec![asks(&["1", "2"]), result("2"), result("1")], 2, "2"),
        (vec![asks(&["1"]), result("1"), result("1")], 3, "1"),
        (vec![asks(&["1"]), Message::user("A"), result("1")], 3, "1"),
    ] {
        let error = Run::start(spec(), history, "C", 0).unwrap_err();
        assert_eq!(error, StartError::Conversation { number, id: id.into() });
        let expected =
            format!("message {number} of the conversation is the result of a call `{id}` that is not open there");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_saved_run_says_its_version() {
    let run = play(spec(), Vec::new(), &[(Calls(&[("a", "askMe", "{}"), ("b", "denied", "{}")]), "ask a")]);
    let json = serde_json::to_value(&run).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(serde_json::from_value::<Run>(json.clone()).unwrap(), run);
    for (version, expected) in [
        (json!(2), "the run is saved in version 2, and only version 1 can be read"),
        (json!("one"), "the run is saved in version \"one\", and only version 1 can be read"),
    ] {
        // What else another version writes makes no difference.
        let other = json!({"spec": 7, "version": version});
        assert_eq!(Run::load(&other.to_string()).unwrap_err().to_string(), expected);
    }
    let mut other = json;
    other["version"] = json!(2);
    let error = serde_json::from_value::<Run>(other.clone()).unwrap_err();
    assert_eq!(error.to_string(), "the run is saved in version 2, and only version 1 can be read");
    other.as_object_mut().unwrap().remove("version");
    for text in [other.to_string().as_str(), "", "[]", "{\"version\": 1}"] {
        let error = Run::load(text).unwrap_err().to_string();
        assert!(error.starts_with("this is not a saved run: "), "{error}");
    }
}

#[test]
fn what_is_too_deep_to_be_saved_is_not_kept() {
    let nested = |levels: usize| (1..levels).fold(json!([]), |inside, _| json!([inside]));
    let returns = RunSpec { returns: Some(json!({"type": "array"})), ..spec() };
    for (levels, arguments, result, answer) in [
        (100, "a=sayHello: [[", "b=sayHello: [[", "answer [["),
        (
            101,
            "a=sayHello: error: the arguments of `sayHello` nest deeper than 100 levels",
            "b=sayHello: error: the result nests deeper than 100 levels",
            "model",
        ),
    ] {
        let text = nested(levels).to_string();
        let mut run = Run::start(returns.clone(), Vec::new(), "Hi", 0).unwrap();
        run.reply(reply("", &[("a", "sayHello", &text), ("b", "sayHello", "")], Finish::Stop), 1, &decide).unwrap();
        run = loaded(&run);
        let value = || conversation::ToolOutcome::Value { value: nested(levels) };
        run.finished("b", value(), 1, 1).unwrap();
        if levels == 100 {
            run.finished("a", value(), 1, 1).unwrap();
        }
        run = loaded(&run);
        let transcript = shown(run.conversation());
        assert!(transcript[2].starts_with(arguments) && transcript[3].starts_with(result), "{transcript:?}");
        let opaque = Some(conversation::Opaque { wire: "gemini".into(), data: nested(levels) });
        run.reply(Reply { opaque, ..reply(&text, &[], Finish::Stop) }, 1, &decide).unwrap();
        let end = "LLMAPIError: the reply of the model nests deeper than 100 levels";
        let expected = if levels == 100 { answer } else { end };
        assert!(shown_step(&loaded(&run)).starts_with(expected), "{}", shown_step(&run));

        let mut run = Run::start(returns.clone(), Vec::new(), "Hi", 0).unwrap();
        run.reply(reply(&text, &[], Finish::Stop), 1, &decide).unwrap();
        assert!(shown_step(&loaded(&run)).starts_with(answer), "{}", shown_step(&run));
    }
}
