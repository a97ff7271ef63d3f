//! Connections that read, which do not wait for the one that writes.

use super::file::SqliteFile;
use super::join_error;
use crate::store::error::StoreError;
use crate::store::limit::{CONNECT_TIMEOUT, DESCRIPTOR_TIMEOUT, MAX_CONNECTIONS, RETRY_PAUSE, has_no_descriptors};
use rusqlite::Connection;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// A bounded number of connections, opened as needed.
pub(super) struct Readers {
    file: SqliteFile,
    permits: Semaphore,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn new(file: SqliteFile) -> Self {
        Self { file, permits: Semaphore::new(MAX_CONNECTIONS as usize), idle: Arc::default() }
    }

    /// Reads something in a thread for blocking work. Waits if all connections are in use, or if this process has too many
    /// open files.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = tokio::time::timeout(CONNECT_TIMEOUT, self.permits.acquire()).await;
        let Ok(Ok(_permit)) = permit else {
            return Err(StoreError::Failed { message: "too many operations read at once".to_owned() });
        };
        let connection = self.connection().await?;
        let idle = Arc::clone(&self.idle);
        let read = tokio::task::spawn_blocking(move || {
            let result = query(&connection);
            // A connection whose query failed may have a transaction open.
            if result.is_ok() {
                idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            }
            result
        });
        let result = read.await.map_err(|error| join_error(&error))?;
        result.map_err(|error| self.file.failed(&error))
    }

    async fn connection(&self) -> Result<Connection, StoreError> {
        let deadline = Instant::now() + DESCRIPTOR_TIMEOUT;
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            if let Some(connection) = idle {
                return Ok(connection);
            }
            let file = self.file.clone();
            let open = tokio::task::spawn_blocking(move || file.connect());
            match open.await.map_err(|error| join_error(&error))? {
                Ok(connection) => return Ok(connection),
                Err(_) if has_no_descriptors() && Instant::now() < deadline => tokio::time::sleep(RETRY_PAUSE).await,
                Err(error) => return Err(self.file.failed(&error)),
            }
        }
    }
}
