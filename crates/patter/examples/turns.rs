//! Measures turns of the hello agent (model, `sayHello`, model) against a server with the API of OpenAI. Prints one JSON
//! object, for comparison with other runtimes.
//!
//! ```text
//! cargo run --release -p patter --example turns -- --base-url http://127.0.0.1:8080/v1 --n 5000
//! ```
//!
//! With `--stream` there is a listener, so that replies are streamed. With `--store PATH` each turn is a session of its own
//! in a store; with `--store none` the sessions are not saved.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark")]

use patter::compile::CompiledAgent;
use patter::drive::{Driver, RunEvent, now_ms};
use patter::library::Layer;
use patter::live::LiveProject;
use patter::model::{HttpModel, Model, ModelResolver};
use patter::project::{Environment, Project};
use patter::run::{Run, RunOutcome};
use patter::session::Session;
use patter::store::{self, SessionId, Store, StoreLocation};
use patter::tool::{CancellationToken, ToolResources, merge, standard::standard_library};
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
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    Ok(options)
}

/// Runs turns.
#[derive(Clone)]
enum Player {
    Runs { driver: Driver, compiled: CompiledAgent },
    Sessions { project: Arc<LiveProject>, store: Option<Arc<dyn Store>>, events: Option<EventCounter> },
}

/// Counts events.
type EventCounter = Arc<AtomicUsize>;

impl Player {
    async fn new(options: &Options) -> Result<Self, Box<dyn Error>> {
        let environment = Environment::from_variables([
            ("OPENAI_BASE_URL", options.base_url.as_str()),
            ("OPENAI_API_KEY", "none"),
            ("PATTER_OPENAI_API", options.api.as_str()),
        ]);
        let events = options.stream.then(EventCounter::default);
        if let Some(location) = &options.store {
            let project = LiveProject::open(&options.agent).with_environment(environment).read().await?;
            let store =
                if location == "none" { None } else { Some(store::open(&StoreLocation::parse(location)?).await?) };
            return Ok(Player::Sessions { project: project.into(), store, events });
        }
        let text = std::fs::read_to_string(&options.agent)?;
        let project = Arc::new(Project::read([(options.agent.as_str(), text)]));
        let tools = standard_library(&ToolResources::new(".", environment.clone()));
        let library = merge([(Layer::Internal, tools)]).map_err(|_| "cannot merge the library")?;
        let (_, agent) = project.agents().next().ok_or("the file has no agent")?;
        let model: Arc<dyn Model> = Arc::new(HttpModel::new(&"OpenAI/gpt-4o-mini".parse()?, &environment)?);
        let models: ModelResolver = Arc::new(move |_| Ok(Arc::clone(&model)));
        let driver = with_counter(Driver::new(Arc::clone(&project), library.into(), models), events.as_ref());
        let compiled = driver.compile(&agent)?;
        Ok(Player::Runs { driver, compiled })
    }

    /// Runs a turn. Returns the number of tool calls, or `None` if it failed.
    async fn turn(&self, number: usize) -> Option<usize> {
        const PROMPT: &str = "Hello! My name is Alice.";
        let stop = CancellationToken::new();
        let run = match self {
            Player::Runs { driver, compiled } => {
                let run = Run::start(compiled.spec().clone(), Vec::new(), PROMPT, now_ms()).ok()?;
                driver.drive(compiled, run, &stop).await
            }
            Player::Sessions { project, store, events } => {
                let id = SessionId::parse(&format!("turn-{}-{number}", now_ms())).ok()?;
                let project = Arc::clone(project);
                let events = events.clone();
                let session = match store {
                    Some(store) => Session::create(project, Arc::clone(store), id),
                    None => Session::new(project),
                };
                let mut session = session.with_driver(move |driver| with_counter(driver, events.as_ref()));
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

    /// Runs turns concurrently. Returns the duration of each, the number of failures, and the number of tool calls.
    async fn play(&self, turns: usize, concurrency: usize) -> (Vec<Duration>, usize, usize) {
        let next = Arc::new(AtomicUsize::new(0));
        let players = (0..concurrency.max(1)).map(|_| {
            let player = self.clone();
            let next = Arc::clone(&next);
            tokio::spawn(async move {
                let mut times = Vec::new();
                let mut errors = 0;
                let mut calls = 0;
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= turns {
                        break;
                    }
                    let begin = Instant::now();
                    match player.turn(number).await {
                        Some(count) => calls += count,
                        None => errors += 1,
                    }
                    times.push(begin.elapsed());
                }
                (times, errors, calls)
            })
        });
        let players: Vec<_> = players.collect();
        let mut all_times = Vec::new();
        let mut all_errors = 0;
        let mut all_calls = 0;
        for player in players {
            let Ok((times, errors, calls)) = player.await else { continue };
            all_times.extend(times);
            all_errors += errors;
            all_calls += calls;
        }
        (all_times, all_errors, all_calls)
    }
}

/// Adds a listener, so that replies are streamed.
fn with_counter(driver: Driver, events: Option<&EventCounter>) -> Driver {
    let Some(events) = events.cloned() else { return driver };
    driver.with_listener(move |_: &RunEvent| {
        events.fetch_add(1, Ordering::Relaxed);
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let player = Player::new(&options).await?;
    player.play(options.warmup, options.concurrency).await;
    let cpu = cpu_seconds();
    let begin = Instant::now();
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

/// Returns the CPU time of the process, or 0 if unknown.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

/// Returns a value of the process status, in KiB.
fn status(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
}
