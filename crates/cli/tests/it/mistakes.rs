//! Mistakes of new users: each message has a place, a cause and a way out.

use crate::folder::Folder;
use crate::terminal::Terminal;

const AGENT: &str = "[greeter:Agent { instruction: \"Greet with `sayHello`.\", model: \"demo\" } | sayHello]\n";

/// Runs a command in a folder with an agent and one more file, and checks what it prints on stderr.
fn check(command: &str, (file, text): (&str, &str), expected: &[&str]) {
    let folder = Folder::new();
    folder.write("a.gram", AGENT);
    if !file.is_empty() {
        folder.write(file, text);
    }
    let arguments: Vec<_> = command.split(' ').map(|argument| argument.replace('+', " ")).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let printed = folder.run(&arguments);
    let stderr = printed.split_once("--- stderr\n").unwrap().1;
    for part in expected {
        assert!(stderr.contains(part), "patter {command}\n{text}\nno {part}\n{printed}");
    }
    for raw in ["os error", "invalid digit", "entity already exists", "non-zero type", "expected a sequence", "f64"] {
        assert!(!stderr.contains(raw), "patter {command}\n{text}\n{printed}");
    }
}

#[test]
fn arguments() {
    let count = "write a whole number from 1 to 4294967295";
    let table: [(&str, &[&str]); 43] = [
        ("rnu a.gram hi", &["unrecognized subcommand 'rnu'", "tip: did you mean `run`?"]),
        ("import foo", &["unrecognized subcommand 'foo'", "tip: the commands are openapi, mcp"]),
        ("run a.gram hi -m demo", &["unexpected argument '-m'", "tip: did you mean `--model`"]),
        (
            "ab a.gram --cases c.jsonl --arm a --arm b --gate pass>=1",
            &["unexpected argument '--gate'", "tip: `--gate` is an option of `patter eval`"],
        ),
        (
            "run hi a.gram",
            &["cannot read `hi`: no such file", "help: the file comes first: `patter run a.gram \"hi\"`"],
        ),
        ("run .", &["the input is empty", "help: pass a prompt: `patter run . \"…\"`"]),
        ("run hello+there", &["cannot read `hello there`: no such file", "help: name a file before the prompt"]),
        ("run a.gram hi --deny fs", &["`deny fs` matches no tool", "help: did you mean `fs/*`?"]),
        (
            "run a.gram hi --store mysql://x",
            &["--store: `mysql://` is not supported", "help: write `sqlite:PATH` or `postgres://user@host/database`"],
        ),
        (
            "import openapi https://a.example/api.yaml",
            &["no such file", "help: this is an address: download the file first"],
        ),
        ("eval a.gram -c c.jsonl --gate pass>=1.01", &["the highest pass rate is `1`, or `100%`"]),
        ("eval a.gram -c c.jsonl --fail-on regression", &["--fail-on needs a baseline", "help: add --baseline FILE"]),
        ("eval a.gram -c a.jsonl --baseline nope.json", &["`nope.json` is neither a file nor the id of an experiment"]),
        ("eval a.gram -c a.jsonl --tag x", &["no case has the tag `x`", "help: their tags are `y`"]),
        (
            "ab a.gram -c a.jsonl --arm a --arm b=git:HEAD",
            &["cannot read the revision `HEAD`: `a.gram` is not in git", "help: `git:` names a commit"],
        ),
        ("ab a.gram -c a.jsonl --arm a --arm b=recording:nope", &["no recording at `nope`", "help: record runs with"]),
        ("ab a.gram -c a.jsonl --arm a --arm a", &["the arm `a` is given twice", "help: the name before `=`"]),
        ("run a.gram hi --max-turns ten", &["--max-turns <N>", count]),
        ("run a.gram hi --max-turns 0", &["--max-turns <N>", count]),
        ("run a.gram hi --max-turns -1", &["--max-turns <N>", count]),
        ("eval a.gram -c c.jsonl --concurrency 0", &["--concurrency <N>", count]),
        ("eval a.gram -c c.jsonl --repeats -1", &["--repeats <N>", count]),
        ("eval a.gram -c c.jsonl --seed x", &["--seed <N>", "write a whole number, such as 10"]),
        ("check a.gram --max-errors many", &["--max-errors <N>", "write a whole number, such as 10"]),
        ("sessions --limit -1", &["--limit <N>", count]),
        ("run a.gram hi there", &["unexpected argument 'there'", "needs quotes: patter run FILE \"…\""]),
        ("run a.gram hi --model gpt-4o", &["`gpt-4o` is missing a provider", "as in `OpenAI/gpt-4o`"]),
        ("run a.gram hi --model claude-x", &["as in `Anthropic/claude-x`"]),
        ("run a.gram hi --model gemini-x", &["as in `Google/gemini-x`"]),
        ("run a.gram hi --model llama3", &["as in `Ollama/llama3`"]),
        (
            "run a.gram hi --model openai",
            &["`openai` is missing a model; write the model after the provider, as in `OpenAI/gpt-4o-mini`"],
        ),
        (
            "run a.gram hi --model nowhere/x",
            &["unknown provider `nowhere`", "the providers are OpenAI, Anthropic", "`[models.nowhere]`"],
        ),
        ("run a.gram hi --model demo/", &["write only `demo`"]),
        ("run a.gram#nobody hi", &["`a.gram` has no agent `nobody`", "help: its agents are `greeter`"]),
        ("run a.gram#Greeter hi", &["help: did you mean `greeter`?"]),
        ("run a.grm hi", &["cannot read `a.grm`: no such file", "help: did you mean `a.gram`?"]),
        ("check none/a.gram", &["help: the folder `none` does not exist"]),
        ("show a.gram#greeter", &["help: name only the file here: `a.gram`"]),
        ("parse zzzzzzzz.gram", &["help: this folder has `a.gram`"]),
        (
            "run a.gram hi --session nope --store s.db",
            &["there is no session `nope`", "help: add --new to start it, or list sessions with `patter sessions`"],
        ),
        ("call sayHello {\"nobody\":\"Ada\"}", &["`sayHello` has no parameter `nobody`; it has `personName`"]),
        ("tools nope", &["no tool name contains `nope`; `patter tools` lists all"]),
        ("new a.gram", &["`a.gram` already exists", "help: choose another name\n"]),
    ];
    for (command, expected) in table {
        check(command, ("a.jsonl", "{\"input\": \"Hi\", \"tags\": \"y\"}\n"), expected);
    }
}

