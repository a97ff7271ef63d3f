//! Locations of stores.

use super::error::StoreError;
use sqlx::postgres::PgConnectOptions;
use std::fmt;
use std::path::PathBuf;

/// The location of a session store. Neither `Display` nor `Debug` shows a password.
///
/// ```
/// use patter::store::StoreLocation;
/// assert_eq!(StoreLocation::parse("sqlite:.patter/sessions.db")?, StoreLocation::parse(".patter/sessions.db")?);
/// let location = StoreLocation::parse("postgres://ada:sesame@db.example/patter")?;
/// assert_eq!(location.to_string(), "postgres://ada@db.example:5432/patter");
/// assert!(!format!("{location:?}").contains("sesame"));
/// # Ok::<(), patter::store::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// A SQLite file, created on demand.
    Sqlite(PathBuf),
    /// A PostgreSQL database.
    Postgres(PostgresUrl),
}

/// The address of a PostgreSQL database (version 11 or newer):
/// `postgres://user:password@host:port/database?option=value`.
///
/// Missing parts come from the environment (`PGHOST`, `PGPASSWORD`, …) and from `~/.pgpass`. With `sslmode=verify-full`
/// the certificate of the server is verified.
///
/// ```
/// use patter::store::StoreLocation;
/// let StoreLocation::Postgres(url) = StoreLocation::parse("postgres:///patter?host=/run/postgresql&user=ada")? else { panic!() };
/// assert_eq!(url.to_string(), "postgres:///patter?host=/run/postgresql&port=5432&user=ada");
/// # Ok::<(), patter::store::StoreError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    /// The address as given, which may contain a password.
    secret: String,
    /// The address without secrets.
    public: String,
}

impl StoreLocation {
    /// Parses `sqlite:PATH`, `postgres://…`, or the path of a SQLite file.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let unusable = |message: &str| StoreError::Unusable {
            message: message.to_owned(),
            hint: Some("write `sqlite:PATH` or `postgres://user@host/database`".to_owned()),
        };
        let text = text.trim();
        if text.starts_with("postgres:") || text.starts_with("postgresql:") {
            // The cause is not reported, because it may quote a secret.
            let options = options(text).ok_or_else(|| unusable("the address of the database is not valid"))?;
            let public = public_address(&options, text);
            return Ok(Self::Postgres(PostgresUrl { secret: text.to_owned(), public }));
        }
        let path = text.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path));
        match path.unwrap_or(text) {
            "" => Err(unusable("the path of the session store is empty")),
            path if path.contains("://") => {
                let scheme = path.split("://").next().unwrap_or_default();
                Err(unusable(&format!("`{scheme}://` is not supported: sessions are stored in SQLite or PostgreSQL")))
            }
            path if path.contains('\0') => Err(unusable("the path of the session store contains a NUL character")),
            path => Ok(Self::Sqlite(path.into())),
        }
    }
}

impl PostgresUrl {
    /// Returns the options to connect with.
    pub(super) fn options(&self) -> Result<PgConnectOptions, StoreError> {
        let invalid = || StoreError::Failed { message: format!("the address `{self}` is not valid") };
        options(&self.secret).ok_or_else(invalid)
    }
}

fn options(url: &str) -> Option<PgConnectOptions> {
    url.parse().ok()
}

/// The user if none is named and that of the system is not known.
const ANONYMOUS: &str = "anonymous";

/// Returns an address without secrets.
fn public_address(options: &PgConnectOptions, text: &str) -> String {
    let user = options.get_username();
    let is_known = user != ANONYMOUS || text.contains(ANONYMOUS);
    let port = options.get_port();
    let database = options.get_database().unwrap_or(user);
    match options.get_socket() {
        Some(socket) => format!("postgres:///{database}?host={}&port={port}&user={user}", socket.display()),
        None if is_known => format!("postgres://{user}@{}:{port}/{database}", options.get_host()),
        None => format!("postgres://{}:{port}/{database}", options.get_host()),
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => url.fmt(f),
        }
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.public)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.public)
    }
}
