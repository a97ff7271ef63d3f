//! The demo model: the calls it makes, and its answers.

use patter_core::demo::reply;
use patter_core::message::attachment::AttachmentContents;
use patter_core::message::conversation::{Message, ToolCall, ToolOutcome};
use patter_core::message::request::{OfferedTool, Reply, Request, Settings};
use patter_core::name::WireName;
use patter_core::types::schema::input_schema;
use patter_core::types::signature::{Records, Signature};
use serde_json::{Value as Json, json};

mod conversations;

const SAY_HELLO: ToolDeclaration =
    ("sayHello", "Returns a friendly greeting for the given name", "(personName::Text {default:\"world\"})==>(::Text)");
const SAY_GOODBYE: ToolDeclaration = ("sayGoodbye", "Says goodbye to someone", "(personName::Text)==>(::Text)");
const WEATHER: ToolDeclaration = (
    "weather/current",
    "Current weather of a city",
    "(city::Text)==>(units::Text {enum:[\"celsius\", \"fahrenheit\"], optional:true})==>(::Any)",
);
const FIND_ORDER: ToolDeclaration =
    ("findOrder", "Finds an order by its number", "(orderId::Text {pattern:\"^[A-Z]{2}[0-9]{6}$\"})==>(::Any)");
const REFUND: ToolDeclaration = (
    "refund",
    "Pays an order back, in part or in full",
    "(orderId::Text {pattern:\"^[A-Z]{2}[0-9]{6}$\"})==>(amount::Double {range:0.01...})\
     ==>(reason::Text {enum:[\"damaged\", \"late\", \"unwanted\", \"other\"], default:\"other\"})==>(::Bool)",
);
const CALCULATOR: ToolDeclaration = (
    "calculator",
    "Computes the value of an expression, exactly where that is possible.",
    "(expression::Text)==>(::Any)",
);
const FETCH: ToolDeclaration =
    ("fetch", "Reads a page of the web and returns its text", "(url::Text {format:\"uri\"})==>(::Text)");
const WORD_COUNT: ToolDeclaration = ("wordCount", "Counts the words of a text", "(text::Text)==>(::Int)");
const SEARCH: ToolDeclaration = (
    "wikipedia/search",
    "Searches Wikipedia for pages",
    "(query::Text)==>(limit::Int {default:5, range:1..50})==>(::Any)",
);
const MAIL: ToolDeclaration = (
    "sendEmail",
    "Sends an e-mail",
    "(to::Text {format:\"email\"})==>(subject::Text)==>(urgent::Bool {optional:true})==>(::Bool)",
);
const BOOK: ToolDeclaration = (
    "bookRoom",
    "Books a room of a hotel",
    "(date::Text {format:\"date\"})==>(nights::Int)==>(guests::Int {default:1})==>(::Text)",
);
const TRAIN: ToolDeclaration = ("findTrain", "Finds trains", "(origin::Text)==>(destination::Text)==>(::Any)");
const TOTAL: ToolDeclaration = ("total", "Adds up numbers", "(numbers::Array {elementType:\"Double\"})==>(::Double)");
const TAG: ToolDeclaration = ("addTags", "Puts tags on a page", "(tags::Array {elementType:\"Text\"})==>(::Bool)");
const ADDRESS: ToolDeclaration = (
    "saveAddress",
    "Saves an address",
    "(address::Object {fields:[{name:\"city\", type:\"Text\"}, {name:\"zip\", type:\"Int\"}]})==>(::Bool)",
);
const ASK_REFUNDS: ToolDeclaration = ("refunds", "Decides refunds and gives reasons", "(request::Text)==>(::Text)");

const LIST: ToolDeclaration = ("files/list_directory", "Lists what is in a directory", "(path::Text)==>(::Any)");
const READ: ToolDeclaration = ("files/read_text_file", "Reads a file as text", "(path::Text)==>(::Any)");
const REPLACE: ToolDeclaration = (
    "replace",
    "Replaces what matches a regular expression in a text",
    "(text::Text)==>(pattern::Text)==>(with::Text)==>(::Text)",
);
const SORT: ToolDeclaration = ("sortLines", "Sorts the lines of a text by the alphabet", "(lines::Text)==>(::Text)");
const SUMMARIZER: ToolDeclaration = ("summarizer", "Summarizes a text in two sentences", "(input::Text)==>(::Text)");
const TRANSLATOR: ToolDeclaration = ("translator", "Translates a text into plain English", "(input::Text)==>(::Text)");

