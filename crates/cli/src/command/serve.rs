//! `patter serve`: serves agents over HTTP.

use super::Command;
use crate::argument::{ModelArgument, parse_duration, parse_model};
use crate::error::{CommandError, CommandResult, Outcome};
use crate::experiment::ExperimentProcesses;
use crate::file::{Input, unreadable};
use crate::session::StoreOption;
use crate::setup::{Intent, LockOption, Rules, Setup, ToolSources, refuse_broken_policies};
use crate::ui::style::{ACCENT, BOLD, DIM};
use crate::{ui, unsupported};
use clap::{Args, ValueEnum};
use patter::declare::DeclarationKind;
use patter::drive::Driver;
use patter::http::NetworkPolicy;
use patter::live::{LiveProject, ProjectPaths};
use patter::project::{Config, Environment, LimitsConfig, Project, ServerSelection, ToolVariant};
use patter::schedule::Schedule;
use patter_serve::{
    Editing, Limits, ServeSettings, Server, SystemMessages, Token, TokenHash, ToolAccess, TurnLimits,
    WebhookSecretError, Webhooks,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Serve agents over HTTP, in the protocols that chat programs and SDKs speak
///
/// Each agent is a model of the OpenAI protocol (`POST /v1/chat/completions`, `GET /v1/models`), and a tool of an MCP server
/// (`/mcp`, or --mcp over stdin and stdout). With --acp, an editor talks to the agents over stdin and stdout. Calls that need
/// an approval wait in the session store until somebody answers; nothing is approved by itself.
///
/// With --tools, MCP clients may also call the tools of the project themselves. Calls that compute, read or use the network
/// are allowed, and calls that change something need an approval, which the client asks its user for. Rules of patter.toml
/// and of the command apply too: tools that they deny are not offered.
///
/// The server accepts requests from this machine only, and only such that are meant for it. To listen elsewhere, it needs a
/// token.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter serve examples/hello.gram\n  \
                        patter serve examples/hello.gram --mcp\n  \
                        patter serve examples/hello.gram --acp\n  \
                        patter serve --mcp --tools --deny 'fs/*'\n  \
                        patter serve --listen 0.0.0.0:8484 --host agents.example.com --tokens tokens.toml\n  \
                        curl http://127.0.0.1:8484/v1/models")]
pub(crate) struct Serve {
    #[command(flatten)]
    options: ServeOptions,

    /// Serve the agents as tools of an MCP server over stdin and stdout, for editors and other agents
    #[arg(long, conflicts_with_all = ["listen", "token", "tokens", "hosts", "origins"])]
    mcp: bool,

    /// Serve the agents to an editor that speaks the Agent Client Protocol over stdin and stdout
    #[arg(long, conflicts_with_all = ["mcp", "tools", "listen", "token", "tokens", "hosts", "origins"])]
    acp: bool,

    /// Let MCP clients call the tools of the project without an agent, if its rules permit it
    #[arg(long)]
    tools: bool,

    /// How to handle the system messages of clients
    #[arg(long, value_enum, default_value_t = SystemOption::Append)]
    system: SystemOption,
}

/// What all servers over HTTP have in common.
#[derive(Args)]
pub(super) struct ServeOptions {
    /// Files and folders with agents; by default those of the project
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8484")]
    listen: SocketAddr,

    /// Token that clients present, and that may do everything; better: the variable `PATTER_SERVE_TOKEN`
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,

    /// TOML file with tokens: [NAME] with hash = "sha256:…", and optionally scopes and agents
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,

    /// Name under which clients reach the server, besides those of this machine; may be repeated
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,

    /// Web page that may use the server, such as https://app.example.com; may be repeated
    #[arg(long = "cors", value_name = "ORIGIN")]
    origins: Vec<String>,

    /// Let people with the scope `admin` edit the files of the project in the studio
    #[arg(long)]
    edit: bool,

    /// Refuse a call if nobody approves it in this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "24h")]
    approval_expiry: Duration,

    /// Continue the turns of another server with the same store if it does not report for this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "20s")]
    takeover_after: Duration,

    /// Model to use instead of those of the agents: Provider/name, or demo
    #[arg(long, value_name = "MODEL", value_parser = parse_model)]
    model: Option<ModelArgument>,

    #[command(flatten)]
    store: StoreOption,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    lock: LockOption,

    /// Gram file with more toolboxes; may be repeated
    #[arg(long = "toolbox", value_name = "FILE")]
    toolboxes: Vec<PathBuf>,

    /// Gram file whose tools replace those of the same name in a conversation of the studio that chooses them; may be repeated
    #[arg(long = "variant", value_name = "NAME=FILE", value_parser = parse_variant)]
    variants: Vec<(String, PathBuf)>,

    /// Do not start MCP servers
    #[arg(long)]
    no_mcp: bool,
}

/// Returns how many turns run at a time.
fn turn_limits(limits: &LimitsConfig) -> TurnLimits {
    let numbers = |limits: &BTreeMap<String, NonZeroU32>| {
        limits.iter().map(|(name, most)| (name.clone(), most.get())).collect::<BTreeMap<_, _>>()
    };
    TurnLimits { agents: numbers(&limits.agents), tokens: numbers(&limits.tokens) }
}

/// Returns how the ends of turns are reported to other servers, if the project names a secret for that.
fn webhooks(config: &Config, environment: &Environment) -> Result<Option<Webhooks>, CommandError> {
    let Some(name) = &config.serve.webhook_secret else { return Ok(None) };
    let Some(secret) = environment.get(name).filter(|secret| !secret.trim().is_empty()) else {
        let error = CommandError::usage(format!("the webhook secret is missing: `{name}` is not set"));
        return Err(error.with_hint(format!("set `{name}`; {}", WebhookSecretError::Prefix.hint())));
    };
    let policy = NetworkPolicy::from_allow_list(config.http.allow.iter().map(String::as_str));
    let policy = policy.map_err(|error| CommandError::usage(format!("[http] in patter.toml: {error}")))?;
    let webhooks = Webhooks::new(&secret, policy, |name| environment.get(name));
    Ok(Some(webhooks.map_err(|error| CommandError::usage(format!("`{name}`: {error}")).with_hint(error.hint()))?))
}

/// Checks that all schedules of the project can run.
fn check_schedules(project: &Project, has_webhooks: bool) -> Result<(), CommandError> {
    let schedules = Schedule::read_all(project);
    let declared = project.declarations().iter().filter(|it| it.kind == DeclarationKind::Schedule);
    for declaration in declared {
        if schedules.iter().all(|schedule| schedule.name != declaration.name) {
            let error = CommandError::usage(format!("the schedule `{}` is not valid", declaration.name));
            return Err(error.with_hint("`patter check` says what is wrong"));
        }
    }
    match schedules.iter().find(|schedule| schedule.webhook.is_some() && !has_webhooks) {
        None => Ok(()),
        Some(schedule) => {
            let error = CommandError::usage(format!("the webhook of the schedule `{}` needs a secret", schedule.name));
            Err(error
                .with_hint("name its variable in patter.toml: `webhook-secret = \"WEBHOOK_SECRET\"` under `[serve]`"))
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum SystemOption {
    /// They follow the instruction of the agent
    Append,
    /// They have no effect
    Ignore,
    /// Requests with one are refused
    Refuse,
}

/// Where a server is reached.
enum Transport {
    Http,
    /// Over HTTP, for people who look at a project. They see agents that cannot run, too.
    Studio,
    Mcp,
    Acp,
}

impl Command for Serve {
    fn run(&self) -> CommandResult {
        let system_messages = match self.system {
            SystemOption::Append => SystemMessages::Append,
            SystemOption::Ignore => SystemMessages::Ignore,
            SystemOption::Refuse => SystemMessages::Refuse,
        };
        let tools = if self.tools { ToolAccess::Direct } else { ToolAccess::ThroughAgents };
        let settings = ServeSettings { system_messages, tools, ..self.options.settings()? };
        let transport = match self {
            Self { mcp: true, .. } => Transport::Mcp,
            Self { acp: true, .. } => Transport::Acp,
            _ => Transport::Http,
        };
        self.options.serve(settings, &transport, |_, _| Ok(()))
    }
}

impl ServeOptions {
    /// Serves over HTTP even if some agents cannot run, and reports the address once the server listens.
    pub(super) fn serve_studio(
        &self,
        announce: impl FnOnce(SocketAddr, Option<&str>) -> Result<(), CommandError>,
    ) -> CommandResult {
        self.serve(self.settings()?, &Transport::Studio, announce)
    }

    fn serve(
        &self,
        settings: ServeSettings,
        transport: &Transport,
        announce: impl FnOnce(SocketAddr, Option<&str>) -> Result<(), CommandError>,
    ) -> CommandResult {
        let has_tools = settings.tools == ToolAccess::Direct;
        let sources = ToolSources::new(self.toolboxes.clone(), self.no_mcp);
        let servers = if has_tools { ServerSelection::All } else { ServerSelection::ForAgents };
        let excluded: Vec<_> = self.variants.iter().map(|(_, file)| file.clone()).collect();
        let setup = Setup::read_locked(&self.paths, &sources, &servers, Intent::Call, &excluded, self.lock)?;
        let rules = self.rules.checked(&setup)?;
        refuse_broken_policies(&setup, &rules)?;
        let variants = self.read_variants(&setup)?;
        let Setup { root, config, loaded, mut toolset } = setup;
        let environment = toolset.environment.clone();
        let paths: Vec<_> = self.paths.iter().chain(sources.files()).cloned().collect();
        let places = ProjectPaths { paths, root: root.clone(), excluded };
        let tools = std::mem::take(&mut toolset.tools);
        let library = Arc::clone(&toolset.library);
        let project = LiveProject::new(places, config.clone(), environment.clone(), loaded.project, tools, library);
        let lock = toolset.lock.clone();
        let model = self.model.as_ref().map(ModelArgument::resolve).transpose()?;
        let configure = move |driver: Driver| {
            let mut driver = driver.with_rules(rules.clone());
            if let Some(lock) = &lock {
                driver = driver.with_lock(Arc::clone(lock));
            }
            match &model {
                Some(model) => driver.with_model(model.clone()),
                None => driver,
            }
        };
        let driver = configure(project.driver());
        let names = self.agents(driver.project());
        if names.is_empty() && !has_tools {
            let error = CommandError::usage("there are no agents to serve");
            return Err(error.with_hint("name a file with agents: `patter serve FILE`"));
        }
        self.check_paths(driver.project(), has_tools)?;
        let mut agents = Vec::with_capacity(names.len());
        for name in &names {
            match driver.compile_named(name) {
                Some(Err(_)) if matches!(transport, Transport::Studio) => {
                    ui::warning(&format!("the agent `{name}` cannot run: its page says why"))?;
                }
                compiled => agents.extend(compiled.transpose()?),
            }
        }
        unsupported::warn(&agents, &environment, &config.models)?;
        let tools = if has_tools { offered_tools(&driver) } else { 0 };
        let webhooks = webhooks(&config, &environment)?;
        check_schedules(driver.project(), webhooks.is_some())?;
        let settings = ServeSettings { turn_limits: turn_limits(&config.limits), webhooks, ..settings };
        let mut server = Server::new(Arc::new(project), settings).with_driver(configure).with_agents(names.clone());
        server = server.with_tracer(toolset.runtime.tracer());
        for (name, tools) in variants {
            server = server.with_variant(name, tools);
        }
        let stop = toolset.stop.clone();
        toolset.runtime.block_on(async {
            let location = self.store.location(root.as_deref(), &config, &environment)?;
            match &location {
                Some(location) => {
                    server = server.with_store(patter::store::open(location).await?);
                    server = server.with_experiments(self.experiment_processes());
                }
                None if matches!(transport, Transport::Acp) => return Err(self.store.disabled()),
                None => ui::warning("sessions are not stored: no call can wait for an approval")?,
            }
            match transport {
                Transport::Http | Transport::Studio => {}
                Transport::Mcp => {
                    server.serve_mcp(stop).await?;
                    return Ok(Outcome::Success);
                }
                Transport::Acp => {
                    server.serve_acp(stop).await?;
                    return Ok(Outcome::Success);
                }
            }
            let listener = TcpListener::bind(self.listen).await.map_err(|error| self.cannot_listen(&error))?;
            let address = listener.local_addr()?;
            ui::status(&format!("serving {} at {ACCENT}http://{address}{ACCENT:#}", ui::plural(names.len(), "agent")))?;
            for name in &names {
                ui::status(&format!("  {BOLD}{name}{BOLD:#}"))?;
            }
            if has_tools {
                let tools = ui::plural(tools, "tool");
                ui::status(&format!("MCP clients may call {tools} at {ACCENT}http://{address}/mcp{ACCENT:#}"))?;
            }
            announce(address, self.given_token().as_deref())?;
            ui::status(&format!("{DIM}stop with Ctrl-C{DIM:#}"))?;
            server.serve(listener, stop).await?;
            Ok(Outcome::Success)
        })
    }

    /// Reads the tools that conversations may choose.
    fn read_variants(&self, setup: &Setup) -> Result<Vec<(String, ToolVariant)>, CommandError> {
        let mut variants: Vec<(String, ToolVariant)> = Vec::new();
        for (name, file) in &self.variants {
            if variants.iter().any(|(known, _)| known == name) {
                return Err(CommandError::usage(format!("there are two variants named `{name}`")));
            }
            let variant = setup.read_variant(file, setup.root.as_deref(), &setup.config)?;
            // They must fit the project, so that a conversation does not fail later.
            variant.replace_in(&setup.toolset.library)?;
            variants.push((name.clone(), variant));
        }
        Ok(variants)
    }

    /// Returns what starts experiments with the options of this server.
    fn experiment_processes(&self) -> ExperimentProcesses {
        let mut options: Vec<OsString> = self.rules.options().map(OsString::from).collect();
        for file in &self.toolboxes {
            options.extend(["--tools".into(), file.into()]);
        }
        options.extend(self.model.iter().map(|model| format!("--model={model}").into()));
        options.extend(self.no_mcp.then(|| "--no-mcp".into()));
        options.extend(self.lock.is_given().then(|| "--locked".into()));
        ExperimentProcesses { options, store: self.store.given().map(str::to_owned) }
    }

    /// Returns the names of the agents to serve: those of the paths, or of the whole project.
    fn agents(&self, project: &Project) -> Vec<String> {
        Self::agents_of(&self.paths, project)
    }

    fn agents_of(paths: &[PathBuf], project: &Project) -> Vec<String> {
        let full = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let paths: Vec<_> = paths.iter().map(|path| full(path)).collect();
        let is_served = |file: usize| {
            let path = project.files().get(file).map(|file| full(Path::new(&file.path)));
            paths.is_empty() || path.is_some_and(|path| paths.iter().any(|served| path.starts_with(served)))
        };
        let agents = project.agents().filter(|(declaration, _)| is_served(declaration.file));
        agents.filter_map(|(_, agent)| Some(agent.name()?.into_owned())).collect()
    }

    /// Checks that each path has agents. Other commands have an option --tools for files, so a file may be meant as such.
    fn check_paths(&self, project: &Project, has_tools: bool) -> Result<(), CommandError> {
        let has_agents = |path: &&PathBuf| {
            let served = Self::agents_of(std::slice::from_ref(*path), project);
            !served.is_empty()
        };
        match self.paths.iter().find(|path| has_tools && !has_agents(path)) {
            None => Ok(()),
            Some(path) => {
                let error = CommandError::usage(format!("`{}` has no agents to serve", path.display()));
                Err(error.with_hint("name a file with toolboxes with --toolbox; --tools has no value here"))
            }
        }
    }

    /// Returns the token of the command line. It is not read from `.env`: a project must not decide who may use the server.
    fn given_token(&self) -> Option<String> {
        let token = self.token.clone().or_else(|| std::env::var("PATTER_SERVE_TOKEN").ok());
        token.map(|token| token.trim().to_owned())
    }

    fn settings(&self) -> Result<ServeSettings, CommandError> {
        let mut tokens = Vec::new();
        if let Some(token) = self.given_token() {
            const MIN_LENGTH: usize = 16;
            if token.len() < MIN_LENGTH {
                let error = CommandError::usage(format!("the token has fewer than {MIN_LENGTH} characters"));
                return Err(error.with_hint("create one with `openssl rand -hex 32`"));
            }
            tokens.push(Token::new("token", TokenHash::of(&token)));
        }
        if let Some(path) = &self.tokens {
            let input = Input::Path(path.clone());
            let text = patter::file::read_settings(path).map_err(|error| unreadable(&input, &error))?;
            let read = Token::read_all(&text);
            tokens.extend(read.map_err(|error| {
                CommandError::usage(format!("{}: {error}", path.display()))
                    .with_hint("write [NAME] and hash = \"sha256:…\"; `printf %s TOKEN | sha256sum` computes it")
            })?);
        }
        if tokens.is_empty() && !self.listen.ip().is_loopback() {
            let error = CommandError::usage(format!("without a token, the server does not listen on {}", self.listen));
            return Err(error.with_hint("set PATTER_SERVE_TOKEN, or name a file with --tokens"));
        }
        let mut hosts = self.hosts.clone();
        if !self.listen.ip().is_unspecified() {
            hosts.push(self.listen.to_string());
        }
        Ok(ServeSettings {
            tokens,
            hosts,
            origins: self.origins.clone(),
            editing: if self.edit { Editing::On } else { Editing::Off },
            approval_expiry: self.approval_expiry,
            limits: Limits { worker_timeout: self.takeover_after, ..Limits::default() },
            ..ServeSettings::default()
        })
    }

    fn cannot_listen(&self, error: &std::io::Error) -> CommandError {
        let message = format!("cannot listen on {}: {}", self.listen, patter::os_error::describe(error));
        CommandError::failure(message).with_hint("choose another address with --listen, such as 127.0.0.1:0")
    }
}

/// Reads a variant on the command line.
fn parse_variant(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), PathBuf::from(file))),
        _ => Err("write NAME=FILE".to_owned()),
    }
}

/// Returns how many tools clients may call.
fn offered_tools(driver: &Driver) -> usize {
    let executor = driver.client_executor();
    executor.library().entries().filter(|entry| executor.permissions().may_permit(&entry.name)).count()
}
