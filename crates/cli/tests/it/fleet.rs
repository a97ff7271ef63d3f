//! Several `patter serve` processes with one store that are killed, stopped and cut off while they work.
//!
//! `PATTER_BATTERY` sets how many sessions there are, and `PATTER_PAUSE` for how many seconds servers are stopped; the defaults
//! keep the tests short.

use crate::folder::Folder;
use crate::serving::{Served, World, shop};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

const WORKERS: usize = 3;
/// How long everything may take after the faults.
const LIMIT: Duration = Duration::from_secs(120);

fn sessions() -> usize {
    number("PATTER_BATTERY").unwrap_or(45)
}

/// How long a server is stopped: longer than the others wait for it.
fn pause() -> Duration {
    Duration::from_secs(number("PATTER_PAUSE").unwrap_or(4))
}

fn number<N: std::str::FromStr>(variable: &str) -> Option<N> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Sends a message that any server may answer. Returns whether it was accepted.
fn enqueue(port: u16, order: &str) -> bool {
    send(port, order, "?background=true").is_some_and(|response| response.starts_with("HTTP/1.1 202"))
}

/// Sends a message, and returns the response.
fn send(port: u16, order: &str, query: &str) -> Option<String> {
    let body = json!({"agent": "clerk", "message": order, "session": order}).to_string();
    let request = format!(
        "POST /api/sessions{query} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
         Idempotency-Key: {order}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    Some(response)
}

/// What happens to the servers.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// One is killed, and another one started.
    Kill,
    /// One is stopped for longer than the others wait for it, and continues then.
    Pause,
    /// One is asked to stop, and another one started.
    Stop,
    /// The database ends all connections.
    CutOff,
}

/// Servers with one store, and the shop whose orders they pay.
struct Fleet {
    folder: Folder,
    store: String,
    world: Arc<World>,
    servers: Vec<Served>,
}

impl Fleet {
    fn start(store: impl FnOnce(&Folder) -> String) -> Self {
        let (world, port) = World::start();
        let folder = shop(port);
        let store = store(&folder);
        let servers = (0..WORKERS).map(|_| Served::start(&folder, &store)).collect();
        Self { folder, store, world, servers }
    }

    fn signal(&self, server: usize, signal: &str) {
        let id = self.servers[server].child.id().to_string();
        Command::new("kill").args([signal, &id]).status().unwrap();
    }

    fn replace(&mut self, server: usize) {
        self.servers[server].child.wait().unwrap();
        self.servers[server] = Served::start(&self.folder, &self.store);
    }

    fn suffer(&mut self, fault: Fault, server: usize, database: Option<&Database>) {
        match fault {
            Fault::Kill => {
                self.signal(server, "-KILL");
                self.replace(server);
            }
            Fault::Stop => {
                self.signal(server, "-TERM");
                self.replace(server);
            }
            Fault::Pause => {
                self.signal(server, "-STOP");
                thread::sleep(pause());
                self.signal(server, "-CONT");
            }
            Fault::CutOff => {
                if let Some(database) = database {
                    database.end_connections();
                }
            }
        }
    }

    fn fleet(&self) -> Json {
        let output = self.folder.output(&["fleet", "--store", &self.store, "--format", "json"], "");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }

