//! Locations of stores.

use super::error::StoreError;
use patter_core::text::{format_duration, parse_duration};
use sqlx::postgres::PgConnectOptions;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How long a claim lasts that is not renewed, unless the address says otherwise.
const LEASE: Duration = Duration::from_secs(30);
/// The shortest and the longest time that an address may set.
const LEASES: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(600);

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
/// the certificate of the server is verified. With `claims=lease` a pooler that assigns a connection per transaction may be in
/// between; then `lease=30s` sets how long a claim lasts that is not renewed.
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
    pub(super) claims: ClaimMode,
}

/// How the sessions of a database are claimed. All that use it must do so in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ClaimMode {
    /// By locks that end with a connection.
    #[default]
    Lock,
    /// By rows that end this long after they were last renewed.
    Lease(Duration),
}

impl ClaimMode {
    /// Returns the mode as the database stores it, and as addresses name it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Lease(_) => "lease",
        }
    }

    /// Removes the options about claims from an address, and returns both. `Err` is the option that is not valid.
    fn take_from(url: &str) -> Result<(String, Self), String> {
        let Some((address, options)) = url.split_once('?') else { return Ok((url.to_owned(), Self::Lock)) };
        let mut others = Vec::new();
        let mut claims = None;
        let mut lease = None;
        for option in options.split('&') {
            let invalid = || option.to_owned();
            match option.split_once('=') {
                Some(("claims", mode @ ("lock" | "lease"))) => claims = Some(mode),
                Some(("lease", time)) => {
                    let time = parse_duration(time).filter(|time| LEASES.contains(time));
                    lease = Some(time.ok_or_else(invalid)?);
                }
                Some(("claims", _)) => return Err(invalid()),
                _ => others.push(option),
            }
        }
        let url = match others.is_empty() {
            true => address.to_owned(),
            false => format!("{address}?{}", others.join("&")),
        };
        match (claims, lease) {
            (Some("lease"), lease) => Ok((url, Self::Lease(lease.unwrap_or(LEASE)))),
            (_, Some(_)) => Err("lease".to_owned()),
            _ => Ok((url, Self::Lock)),
        }
    }
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
            let (secret, claims) = ClaimMode::take_from(text).map_err(|option| StoreError::Unusable {
                message: format!("`{option}` in the address of the database is not valid"),
                hint: Some("write `claims=lease`, perhaps with `lease=30s`: from 1 s to 10 minutes".to_owned()),
            })?;
            // The cause is not reported, because it may quote a secret.
            let options = options(&secret).ok_or_else(|| unusable("the address of the database is not valid"))?;
            let public = public_address(&options, &secret, claims);
            return Ok(Self::Postgres(PostgresUrl { secret, public, claims }));
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

impl StoreLocation {
    /// Returns whether sessions are claimed by leases (`claims=lease`).
    ///
    /// ```
    /// use patter::store::StoreLocation;
    /// assert!(StoreLocation::parse("postgres://db.example/patter?claims=lease")?.claims_by_lease());
    /// # Ok::<(), patter::store::StoreError>(())
    /// ```
    pub fn claims_by_lease(&self) -> bool {
        matches!(self, Self::Postgres(PostgresUrl { claims: ClaimMode::Lease(_), .. }))
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
fn public_address(options: &PgConnectOptions, text: &str, claims: ClaimMode) -> String {
    let user = options.get_username();
    let is_known = user != ANONYMOUS || text.contains(ANONYMOUS);
    let port = options.get_port();
    let database = options.get_database().unwrap_or(user);
    let address = match options.get_socket() {
        Some(socket) => format!("postgres:///{database}?host={}&port={port}&user={user}", socket.display()),
        None if is_known => format!("postgres://{user}@{}:{port}/{database}", options.get_host()),
        None => format!("postgres://{}:{port}/{database}", options.get_host()),
    };
    let separator = if options.get_socket().is_some() { '&' } else { '?' };
    match claims {
        ClaimMode::Lock => address,
        ClaimMode::Lease(LEASE) => format!("{address}{separator}claims=lease"),
        ClaimMode::Lease(time) => {
            format!("{address}{separator}claims=lease&lease={}", format_duration(time).replace(' ', ""))
        }
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
