//! Runs as spans of the clients that start them.

use crate::lab::Lab;
use patter::trace::Tracer;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Receives exports, and returns the address and what was received.
pub(crate) async fn receiver() -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let received = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let sink = Arc::clone(&sink);
            tokio::spawn(async move {
                let mut buffer = [0; 64 << 10];
                while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                    sink.lock().unwrap().extend_from_slice(&buffer[..count]);
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
                }
            });
        }
    });
    (address, received)
}

#[tokio::test]
async fn a_run_is_part_of_the_trace_of_its_client() {
    let (address, received) = receiver().await;
    let set = move |name: &str| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(address.clone()),
        "OTEL_EXPORTER_OTLP_COMPRESSION" => Some("none".to_owned()),
        _ => None,
    };
    let tracer = Tracer::from_variables(set).unwrap().unwrap();
    let lab = Lab::traced(tracer.clone()).await;
    let parent = ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let request = json!({"model": "greeter", "messages": [{"role": "user", "content": "Hi"}]});
    assert_eq!(lab.post_with("/v1/chat/completions", &[parent], &request).await.status, 200);
    tracer.flush().await;
    let bytes = received.lock().unwrap().clone();
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    assert!(has(b"invoke_agent greeter") && has(b"execute_tool look"), "{}", String::from_utf8_lossy(&bytes));
    let trace: Vec<u8> = (0..16).map(|at| u8::from_str_radix(&parent.1[3 + 2 * at..5 + 2 * at], 16).unwrap()).collect();
    assert!(has(&trace), "the spans are in the trace of the client");
    // MCP clients have it in the metadata of a request.
    let parent = "00-1bf7651916cd43dd8448eb211c80319d-c7ad6b7169203332-01";
    let meta = json!({"traceparent": parent});
    let request = json!({"name": "ask_slow", "arguments": {"message": "Hi"}, "_meta": meta});
    let answer = crate::mcp::call(&lab, "tools/call", request).await;
    assert_eq!(answer["structuredContent"]["text"], "Late.", "{answer}");
    tracer.flush().await;
    let bytes = received.lock().unwrap().clone();
    let trace: Vec<u8> = (0..16).map(|at| u8::from_str_radix(&parent[3 + 2 * at..5 + 2 * at], 16).unwrap()).collect();
    let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    assert!(has(b"invoke_agent slow") && has(&trace), "the spans are in the trace of the MCP client");
    // A parent that is not valid does not count.
    let request = json!({"model": "greeter", "messages": [{"role": "user", "content": "Hi"}]});
    let invalid = [("traceparent", "00-zz")];
    assert_eq!(lab.post_with("/v1/chat/completions", &invalid, &request).await.status, 200);
}
