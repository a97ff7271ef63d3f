//! What people write about MCP servers.

use patter::tool::mcp::{ConfigError, ServerConfig, Settings, read_servers, servers_of};
use std::path::Path;

fn settings(name: &str, text: &str) -> Result<Settings, ConfigError> {
    let config: ServerConfig = toml::from_str(text).unwrap();
    let variable = |name: &str| match name {
        "TOKEN" => Some("sesame".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    config.settings(name, Path::new("etc/patter.toml"), &variable)
}

#[test]
fn what_is_right_is_taken() {
    for text in [
        "command = 'x'",
        "command = 'x'\nargs = ['${TOKEN}']\nenv = {A = 'a${TOKEN}b'}\ncwd = 'sub'\ntimeout = 5\nstart-timeout = '1m'",
        "url = 'http://localhost:3000/mcp'\nheaders = {Authorization = 'Bearer ${TOKEN}'}\ntimeout = '500ms'",
        "url = '${HOST:-https://example.com}/mcp'\ntimeout = 0.5\ndisabled = true",
    ] {
        settings("files-2_b", text).unwrap();
    }
}

#[test]
fn mistakes_name_the_file_and_the_server() {
    for (name, text, expected) in [
        ("a", "", "has neither `command` nor `url`"),
        ("a", "command = 'x'\nurl = 'http://y'", "has both `command` and `url`"),
        ("a", "command = 'x'\nenv = {A = '${NOPE}'}", "needs the variable `NOPE`, which is not set"),
        ("a", "url = 'http://y'\nheaders = {A = '${EMPTY}'}", "needs the variable `EMPTY`, which is not set"),
        ("a", "command = 'x'\nargs = ['${TOKEN']", "has a `${` without `}` in `${TOKEN`"),
        ("a", "command = 'x'\nheaders = {A = 'b'}", "has `headers`, which does not go with `command`"),
        ("a", "url = 'http://y'\nargs = ['b']", "has `args`, which does not go with `url`"),
        ("a", "url = 'ftp://y'", "has a `url` that is no address of an HTTP server"),
        ("a", "url = 'y'", "has a `url` that is no address of an HTTP server"),
        ("a", "url = 'http://y'\nheaders = {'a b' = 'c'}", "has a header `a b` that cannot be sent"),
        ("a", "command = 'x'\ntimeout = 0", "has a `timeout` that is not between a millisecond and a day"),
        (
            "a",
            "command = 'x'\nstart-timeout = 1e9",
            "has a `start-timeout` that is not between a millisecond and a day",
        ),
        (
            "a__b",
            "command = 'x'",
            "has a name that no toolbox can have: the name has `__`, which stands for `/` where tools go to a provider",
        ),
        ("a/b", "command = 'x'", "has a name that no toolbox can have: the name has `/`"),
        ("", "command = 'x'", "has a name that no toolbox can have: the name is empty"),
    ] {
        let error = settings(name, text).unwrap_err();
        assert_eq!(error.to_string(), format!("`etc/patter.toml`: the MCP server `{name}` {expected}"));
    }
    let hint = settings("a", "command = '${NOPE}'").unwrap_err().hint().unwrap();
    assert_eq!(hint, "set it, or write `${NOPE:-text}` to say what stands in");
}

#[test]
fn times_are_seconds_or_texts() {
    for (text, expected) in
        [("30", 30_000), ("0.5", 500), ("'30s'", 30_000), ("'500ms'", 500), ("'2m'", 120_000), ("'7'", 7000)]
    {
        let config: ServerConfig = toml::from_str(&format!("timeout = {text}")).unwrap();
        assert_eq!(config.timeout.unwrap().as_millis(), expected, "{text}");
    }
    for text in ["-1", "'1h'", "'soon'", "''", "true", "1e300", "'ms'"] {
        let error = toml::from_str::<ServerConfig>(&format!("timeout = {text}")).unwrap_err().to_string();
        assert!(error.contains("expected seconds, or a text such as `30s`"), "{text}: {error}");
    }
}

#[test]
fn secrets_are_not_shown() {
    let text = "url = 'http://y'\nheaders = {Authorization = 'Bearer 123'}\ntimeout = 1";
    let config: ServerConfig = toml::from_str(text).unwrap();
    let shown = format!("{config:?} {:?}", settings("a", text).unwrap());
    assert!(shown.contains("Authorization") && !shown.contains("Bearer"), "{shown}");
}

#[test]
fn files_of_other_programs_are_read() {
    let text = r#"{"mcpServers": {
        "files": {"type": "stdio", "command": "npx", "args": ["-y", "server"], "env": {"A": "b"}, "autoApprove": ["x"]},
        "web": {"type": "http", "url": "https://example.com", "headers": {"A": "b"}, "timeout": 5000},
        "old": {"type": "sse", "url": "https://example.com/sse"}
    }, "other": 1}"#;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, text).unwrap();
    let (servers, warnings) = read_servers(&file).unwrap();
    assert_eq!(servers.keys().collect::<Vec<_>>(), ["files", "web"]);
    assert_eq!(servers["files"].args, ["-y", "server"]);
    assert_eq!(servers["web"].headers["A"], "b");
    let warnings: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "the MCP server `files` has a key `autoApprove` that means nothing here",
            "the MCP server `web` has a key `timeout` that means nothing here",
            "the MCP server `old` is left out: it uses `sse`, and only `stdio` and `http` are supported",
        ]
    );
    for (text, expected) in [
        ("{", "`mcp.json` lists no MCP servers: EOF while parsing an object at line 1 column 1"),
        ("{}", "`mcp.json` lists no MCP servers: there is no `mcpServers`"),
        (r#"{"mcpServers": []}"#, "`mcp.json` lists no MCP servers: `mcpServers` is not an object"),
        (r#"{"mcpServers": {"a": 1}}"#, "`mcp.json` lists no MCP servers: the server `a` is not an object"),
        (
            r#"{"mcpServers": {"a": {"command": 1}}}"#,
            "`mcp.json` lists no MCP servers: the server `a` is wrong: invalid type: integer `1`, expected a string",
        ),
    ] {
        assert_eq!(servers_of(text, Path::new("mcp.json")).unwrap_err().to_string(), expected);
    }
    let missing = read_servers(&folder.path().join("none.json")).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read `") && missing.contains("none.json"), "{missing}");
}
