//! Tests of the findings about what agents may call, and about what must not be in a file.

use patter_core::check::{Options, check, file_errors};
use patter_core::declare::project::Project;
use patter_core::permission::Rule;

/// Returns the code, the marked text and the hint of each finding.
fn found_with(text: &str, options: &Options<'_>) -> Vec<(&'static str, String, String)> {
    let findings = check(&Project::read([("a.gram", text)]), options);
    let shown = findings.into_iter().map(|finding| {
        let diagnostic = finding.diagnostic;
        (diagnostic.code, diagnostic.span.slice(text).to_owned(), diagnostic.hint.unwrap_or_default().into_owned())
    });
    shown.collect()
}

fn found(text: &str) -> Vec<(&'static str, String, String)> {
    found_with(text, &Options::default())
}

/// Checks the codes and the marked texts of all findings.
fn check_found(text: &str, options: &Options<'_>, expected: &[(&str, &str)]) {
    let found = found_with(text, options);
    let found: Vec<_> = found.iter().map(|(code, marked, _)| (*code, marked.as_str())).collect();
    assert_eq!(found, expected, "{text}");
}

fn agent(name: &str, instruction: &str, elements: &str) -> String {
    let description = format!("does what {name} does");
    let elements = if elements.is_empty() { String::new() } else { format!(" | {elements}") };
    format!("[{name}:Agent {{description: '{description}', instruction: '{instruction}', model: 'demo'}}{elements}]\n")
}

#[test]
fn an_agent_may_mention_itself_and_its_callers() {
    let boss = agent("boss", "Ask `clerk`.", "clerk");
    let clerk = agent("clerk", "You are `clerk`, and work for `boss`. Use the tool `boss` never.", "");
    assert_eq!(found(&format!("{boss}{clerk}")), []);
    let top = agent("top", "Ask `boss`.", "boss");
    assert_eq!(found(&format!("{top}{boss}{}", agent("clerk", "Report to `top`.", ""))), [], "also further up");
    let inner = agent("inner", "You work for `outer`.", "");
    assert_eq!(found(&agent("outer", "Ask `inner`.", &inner)), [], "also the agent around it");
    let other = agent("other", "Rest.", "");
    let found = found(&format!("{boss}{}{other}", agent("clerk", "Ask `other`.", "")));
    assert_eq!(found, [("P060", "other".to_owned(), "add `other` to the elements of the agent".to_owned())]);
}

#[test]
fn a_tool_that_is_there_twice_is_reported_once() {
    check_found(
        &agent("a", "x sayHello", "sayHello, sayHello"),
        &Options { library: &["sayHello"], ..Options::default() },
        &[("P007", "sayHello")],
    );
}

#[test]
fn an_agent_with_the_name_of_a_tool_is_reported() {
    let options = Options { library: &["calculator", "text/find"], ..Options::default() };
    let find = agent("find", "Find it.", "");
    let clerk = agent("clerk", "Ask `find`.", "find");
    check_found(&format!("{clerk}{find}"), &options, &[("P047", "find")]);
    check_found(&agent("clerk", "Ask `find`.", &find), &options, &[("P047", "find")]);
    check_found(&find, &options, &[]);
}

#[test]
fn a_tool_of_a_toolbox_is_mentioned_by_its_own_name() {
    let options = Options { library: &["text/find", "fs/readFile"], ..Options::default() };
    for instruction in ["Search with `find`.", "Use the `find` tool.", "Search with `text/find`.", "find things"] {
        check_found(&agent("a", instruction, "`text/find`"), &options, &[]);
    }
    let missing = agent("a", "Use `find`, then `fs/readFile`.", "`text/find`");
    check_found(&missing, &options, &[("P060", "fs/readFile")]);
    let misspelt = found_with(&agent("a", "Use `finde`.", "`text/find`"), &options);
    assert_eq!(misspelt, [("P060", "finde".to_owned(), "did you mean `text/find`?".to_owned())]);
}

