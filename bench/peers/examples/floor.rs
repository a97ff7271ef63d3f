//! The floor: the hello turn written by hand. The last line it prints is one JSON object.
#![allow(clippy::print_stdout, reason = "the report is its output")]

use mimalloc::MiMalloc;
use patter_bench_peers::floor::Floor;
use patter_bench_peers::harness::{Options, TurnError, measure};
use std::sync::Arc;

/// The allocator of `patter`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> Result<(), TurnError> {
    let options = Options::from_args()?;
    let floor = Arc::new(Floor::new(&options)?);
    let report = measure("floor", &options, move || {
        let floor = Arc::clone(&floor);
        async move { floor.turn(|_| {}).await }
    })
    .await;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
