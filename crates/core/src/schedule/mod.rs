//! Schedules: agents that run at certain times.
//!
//! When a schedule fires is a function of the schedule and a moment. The time zones are those of the database that is built into
//! the program, so all servers with the same version agree on them, whatever their machines have.

mod cron;
mod tick;
mod read;

pub use cron::{Cron, CronError};
pub(crate) use read::{PROPERTIES, findings};

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;
use std::time::Duration;

/// The time zones.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
/// How late a run may start, if the schedule does not say it: when no server was there.
const DEFAULT_CATCH_UP: Duration = Duration::from_secs(60 * 60);
/// The most characters of a name in the id of a session.
const MAX_NAME: usize = 38;
/// How many characters of a hash make a name unique.
const HASH_LENGTH: usize = 6;

/// A schedule: when which agent runs with which input.
///
/// ```
/// use patter_core::declare::project::Project;
/// use patter_core::schedule::Schedule;
/// let text = r#"
/// [digest:Agent { instruction: "Summarize the news.", model: "demo" }]
/// [every_morning:Schedule { agent: "digest", at: "0 7 * * 1-5", timezone: "Europe/Zurich", input: "Go" }]
/// "#;
/// let schedules = Schedule::read_all(&Project::read([("a.gram", text)]));
/// let monday = 1_794_873_600_000; // 2026-11-17T00:00:00Z
/// let next = schedules[0].next(monday).unwrap();
/// assert_eq!(next.to_string(), "2026-11-17T06:00:00Z");
/// assert_eq!(schedules[0].session(next), "schedule-every-morning-20261117-060000");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// The name.
    pub name: String,
    /// The agent that runs.
    pub agent: String,
    /// When it runs.
    pub at: Cron,
    /// The name of the time zone.
    pub timezone: String,
    /// What the agent receives.
    pub input: String,
    /// How late a run may start. A tick that is missed for longer is left out.
    pub catch_up: Duration,
    /// Where the end of each run is reported.
    pub webhook: Option<String>,
    zone: TimeZone,
}

/// A moment at which a schedule fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(Timestamp);

impl Tick {
    /// Returns the tick at a moment, in milliseconds since 1970.
    pub fn from_ms(ms: u64) -> Option<Self> {
        Some(Self(timestamp(ms)?))
    }

    /// Returns the moment, in milliseconds since 1970.
    pub fn as_ms(self) -> u64 {
        u64::try_from(self.0.as_millisecond()).unwrap_or_default()
    }
}

impl std::fmt::Display for Tick {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Schedule {
    /// Returns the first tick after a moment, which is in milliseconds since 1970.
    pub fn next(&self, after_ms: u64) -> Option<Tick> {
        tick::next(&self.at, &self.zone, timestamp(after_ms)?).map(Tick)
    }

    /// Returns the last tick up to a moment, which is in milliseconds since 1970.
    pub fn previous(&self, until_ms: u64) -> Option<Tick> {
        tick::previous(&self.at, &self.zone, timestamp(until_ms)?).map(Tick)
    }

    /// Returns the tick that was missed before a moment and may still run: the last one, unless it is too old.
    pub fn missed(&self, now_ms: u64) -> Option<Tick> {
        let catch_up_ms = crate::text::milliseconds(self.catch_up);
        self.previous(now_ms).filter(|tick| now_ms.saturating_sub(tick.as_ms()) <= catch_up_ms)
    }

    /// Returns whether the schedule fires at a moment.
    pub fn has_tick(&self, tick: Tick) -> bool {
        tick.as_ms().checked_sub(1).and_then(|before| self.next(before)) == Some(tick)
    }

    /// Returns the id of the session of a tick. It is the same wherever it is computed, so a tick has one session.
    pub fn session(&self, tick: Tick) -> String {
        format!("schedule-{}-{}", id_part(&self.name), tick.0.strftime("%Y%m%d-%H%M%S"))
    }

    /// Returns what identifies a tick.
    pub fn key(&self, tick: Tick) -> String {
        format!("{}{tick}", Self::key_prefix(&self.name))
    }

    /// Returns how the keys of the ticks of a schedule start.
    pub fn key_prefix(name: &str) -> String {
        format!("schedule/{name}/")
    }
}

/// Returns a name as a part of the id of a session. Different names have different parts.
fn id_part(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let character = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    if name.len() <= MAX_NAME && name.chars().all(is_plain) {
        return name.chars().map(character).collect();
    }
    let short: String = name.chars().map(character).take(MAX_NAME - HASH_LENGTH - 1).collect();
    let hash: String = Sha256::digest(name).iter().take(HASH_LENGTH / 2).map(|byte| format!("{byte:02x}")).collect();
    format!("{short}-{hash}")
}

fn timestamp(ms: u64) -> Option<Timestamp> {
    Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()
}
