//! Replies that are not whole, and connections that break, as people and machines see them.

use crate::folder::Folder;
use crate::terminal::Terminal;
use serde_json::{Value as Json, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// What a provider does with a request.
#[derive(Clone, Copy)]
enum Answer {
    /// It sends the text.
    Whole(&'static str),
    /// It sends the text and closes the connection.
    Broken(&'static str),
    /// It sends the text, and nothing more until the client closes the connection.
    Stuck(&'static str),
}

/// Starts a provider with the API of OpenAI that gives these answers, one after the other, and returns its address.
fn provider(answers: &'static [Answer]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (stream, answer) in listener.incoming().zip(answers) {
            // A client that is gone is no concern of the provider.
            let _ = answer_request(stream.unwrap(), *answer);
        }
    });
    format!("http://{address}")
}

fn answer_request(mut stream: TcpStream, answer: Answer) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    // The request ends with the end of its JSON.
    while !request.ends_with(b"}") {
        let read = stream.read(&mut piece)?;
        request.extend_from_slice(&piece[..read]);
    }
    let (Answer::Whole(text) | Answer::Broken(text) | Answer::Stuck(text)) = answer;
    let delta = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n")?;
    let mut chunk = |text: String| write!(stream, "{:x}\r\n{text}\r\n", text.len());
    chunk(format!("data: {delta}\n\n"))?;
    match answer {
        Answer::Whole(_) => {
            let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
            chunk(format!("data: {end}\n\ndata: [DONE]\n\n"))?;
            chunk(String::new())
        }
        Answer::Broken(_) => Ok(()),
        Answer::Stuck(_) => {
            while stream.read(&mut piece)? > 0 {}
            Ok(())
        }
    }
}

fn project(base: &str) -> Folder {
    let folder = Folder::new();
    folder.write("patter.toml", format!("[store]\nurl = \"s.db\"\n[models.OpenAI]\nbase-url = \"{base}\"\n"));
    folder.write("a.gram", "[poet:Agent { instruction: \"Write.\", model: \"OpenAI/gpt-4o-mini\" }]\n");
    folder
}

fn scripted(script: &Json) -> Folder {
    let folder = Folder::new();
    folder.write("patter.toml", "[store]\nurl = \"s.db\"\n");
    folder.write("a.gram", "[poet:Agent { instruction: \"Write.\", model: \"scripted/script.json\" }]\n");
    folder.write(
        "count.gram",
        "[counter:Agent { instruction: \"Count.\", model: \"scripted/script.json\", returns: \"Int\" }]\n",
    );
    folder.write("script.json", script.to_string());
    folder
}

fn events(folder: &Folder, arguments: &[&str]) -> Vec<Json> {
    let output = folder.output(arguments, "");
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_answer_that_was_cut_off_is_reported_everywhere() {
    let cases = [
        (
            "length",
            "the reply was cut off at its length limit",
            "the reply was cut off at its length limit; `maxTokens` sets it",
        ),
        (
            "filtered",
            "the reply was cut off by the content filter of the provider",
            "the reply was cut off by the content filter of the provider",
        ),
        ("refused", "the model refused to answer", "the model refused to answer"),
    ];
    for (finish, why, warning) in cases {
        let folder = scripted(&json!([{"text": "12", "finish": finish}]));
        let printed = folder.run(&["run", "a.gram", "hi"]);
        assert!(printed.starts_with(&format!("exit 0\n--- stdout\n12\n--- stderr\nwarning: {warning}\n")), "{printed}");

        let output = folder.output(&["run", "a.gram", "hi", "--format", "json"], "");
        let document: Json = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&document["content"], &document["finish"]), (&json!("12"), &json!(finish)));
        assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("warning: {warning}")), "{output:?}");

        let events = events(&folder, &["run", "a.gram", "hi", "--format", "stream-json"]);
        let find = |name: &str| events.iter().find(|event| event["event"] == name).unwrap();
        assert_eq!(find("replied")["finish"], finish);
        assert_eq!((&find("incomplete")["finish"], &find("incomplete")["message"]), (&json!(finish), &json!(warning)));
        assert_eq!(find("finished")["finish"], finish);

        let shown = folder.run(&["sessions", "show", "latest"]);
        assert!(shown.contains(&format!("  2  12\n     incomplete: {why}\n")), "{shown}");
        let output = folder.output(&["sessions", "show", "latest", "--format", "json"], "");
        let document: Json = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["turns"][0]["outcome"]["answer"]["finish"], finish);

        // `12` is a whole number, but it may be the start of another.
        let printed = folder.run(&["run", "count.gram", "hi"]);
        assert!(printed.starts_with("exit 1\n") && printed.contains(&format!("LLMAPIError: {why}")), "{printed}");
    }
    let folder = scripted(&json!([{"text": "12"}]));
    let whole = folder.run(&["run", "a.gram", "hi"]);
    assert!(!whole.contains("warning"), "{whole}");
    let output = folder.output(&["run", "a.gram", "hi", "--format", "json"], "");
    assert_eq!(serde_json::from_slice::<Json>(&output.stdout).unwrap()["finish"], "stop");
}

