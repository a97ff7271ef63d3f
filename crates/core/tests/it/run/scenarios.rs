//! Scenarios: sequences of inputs, the steps in between, and the conversation that results.

use super::Event::{Approves, Breaks, CallFails, Calls, Cancel, Fails, Refuses, Returns, Says, Starts, Stops};
use super::*;

#[test]
fn an_agent_without_tools_answers() {
    let run = check(&[(Says("Hello!"), "answer Hello!")], &["user: Hi", "model: Hello!"]);
    assert_eq!((run.model_calls(), run.usage().output_tokens, run.elapsed_ms()), (1, 3, 1));
    assert!(matches!(run.outcome(), Some(RunOutcome::Answer { finish: FinishReason::Stop, .. })));
}

#[test]
fn a_tool_is_called_and_its_result_is_used() {
    let run = check(
        &[
            (Calls(&[("1", "sayHello", r#"{"personName": "Ada"}"#)]), "tools 1"),
            (Starts("1"), "tools 1*"),
            (Returns("1", json!("Hello, Ada!")), "model"),
            (Says("I greeted Ada."), "answer I greeted Ada."),
        ],
        &[
            "user: Hi",
            r#"model:  1=sayHello({"personName": "Ada"})"#,
            "1=sayHello: Hello, Ada!",
            "model: I greeted Ada.",
        ],
    );
    let response = run.response();
    assert_eq!(
        serde_json::to_string(&response).unwrap(),
        r#"{"content":"I greeted Ada.","tools_used":[{"tool_name":"sayHello","args":{"personName":"Ada"},"result":{"success":"Hello, Ada!"}}]}"#
    );
    assert_eq!((response.model_calls, response.usage.input_tokens), (2, 14));
    assert_eq!(response.tools_used[0].duration_ms, Some(5));
}

#[test]
fn results_are_sorted_by_call_order() {
    let calls = Calls(&[("a", "sayHello", "{}"), ("b", "mail/send", ""), ("c", "sayHello", "{}")]);
    check(
        &[
            (calls, "tools a b c"),
            (Starts("c"), "tools a b c*"),
            (Returns("c", json!(3)), "tools a b"),
            (Returns("a", json!({"x": 1.5})), "tools b"),
            (CallFails("b", "no such address"), "model"),
            (Says("Done."), "answer Done."),
        ],
        &[
            "user: Hi",
            "model:  a=sayHello({}) b=mail/send() c=sayHello({})",
            r#"a=sayHello: {"x":1.5}"#,
            "b=mail/send: error: no such address",
            "c=sayHello: 3",
            "model: Done.",
        ],
    );
}

#[test]
fn invalid_calls_are_reported_to_the_model_which_retries() {
    let run = check(
        &[
            (Calls(&[("1", "sayHelo", "{}"), ("2", "sayHello", r#"{"personName": "#), ("3", "fly", "{}")]), "model"),
            (Calls(&[("4", "sayHello", r#"{"personName":"Ada"}"#)]), "tools 4"),
            (CallFails("4", "`personName`: expected an Int, found \"Ada\""), "model"),
            (Says("I cannot."), "answer I cannot."),
        ],
        &[
            "user: Hi",
            r#"model:  1=sayHelo({}) 2=sayHello({"personName": ) 3=fly({})"#,
            "1=sayHelo: error: there is no tool `sayHelo`; did you mean `sayHello`?",
            "2=sayHello: error: the arguments of `sayHello` are not valid JSON: EOF while parsing a value at line 1 column 15",
            "3=fly: error: there is no tool `fly`; available tools: `sayHello`, `mail/send`, `askMe`, `denied`, `editor`",
            r#"model:  4=sayHello({"personName":"Ada"})"#,
            "4=sayHello: error: `personName`: expected an Int, found \"Ada\"",
            "model: I cannot.",
        ],
    );
    let tools = serde_json::to_value(run.response()).unwrap()["tools_used"].take();
    assert_eq!(tools[1]["args"], json!("{\"personName\": "));
    assert_eq!(tools[3]["result"], json!({"error": "`personName`: expected an Int, found \"Ada\""}));
}

#[test]
fn an_agent_without_tools_gets_an_error_for_a_call() {
    let bare = RunSpec { tools: Vec::new(), ..spec() };
    let run = play(bare, Vec::new(), &[(Calls(&[("1", "fly", "{}")]), "model")]);
    assert_eq!(transcript(run.conversation())[2], "1=fly: error: there is no tool `fly`; this agent has no tools");
}

#[test]
fn approval_is_requested_while_other_calls_run() {
    let calls = Calls(&[("a", "askMe", "{}"), ("b", "sayHello", "{}"), ("c", "askMe", "{}"), ("d", "denied", "{}")]);
    let run = check(
        &[
            (calls, "tools b"),
            (Starts("b"), "ask a c"),
            (Refuses("c", "not today"), "ask a"),
            (Approves("a"), "tools a b*"),
            (Returns("b", json!("b")), "tools a"),
            (Returns("a", json!("a")), "model"),
            (Calls(&[("e", "askMe", "{}")]), "ask e"),
            (Refuses("e", " "), "model"),
        ],
        &[
            "user: Hi",
            "model:  a=askMe({}) b=sayHello({}) c=askMe({}) d=denied({})",
            "a=askMe: a",
            "b=sayHello: b",
            "c=askMe: not permitted: not today",
            "d=denied: not permitted: `deny denied` in patter.toml",
            "model:  e=askMe({})",
            "e=askMe: not permitted: the call was not approved",
        ],
    );
    let used = run.response().tools_used;
    assert_eq!(used.len(), 5);
    assert_eq!(used[2].duration_ms, None);
    assert_eq!(serde_json::to_value(&used[2].result).unwrap(), json!({"error": "not permitted: not today"}));
}

#[test]
fn approval_requests_have_a_reason_and_mark_the_call_as_approved() {
    let mut run = play(spec(), Vec::new(), &[(Calls(&[("a", "askMe", r#"{"n": 1}"#)]), "ask a")]);
    let Step::AskApproval { calls } = run.step() else { panic!("{:?}", run.step()) };
    assert_eq!((calls[0].because, &calls[0].call.arguments), ("`ask askMe` in patter.toml", &json!({"n": 1})));
    run.approve("a").unwrap();
    let Step::CallTools { calls } = run.step() else { panic!("{:?}", run.step()) };
    assert!(calls[0].approved && !calls[0].started);
}

#[test]
fn after_a_crash_started_calls_are_in_doubt_unless_idempotent() {
    let calls = Calls(&[("a", "sayHello", ""), ("b", "mail/send", ""), ("c", "mail/send", ""), ("d", "editor", "")]);
    let events = [(calls, "tools a b c d"), (Starts("a"), "tools a* b c d"), (Starts("b"), "tools a* b* c d")];
    let run = reload(&play(spec(), Vec::new(), &events));
    let Step::CallTools { calls } = run.step() else { panic!("{:?}", run.step()) };
    let in_doubt: Vec<_> = calls.iter().filter(|call| call.is_in_doubt()).map(|call| call.id.as_str()).collect();
    assert_eq!(in_doubt, ["b"]);
}

#[test]
fn a_conversation_continues_over_several_runs() {
    let first = check(&[(Says("Hello!"), "answer Hello!")], &["user: Hi", "model: Hello!"]);
    let events = [(Calls(&[("1", "sayHello", "{}")]), "tools 1"), (Cancel, "cancelled")];
    let second = play(spec(), first.conversation().clone(), &events);
    assert_eq!(second.new_messages().len(), 3);
    let events = [(Calls(&[("1", "sayHello", "{}")]), "tools 1-2"), (Returns("1-2", json!("x")), "model")];
    let third = play(spec(), second.conversation().clone(), &events);
    assert_eq!(
        transcript(third.conversation()),
        [
            "user: Hi",
            "model: Hello!",
            "user: Hi",
            "model:  1=sayHello({})",
            "1=sayHello: cancelled",
            "user: Hi",
            "model:  1-2=sayHello({})",
            "1-2=sayHello: x"
        ]
    );
    assert_eq!(third.response().tools_used.len(), 1);
}

#[test]
fn call_ids_are_made_unique() {
    let calls = Calls(&[("", "denied", ""), ("a", "denied", ""), ("a", "denied", ""), (" ", "denied", "")]);
    check(
        &[(calls, "model"), (Calls(&[("a", "denied", ""), ("a-2", "denied", "")]), "model")],
        &[
            "user: Hi",
            "model:  call=denied() a=denied() a-2=denied() call-3=denied()",
            "call=denied: not permitted: `deny denied` in patter.toml",
            "a=denied: not permitted: `deny denied` in patter.toml",
            "a-2=denied: not permitted: `deny denied` in patter.toml",
            "call-3=denied: not permitted: `deny denied` in patter.toml",
            "model:  a-3=denied() a-2-4=denied()",
            "a-3=denied: not permitted: `deny denied` in patter.toml",
            "a-2-4=denied: not permitted: `deny denied` in patter.toml",
        ],
    );
}

#[test]
fn cancelling_keeps_finished_results() {
    let calls = Calls(&[("a", "sayHello", "{}"), ("b", "mail/send", "{}"), ("c", "askMe", "{}")]);
    let run = check(
        &[(calls, "tools a b"), (Starts("a"), "tools a* b"), (Returns("b", json!(2)), "ask c"), (Cancel, "cancelled")],
        &[
            "user: Hi",
            "model:  a=sayHello({}) b=mail/send({}) c=askMe({})",
            "a=sayHello: cancelled",
            "b=mail/send: 2",
            "c=askMe: cancelled",
        ],
    );
    assert_eq!(serde_json::to_value(&run.response().tools_used[2].result).unwrap(), json!({"error": "cancelled"}));
}

#[test]
fn a_failed_model_call_ends_the_run() {
    let events = [(Fails("the provider is overloaded"), "LLMAPIError: the provider is overloaded")];
    let run = check(&events, &["user: Hi"]);
    assert_eq!((run.model_calls(), run.response().content.as_str()), (1, ""));
}

#[test]
fn an_empty_reply_ends_the_run() {
    for (finish, expected) in [
        (FinishReason::Stop, "LLMAPIError: the model returned an empty answer"),
        (FinishReason::Length, "LLMAPIError: the model reached `maxTokens` before producing any text"),
        (FinishReason::Filtered, "LLMAPIError: the provider withheld the answer"),
        (FinishReason::Refused, "LLMAPIError: the model refused to answer"),
        (FinishReason::Other("pause".into()), "LLMAPIError: the model returned no answer: it stopped with `pause`"),
    ] {
        check(&[(Stops(finish, " \n"), expected)], &["user: Hi"]);
    }
}

#[test]
fn truncated_replies_are_marked() {
    let run = check(&[(Stops(FinishReason::Length, "Hel"), "answer Hel")], &["user: Hi", "model: Hel"]);
    assert!(matches!(run.outcome(), Some(RunOutcome::Answer { finish: FinishReason::Length, .. })));
    let mut run = Run::start(spec(), Vec::new(), "Hi", 0).unwrap();
    run.model_replied(reply("", &[("1", "sayHello", "{\"a")], FinishReason::Length), 1, &decide).unwrap();
    let result = transcript(run.conversation()).pop().unwrap();
    assert!(result.ends_with("; the reply was cut off at its length limit"), "{result}");
}

#[test]
fn the_response_says_why_the_model_stopped() {
    let run = check(&[(Stops(FinishReason::Length, "Hel"), "answer Hel")], &["user: Hi", "model: Hel"]);
    assert_eq!(run.response().finish, Some(FinishReason::Length));
    let run = check(&[(Cancel, "cancelled")], &["user: Hi"]);
    assert_eq!(run.response().finish, None);
}

#[test]
fn the_last_call_of_a_reply_that_was_cut_off_is_never_made() {
    let reasons = [
        (FinishReason::Length, "the reply was cut off at its length limit"),
        (FinishReason::Filtered, "the reply was cut off by the content filter of the provider"),
        (FinishReason::Refused, "the model refused to answer"),
    ];
    for (finish, why) in reasons {
        // Arguments that are missing, that the provider completed, and that are complete.
        for arguments in ["", " ", "{}", "{\"personName\": \"Ad\"}"] {
            let mut run = Run::start(spec(), Vec::new(), "Hi", 0).unwrap();
            let calls = [("1", "sayHello", "{\"personName\": \"Bob\"}"), ("2", "mail/send", arguments)];
            run.model_replied(reply("", &calls, finish.clone()), 1, &decide).unwrap();
            assert_eq!(format_step(&run), "tools 1", "{finish:?} {arguments}");
            apply(&mut run, &Returns("1", json!("Hello, Bob!"))).unwrap();
            let result = transcript(run.conversation()).pop().unwrap();
            let expected = format!("`mail/send` was not called, because its arguments may be incomplete: {why}");
            assert_eq!(result, format!("2=mail/send: error: {expected}"));
            assert_eq!(format_step(&run), "model");
        }
    }
    // The names that some vendors give to ordinary ends change nothing.
    let mut run = Run::start(spec(), Vec::new(), "Hi", 0).unwrap();
    let finish = FinishReason::Other("tool_use".into());
    run.model_replied(reply("", &[("1", "sayHello", "{}")], finish), 1, &decide).unwrap();
    assert_eq!(format_step(&run), "tools 1");
}

#[test]
fn a_structured_answer_that_was_cut_off_is_an_error() {
    let reasons = [
        (
            FinishReason::Length,
            "LLMAPIError: the reply was cut off at its length limit, so there is no complete answer; raise `maxTokens`",
        ),
        (
            FinishReason::Filtered,
            "LLMAPIError: the reply was cut off by the content filter of the provider, so there is no complete answer",
        ),
        (FinishReason::Refused, "LLMAPIError: the model refused to answer: 12"),
    ];
    for (finish, expected) in reasons {
        let spec = RunSpec { returns: Some(json!({"type": "integer"})), ..spec() };
        let run = play(spec, Vec::new(), &[(Stops(finish, "12"), expected)]);
        assert_eq!(transcript(run.conversation()), ["user: Hi", "model: 12"]);
        assert_eq!(run.model_calls(), 1, "another attempt would be cut off too");
    }
    let spec = RunSpec { returns: Some(json!({"type": "integer"})), ..spec() };
    play(spec, Vec::new(), &[(Stops(FinishReason::Other("eos".into()), "12"), "answer 12")]);
}

#[test]
fn the_text_of_an_interrupted_reply_is_kept() {
    for (end, expected) in [(Fails("lost"), "LLMAPIError: lost"), (Cancel, "cancelled")] {
        check(&[(Breaks("Once upon"), "model"), (end, expected)], &["user: Hi", "model: Once upon"]);
    }
    check(&[(Breaks(" \n"), "model"), (Cancel, "cancelled")], &["user: Hi"]);
}

#[test]
fn a_malformed_reply_is_retried() {
    let run = check(
        &[(Stops(FinishReason::Malformed, "call:default_api"), "model"), (Says("Hello!"), "answer Hello!")],
        &["user: Hi", "model: Hello!"],
    );
    assert_eq!((run.model_calls(), run.usage().input_tokens), (2, 14));
}

#[test]
fn opaque_provider_data_is_preserved() {
    let mut run = Run::start(spec(), Vec::new(), "Hi", 0).unwrap();
    let opaque = conversation::Opaque { wire: "gemini".into(), origin: "Google".into(), data: json!({"sig": "x"}) };
    let message = Reply { opaque: Some(opaque.clone()), ..reply("", &[("1", "fly", "{}")], FinishReason::Stop) };
    run.model_replied(message, 1, &decide).unwrap();
    assert!(
        matches!(reload(&run).conversation().get(1), Some(Message::Assistant { opaque: Some(found), .. }) if *found == opaque)
    );
}
