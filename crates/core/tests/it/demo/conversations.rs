//! Conversations with the demo model, and their invariants.

use super::*;
use patter_core::demo::MAX_CALLS;
use proptest::prelude::*;

#[test]
fn conversations_have_several_turns() {
    let greeted = |name: &str| value(json!(format!("Hello, {name}!")));
    let hello = [SAY_HELLO];
    // The name of the user is remembered.
    let turns = talk(
        &["Hi, my name is Bob", "What's the weather like?", "Greet me again", "What is my name?"],
        &hello,
        &greeted("Bob"),
    );
    let (calls, answers): (Vec<_>, Vec<_>) = turns.into_iter().unzip();
    let bob = r#"sayHello{"personName":"Bob"}"#;
    assert_eq!(calls, [bob, "", bob, ""]);
    assert_eq!(
        (answers[0].as_str(), answers[2].as_str(), answers[3].as_str()),
        ("Hello, Bob!", "Hello, Bob!", "Your name is Bob.")
    );
    assert_eq!(
        answers[1],
        "None of my tools matches that. I am Patter's demo model, not a language model: I match words in your message to \
         tools. Available tools:\n- `sayHello`: Returns a friendly greeting for the given name"
    );
    assert_eq!(talk(&["Who am I?"], &hello, &greeted(""))[0].1, "You have not told me your name.");
    // Other people are not mistaken for the user.
    let turns = talk(&["I'm Bob", "Say hello to Ann", "Say hello"], &hello, &greeted("x"));
    let calls: Vec<_> = turns.into_iter().map(|(calls, _)| calls).collect();
    assert_eq!(calls, [bob, r#"sayHello{"personName":"Ann"}"#, bob]);

    // Missing arguments are asked for one by one, and never invented.
    let shop = [FIND_ORDER, REFUND, SAY_HELLO];
    let turns = talk(
        &["I want my order refunded, it is late", "It's AB123456", "all of it: 20", "Hello"],
        &shop,
        &value(json!(true)),
    );
    let expected = [
        ("", "I can use `refund` for that, but I need its `orderId`. What is it?"),
        ("", "I can use `refund` for that, but I need its `amount`. What is it?"),
        (r#"refund{"orderId":"AB123456","amount":20,"reason":"late"}"#, "`refund` returned true."),
        ("sayHello{}", "`sayHello` returned true."),
    ];
    assert_eq!(turns, expected.map(|(calls, answer)| (calls.to_owned(), answer.to_owned())));
    // A question is dropped when the user changes the subject.
    let turns = talk(&["What's the weather?", "Say hello to Ann"], &[WEATHER, SAY_HELLO], &greeted("Ann"));
    assert_eq!(turns[1].0, r#"sayHello{"personName":"Ann"}"#);
    let turns = talk(&["What's the weather?", "new york, please"], &[WEATHER, SAY_HELLO], &greeted("Ann"));
    assert_eq!(turns[1].0, r#"weather/current{"city":"new york, please"}"#);
}

#[test]
fn outcomes_of_calls_are_described() {
    let error = |message: &str| ToolOutcome::Error { message: message.to_owned() };
    for (outcome, expected) in [
        (value(json!("Hello, Ada!")), "Hello, Ada!"),
        (value(json!(3)), "`sayHello` returned 3."),
        (value(json!(null)), "`sayHello` returned nothing."),
        (value(json!(" ")), "`sayHello` returned an empty text."),
        (value(json!([])), "`sayHello` returned an empty list."),
        (
            value(json!({"id": "AB1", "total": 9.5, "lines": [{"product": "tea"}], "tags": ["a", "b"], "none": {}})),
            "`sayHello` returned:\n- id: AB1\n- total: 9.5\n- lines: \n  - 1: \n    - product: tea\n- tags: \n  - a\n  - b\n- none: {}",
        ),
        (error("`sayHello` failed: nobody is there"), "That did not work: `sayHello` failed: nobody is there"),
        (ToolOutcome::Denied { message: "a rule forbids it".into() }, "I am not allowed to do that: a rule forbids it"),
        (ToolOutcome::Cancelled, "The call to `sayHello` was cancelled."),
    ] {
        assert_eq!(talk(&["Hello"], &[SAY_HELLO], &outcome)[0].1, expected);
    }
    let both = talk(&["hello to Ann and goodbye to Bob"], &[SAY_HELLO, SAY_GOODBYE], &value(json!("done")));
    assert_eq!(both[0].1, "done\n\ndone");
}

#[test]
fn the_model_greets_without_tools() {
    let none = "I am Patter's demo model, not a language model: I match words in your message to tools, and this agent has none.";
    let ignored = value(json!(null));
    assert_eq!(talk(&["Hello, I'm Ann"], &[], &ignored)[0].1, format!("Hello, Ann! {none}"));
    assert_eq!(talk(&["What is love?"], &[], &ignored)[0].1, none);
    let listed = talk(&["Hi there"], &[WORD_COUNT], &ignored).remove(0).1;
    assert_eq!(
        listed,
        "Hello! I am Patter's demo model, not a language model: I match words in your message to tools. Available \
         tools:\n- `wordCount`: Counts the words of a text"
    );
}

#[test]
fn usage_is_counted_and_structured_answers_are_json() {
    let tools = tools(&[SAY_HELLO]);
    let mut messages = vec![Message::user("Hello there")];
    let first = ask(&messages, &tools, None);
    // "Be kind." and "Hello there" and eight words of a description.
    assert_eq!((first.usage.input_tokens, first.usage.output_tokens), (2 + 2 + 8, 1));
    assert_eq!(first.calls[0].id, "demo_1");
    messages.push(first.into_message());
    messages.push(Message::Tool { call_id: "demo_1".into(), tool: "sayHello".into(), outcome: value(json!({"n": 1})) });
    assert_eq!(ask(&messages, &tools, Some(&json!({"type": "object"}))).text, r#"{"n":1}"#);
    // Call ids are unique.
    messages.push(Message::user("Hello again"));
    assert_eq!(ask(&messages, &tools, None).calls[0].id, "demo_2");
}

/// Generates plausible and implausible messages.
fn random_message() -> impl Strategy<Value = String> {
    let words = [
        "hello",
        "Ann",
        "my name is",
        "I'm",
        "and",
        "to",
        "20",
        "-3.5",
        "\"a b\"",
        "'",
        "“",
        "order",
        "AB123456",
        ":",
        "=",
        "not urgent",
        "weather in",
        "https://x.y/",
        "a@b.cc",
        "2026-01-01",
        "{\"a\":1}",
        "[1",
        "2 + 3",
        "?",
        ".",
        "search",
        "for",
        "李明",
        "İ",
        "tags",
    ];
    let sentence = prop::collection::vec(prop::sample::select(words.to_vec()), 0..12).prop_map(|words| words.join(" "));
    prop_oneof![sentence, "\\PC{0,60}", any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_conversations_are_valid(inputs in prop::collection::vec(random_message(), 1..5), fails in any::<bool>()) {
        let all = tools(&[SAY_HELLO, SAY_GOODBYE, WEATHER, FIND_ORDER, REFUND, CALCULATOR, FETCH, WORD_COUNT, SEARCH, MAIL, TAG, ADDRESS]);
        let mut messages = Vec::new();
        for input in inputs {
            messages.push(Message::user(input));
            let first = ask(&messages, &all, None);
            prop_assert_eq!(&first, &ask(&messages, &all, None));
            prop_assert!(first.calls.len() <= MAX_CALLS);
            prop_assert_eq!(first.text.trim().is_empty(), !first.calls.is_empty());
            let mut distinct: Vec<_> = first.calls.iter().map(|call| (&call.tool, &call.arguments)).collect();
            distinct.sort();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), first.calls.len());
            let calls = first.calls.clone();
            messages.push(first.into_message());
            for call in calls {
                let arguments = call.parse_arguments().unwrap();
                let tool = all.iter().find(|tool| tool.name.full_name() == call.tool).unwrap();
                prop_assert!(jsonschema::is_valid(&tool.schema, &arguments), "{}{}", call.tool, arguments);
                let outcome = if fails { ToolOutcome::Error { message: "no".into() } } else { value(json!("")) };
                messages.push(Message::Tool { call_id: call.id, tool: call.tool, outcome });
            }
            if !matches!(messages.last(), Some(Message::Assistant { .. })) {
                let second = ask(&messages, &all, None);
                prop_assert!(second.calls.is_empty() && !second.text.trim().is_empty());
                messages.push(second.into_message());
            }
        }
    }

    #[test]
    fn unusual_schemas_do_not_panic(input in random_message(), name in "[a-zA-Z]{1,8}", word in random_message()) {
        for schema in [
            json!({"properties": {(name.clone()): {"$ref": "#"}}, "required": [name.clone()]}),
            json!({"properties": {(name.clone()): {"$ref": "#/properties/x"}, "x": {"anyOf": [{"type": "null"}, {"type": "array"}]}}}),
            json!({"properties": {(name.clone()): {"type": "string", "pattern": word, "enum": [word, 1, null]}}, "required": [name.clone()]}),
            json!([word]),
            json!(true),
        ] {
            let tool = OfferedTool { name: WireName::from_full_name(&name).unwrap(), description: word.clone(), schema: schema.into(), strict_schema: None };
            let first = ask(&[Message::user(format!("{name} {input}"))], &[tool], None);
            prop_assert!(first.calls.len() <= MAX_CALLS);
        }
    }
}