    /// Waits until there is no work, and checks what happened to each order.
    fn check(mut self, count: usize) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let fleet = self.fleet();
            assert_eq!(fleet["queue"]["parked"], 0, "{fleet}");
            if fleet["work"].as_array().unwrap().is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "it does not end: {fleet}");
            thread::sleep(Duration::from_millis(200));
        }
        let payments = self.world.payments.lock().unwrap().clone();
        let mut unknown = 0;
        for number in 0..count {
            let order = format!("order{number}");
            let output =
                self.folder.output(&["sessions", "show", &order, "--store", &self.store, "--format", "json"], "");
            let session: Json =
                serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{order}: {output:?}"));
            let messages = session["conversation"].as_array().unwrap_or_else(|| panic!("{order}: {session}"));
            let users = messages.iter().filter(|message| message["role"] == "user").count();
            assert_eq!(users, 1, "{order}: {session}");
            let paid = payments.get(&order).copied().unwrap_or_default();
            let text = messages.last().unwrap()["text"].as_str().unwrap_or_default();
            // A payment whose result did not arrive is not made again: the model learns that nobody knows.
            match text == format!("paid {order}") {
                true => assert_eq!(paid, 1, "{order}"),
                false => {
                    assert_eq!((text, paid <= 1), (format!("unknown {order}").as_str(), true), "{session}");
                    unknown += 1;
                }
            }
        }
        eprintln!("{count} orders, {unknown} payments whose result is unknown, none lost or made twice");
        assert!(unknown < count);
        self.world.end();
        for server in &mut self.servers {
            server.child.kill().unwrap();
            server.child.wait().unwrap();
        }
    }
}

/// Lets servers work while faults happen, in turn.
fn battery(mut fleet: Fleet, faults: &[Fault], database: Option<&Database>) {
    let count = sessions();
    let mut next = 0;
    for number in 0..count {
        let order = format!("order{number}");
        let started = Instant::now();
        // A client whose message was not accepted sends it again, to any server.
        while !(0..WORKERS).any(|server| enqueue(fleet.servers[(number + server) % WORKERS].port, &order)) {
            assert!(started.elapsed() < LIMIT, "{order} is not accepted");
            thread::sleep(Duration::from_millis(50));
        }
        if number % 5 == 4 {
            // The moment differs each time: before, in and after each step.
            thread::sleep(Duration::from_millis(u64::try_from(number * 37 % 260).unwrap()));
            let fault = faults[next % faults.len()];
            fleet.suffer(fault, next % WORKERS, database);
            next += 1;
        }
    }
    assert!(fleet.world.paid.load(Ordering::SeqCst) > 0);
    fleet.check(count);
}

#[test]
fn servers_with_a_file_lose_and_repeat_nothing() {
    let fleet = Fleet::start(|_| "s.db".to_owned());
    battery(fleet, &[Fault::Kill, Fault::Stop, Fault::Pause], None);
}

#[test]
fn servers_with_a_database_lose_and_repeat_nothing() {
    let Some(database) = Database::start() else { return };
    let fleet = Fleet::start(|_| database.url());
    battery(fleet, &[Fault::Kill, Fault::CutOff, Fault::Stop, Fault::Pause], Some(&database));
}

/// The pooler shares four connections between all servers, so neither locks nor notifications reach them.
#[test]
fn servers_behind_a_pooler_lose_and_repeat_nothing() {
    let Some(database) = Database::start() else { return };
    let Some(url) = database.pooled_url() else { return };
    let fleet = Fleet::start(|_| url);
    battery(fleet, &[Fault::Kill, Fault::CutOff, Fault::Stop, Fault::Pause], Some(&database));
}

/// Each byte takes a while to the database and back.
#[test]
fn servers_with_a_slow_database_lose_and_repeat_nothing() {
    let Some(database) = Database::start() else { return };
    let port = slow_proxy(format!("{}/.s.PGSQL.5432", database.folder));
    let fleet = Fleet::start(|_| format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable"));
    battery(fleet, &[Fault::Kill, Fault::CutOff, Fault::Pause], Some(&database));
}

/// Forwards connections to a socket, and delays what passes. Returns the port.
fn slow_proxy(socket: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = UnixStream::connect(&socket) else { continue };
            let from_server = server.try_clone().unwrap();
            let to_client = client.try_clone().unwrap();
            thread::spawn(move || {
                forward_slowly(&client, &server);
                let _ = server.shutdown(Shutdown::Both);
            });
            thread::spawn(move || {
                forward_slowly(&from_server, &to_client);
                let _ = to_client.shutdown(Shutdown::Both);
            });
        }
    });
    port
}

