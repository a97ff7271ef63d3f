//! One address for several workers, as a load balancer has.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Passes each connection to the next worker that accepts it.
pub(crate) struct Balancer {
    pub(crate) port: u16,
    workers: Arc<Mutex<Vec<u16>>>,
    /// The ports that connections were passed to.
    used: Arc<Mutex<BTreeSet<u16>>>,
}

impl Balancer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let workers: Arc<Mutex<Vec<u16>>> = Arc::default();
        let shared = Arc::clone(&workers);
        let used: Arc<Mutex<BTreeSet<u16>>> = Arc::default();
        let shared_used = Arc::clone(&used);
        let next = AtomicUsize::new(0);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let workers = shared.lock().unwrap().clone();
                let first = next.fetch_add(1, Ordering::SeqCst);
                let mut order = (0..workers.len()).map(|offset| workers[(first + offset) % workers.len()]);
                let stream = stream.unwrap();
                match order.find_map(|port| Some((port, TcpStream::connect(("127.0.0.1", port)).ok()?))) {
                    Some((port, worker)) => {
                        shared_used.lock().unwrap().insert(port);
                        join(&stream, &worker);
                    }
                    None => drop(stream.shutdown(Shutdown::Both)),
                }
            }
        });
        Self { port, workers, used }
    }

    /// Returns how many workers had a connection.
    pub(crate) fn used(&self) -> usize {
        self.used.lock().unwrap().len()
    }

    pub(crate) fn set_workers(&self, ports: Vec<u16>) {
        *self.workers.lock().unwrap() = ports;
    }
}

/// Passes bytes between two connections until one of them ends.
fn join(one: &TcpStream, other: &TcpStream) {
    for (from, to) in [(one, other), (other, one)] {
        let mut from = from.try_clone().unwrap();
        let mut to = to.try_clone().unwrap();
        let _ = to.set_nodelay(true);
        thread::spawn(move || {
            let mut buffer = [0; 16 << 10];
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                if to.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
        });
    }
}
