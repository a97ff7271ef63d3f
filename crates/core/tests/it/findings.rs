//! Tests that one mistake has one finding, without any consequential ones.

use patter_core::check::{Options, check};
use patter_core::declare::project::{Finding, Project};

const HELLO: &str = "[sayHello:Tool {description: 'Greets'} | (name::Text)==>(::Text)]";

/// Checks the code and the hint of the only finding of a text.
fn check_one(text: &str, code: &str, hint: &str) {
    let findings = check(&Project::read([("a.gram", text)]), &Options::default());
    let found: Vec<_> = findings
        .iter()
        .map(|finding| (finding.diagnostic.code, finding.diagnostic.hint.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(found, [(code, hint)], "{text}");
}

#[test]
fn a_misspelt_reference() {
    for named in ["sayHello", "sayHelo"] {
        let agent = format!("[a:Agent {{instruction: 'Use `{named}`.', model: 'demo'}} | sayHelo]");
        check_one(&format!("{agent} {HELLO}"), "P040", "did you mean `sayHello`?");
    }
}

#[test]
fn a_misspelt_name_in_an_instruction() {
    let agent = "[a:Agent {instruction: 'Use `sayHelo`.', model: 'demo'} | sayHello]";
    check_one(&format!("{agent} {HELLO}"), "P060", "did you mean `sayHello`?");
    let source = check(&Project::read([("a.gram", format!("{agent} {HELLO}"))]), &Options::default());
    assert_eq!(source[0].diagnostic.span.slice(agent), "sayHelo", "only the word is marked");
}

#[test]
fn a_record_type_that_no_signature_uses() {
    let agent = "[a:Agent {instruction: 'Use `t`.', model: 'demo'} | [t:Tool {description: 'x'} | (a::A)==>(::Int)]]";
    let used = "[A:Object | (b::Array {elementType: 'B'})] [B:Object | (x::Int)]";
    check_one(&format!("{agent} {used} [C:Object | (x::Int)]"), "P044", "use it in a signature, or remove it");
    let findings = check(&Project::read([("a.gram", format!("{agent} {used}"))]), &Options::default());
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn a_delegate_with_a_name_that_tools_cannot_have() {
    check_one(
        "[a:Agent {instruction: 'Ask `the boss`.', model: 'demo'} | `the boss`] [`the boss`:Agent {description: 'x', instruction: 'x', model: 'demo'}]",
        "P052",
        "rename it, for example to `the_boss`",
    );
}

#[test]
fn a_name_with_too_many_parts() {
    let hint = "write `tool`, `toolbox/tool` or `organisation/toolbox/tool`";
    check_one("[`a/b/c/d`:Tool {description: 'x'} | ()==>(::Text)]", "P110", hint);
    check_one("[`a//b`:Tool {description: 'x'} | ()==>(::Text)]", "P110", hint);
    let toolbox = "[`a/b/c`:Toolbox | [d:Command {description: 'x', run: ['true']} | ()==>(::Text)]]";
    check_one(toolbox, "P110", hint);
}

#[test]
fn a_default_that_does_not_match_its_record_type() {
    check_one(
        "[t:Tool {description: 'x'} | (a::A {default: {x: 'no'}})==>(::Int)] [A:Object | (x::Int)]",
        "P026",
        "change the default or the type",
    );
}

#[test]
fn a_misspelt_property() {
    check_one("[a:Agent {instruction: 'x', modle: 'demo'}]", "P004", "did you mean `model`?");
}

#[test]
fn a_bracket_that_is_not_closed() {
    let table = [
        ("[a:Agent {", "close it with `}]`"),
        ("[a:Agent {\n  instruction: 'Be nice.',\n  model: 'demo'\n", "close it with `}]`"),
        (&format!("[a:Agent {{\n| sayHello] {HELLO}"), "close it with `}`"),
        (
            "[a:Agent {instruction: 'x', model: 'demo'} | c\n\n[c:Agent {instruction: 'x', model: 'demo'}]",
            "close it with `]`",
        ),
        ("[t:Tool {", "close it with `}]`"),
        ("[t:Toolbox |\n  [c:Command {", "close it with `}]]`"),
    ];
    for (text, hint) in table {
        check_one(text, "G002", hint);
    }
}

#[test]
fn a_name_among_the_properties() {
    let write = "write it before the label, `[a:Agent …`, and remove this property";
    check_one("[:Agent {name: 'a', instruction: 'x', model: 'demo'}]", "P013", write);
    let remove = "the name is already before the label; remove this property";
    check_one("[a:Agent {name: 'a', instruction: 'x', model: 'demo'}]", "P013", remove);
}

#[test]
fn the_wrong_brackets() {
    check_one("(a:Agent {instruction: 'x'})", "P011", "agents and tools are bracket patterns: `[name:Agent {…} | …]`");
    let agent = "[a:Agent {instruction: 'x', model: 'demo'} | (t:Tool)]";
    check_one(agent, "P010", "write `[name:Tool {…} | …]`, or the name of a tool");
}

#[test]
fn syntax_errors() {
    check_one("[a {instruction: 'x', model: 'demo'}:Agent]", "G019", "write `name:Label {…}`");
    check_one("[t:Tool {description: 'x'} | ]", "G024", "remove the `|`, or add elements");
    check_one("[t:Tool {description: 'x'} | (a::Text)==>::Text]", "G022", "write `(::Text)`");
    check_one("[t:Tool {description: 'x'} | (a::Text) (b::Text)]", "G015", "add a `,` or an arrow here");
    check_one(
        "[t:Tool {description: 'x'} | (a::)==>(::Text)]",
        "G011",
        "write a name after the colon, as in `:Person`",
    );
}

#[test]
fn a_quoted_number() {
    check_one("[a:Agent {instruction: 'x', model: 'demo', maxTurns: '3'}]", "P005", "remove the quotes");
    check_one("[a:Agent {instruction: 'x', model: 'demo', maxTurns: 'three'}]", "P005", "");
}

#[test]
fn a_name_that_providers_do_not_accept() {
    for (name, near) in [("`say hello`", "say_hello"), ("a__b", "a_b"), ("`größe`", "groesse")] {
        let tool = format!("[{name}:Tool {{description: 'x'}} | ()==>(::Text)]");
        check_one(&tool, "P052", &format!("rename it, for example to `{near}`"));
    }
    check_one("[`数`:Tool {description: 'x'} | ()==>(::Text)]", "P052", "rename it");
}

#[test]
fn an_unknown_type_of_the_answer() {
    check_one("[a:Agent {instruction: 'x', model: 'demo', returns: 'Txt'}]", "P020", "did you mean `Text`?");
    for returns in ["Text", "Maybe Int", "Array {elementType: \\\"Text\\\"}"] {
        let text = format!("[a:Agent {{instruction: 'x', model: 'demo', returns: \"{returns}\"}}]");
        let findings = check(&Project::read([("a.gram", text)]), &Options::default());
        assert!(findings.is_empty(), "{findings:?}");
    }
}

#[test]
fn a_record_type_with_the_name_of_a_built_in_type() {
    let text = "[Text:Object | (x::Int)] [t:Tool {description: 'x'} | (a::Text)==>(::Int)]";
    check_one(text, "P012", "rename the record type");
}

#[test]
fn tools_in_a_toolbox_have_two_names() {
    let toolbox =
        "[weather:Toolbox | [now:Http {description: 'x', url: 'https://example.com'} | (city::Text)==>(::Text)]]";
    for name in ["now", "`weather/now`"] {
        let text = format!("[a:Agent {{instruction: 'Ask now, weather/now.', model: 'demo'}} | {name}] {toolbox}");
        let findings = check(&Project::read([("a.gram", text)]), &Options::default());
        assert!(findings.is_empty(), "{findings:?}");
    }
}

#[test]
fn every_delegation_cycle_is_reported() {
    let agent = |name: &str, calls: &str| {
        format!("[{name}:Agent {{description: '{name}', instruction: 'Ask {calls}.', model: 'demo'}} | {calls}]")
    };
    let text = [agent("a", "b, c"), agent("b", "a"), agent("c", "a")].join(" ");
    let findings = check(&Project::read([("a.gram", text)]), &Options::default());
    let messages: Vec<_> = findings.iter().map(|finding| finding.diagnostic.message.as_ref()).collect();
    assert_eq!(
        messages,
        ["agents delegate in a cycle: `a` → `c` → `a`", "agents delegate in a cycle: `a` → `b` → `a`"]
    );
}

#[test]
fn long_chains_are_checked_in_linear_time() {
    let count = 20_000;
    let agents: String = (0..count)
        .map(|index| {
            let next = (index + 1) % count;
            format!("[a{index}:Agent {{description: 'x', instruction: 'Ask a{next}.', model: 'demo'}} | a{next}]\n")
        })
        .collect();
    let findings = check(&Project::read([("a.gram", agents)]), &Options::default());
    assert_eq!(findings.len(), 1, "one cycle");
    let records: String =
        (0..count).map(|index| format!("[R{index}:Object | (x::R{})]\n", (index + 1) % count)).collect();
    let findings = check(&Project::read([("r.gram", records)]), &Options::default());
    assert_eq!(findings.len(), 1, "one cycle");
}

#[test]
fn cases() {
    let agent = "[a:Agent {instruction: 'Use `sayHello`.', model: 'demo'} | sayHello]";
    let case = |checks: &str| format!("{agent} {HELLO} [:Cases | [c:Case {{input: 'x'}} | {checks}]]");
    check_one(&case("(:Contains {text: 'y', npt: true})"), "P004", "did you mean `not`?");
    check_one(&case("(:Turns {most: 'y'})"), "P005", "");
    check_one(
        &case("(:Called {tool: 'sayHello'}), (:Order {tools: ['sayHello', 'sayHelo']})"),
        "P094",
        "did you mean `sayHello`?",
    );
    check_one(
        &case("(:Judge {agent: 'strict', criteria: 'Kind.'})"),
        "P040",
        "declare it, or use the path of its file",
    );
    check_one("[c:Case {input: 'x'}]", "P010", "wrap it in `[:Cases | [name:Case {…} | …]]`");
    check_one("[c:Csaes | [c:Case {input: 'x'}]]", "P011", "did you mean the label `Cases`?");
    let valid = [
        case("(:Judge {agent: 'a', criteria: 'Kind.'}), (:Judge {agent: 'judges/b.gram', criteria: 'Kind.'})"),
        // Lists and cases in other files may have any name. Without agents, any tool may exist.
        format!(
            "[x:Cases | [c:Case {{input: 'x'}}]] [x:Cases] {HELLO} [sayHello:Cases | [d:Case {{input: 'x'}} | (:Called {{tool: 'y'}})]]"
        ),
    ];
    for text in valid {
        let findings = check(
            &Project::read([("a.gram", text.as_str()), ("b.gram", "[:Cases | [c:Case {input: 'y'}]]")]),
            &Options::default(),
        );
        assert!(findings.is_empty(), "{findings:?}\n{text}");
    }
    // A syntax error is one finding.
    let broken = check(&Project::read([("a.gram", case("(:Turns {most: })"))]), &Options::default());
    assert_eq!(broken.len(), 1, "{broken:?}");
}

/// Returns the code, the marked text and the hint of each finding.
fn found(text: &str) -> Vec<(&'static str, String, String)> {
    let findings = check(&Project::read([("a.gram", text)]), &Options::default());
    let shown = findings.into_iter().map(|finding| {
        let diagnostic = finding.diagnostic;
        (diagnostic.code, diagnostic.span.slice(text).to_owned(), diagnostic.hint.unwrap_or_default().into_owned())
    });
    shown.collect()
}

/// Checks the only finding of a tool with a signature.
fn check_signature(signature: &str, code: &str, marked: &str) {
    let tool = format!("[t:Tool {{description: 'x'}} | {signature}]");
    let found = found(&tool);
    let found: Vec<_> = found.iter().map(|(code, marked, _)| (*code, marked.as_str())).collect();
    assert_eq!(found, [(code, marked)], "{signature}");
}

#[test]
fn parameter_names_that_providers_refuse() {
    let long = "a".repeat(65);
    for name in ["`größe`", "`first name`", "``", &format!("`{long}`"), "`a/b`"] {
        check_signature(&format!("({name}::Text)==>(::Text)"), "P037", name);
    }
    check_signature("(::Text {paramName: 'first name'})==>(::Text)", "P037", "'first name'");
    for name in ["a", "`first-name`", "`a.b`", &"a".repeat(64)] {
        assert_eq!(found(&format!("[t:Tool {{description: 'x'}} | ({name}::Text)==>(::Text)]")), [], "{name}");
    }
}

#[test]
fn null_is_not_a_value() {
    check_signature("(a::Text {default: null})==>(::Text)", "P026", "null");
    check_signature("(a::Any {default: null})==>(::Text)", "P026", "null");
    check_signature("(a::Array {elementType: 'Text', default: [null]})==>(::Text)", "P026", "[null]");
    check_signature("(a::Text {enum: [low, null]})==>(::Text)", "P027", "null");
    assert_eq!(found("[t:Tool {description: 'x'} | (a::Text {default: 'null'})==>(::Text)]"), []);
}

#[test]
fn a_forgotten_result() {
    check_signature("(a::Text)==>(b::Int)", "P024", "(b::Int)");
    check_signature("(a::Text)==>(b)", "P024", "(b)");
}

#[test]
fn arrows_that_mislead() {
    check_signature("(a::Text)-->(b::Int)==>(::Text)", "P038", "==>");
    check_signature("(a::Text)==>(b::Int)==(::Text)", "P038", "==");
    check_signature("(a::Text)<==(::Int)", "P038", "<==");
    for signature in ["(a::Text)-->(b::Int)-->(::Text)", "(a::Text)==(::Text)", "(a::Text)<==>(::Text)"] {
        assert_eq!(found(&format!("[t:Tool {{description: 'x'}} | {signature}]")), [], "{signature}");
    }
}

#[test]
fn a_misspelt_format() {
    for (format, near) in [("datetime", "date-time"), ("Email", "email"), ("url", "uri"), ("uuuid", "uuid")] {
        let tool = format!("[t:Tool {{description: 'x'}} | (a::Text {{format: '{format}'}})==>(::Text)]");
        assert_eq!(found(&tool), [("P064", format!("'{format}'"), format!("did you mean `{near}`?"))]);
    }
    for format in ["date-time", "ipv6", "iban", "x-our-own"] {
        let tool = format!("[t:Tool {{description: 'x'}} | (a::Text {{format: '{format}'}})==>(::Text)]");
        assert_eq!(found(&tool), [], "{format}");
    }
}

#[test]
fn an_enum_outside_of_its_range_or_pattern() {
    check_signature("(a::Int {range: 1..5, enum: [1, 7]})==>(::Text)", "P027", "7");
    check_signature("(a::Text {range: 1..3, enum: ['abc', 'abcd']})==>(::Text)", "P027", "'abcd'");
    check_signature("(a::Text {pattern: '^[a-z]+$', enum: ['abc', 'A1']})==>(::Text)", "P027", "'A1'");
    check_signature("(a::Object {fields: {b: 'Int'}, enum: [{b: 'x'}]})==>(::Text)", "P027", "{b: 'x'}");
    let valid = "[t:Tool {description: 'x'} | (a::Int {range: 1..5, enum: [1, 5]})==>(::Text)]";
    assert_eq!(found(valid), []);
}

#[test]
fn a_value_that_is_both_required_and_optional() {
    check_signature("(a::Int {default: 1, optional: false})==>(::Text)", "P039", "optional: false");
    check_signature("(a::`Maybe Int` {optional: false})==>(::Text)", "P039", "optional: false");
    for valid in ["(a::Int {optional: false})==>(::Text)", "(a::Int {default: 1, optional: true})==>(::Text)"] {
        assert_eq!(found(&format!("[t:Tool {{description: 'x'}} | {valid}]")), [], "{valid}");
    }
}

#[test]
fn a_schedule_has_one_finding_per_mistake() {
    let agents = "[digest:Agent {instruction: 'Sum up.', model: 'demo'}] \
        [report:Agent {instruction: 'Report on {city}.', model: 'demo', takes: 'Place'}] [Place:Object | (city::Text)]";
    let check_record = |record: &str, code: &str, marked: &str, hint: &str| {
        let text = format!("{agents} [s:Schedule {{{record}}}]");
        check_one(&text, code, hint);
        let findings = check(&Project::read([("a.gram", &text)]), &Options::default());
        assert_eq!(findings[0].diagnostic.span.slice(&text), marked);
    };
    let agent = "agent: 'digset', at: '@daily', input: 'Go'";
    check_record(agent, "P141", "'digset'", "did you mean `digest`?");
    let minute = "the minute is 0 to 59; `*` stands for all, and `*/5` for every fifth";
    check_record("agent: 'digest', at: '61 7 * * *', input: 'Go'", "P142", "61", minute);
    check_record("agent: 'digest', at: '0 7 * * monday', input: 'Go'", "P142", "monday", "did you mean `mon`?");
    let zone = "agent: 'digest', at: '@daily', timezone: 'Zurich', input: 'Go'";
    check_record(zone, "P143", "'Zurich'", "did you mean `Europe/Zurich`?");
    check_record(
        "agent: 'digest', at: '@daily'",
        "P144",
        "[s:Schedule",
        "add `input: \"…\"`: the message that the agent receives",
    );
    let typed = "put quotes around the input, or declare what the agent `takes`";
    check_record("agent: 'digest', at: '@daily', input: {city: 'Bern'}", "P144", "{city: 'Bern'}", typed);
    check_record(
        "agent: 'report', at: '@daily', input: {town: 'Bern'}",
        "P144",
        "{town: 'Bern'}",
        "the agent takes `Place`",
    );
    let never = "for the last days of all months, write `28` or `1`: each month has these days";
    check_record("agent: 'digest', at: '0 7 30 2 *', input: 'Go'", "P145", "'0 7 30 2 *'", never);
    let url = "write a URL such as `https://example.com/hooks/digest`";
    check_record("agent: 'digest', at: '@daily', input: 'Go', webhook: 'example.com'", "P072", "'example.com'", url);
    check_record("agent: 'digest', at: '@daily', input: 'Go', catchUp: 'soon'", "P005", "'soon'", DURATION);
    check_record("agent: 'digest', at: '@daily', input: 'Go', zone: 'UTC'", "P004", "zone", PROPERTIES);
    check_record("agent: 'digest', input: 'Go'", "P002", "[s:Schedule", "add `at: \"…\"` to its record");
    let twice = format!("{agents} {}", "[s:Schedule {agent: 'digest', at: '@daily', input: 'Go'}] ".repeat(2));
    check_one(&twice, "P012", "rename or remove one of them");
    check_one(
        &format!("{agents} [:Schedule {{agent: 'digest', at: '@daily', input: 'Go'}}]"),
        "P001",
        "write the name before the label: `[name:Schedule …`",
    );
    let fits = format!(
        "{agents} [s:Schedule {{agent: 'report', at: '0 0 7 * * mon-fri', input: {{city: 'Bern'}}, catchUp: 2h}}]"
    );
    let findings = check(&Project::read([("a.gram", fits)]), &Options::default());
    assert!(findings.is_empty(), "{findings:?}");
}

const FILES: usize = 300;

/// Returns the texts of many files with a cycle through all of them, a parameter of another type in the last, and misspelt
/// names in the first.
fn many_files(typos: usize) -> Vec<String> {
    let text = |index: usize| {
        let name = if index < typos { "tol" } else { "tool" };
        let next = (index + 1) % FILES;
        let ty = if index == FILES - 1 { "Text" } else { "Int" };
        format!(
            "[agent{index}:Agent {{description: 'Asks.', instruction: 'Use `{name}{index}` and `agent{next}`.', model: 'demo'}} \
             | {name}{index}, agent{next}] [tool{index}:Tool {{description: 'Counts.'}} | (count::{ty})==>(::Text)] "
        )
    };
    (0..FILES).map(text).collect()
}

/// Returns the codes and hints of the findings in files.
fn told(files: impl IntoIterator<Item = String>) -> Vec<(&'static str, String)> {
    let files = files.into_iter().enumerate().map(|(index, text)| (format!("{index:03}.gram"), text));
    let findings = check(&Project::read(files), &Options::default());
    let told = |found: Finding| (found.diagnostic.code, found.diagnostic.hint.unwrap_or_default().into_owned());
    findings.into_iter().map(told).collect()
}

#[test]
fn many_files_have_the_findings_of_one() {
    let found = told(many_files(5));
    assert!(found == told([many_files(5).concat()]), "{found:?}");
    let codes: Vec<_> = found.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, ["P042", "P040", "P040", "P040", "P040", "P040", "P062"]);
    assert!(found.contains(&("P040", "did you mean `tool4`?".to_owned())));
}

#[test]
fn the_first_files_get_the_suggestions() {
    let found = told(many_files(FILES));
    let has_suggestion: Vec<_> =
        found.iter().filter(|(code, _)| *code == "P040").map(|(_, hint)| hint.starts_with("did you mean")).collect();
    let count = has_suggestion.iter().filter(|has| **has).count();
    assert!((10..FILES).contains(&count), "{count}");
    assert!(has_suggestion.iter().take(count).all(|has| *has), "threads took them from others: {has_suggestion:?}");
}

const DURATION: &str = "write a number of seconds, or a number with ms, s, m or h, such as `30s`";
const PROPERTIES: &str = "known properties: description, agent, at, timezone, catchUp, webhook, input";
