//! Text from elsewhere at a terminal: every command and every slash command in a project that tries to control it.
//!
//! Everything a project, a server, a model or a tool can say contains escape sequences here. None of them may reach the
//! terminal, and all of them must reach a pipe.

use crate::folder::Folder;
use crate::terminal::Terminal;
use serde_json::json;
use std::collections::BTreeSet;

/// Sets the title, moves the cursor, hides text, ends a string, and all of it again with single control characters; then
/// reverses the direction of text, isolates it, and hides a space.
const POISON: &str =
    "\u{1b}]0;pwned\u{7}\u{1b}[666C\u{1b}[8;666m\u{1b}_x\u{9b}666m\u{9d}0;x\u{9c}\u{202e}\u{2066}\u{200b}";
/// Marks poisoned text, so that tests know it was shown. It is a family, which is joined by characters without width.
const MARK: &str = "👩\u{200d}👩\u{200d}👧";

fn poisoned(text: &str) -> String {
    format!("{text}{POISON}{MARK}")
}

/// Returns a text as a terminal shows it.
fn escaped(text: &str) -> String {
    text.replace(
        POISON,
        &POISON
            .chars()
            .map(|c| if c.is_ascii_graphic() { c.to_string() } else { c.escape_unicode().to_string() })
            .collect::<String>(),
    )
}

/// An MCP server in shell whose tool is poisoned in all its parts.
fn server() -> String {
    let tools = json!([{
        "name": "greet",
        "title": poisoned("Greet"),
        "description": poisoned("Greets"),
        "inputSchema": {"type": "object", "properties": {"who": {"type": "string", "description": poisoned("whom")}}},
    }]);
    let result = json!([{"type": "text", "text": poisoned("hello")}]);
    format!(
        r#"while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) echo '{{"jsonrpc":"2.0","id":'"$id"',"result":{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"evil","version":"1"}}}}}}';;
    *'"tools/list"'*) cat <<'END' | sed "s/ID/$id/"
{{"jsonrpc":"2.0","id":ID,"result":{{"tools":{tools}}}}}
END
    ;;
    *'"tools/call"'*) cat <<'END' | sed "s/ID/$id/"
{{"jsonrpc":"2.0","id":ID,"result":{{"content":{result}}}}}
END
    ;;
  esac
done
"#
    )
}

fn project() -> Folder {
    let folder = Folder::new();
    let toml = "[store]\nurl = \"s.db\"\n[mcp.evil]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n";
    folder.write("patter.toml", toml);
    folder.write("server.sh", server());
    folder.write("dead.sh", format!("printf '%s\\n' '{}' >&2\nexit 3\n", poisoned("no license")));
    let failure = format!("printf '%s\\n' '{}' >&2; exit 3", poisoned("out of paper"));
    let description = poisoned("Prints");
    folder.write(
        "tools.gram",
        format!(
            "[office:Toolbox |\n  [echo:Command {{ description: \"{description}\", run: [\"cat\"], stdin: \"{{a}}\" }} | (a::Text)==>(::Text)],\n  \
             [fail:Command {{ description: \"{description}\", run: [\"sh\", \"-c\", \"{failure}\"] }} | ()==>(::Text)]\n]\n"
        ),
    );
    let instruction = poisoned("Use `office/echo`, `office/fail`, `evil/greet`.");
    let agent = |name: &str, model: &str| {
        format!(
            "[{name}:Agent {{\n  description: \"{}\",\n  instruction: \"{instruction}\",\n  model: \"{model}\"\n}} | `office/echo`, `office/fail`, `evil/greet`]\n",
            poisoned("Evil")
        )
    };
    folder.write("a.gram", agent("spy", "scripted/script.json"));
    folder.write("b.gram", agent("spy", "scripted/script.json").replace("Use", "Always use"));
    folder.write("sub/far.gram", agent("far", "OpenAI/gpt-4o-mini"));
    folder.write(
        &format!("sub/{}.gram", poisoned("name")),
        format!("[x:Agent {{ instruction: \"{POISON}\" }} | `{POISON}`\n"),
    );
    folder.write(&format!("wide/{}.gram", poisoned("name")), format!("( a  {{ b : \"{}\" }})", poisoned("text")));
    let call = |tool: &str, arguments: serde_json::Value| json!({"calls": [{"tool": tool, "arguments": arguments}]});
    let replies = [
        call("office/echo", json!({"a": poisoned("said")})),
        call("office/fail", json!({})),
        call("evil/greet", json!({"who": POISON})),
        call(&poisoned("none"), json!({})),
        json!({"text": poisoned("The answer:\n\n# title\n\n| a | b |\n|---|---|\n| x | y |\n\n`code` ")}),
    ];
    // Enough for a run, and for a chat that continues it.
    folder.write("script.json", json!([&replies[..], &replies[..]].concat()).to_string());
    let error = json!({"error": {"message": poisoned("overloaded")}});
    folder.write("error.json", json!(vec![error; 20]).to_string());
    let case = json!({"id": "one", "input": poisoned("hi"), "checks": [{"equals": poisoned("nothing")}]});
    folder.write("cases.jsonl", case.to_string());
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": poisoned("API"), "version": "1"},
        "servers": [{"url": "https://example.com"}],
        "paths": {
            "/a": {"get": {"operationId": "getA", "summary": poisoned("Gets"), "responses": {"200": {"description": "ok"}}}},
            "/b": {"get": {"operationId": poisoned("b"), "requestBody": {"content": {POISON: {}}}, "responses": {}}},
        },
    });
    folder.write("api.json", document.to_string());
    folder
}

