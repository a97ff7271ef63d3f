//! Plays turns concurrently and measures them.

use nix::time::ClockId;
use serde::Serialize;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The error of a turn.
pub type TurnError = Box<dyn Error + Send + Sync>;

/// The command line of a peer. The flags are those of Patter's own `turns` example.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address of the provider, ending in `/v1`.
    pub base_url: String,
    /// The number of turns to measure.
    pub turns: usize,
    /// The number of turns in flight.
    pub concurrency: usize,
    /// The number of turns to play before measuring.
    pub warmup: usize,
    /// Whether replies are streamed.
    pub is_streaming: bool,
    /// How many turns a conversation has.
    pub session_turns: usize,
}

impl Options {
    /// Parses the arguments of the process.
    pub fn from_args() -> Result<Self, TurnError> {
        let mut options = Self {
            base_url: String::new(),
            turns: 1000,
            concurrency: 1,
            warmup: 50,
            is_streaming: false,
            session_turns: 1,
        };
        let mut args = std::env::args().skip(1);
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("`{flag}` needs a value"));
            match flag.as_str() {
                "--base-url" => options.base_url = value()?,
                "--n" => options.turns = value()?.parse()?,
                "--concurrency" => options.concurrency = value()?.parse::<usize>()?.max(1),
                "--warmup" => options.warmup = value()?.parse()?,
                "--session-turns" => options.session_turns = value()?.parse()?,
                "--stream" => options.is_streaming = true,
                _ => return Err(format!("unknown option `{flag}`").into()),
            }
        }
        if options.base_url.is_empty() {
            return Err("`--base-url` is required".into());
        }
        Ok(options)
    }
}

/// The result of a measurement, with the fields that every peer prints.
#[derive(Debug, Serialize)]
pub struct Report {
    peer: &'static str,
    version: &'static str,
    api: &'static str,
    n: usize,
    concurrency: usize,
    errors: usize,
    tool_calls: usize,
    seconds: f64,
    turns_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    rss_mb: f64,
    cpu_s: f64,
}

/// Warms up, then plays the turns and measures them. A turn returns the number of tool calls it made.
pub async fn measure<T, F>(peer: &'static str, options: &Options, turn: T) -> Report
where
    T: Fn() -> F + Clone + Send + 'static,
    F: Future<Output = Result<usize, TurnError>> + Send,
{
    play(options.warmup, options.concurrency, turn.clone()).await;
    let cpu_before = cpu_seconds();
    let start = Instant::now();
    let mut totals = play(options.turns, options.concurrency, turn).await;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_s = cpu_seconds() - cpu_before;
    totals.latencies.sort_unstable();
    Report {
        peer,
        version: env!("CARGO_PKG_VERSION"),
        api: "chat",
        n: options.turns,
        concurrency: options.concurrency,
        errors: totals.errors,
        tool_calls: totals.tool_calls,
        seconds,
        turns_per_s: options.turns as f64 / seconds,
        p50_ms: percentile(&totals.latencies, 50),
        p99_ms: percentile(&totals.latencies, 99),
        rss_mb: peak_memory_mib(),
        cpu_s,
    }
}

#[derive(Default)]
struct Totals {
    latencies: Vec<Duration>,
    errors: usize,
    tool_calls: usize,
}

/// Plays `turns` turns from `concurrency` tasks, each of which starts its next turn as soon as one ends.
async fn play<T, F>(turns: usize, concurrency: usize, turn: T) -> Totals
where
    T: Fn() -> F + Clone + Send + 'static,
    F: Future<Output = Result<usize, TurnError>> + Send,
{
    let started = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::with_capacity(concurrency);
    for _ in 0..concurrency {
        let started = Arc::clone(&started);
        let turn = turn.clone();
        tasks.push(tokio::spawn(async move {
            let mut totals = Totals::default();
            while started.fetch_add(1, Ordering::Relaxed) < turns {
                let start = Instant::now();
                match turn().await {
                    Ok(tool_calls) => totals.tool_calls += tool_calls,
                    Err(error) => {
                        eprintln!("error: {error}");
                        totals.errors += 1;
                    }
                }
                totals.latencies.push(start.elapsed());
            }
            totals
        }));
    }
    let mut totals = Totals::default();
    for task in tasks {
        match task.await {
            Ok(part) => {
                totals.latencies.extend(part.latencies);
                totals.errors += part.errors;
                totals.tool_calls += part.tool_calls;
            }
            Err(_) => totals.errors += 1,
        }
    }
    totals
}

/// Returns a percentile of sorted latencies in milliseconds, by the nearest-rank method.
fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
}

/// Returns the CPU time of the process. `/proc/self/stat` has it in steps of 10 ms only, too coarse for short runs.
fn cpu_seconds() -> f64 {
    let time = ClockId::CLOCK_PROCESS_CPUTIME_ID.now();
    time.map_or(0.0, |time| Duration::from(time).as_secs_f64())
}

/// Returns the peak resident memory of the process in MiB; 0 where `/proc` is missing.
fn peak_memory_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.and_then(|kib| kib.parse::<f64>().ok()).map_or(0.0, |kib| kib / 1024.0)
}