#[test]
fn settings() {
    let table: [(&str, &[&str]); 13] = [
        (
            "[permissions]\ndeny = fs/*\n",
            &["line 2, column 8", "text must be in quotes", "help: write a list of quoted rules: `[\"fs/*\"]`"],
        ),
        ("[store]\nurl = file.db\n", &["text must be in quotes", "help: write `\"file.db\"`"]),
        ("[permissions]\ndeny = [\"fs/**\"]\n", &["`patter.toml`: line 2, column 10: `fs/**` is not a tool name"]),
        ("[permissions]\nask = [\"fetch\",\n  \"fs/\"]\n", &["`patter.toml`: line 3, column 4: `fs/` is not"]),
        ("[chekc]\n", &["`patter.toml`: line 1, column 2", "unknown setting `chekc`", "help: did you mean `check`?"]),
        (
            "[check]\nignore = \"P061\"\n",
            &["line 2, column 10", "expected a list, such as [\"…\"], found the text \"P061\""],
        ),
        ("[check]\ndeny-warnings = \"yes\"\n", &["expected true or false, found the text \"yes\""]),
        ("[models.OpenAI]\ntimeout = \"long\"\n", &["expected a number, found the text \"long\""]),
        ("[permissions]\nforbid = []\n", &["unknown setting `forbid`", "help: the settings here are allow, ask, deny"]),
        (
            "[permissions]\ndeny = [\"fs/* when\"]\n",
            &["`when` is not a valid condition", "help: for example, `when path"],
        ),
        ("[org]\nname = \"acme\"\n", &["the setting `tools` is missing", "help: add `tools`"]),
        ("[org]\ntools = [\"nope\"]\n", &["cannot read the organisation's tools in", "no such file or folder"]),
        (
            "mcp-servers = \"none.json\"\n",
            &["cannot read `none.json`: no such file or folder", "help: fix `mcp-servers`"],
        ),
    ];
    for (text, expected) in table {
        check("tools", ("patter.toml", text), expected);
    }
}

#[test]
fn tools_with_the_same_name() {
    let folder = Folder::new();
    let toolbox = "[box:Toolbox | [t:Command { description: 'd', run: ['true'] } | ()==>(::Text)]]\n";
    folder.write("patter.toml", "");
    folder.write("x.gram", toolbox);
    folder.write("y.gram", toolbox);
    let printed = folder.run(&["tools"]);
    assert!(printed.contains("the project layer has two tools named `box/t` (x.gram:1:"), "{printed}");
    assert!(printed.contains(" and y.gram:1:"), "{printed}");
}

