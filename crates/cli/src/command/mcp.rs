//! `patter mcp`: lists MCP servers, and logs in and out at those with a URL.

use super::Command;
use crate::argument::parse_duration;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::setup::{Intent, Setup, ToolSources, until_stopped};
use crate::ui::{self, Align, Column, listing, one_line};
use clap::{Args, Subcommand};
use patter::drive::now_ms;
use patter::project::ServerSelection;
use patter::tool::mcp::{LoginError, LoginOptions, LoginPage, LoginStatus, McpServer};
use serde_json::{Value as Json, json};
use std::io;
use std::time::Duration;

/// The width at which foreign texts are truncated.
const MAX_COLUMNS: usize = 200;

/// List MCP servers, and log in at those with a URL
///
/// No server is started. Logins are stored for the user, outside of the project, and are sent only to the URL that they are
/// for: a project that changes the URL of a server needs a new login.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter mcp list\n  \
                        patter mcp login tickets\n  \
                        patter mcp login tickets --scope tickets:write --no-browser\n  \
                        patter mcp logout tickets")]
pub(crate) struct Mcp {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the servers of the project with their logins
    List {
        #[command(flatten)]
        format: FormatOption<DataFormat>,
    },
    /// Log in at a server, in the browser
    ///
    /// Prints the address of the login page, opens it, and waits for the answer on a port of this machine. BROWSER names the
    /// program that opens it.
    Login {
        /// Server in patter.toml, or in the file that its mcp-servers names
        server: String,
        /// Scope to request beside those that the server asks for; may be repeated
        #[arg(long, value_name = "SCOPE")]
        scope: Vec<String>,
        /// Only print the address of the login page
        #[arg(long)]
        no_browser: bool,
        /// Give up after this time
        #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_duration)]
        timeout: Duration,
        #[command(flatten)]
        format: FormatOption<DataFormat>,
    },
    /// Forget the login at a server
    Logout {
        /// Server
        server: String,
        #[command(flatten)]
        format: FormatOption<DataFormat>,
    },
}

impl Mcp {
    fn format(&self) -> DataFormat {
        let (Action::List { format } | Action::Login { format, .. } | Action::Logout { format, .. }) = &self.action;
        format.format
    }
}

impl Command for Mcp {
    fn error_format(&self) -> ErrorFormat {
        self.format().error_format()
    }

    fn run(&self) -> CommandResult {
        // Only a login contacts what the project names.
        let intent = if matches!(self.action, Action::Login { .. }) { Intent::Call } else { Intent::Describe };
        let setup = Setup::read(&[], &ToolSources::default(), &ServerSelection::None, intent)?;
        match &self.action {
            Action::List { .. } => list(&setup, self.format())?,
            Action::Login { server, scope, no_browser, timeout, .. } => {
                let server = setup.toolset.server(server)?;
                let mut options = LoginOptions::default();
                options.scopes.clone_from(scope);
                options.timeout = *timeout;
                login(&setup, server, &options, *no_browser, self.format())?;
            }
            Action::Logout { server, .. } => {
                let server = setup.toolset.server(server)?;
                let was_logged_in = server.logout()?;
                match (self.format(), was_logged_in) {
                    (DataFormat::Json, _) => ui::print(&format!("{:#}\n", json!({"loggedOut": was_logged_in})))?,
                    (DataFormat::Text, true) => ui::status(&format!("logged out of `{}`", server.name()))?,
                    (DataFormat::Text, false) => ui::status(&format!("there is no login at `{}`", server.name()))?,
                }
            }
        }
        Ok(Outcome::Success)
    }
}

impl From<LoginError> for CommandError {
    fn from(error: LoginError) -> Self {
        Self::failure(error.to_string()).with_hint_if(error.hint())
    }
}

const COLUMNS: [Column; 3] = [
    Column { name: "SERVER", align: Align::Left, max: 40 },
    Column { name: "ADDRESS", align: Align::Left, max: 50 },
    Column { name: "LOGIN", align: Align::Left, max: usize::MAX },
];

