//! What needs trust: everything that a project starts, and every address that it names.

use super::{AGENT, CASES, TOOLBOX, assert_nothing_started, code, foreign, run_as_user, stderr, stdout};
use crate::folder::Folder;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A server that reports what it receives.
fn listen() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, received) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut buffer = [0; 4096];
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let read = stream.read(&mut buffer).unwrap_or(0);
            let _ = stream.write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            if sender.send(String::from_utf8_lossy(&buffer[..read]).into_owned()).is_err() {
                break;
            }
        }
    });
    (address, received)
}

#[test]
fn a_declared_provider_and_the_command_of_its_key_need_trust() {
    let (address, received) = listen();
    let folder = Folder::new();
    let command = "['sh', '-c', 'touch started; echo s3cret-key']";
    folder.write(
        "patter.toml",
        format!(
            "[models.mill]\napi = 'chat'\nurl = '{address}/v1'\nkey = {{ command = {command} }}\n\
                 [models.Groq]\nkey = 'AWS_SECRET'\n"
        ),
    );
    folder.write("hello.gram", AGENT.replace("'demo'", "'mill/large'"));
    for arguments in [&["doctor"] as &[_], &["run", "hello.gram", "Hi"], &["chat", "hello.gram"]] {
        let output = run_as_user(&folder, arguments, &[]);
        let printed = stderr(&output);
        assert_eq!(code(&output), 8, "{arguments:?}: {printed}");
        assert!(
            printed.contains("  model     Groq  https://api.groq.com/openai/v1 with AWS_SECRET (patter.toml)\n"),
            "{printed}"
        );
        assert!(printed.contains(&format!("  model     mill  {address}/v1 (patter.toml)\n")), "{printed}");
        assert!(printed.contains("  key       mill  sh -c 'touch started; echo s3cret-key'\n"), "{printed}");
    }
    assert!(received.try_recv().is_err() && !folder.path().join("started").exists());
    assert_eq!(code(&run_as_user(&folder, &["trust"], &[])), 0);
    let output = run_as_user(&folder, &["run", "hello.gram", "Hi"], &[]);
    let request = received.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(request.to_ascii_lowercase().contains("authorization: bearer s3cret-key"), "{request}");
    assert!(!stderr(&output).contains("s3cret-key"), "{}", stderr(&output));
    // Another command needs another agreement.
    let text = std::fs::read_to_string(folder.path().join("patter.toml")).unwrap();
    folder.write("patter.toml", text.replace("s3cret-key", "another"));
    assert_eq!(code(&run_as_user(&folder, &["run", "hello.gram", "Hi"], &[])), 8);
}

