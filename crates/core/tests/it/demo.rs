//! The demo model: which tools it calls with what, and what it says.

use patter_core::conversation::{Message, Outcome, ToolCall};
use patter_core::demo::{MAX_CALLS, reply};
use patter_core::name::WireName;
use patter_core::request::{OfferedTool, Reply, Request, Settings};
use patter_core::schema::input_schema;
use patter_core::signature::{Records, Signature};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const SAY_HELLO: (&str, &str, &str) =
    ("sayHello", "Returns a friendly greeting for the given name", "(personName::Text {default:\"world\"})==>(::Text)");
const SAY_GOODBYE: (&str, &str, &str) = ("sayGoodbye", "Takes leave of someone", "(personName::Text)==>(::Text)");
const WEATHER: (&str, &str, &str) = (
    "weather/current",
    "Current weather of a city",
    "(city::Text)==>(units::Text {enum:[\"celsius\", \"fahrenheit\"], optional:true})==>(::Any)",
);
const FIND_ORDER: (&str, &str, &str) =
    ("findOrder", "Finds an order by its number", "(orderId::Text {pattern:\"^[A-Z]{2}[0-9]{6}$\"})==>(::Any)");
const REFUND: (&str, &str, &str) = (
    "refund",
    "Pays an order back, in part or in full",
    "(orderId::Text {pattern:\"^[A-Z]{2}[0-9]{6}$\"})==>(amount::Double {range:0.01...})\
     ==>(reason::Text {enum:[\"damaged\", \"late\", \"unwanted\", \"other\"], default:\"other\"})==>(::Bool)",
);
const CALCULATOR: (&str, &str, &str) = (
    "calculator",
    "Computes the value of an expression, exactly where that is possible.",
    "(expression::Text)==>(::Any)",
);
const FETCH: (&str, &str, &str) =
    ("fetch", "Reads a page of the web and returns its text", "(url::Text {format:\"uri\"})==>(::Text)");
const WORD_COUNT: (&str, &str, &str) = ("wordCount", "Counts the words of a text", "(text::Text)==>(::Int)");
const SEARCH: (&str, &str, &str) = (
    "wikipedia/search",
    "Searches Wikipedia for pages",
    "(query::Text)==>(limit::Int {default:5, range:1..50})==>(::Any)",
);
const MAIL: (&str, &str, &str) = (
    "sendEmail",
    "Sends an e-mail",
    "(to::Text {format:\"email\"})==>(subject::Text)==>(urgent::Bool {optional:true})==>(::Bool)",
);
const BOOK: (&str, &str, &str) = (
    "bookRoom",
    "Books a room of a hotel",
    "(date::Text {format:\"date\"})==>(nights::Int)==>(guests::Int {default:1})==>(::Text)",
);
const TRAIN: (&str, &str, &str) = ("findTrain", "Finds trains", "(origin::Text)==>(destination::Text)==>(::Any)");
const TOTAL: (&str, &str, &str) =
    ("total", "Adds up numbers", "(numbers::Array {elementType:\"Double\"})==>(::Double)");
const TAG: (&str, &str, &str) = ("addTags", "Puts tags on a page", "(tags::Array {elementType:\"Text\"})==>(::Bool)");
const ADDRESS: (&str, &str, &str) = (
    "saveAddress",
    "Saves an address",
    "(address::Object {fields:[{name:\"city\", type:\"Text\"}, {name:\"zip\", type:\"Int\"}]})==>(::Bool)",
);
const ASK_REFUNDS: (&str, &str, &str) = ("refunds", "Decides refunds and gives reasons", "(request::Text)==>(::Text)");

const LIST: Written = ("files/list_directory", "Lists what is in a directory", "(path::Text)==>(::Any)");
const READ: Written = ("files/read_text_file", "Reads a file as text", "(path::Text)==>(::Any)");
const SORT: Written = ("sortLines", "Sorts the lines of a text by the alphabet", "(lines::Text)==>(::Text)");
const SUMMARIZER: Written = ("summarizer", "Summarizes a text in two sentences", "(input::Text)==>(::Text)");
const TRANSLATOR: Written = ("translator", "Translates a text into plain English", "(input::Text)==>(::Text)");

