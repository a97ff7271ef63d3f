//! A proxy in front of the PostgreSQL server, which can disturb its connections.

use super::TestStore;
use patter::store::StoreLocation;
use std::collections::HashMap;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What happens to the bytes of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Traffic {
    Forward,
    /// Nothing passes, and connections stay open.
    Stall,
    /// Requests pass. The next answer does not: its connection is closed, and everything passes again.
    CutAnswers,
    /// The next request does not pass: the client's end of its connection is closed, while the server keeps its own, as
    /// after a failure of the network. Then everything passes again.
    Abandon,
    /// Connections are accepted and closed at once, as by a proxy whose server is starting.
    Close,
}

/// A proxy that listens on loopback until it is dropped.
pub(super) struct Proxy {
    /// The store, as reached through the proxy.
    pub(super) location: StoreLocation,
    traffic: watch::Sender<Traffic>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(super) async fn start(test_store: &TestStore) -> Self {
        let url = test_store.location.to_string();
        let (database, options) = url.strip_prefix("postgres:///").unwrap().split_once('?').unwrap();
        let options: HashMap<_, _> = options.split('&').map(|option| option.split_once('=').unwrap()).collect();
        let socket = format!("{}/.s.PGSQL.{}", options["host"], options["port"]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let location = format!("postgres://{}@127.0.0.1:{port}/{database}?sslmode=disable", options["user"]);
        let (traffic, _) = watch::channel(Traffic::Forward);
        let shared = traffic.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *shared.borrow() == Traffic::Close {
                    shared.send_replace(Traffic::Forward);
                    continue;
                }
                let server = UnixStream::connect(&socket).await.unwrap();
                tokio::spawn(connect(client, server, shared.clone()));
            }
        });
        Self { location: StoreLocation::parse(&location).unwrap(), traffic, task }
    }

    pub(super) fn set(&self, traffic: Traffic) {
        self.traffic.send_replace(traffic);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn connect(client: TcpStream, server: UnixStream, traffic: watch::Sender<Traffic>) {
    let (from_client, to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::select! {
        end = forward(from_client, &mut to_server, &traffic, false) => if end == Traffic::Abandon {
            std::mem::forget((from_server, to_server));
        },
        _ = forward(&mut from_server, to_client, &traffic, true) => {}
    }
}

async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    traffic: &watch::Sender<Traffic>,
    is_answer: bool,
) -> Traffic {
    let mut bytes = vec![0; 64 * 1024];
    let mut changes = traffic.subscribe();
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        let current = *changes.wait_for(|traffic| *traffic != Traffic::Stall).await.unwrap();
        if current == (if is_answer { Traffic::CutAnswers } else { Traffic::Abandon }) {
            traffic.send_replace(Traffic::Forward);
            return current;
        }
        if to.write_all(&bytes[..length]).await.is_err() {
            break;
        }
    }
    Traffic::Forward
}