/// Returns what is wrong with the bytes that a terminal received, if anything is.
fn danger(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = &*text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\u{1b}' => {
                let Some(sequence) = rest.strip_prefix('[') else { return Some(format!("ESC {:?}", rest.get(..9))) };
                let end = sequence.find(|c: char| !"0123456789;?".contains(c))?;
                if sequence[..end].contains("666") {
                    return Some(format!("CSI {}", &sequence[..end]));
                }
                rest = &sequence[end..];
            }
            '\n' | '\r' | '\t' | '\u{8}' => {}
            '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => return Some(format!("{c:?}")),
            c if c.is_control() => return Some(format!("{c:?}")),
            _ => {}
        }
    }
    None
}

/// A command of the walk: its arguments, and a text that it shows.
type Step = (Vec<String>, &'static str);

/// The escape character as it is shown.
const SHOWN: &str = "\\u{1b}]0;pwned";
/// What is left where control characters are removed.
const REORDERING: &str = "\\u{202e}\\u{2066}\\u{200b}";

fn walk() -> Vec<Step> {
    let name = poisoned("name");
    let bad = format!("sub/{name}.gram");
    let odd = format!("wide/{name}.gram");
    let recorded = poisoned("rec");
    let step = |arguments: &[&str], shown: &'static str| (arguments.iter().map(|&one| one.to_owned()).collect(), shown);
    vec![
        step(&["parse", &bad], MARK),
        step(&["parse", &odd], ""),
        step(&["parse", &odd, "--format", "sexp"], ""),
        step(&["parse", &odd, "--format", "json"], MARK),
        step(&["parse", &poisoned("none")], SHOWN),
        step(&["fmt", "--diff", "wide"], SHOWN),
        step(&["fmt", "--check", "wide"], SHOWN),
        step(&["fmt", "sub"], MARK),
        step(&["check"], MARK),
        step(&["check", &bad], MARK),
        step(&["check", "a.gram", "--bind"], ""),
        step(&["check", "--format", "json"], MARK),
        step(&["check", "--format", "sarif"], ""),
        step(&["explain", &poisoned("P101")], SHOWN),
        step(&["show", "a.gram"], SHOWN),
        step(&["show", "a.gram", "--format", "json"], MARK),
        step(&["show", &bad], SHOWN),
        step(&["graph", "a.gram"], MARK),
        step(&["graph", "--format", "mermaid"], ""),
        step(&["graph", "--format", "dot"], ""),
        step(&["graph", "a.gram", "--format", "json"], MARK),
        step(&["graph", "--agent", &poisoned("x")], SHOWN),
        step(&["query", "(a:Agent)-[:calls]->(t)", "--paths"], ""),
        step(&["query", "(a:Agent { description: _ })", "a.gram", "--format", "json"], MARK),
        step(&["query", "(a:Agent { description: _ })", "a.gram", "--format", "gram"], MARK),
        step(&["query", "(f:Finding)", "--format", "mermaid"], ""),
        step(&["query", &poisoned("(a:")], "\u{241b}]0;pwned"),
        step(&["query", "--schema"], ""),
        step(&["edit", "(a:Agent { name: 'spy' })", "a.gram", "--set", "maxTurns=3"], SHOWN),
        step(&["edit", "(a:Agent)", "a.gram", "--set", &poisoned("modle=x")], ""),
        step(&["schema", "a.gram"], ""),
        step(&["schema", "tools.gram", "office/echo"], ""),
        step(&["diff", "a.gram", "b.gram"], SHOWN),
        step(&["run", "a.gram", &poisoned("hi"), "--record", &recorded], SHOWN),
        step(&["run", "a.gram", &poisoned("hi"), "-v", "--store", "none"], SHOWN),
        step(&["run", "a.gram", "hi", "--format", "json", "--store", "none"], MARK),
        step(&["run", "a.gram", "hi", "--format", "stream-json", "--store", "none"], MARK),
        step(&["run", "a.gram", &poisoned("hi"), "--model", "scripted/error.json"], SHOWN),
        step(&["run", "a.gram", "hi", "--model", &format!("{}/y", poisoned("x"))], REORDERING),
        step(&["run", "a.gram", "hi", "--ask", "office/*", "--yes", "--store", "none"], SHOWN),
        step(&["run", "a.gram", "hi", "--allow", &poisoned("x")], SHOWN),
        step(&["serve", "a.gram", "--allow", &poisoned("x")], SHOWN),
        step(&["serve", "a.gram", "--listen", "192.0.2.1:1", "--token", "0123456789abcdef"], "cannot listen"),
        step(&["studio", "a.gram", "--listen", "192.0.2.1:1", "--token", "0123456789abcdef"], "cannot listen"),
        step(&["run", &format!("a.gram#{POISON}"), "hi"], SHOWN),
        step(&["run", "sub/far.gram", "hi"], ""),
        step(&["resume", &poisoned("x")], SHOWN),
        step(&["eval", "a.gram", "-c", "cases.jsonl"], "]0;pwned"),
        step(&["ab", "a.gram", "-c", "cases.jsonl", "--arm", "a", "--arm", "b=agent:b.gram"], ""),
        step(&["experiments"], ""),
        step(&["experiments", "latest"], ""),
        step(&["experiments", "latest", "--format", "junit"], MARK),
        step(&["experiments", &poisoned("x")], SHOWN),
        step(&["replay", &recorded], SHOWN),
        step(&["replay", &recorded, "--agent", "b.gram", "--all"], SHOWN),
        step(&["replay", &poisoned("none")], SHOWN),
        step(&["sessions"], REORDERING),
        step(&["sessions", "show", "latest"], SHOWN),
        step(&["sessions", "show", "latest", "--full"], SHOWN),
        step(&["sessions", "export", "latest"], REORDERING),
        step(&["sessions", "export", "latest", "--format", "gram"], MARK),
        step(&["sessions", "export", "latest", "--format", "recording"], MARK),
        step(&["sessions", "fork", "latest"], ""),
        step(&["sessions", "backup", &poisoned("backup.db")], SHOWN),
        step(&["sessions", "rm", &poisoned("x")], SHOWN),
        step(&["store"], ""),
        step(&["fleet"], ""),
        step(&["store", "prune", "--older-than", "1ms"], ""),
        step(&["store", "copy", &poisoned("copy.db")], SHOWN),
        step(&["tools"], SHOWN),
        step(&["tools", "evil/greet", "--format", "json"], MARK),
        step(&["tools", &poisoned("x")], SHOWN),
        step(&["why", "evil/greet"], SHOWN),
        step(&["why", "office/echo", "--agent", "a.gram"], SHOWN),
        step(&["why", &poisoned("x")], SHOWN),
        step(&["call", "--yes", "office/echo", &json!({"a": poisoned("said")}).to_string()], SHOWN),
        step(&["call", "--yes", "office/echo", &json!({"a": poisoned("said")}).to_string(), "--format", "json"], MARK),
        step(&["call", "--yes", "office/echo", &json!({"a": "x", POISON: 1}).to_string()], SHOWN),
        step(&["call", "--yes", "office/fail"], SHOWN),
        step(&["call", "--yes", "evil/greet"], SHOWN),
        step(&["call", &poisoned("x")], SHOWN),
        step(&["trust", "--list"], SHOWN),
        step(&["trust"], SHOWN),
        step(&["trust", "--folders"], ""),
        step(&["trust", &poisoned("x")], SHOWN),
        step(&["lock"], ""),
        step(&["lock", "--check"], ""),
        step(&["doctor", "--offline"], ""),
        step(&["models"], ""),
        step(&["mcp", "login", &poisoned("x")], ""),
        step(&["mcp", "logout", &poisoned("x")], ""),
        step(&["import", "mcp", "evil"], SHOWN),
        step(&["import", "mcp", &poisoned("x")], SHOWN),
        step(&["import", "openapi", "api.json"], REORDERING),
        step(&["import", "openapi", &poisoned("x")], SHOWN),
        step(&["new", &poisoned("made")], SHOWN),
        step(&["completions", &poisoned("x")], REORDERING),
        step(&["man", &poisoned("x")], REORDERING),
        step(&[&poisoned("--x")], REORDERING),
        step(&[&poisoned("x")], REORDERING),
    ]
}

/// Runs a command at a terminal, and returns what the terminal received.
fn at_terminal(folder: &Folder, arguments: &[String]) -> Vec<u8> {
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut terminal = Terminal::start(folder, &arguments, 200);
    terminal.ends();
    terminal.received().to_vec()
}

#[test]
fn no_command_passes_escape_sequences_to_a_terminal() {
    let folder = project();
    let steps = walk();
    let help = folder.run(&["--help"]);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let listed = listed.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let listed: BTreeSet<_> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    // The conversation has a test of its own, and the help of commands is about the program only.
    let walked = steps.iter().map(|(arguments, _)| arguments[0].as_str()).chain(["chat", "help"]);
    let walked: BTreeSet<_> = walked.filter(|name| name.chars().all(char::is_alphanumeric)).collect();
    assert_eq!(walked, listed, "each command of the program is walked: add it to `walk`");
    let mut failures = String::new();
    for (arguments, shown) in &steps {
        let bytes = at_terminal(&folder, arguments);
        let text = String::from_utf8_lossy(&bytes);
        if let Some(danger) = danger(&bytes) {
            failures += &format!("{arguments:?} passes {danger}\n{text:?}\n");
        }
        if !text.contains(shown) {
            failures += &format!("{arguments:?} does not show {shown:?}\n{text}\n");
        }
    }
    let mut terminal = Terminal::start(&folder, &["call", "office/echo", &json!({"a": POISON}).to_string()], 200);
    terminal.shows("? [y/N]").keys("n\r").ends();
    assert_eq!(danger(terminal.received()), None);
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn failing_servers_cannot_control_a_terminal() {
    let folder = project();
    folder.write("patter.toml", "[store]\nurl = \"s.db\"\n[mcp.evil]\ncommand = \"sh\"\nargs = [\"dead.sh\"]\n");
    let table: [&[&str]; 9] = [
        &["tools"],
        &["why", "evil/greet"],
        &["call", "evil/greet"],
        &["check", "--bind", "a.gram"],
        &["lock"],
        &["doctor", "--offline"],
        &["import", "mcp", "evil"],
        &["run", "a.gram", "hi"],
        &["chat", "a.gram"],
    ];
    for arguments in table {
        let bytes = at_terminal(&folder, &arguments.iter().map(|&one| one.to_owned()).collect::<Vec<_>>());
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(danger(&bytes), None, "{arguments:?}\n{text:?}");
        assert!(text.contains(SHOWN), "{arguments:?} does not show {SHOWN:?}\n{text}");
    }
}

#[test]
fn no_slash_command_passes_escape_sequences_to_a_terminal() {
    let folder = project();
    // What is typed, and with which text the next line starts.
    let undone = escaped(&poisoned("hi"));
    let commands = [
        ("/tools", ""),
        ("/why evil/greet", ""),
        ("/messages", ""),
        ("/cost", ""),
        ("/model", ""),
        ("/model scripted/error.json", ""),
        ("hi", ""),
        ("/undo", "hi"),
        ("\u{3}", ""),
        ("/undo", "go"),
        ("\u{3}", ""),
        ("/undo", undone.as_str()),
        ("\u{3}", ""),
        ("/fork", ""),
        ("/save talk.md", ""),
        ("/edit", ""),
        ("/help", ""),
        ("/clear", ""),
    ];
    let help = folder.run_with(&["chat", "a.gram"], "/help\n");
    let listed: BTreeSet<_> = help.split_whitespace().filter(|word| word.starts_with('/') && word.len() > 1).collect();
    let used = commands
        .iter()
        .map(|(line, _)| *line)
        .chain(["/quit"])
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| word.starts_with('/'));
    assert_eq!(used.collect::<BTreeSet<_>>(), listed, "each slash command is used here");

    // A session with a poisoned title, which the chat continues.
    let message = poisoned("hi");
    folder.run(&["run", "a.gram", &message]);
    let editor = folder.write("editor.sh", "#!/bin/sh\nexit 3\n");
    let editor = format!("sh {}", editor.display());
    let arguments = ["chat", "a.gram", "--continue", "--ask", "office/*"];
    let mut terminal =
        Terminal::start_with(&folder, &arguments, 200, &[("EDITOR", &editor), ("PATH", "/usr/bin:/bin")]);
    terminal.prompts("").keys("go\r").shows("always in this chat:").keys("y").shows("wants to call office/fail");
    // A key that is pressed before the question does not answer it.
    terminal.asks("always in this chat:").keys("y").shows("code");
    terminal.prompts("");
    for (command, next) in commands {
        match command {
            "\u{3}" => terminal.keys(command).prompts(next),
            command => terminal.keys(command).prompts(command).keys("\r").prompts(next),
        };
    }
    assert_eq!(terminal.keys("/quit\r").ends(), Some(0));
    let bytes = terminal.received();
    let text = String::from_utf8_lossy(bytes);
    assert_eq!(danger(bytes), None, "{text:?}");
    assert!(text.contains(SHOWN), "{text}");
}

/// What a pipe gets is what was said, whatever it contains.
#[test]
fn pipes_get_every_byte() {
    let folder = project();
    let said = poisoned("said") + "\n";
    let stdout = |arguments: &[&str]| String::from_utf8(folder.output(arguments, "").stdout).unwrap();
    assert_eq!(stdout(&["call", "--yes", "office/echo", &json!({"a": said}).to_string()]), said);
    assert_eq!(stdout(&["call", "--yes", "evil/greet"]), poisoned("hello") + "\n");
    assert_eq!(stdout(&["fmt", "--check", "wide"]), format!("wide/{}.gram\n", poisoned("name")));
    assert!(stdout(&["fmt", "--diff", "wide"]).contains(&poisoned("text")));
    assert!(stdout(&["run", "a.gram", "hi", "--store", "none"]).ends_with(&format!("`code` {POISON}{MARK}\n")));
    for arguments in [&["tools", "evil/greet"][..], &["why", "evil/greet"], &["import", "mcp", "evil"]] {
        assert!(stdout(arguments).contains(&poisoned("Greets")), "{arguments:?}\n{}", stdout(arguments));
    }
    assert!(stdout(&["show", "a.gram"]).contains(POISON));
    let output = folder.output(&["call", "--yes", "office/fail"], "");
    assert!(String::from_utf8(output.stderr).unwrap().contains(&poisoned("out of paper")));
    // With styles, as for `less -R`, it is the same.
    let colored = stdout(&["--color", "always", "call", "--yes", "office/echo", &json!({"a": said}).to_string()]);
    assert_eq!(colored, said);
}