#[test]
fn what_people_saw_of_a_broken_reply_is_kept() {
    let folder = project(&provider(&[Answer::Broken("Once upon")]));
    let printed = folder.run(&["run", "a.gram", "hi"]);
    assert!(printed.starts_with("exit 1\n--- stdout\nOnce upon\n--- stderr\n"), "{printed}");
    assert!(printed.contains("warning: the reply was interrupted; the part that was received is kept\n"), "{printed}");
    let error = "LLMAPIError: lost the connection to `127.0.0.1:";
    assert!(printed.contains(error) && printed.contains(": the server closed it too early; try again"), "{printed}");
    let shown = folder.run(&["sessions", "show", "latest"]);
    assert!(shown.contains("  2  Once upon\n     incomplete: the reply was interrupted\n"), "{shown}");
}

#[test]
fn broken_replies_that_nobody_saw_are_repeated() {
    let folder = project(&provider(&[Answer::Broken("Once upon"), Answer::Whole("Once upon a time.")]));
    let output = folder.output(&["run", "a.gram", "hi", "--format", "json"], "");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(serde_json::from_slice::<Json>(&output.stdout).unwrap()["content"], "Once upon a time.");

    let folder = project(&provider(&[Answer::Broken("Once upon"), Answer::Whole("Once upon a time.")]));
    let case = json!({"id": "one", "input": "hi", "checks": [{"equals": "Once upon a time."}]});
    folder.write("cases.jsonl", case.to_string());
    let printed = folder.run(&["eval", "a.gram", "-c", "cases.jsonl"]);
    assert!(printed.starts_with("exit 0\n") && printed.contains("passed 1 of 1"), "{printed}");

    // Machines that read the pieces have seen them.
    let folder = project(&provider(&[Answer::Broken("Once upon"), Answer::Whole("Once upon a time.")]));
    let events = events(&folder, &["run", "a.gram", "hi", "--format", "stream-json"]);
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert!(names.ends_with(&["text", "cost_unknown", "incomplete", "finished", "error"]), "{names:?}");
}

#[test]
fn a_stopped_chat_keeps_the_partial_answer() {
    let folder = project(&provider(&[Answer::Stuck("Once upon a time"), Answer::Whole("The end.")]));
    let mut terminal = Terminal::start(&folder, &["chat", "a.gram"], 80);
    terminal.prompts("").keys("a story\r").shows("Once upon").keys("\u{3}").shows("the partial answer is kept");
    terminal.prompts("").keys("/messages\r").shows("2  agent  Once upon a time").prompts("");
    terminal.keys("and then?\r").shows("The end.").prompts("").keys("\u{4}");
    assert_eq!(terminal.ends(), Some(0));
}

