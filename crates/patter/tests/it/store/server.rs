//! A PostgreSQL server for this test run.

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Starts a server in a temporary folder, prints the folder, and stops it when stdin closes, which happens when this process
/// ends.
const SCRIPT: &str = include_str!("../../postgres.sh");

struct Server {
    folder: String,
    /// Closed by the system when this process ends, however it ends.
    _input: ChildStdin,
}

/// Returns the address of a new database.
///
/// If PostgreSQL is not installed, the tests are skipped; with `CI` set they fail.
pub(super) async fn database() -> Option<String> {
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    match SERVER.get_or_init(start) {
        Ok(server) => {
            let name = format!("test{}", COUNT.fetch_add(1, Ordering::Relaxed));
            let url = |database: &str| format!("postgres:///{database}?host={}&user=postgres", server.folder);
            let mut connection = PgConnection::connect(&url("postgres")).await.unwrap();
            let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
            sqlx::raw_sql(create).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
            Some(url(&name))
        }
        Err(error) if std::env::var_os("CI").is_some() => panic!("cannot start PostgreSQL: {error}"),
        Err(error) => {
            eprintln!("skipped: cannot start PostgreSQL: {error}");
            None
        }
    }
}

/// Returns the address of a database through a pooler, if that is installed, with the claims that it needs.
pub(super) fn through_pooler(url: &str) -> Option<String> {
    let folder = url.split("host=").nth(1)?.split('&').next()?;
    if std::path::Path::new(folder).join(".s.PGSQL.6432").exists() {
        return Some(format!("{url}&port=6432&claims=lease"));
    }
    assert!(std::env::var_os("CI").is_none(), "PgBouncer is not installed, or does not start");
    eprintln!("skipped: PgBouncer is not installed, or does not start");
    None
}

fn start() -> Result<Server, String> {
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    // In its own process group, it does not receive the signals of the terminal.
    let mut child = command.process_group(0).spawn().map_err(|error| error.to_string())?;
    let input = child.stdin.take().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).map_err(|error| error.to_string())?;
    match line.trim().strip_prefix("folder ") {
        Some(folder) => Ok(Server { folder: folder.to_owned(), _input: input }),
        None => Err(line.trim().to_owned()),
    }
}