type Written = (&'static str, &'static str, &'static str);

fn tools(written: &[Written]) -> Vec<OfferedTool> {
    let tool = |(name, description, signature): &Written| OfferedTool {
        name: WireName::of(name).unwrap(),
        description: (*description).to_owned(),
        schema: input_schema(&Signature::parse(signature).unwrap(), &Records::default()).into(),
        is_strict: false,
    };
    written.iter().map(tool).collect()
}

fn ask(messages: &[Message], tools: &[OfferedTool], returns: Option<&Json>) -> Reply {
    let (model, settings) = ("demo".parse().unwrap(), Settings::default());
    reply(&Request { model: &model, instruction: "Be kind.", messages, tools, settings: &settings, returns })
}

/// Talks to the model; each tool answers with `result`. Returns the calls and the answer of each turn.
fn talk(said: &[&str], written: &[Written], result: &Outcome) -> Vec<(String, String)> {
    let tools = tools(written);
    let mut messages = Vec::new();
    let mut turns = Vec::new();
    for said in said {
        messages.push(Message::user(*said));
        let first = ask(&messages, &tools, None);
        let calls = shown(&first.calls);
        if first.calls.is_empty() {
            turns.push((calls, first.text.clone()));
            messages.push(first.message());
            continue;
        }
        assert_eq!(first.text, "");
        messages.push(first.clone().message());
        for ToolCall { id, tool, .. } in first.calls {
            messages.push(Message::Tool { call_id: id, tool, outcome: result.clone() });
        }
        let second = ask(&messages, &tools, None);
        assert_eq!(second.calls, [], "{said}");
        turns.push((calls, second.text.clone()));
        messages.push(second.message());
    }
    turns
}

fn shown(calls: &[ToolCall]) -> String {
    calls.iter().map(|call| format!("{}{}", call.tool, call.arguments)).collect::<Vec<_>>().join(" ")
}

fn value(value: Json) -> Outcome {
    Outcome::Value { value }
}

#[test]
fn calls_what_the_words_of_a_message_ask_for() {
    let hello = [SAY_HELLO];
    let leave = [SAY_HELLO, SAY_GOODBYE];
    let shop = [FIND_ORDER, REFUND];
    let many = [SAY_HELLO, WEATHER, CALCULATOR, FETCH, WORD_COUNT, SEARCH, MAIL, BOOK, TRAIN, TOTAL, TAG, ADDRESS];
    let table: &[(&str, &[Written], &str)] = &[
        // Greetings, and whom they are for.
        ("Hello!", &hello, "sayHello{}"),
        ("Hello! My name is Alice.", &hello, r#"sayHello{"personName":"Alice"}"#),
        ("Hi, I'm Bob", &hello, r#"sayHello{"personName":"Bob"}"#),
        ("hey, call me al", &hello, r#"sayHello{"personName":"al"}"#),
        ("My name's O'Brien", &hello, r#"sayHello{"personName":"O'Brien"}"#),
        ("I am Ludwig van Beethoven.", &hello, r#"sayHello{"personName":"Ludwig van Beethoven"}"#),
        ("Good morning", &hello, "sayHello{}"),
        ("Please greet Zoë", &hello, r#"sayHello{"personName":"Zoë"}"#),
        ("Greet 李明", &hello, r#"sayHello{"personName":"李明"}"#),
        ("I'm Bob, say hello to Ann", &hello, r#"sayHello{"personName":"Ann"}"#),
        ("say hello to ann", &hello, r#"sayHello{"personName":"ann"}"#),
        ("use sayHello with \"Dr. No\"", &hello, r#"sayHello{"personName":"Dr. No"}"#),
        // Nothing that a greeting is for.
        ("What's the weather like today?", &hello, ""),
        ("What is the weather in Paris?", &hello, ""),
        ("Can you say what the weather is?", &hello, ""),
        ("Tell me the name of the capital of France", &hello, ""),
        ("What can you do?", &hello, ""),
        ("", &hello, ""),
        // Several things.
        (
            "say hello to Ann and goodbye to Bob",
            &leave,
            r#"sayHello{"personName":"Ann"} sayGoodbye{"personName":"Bob"}"#,
        ),
        (
            "Say hello to Ann, Bob and Cy",
            &leave,
            [r#"sayHello{"personName":"Ann"}"#, r#"sayHello{"personName":"Bob"}"#, r#"sayHello{"personName":"Cy"}"#]
                .join(" ")
                .leak(),
        ),
        ("Greet Ann and Ann", &leave, r#"sayHello{"personName":"Ann"}"#),
        (
            "What is the weather in Oslo and what is 2 + 3?",
            &many,
            r#"weather/current{"city":"Oslo"} calculator{"expression":"2 + 3"}"#,
        ),
        // Patterns, numbers, allowed values.
        ("Where is order AB123456?", &shop, r#"findOrder{"orderId":"AB123456"}"#),
        (
            "Refund 20.50 for order AB123456, it was damaged",
            &shop,
            r#"refund{"orderId":"AB123456","amount":20.5,"reason":"damaged"}"#,
        ),
        ("Weather in New York in Fahrenheit?", &many, r#"weather/current{"city":"New York","units":"fahrenheit"}"#),
        // What is known by its form.
        ("What is 12 * (3 + 4)?", &many, r#"calculator{"expression":"12 * (3 + 4)"}"#),
        ("what's two plus 3 times 4", &[CALCULATOR], r#"calculator{"expression":"2 + 3 * 4"}"#),
        ("what's 2 plus 3 times 4", &many, r#"calculator{"expression":"2 + 3 * 4"}"#),
        ("Read https://example.org/a?b=c, please", &many, r#"fetch{"url":"https://example.org/a?b=c"}"#),
        ("Count the words of \"hello big world\"", &many, r#"wordCount{"text":"hello big world"}"#),
        ("Count the words: hello big world", &many, r#"wordCount{"text":"hello big world"}"#),
        ("Search Wikipedia for the Rust language", &many, r#"wikipedia/search{"query":"Rust language"}"#),
        ("Search Wikipedia for \"ants\", top 3", &many, r#"wikipedia/search{"query":"ants","limit":3}"#),
        (
            "Send an urgent email to bob@example.org, subject: Lunch",
            &many,
            r#"sendEmail{"to":"bob@example.org","subject":"Lunch","urgent":true}"#,
        ),
        (
            "E-mail bob@example.org with the subject \"Hello\", not urgent",
            &many,
            r#"sendEmail{"to":"bob@example.org","subject":"Hello","urgent":false}"#,
        ),
        (
            "Book a room on 2026-12-24 for 3 nights and 2 guests",
            &many,
            r#"bookRoom{"date":"2026-12-24","nights":3,"guests":2}"#,
        ),
        ("Find a train from Bern to New York", &many, r#"findTrain{"origin":"Bern","destination":"New York"}"#),
        ("What is the total of 1, 2.5 and 1,000?", &[TOTAL], r#"total{"numbers":[1,2.5,1000]}"#),
        ("Add tags: red, green and blue", &[TAG], r#"addTags{"tags":["red","green","blue"]}"#),
        ("Add the tags \"a\" and \"b\"", &[TAG], r#"addTags{"tags":["a","b"]}"#),
        ("Save my address: city Bern, zip 3011", &[ADDRESS], r#"saveAddress{"address":{"city":"Bern","zip":3011}}"#),
        (
            r#"Save the address {"city": "Bern", "zip": 1}"#,
            &[ADDRESS],
            r#"saveAddress{"address":{"city":"Bern","zip":1}}"#,
        ),
        // What the examples say about themselves.
        ("List the directory 'docs'", &[LIST, READ], r#"files/list_directory{"path":"docs"}"#),
        ("Read the file docs/a.md", &[LIST, READ], r#"files/read_text_file{"path":"docs/a.md"}"#),
        ("Count the words of \"to be or not to be\"", &[WORD_COUNT, SORT], r#"wordCount{"text":"to be or not to be"}"#),
        (
            "Ask the summarizer about this: gram is a notation for patterns",
            &[SUMMARIZER, TRANSLATOR],
            r#"summarizer{"input":"Ask the summarizer about this: gram is a notation for patterns"}"#,
        ),
        (
            "I want a refund for order \"AB123456\"",
            &[ASK_REFUNDS],
            r#"refunds{"request":"I want a refund for order \"AB123456\""}"#,
        ),
    ];
    let mut wrong = Vec::new();
    for (said, written, expected) in table {
        let (calls, answer) = talk(&[said], written, &value(json!("done"))).remove(0);
        if calls != *expected {
            wrong.push(format!("{said}\n  expected {expected}\n  found    {calls} {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn talks_over_several_turns() {
    let greeted = |name: &str| value(json!(format!("Hello, {name}!")));
    let hello = [SAY_HELLO];
    // The name of who speaks is remembered, whatever was talked about since.
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
        "None of my tools fits that. I am the demo model of Patter, not a language model: I match words with tools. These I \
         can use:\n- `sayHello`: Returns a friendly greeting for the given name"
    );
    assert_eq!(talk(&["Who am I?"], &hello, &greeted(""))[0].1, "You have not told me your name.");
    // Others are not mistaken for who speaks.
    let turns = talk(&["I'm Bob", "Say hello to Ann", "Say hello"], &hello, &greeted("x"));
    let calls: Vec<_> = turns.into_iter().map(|(calls, _)| calls).collect();
    assert_eq!(calls, [bob, r#"sayHello{"personName":"Ann"}"#, bob]);

    // What is missing is asked for, one after the other, and never made up.
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
    // Who changes the subject is not held to the question.
    let turns = talk(&["What's the weather?", "Say hello to Ann"], &[WEATHER, SAY_HELLO], &greeted("Ann"));
    assert_eq!(turns[1].0, r#"sayHello{"personName":"Ann"}"#);
    let turns = talk(&["What's the weather?", "new york, please"], &[WEATHER, SAY_HELLO], &greeted("Ann"));
    assert_eq!(turns[1].0, r#"weather/current{"city":"new york, please"}"#);
}

#[test]
fn says_what_came_of_calls() {
    let error = |message: &str| Outcome::Error { message: message.to_owned() };
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
        (Outcome::Denied { message: "a rule forbids it".into() }, "I may not do that: a rule forbids it"),
        (Outcome::Cancelled, "The call of `sayHello` was cancelled."),
    ] {
        assert_eq!(talk(&["Hello"], &[SAY_HELLO], &outcome)[0].1, expected);
    }
    let both = talk(&["hello to Ann and goodbye to Bob"], &[SAY_HELLO, SAY_GOODBYE], &value(json!("done")));
    assert_eq!(both[0].1, "done\n\ndone");
}

#[test]
fn greets_without_tools() {
    let none =
        "I am the demo model of Patter, not a language model: I match words with tools, and this agent has none.";
    let ignored = value(json!(null));
    assert_eq!(talk(&["Hello, I'm Ann"], &[], &ignored)[0].1, format!("Hello, Ann! {none}"));
    assert_eq!(talk(&["What is love?"], &[], &ignored)[0].1, none);
    let listed = talk(&["Hi there"], &[WORD_COUNT], &ignored).remove(0).1;
    assert_eq!(
        listed,
        "Hello! I am the demo model of Patter, not a language model: I match words with tools. These I can use:\n- \
         `wordCount`: Counts the words of a text"
    );
}

#[test]
fn counts_words_and_gives_json_where_a_form_is_asked_for() {
    let tools = tools(&[SAY_HELLO]);
    let mut messages = vec![Message::user("Hello there")];
    let first = ask(&messages, &tools, None);
    // "Be kind." and "Hello there" and eight words of a description.
    assert_eq!((first.usage.input_tokens, first.usage.output_tokens), (2 + 2 + 8, 1));
    assert_eq!(first.calls[0].id, "demo_1");
    messages.push(first.message());
    messages.push(Message::Tool { call_id: "demo_1".into(), tool: "sayHello".into(), outcome: value(json!({"n": 1})) });
    assert_eq!(ask(&messages, &tools, Some(&json!({"type": "object"}))).text, r#"{"n":1}"#);
    // The ids of later calls are new.
    messages.push(Message::user("Hello again"));
    assert_eq!(ask(&messages, &tools, None).calls[0].id, "demo_2");
}

/// Something that a person might say, or might not.
fn anything() -> impl Strategy<Value = String> {
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
    let said = prop::collection::vec(prop::sample::select(words.to_vec()), 0..12).prop_map(|words| words.join(" "));
    prop_oneof![said, "\\PC{0,60}", any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_conversation_ends(said in prop::collection::vec(anything(), 1..5), fails in any::<bool>()) {
        let all = tools(&[SAY_HELLO, SAY_GOODBYE, WEATHER, FIND_ORDER, REFUND, CALCULATOR, FETCH, WORD_COUNT, SEARCH, MAIL, TAG, ADDRESS]);
        let mut messages = Vec::new();
        for said in said {
            messages.push(Message::user(said));
            let first = ask(&messages, &all, None);
            prop_assert_eq!(&first, &ask(&messages, &all, None));
            prop_assert!(first.calls.len() <= MAX_CALLS);
            prop_assert_eq!(first.text.trim().is_empty(), !first.calls.is_empty());
            let mut different: Vec<_> = first.calls.iter().map(|call| (&call.tool, &call.arguments)).collect();
            different.sort();
            different.dedup();
            prop_assert_eq!(different.len(), first.calls.len());
            let calls = first.calls.clone();
            messages.push(first.message());
            for call in calls {
                let arguments = call.parsed().unwrap();
                let tool = all.iter().find(|tool| tool.name.full_name() == call.tool).unwrap();
                prop_assert!(jsonschema::is_valid(&tool.schema, &arguments), "{}{}", call.tool, arguments);
                let outcome = if fails { Outcome::Error { message: "no".into() } } else { value(json!("")) };
                messages.push(Message::Tool { call_id: call.id, tool: call.tool, outcome });
            }
            if !matches!(messages.last(), Some(Message::Assistant { .. })) {
                let second = ask(&messages, &all, None);
                prop_assert!(second.calls.is_empty() && !second.text.trim().is_empty());
                messages.push(second.message());
            }
        }
    }

    #[test]
    fn any_schema_is_survived(said in anything(), name in "[a-zA-Z]{1,8}", word in anything()) {
        for schema in [
            json!({"properties": {(name.clone()): {"$ref": "#"}}, "required": [name.clone()]}),
            json!({"properties": {(name.clone()): {"$ref": "#/properties/x"}, "x": {"anyOf": [{"type": "null"}, {"type": "array"}]}}}),
            json!({"properties": {(name.clone()): {"type": "string", "pattern": word, "enum": [word, 1, null]}}, "required": [name.clone()]}),
            json!([word]),
            json!(true),
        ] {
            let tool = OfferedTool { name: WireName::of(&name).unwrap(), description: word.clone(), schema: schema.into(), is_strict: false };
            let first = ask(&[Message::user(format!("{name} {said}"))], &[tool], None);
            prop_assert!(first.calls.len() <= MAX_CALLS);
        }
    }
}
