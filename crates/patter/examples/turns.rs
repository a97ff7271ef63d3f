//! Measures turns of the hello agent (model, `sayHello`, model) against a server with the API of OpenAI. Prints one JSON
//! object, for comparison with other runtimes.
//!
//! ```text
//! cargo run --release -p patter --example turns -- --base-url http://127.0.0.1:8080/v1 --n 5000
//! ```
//!
//! With `--stream` there is a listener, so that replies are streamed. With `--store PATH` each turn is a session of its own
//! in a store; with `--store none` the sessions are not saved. With `--session-turns N`, N turns share a session. With
//! `--open N`, a stored session of N turns is opened repeatedly instead. With `--model demo`, the built-in model replies, and
//! there is no server.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark")]

use mimalloc::MiMalloc;
use nix::time::ClockId;
use patter::compile::CompiledAgent;
use patter::drive::{Driver, RunEvent, now_ms};
use patter::library::Layer;
use patter::live::LiveProject;
use patter::model::{DemoModel, HttpModel, Model, ModelResolver};
use patter::project::{Environment, Project};
use patter::run::{Run, RunOutcome};
use patter::session::Session;
use patter::store::{self, SessionId, Store, StoreLocation};
use patter::tool::{CancellationToken, ToolResources, merge, standard::standard_library};
use serde_json::json;
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The allocator of `patter`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Clone)]
struct Options {
    base_url: String,
    n: usize,
    concurrency: usize,
    warmup: usize,
    api: String,
    agent: String,
    stream: bool,
    store: Option<String>,
    session_turns: usize,
    open: usize,
    is_demo: bool,
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
        session_turns: 1,
        open: 0,
        is_demo: false,
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
            "--session-turns" => options.session_turns = value.parse()?,
            "--open" => options.open = value.parse()?,
            "--model" if value == "demo" => options.is_demo = true,
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    Ok(options)
}

/// Runs turns.
#[derive(Clone)]
enum Player {
    Runs { driver: Box<Driver>, compiled: CompiledAgent },
    Sessions(Arc<Sessions>),
}

struct Sessions {
    project: Arc<LiveProject>,
    store: Option<Arc<dyn Store>>,
    events: Option<EventCounter>,
    /// How many turns a session has.
    turns: usize,
    /// The sessions that have fewer.
    open: Mutex<Vec<Session>>,
}

impl Sessions {
    /// Returns a session for the next turn.
    fn take(&self, number: usize) -> Option<Session> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(session) = open {
            return Some(session);
        }
        let project = Arc::clone(&self.project);
        let session = match &self.store {
            Some(store) => {
                let id = SessionId::parse(&format!("turn-{}-{number}", now_ms())).ok()?;
                Session::create(project, Arc::clone(store), id)
            }
            None => Session::new(project),
        };
        let events = self.events.clone();
        Some(session.with_driver(move |driver| with_counter(driver, events.as_ref())))
    }

    fn put_back(&self, session: Session) {
        if session.turns() < self.turns {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).push(session);
        }
    }
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
            let sessions = Sessions {
                project: project.into(),
                store,
                events,
                turns: options.session_turns,
                open: Mutex::default(),
            };
            return Ok(Player::Sessions(Arc::new(sessions)));
        }
        let text = std::fs::read_to_string(&options.agent)?;
        let project = Arc::new(Project::read([(options.agent.as_str(), text)]));
        let tools = standard_library(&ToolResources::new(".", environment.clone()));
        let library = merge([(Layer::Internal, tools)]).map_err(|_| "cannot merge the library")?;
        let (_, agent) = project.agents().next().ok_or("the file has no agent")?;
        let model: Arc<dyn Model> = match options.is_demo {
            true => Arc::new(DemoModel),
            false => Arc::new(HttpModel::new(&"OpenAI/gpt-4o-mini".parse()?, &environment)?),
        };
        let models: ModelResolver = Arc::new(move |_| Ok(Arc::clone(&model)));
        let driver = with_counter(Driver::new(Arc::clone(&project), library.into(), models), events.as_ref());
        let compiled = driver.compile(&agent)?;
        Ok(Player::Runs { driver: Box::new(driver), compiled })
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
            Player::Sessions(sessions) => {
                let mut session = sessions.take(number)?;
                // Boxed, so that it takes no memory where there are no sessions.
                let run = Box::pin(session.say(PROMPT, &stop)).await;
                let run = run.inspect_err(|error| eprintln!("{error}")).ok()?;
                sessions.put_back(session);
                run
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
    if options.open > 0 {
        return open_session(&options).await;
    }
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

/// Measures how long it takes to open a stored session.
async fn open_session(options: &Options) -> Result<(), Box<dyn Error>> {
    let Some(location) = &options.store else { return Err("--open needs --store".into()) };
    let player = Player::new(&Options { session_turns: options.open, concurrency: 1, ..options.clone() }).await?;
    player.play(options.open, 1).await;
    let store = store::open(&StoreLocation::parse(location)?).await?;
    let sessions = store.list(1).await?;
    let newest = sessions.first().ok_or("the store has no session")?;
    let project = Arc::new(LiveProject::open(&options.agent).read().await?);
    let mut times = Vec::new();
    for _ in 0..options.n.min(20) {
        let begin = Instant::now();
        let session = Session::open(Arc::clone(&project), Arc::clone(&store), &newest.id).await?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        drop(session);
    }
    times.sort_by(f64::total_cmp);
    let entries = store.read(&newest.id).await?.entries.len();
    println!("{}", json!({ "turns": options.open, "entries": entries, "median_ms": times.get(times.len() / 2) }));
    Ok(())
}

/// Returns the CPU time of the process. `/proc/self/stat` has it in steps of 10 ms only, too coarse for short runs.
fn cpu_seconds() -> f64 {
    let time = ClockId::CLOCK_PROCESS_CPUTIME_ID.now();
    time.map_or(0.0, |time| Duration::from(time).as_secs_f64())
}

/// Returns a value of the process status, in KiB.
fn status(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0.0)
}
