//! Tests of command tools: diagnostics of their declarations, and the commands that calls run.

use patter_core::check::{Options, check};
use patter_core::declare::command::{CommandLineError, CommandResult, DashPolicy, EnvValue, SuccessCodes};
use patter_core::declare::project::Project;
use patter_core::declare::{CommandSpec, ToolOptions};
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

/// Checks the code, the message and the hint of each finding of a declaration, in a toolbox and at the top level.
fn check_findings(properties: &str, signature: &str, expected: &[(&str, &str, &str)]) {
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

fn check_one(properties: &str, code: &str, message: &str, hint: &str) {
    check_findings(properties, TEXT, &[(code, message, hint)]);
}

#[test]
fn valid_declarations_have_no_findings() {
    for (properties, signature) in [
        ("run: ['wc', '-w'], stdin: '{text}'", TEXT),
        ("run: ['sh', '-c', '{text}']", TEXT),
        ("run: ['curl', '{text}'], env: ['TOKEN'], cwd: 'sub', result: text, errors: {`1`: 'no {text}'}", TEXT),
        ("run: ['x'], env: {A: '{text} ${B}'}, timeout: 2m, effect: 'reads', sealed: true, concurrency: 3", TEXT),
        ("run: ['x', '{text}'], succeeds: [0, 1], maxBytes: 100, dashes: 'allow', idempotent: true", TEXT),
        ("run: ['test', '-f', '{text}'], result: exit", "(text::Text)==>(::Int)"),
    ] {
        check_findings(properties, signature, &[]);
    }
    let agent = "[a:Agent {instruction: 'Use `t`.', model: 'demo'} | t]";
    let tool = "[t:Command {description: 'x', run: ['ls']} | ()==>(::Text)]";
    let findings = check(&Project::read([("a.gram", format!("{agent} {tool}"))]), &Options::default());
    assert!(findings.is_empty(), "{findings:?}");
}

#[test]
fn each_mistake_has_one_finding() {
    let add = "add the program to run: `run: [\"wc\", \"-w\"]`";
    check_one("stdin: '{text}'", "P002", "this command has no `run`", add);
    check_one("rnu: ['x']", "P004", "a command has no property `rnu`", "did you mean `run`?");
    check_one("run: [], stdin: '{text}'", "P003", "`run` is empty", add);
    check_one("run: [''], stdin: '{text}'", "P003", "the program in `run` is empty", "");
    let each = "write the program and each argument as a separate string: `run: [\"wc\", \"-w\"]`";
    check_one("run: 'wc -w'", "P005", "`run` must be a list of strings, not a string", each);
    check_one("run: ['head', 3]", "P005", "`run` must be a list of strings, not an integer", "put quotes around it");
    let braces = "write a fixed value; write `{{` and `}}` for literal braces";
    check_one("run: ['{text}']", "P080", "the program in `run` cannot be chosen by the model: `{text}`", braces);
    check_one("run: ['x'], cwd: 'a/{text}'", "P080", "`cwd` cannot be chosen by the model: `{text}`", braces);
    let allowed = "environment variables are allowed in `run`, `stdin` and `env`";
    check_one("run: ['x'], cwd: '${HOME}'", "P080", "`cwd` cannot contain an environment variable: `${HOME}`", allowed);
    check_one(
        "run: ['x'], errors: {`1`: '${A}'}",
        "P080",
        "`errors` cannot contain an environment variable: `${A}`",
        allowed,
    );
    check_one("run: ['x', '{txt}']", "P071", "`{txt}` is not a parameter of this tool", "did you mean `{text}`?");
    let parameters = "parameters: text; write `{{` and `}}` for literal braces";
    check_one("run: ['x'], stdin: '{zzzzz}'", "P071", "`{zzzzz}` is not a parameter of this tool", parameters);
    let literal = "write `{{` and `}}` for literal braces";
    check_one("run: ['awk', '{print']", "P070", "`{` is not closed", literal);
    check_one("run: ['x'], env: {A: 'a}'}", "P070", "unmatched `}`", literal);
    let write = "write `env: [\"TOKEN\"]` or `env: { TOKEN: \"${MY_TOKEN}\" }`";
    check_one("run: ['x'], env: 'A'", "P005", "`env` must be a list of variable names, or a map, not a string", write);
    let names = "use letters, digits and `_`, and do not start with a digit";
    check_one("run: ['x'], env: ['A=B']", "P006", "`A=B` is not a valid variable name", names);
    let codes = "exit codes range from 0 to 255";
    check_one("run: ['x'], errors: {no: 'x'}", "P006", "`no` is not an exit code", codes);
    check_one("run: ['x'], succeeds: [0, 256]", "P006", "`256` is not an exit code", codes);
    check_one(
        "run: ['x'], succeeds: 1",
        "P005",
        "`succeeds` must be a list of exit codes, not an integer",
        "write `succeeds: [0, 1]`",
    );
    check_one("run: ['x'], result: 'jsn'", "P006", "`result` cannot be `jsn`", "did you mean `json`?");
    check_one(
        "run: ['x'], effect: all",
        "P006",
        "`effect` cannot be `all`",
        "possible values: pure, reads, network, writes",
    );
    check_one("run: ['x'], dashes: true", "P005", "`dashes` must be one of refuse, allow, not a boolean", "");
    check_one("run: ['x'], maxBytes: 0", "P006", "`maxBytes` is 0, but must be from 1 to 67108864", "");
    check_one("run: ['x'], sealed: 'yes'", "P005", "`sealed` must be true or false, not a string", "");
    let units = "write a number of seconds, or a number with ms, s, m or h, such as `30s`";
    check_one("run: ['x'], timeout: 3km", "P005", "`timeout` must be a duration, not a measurement", units);
    let end = "end the signature with `(::Int)`, or remove `result`";
    check_one("run: ['x'], result: exit", "P082", "the result is an exit code, but the signature returns a Text", end);
    let usage = "use `{text}` in `run`, `stdin` or `env`, or remove the parameter";
    check_one("run: ['x']", "P083", "the command does not use the parameter `text`", usage);
    let pass = "pass it as an argument instead: `[\"sh\", \"-c\", \"echo \\\"$1\\\"\", \"sh\", \"{text}\"]`";
    for shell in ["'sh', '-c'", "'/bin/bash', '-euc'", "'zsh', '-e', '-c'"] {
        let properties = format!("run: [{shell}, 'echo {{text}}']");
        check_one(&properties, "P081", "text from the model becomes part of this shell script", pass);
    }
}

#[test]
fn an_invalid_signature_is_the_only_finding() {
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
    assert_eq!((plain.result, plain.dashes, plain.max_bytes), (CommandResult::Text, DashPolicy::Refuse, 1 << 20));
    assert_eq!((plain.success_codes, plain.options), (SuccessCodes::Listed(vec![0]), ToolOptions::default()));
    let exit = spec("run: ['x'], result: exit", "()==>(::Int)");
    assert_eq!((exit.result, exit.success_codes), (CommandResult::Exit, SuccessCodes::Any));
    assert_eq!(spec("run: ['x']", "()==>(::Any)").result, CommandResult::Json);
    let full = spec("run: ['x'], env: ['A'], cwd: 'a{{b', timeout: 1500ms, succeeds: [2]", "()==>(::Text)");
    assert_eq!(full.env.get("A"), Some(&EnvValue::Inherited));
    assert_eq!(full.cwd.as_deref(), Some("a{b"));
    assert_eq!(full.options.timeout, Some(Duration::from_millis(1500)));
    assert!(full.success_codes.contains(2) && !full.success_codes.contains(0));
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
    assert_eq!(format!("{all:?}"), "CommandLine { arguments: 6, .. }");
    let inherited = self::spec("run: ['x'], env: ['TOK', 'PATH', 'EDITION']", "()==>(::Text)");
    let inherited = inherited.invocation(&Default::default(), &variable).unwrap();
    assert_eq!((inherited.env.len(), inherited.secrets), (3, vec!["<TOK>".to_owned(), "<EDITION>".to_owned()]));
    let none = call(json!({"many": null})).unwrap();
    assert_eq!((none.arguments, none.stdin.as_deref(), none.env.len()), (vec!["--".to_owned()], Some("ab"), 1));
    let dash = CommandLineError::Dash { parameter: "many".to_owned() };
    assert_eq!(call(json!({"many": ["-x"]})), Err(dash));
    let nul = CommandLineError::Nul { name: "many".to_owned() };
    assert_eq!(call(json!({"many": ["a\0"]})), Err(nul));
}
