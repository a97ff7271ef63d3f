//! A PostgreSQL server for this test run.

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Starts a server in a temporary folder, prints the folder, and stops it when stdin closes, which happens when this process
/// ends.
const SCRIPT: &str = r#"
set -u
bin=$(ls -d /usr/lib/postgresql/*/bin /usr/local/pgsql/bin 2>/dev/null | sort -V | tail -n 1)
[ -n "$bin" ] || { echo "it is not installed: apt-get install postgresql"; exit 1; }
# PostgreSQL refuses to run as root.
as=
[ "$(id -u)" != 0 ] || as="setpriv --reuid=postgres --regid=postgres --clear-groups"
cd /
folder=$($as mktemp -d /tmp/patter-postgres.XXXXXX) || { echo "cannot create a folder for it"; exit 1; }
trap '' INT TERM HUP
$as "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --no-sync >"$folder/log" 2>&1
echo "local all guarded scram-sha-256
local all all trust" >"$folder/hba"
$as "$bin/postgres" -D "$folder/data" -k "$folder" -h '' -c hba_file="$folder/hba" -c fsync=off -c full_page_writes=off \
  -c max_connections=200 -c shared_buffers=32MB >>"$folder/log" 2>&1 &
server=$!
tries=0
until "$bin/pg_isready" -q -h "$folder" || [ $tries = 300 ]; do tries=$((tries + 1)); sleep 0.1; done
if [ $tries = 300 ]; then echo "it does not start: $(tail -n 3 "$folder/log" | tr '\n' ' ')"; else echo "folder $folder"; cat >/dev/null; fi
kill -INT $server 2>/dev/null
wait $server
rm -rf "$folder"
"#;

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
