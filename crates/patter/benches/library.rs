//! How long a call takes beside a toolbox of 1,000, 5,000 and 10,000 tools, from reading the files to the result.
//!
//! `cargo bench -p patter --bench library` prints milliseconds: where those per 1,000 tools stay the same from line to
//! line, a call is linear in the tools beside it.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a benchmark")]

#[path = "../../core/benches/toolbox/mod.rs"]
mod toolbox;

use patter::permission::{Permissions, Rule};
use patter::project::{Config, Environment, Project, Tools};
use patter::tool::{CallRequest, Executor};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;
use toolbox::toolbox;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>10} {:>12}",
        "tools", "read ms", "build ms", "merge ms", "call ms", "per 1,000"
    );
    for tools in [1_000, 5_000, 10_000] {
        let text = toolbox(tools);
        let begin = Instant::now();
        let mut last = begin;
        let mut lap = || {
            let elapsed = last.elapsed().as_secs_f64() * 1e3;
            last = Instant::now();
            elapsed
        };
        let project = Project::read([("toolbox.gram", &text)]);
        let read = lap();
        let config = Config::default();
        let tools_of_project = Tools::read(&project, None, &config, &Environment::default()).unwrap();
        assert!(tools_of_project.problems().is_empty());
        let built = lap();
        let library = Arc::new(tools_of_project.library().unwrap());
        let merged = lap();
        let permissions = Permissions::default().with_all([Rule::parse("allow sayHello", "bench").unwrap()]);
        let executor = Executor::new(library, permissions);
        let call = CallRequest::new("sayHello", json!({"personName": "Ada"}));
        runtime.block_on(executor.call(call)).unwrap();
        let called = lap();
        let average = begin.elapsed().as_secs_f64() * 1e6 / f64::from(tools);
        println!("{tools:>8} {read:>10.1} {built:>10.1} {merged:>10.1} {called:>10.1} {average:>12.1}");
    }
}
