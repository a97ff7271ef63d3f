//! A shop whose agents are hosted on Restate.

use crate::balancer::Balancer;
use crate::request::{self, Response};
use crate::restate::Restate;
use crate::world::World;
use patter::session::Log;
use patter::store::{SessionId, StoreLocation, StoredSession};
use serde_json::{Value as Json, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How long a session may take.
const LIMIT: Duration = Duration::from_secs(120);

/// A process of the program.
pub(crate) struct WorkerProcess {
    child: Child,
    port: u16,
    /// What it printed after the first line.
    lines: Mutex<mpsc::Receiver<String>>,
}

impl WorkerProcess {
    pub(crate) fn start(folder: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_patter-restate"));
        command.current_dir(folder).args(["--trust", "--project", "."]).args(options);
        if !options.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.env_remove("PATTER_STORE").env("OPENAI_API_KEY", "k").stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let port = first.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("{first}"));
        let (sender, received) = mpsc::channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                eprintln!("worker {port}: {line}");
                let _ = sender.send(line);
            }
        });
        Self { child, port, lines: Mutex::new(received) }
    }

    /// Waits until it prints a line that starts like this.
    pub(crate) fn wait_for_line(&self, start: &str) {
        let lines = self.lines.lock().unwrap();
        while !lines.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("no line `{start}`")).starts_with(start) {}
    }

    pub(crate) fn signal(&self, signal: &str) {
        Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
    }

    pub(crate) fn wait(&mut self) {
        self.child.wait().unwrap();
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Workers on Restate, and the world that they change.
pub(crate) struct Shop {
    pub(crate) world: Arc<World>,
    pub(crate) workers: Vec<WorkerProcess>,
    pub(crate) restate: Restate,
    folder: tempfile::TempDir,
    pub(crate) balancer: Balancer,
    store: String,
    options: Vec<String>,
    runtime: tokio::runtime::Runtime,
}

impl Shop {
    /// Starts Restate and workers. Returns `None` if Restate cannot be installed.
    pub(crate) fn open(workers: usize, store: Option<String>, options: &[&str]) -> Option<Self> {
        let restate = Restate::start()?;
        let (world, port) = World::start();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("patter.toml"), settings(port)).unwrap();
        fs::write(folder.path().join("shop.gram"), agents(port)).unwrap();
        let store = store.unwrap_or_else(|| folder.path().join("s.db").display().to_string());
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let balancer = Balancer::start();
        let mut shop = Self { world, workers: Vec::new(), restate, folder, balancer, store, options, runtime };
        let started = (0..workers).map(|_| shop.start_worker()).collect();
        shop.workers = started;
        shop.set_workers();
        let uri = format!("http://127.0.0.1:{}", shop.balancer.port);
        let registered = request::post(shop.restate.admin, "/deployments", None, Some(&json!({"uri": uri}))).unwrap();
        assert!(matches!(registered.status, 200 | 201), "{registered:?}");
        Some(shop)
    }

    fn start_worker(&self) -> WorkerProcess {
        let mut options = vec!["--store", &self.store];
        options.extend(self.options.iter().map(String::as_str));
        WorkerProcess::start(self.folder.path(), &options)
    }

    fn set_workers(&self) {
        self.balancer.set_workers(self.workers.iter().map(|worker| worker.port).collect());
    }

    /// Starts a worker in the place of one that ended.
    pub(crate) fn replace_worker(&mut self, number: usize) {
        self.workers[number].wait();
        self.workers[number] = self.start_worker();
        self.set_workers();
    }

    /// Calls a handler of a session.
    pub(crate) fn call(&self, session: &str, handler: &str, body: Option<&Json>) -> Response {
        request::post(self.restate.ingress, &format!("/Session/{session}/{handler}"), None, body).unwrap()
    }

    /// Sends an order, as often as it takes until Restate has accepted it.
    pub(crate) fn send(&self, agent: &str, order: &str) {
        let deadline = Instant::now() + LIMIT;
        let path = format!("/Session/{order}/turn/send");
        let message = json!({"agent": agent, "message": order});
        loop {
            let sent = request::post(self.restate.ingress, &path, Some(order), Some(&message));
            match sent {
                Ok(Response { status: 200 | 202, .. }) => return,
                sent => assert!(Instant::now() < deadline, "{order} is not accepted: {sent:?}"),
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns a session as the store has it.
    pub(crate) fn stored(&self, session: &str) -> Option<StoredSession> {
        let id = SessionId::parse(session).unwrap();
        self.runtime.block_on(async {
            let store = patter::store::open(&StoreLocation::parse(&self.store).unwrap()).await.unwrap();
            store.read(&id).await.ok()
        })
    }

    /// Waits until a session is in a state.
    pub(crate) fn wait_for(&self, session: &str, is_reached: impl Fn(&Log) -> bool) -> Log {
        let deadline = Instant::now() + LIMIT;
        loop {
            let log = self.stored(session).map(|stored| Log::read(&stored.entries).unwrap());
            if let Some(log) = log.as_ref().filter(|log| is_reached(log)) {
                return log.clone();
            }
            assert!(Instant::now() < deadline, "{session} does not get there: {}", self.invocations());
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Returns what Restate knows about turns and steps.
    pub(crate) fn invocations(&self) -> Json {
        let query = json!({"query": "SELECT target, status, retry_count, last_failure FROM sys_invocation \
                                     WHERE status <> 'completed'"});
        request::post(self.restate.admin, "/query", None, Some(&query)).map_or(Json::Null, |response| response.body)
    }
}

pub(crate) fn settings(port: u16) -> String {
    format!(
        "[models.OpenAI]\nbase-url = \"http://127.0.0.1:{port}/v1\"\napi = \"chat\"\n[http]\nallow = [\"127.0.0.1\"]\n"
    )
}

pub(crate) fn agents(port: u16) -> String {
    let tool = |name: &str, more: &str| {
        format!(
            "[{name}:Http {{ description: \"Does it\", method: \"POST\", url: \"http://127.0.0.1:{port}/tool/{name}\", \
             body: {{ order: \"{{order}}\" }}, retries: 0{more} }} |\n  (order::Text)==>(::Any)]\n"
        )
    };
    let agent = |name: &str, more: &str| {
        format!("[{name}:Agent {{ instruction: \"Sell.\", model: \"OpenAI/m\"{more} }} | pay, look, ship]\n")
    };
    let tools = [tool("pay", ""), tool("look", ", idempotent: true"), tool("ship", "")];
    let workflow = "[desk:Workflow { description: \"Sells\", maxModelCalls: 10 } |\n  \
                    (clerk)-->(approve:Human { question: \"Is this right? {clerk}\", expires: 2d })\n]\n";
    agent("clerk", "") + &agent("careful", ", ask: [\"ship\"]") + &tools.concat() + workflow
}
