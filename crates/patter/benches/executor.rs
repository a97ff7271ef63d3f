//! The overhead of the executor per call: lookup, permissions, defaults, validation of arguments and result, time limit and
//! isolation, around a native tool that does nothing.
//!
//! `cargo bench -p patter` prints nanoseconds per call next to those of the bare tool, calls per second with 10,000
//! concurrent calls, and the memory growth over a million calls.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::indexing_slicing, missing_docs, reason = "a benchmark")]

use patter::library::Layer;
use patter::permission::{Permissions, Rule};
use patter::tool::{
    BoxFuture, CallRequest, Definition, Effect, Executor, Implementation, Tool, ToolContext, ToolFailure, ToolKind,
    Workspace, merge,
};
use serde_json::{Value as Json, json};
use std::hint::black_box;
use std::time::Instant;

struct Nothing;

impl Implementation for Nothing {
    fn call<'a>(&'a self, arguments: Json, _: &'a ToolContext) -> BoxFuture<'a, Result<Json, ToolFailure>> {
        Box::pin(async move { Ok(arguments["personName"].clone()) })
    }
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let calls = if quick { 20_000 } else { 1_000_000 };
    let definition =
        Definition::new("hello", "Greets", "(personName::Text)==>(age::Int {default: 18})==>(::Text)").unwrap();
    let tool = Tool::new(definition, ToolKind::Native, Nothing).effect(Effect::Pure);
    let workspace = Workspace::builder().toolbox("greetings", |toolbox| toolbox.tool(tool.clone())).build().unwrap();
    let rules = ["allow greetings/*", "ask shop/refund when amount > 100", "deny fs/* when path matches \"/etc/*\""];
    let rules = rules.map(|rule| Rule::parse(rule, "bench").unwrap());
    let library = merge([(Layer::Project, workspace)]).unwrap();
    let executor = Executor::new(library.into(), Permissions::default().with_all(rules));
    let arguments = json!({"personName": "Ada"});

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let (bare, total, growth) = runtime.block_on(async {
        let context = ToolContext::new("");
        let begin = Instant::now();
        for _ in 0..calls {
            black_box(tool.implementation.call(arguments.clone(), &context).await).unwrap();
        }
        let bare = nanoseconds(begin, calls);
        for _ in 0..calls / 10 {
            black_box(executor.call(CallRequest::new("greetings/hello", arguments.clone())).await).unwrap();
        }
        let before = resident_kib();
        let begin = Instant::now();
        for _ in 0..calls {
            black_box(executor.call(CallRequest::new("greetings/hello", arguments.clone())).await).unwrap();
        }
        (bare, nanoseconds(begin, calls), resident_kib().saturating_sub(before))
    });
    println!("sequential   bare {bare:>7.0} ns   executor {total:>7.0} ns   overhead {:>7.0} ns", total - bare);
    println!("memory growth over {calls} calls: {growth} KiB");

    let rounds = if quick { 1 } else { 20 };
    let begin = Instant::now();
    runtime.block_on(async {
        for _ in 0..rounds {
            let tasks: Vec<_> = (0..10_000)
                .map(|_| {
                    let executor = executor.clone();
                    let arguments = arguments.clone();
                    tokio::spawn(async move { executor.call(CallRequest::new("greetings/hello", arguments)).await })
                })
                .collect();
            for task in tasks {
                black_box(task.await.unwrap()).unwrap();
            }
        }
    });
    let per_call = nanoseconds(begin, rounds * 10_000);
    println!("10,000 concurrent calls on 2 workers   {:>7.0} calls/s   {per_call:>7.0} ns per call", 1e9 / per_call);
}

fn nanoseconds(begin: Instant, calls: usize) -> f64 {
    begin.elapsed().as_secs_f64() * 1e9 / calls as f64
}

/// Returns the resident memory of the process, or 0 if unknown.
fn resident_kib() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4
}
