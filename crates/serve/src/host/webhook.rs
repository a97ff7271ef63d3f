//! Reports of the ends of turns. A report is work of the queue from the end of the turn until its receiver has it.

use super::work::{Task, Ticket};
use super::{Host, TurnDetails, read_segment};
use crate::metrics::Delivery;
use crate::webhook::{WebhookMessage, parse_url};
use patter::drive::now_ms;
use patter::session::Log;
use patter::store::{NewWork, SessionId, Settlement, StoreError, Work};
use patter_core::serve::native::turn_json;
use patter_core::serve::{ApiError, TurnEnd};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// What reports have instead of an agent. No agent has such a name.
pub(super) const WEBHOOK: &str = "(webhook)";
/// How many times a report is sent.
const MAX_ATTEMPTS: u32 = 10;
/// The pause after the first attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(60 * 60);

/// The report of the end of a turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct NotifyTask {
    url: String,
    /// The session of the turn.
    session: SessionId,
    /// The id of the message.
    id: String,
    body: String,
}

impl Host {
    /// Adds the report of the end of a turn to the queue, if somebody wants to know. Adding it again has no effect until it is
    /// delivered.
    pub(super) async fn notify(
        &self,
        ticket: &Ticket,
        session: &SessionId,
        about: &TurnDetails,
        end: &Result<TurnEnd, ApiError>,
    ) -> Result<(), StoreError> {
        let Some(url) = &ticket.webhook else { return Ok(()) };
        let Some((queue, _)) = self.queue() else { return Ok(()) };
        let key = format!("webhook/{}/{}", ticket.key, about.number);
        let hash: String = Sha256::digest(&key).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let data = match end {
            Ok(end) => turn_json(Some(session.as_str()), end),
            Err(error) => json!({"session": session, "status": "failed", "error": {"message": error.to_string()}}),
        };
        let status = data.get("status").and_then(|status| status.as_str()).unwrap_or("failed");
        let body = json!({
            "type": format!("turn.{status}"),
            "timestamp": timestamp(now_ms()),
            "agent": about.agent,
            "data": data,
        });
        let task = NotifyTask {
            url: url.clone(),
            session: session.clone(),
            id: format!("msg_{hash}"),
            body: body.to_string(),
        };
        let task = serde_json::to_string(&Task::Notify(Box::new(task)));
        let new = NewWork {
            key,
            // Nothing that is to be done in the session waits for the receiver.
            session: SessionId::parse(&format!("webhook-{hash}"))?,
            agent: WEBHOOK.to_owned(),
            tenant: WEBHOOK.to_owned(),
            task: task.map_err(|error| StoreError::Failed { message: error.to_string() })?,
            worker: None,
            due_ms: None,
        };
        queue.add(new).await.map(|_| ())
    }

    /// Sends a report. Returns how the work is settled.
    pub(super) async fn deliver(&self, task: &NotifyTask, work: &Work) -> Settlement {
        let Some(webhooks) = &self.settings.webhooks else {
            return Settlement::Parked("this server has no webhook secret".to_owned());
        };
        let message = WebhookMessage { id: &task.id, url: &task.url, body: &task.body };
        let Some(sent) = self.stop.run_until_cancelled(webhooks.send(&message, now_ms())).await else {
            return Settlement::HandedOver;
        };
        let Err(error) = sent else {
            self.metrics.delivery(Delivery::Delivered);
            return Settlement::Done;
        };
        // The rest of the URL may be secret.
        let host = parse_url(&task.url).ok().and_then(|url| Some(url.host_str()?.to_owned())).unwrap_or_default();
        let reason =
            format!("the end of the session `{}` was not reported to `{host}`: {}", task.session, error.message);
        if !error.is_transient || work.attempts >= MAX_ATTEMPTS {
            self.metrics.delivery(Delivery::Parked);
            return Settlement::Parked(reason);
        }
        self.metrics.delivery(Delivery::Retried);
        Settlement::Again(pause(work.attempts), reason)
    }

    /// Adds the report of a turn that had ended, or waits, when this server took its work: the server that had it may not have
    /// come to that.
    pub(super) async fn notify_again(&self, ticket: &Ticket, session: &SessionId) -> Result<(), Settlement> {
        if ticket.webhook.is_none() {
            return Ok(());
        }
        let again = |error: String| self.again(ticket, error);
        let store = self.store.clone().ok_or(Settlement::HandedOver)?;
        let stored = store.read(session).await.map_err(|error| again(error.to_string()))?;
        let Some((about, end)) = last_end(&stored.entries) else { return Ok(()) };
        self.notify(ticket, session, &about, &Ok(end)).await.map_err(|error| again(error.to_string()))
    }
}

/// Returns how the last turn of a session ended, if none is under way.
fn last_end(entries: &[String]) -> Option<(TurnDetails, TurnEnd)> {
    let number = Log::read(entries).ok()?.segments();
    let segment = read_segment(entries, number).ok()??;
    let about = TurnDetails { number, agent: segment.agent, client: segment.client, created_ms: segment.started_ms };
    Some((about, segment.end?))
}

/// Returns the pause after an attempt: each is four times as long as the one before.
fn pause(attempts: u32) -> Duration {
    let factor = 4_u32.saturating_pow(attempts.saturating_sub(1).min(15));
    FIRST_PAUSE.saturating_mul(factor).min(MAX_PAUSE)
}

fn timestamp(ms: u64) -> String {
    let moment = i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    moment.unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_an_hour() {
        let pauses: Vec<_> = (1..=8).map(|attempts| pause(attempts).as_secs()).collect();
        assert_eq!(pauses, [2, 8, 32, 128, 512, 2048, 3600, 3600]);
    }
}