#[test]
fn scripts() {
    let hint = "help: a script is a JSON list of replies, such as `[{\"text\": \"Hello!\"}]`";
    let table: [(&str, &[&str]); 7] = [
        (
            "[\"x\"]",
            &["line 1, column 4: expected a reply, such as {\"text\": \"Hello!\"}, found the text \"x\"", hint],
        ),
        ("[{\"error\": \"boom\"}]", &["expected an error, such as {\"message\": ", "found the text \"boom\""]),
        ("[{\"delayMs\": \"2s\"}]", &["expected a whole number, found the text \"2s\""]),
        ("", &["cannot read the script `s.json`: it is empty", hint]),
        ("not json", &["cannot read the script `s.json`: it is not valid JSON: line 1, column 2", hint]),
        ("{\"text\": \"Hi\"}", &["cannot read the script `s.json`: it is not a list of replies", hint]),
        ("[{\"txt\": \"Hi\"}]", &["cannot read the script `s.json`: unknown field `txt`", hint]),
    ];
    for (text, expected) in table {
        check("run a.gram hi --model scripted/s.json --store none", ("s.json", text), expected);
    }
}

#[test]
fn other_notations() {
    let wildcard = "[a:Agent { instruction: 'x', model: 'demo' } | fs/*]\n";
    check("check b.gram", ("b.gram", wildcard), &["names have no wildcards in gram", "help: write each name"]);
    let label = "[Agent { instruction: 'x', model: 'demo' }]\n";
    check(
        "check b.gram",
        ("b.gram", label),
        &["write `[name:Agent {…}]`; without a colon, `Agent` is read as the name"],
    );
    check("check a.json", ("a.json", "{\"name\": \"x\"}"), &["`a.json` is not a gram file", "help: name a .gram file"]);
    check("call fs/readFile {\"path\":\"/etc/passwd\"}", ("", ""), &["`[fs] roots` in patter.toml"]);
    check("sessions fork x --at 0", ("", ""), &["--at <N>", "write a whole number from 1"]);
}

#[test]
fn cases() {
    let table: [(&str, &str, &[&str]); 11] = [
        ("c.jsonl", "not json\n", &["c.jsonl:1: this line is not valid JSON", "help: write each case as an object"]),
        ("c.jsonl", "{\"input\": \"x\",\n", &["c.jsonl:1: this line is not complete JSON"]),
        ("c.csv", "id;input;contains\na;x;y\n", &["c.csv:1: columns are separated by commas, not by `;`"]),
        ("c.csv", "id\tinput\na\tx\n", &["c.csv:1: columns are separated by commas, not by tabs"]),
        (
            "c.jsonl",
            "{\"input\": \"x\", \"checks\": [{\"turns\": \"three\"}]}\n",
            &["`turns` must be a positive whole"],
        ),
        ("c.jsonl", "{\"input\": \"x\", \"checks\": [{\"contains\": 5}]}\n", &["`contains` must be a non-empty text"]),
        (
            "c.jsonl",
            "{\"input\": \"x\", \"checks\": [{\"judge\": \"good\"}]}\n",
            &[
                "`judge` requires `agent`",
                "help: write `{\"judge\": {\"agent\": \"judge.gram\", \"criteria\": \"…\"}}`",
            ],
        ),
        (
            "c.jsonl",
            "{\"input\": \"x\", \"checks\": [{\"jsonPath\": \"$$\"}]}\n",
            &["invalid JSON path: unexpected text at character 2", "help: for example, `$.items[0].name`"],
        ),
        (
            "c.jsonl",
            "{\"input\": \"x\", \"contains\": \"y\"}\n",
            &["c.jsonl:1: ", "help: checks are in a list: `\"checks\": [{\"contains\": …}]`"],
        ),
        ("c.csv", "id,inptu\na,x\n", &["c.csv:1: unknown column `inptu`\n  help: did you mean `input`?\n"]),
        ("c.jsonl", "{\"id\": \"a\"}\n", &["c.jsonl:1: this case has no input", "help: add the user's message"]),
    ];
    for (file, text, expected) in table {
        check(&format!("eval a.gram -c {file}"), (file, text), expected);
    }
}