/// Forwards until one end closes the connection.
fn forward_slowly(mut from: impl Read, mut to: impl Write) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        thread::sleep(Duration::from_millis(15));
        if to.write_all(&bytes[..length]).is_err() {
            return;
        }
    }
}

/// What one server learns about the limits of a provider holds for the others.
#[test]
fn servers_share_the_limits_of_a_provider() {
    const RETRY_AFTER: Duration = Duration::from_secs(15);
    let mut fleet = Fleet::start(|_| "s.db".to_owned());
    fleet.world.retry_after.store(usize::try_from(RETRY_AFTER.as_secs()).unwrap(), Ordering::SeqCst);
    let ports: Vec<_> = fleet.servers.iter().map(|server| server.port).collect();
    assert!(send(ports[0], "first", "").is_some());
    let start = Instant::now();
    let limited = loop {
        if let Some(limited) = fleet.world.model_calls.lock().unwrap().first().copied() {
            break limited;
        }
        assert!(start.elapsed() < LIMIT, "the model is not called");
        thread::sleep(Duration::from_millis(20));
    };
    // Servers tell each other every second.
    thread::sleep(Duration::from_secs(5));
    for port in &ports[1..] {
        assert!(send(*port, &format!("order{port}"), "").is_some());
    }
    let calls = loop {
        let calls = fleet.world.model_calls.lock().unwrap().clone();
        // Each pays, and says so.
        if calls.len() > 2 * WORKERS {
            break calls;
        }
        assert!(start.elapsed() < LIMIT, "{calls:?}");
        thread::sleep(Duration::from_millis(100));
    };
    for call in &calls[1..] {
        assert!(
            call.duration_since(limited) >= RETRY_AFTER,
            "a call {:?} after the limit",
            call.duration_since(limited)
        );
    }
    fleet.world.end();
    for server in &mut fleet.servers {
        server.child.kill().unwrap();
        server.child.wait().unwrap();
    }
}

/// A PostgreSQL server that ends with this test.
pub(crate) struct Database {
    folder: String,
    child: Child,
    input: Option<ChildStdin>,
}

impl Drop for Database {
    fn drop(&mut self) {
        // The script ends the server when its input does.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

impl Database {
    /// Starts the server. Returns `None` if PostgreSQL is not installed, unless `CI` is set.
    pub(crate) fn start() -> Option<Self> {
        const SCRIPT: &str = include_str!("../../../patter/tests/postgres.sh");
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.process_group(0).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        match line.trim().strip_prefix("folder ") {
            Some(folder) => Some(Self { folder: folder.to_owned(), child, input: Some(input) }),
            None => {
                drop(input);
                let _ = child.wait();
                assert!(std::env::var_os("CI").is_none(), "cannot start PostgreSQL: {line}");
                eprintln!("skipped: cannot start PostgreSQL: {line}");
                None
            }
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres:///postgres?host={}&user=postgres", self.folder)
    }

    /// Returns the address through the pooler, if that is installed. Claims end before a server that pauses wakes up.
    fn pooled_url(&self) -> Option<String> {
        if std::path::Path::new(&self.folder).join(".s.PGSQL.6432").exists() {
            return Some(format!("{}&port=6432&claims=lease&lease=3s", self.url()));
        }
        assert!(std::env::var_os("CI").is_none(), "PgBouncer is not installed, or does not start");
        eprintln!("skipped: PgBouncer is not installed, or does not start");
        None
    }

    /// Ends all connections, as a restart of the server does.
    fn end_connections(&self) {
        const END: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
        let script = "$(ls -d /usr/lib/postgresql/*/bin /usr/local/pgsql/bin 2>/dev/null | sort -V | tail -n 1)/psql \
                      -q -h \"$1\" -U postgres -c \"$2\" >/dev/null";
        let status = Command::new("sh").args(["-c", script, "sh", &self.folder, END]).status().unwrap();
        assert!(status.success());
    }
}
