//! The settings of a server.

use crate::token::Token;
use crate::webhook::Webhooks;
use std::collections::BTreeMap;
use std::time::Duration;

/// The settings of a server. By default it accepts requests from this machine, without a token.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// The tokens that clients present. Without any, every client may do everything, so a server without tokens must only
    /// be reachable from this machine.
    pub tokens: Vec<Token>,
    /// The names under which clients reach the server, besides those of this machine: `agents.example.com`. A request for
    /// another name is refused, because a web page may have sent it.
    pub hosts: Vec<String>,
    /// The web pages that may use the server: `https://app.example.com`. Requests of other pages are refused.
    pub origins: Vec<String>,
    /// How the system messages of clients are handled.
    pub system_messages: SystemMessages,
    /// Whether clients may call tools without an agent.
    pub tools: ToolAccess,
    /// Whether people may edit the files of the project in the studio.
    pub editing: Editing,
    /// How long an approval can be given. After that the call is refused.
    pub approval_expiry: Duration,
    /// How many turns of an agent, or for a token, run at a time.
    pub turn_limits: TurnLimits,
    /// How the ends of turns are reported to other servers; `None` if they are not.
    pub webhooks: Option<Webhooks>,
    /// Bounds that keep the server alive.
    pub limits: Limits,
}

/// How many turns from the queue run at a time, in all servers that share a store together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnLimits {
    /// By the name of the agent.
    pub agents: BTreeMap<String, u32>,
    /// By the name of the token that asked for them.
    pub tokens: BTreeMap<String, u32>,
}

/// How the system messages of clients are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SystemMessages {
    /// They follow the instruction of the agent.
    #[default]
    Append,
    /// They have no effect.
    Ignore,
    /// A request that has one is refused.
    Refuse,
}

/// Whether clients may call the tools of the project without an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolAccess {
    /// Only agents call tools.
    #[default]
    ThroughAgents,
    /// MCP clients may call the tools of the library, behind the rules of the project.
    Direct,
}

/// Whether people may edit the files of the project in the studio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Editing {
    /// They may not.
    #[default]
    Off,
    /// Those with the scope `admin` may.
    On,
}

/// Bounds that keep a server alive.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest body of a request, in bytes.
    pub max_body: usize,
    /// How many connections are open at a time.
    pub max_connections: usize,
    /// How many turns run at a time.
    pub max_turns: usize,
    /// How long a client may take to send the head of a request.
    pub head_timeout: Duration,
    /// How long a client may take to send the body.
    pub body_timeout: Duration,
    /// How long a client may take to receive something.
    pub write_timeout: Duration,
    /// How long a turn continues without a client, which may reconnect.
    pub disconnect_grace: Duration,
    /// How long turns may go on when the server stops.
    pub drain_timeout: Duration,
    /// How often an idle stream shows that it is alive.
    pub keep_alive: Duration,
    /// How often approvals that expired are looked for.
    pub expiry_interval: Duration,
    /// After which time without a report others continue the turns of a server.
    pub worker_timeout: Duration,
    /// How many times a turn is continued after its server stopped, or its store failed, before somebody has to look at it.
    pub max_attempts: u32,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            tokens: Vec::new(),
            hosts: Vec::new(),
            origins: Vec::new(),
            system_messages: SystemMessages::default(),
            tools: ToolAccess::default(),
            editing: Editing::default(),
            approval_expiry: Duration::from_secs(24 * 60 * 60),
            turn_limits: TurnLimits::default(),
            webhooks: None,
            limits: Limits::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Enough for an attachment of the maximum size in Base64.
            max_body: 32 << 20,
            max_connections: 4096,
            max_turns: 2048,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            disconnect_grace: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            expiry_interval: Duration::from_secs(30),
            worker_timeout: Duration::from_secs(20),
            max_attempts: 5,
        }
    }
}
