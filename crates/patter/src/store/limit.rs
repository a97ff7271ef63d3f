//! Limits that both databases share.

use super::error::StoreError;
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::future::Future;
use std::io;
use std::time::Duration;

/// The time limit of an operation. Reading a long log over a slow connection takes the longest.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit for getting a connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for others to close files.
pub(super) const DESCRIPTOR_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of connections for reading.
pub(super) const MAX_CONNECTIONS: u32 = 4;
/// The pauses between attempts to lock, in milliseconds: the lock of a killed holder outlives it by a moment.
pub(super) const LOCK_PAUSES_MS: [u64; 6] = [5, 15, 40, 100, 240, 400];
/// The pause between attempts to get what others have to give back first.
pub(super) const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Applies the time limit to an operation.
pub(super) async fn with_timeout<T>(
    operation: impl Future<Output = Result<T, StoreError>> + Send,
) -> Result<T, StoreError> {
    let timed_out = || StoreError::Failed { message: format!("no answer within {} s", OPERATION_TIMEOUT.as_secs()) };
    tokio::time::timeout(OPERATION_TIMEOUT, operation).await.unwrap_or_else(|_| Err(timed_out()))
}

/// Returns whether an operation failed because this process or the system has no descriptors left.
pub(super) fn is_out_of_descriptors(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errors = [Errno::MFILE.raw_os_error(), Errno::NFILE.raw_os_error()];
    error.raw_os_error().is_some_and(|error| errors.contains(&error))
}

/// Returns whether this process or the system has no descriptors left.
pub(super) fn has_no_descriptors() -> bool {
    File::open("/dev/null").is_err_and(|error| is_out_of_descriptors(&error))
}

/// Returns the error of an operation that found no descriptors left.
pub(super) fn out_of_descriptors(store: &str) -> StoreError {
    let limit = getrlimit(Resource::Nofile).current.map(|limit| format!(" (the limit is {limit})"));
    StoreError::Unusable {
        message: format!(
            "the session store `{store}` cannot be used: too many open files{}",
            limit.unwrap_or_default()
        ),
        hint: Some("raise the limit with `ulimit -n`, or run fewer at once".to_owned()),
    }
}