fn list(setup: &Setup, format: DataFormat) -> io::Result<()> {
    let tools = &setup.toolset.tools;
    let servers = tools.servers().filter_map(|name| Some((name, tools.server(name)?)));
    let entries = servers.map(|(name, server)| match server {
        Ok(server) => {
            let status = server.login_status();
            (name, server.address(), status.map(|status| status.map_err(|error| error.to_string())))
        }
        Err(problem) => (name, String::new(), Some(Err(problem.message.clone()))),
    });
    let entries: Vec<_> = entries.collect();
    if format == DataFormat::Json {
        let entries = entries.iter().map(|(name, address, status)| {
            let mut entry = json!({"server": name, "address": address});
            if let Some(entry) = entry.as_object_mut() {
                entry.extend(status_json(status.as_ref()));
            }
            entry
        });
        return ui::print(&format!("{:#}\n", Json::Array(entries.collect())));
    }
    if entries.is_empty() {
        return ui::status("the project has no MCP servers; add a section [mcp.NAME] to patter.toml");
    }
    let rows = entries
        .iter()
        .map(|(name, address, status)| [(*name).to_owned(), address.clone(), status_text(name, status.as_ref())]);
    ui::print(&listing(&COLUMNS, &rows.collect::<Vec<_>>(), ui::line_width()))
}

/// The login at a server, or why it is not known.
type Status = Result<LoginStatus, String>;

/// Returns the login at a server in words. Nothing means that the server has no logins.
fn status_text(name: &str, status: Option<&Status>) -> String {
    match status {
        None => "not used".to_owned(),
        Some(Ok(LoginStatus::LoggedIn { expires_at, is_renewable, .. })) => match expires_at {
            Some(expires_at) if !is_renewable => {
                let left = expires_at.saturating_mul(1000).saturating_sub(now_ms());
                format!("logged in, expires in {}", ui::format_age(left))
            }
            _ => "logged in".to_owned(),
        },
        Some(Ok(LoginStatus::Expired)) => format!("expired; run `patter mcp login {name}`"),
        Some(Ok(LoginStatus::MoreScopes { scopes })) => {
            format!("needs `{}`; run `patter mcp login {name}`", scopes.join(" "))
        }
        Some(Ok(_)) => "none".to_owned(),
        Some(Err(error)) => error.clone(),
    }
}

fn status_json(status: Option<&Status>) -> serde_json::Map<String, Json> {
    let value = match status {
        None => json!({"login": null}),
        Some(Ok(LoginStatus::LoggedIn { issuer, scopes, expires_at, is_renewable })) => json!({
            "login": "logged-in",
            "issuer": issuer,
            "scopes": scopes,
            "expiresAt": expires_at,
            "renewable": is_renewable,
        }),
        Some(Ok(LoginStatus::Expired)) => json!({"login": "expired"}),
        Some(Ok(LoginStatus::MoreScopes { scopes })) => json!({"login": "more-scopes", "scopes": scopes}),
        Some(Ok(_)) => json!({"login": "none"}),
        Some(Err(error)) => json!({"login": "error", "error": error}),
    };
    if let Json::Object(entries) = value { entries } else { serde_json::Map::new() }
}

fn login(
    setup: &Setup,
    server: &McpServer,
    options: &LoginOptions,
    no_browser: bool,
    format: DataFormat,
) -> Result<(), CommandError> {
    let show = |page: &LoginPage| {
        // Without a terminal to print to, the browser may still open.
        let _ = announce(page);
        if !no_browser {
            ui::open_page(page.url.as_str());
        }
    };
    let login = until_stopped(&setup.toolset.runtime, &setup.toolset.stop, server.login(options, show));
    let login = login.ok_or_else(CommandError::interrupted)??;
    let name = server.name();
    match format {
        DataFormat::Json => {
            let done = json!({"server": name, "issuer": login.issuer, "scopes": login.scopes});
            ui::print(&format!("{done:#}\n"))?;
        }
        DataFormat::Text => {
            ui::status(&format!("logged in at `{name}` with `{}`", one_line(&login.issuer, MAX_COLUMNS)))?;
        }
    }
    Ok(())
}

fn announce(page: &LoginPage) -> io::Result<()> {
    let scopes = match page.scopes.is_empty() {
        true => String::new(),
        false => format!(" and grant `{}`", one_line(&page.scopes.join(" "), MAX_COLUMNS)),
    };
    ui::status(&format!("log in at `{}`{scopes}:\n\n  {}\n", page.host, page.url))
}
