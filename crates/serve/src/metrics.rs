//! Counters, in the text format of Prometheus.

use patter_core::message::conversation::Usage;
use patter_core::serve::{TurnEnd, TurnOutcome};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the durations of turns, in milliseconds.
const BOUNDS: [u64; 8] = [100, 500, 1_000, 5_000, 15_000, 60_000, 300_000, 1_800_000];

/// What the server counts.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    answered: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    waiting: AtomicU64,
    active: AtomicU64,
    input_tokens: AtomicU64,
    output_tokens: AtomicU64,
    durations: [AtomicU64; BOUNDS.len()],
    duration_sum_ms: AtomicU64,
    requests: AtomicU64,
    refused: AtomicU64,
    joined: AtomicU64,
    ticks_started: AtomicU64,
    ticks_skipped: AtomicU64,
    reports_delivered: AtomicU64,
    reports_retried: AtomicU64,
    reports_parked: AtomicU64,
}

/// What became of a tick of a schedule.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TickOutcome {
    Started,
    Skipped,
}

/// What became of an attempt to report the end of a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Delivery {
    Delivered,
    Retried,
    Parked,
}

impl Metrics {
    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that was not let in.
    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a retry that joined the turn of the first request.
    pub(crate) fn joined(&self) {
        self.joined.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a tick of a schedule.
    pub(crate) fn tick(&self, outcome: TickOutcome) {
        let counter = match outcome {
            TickOutcome::Started => &self.ticks_started,
            TickOutcome::Skipped => &self.ticks_skipped,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an attempt to report the end of a turn.
    pub(crate) fn delivery(&self, delivery: Delivery) {
        let counter = match delivery {
            Delivery::Delivered => &self.reports_delivered,
            Delivery::Retried => &self.reports_retried,
            Delivery::Parked => &self.reports_parked,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn started(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a turn: `None` if it could not run.
    pub(crate) fn ended(&self, end: Option<&TurnEnd>, duration: Duration) {
        self.active.fetch_sub(1, Ordering::Relaxed);
        let counter = match end.map(|end| &end.outcome) {
            Some(TurnOutcome::Answered { .. }) => &self.answered,
            Some(TurnOutcome::Waiting(_)) => &self.waiting,
            Some(TurnOutcome::Cancelled) => &self.cancelled,
            Some(TurnOutcome::Failed(_)) | None => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let Usage { input_tokens, output_tokens, .. } = end.map(|end| end.usage).unwrap_or_default();
        self.input_tokens.fetch_add(input_tokens, Ordering::Relaxed);
        self.output_tokens.fetch_add(output_tokens, Ordering::Relaxed);
        let duration_ms = patter::text::milliseconds(duration);
        self.duration_sum_ms.fetch_add(duration_ms, Ordering::Relaxed);
        for (bound, counter) in BOUNDS.iter().zip(&self.durations) {
            if duration_ms <= *bound {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn active(&self) -> u64 {
        self.active.load(Ordering::Relaxed)
    }

    /// Returns all counters.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut metric = |name: &str, kind: &str, help: &str, values: &[(&str, u64)]| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(text, "{name}{labels} {value}");
            }
        };
        metric("patter_requests_total", "counter", "Requests received.", &[("", get(&self.requests))]);
        metric("patter_requests_refused_total", "counter", "Requests not let in.", &[("", get(&self.refused))]);
        metric(
            "patter_requests_joined_total",
            "counter",
            "Retries that joined the turn of the first request.",
            &[("", get(&self.joined))],
        );
        metric("patter_turns_active", "gauge", "Turns under way.", &[("", get(&self.active))]);
        let outcomes = [
            (r#"{outcome="answered"}"#, get(&self.answered)),
            (r#"{outcome="failed"}"#, get(&self.failed)),
            (r#"{outcome="cancelled"}"#, get(&self.cancelled)),
            (r#"{outcome="waiting"}"#, get(&self.waiting)),
        ];
        let count = outcomes.iter().map(|(_, value)| value).sum::<u64>();
        metric("patter_turns_total", "counter", "Turns that ended or wait, by outcome.", &outcomes);
        let tokens = [(r#"{kind="input"}"#, get(&self.input_tokens)), (r#"{kind="output"}"#, get(&self.output_tokens))];
        metric("patter_tokens_total", "counter", "Tokens that turns used.", &tokens);
        let ticks = [
            (r#"{outcome="started"}"#, get(&self.ticks_started)),
            (r#"{outcome="skipped"}"#, get(&self.ticks_skipped)),
        ];
        metric("patter_schedule_ticks_total", "counter", "Ticks of schedules, by what became of them.", &ticks);
        let deliveries = [
            (r#"{outcome="delivered"}"#, get(&self.reports_delivered)),
            (r#"{outcome="retried"}"#, get(&self.reports_retried)),
            (r#"{outcome="parked"}"#, get(&self.reports_parked)),
        ];
        metric("patter_webhooks_total", "counter", "Attempts to report the end of a turn, by outcome.", &deliveries);
        let name = "patter_turn_duration_seconds";
        let _ = writeln!(text, "# HELP {name} How long turns took.\n# TYPE {name} histogram");
        for (bound, counter) in BOUNDS.iter().zip(&self.durations) {
            let seconds = Duration::from_millis(*bound).as_secs_f64();
            let _ = writeln!(text, "{name}_bucket{{le=\"{seconds}\"}} {}", get(counter));
        }
        let sum = Duration::from_millis(get(&self.duration_sum_ms)).as_secs_f64();
        let _ = writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}");
        text
    }
}
