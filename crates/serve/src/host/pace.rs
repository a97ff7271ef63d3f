//! Limits of providers, which all workers of a fleet respect once one of them met them.

use super::Host;
use patter::model::{apply_limits, new_limits};
use std::sync::Arc;
use std::time::Duration;

/// How often workers tell each other. Requests never wait for it.
const INTERVAL: Duration = Duration::from_secs(1);

impl Host {
    /// Shares limits with the other workers, until the server stops.
    pub(crate) async fn share_limits(self: Arc<Self>) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let Some((queue, _)) = self.queue() else { continue };
            match queue.share_limits(&new_limits()).await {
                Ok(limits) => apply_limits(&limits),
                // Others meet the limit themselves then.
                Err(error) => tracing::debug!(%error, "cannot share the limits of providers"),
            }
        }
    }
}