type ToolDeclaration = (&'static str, &'static str, &'static str);

fn tools(declarations: &[ToolDeclaration]) -> Vec<OfferedTool> {
    let tool = |(name, description, signature): &ToolDeclaration| OfferedTool {
        name: WireName::from_full_name(name).unwrap(),
        description: (*description).to_owned(),
        schema: input_schema(&Signature::parse(signature).unwrap(), &Records::default()).into(),
        strict_schema: None,
    };
    declarations.iter().map(tool).collect()
}

fn ask(messages: &[Message], tools: &[OfferedTool], returns: Option<&Json>) -> Reply {
    reply(&Request {
        model: &"demo".parse().unwrap(),
        instruction: "Be kind.",
        messages: &messages.into(),
        contents: AttachmentContents::NONE,
        tools,
        settings: &Settings::default(),
        returns,
    })
}

/// Sends messages to the model, with `result` as the outcome of each call. Returns the calls and the answer of each turn.
fn talk(inputs: &[&str], declarations: &[ToolDeclaration], result: &ToolOutcome) -> Vec<(String, String)> {
    let tools = tools(declarations);
    let mut messages = Vec::new();
    let mut turns = Vec::new();
    for input in inputs {
        messages.push(Message::user(*input));
        let first = ask(&messages, &tools, None);
        let calls = format_calls(&first.calls);
        if first.calls.is_empty() {
            turns.push((calls, first.text.clone()));
            messages.push(first.into_message());
            continue;
        }
        assert_eq!(first.text, "");
        messages.push(first.clone().into_message());
        for ToolCall { id, tool, .. } in first.calls {
            messages.push(Message::Tool { call_id: id, tool, outcome: result.clone() });
        }
        let second = ask(&messages, &tools, None);
        assert_eq!(second.calls, [], "{input}");
        turns.push((calls, second.text.clone()));
        messages.push(second.into_message());
    }
    turns
}

fn format_calls(calls: &[ToolCall]) -> String {
    calls.iter().map(|call| format!("{}{}", call.tool, call.arguments)).collect::<Vec<_>>().join(" ")
}

fn value(value: Json) -> ToolOutcome {
    ToolOutcome::Value { value }
}

#[test]
fn calls_match_the_words_of_a_message() {
    let hello = [SAY_HELLO];
    let leave = [SAY_HELLO, SAY_GOODBYE];
    let shop = [FIND_ORDER, REFUND];
    let many = [SAY_HELLO, WEATHER, CALCULATOR, FETCH, WORD_COUNT, SEARCH, MAIL, BOOK, TRAIN, TOTAL, TAG, ADDRESS];
    let table: &[(&str, &[ToolDeclaration], &str)] = &[
        // Greetings, with the person to greet.
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
        ("Hi Ann, my name is Bob", &hello, r#"sayHello{"personName":"Bob"}"#),
        ("say hello to ann", &hello, r#"sayHello{"personName":"ann"}"#),
        ("use sayHello with \"Dr. No\"", &hello, r#"sayHello{"personName":"Dr. No"}"#),
        // Messages that are not greetings.
        ("What's the weather like today?", &hello, ""),
        ("What is the weather in Paris?", &hello, ""),
        ("Can you say what the weather is?", &hello, ""),
        ("Tell me the name of the capital of France", &hello, ""),
        ("What can you do?", &hello, ""),
        ("", &hello, ""),
        // Several calls.
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
        // Values with a recognizable format.
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
        ("Replace \"a\" by \"b\" in \"banana\"", &[REPLACE], r#"replace{"text":"banana","pattern":"a","with":"b"}"#),
        ("What is 15% of 80?", &many, ""),
        // The prompts of the examples.
        ("List the directory docs/", &[LIST, READ], r#"files/list_directory{"path":"docs/"}"#),
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
    for (input, declarations, expected) in table {
        let (calls, answer) = talk(&[input], declarations, &value(json!("done"))).remove(0);
        if calls != *expected {
            wrong.push(format!("{input}\n  expected {expected}\n  found    {calls} {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