#[test]
fn a_suggestion_never_creates_a_cycle() {
    let none = "declare it, or provide it in a library when the agent runs";
    let text = agent("helper", "Ask helpr.", "helpr");
    assert_eq!(found(&text), [("P040", "helpr".to_owned(), none.to_owned())], "not the agent itself");
    let caller = agent("helper", "Ask clerk.", "clerk");
    let text = format!("{caller}{}", agent("clerk", "Ask helpr.", "helpr"));
    assert_eq!(found(&text), [("P040", "helpr".to_owned(), none.to_owned())], "nor its caller");
    let text = format!("{text}{}", agent("help", "Rest.", ""));
    assert_eq!(found(&text)[0].2, "did you mean `help`?", "but the next one");
}

#[test]
fn two_declaring_labels() {
    check_found("[a:Agent:Tool {instruction: 'x', model: 'demo'}]", &Options::default(), &[("P054", ":Tool")]);
    let tool = "[t:Tool:ToolSpecification {description: 'x'} | ()==>(::Text)]";
    check_found(tool, &Options::default(), &[("P014", "[t:Tool:ToolSpecification")]);
    let project = Project::read([("a.gram", "[a:Agent:Tool {instruction: 'x', model: 'demo'}]")]);
    assert_eq!(file_errors(&project, 0).len(), 1, "such an agent does not run");
}

#[test]
fn a_tool_without_an_implementation() {
    let toolbox = "[box:Toolbox | [t:Tool {description: 'x'} | (a::Text)==>(::Text)]]";
    check_found(toolbox, &Options::default(), &[("P075", "[t:Tool")]);
}

#[test]
fn tools_that_are_denied() {
    let options = Options { library: &["fs/readFile", "fs/writeFile"], ..Options::default() };
    let with = |rule: &str, element: &str| {
        format!("[a:Agent {{instruction: 'Use readFile.', model: 'demo', deny: \"{rule}\"}} | {element}]")
    };
    for rule in ["fs/readFile", "readFile", "fs/*", "*"] {
        for element in ["readFile", "`fs/readFile`"] {
            check_found(&with(rule, element), &options, &[("P055", element)]);
        }
    }
    for rule in ["fs/readFile when path is 'x'", "fs/writeFile"] {
        check_found(&with(rule, "readFile"), &options, &[]);
    }
    // Rules for all agents count too.
    let rules = [Rule::parse("deny fs/*", "`patter.toml`").unwrap()];
    let options = Options { rules: &rules, ..options };
    let agent = agent("a", "Use readFile.", "readFile");
    check_found(&agent, &options, &[("P055", "readFile")]);
}

#[test]
fn delegates_that_are_too_deep() {
    let chain = |length: usize| -> String {
        (0..length)
            .map(|index| {
                let next = format!("a{}", index + 1);
                let next = if index + 1 == length { String::new() } else { next };
                agent(&format!("a{index}"), &format!("Ask {next}."), &next)
            })
            .collect()
    };
    check_found(&chain(5), &Options::default(), &[]);
    check_found(&chain(6), &Options::default(), &[("P056", "a0")]);
    assert_eq!(found(&chain(20_000)).len(), 1, "in linear time");
    // Agents inside of others count as well.
    let inner = (1..6)
        .rev()
        .fold(String::new(), |inner, index| agent(&format!("a{index}"), &format!("Ask a{}.", index + 1), inner.trim()));
    check_found(&agent("a0", "Ask a1.", inner.trim()), &Options::default(), &[("P056", "a0")]);
}

