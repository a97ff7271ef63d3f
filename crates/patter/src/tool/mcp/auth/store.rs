//! The logins of a user: a file for each server, which only the user can read.

use super::discovery::server_id;
use super::error::LoginError;
use super::registration::Client;
use super::token::now;
use crate::os_error::describe;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The number of bytes that are read of a file.
const MAX_FILE: u64 = 256 * 1024;
/// The time limit for other processes that renew the same tokens.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause between two attempts to lock.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Where the logins of a user are stored: a folder outside of all projects, with a file for each server.
///
/// The folder has mode 0700 and each file mode 0600. A file that others can read is not used.
///
/// ```
/// use patter::tool::mcp::LoginStore;
/// let store = LoginStore::new("/home/ada/.local/state/patter/mcp");
/// let url = "https://mcp.example.com/mcp".parse().unwrap();
/// assert!(!store.remove(&url).unwrap());
/// ```
#[derive(Debug, Clone)]
pub struct LoginStore {
    /// The folder, or nothing if the user has none.
    folder: Option<PathBuf>,
}

/// Whether a user is logged in at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoginStatus {
    /// There is no login.
    LoggedOut,
    /// There is a login.
    LoggedIn {
        /// The authorization server.
        issuer: String,
        /// The scopes that were granted.
        scopes: Vec<String>,
        /// When the access token expires, in seconds since 1970.
        expires_at: Option<u64>,
        /// Whether the access token can be renewed without the user.
        is_renewable: bool,
    },
    /// The access token expired and cannot be renewed.
    Expired,
    /// The server asks for more scopes than were granted.
    MoreScopes {
        /// The scopes that it asks for.
        scopes: Vec<String>,
    },
}

/// A login as it is stored.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredLogin {
    /// The URL of the server that the tokens are for.
    pub(super) server: String,
    pub(super) issuer: String,
    pub(super) token_endpoint: String,
    pub(super) resource: String,
    pub(super) client: Client,
    pub(super) access_token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
    pub(super) scopes: Vec<String>,
    /// The scopes that the server asked for since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) missing_scopes: Vec<String>,
}

impl StoredLogin {
    /// Returns whether the access token is valid for at least some seconds, as far as is known.
    pub(super) fn is_fresh(&self, seconds: u64) -> bool {
        self.expires_at.is_none_or(|expires| expires > now().saturating_add(seconds))
    }

    fn status(&self) -> LoginStatus {
        if !self.missing_scopes.is_empty() {
            return LoginStatus::MoreScopes { scopes: self.missing_scopes.clone() };
        }
        let is_renewable = self.refresh_token.is_some();
        if !is_renewable && !self.is_fresh(0) {
            return LoginStatus::Expired;
        }
        LoginStatus::LoggedIn {
            issuer: self.issuer.clone(),
            scopes: self.scopes.clone(),
            expires_at: self.expires_at,
            is_renewable,
        }
    }
}

impl LoginStore {
    /// Creates a store in a folder, which is created by the first login.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()) }
    }

    /// Returns a store without logins.
    pub(in super::super) fn none() -> Self {
        Self { folder: None }
    }

    /// Returns the store of the current user: `patter/mcp` in `$XDG_STATE_HOME` or `~/.local/state`.
    ///
    /// Only the environment of the process counts, never the `.env` of a project.
    pub fn of_user() -> Self {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
        Self { folder: state.map(|state| state.join("patter/mcp")) }
    }

    /// Returns whether the user is logged in at the server with a URL.
    pub fn status(&self, url: &Url) -> Result<LoginStatus, LoginError> {
        Ok(self.load(url)?.map_or(LoginStatus::LoggedOut, |login| login.status()))
    }

    /// Removes the login at the server with a URL, and returns whether there was one.
    pub fn remove(&self, url: &Url) -> Result<bool, LoginError> {
        let Some(file) = self.file(url, "json") else { return Ok(false) };
        let _ = fs::remove_file(file.with_extension("lock"));
        match fs::remove_file(&file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed("remove", &file, &error)),
        }
    }

    pub(super) fn load(&self, url: &Url) -> Result<Option<StoredLogin>, LoginError> {
        let Some(path) = self.file(url, "json") else { return Ok(None) };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &path, &error)),
        };
        let unreadable = |error: io::Error| failed("read", &path, &error);
        if file.metadata().map_err(unreadable)?.permissions().mode() & 0o077 != 0 {
            let message = format!("the login in `{}` can be read by others", path.display());
            return Err(LoginError::new(message).with_hint("remove the file, and log in again"));
        }
        let mut text = String::new();
        file.take(MAX_FILE).read_to_string(&mut text).map_err(unreadable)?;
        // A damaged file, or one that was renamed, is the same as none.
        let login = serde_json::from_str(&text).ok();
        Ok(login.filter(|login: &StoredLogin| login.server == server_id(url)))
    }

    pub(super) fn save(&self, url: &Url, login: &StoredLogin) -> Result<(), LoginError> {
        let Some((folder, path)) = self.folder.as_deref().zip(self.file(url, "json")) else {
            return Err(LoginError::new("there is no place for logins").with_hint("set `HOME` or `XDG_STATE_HOME`"));
        };
        let text = serde_json::to_string_pretty(login).map_err(|error| LoginError::new(error.to_string()))?;
        write(folder, &path, &text).map_err(|error| failed("write", &path, &error))
    }

    /// Waits until no other process renews the tokens of a server. The lock is released with the file.
    pub(super) async fn lock(&self, url: &Url) -> Result<Option<File>, LoginError> {
        let Some(path) = self.file(url, "lock") else { return Ok(None) };
        let unusable = |error: io::Error| failed("lock", &path, &error);
        let file = open_lock(&path).map_err(unusable)?;
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(LOCK_PAUSE).await,
                Err(TryLockError::WouldBlock) => {
                    return Err(LoginError::new("another process has been renewing the login for too long"));
                }
                Err(TryLockError::Error(error)) => return Err(unusable(error)),
            }
        }
    }

    /// Returns the lock of a server, unless another process renews its tokens.
    pub(super) fn try_lock(&self, url: &Url) -> Option<File> {
        let file = open_lock(&self.file(url, "lock")?).ok()?;
        file.try_lock().ok().map(|()| file)
    }

    /// Returns the file for a server, named by a hash: its URL may be long, and contain characters that file names may not.
    fn file(&self, url: &Url, extension: &str) -> Option<PathBuf> {
        let mut name = String::new();
        for byte in Sha256::digest(server_id(url)).iter().take(16) {
            let _ = write!(name, "{byte:02x}");
        }
        Some(self.folder.as_ref()?.join(name).with_extension(extension))
    }
}

/// Replaces a file as a whole.
fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn write(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let _ = fs::remove_file(&temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    let result = written.and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
}

fn failed(action: &str, path: &Path, error: &io::Error) -> LoginError {
    LoginError::new(format!("cannot {action} the login in `{}`: {}", path.display(), describe(error)))
}
