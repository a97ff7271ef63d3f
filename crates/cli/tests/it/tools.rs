//! `patter tools`, `why`, `call` and `lock`.

use crate::folder::Folder;
use crate::terminal::Terminal;
use serde_json::{Value as Json, json};

/// A project with agents, its own toolbox and one of its organisation, and rules.
fn project() -> Folder {
    let folder = Folder::new();
    folder.write(
        "patter.toml",
        "[permissions]\n\
         deny = [\"office/shout when text matches '*secret*'\"]\n\
         [org]\nname = \"acme\"\ntools = [\"shared\"]\n",
    );
    folder.write(".gitignore", "shared\n");
    folder.write(
        "agent.gram",
        "[greeter:Agent { instruction: \"Greet with `sayHello`, shout with `shout`.\", model: \"demo\", ask: \"office/*\" } |
  [sayHello:Tool { description: \"Returns a greeting\" } | (personName::Text)==>(::Text)],
  shout
]
[other:Agent { instruction: \"Compute with `calculator`.\", model: \"demo\" } |
  [calculator:Tool { description: \"Computes\" } | (numbers::Array { elementType: \"Int\" })==>(::Int)]
]
",
    );
    folder.write(
        "tools.gram",
        "[office:Toolbox |
  [sayHello:Command { description: \"Greets\", run: [\"echo\", \"Hi, {personName}!\"], effect: \"pure\" } | (personName::Text)==>(::Text)],
  [shout:Command { description: \"Shouts\", run: [\"tr\", \"a-z\", \"A-Z\"], stdin: \"{text}\" } | (text::Text)==>(::Text)],
  [lies:Command { description: \"Lies\", run: [\"echo\", \"seven\"], result: \"text\", effect: \"pure\" } | ()==>(::Any { enum: [\"eight\"] })],
  [sleeps:Command { description: \"Sleeps\", run: [\"sleep\", \"60\"], timeout: 100ms, effect: \"pure\" } | ()==>(::Text)],
  [fails:Command { description: \"Fails\", run: [\"ls\", \"/no/such/folder\"], effect: \"pure\" } | ()==>(::Text)]
]
",
    );
    folder.write(
        "shared/mail.gram",
        "[mail:Toolbox | [send:Command { description: \"Sends mail\", run: [\"true\"], sealed: true } | (to::Text)==>(::Text)]]\n",
    );
    folder
}

fn json(folder: &Folder, arguments: &[&str]) -> Json {
    serde_json::from_slice(&folder.output(arguments, "").stdout).unwrap()
}

#[test]
fn tools_are_found_by_their_signature() {
    let folder = project();
    let found = |arguments: &[&str]| folder.run(&[&["tools", "--layer", "project"], arguments].concat());
    insta::assert_snapshot!("accepts_text", found(&["--accepts", "Text"]));
    insta::assert_snapshot!("accepts_and_returns", found(&["--accepts", "Text", "--returns", "Text"]));
    insta::assert_snapshot!("after_tool", found(&["--after", "office/fails"]));
    insta::assert_snapshot!("no_such_signature", found(&["--accepts", "Bool", "--accepts", "Int"]));
    insta::assert_snapshot!("unknown_type", found(&["--accepts", "Txt"]));
    insta::assert_snapshot!("after_unknown", found(&["--after", "office/shot"]));
    let tools = json(&folder, &["tools", "--returns", "Text", "--layer", "project", "--format", "json"]);
    // `office/lies` returns one of some texts.
    assert_eq!(tools["tools"].as_array().unwrap().len(), 5);
    assert_eq!(tools["toolkits"], json!([]));
}

#[test]
fn tools_of_all_layers_are_listed() {
    let folder = project();
    insta::assert_snapshot!("project", folder.run(&["tools", "--layer", "project"]));
    insta::assert_snapshot!("org", folder.run(&["tools", "--layer", "org"]));
    insta::assert_snapshot!("internal", folder.run(&["tools", "--layer", "internal"]));
    assert!(folder.run(&["tools", "nothingLikeIt"]).starts_with("exit 1"));
    let tools = json(&folder, &["tools", "shout", "--format", "json"]);
    assert_eq!(tools["version"], 1);
    let shout = &tools["tools"][0];
    assert_eq!(
        (&shout["name"], &shout["kind"], &shout["effect"]),
        (&json!("office/shout"), &json!("command"), &json!("writes"))
    );
    assert_eq!(shout["input"]["required"], json!(["text"]));
}

#[test]
fn rules_without_effect_are_reported() {
    let folder = project();
    folder.write("patter.toml", "[permissions]\ndeny = [\"fecth\", \"fetch when urll is 'x'\", \"fs/*\"]\n");
    folder.write("agent.gram", "[a:Agent { instruction: \"Use `sayHello`.\", model: \"demo\", deny: [\"nosuch/*\", \"sayHello\"] } | sayHello]\n");
    let printed = folder.run(&["check", "--bind"]);
    assert!(
        printed.starts_with("exit 1") && printed.contains("error[P046]: `deny nosuch/*` matches no tool"),
        "{printed}"
    );
    assert!(printed.contains("patter.toml:2:10: `deny fecth` matches no tool"), "{printed}");
    assert!(printed.contains("did you mean `fetch`?"), "{printed}");
    assert!(printed.contains("has the parameter `urll`") && printed.contains("did you mean `url`?"), "{printed}");
    assert!(!printed.contains("fs/*`"), "{printed}");
}

#[test]
fn overrides_are_reported() {
    let folder = project();
    folder.write(
        "ours.gram",
        "[calculator:Command { description: 'Ours', run: ['bc'], stdin: '{a}' } | (a::Text)==>(::Text)]\n",
    );
    let shown = folder.run(&["tools", "calculator"]);
    assert!(shown.contains("Ours (overrides the internal layer)"), "{shown}");
    insta::assert_snapshot!(folder.run(&["why", "calculator"]));
}

#[test]
fn results_are_exact_in_a_pipe() {
    let folder = Folder::new();
    folder.write(
        "t.gram",
        "[t:Command { description: 'Control characters', run: ['printf', 'a\\\\007\\\\013\\\\033[1mb\\\\177'] } | ()==>(::Text)]\n",
    );
    assert_eq!(folder.output(&["call", "t", "--yes", "--tools", "t.gram"], "").stdout, b"a\x07\x0b\x1b[1mb\x7f\n");
    let mut terminal = Terminal::start(&folder, &["call", "t", "--yes", "--tools", "t.gram"], 80);
    terminal.shows("a\\u{7}\\u{b}\\u{1b}[1mb\\u{7f}");
    assert_eq!(terminal.ends(), Some(0));
}

#[test]
fn tables_are_not_broken_within_words_at_a_terminal() {
    let folder = Folder::new();
    for columns in [60, 80] {
        let mut terminal = Terminal::start(&folder, &["tools", "fs"], columns);
        assert_eq!(terminal.ends(), Some(0));
        let whole = folder.run(&["tools", "fs"]);
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let screen = words(&terminal.screen());
        let printed = words(whole.split("--- stdout\n").nth(1).unwrap().split("--- stderr").next().unwrap());
        assert_eq!(screen, printed, "{}", terminal.screen());
    }
}

/// Each server leaves a file when it is started.
#[test]
fn only_servers_that_an_agent_needs_are_started() {
    let folder = Folder::new();
    let server = |name: &str| format!("[mcp.{name}]\ncommand = 'sh'\nargs = ['-c', 'touch {name}-started']\n");
    folder.write("patter.toml", format!("{}{}", server("files"), server("web")));
    folder.write("none.gram", "[a:Agent { instruction: 'Use `sayHello`.', model: 'demo' } | sayHello]\n");
    folder.write("one.gram", "[b:Agent { instruction: 'Use `files/read`.', model: 'demo' } | `files/read`]\n");
    folder.write("any.gram", "[c:Agent { instruction: 'Use `lookAround`.', model: 'demo' } | lookAround]\n");
    for (arguments, expected) in [
        (&["run", "none.gram", "I am Ada"][..], [false, false]),
        (&["call", "sayHello", "{}"], [false, false]),
        (&["why", "sayHello"], [false, false]),
        (&["run", "one.gram", "hi"], [true, false]),
        (&["call", "web/look", "{}"], [false, true]),
        (&["run", "any.gram", "hi"], [true, true]),
        (&["tools"], [true, true]),
        (&["tools", "--no-mcp"], [false, false]),
    ] {
        let shown = folder.run(arguments);
        let started =
            ["files", "web"].map(|name| std::fs::remove_file(folder.path().join(format!("{name}-started"))).is_ok());
        assert_eq!(started, expected, "{arguments:?}\n{shown}");
    }
}

#[test]
fn tools_of_a_server_that_was_not_started() {
    let folder = Folder::new();
    folder.write("a.gram", "[a:Agent { instruction: 'Use `files/read`.', model: 'demo' } | `files/read`]\n");
    folder.write("b.gram", "[b:Agent { instruction: 'Use `lookAround`.', model: 'demo' } | lookAround]\n");
    folder.write("patter.toml", "[mcp.files]\ncommand = '/no/such/program'\n[mcp.web]\ncommand = '/no/such/program'\n");
    let one = "help: it may belong to the MCP server `files`, which was not started";
    let all = "help: it may belong to one of the MCP servers `files`, `web`, which were not started";
    for (arguments, expected) in [
        (&["run", "a.gram", "hi", "--no-mcp"][..], one),
        (&["run", "a.gram", "hi"], one),
        (&["run", "b.gram", "hi", "--no-mcp"], all),
        (&["check", "a.gram", "--bind", "--no-mcp"], one),
    ] {
        let shown = folder.run(arguments);
        assert!(shown.starts_with("exit 1") && shown.contains(expected), "{arguments:?}\n{shown}");
        assert!(!shown.contains("toolbox") && !shown.contains("os error"), "{arguments:?}\n{shown}");
    }
}

#[test]
fn sealed_tools_are_not_overridden() {
    let folder = project();
    folder.write(
        "ours.gram",
        "[`acme/mail`:Toolbox | [send:Command { description: 'Ours', run: ['true'] } | (to::Text)==>(::Text)]]\n",
    );
    insta::assert_snapshot!(folder.run(&["tools"]));
}

#[test]
fn why_explains_names() {
    let folder = project();
    insta::assert_snapshot!("why_a_bare_name", folder.run(&["why", "sayHello"]));
    insta::assert_snapshot!("why_for_an_agent", folder.run(&["why", "shout", "--agent", "agent.gram#greeter"]));
    insta::assert_snapshot!("why_not_compatible", folder.run(&["why", "calculator", "--agent", "agent.gram#other"]));
    insta::assert_snapshot!("why_not_declared", folder.run(&["why", "fs/readFile", "--agent", "agent.gram#other"]));
    insta::assert_snapshot!("why_nothing", folder.run(&["why", "sayHelo"]));
    insta::assert_snapshot!("why_several_agents", folder.run(&["why", "shout", "--agent", "agent.gram"]));
}

#[test]
fn calls_and_their_exit_codes() {
    let folder = project();
    let check = |arguments: &[&str], code: i32, expected: &str| {
        let shown = folder.run(&[&["call"], arguments].concat());
        assert!(shown.starts_with(&format!("exit {code}\n")) && shown.contains(expected), "{arguments:?}\n{shown}");
    };
    check(&["sayHello", r#"{"personName": "Ada; $(date)"}"#], 0, "Hi, Ada; $(date)!\n");
    check(&["calculator", r#"{"expression": "0.1+0.2"}"#, "--format", "json"], 0, r#""value": "0.3""#);
    check(&["fails"], 1, "No such file or directory");
    check(&["office/nothing"], 3, "there is no tool `office/nothing`");
    check(&["calclator"], 3, "did you mean `calculator`?");
    check(&["shout", r#"{"text": "hi"}"#], 4, "approve it with --yes");
    check(&["shout", r#"{"text": "hi"}"#, "--yes"], 0, "HI\n");
    check(
        &["shout", r#"{"text": "a secret"}"#, "--yes"],
        4,
        "`deny office/shout when text matches \"*secret*\"` in `patter.toml`",
    );
    check(&["sayHello", r#"{"personName": "x"}"#, "--deny", "office/*"], 4, "`deny office/*` in --deny");
    check(&["sayHello", "{}"], 5, "`personName`: expected a Text, found nothing");
    check(&["lies"], 6, "returned a result that does not match its declaration");
    check(&["sleeps"], 7, "did not finish within 100 ms");
    check(&["sayHello", "{"], 5, "the arguments are not valid JSON");
    check(&["sayHello", "{", "--format", "json"], 5, r#""kind": "invalid_input""#);
    check(
        &["calculator", r#"{"expression": "1", "expresion": "2"}"#],
        0,
        "warning: `calculator` has no parameter `expresion`; did you mean `expression`?",
    );
    check(&["sayHello", "{}", "--allow", "a//b"], 2, "`a//b` is not a tool name or pattern");
    let piped = folder.run_with(&["call", "sayHello", "-"], r#"{"personName": "Grace"}"#);
    assert!(piped.contains("Hi, Grace!"), "{piped}");
    let error = json(&folder, &["call", "fails", "--format", "json"]);
    assert_eq!(error["error"]["kind"], "failed");
    assert!(error["error"]["detail"].as_str().unwrap().contains("No such file"), "{error}");
}

#[test]
fn tools_of_other_files() {
    let folder = Folder::new();
    folder.write("my.gram", "[my:Toolbox | [id:Command { description: 'Echoes', run: ['cat'], stdin: '{a}', effect: 'pure' } | (a::Text)==>(::Text)]]\n");
    let shown = folder.run(&["call", "my/id", r#"{"a": "x"}"#, "--tools", "my.gram"]);
    assert!(shown.contains("--- stdout\nx\n"), "{shown}");
    assert!(folder.run(&["call", "my/id"]).starts_with("exit 3"));
}

#[test]
fn lock_records_bindings() {
    let folder = project();
    let bad = folder.run(&["lock"]);
    assert!(bad.starts_with("exit 1") && bad.contains("patter.lock was not written"), "{bad}");
    insta::assert_snapshot!("check_bind", folder.run(&["check", "--bind"]));
    let agent = folder.read("agent.gram");
    folder.write("agent.gram", agent.split("[other").next().unwrap());
    insta::assert_snapshot!("lock_is_missing", folder.run(&["check", "--locked"]));
    assert!(folder.run(&["lock"]).contains("wrote patter.lock with 1 agent and 2 tools"));
    insta::assert_snapshot!("lock", folder.read("patter.lock"));
    assert!(folder.run(&["lock"]).contains("up to date"));
    assert!(folder.run(&["check", "--locked"]).starts_with("exit 0"));
    // Moving a tool to another line changes nothing; another program, schema or layer does.
    let tools = folder.read("tools.gram");
    folder.write("tools.gram", format!("// moved\n{tools}"));
    assert!(folder.run(&["check", "--locked"]).starts_with("exit 0"));
    folder.write("tools.gram", tools.replace("\"tr\"", "\"gtr\"").replace("[sayHello:", "[sayHi:"));
    insta::assert_snapshot!("lock_has_drifted", folder.run(&["check", "--locked"]));
    let report = json(&folder, &["check", "--locked", "--format", "json"]);
    assert_eq!((report["problems"].as_array().unwrap().len(), &report["summary"]["errors"]), (1, &json!(1)));
    folder.write("patter.lock", "version = 9\n");
    assert!(folder.run(&["check", "--locked"]).contains("version 9"));
}

/// A signal also ends the processes that the program started.
#[test]
fn a_signal_ends_the_children_too() {
    let folder = Folder::new();
    folder.write("patter.toml", "");
    let script = "echo $$ > pid; exec sleep 600";
    folder.write(
        "t.gram",
        format!("[t:Toolbox | [waits:Command {{ description: 'Waits', run: ['sh', '-c', '{script}'], effect: 'pure', timeout: 10m }} | ()==>(::Text)]]\n"),
    );
    for (signal, code) in [("-TERM", 143), ("-INT", 130), ("-HUP", 129)] {
        let mut child = folder.command().env("PATH", "/usr/bin:/bin").args(["call", "t/waits"]).spawn().unwrap();
        let pid =
            wait_for(|| std::fs::read_to_string(folder.path().join("pid")).ok().filter(|pid| pid.ends_with('\n')));
        let kill =
            |arguments: &[&str]| std::process::Command::new("kill").args(arguments).output().unwrap().status.success();
        assert!(kill(&[signal, &child.id().to_string()]));
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        wait_for(|| (!kill(&["-0", pid.trim()])).then_some(()));
        std::fs::remove_file(folder.path().join("pid")).unwrap();
    }
}

/// Polls until there is a value, for up to 30 seconds.
fn wait_for<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(found) = poll() {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("timed out");
}

#[test]
fn servers_that_do_not_start_are_reported() {
    let folder = Folder::new();
    folder.write("patter.toml", "[mcp.broken]\ncommand = \"/no/such/program\"\n");
    let shown = folder.run(&["tools", "sayHello"]);
    assert!(shown.starts_with("exit 1") && shown.contains("so its tools are missing"), "{shown}");
    assert!(shown.contains("sayHello"), "the other tools are listed");
    assert!(folder.run(&["tools", "sayHello", "--no-mcp"]).starts_with("exit 0"));
    let shown = folder.run(&["import", "mcp", "brokn"]);
    assert!(shown.contains("did you mean `broken`?"), "{shown}");
    folder.write("patter.toml", "[mcp.bad]\n");
    assert!(folder.run(&["tools"]).contains("neither `command` nor `url`"));
}

/// A misconfigured server is reported when it is needed, and only then.
#[test]
fn misconfigured_servers_are_reported() {
    let folder = Folder::new();
    let needs = "the MCP server `x` needs the variable `NO_SUCH_VARIABLE`, which is not set";
    let files = [
        ("[mcp.x]\ncommand = 'true'\nenv = {A = '${NO_SUCH_VARIABLE}'}\n", needs),
        ("mcp-servers = 'none.json'\n", "cannot read `none.json`"),
    ];
    for (text, problem) in files {
        folder.write("patter.toml", text);
        let shown = folder.run(&["tools", "sayHello"]);
        assert!(shown.starts_with("exit 1") && shown.contains(problem) && shown.contains("greeting"), "{shown}");
        let shown = folder.run(&["tools", "sayHello", "--no-mcp"]);
        assert!(shown.starts_with("exit 0") && !shown.contains(problem), "{shown}");
        let shown = folder.run(&["call", "sayHello", "{\"personName\": \"Ada\"}", "--no-mcp"]);
        assert!(shown.starts_with("exit 0") && !shown.contains(problem), "{shown}");
        let shown = folder.run(&["call", "x/anything", "{}"]);
        assert!(shown.starts_with("exit 3") && shown.contains(problem), "{shown}");
    }
    folder.write("patter.toml", files[0].0);
    let shown = folder.run(&["import", "mcp", "x"]);
    assert!(shown.starts_with("exit 1") && shown.contains(needs) && shown.contains("set it, or write"), "{shown}");
}

#[test]
fn unreadable_env_files_are_reported() {
    let folder = project();
    let call = ["call", "office/shout", "{\"text\": \"a\"}", "--yes"];
    folder.write(".env/x", "");
    let shown = folder.run(&call);
    assert!(shown.starts_with("exit 0") && shown.contains("warning: cannot read `.env`: it is a folder;"), "{shown}");
    std::fs::remove_dir_all(folder.path().join(".env")).unwrap();
    folder.write(".env", b"A=\xff");
    let shown = folder.run(&call);
    assert!(
        shown.starts_with("exit 0") && shown.contains("warning: cannot read `.env`: it is not UTF-8 text;"),
        "{shown}"
    );
}

#[test]
fn overrides_that_are_used_are_reported_once() {
    let folder = Folder::new();
    folder.write("patter.toml", "");
    folder.write(
        "tools.gram",
        "[fs:Toolbox | [readFile:Command { description: 'Reads', run: ['echo', 'ours {path}'], effect: 'pure' } | (path::Text)==>(::Text)]]\n",
    );
    let agent = "{ instruction: 'Use `fs/readFile`.', model: 'demo' } | `fs/readFile`]";
    folder.write("a.gram", format!("[a:Agent {{ instruction: 'Use `fs/readFile` or `b`.', model: 'demo' }} | `fs/readFile`, [b:Agent {agent}]\n[other:Agent {{ instruction: 'Use `sayHello`.', model: 'demo' }} | sayHello]\n"));
    let note = "note: `fs/readFile` of the project layer (tools.gram:1:15) overrides that of the internal layer";
    let is_reported_once = |output: &str| assert_eq!(output.matches(note).count(), 1, "{output}");
    is_reported_once(&folder.run(&["call", "fs/readFile", r#"{"path": "x"}"#]));
    is_reported_once(&folder.run(&["run", "a.gram#a", "Hello"]));
    is_reported_once(&folder.run(&["check", "--bind"]));
    assert!(!folder.run(&["run", "a.gram#other", "Hello"]).contains("note:"));
    assert!(!folder.run(&["call", "sayHello"]).contains("note:"));
    let json = |arguments: &[&str]| -> Vec<Json> {
        let output = folder.output(arguments, "");
        let text = String::from_utf8(output.stdout).unwrap();
        serde_json::Deserializer::from_str(&text).into_iter().map(Result::unwrap).collect()
    };
    let mut expected = serde_json::json!({
        "tool": "fs/readFile",
        "layer": "project",
        "source": "tools.gram:1:15",
        "overridden_layer": "internal",
        "overridden_source": "built in",
    });
    for arguments in [
        &["call", "fs/readFile", r#"{"path": "x"}"#, "--format", "json"][..],
        &["run", "a.gram#a", "Hello", "--format", "json"],
        &["check", "--bind", "--format", "json"],
    ] {
        assert_eq!(json(arguments)[0]["overrides"], serde_json::json!([expected]), "{arguments:?}");
    }
    expected["event"] = "tool_overridden".into();
    let events = json(&["run", "a.gram#a", "Hello", "--format", "stream-json"]);
    assert_eq!((events[0]["event"].as_str(), &events[1]), (Some("session"), &expected));
    assert_eq!(json(&["call", "sayHello", "--format", "json"])[0].get("overrides"), None);
}
