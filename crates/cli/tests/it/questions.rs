//! Questions of MCP servers, at a terminal and without one.

use crate::folder::Folder;
use crate::terminal::Terminal;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// A server that asks for a form during a call of `introduce`, and returns the answer. The first call of `connect` fails
/// until a page was opened.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}';;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"tools":[{"name":"introduce","inputSchema":{"type":"object"}},{"name":"connect","inputSchema":{"type":"object"}}]}}';;
    *'"tools/call"'*connect*)
      if [ -e asked ]; then
        echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"content":[{"type":"text","text":"connected"}]}}'
      else
        touch asked
        echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32042,"message":"first things first","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://connect.example/me","message":"Connect your account"}]}}}'
      fi;;
    *'"tools/call"'*)
      call=$id
      echo '{"jsonrpc":"2.0","id":"form","method":"elicitation/create","params":{"message":"Who are you?\u001b[31m","requestedSchema":{"type":"object","properties":{"name":{"type":"string","title":"Your name"},"age":{"type":"integer","minimum":18,"default":30},"colour":{"type":"string","enum":["red","blue"]}},"required":["name"]}}}';;
    *'"form"'*) echo '{"jsonrpc":"2.0","id":'"$call"',"result":{"content":[{"type":"text","text":"'"$(printf '%s' "$line" | tr -d '"')"'"}]}}';;
  esac
done
"#;

fn project() -> Folder {
    let folder = Folder::new();
    folder.write("server.sh", SERVER);
    folder.write("patter.toml", "[mcp.shop]\ncommand = 'sh'\nargs = ['server.sh']\nelicitation = true\n");
    folder
}

fn start(folder: &Folder, tool: &str) -> Terminal {
    let variables = [("PATH", "/usr/bin:/bin"), ("BROWSER", "./browser.sh")];
    Terminal::start_with(folder, &["call", "--yes", tool, "{}"], 100, &variables)
}

#[test]
fn a_form_is_filled_in_at_the_terminal() {
    let folder = project();
    let mut terminal = start(&folder, "shop/introduce");
    terminal.shows("the MCP server `shop` asks for input:").shows("│ Who are you?");
    terminal.asks("Your name (a text):").keys("\r");
    terminal.shows("a value is required").asks("Your name (a text):").keys("Ada\r");
    terminal.asks("age (a whole number from 18) [30]:").keys("12\r");
    terminal.shows("enter a whole number from 18").asks("age (a whole number from 18) [30]:").keys("\r");
    terminal.asks("colour (one of red, blue) [leave out]:").keys("\r");
    // Nothing is sent before the person saw it.
    terminal.asks(r#"send {"name":"Ada","age":30} to the MCP server `shop`? [y/n]"#).keys("y");
    assert_eq!(terminal.ends(), Some(0), "{}", terminal.screen());
    let screen = terminal.screen();
    assert!(screen.contains("action:accept") && screen.contains("name:Ada") && screen.contains("age:30"), "{screen}");
    // What the server says cannot change the terminal.
    let received = String::from_utf8_lossy(terminal.received()).into_owned();
    assert!(received.contains("Who are you?") && !received.contains("\u{1b}[31m"), "{received:?}");
}

#[test]
fn a_form_may_be_declined_or_given_up() {
    let folder = project();
    let mut terminal = start(&folder, "shop/introduce");
    terminal.asks("Your name (a text):").keys("Ada\r");
    terminal.asks("[30]:").keys("\r").asks("[leave out]:").keys("blue\r");
    terminal.asks("[y/n]").keys("n");
    assert_eq!(terminal.ends(), Some(0));
    assert!(terminal.screen().contains("action:decline"), "{}", terminal.screen());
    let mut terminal = start(&folder, "shop/introduce");
    // Ctrl-D
    terminal.asks("Your name (a text):").keys("\u{4}");
    assert_eq!(terminal.ends(), Some(0));
    assert!(terminal.screen().contains("action:cancel"), "{}", terminal.screen());
    // Without a terminal there is nobody to ask.
    let shown = folder.run(&["call", "--yes", "shop/introduce", "{}"]);
    assert!(shown.contains("the MCP server `shop` asked for input, and there is nobody to ask"), "{shown}");
    assert!(shown.contains("action:decline"), "{shown}");
}

#[test]
fn a_page_that_a_call_requires_is_opened() {
    let folder = project();
    let browser = folder.write("browser.sh", "#!/bin/sh\necho \"$1\" > new\nmv new opened\n");
    fs::set_permissions(browser, Permissions::from_mode(0o755)).unwrap();
    let mut terminal = start(&folder, "shop/connect");
    terminal.shows("the MCP server `shop` asks you to open a page:").shows("│ Connect your account");
    terminal.shows("https://connect.example/me").asks("open it? [y/n]").keys("y");
    terminal.asks("make the call again? answer when you are done there [y/n]").keys("y");
    assert_eq!(terminal.ends(), Some(0), "{}", terminal.screen());
    assert!(terminal.screen().contains("connected"), "{}", terminal.screen());
    let opened = std::iter::repeat_with(|| fs::read_to_string(folder.path().join("opened")));
    let opened = opened.inspect(|_| std::thread::sleep(Duration::from_millis(20))).take(500).find_map(Result::ok);
    assert_eq!(opened.unwrap().trim(), "https://connect.example/me");

    fs::remove_file(folder.path().join("asked")).unwrap();
    let shown = folder.run(&["call", "--yes", "shop/connect", "{}"]);
    assert!(shown.contains("the MCP server `shop` requires that a person opens a page before this call"), "{shown}");
    assert!(shown.contains("open https://connect.example/me, then make the call again"), "{shown}");
}
