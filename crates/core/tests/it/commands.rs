//! Command tools: what is wrong with their declarations, and what a call runs.

use patter_core::check::{Options, check};
use patter_core::declare::CommandSpec;
use patter_core::declare::Conduct;
use patter_core::declare::command::{CommandResult, Dashes, EnvValue, InvocationError, Succeeds};
use patter_core::declare::project::Project;
use patter_core::types::signature::Signature;
use serde_json::{Value as Json, json};
use std::time::Duration;

const TEXT: &str = "(text::Text)==>(::Text)";

fn spec(properties: &str, signature: &str) -> CommandSpec {
    let text = format!("[t:Command {{ {properties} }} | {signature}]");
    let (tree, diagnostics) = patter_core::gram::parse(&text);
    assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
    CommandSpec::read(tree.patterns().next().unwrap(), &Signature::parse(signature).unwrap()).unwrap()
}

/// Checks that a declaration has findings, each with its code, its message and its hint. A toolbox and the top level
/// make no difference.
fn found(properties: &str, signature: &str, expected: &[(&str, &str, &str)]) {
    let tool = format!("[t:Command {{ description: 'x', {properties} }} | {signature}]");
    for text in [format!("[box:Toolbox | {tool}]"), tool] {
        let findings = check(&Project::read([("a.gram", &text)]), &Options::default());
        let found: Vec<_> = findings
            .iter()
            .map(|finding| {
                let diagnostic = &finding.diagnostic;
                (diagnostic.code, diagnostic.message.as_ref(), diagnostic.hint.as_deref().unwrap_or_default())
            })
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}

fn one(properties: &str, code: &str, message: &str, hint: &str) {
    found(properties, TEXT, &[(code, message, hint)]);
}

#[test]
fn right_declarations_have_no_findings() {
    for (properties, signature) in [
        ("run: ['wc', '-w'], stdin: '{text}'", TEXT),
        ("run: ['sh', '-c', '{text}']", TEXT),
        ("run: ['curl', '{text}'], env: ['TOKEN'], cwd: 'sub', result: text, errors: {`1`: 'no {text}'}", TEXT),
        ("run: ['x'], env: {A: '{text} ${B}'}, timeout: 2m, effect: 'reads', sealed: true, concurrency: 3", TEXT),
        ("run: ['x', '{text}'], succeeds: [0, 1], maxBytes: 100, dashes: 'allow', idempotent: true", TEXT),
        ("run: ['test', '-f', '{text}'], result: exit", "(text::Text)==>(::Int)"),
    ] {
        found(properties, signature, &[]);
    }
    let agent = "[a:Agent {instruction: 'Use `t`.', model: 'demo'} | t]";
    let tool = "[t:Command {description: 'x', run: ['ls']} | ()==>(::Text)]";
    let findings = check(&Project::read([("a.gram", format!("{agent} {tool}"))]), &Options::default());
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn each_mistake_is_one_finding() {
    let say = "say what to run: `run: [\"wc\", \"-w\"]`";
    one("stdin: '{text}'", "P002", "this command has no `run`", say);
    one("rnu: ['x']", "P004", "a command has no property `rnu`", "did you mean `run`?");
    one("run: [], stdin: '{text}'", "P003", "`run` names no program", say);
    one("run: [''], stdin: '{text}'", "P003", "the program in `run` is empty", "");
    let each = "write the program and each argument as a text: `run: [\"wc\", \"-w\"]`";
    one("run: 'wc -w'", "P005", "`run` takes a list of texts, not a string", each);
    one("run: ['head', 3]", "P005", "`run` takes a list of texts, not an integer", "put quotes around it");
    let braces = "write it out; for braces that stand for themselves, write `{{` and `}}`";
    one("run: ['{text}']", "P080", "the program in `run` cannot be decided by a model: `{text}`", braces);
    one("run: ['x'], cwd: 'a/{text}'", "P080", "`cwd` cannot be decided by a model: `{text}`", braces);
    let may = "variables may stand in `run`, `stdin` and `env`";
    one("run: ['x'], cwd: '${HOME}'", "P080", "`cwd` cannot hold a variable: `${HOME}`", may);
    one("run: ['x'], errors: {`1`: '${A}'}", "P080", "`errors` cannot hold a variable: `${A}`", may);
    one("run: ['x', '{txt}']", "P071", "`{txt}` is no parameter of this tool", "did you mean `{text}`?");
    one("run: ['x'], stdin: '{zzzzz}'", "P071", "`{zzzzz}` is no parameter of this tool", "it has text");
    let stand = "write `{{` and `}}` for braces that stand for themselves";
    one("run: ['awk', '{print']", "P070", "`{` has no `}`", stand);
    one("run: ['x'], env: {A: 'a}'}", "P070", "`}` has no `{` before it", stand);
    let write = "write `env: [\"TOKEN\"]` or `env: { TOKEN: \"${MY_TOKEN}\" }`";
    one("run: ['x'], env: 'A'", "P005", "`env` takes names of variables, or a map of them, not a string", write);
    let names = "names have letters, digits and `_`, and begin with no digit";
    one("run: ['x'], env: ['A=B']", "P006", "`A=B` is not the name of a variable", names);
    let codes = "exit codes go from 0 to 255";
    one("run: ['x'], errors: {no: 'x'}", "P006", "`no` is not an exit code", codes);
    one("run: ['x'], succeeds: [0, 256]", "P006", "`256` is not an exit code", codes);
    one(
        "run: ['x'], succeeds: 1",
        "P005",
        "`succeeds` takes a list of exit codes, not an integer",
        "write `succeeds: [0, 1]`",
    );
    one("run: ['x'], result: 'jsn'", "P006", "`result` cannot be `jsn`", "did you mean `json`?");
    one("run: ['x'], effect: all", "P006", "`effect` cannot be `all`", "it is one of pure, reads, network, writes");
    one("run: ['x'], dashes: true", "P005", "`dashes` takes a word, not a boolean", "it is one of refuse, allow");
    one("run: ['x'], maxBytes: 0", "P006", "`maxBytes` is 0, but must be from 1 to 67108864", "");
    one("run: ['x'], sealed: 'yes'", "P005", "`sealed` takes true or false, not a string", "");
    let time = "write seconds, or a number with ms, s, m or h: `30s`";
    one("run: ['x'], timeout: 3km", "P005", "`timeout` takes a time, not a measurement", time);
    let leave = "let the signature end in `(::Int)`, or leave `result` out";
    one("run: ['x'], result: exit", "P082", "the result is an exit code, but the signature returns a Text", leave);
    let put = "put `{text}` into `run`, `stdin` or `env`, or remove the parameter";
    one("run: ['x']", "P083", "nothing in the command uses the parameter `text`", put);
    let pass = "pass it as an argument: `[\"sh\", \"-c\", \"echo \\\"$1\\\"\", \"sh\", \"{text}\"]`";
    for shell in ["'sh', '-c'", "'/bin/bash', '-euc'", "'zsh', '-e', '-c'"] {
        let properties = format!("run: [{shell}, 'echo {{text}}']");
        one(&properties, "P081", "what a model puts into this script is run as part of it", pass);
    }
}

#[test]
fn a_signature_with_mistakes_is_the_only_finding() {
    let codes = |text: &str| -> Vec<_> {
        let findings = check(&Project::read([("a.gram", text)]), &Options::default());
        findings.iter().map(|finding| finding.diagnostic.code).collect()
    };
    assert_eq!(codes("[t:Command {description: 'x', run: ['x', '{a}']} | (a::Txt)==>(::Text)]"), ["P020"]);
    assert_eq!(codes("[t:Command {description: 'x', run: ['x', '{a}']}]"), ["P008"]);
    assert_eq!(codes("[t:Command {run: ['x']} | ()==>(::Text)]"), ["P002"]);
}

#[test]
fn properties_are_read() {
    let plain = spec("run: ['x', '{text}']", TEXT);
    assert_eq!((plain.result, plain.dashes, plain.max_bytes), (CommandResult::Text, Dashes::Refuse, 1 << 20));
    assert_eq!((plain.succeeds, plain.conduct), (Succeeds::With(vec![0]), Conduct::default()));
    let exit = spec("run: ['x'], result: exit", "()==>(::Int)");
    assert_eq!((exit.result, exit.succeeds), (CommandResult::Exit, Succeeds::Always));
    assert_eq!(spec("run: ['x']", "()==>(::Any)").result, CommandResult::Json);
    let full = spec("run: ['x'], env: ['A'], cwd: 'a{{b', timeout: 1500ms, succeeds: [2]", "()==>(::Text)");
    assert_eq!(full.env.get("A"), Some(&EnvValue::Passed));
    assert_eq!(full.cwd.as_deref(), Some("a{b"));
    assert_eq!(full.conduct.timeout, Some(Duration::from_millis(1500)));
    assert!(full.succeeds.contains(2) && !full.succeeds.contains(0));
}

#[test]
fn calls_fill_the_templates() {
    let spec = spec(
        "run: ['${BIN}', '--n={n}', '{many}', '--', '{many}'], stdin: 'a{n}b', env: {K: 'k${KEY}', N: '{n}'}",
        "(n::Int {optional: true})==>(many::Array {elementType: 'Text', optional: true})==>(::Text)",
    );
    let variable = |name: &str| (name != "NONE").then(|| format!("<{name}>"));
    let call = |arguments: Json| spec.invocation(arguments.as_object().unwrap(), &variable);
    let all = call(json!({"n": 3, "many": ["a", "b"]})).unwrap();
    assert_eq!(all.program, "<BIN>");
    assert_eq!(all.arguments, ["--n=3", "a", "b", "--", "a", "b"]);
    assert_eq!(all.stdin.as_deref(), Some("a3b"));
    assert_eq!(all.env, [("K".to_owned(), "k<KEY>".to_owned()), ("N".to_owned(), "3".to_owned())]);
    assert_eq!(all.secrets, ["<BIN>", "<KEY>"]);
    assert_eq!(format!("{all:?}"), "Invocation { arguments: 6, .. }");
    let passed = self::spec("run: ['x'], env: ['TOK', 'PATH', 'EDITION']", "()==>(::Text)");
    let passed = passed.invocation(&Default::default(), &variable).unwrap();
    assert_eq!((passed.env.len(), passed.secrets), (3, vec!["<TOK>".to_owned(), "<EDITION>".to_owned()]));
    let none = call(json!({"many": null})).unwrap();
    assert_eq!((none.arguments, none.stdin.as_deref(), none.env.len()), (vec!["--".to_owned()], Some("ab"), 1));
    let dash = InvocationError::Dash { parameter: "many".to_owned() };
    assert_eq!(call(json!({"many": ["-x"]})), Err(dash));
    let nul = InvocationError::Nul { name: "many".to_owned() };
    assert_eq!(call(json!({"many": ["a\0"]})), Err(nul));
}
