//! Limits that both databases share.

use super::error::StoreError;
use std::future::Future;
use std::time::Duration;

/// The time limit of an operation. Reading a long log over a slow connection takes the longest.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit for getting a connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of connections for reading.
pub(super) const MAX_CONNECTIONS: u32 = 4;

/// Applies the time limit to an operation.
pub(super) async fn with_timeout<T>(
    operation: impl Future<Output = Result<T, StoreError>> + Send,
) -> Result<T, StoreError> {
    let timed_out = || StoreError::Failed { message: format!("no answer within {} s", OPERATION_TIMEOUT.as_secs()) };
    tokio::time::timeout(OPERATION_TIMEOUT, operation).await.unwrap_or_else(|_| Err(timed_out()))
}