/// Errors of connections are one sentence, with the place and the way out, and without secrets or the words of libraries.
#[test]
fn broken_connections_are_one_sentence() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let folder = project(&format!("http://127.0.0.1:{port}/v1?key=sesame"));
    let check = |arguments: &[&str], expected: &str| {
        let printed = folder.run(arguments);
        assert!(printed.starts_with("exit 1\n--- stdout\n--- stderr\n") && printed.contains(expected), "{printed}");
        for text in ["sesame", "error sending", "tcp connect", "os error", "client error"] {
            assert!(!printed.contains(text), "{printed}");
        }
    };
    let refused = format!("cannot connect to `127.0.0.1:{port}`: the connection was refused; ");
    check(
        &["run", "a.gram", "hi"],
        &format!(
            "LLMAPIError: {refused}is the server running, and is the port right? \
             (the address of OpenAI is set in `patter.toml`)\n"
        ),
    );
    folder.write("patter.toml", format!("[models.Ollama]\nbase-url = \"http://127.0.0.1:{port}\"\n"));
    let ollama = "is Ollama running? start it with `ollama serve`, or set its address in `OLLAMA_HOST`\n";
    check(&["run", "a.gram", "hi", "--model", "Ollama/llama3.2"], &format!("LLMAPIError: {refused}{ollama}"));
    folder.write("patter.toml", "[http]\nallow = [\"127.0.0.1\"]\n");
    folder.write(
        "t.gram",
        format!(
            "[t:Toolbox | [get:Http {{ description: \"Gets\", url: \"http://127.0.0.1:{port}/?key=sesame\", retries: 0 }} | ()==>(::Text)]]\n"
        ),
    );
    check(&["call", "t/get"], &format!("{refused}is the server running, and is the port right?\n"));
    folder.write("patter.toml", format!("[mcp.far]\nurl = \"http://127.0.0.1:{port}/mcp?key=sesame\"\n"));
    check(
        &["import", "mcp", "far"],
        &format!(
            "cannot connect to the MCP server `far` at `127.0.0.1:{port}`: the connection was refused; \
             is the server running, and is the port right?\n"
        ),
    );
}

/// The order is: the input, the tools, the key.
#[test]
fn the_first_thing_that_is_wrong_is_reported() {
    let folder = Folder::new();
    folder.write("good.gram", "[good:Agent { instruction: \"Greet.\", model: \"OpenAI/gpt-4o-mini\" }]\n");
    folder.write(
        "bad.gram",
        "[bad:Agent { instruction: \"Use `nothing`.\", model: \"OpenAI/gpt-4o-mini\" } | nothing]\n",
    );
    folder.write("cases.jsonl", json!({"id": "one", "input": "hi", "checks": []}).to_string());
    folder.write("empty.jsonl", json!({"id": "one", "input": " ", "checks": []}).to_string());
    let input = "ValidationError: the input is empty";
    let tools = "nothing implements the tool `nothing`";
    let key = "there is no key for OpenAI";
    let cases = ["-c", "cases.jsonl", "--store", "none"];
    let check = |arguments: &[&str], expected: &str| {
        let printed = folder.run_with(arguments, "hi\n");
        assert!(printed.starts_with("exit 1\n") && printed.contains(expected), "{arguments:?}\n{printed}");
        for other in [input, tools, key].into_iter().filter(|other| *other != expected) {
            assert!(!printed.contains(other), "{arguments:?}\n{printed}");
        }
    };
    check(&["run", "bad.gram", ""], input);
    check(&["run", "good.gram", " \n"], input);
    check(&["run", "bad.gram", "hi"], tools);
    check(&["run", "good.gram", "hi"], key);
    check(&["chat", "bad.gram"], tools);
    check(&["chat", "good.gram"], key);
    for command in ["eval", "ab"] {
        let arms: &[&str] = if command == "ab" { &["--arm", "a", "--arm", "b"] } else { &[] };
        check(&[&[command, "bad.gram"][..], &cases, arms].concat(), tools);
        check(&[&[command, "good.gram"][..], &cases, arms].concat(), key);
    }
    let printed = folder.run(&["eval", "bad.gram", "-c", "empty.jsonl", "--store", "none"]);
    assert!(printed.starts_with("exit 1") && !printed.contains(tools) && !printed.contains(key), "{printed}");
}
