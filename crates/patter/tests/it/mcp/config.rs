//! The configuration of MCP servers.

use patter::tool::mcp::{ConfigError, HttpProtocol, ServerConfig, ServerSettings, parse_servers, read_servers};
use std::path::Path;

fn settings(name: &str, text: &str) -> Result<ServerSettings, ConfigError> {
    let config: ServerConfig = toml::from_str(text).unwrap();
    let variable = |name: &str| match name {
        "TOKEN" => Some("sesame".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    config.settings(name, Path::new("etc/patter.toml"), &variable)
}

#[test]
fn accepts_valid_configurations() {
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
fn reports_errors_with_file_and_server() {
    for (name, text, expected) in [
        ("a", "", "has neither `command` nor `url`"),
        ("a", "command = 'x'\nurl = 'http://y'", "has both `command` and `url`"),
        ("a", "command = 'x'\nenv = {A = '${NOPE}'}", "needs the variable `NOPE`, which is not set"),
        ("a", "url = 'http://y'\nheaders = {A = '${EMPTY}'}", "needs the variable `EMPTY`, which is not set"),
        ("a", "command = 'x'\nargs = ['${TOKEN']", "has an unclosed `${` in `${TOKEN`"),
        ("a", "command = 'x'\nheaders = {A = 'b'}", "has `headers`, which cannot be combined with `command`"),
        ("a", "url = 'http://y'\nargs = ['b']", "has `args`, which cannot be combined with `url`"),
        ("a", "url = 'ftp://y'", "has a `url` that is not a valid HTTP URL"),
        ("a", "url = 'y'", "has a `url` that is not a valid HTTP URL"),
        ("a", "url = 'http://y'\nheaders = {'a b' = 'c'}", "has an invalid header `a b`"),
        ("a", "command = 'x'\ntimeout = 0", "has a `timeout` that is not between 1 ms and 24 h"),
        ("a", "command = 'x'\nstart-timeout = 1e9", "has a `start-timeout` that is not between 1 ms and 24 h"),
        (
            "a__b",
            "command = 'x'",
            "has an invalid name: the name contains `__`, which replaces `/` in names that are sent to providers",
        ),
        ("a/b", "command = 'x'", "has an invalid name: the name contains `/`"),
        ("", "command = 'x'", "has an invalid name: the name is empty"),
    ] {
        let error = settings(name, text).unwrap_err();
        assert_eq!(error.to_string(), format!("`etc/patter.toml`: the MCP server `{name}` {expected}"));
    }
    let hint = settings("a", "command = '${NOPE}'").unwrap_err().hint().unwrap();
    assert_eq!(hint, "set it, or write `${NOPE:-default}` to provide a default");
}

#[test]
fn reads_durations() {
    for (text, expected) in [
        ("30", 30_000),
        ("0.5", 500),
        ("'30s'", 30_000),
        ("'500ms'", 500),
        ("'2m'", 120_000),
        ("'1h'", 3_600_000),
        ("'7'", 7000),
    ] {
        let config: ServerConfig = toml::from_str(&format!("timeout = {text}")).unwrap();
        assert_eq!(config.timeout.unwrap().as_millis(), expected, "{text}");
    }
    for text in ["-1", "'soon'", "''", "true", "1e300", "'ms'"] {
        let error = toml::from_str::<ServerConfig>(&format!("timeout = {text}")).unwrap_err().to_string();
        assert!(error.contains("expected a number of seconds or a duration such as `30s`"), "{text}: {error}");
    }
}

#[test]
fn hides_secrets() {
    let text = "url = 'http://y'\nheaders = {Authorization = 'Bearer 123'}\ntimeout = 1";
    let config: ServerConfig = toml::from_str(text).unwrap();
    let shown = format!("{config:?} {:?}", settings("a", text).unwrap());
    assert!(shown.contains("Authorization") && !shown.contains("Bearer"), "{shown}");
}

#[test]
fn reads_files_of_other_programs() {
    let text = r#"{"mcpServers": {
        "files": {"type": "stdio", "command": "npx", "args": ["-y", "server"], "env": {"A": "b"}, "autoApprove": ["x"]},
        "web": {"type": "http", "url": "https://example.com", "headers": {"A": "b"}, "timeout": 5000},
        "old": {"type": "sse", "url": "https://example.com/sse", "includeTools": ["a"], "excludeTools": ["b"]},
        "odd": {"type": "ws", "url": "https://example.com/ws"}
    }, "other": 1}"#;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, text).unwrap();
    let (servers, warnings) = read_servers(&file).unwrap();
    assert_eq!(servers.keys().collect::<Vec<_>>(), ["files", "web", "old"]);
    assert_eq!((servers["files"].transport, servers["web"].transport), (None, Some(HttpProtocol::Http)));
    assert_eq!(servers["old"].transport, Some(HttpProtocol::Sse));
    assert_eq!(
        (servers["old"].only.as_deref().unwrap(), &*servers["old"].except),
        (&["a".to_owned()][..], &["b".to_owned()][..])
    );
    assert_eq!(servers["files"].args, ["-y", "server"]);
    assert_eq!(servers["web"].headers["A"], "b");
    let warnings: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "the MCP server `files` has an unsupported key `autoApprove`",
            "the MCP server `web` has an unsupported key `timeout`",
            "the MCP server `odd` is skipped: it uses `ws`, and only `stdio`, `http` and `sse` are supported",
        ]
    );
    for (text, expected) in [
        ("{", "cannot read the MCP servers in `mcp.json`: EOF while parsing an object at line 1 column 1"),
        ("{}", "cannot read the MCP servers in `mcp.json`: `mcpServers` is missing"),
        (r#"{"mcpServers": []}"#, "cannot read the MCP servers in `mcp.json`: `mcpServers` is not an object"),
        (r#"{"mcpServers": {"a": 1}}"#, "cannot read the MCP servers in `mcp.json`: the server `a` is not an object"),
        (
            r#"{"mcpServers": {"a": {"command": 1}}}"#,
            "cannot read the MCP servers in `mcp.json`: invalid server `a`: invalid type: integer `1`, expected a string",
        ),
    ] {
        assert_eq!(parse_servers(text, Path::new("mcp.json")).unwrap_err().to_string(), expected);
    }
    let missing = read_servers(&folder.path().join("none.json")).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read `") && missing.contains("none.json"), "{missing}");
}