#[test]
fn more_tools_than_a_provider_accepts() {
    let with = |model: &str, count: usize| {
        let names: Vec<_> = (0..count).map(|index| format!("t{index}")).collect();
        format!("[a:Agent {{instruction: '{}', model: '{model}'}} | {}]", names.join(" "), names.join(", "))
    };
    let options = Options { library: &["t/*"], ..Options::default() };
    let count = |text: &str| found_with(text, &options).iter().filter(|(code, ..)| *code == "P057").count();
    for (model, tools, expected) in [
        ("OpenAI/gpt-5", 128, 0),
        ("OpenAI/gpt-5", 129, 1),
        ("Google/gemini-2.5-pro", 513, 1),
        ("Anthropic/claude-sonnet-4-5", 600, 0),
        ("demo", 600, 0),
    ] {
        assert_eq!(count(&with(model, tools)), expected, "{model} {tools}");
    }
}

#[test]
fn descriptions() {
    let tool =
        |name: &str, description: &str| format!("[{name}:Tool {{description: '{description}'}} | ()==>(::Text)]");
    let same = format!("{}, {}", tool("one", "Finds  books"), tool("two", "finds books"));
    check_found(&agent("a", "Use one, two.", &same), &Options::default(), &[("P067", "two")]);
    let delegate = "[b:Agent {instruction: 'x', model: 'demo'}]";
    check_found(&format!("{}{delegate}", agent("a", "Ask b.", "b")), &Options::default(), &[("P065", "[b:Agent")]);
    check_found(&agent("a", "Ask b.", delegate), &Options::default(), &[("P065", "[b:Agent")]);
    check_found(delegate, &Options::default(), &[]);
    let parameters =
        "[t:Tool {description: 'x'} | (a::Text)==>(b::Int {description: 'how many'})==>(c::Int)==>(::Text)]";
    let pedantic = Options { pedantic: true, ..Options::default() };
    check_found(parameters, &Options::default(), &[]);
    check_found(parameters, &pedantic, &[("P066", "(a::Text)")]);
}

#[test]
fn sealed_tools() {
    let options = Options { sealed: &["mail/send", "sayHello"], ..Options::default() };
    let send = "[send:Command {description: 'x', run: ['true']} | ()==>(::Text)]";
    check_found(&format!("[mail:Toolbox | {send}]"), &options, &[("P059", "send")]);
    // Its own full name is free, but the bare name means the sealed tool.
    check_found(&format!("[post:Toolbox | {send}]"), &options, &[("P100", "send")]);
    let hello = "[sayHello:Command {description: 'x', run: ['true']} | ()==>(::Text)]";
    check_found(hello, &options, &[("P059", "sayHello")]);
}

#[test]
fn secrets_are_found_everywhere_and_shown_nowhere() {
    let key = ["sk-", "ant-api03-a8Zk2mQ0rT5vXw9yB3cD6eF1gH4i"].concat();
    let texts = [
        format!("// {key}"),
        format!("[a:Agent {{instruction: 'Use {key}.', model: 'demo'}}]"),
        format!("[a:Agent {{instruction: ```\n    The key is {key}\n  ```, model: 'demo'}}]"),
        format!("[t:Tool {{description: 'x'}} | (a::Text {{default: '{key}'}})==>(::Text)]"),
        // Even where the notation is broken, and where another finding quotes it.
        format!("[a:Agent {{instruction: '{key}"),
        format!("[a:Agent {{instruction: 'x', model: '{key}'}}]"),
        format!("[a:Agent {{instruction: 'x', model: 'demo', deny: '{key} x'}}]"),
    ];
    for text in texts {
        let project = Project::read([("a.gram", &text)]);
        let findings = check(&project, &Options::default());
        let secrets: Vec<_> = findings.iter().filter(|finding| finding.diagnostic.code == "P058").collect();
        assert_eq!(secrets.len(), 1, "{text}");
        assert_eq!(secrets[0].diagnostic.span.slice(&text), key);
        for finding in findings.iter().chain(file_errors(&project, 0)) {
            assert!(!format!("{:?}", finding.diagnostic).contains("a8Zk2mQ0"), "{finding:?}");
        }
    }
    let placeholders = "[a:Agent {instruction: 'Keys look like sk-... or $OPENAI_API_KEY.', model: 'demo'}]";
    check_found(placeholders, &Options::default(), &[]);
}
