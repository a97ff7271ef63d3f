//! Approvals that nobody gave in time, and questions that nobody answered.

use super::{Answer, Host, Lifetime};
use crate::token::Access;
use patter::drive::now_ms;
use patter::message::conversation::ToolOutcome;
use patter::session::{CallAnswer, WaitingCall};
use patter::store::{SessionId, SessionState, SessionSummary, Store, StoreError};
use patter_core::serve::{ApiError, Waiting};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Why a call is refused.
pub(super) const NOT_IN_TIME: &str = "nobody approved the call in time";

impl Host {
    /// Refuses calls whose approval expired. Runs until the server stops.
    pub(crate) async fn expire_approvals(self: Arc<Self>) {
        let Some(store) = self.store.clone() else { return };
        // When the questions to people expire, by session, as of a change of the session.
        let mut questions: HashMap<SessionId, (u64, Option<u64>)> = HashMap::new();
        while self
            .draining
            .run_until_cancelled(tokio::time::sleep(self.settings.limits.expiry_interval))
            .await
            .is_some()
        {
            let waiting = all_waiting(&*store).await.unwrap_or_default();
            let expiry = patter::text::milliseconds(self.settings.approval_expiry);
            let ids: HashSet<_> = waiting.iter().map(|summary| &summary.id).collect();
            questions.retain(|id, _| ids.contains(id));
            for summary in &waiting {
                let known = questions.get(&summary.id).filter(|(changed, _)| *changed == summary.changed_ms);
                let expires = match known {
                    Some((_, expires)) => *expires,
                    None => self.next_expiry(&summary.id).await,
                };
                questions.insert(summary.id.clone(), (summary.changed_ms, expires));
                if expires.is_some_and(|expires| expires <= now_ms())
                    && let Err(error) = self.end_questions(&summary.id).await
                {
                    tracing::debug!(session = %summary.id, %error, "cannot end expired questions");
                }
            }
            let is_expired = |changed_ms: u64| now_ms().saturating_sub(changed_ms) > expiry;
            for summary in waiting.into_iter().filter(|summary| is_expired(summary.changed_ms)) {
                if let Err(error) = self.refuse_expired(&summary.id).await {
                    tracing::debug!(session = %summary.id, %error, "cannot refuse expired approvals");
                }
            }
        }
    }

    /// Returns when the first question of a workflow to a person expires.
    async fn next_expiry(&self, id: &SessionId) -> Option<u64> {
        let (_, log) = self.read_session(id).await.ok()?;
        log.waiting_calls().iter().filter_map(|waiting| waiting.call.expires_at).min()
    }

    /// Ends the questions of a workflow that nobody answered in time.
    async fn end_questions(self: &Arc<Self>, id: &SessionId) -> Result<(), ApiError> {
        let (_, log) = self.read_session(id).await?;
        let now = now_ms();
        let is_late = |waiting: &WaitingCall<'_>| waiting.call.expires_at.is_some_and(|expires| expires <= now);
        let late = log.waiting_calls().into_iter().filter(is_late);
        let answers: Vec<_> = late
            .map(|waiting| {
                let message = "nobody answered in time".to_owned();
                Answer {
                    answer: CallAnswer::Result(ToolOutcome::Error { message }),
                    hash: None,
                    run: waiting.run,
                    call_id: waiting.call.id.clone(),
                }
            })
            .collect();
        if !answers.is_empty() {
            self.answer(&Access::default(), id, answers, Lifetime::Detached).await?;
        }
        Ok(())
    }

    async fn refuse_expired(self: &Arc<Self>, id: &SessionId) -> Result<(), ApiError> {
        let (_, log) = self.read_session(id).await?;
        let refuse = |call: &Waiting| Answer::to(call, CallAnswer::Refuse(NOT_IN_TIME.to_owned()));
        let answers: Vec<_> = Waiting::all(&log).iter().filter(|call| call.because.is_some()).map(refuse).collect();
        if !answers.is_empty() {
            self.answer(&Access::default(), id, answers, Lifetime::Detached).await?;
        }
        Ok(())
    }
}

/// Returns all sessions that wait for somebody, a page at a time.
async fn all_waiting(store: &dyn Store) -> Result<Vec<SessionSummary>, StoreError> {
    const PAGE: usize = 1000;
    let mut waiting: Vec<SessionSummary> = Vec::new();
    loop {
        let page = store.list_page(Some(SessionState::Waiting), waiting.last(), PAGE).await?;
        let is_last = page.len() < PAGE;
        waiting.extend(page);
        if is_last {
            return Ok(waiting);
        }
    }
}
