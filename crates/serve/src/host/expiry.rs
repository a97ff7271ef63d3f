//! Approvals that nobody gave in time.

use super::{Answer, Host, Lifetime};
use crate::token::Access;
use patter::drive::now_ms;
use patter::session::CallAnswer;
use patter::store::{SessionId, SessionState};
use patter_core::serve::{ApiError, Waiting};
use std::sync::Arc;

/// Why a call is refused.
pub(super) const NOT_IN_TIME: &str = "nobody approved the call in time";

impl Host {
    /// Refuses calls whose approval expired. Runs until the server stops.
    pub(crate) async fn expire_approvals(self: Arc<Self>) {
        const MAX_SESSIONS: usize = 1000;
        let Some(store) = self.store.clone() else { return };
        while self
            .draining
            .run_until_cancelled(tokio::time::sleep(self.settings.limits.expiry_interval))
            .await
            .is_some()
        {
            let waiting = store.list_in_state(Some(SessionState::Waiting), MAX_SESSIONS).await.unwrap_or_default();
            let expiry = patter::text::milliseconds(self.settings.approval_expiry);
            let is_expired = |changed_ms: u64| now_ms().saturating_sub(changed_ms) > expiry;
            for summary in waiting.into_iter().filter(|summary| is_expired(summary.changed_ms)) {
                if let Err(error) = self.refuse_expired(&summary.id).await {
                    tracing::debug!(session = %summary.id, %error, "cannot refuse expired approvals");
                }
            }
        }
    }

    async fn refuse_expired(self: &Arc<Self>, id: &SessionId) -> Result<(), ApiError> {
        let (_, log) = self.read_session(id).await?;
        let refuse = |call: Waiting| Answer {
            answer: CallAnswer::Refuse(NOT_IN_TIME.to_owned()),
            hash: Some(call.hash),
            run: call.run,
            call_id: call.call_id,
        };
        let answers: Vec<_> =
            Waiting::all(&log).into_iter().filter(|call| call.because.is_some()).map(refuse).collect();
        if !answers.is_empty() {
            self.answer(&Access::default(), id, answers, Lifetime::Detached).await?;
        }
        Ok(())
    }
}
