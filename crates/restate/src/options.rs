//! The command line.

use clap::Parser;
use patter::http::Url;
use patter::live::LiveProject;
use patter::store::{StoreError, StoreLocation};
use patter::text::parse_duration;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// Host the sessions of a project's agents on Restate
///
/// Starts a worker. Any number of workers with the same project and the same session store act as one service: put them
/// behind one address, and register that with Restate.
#[derive(Parser, Debug)]
#[command(
    name = "patter-restate",
    version,
    after_help = "Examples:\n  \
                  patter-restate --project . --store postgres://db.example.com/agents --register http://127.0.0.1:9070\n  \
                  curl http://127.0.0.1:8080/Session/today/turn --json '{\"agent\": \"digest\", \"message\": \"Summarize today\"}'"
)]
pub(crate) struct Options {
    /// Folder of the project, or file with agents
    #[arg(long, value_name = "PATH", default_value = ".")]
    pub(crate) project: PathBuf,

    /// Where to store sessions: a file or postgres://…; also `PATTER_STORE`, or [store] in patter.toml
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// Address to listen on for Restate
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
    pub(crate) listen: SocketAddr,

    /// Register the workers with the admin API of Restate, such as http://127.0.0.1:9070
    #[arg(long, value_name = "URL")]
    pub(crate) register: Option<Url>,

    /// Address at which Restate reaches the workers; by default the one to listen on
    #[arg(long, value_name = "URL")]
    advertise: Option<Url>,

    /// Replace the services that are registered at the same address
    #[arg(long, requires = "register")]
    pub(crate) replace: bool,

    /// Public key of Restate: accept only requests that it signed
    #[arg(long, value_name = "KEY")]
    pub(crate) identity_key: Option<String>,

    /// Listen without --identity-key on an address that other machines reach: only Restate must be able to
    #[arg(long)]
    private_network: bool,

    /// Refuse a call if nobody approves it in this time
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "24h")]
    pub(crate) approval_expiry: Duration,

    /// Steps that this worker takes at a time
    #[arg(long, value_name = "COUNT", default_value = "64")]
    pub(crate) max_steps: NonZeroUsize,

    /// Invocations per connection: Restate opens another connection for more, which a load balancer may pass to another worker
    #[arg(long, value_name = "COUNT", default_value = "16")]
    pub(crate) streams_per_connection: NonZeroU32,

    /// Wait this long for steps under way when the worker stops
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub(crate) drain_timeout: Duration,

    /// Model to use instead of those of the agents: Provider/name, or demo
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Refuse to run anything that differs from patter.lock
    #[arg(long)]
    pub(crate) locked: bool,

    /// Trust what the project defines: commands, servers and addresses
    #[arg(long)]
    trust: bool,

    /// Log more to stderr; may be repeated
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "write a time above 0, such as 30s, 2m or 1h".to_owned())
}

impl Options {
    /// Checks what belongs together. Returns what is wrong, and a hint.
    pub(crate) fn check(&self) -> Result<(), (String, &'static str)> {
        if self.listen.ip().is_loopback() || self.identity_key.is_some() || self.private_network {
            return Ok(());
        }
        let message =
            format!("{} can be reached from other machines, and whoever reaches it can run agents", self.listen);
        Err((
            message,
            "pass --identity-key with the public key of Restate, or --private-network if only Restate reaches it",
        ))
    }

    /// Returns whether the user trusts the project: by option, or by a variable of the process.
    pub(crate) fn is_trusted(&self) -> bool {
        self.trust || std::env::var("PATTER_TRUST").is_ok_and(|value| matches!(value.as_str(), "1" | "true"))
    }

    /// Returns where sessions are stored.
    pub(crate) fn store_location(&self, project: &LiveProject) -> Result<StoreLocation, StoreError> {
        let named = self.store.clone().or_else(|| project.environment().get("PATTER_STORE"));
        if let Some(named) = named.as_ref().or(project.config().store.url.as_ref()) {
            return StoreLocation::parse(named);
        }
        let root = project.root().map_or_else(PathBuf::new, std::path::Path::to_owned);
        Ok(StoreLocation::Sqlite(root.join(".patter/sessions.db")))
    }

    /// Returns the address at which Restate reaches the workers.
    pub(crate) fn advertised(&self, address: SocketAddr) -> Result<Url, String> {
        match &self.advertise {
            Some(url) => Ok(url.clone()),
            None => format!("http://{address}").parse().map_err(|_| format!("`{address}` is not an address")),
        }
    }
}
