//! A Restate server for the tests.

use crate::{npm, request};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long the server may take to start.
const START: Duration = Duration::from_secs(60);

/// A Restate server with a folder of its own. It ends with this value.
pub(crate) struct Restate {
    program: PathBuf,
    folder: tempfile::TempDir,
    child: Child,
    node: u16,
    pub(crate) ingress: u16,
    pub(crate) admin: u16,
}

impl Restate {
    /// Starts a server. Returns `None` if it cannot be installed, unless `CI` is set.
    pub(crate) fn start() -> Option<Self> {
        let packages = npm::installed("restate-server")?;
        let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
        let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
        let program = packages.join(format!("@restatedev/restate-server-{system}-{machine}/bin/restate-server"));
        let folder = tempfile::tempdir().unwrap();
        let [node, ingress, admin] = free_ports();
        let child = launch(&program, &folder, node, ingress, admin);
        let server = Self { program, folder, child, node, ingress, admin };
        server.wait_until_ready();
        Some(server)
    }

    /// Kills the server, and starts it again with what it had saved.
    pub(crate) fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = launch(&self.program, &self.folder, self.node, self.ingress, self.admin);
        self.wait_until_ready();
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + START;
        let is_ready = |port, path| request::get(port, path).is_ok_and(|response| response.status == 200);
        while !(is_ready(self.ingress, "/restate/health") && is_ready(self.admin, "/health")) {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "Restate does not start: {log}");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Restate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn launch(program: &PathBuf, folder: &tempfile::TempDir, node: u16, ingress: u16, admin: u16) -> Child {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.path().join("log")).unwrap();
    let address = |port: u16| format!("127.0.0.1:{port}");
    let mut command = Command::new(program);
    command.current_dir(folder.path()).args(["--no-logo", "--listen-mode", "tcp", "--node-name", "test"]);
    command.args(["--base-dir", "data", "--bind-ip", "127.0.0.1"]).args(["--bind-port", &node.to_string()]);
    let settings = [
        ("RESTATE_INGRESS__BIND_ADDRESS", address(ingress)),
        ("RESTATE_ADMIN__BIND_ADDRESS", address(admin)),
        ("RESTATE_DISABLE_TELEMETRY", "true".to_owned()),
        ("RESTATE_DEFAULT_NUM_PARTITIONS", "4".to_owned()),
        ("RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE", "256 MiB".to_owned()),
        // A worker that does not answer is given up sooner than after a minute.
        ("RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_INTERVAL", "1s".to_owned()),
        ("RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_TIMEOUT", "1s".to_owned()),
    ];
    command.envs(settings).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

/// Returns ports that nobody uses now.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