/// Texts for which `check` reports exactly one problem.
#[test]
fn declarations() {
    let agent = |properties: &str| format!("[a:Agent {{ {properties} }}]\n");
    let tool = |signature: &str| format!("[t:Tool {{ description: 'd' }} | {signature}]\n");
    let command = |run: &str| {
        format!("[t:Toolbox | [c:Command {{ description: 'd', run: {run}, stdin: '{{a}}' }} | (a::Text)==>(::Text)]]\n")
    };
    let table = [
        ("a:Agent { instruction: 'x', model: 'demo' }\n".to_owned(), "write `[a:Agent {…}]`"),
        ("agent a { instruction: 'x' }\n".to_owned(), "write `[a:Label {…}]`"),
        ("agent:\n  name: x\n  model: demo\n".to_owned(), "agents are written in gram"),
        ("{\"input\": \"Hi\"}\n{\"input\": \"Ho\"}\n".to_owned(), "cases may be in .jsonl and .csv files"),
        (agent("instruction: ['x', 'y'], model: 'demo'"), "write one text"),
        (tool("(`größe`::Text)==>(::Text)"), "rename it, for example to `groesse`"),
        ("[my agent:Agent { instruction: 'x', model: 'demo' }]\n".to_owned(), "put several words in backticks"),
        ("[a:Agent ( instruction: 'x', model: 'demo' )]\n".to_owned(), "write `{key: value}`"),
        ("[a:Agent { instruction: 'x', model: 'demo' } b]\n[b:Agent { description: 'd', instruction: 'x', model: 'demo' }]".to_owned(), "a bracket pattern is"),
        ("[a:Agent {\n".to_owned(), "close it with `}]`"),
        (agent("instruction: 'x', model: 'demo', temperature: 0,5"), "write `.` instead of `,`"),
        (agent("prompt: 'x', model: 'demo'"), "did you mean `instruction`?"),
        (agent("instruction: 'x', model: 'demo', tools: ['b']"), "write the tools after the properties"),
        (agent("instruction: 'x', model: 'demo', ask: [b]"), "put quotes around each item"),
        (tool("(a::List)==>(::Text)"), "write `Array {elementType: \"Text\"}`"),
        (tool("(a::Float)==>(::Text)"), "write `Double`"),
        (tool("(a::Date)==>(::Text)"), "write `Text {format: \"date\"}`"),
        (tool("(a::Text?)==>(::Text)"), "`{optional: true}`"),
        (tool("(a::Text, b::Int)==>(::Text)"), "nodes have their own parentheses"),
        (tool("a::Text ==> ::Text"), "write `(a::Text)`"),
        (command("['awk', '{print $1}']"), "write `{{` and `}}` for literal braces"),
        (command("['jq', '{a: .b}']"), "write `{{` and `}}` for literal braces"),
    ];
    let folder = Folder::new();
    for (text, hint) in table {
        folder.write("a.gram", &text);
        let printed = folder.run(&["check", "a.gram", "--bind"]);
        let problems = printed.matches("error[").count();
        assert!(problems == 1 && printed.contains(hint), "{text}\nno {hint}\n{printed}");
    }
}

/// Errors in the file of an agent are shown as `check` shows them, instead of what they lead to.
#[test]
fn files_with_errors() {
    let table: [(&[u8], &[&str]); 8] = [
        (b"[a:Agent {\n", &["error[G002]", "b.gram:1:11", "close it with `}]`"]),
        (b"[a:Agent {instruction: \"x, model: \"demo\"}]\n", &["error[G", "b.gram:1:"]),
        (b"agent:\n  name: x\n  model: demo\n", &["error[P135]", "it looks like YAML"]),
        (b"{\"name\": \"x\", \"model\": \"demo\"}\n", &["error[P135]", "it looks like JSON"]),
        (b"You are a helpful agent.\n", &["error[G"]),
        (b"\x7fELF\x01\xff\xfe\n", &["error[G"]),
        (b"[:Agent {instruction: 'x', model: 'demo'}]\n", &["error[P001]", "write the name before the label"]),
        (
            b"[a:Agent {instruction: 'x', model: 'demo'}]\n[b:Agent {instruction: 'x', model: 'demo'",
            &["error[G002]", "b.gram:2:"],
        ),
    ];
    for (text, expected) in table {
        let folder = Folder::new();
        folder.write("b.gram", text);
        folder.write("c.jsonl", "{\"input\": \"Hi\"}\n");
        for command in ["run b.gram hi --store none", "chat b.gram --store none", "eval b.gram -c c.jsonl"] {
            let printed = folder.run(&command.split(' ').collect::<Vec<_>>());
            assert!(printed.starts_with("exit 1"), "patter {command}\n{printed}");
            for part in expected.iter().chain(&["`b.gram` has errors, so it was not run"]) {
                assert!(printed.contains(part), "patter {command}\nno {part}\n{printed}");
            }
        }
        assert!(folder.run(&["check", "b.gram"]).starts_with("exit 1"));
    }
}

#[test]
fn a_prompt_is_typed_at_a_terminal() {
    let folder = Folder::new();
    folder.write("a.gram", AGENT);
    let mut terminal = Terminal::start(&folder, &["run", "a.gram", "--store", "none"], 100);
    terminal.shows("type the prompt, and end it with Ctrl-D on an empty line").keys("Hello, I am Ada\n\u{4}");
    terminal.shows("Hello, Ada!");
    assert_eq!(terminal.ends(), Some(0));
    // A file that does not exist is reported before anything is typed.
    let mut terminal = Terminal::start(&folder, &["run", "b.gram"], 100);
    terminal.shows("cannot read `b.gram`: no such file");
    assert_eq!(terminal.ends(), Some(1));
}
