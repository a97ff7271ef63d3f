//! Plays turns of the hello agent (model, `sayHello`, model) against a server that speaks like OpenAI, and tells what
//! they cost. The last line is one JSON object, for comparing with other runtimes on the same work.
//!
//! ```text
//! cargo run --release -p patter --example turns -- --base-url http://127.0.0.1:8080/v1 --n 5000
//! ```
//!
//! With `--stream` someone listens, so that replies come in pieces. With `--store PATH` each turn is one of a session
//! of its own, kept in a store; `--store none` has sessions that are kept nowhere.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark")]

use patter::agent::CompiledAgent;
use patter::drive::{Driver, Models, RunEvent, now};
use patter::library::Layer;
use patter::live::LiveProject;
use patter::model::{HttpModel, Model};
use patter::project::{Environment, Project};
use patter::run::{Run, RunOutcome};
use patter::session::Session;
use patter::store::{self, Location, SessionId, Store};
use patter::tool::{CancellationToken, Kit, merge, standard::standard};
use serde_json::json;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

struct Options {
    base_url: String,
    n: usize,
    concurrency: usize,
    warmup: usize,
    api: String,
    agent: String,
    stream: bool,
    store: Option<String>,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hello.gram").to_owned();
    let mut options = Options {
        base_url: String::new(),
        n: 1000,
        concurrency: 1,
        warmup: 50,
        api: "chat".to_owned(),
        agent,
        stream: false,
        store: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        if name == "--stream" {
            options.stream = true;
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--base-url" => options.base_url = value,
            "--n" => options.n = value.parse()?,
            "--concurrency" => options.concurrency = value.parse()?,
            "--warmup" => options.warmup = value.parse()?,
            "--api" => options.api = value,
            "--agent" => options.agent = value,
            "--store" => options.store = Some(value),
            _ => return Err(format!("there is no option {name}").into()),
        }
    }
    Ok(options)
}

/// What plays turns.
#[derive(Clone)]
enum Player {
    Runs { driver: Driver, compiled: CompiledAgent },
    Sessions { agents: Arc<LiveProject>, store: Option<Arc<dyn Store>>, heard: Option<Heard> },
}

/// Counts what is heard.
type Heard = Arc<AtomicUsize>;

impl Player {
    async fn new(options: &Options) -> Result<Self, Box<dyn Error>> {
        let environment = Environment::of([
            ("OPENAI_BASE_URL", options.base_url.as_str()),
            ("OPENAI_API_KEY", "none"),
            ("PATTER_OPENAI_API", options.api.as_str()),
        ]);
        let heard = options.stream.then(Heard::default);
        if let Some(place) = &options.store {
            let agents = LiveProject::open(&options.agent).with_environment(environment).read().await?;
            let store = if place == "none" { None } else { Some(store::open(&Location::parse(place)?).await?) };
            return Ok(Player::Sessions { agents: agents.into(), store, heard });
        }
        let text = std::fs::read_to_string(&options.agent)?;
        let project = Arc::new(Project::read([(options.agent.as_str(), text)]));
        let tools = standard(&Kit::new(".", environment.clone()));
        let library = merge([(Layer::Internal, tools)]).map_err(|_| "the library cannot be merged")?;
        let (_, agent) = project.agents().next().ok_or("the file has no agent")?;
        let model: Arc<dyn Model> = Arc::new(HttpModel::new(&"OpenAI/gpt-4o-mini".parse()?, &environment)?);
        let models: Models = Arc::new(move |_| Ok(Arc::clone(&model)));
        let driver = listening(Driver::new(Arc::clone(&project), library.into(), models), heard.as_ref());
        let compiled = driver.compile(&agent)?;
        Ok(Player::Runs { driver, compiled })
    }

    /// Plays a turn. Returns how many tools were called; nothing if it failed.
    async fn turn(&self, number: usize) -> Option<usize> {
        const PROMPT: &str = "Hello! My name is Alice.";
        let stop = CancellationToken::new();
        let run = match self {
            Player::Runs { driver, compiled } => {
                let run = Run::start(compiled.spec().clone(), Vec::new(), PROMPT, now()).ok()?;
                driver.drive(compiled, run, &stop).await
            }
            Player::Sessions { agents, store, heard } => {
                let id = SessionId::parse(&format!("turn-{}-{number}", now())).ok()?;
                let (agents, heard) = (Arc::clone(agents), heard.clone());
                let session = match store {
                    Some(store) => Session::keep(agents, Arc::clone(store), id),
                    None => Session::new(agents),
                };
                let mut session = session.with_driver(move |driver| listening(driver, heard.as_ref()));
                session.say(PROMPT, &stop).await.inspect_err(|error| eprintln!("{error}")).ok()?
            }
        };
        match run.outcome() {
            Some(RunOutcome::Answer { .. }) => Some(run.response().tools_used.len()),
            other => {
                eprintln!("{other:?}");
                None
            }
        }
    }

    /// Plays turns, some at a time. Returns how long each took, how many failed, and how many tools were called.
    async fn play(&self, turns: usize, concurrency: usize) -> (Vec<Duration>, usize, usize) {
        let next = Arc::new(AtomicUsize::new(0));
        let players = (0..concurrency.max(1)).map(|_| {
            let (player, next) = (self.clone(), Arc::clone(&next));
            tokio::spawn(async move {
                let (mut times, mut errors, mut calls) = (Vec::new(), 0, 0);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= turns {
                        break;
                    }
                    let begin = Instant::now();
                    match player.turn(number).await {
                        Some(called) => calls += called,
                        None => errors += 1,
                    }
                    times.push(begin.elapsed());
                }
                (times, errors, calls)
            })
        });
        let players: Vec<_> = players.collect();
        let mut all = (Vec::new(), 0, 0);
        for player in players {
            let Ok((times, errors, calls)) = player.await else { continue };
            all.0.extend(times);
            all.1 += errors;
            all.2 += calls;
        }
        all
    }
}

/// Lets someone listen, who wants replies in pieces.
fn listening(driver: Driver, heard: Option<&Heard>) -> Driver {
    let Some(heard) = heard.cloned() else { return driver };
    driver.with_listener(move |_: &RunEvent| {
        heard.fetch_add(1, Ordering::Relaxed);
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let player = Player::new(&options).await?;
    player.play(options.warmup, options.concurrency).await;
    let (cpu, begin) = (cpu_seconds(), Instant::now());
    let (mut times, errors, tool_calls) = player.play(options.n, options.concurrency).await;
    let seconds = begin.elapsed().as_secs_f64();
    times.sort();
    let percentile = |part: f64| {
        let at = ((times.len() as f64 * part) as usize).min(times.len().saturating_sub(1));
        times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    println!(
        "{}",
        json!({
            "peer": "ours",
            "version": env!("CARGO_PKG_VERSION"),
            "api": options.api,
            "n": options.n,
            "concurrency": options.concurrency,
            "errors": errors,
            "tool_calls": tool_calls,
            "seconds": seconds,
            "turns_per_s": options.n as f64 / seconds,
            "p50_ms": percentile(0.5),
            "p99_ms": percentile(0.99),
            "rss_mb": status("VmHWM:") / 1024.0,
            "cpu_s": cpu_seconds() - cpu,
        })
    );
    Ok(())
}

/// Returns the processor time that the process used; 0 where the system does not tell.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

/// Returns a line of the status of the process, in KiB.
fn status(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
}
