//! A client of `patter serve` that streams hello turns over HTTP, with as little work of its own as possible.
//!
//! ```text
//! load --base-url http://HOST:PORT/v1 [--n TURNS] [--concurrency STREAMS] [--warmup TURNS]
//! ```
//!
//! A turn counts as an error unless its stream ends as it should, with the whole answer.
#![allow(clippy::print_stdout, reason = "the report is its output")]

use patter_bench_peers::harness::{Options, TurnError, measure};
use patter_bench_peers::hello::{ANSWER, PROMPT};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The end of a body in chunks.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// Connections that are free.
type Pool = Arc<Mutex<Vec<TcpStream>>>;

// One thread, since most of the machine is for the server.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), TurnError> {
    let options = Options::from_args()?;
    let address = options.base_url.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let body = json!({
        "model": "hello_world_agent",
        "stream": true,
        "messages": [{"role": "user", "content": PROMPT}],
    });
    let request: Arc<str> = request(&address, &body.to_string()).into();
    let address: Arc<str> = address.into();
    let pool = Pool::default();
    let turn = move || turn(Arc::clone(&address), Arc::clone(&request), Arc::clone(&pool));
    let report = measure("load", &options, turn).await;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

fn request(address: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

async fn turn(address: Arc<str>, request: Arc<str>, pool: Pool) -> Result<usize, TurnError> {
    let free = pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut connection = match free {
        Some(connection) => connection,
        None => {
            let connection = TcpStream::connect(&*address).await?;
            connection.set_nodelay(true)?;
            connection
        }
    };
    connection.write_all(request.as_bytes()).await?;
    let mut response = Vec::with_capacity(4096);
    while !response.ends_with(LAST_CHUNK) {
        if connection.read_buf(&mut response).await? == 0 {
            return Err("the connection closed".into());
        }
    }
    pool.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    let response = String::from_utf8(response)?;
    let is_complete = response.starts_with("HTTP/1.1 200") && response.contains("data: [DONE]");
    match is_complete && said(&response) == ANSWER {
        true => Ok(1),
        false => Err(format!("unexpected response: {response}").into()),
    }
}

/// Returns the text of a stream.
fn said(response: &str) -> String {
    let chunks = response.lines().filter_map(|line| line.strip_prefix("data: "));
    let piece = |chunk: &str| {
        let chunk: serde_json::Value = serde_json::from_str(chunk).ok()?;
        chunk.pointer("/choices/0/delta/content")?.as_str().map(str::to_owned)
    };
    chunks.filter_map(piece).collect()
}
