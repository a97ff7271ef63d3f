//! What happens during a call, as notifications to the client.

use rmcp::model::ProgressNotificationParam;
use rmcp::service::{RequestContext, RoleServer};

/// Whether a client receives log messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Logging {
    #[default]
    Off,
    On,
}

impl Logging {
    /// Returns whether a client that asked for a level receives messages, which are all information.
    #[expect(deprecated, reason = "clients of the older protocol ask for logs")]
    pub(super) fn for_level(level: rmcp::model::LoggingLevel) -> Self {
        use rmcp::model::LoggingLevel;
        match level {
            LoggingLevel::Debug | LoggingLevel::Info => Self::On,
            _ => Self::Off,
        }
    }
}

/// Reports to the client that made a request: as progress if it asked for that, and as log messages if it set a level.
pub(super) struct Reporter<'c> {
    context: &'c RequestContext<RoleServer>,
    logging: Logging,
    /// The progress reported last, which must increase.
    last: Option<f64>,
}

impl<'c> Reporter<'c> {
    pub(super) fn new(context: &'c RequestContext<RoleServer>, logging: Logging) -> Self {
        Self { context, logging, last: None }
    }

    /// Reports progress. A fraction is reported as a percentage, and other progress in steps.
    pub(super) async fn report(&mut self, fraction: Option<f64>, message: String) {
        const LEAST: f64 = 0.01;
        const WHOLE: f64 = 100.0;
        self.log(&message).await;
        let Some(token) = self.context.meta.get_progress_token() else { return };
        let value = match (fraction, self.last) {
            (Some(fraction), None) => fraction * WHOLE,
            (Some(fraction), Some(last)) => (fraction * WHOLE).max(last + LEAST),
            (None, last) => last.unwrap_or_default() + 1.0,
        };
        self.last = Some(value);
        let mut progress = ProgressNotificationParam::new(token, value);
        progress.total = fraction.map(|_| WHOLE.max(value));
        progress.message = Some(message).filter(|message| !message.is_empty());
        // A client that is gone learns nothing.
        let _ = self.context.peer.notify_progress(progress).await;
    }

    #[expect(deprecated, reason = "clients of the older protocol ask for logs")]
    async fn log(&self, message: &str) {
        use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
        if self.logging == Logging::On && !message.is_empty() {
            let log = LoggingMessageNotificationParam::new(LoggingLevel::Info, message.into());
            let _ = self.context.peer.notify_logging_message(log.with_logger("patter")).await;
        }
    }
}
