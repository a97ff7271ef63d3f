//! Where a store is.

use super::StoreError;
use sqlx::postgres::PgConnectOptions;
use std::fmt;
use std::path::PathBuf;

/// Where sessions are kept. No form of it shows a password.
///
/// ```
/// use patter::store::Location;
/// assert_eq!(Location::parse("sqlite:.patter/sessions.db")?, Location::parse(".patter/sessions.db")?);
/// let location = Location::parse("postgres://ada:sesame@db.example/patter")?;
/// assert_eq!(location.to_string(), "postgres://ada@db.example:5432/patter");
/// assert!(!format!("{location:?}").contains("sesame"));
/// # Ok::<(), patter::store::StoreError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A file, which is made where there is none.
    Sqlite(PathBuf),
    /// A database of a server.
    Postgres(PostgresUrl),
}

/// The address of a database of PostgreSQL 11 or newer, as `postgres://user:password@host:port/database?option=value`.
///
/// What it does not say comes from the environment (`PGHOST`, `PGPASSWORD`…) and from `~/.pgpass`. With
/// `sslmode=verify-full` the server has to prove who it is.
///
/// ```
/// use patter::store::Location;
/// let Location::Postgres(url) = Location::parse("postgres:///patter?host=/run/postgresql&user=ada")? else { panic!() };
/// assert_eq!(url.to_string(), "postgres:///patter?host=/run/postgresql&port=5432&user=ada");
/// # Ok::<(), patter::store::StoreError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl {
    secret: String,
    shown: String,
}

impl Location {
    /// Reads `sqlite:PATH`, `postgres://…` or a path, which is that of a SQLite file.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let unusable = |message: &str| StoreError::Unusable {
            message: message.to_owned(),
            hint: Some("write `sqlite:PATH` or `postgres://user@host/database`".to_owned()),
        };
        let text = text.trim();
        if text.starts_with("postgres:") || text.starts_with("postgresql:") {
            // What is wrong with it is not told, since that may quote a secret.
            let options = options(text).ok_or_else(|| unusable("the address of the database cannot be read"))?;
            return Ok(Self::Postgres(PostgresUrl { secret: text.to_owned(), shown: shown(&options) }));
        }
        let path = text.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path));
        match path.unwrap_or(text) {
            "" => Err(unusable("the place of the sessions has no name")),
            path if path.contains("://") => Err(unusable("sessions are kept in SQLite or PostgreSQL only")),
            path if path.contains('\0') => Err(unusable("the path has a NUL character")),
            path => Ok(Self::Sqlite(path.into())),
        }
    }
}

impl PostgresUrl {
    /// Returns how to connect.
    pub(super) fn options(&self) -> Result<PgConnectOptions, StoreError> {
        let unreadable = || StoreError::Failed { message: format!("the address `{self}` cannot be read") };
        options(&self.secret).ok_or_else(unreadable)
    }
}

fn options(url: &str) -> Option<PgConnectOptions> {
    url.parse().ok()
}

/// Returns an address without what may be secret.
fn shown(options: &PgConnectOptions) -> String {
    let (user, port) = (options.get_username(), options.get_port());
    let database = options.get_database().unwrap_or(user);
    match options.get_socket() {
        Some(socket) => format!("postgres:///{database}?host={}&port={port}&user={user}", socket.display()),
        None => format!("postgres://{user}@{}:{port}/{database}", options.get_host()),
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => url.fmt(f),
        }
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