#[test]
fn no_key_goes_to_an_address_that_only_the_project_names() {
    const KEY: (&str, &str) = ("OPENAI_API_KEY", "sk-users-own");
    let (address, received) = listen();
    let config = format!("[models.OpenAI]\nbase-url = '{address}/v1'\n");
    let variable = format!("OPENAI_BASE_URL={address}/v1\n");
    for (name, text) in [("patter.toml", config), (".env", variable)] {
        let folder = Folder::new();
        folder.write("patter.toml", "");
        folder.write("hello.gram", AGENT.replace("'demo'", "'OpenAI/gpt-4o-mini'"));
        folder.write("cases.jsonl", "{\"id\": \"a\", \"input\": \"Hi\"}\n");
        folder.write(name, &text);
        let eval = ["eval", "hello.gram", "--cases", "cases.jsonl"];
        for arguments in [&["doctor"] as &[_], &["run", "hello.gram", "Hi"], &["chat", "hello.gram"], &eval] {
            let output = run_as_user(&folder, arguments, &[KEY]);
            let printed = stderr(&output);
            assert_eq!(code(&output), 8, "{arguments:?}: {printed}");
            let line = format!("  model     OpenAI  {address}/v1 with OPENAI_API_KEY ({name})\n");
            assert!(printed.contains(&line), "{printed}");
        }
        assert!(received.try_recv().is_err(), "{name}");
        // An address of the user's environment is the user's.
        let own = [KEY, ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")];
        assert_ne!(code(&run_as_user(&folder, &["doctor"], &own)), 8);
        assert_eq!(code(&run_as_user(&folder, &["trust"], &[])), 0);
        assert_ne!(code(&run_as_user(&folder, &["doctor"], &[KEY])), 8);
        let request = received.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(request.contains("sk-users-own"), "{request}");
        while received.recv_timeout(Duration::from_millis(300)).is_ok() {}
    }
}

#[test]
fn everything_that_leads_elsewhere_is_listed() {
    let folder = Folder::new();
    let config = "[http]\nallow = ['10.0.0.0/8']\n[fs]\nroots = ['.', '..', '/etc']\nwritable = ['*.gram']\n\
        [store]\nurl = 'postgres://me:hunter2@db.example/x'\n\
        [mcp.web]\nurl = 'https://u:hunter2@web.example/mcp?key=hunter2'\nheaders = {Authorization = 'Bearer ${TOKEN}'}\n\
        [mcp.far]\nurl = 'https://far.example/mcp'\noauth = {client-id = 'me', client-secret = '${SECRET}', scopes = ['read']}\n\
        [mcp.off]\ncommand = 'never'\ndisabled = true\n\
        [mcp.run]\ncommand = '${PROGRAM}'\nenv = {API_KEY = 'hunter2', B = '${OTHER}'}\n";
    folder.write("patter.toml", config);
    folder
        .write(".env", "HTTPS_PROXY=http://u:hunter2@proxy.example:1\nSSL_CERT_FILE=own.pem\nPROGRAM=./evil\nLANG=C\n");
    folder.write("cases.gram", CASES);
    folder.write("t.gram", "[t:Toolbox | [a:Http {description: 'A', url: 'https://${HOST}/x'} | ()==>(::Text)]]");
    let output = run_as_user(&folder, &["trust", "--list"], &[]);
    let parent = folder.path().canonicalize().unwrap().parent().unwrap().display().to_string();
    let expected = [
        "  network   10.0.0.0/8",
        "  store     postgres://me@db.example:5432/x",
        &format!("  folder    ..  {parent}"),
        "  folder    /etc",
        "  writable  *.gram",
        "  variable  SSL_CERT_FILE  own.pem",
        "  variable  HTTPS_PROXY  http://proxy.example:1",
        "  server    far  https://far.example/mcp with SECRET",
        "  server    run  ${PROGRAM} with API_KEY, B, OTHER, PROGRAM",
        "  server    web  https://web.example/mcp with TOKEN",
        "  requests  https://${HOST}  with HOST",
        "  check     touch check-started",
    ];
    let printed = stdout(&output).replace("  (new)", "");
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
    assert!(!printed.contains("hunter2"));
    assert_eq!(code(&run_as_user(&folder, &["sessions"], &[])), 8, "the store of a project may be a server");
    // What `.env` says about a command is part of it.
    run_as_user(&folder, &["trust"], &[]);
    let text = folder.read(".env");
    folder.write(".env", text.replace("./evil", "./worse"));
    let output = run_as_user(&folder, &["trust", "--list"], &[]);
    assert!(stdout(&output).contains("  server    run  ${PROGRAM} with API_KEY, B, OTHER, PROGRAM  (changed)\n"));
    assert!(!stderr(&output).contains("hunter2"));
}

/// A changed client or more scopes log in to something else; other roots are other folders.
#[test]
fn logins_and_roots_are_part_of_a_server() {
    let folder = Folder::new();
    let config = "[mcp.far]\nurl = 'https://far.example/mcp'\nroots = ['a']\n\
                  oauth = {client-id = 'me', issuer = 'https://as.example', redirect-uri = 'http://127.0.0.1:8976/callback', scopes = ['read']}\n";
    for (old, new) in [
        ("'me'", "'you'"),
        ("//as.", "//evil."),
        (":8976", ":8977"),
        ("'read'", "'read', 'write'"),
        ("['a']", "['/etc']"),
    ] {
        folder.write("patter.toml", config);
        assert_eq!(code(&run_as_user(&folder, &["trust"], &[])), 0);
        assert!(!stdout(&run_as_user(&folder, &["trust", "--list"], &[])).contains("(changed)"));
        folder.write("patter.toml", config.replace(old, new));
        let printed = stdout(&run_as_user(&folder, &["trust", "--list"], &[]));
        assert!(printed.contains("(changed)"), "{new}: {printed}");
    }
}

#[test]
fn a_login_that_is_added_to_a_server_needs_trust() {
    let folder = foreign();
    let server = "[mcp.files]\nurl = 'https://mcp.example.com'\n";
    folder.write("patter.toml", server);
    assert_eq!(code(&run_as_user(&folder, &["trust"], &[])), 0);
    folder.write("patter.toml", format!("{server}oauth = {{ client-id = 'a', client-secret = '${{SHOP_SECRET}}' }}\n"));
    let listed = run_as_user(&folder, &["trust", "--list"], &[]);
    assert_eq!(code(&listed), 1);
    assert!(stdout(&listed).contains("with SHOP_SECRET  (changed)"), "{}", stdout(&listed));
}

/// What a definition sends or does can change without a change of its command or address.
#[test]
fn variables_of_hooks_and_logins_need_trust() {
    let folder = Folder::new();
    let hook = "[[hooks]]\nbefore = ['*']\nrun = ['sh', '-c', 'true']\nenv = ['BASH_ENV']\n";
    folder.write("patter.toml", hook);
    folder.write(".env", "BASH_ENV=quiet.sh\n");
    let listed = || {
        let output = run_as_user(&folder, &["trust", "--list"], &[]);
        (code(&output), stdout(&output))
    };
    assert_eq!(code(&run_as_user(&folder, &["trust"], &[])), 0);
    assert_eq!(listed().0, 0);
    folder.write(".env", "BASH_ENV=evil.sh\n");
    assert!(listed().1.contains("(changed)"), "{:?}", listed());
    let server = "[mcp.shop]\nurl = 'https://mcp.example/mcp'\n";
    folder.write("patter.toml", server);
    assert_eq!(code(&run_as_user(&folder, &["trust"], &[])), 0);
    folder
        .write("patter.toml", format!("{server}oauth = {{client-id = 'a', client-secret = '${{OPENAI_API_KEY}}'}}\n"));
    let (code, printed) = listed();
    assert_eq!(code, 1);
    assert!(printed.contains("  server    shop  https://mcp.example/mcp with OPENAI_API_KEY"), "{printed}");
    // The sessions of a project that are elsewhere.
    let elsewhere = Folder::new();
    folder.write("patter.toml", "");
    assert_eq!(listed().0, 0);
    std::os::unix::fs::symlink(elsewhere.path(), folder.path().join(".patter")).unwrap();
    assert!(listed().1.contains("  store     sqlite:.patter/sessions.db"), "{:?}", listed());
    // A folder above the project, even if it does not exist yet.
    folder.write("patter.toml", "[fs]\nroots = ['../later-than-now']\n");
    assert!(listed().1.contains("../later-than-now"), "{:?}", listed());
}

#[test]
fn checks_of_cases_and_arms_need_trust() {
    let folder = Folder::new();
    folder.write("patter.toml", "");
    folder.write("hello.gram", AGENT);
    folder.write(
        "cases.jsonl",
        "{\"id\": \"a\", \"input\": \"Hi\", \"checks\": [{\"command\": {\"run\": [\"touch\", \"check-started\"]}}]}\n",
    );
    folder.write("plain.jsonl", "{\"id\": \"a\", \"input\": \"Hi\"}\n");
    let other = Folder::new();
    let toolbox = TOOLBOX.replace("t:Toolbox", "u:Toolbox").replace("marks:", "sayHello:");
    let toolbox = format!("b={}", other.write("tools.gram", toolbox).display());
    let with_check: &[&str] = &["eval", "hello.gram", "--cases", "cases.jsonl"];
    let arm: &[&str] = &["ab", "hello.gram", "--cases", "plain.jsonl", "--arm", "a", "--arm", &toolbox];
    for (arguments, line) in
        [(with_check, "  check     touch check-started\n"), (arm, "  command   u/sayHello  touch command-started\n")]
    {
        let output = run_as_user(&folder, arguments, &[]);
        assert!(code(&output) == 8 && stderr(&output).contains(line), "{arguments:?}: {}", stderr(&output));
        assert_nothing_started(&folder, line);
    }
    assert_eq!(code(&run_as_user(&folder, &["trust", ".", "cases.jsonl"], &[])), 0);
    assert_ne!(code(&run_as_user(&folder, with_check, &[])), 8);
    assert!(folder.path().join("check-started").exists());
}
