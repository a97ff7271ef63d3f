//! The toolbox `dateTime`: moments, and the time between them.

mod read;

use crate::tool::{Failure, Tool, ToolContext};
use jiff::fmt::strtime::BrokenDownTime;
use jiff::{Span, Timestamp, Unit as JiffUnit, Zoned, ZonedDifference};
use read::{LONGEST, moment, offset_text, time_zone, wall_clock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

pub(super) fn tools() -> Vec<Tool> {
    vec![now::tool(), parse::tool(), format::tool(), add::tool(), difference::tool(), convert::tool()]
}

/// What time it is. Tools take it from the state that they share; without one it is the clock of the machine.
///
/// ```
/// use patter::tool::{State, ToolContext, standard::Clock};
/// use std::time::SystemTime;
/// let context = ToolContext::new("1").with_state(State::default().with(Clock::new(|| SystemTime::UNIX_EPOCH)));
/// assert_eq!(context.state::<Clock>().unwrap().now(), SystemTime::UNIX_EPOCH);
/// ```
pub struct Clock(Box<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// Makes a clock that asks a function.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Box::new(now))
    }

    /// Returns what time it is.
    pub fn now(&self) -> SystemTime {
        (self.0)()
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Moment {
    /// Date, time and offset, as ISO 8601 writes them
    date_time: String,
    /// The time zone, by name or as an offset
    time_zone: String,
    /// The day of the week, in English
    weekday: String,
    /// The seconds since the start of 1970 in UTC
    unix_seconds: i64,
}

impl From<Zoned> for Moment {
    fn from(zoned: Zoned) -> Self {
        let time_zone = match zoned.time_zone().iana_name() {
            Some(name) => name.to_owned(),
            None if zoned.offset().is_zero() => "UTC".to_owned(),
            None => offset_text(zoned.offset()),
        };
        Self {
            date_time: zoned.timestamp().display_with_offset(zoned.offset()).to_string(),
            time_zone,
            weekday: zoned.strftime("%A").to_string(),
            unix_seconds: zoned.timestamp().as_second(),
        }
    }
}

/// Tells the current date and time in a time zone
#[patter::tool(effect = "reads")]
async fn now(
    /// The name of a time zone such as `Europe/Berlin`, or an offset such as `+02:00`
    #[default = "UTC"]
    time_zone: String,
    context: &ToolContext,
) -> Result<Moment, Failure> {
    let zone = read::time_zone(&time_zone)?;
    let now = context.state::<Clock>().map_or_else(SystemTime::now, |clock| clock.now());
    Ok(Timestamp::try_from(now)?.to_zoned(zone).into())
}

/// Reads a date and time that is written as ISO 8601, or in a format that is given
#[patter::tool(effect = "pure")]
fn parse(
    /// The date and time, such as `2024-05-17T14:30:00+02:00`
    text: String,
    /// How it is written, if not as ISO 8601: a strftime format such as `%d.%m.%Y %H:%M`
    format: Option<String>,
    /// The time zone of the result, and of the text if that names none; UTC if nothing is said
    time_zone: Option<String>,
) -> Result<Moment, Failure> {
    let Some(format) = format else { return moment(&text, time_zone.as_deref()).map(Into::into) };
    short(&text)?;
    short(&format)?;
    let parsed = BrokenDownTime::parse(&format, &text)
        .map_err(|error| Failure::new(format!("`{text}` is not written as `{format}`: {error}")))?;
    let zone = time_zone.as_deref().map(read::time_zone).transpose()?;
    if parsed.timestamp().is_some() || parsed.offset().is_some() || parsed.iana_time_zone().is_some() {
        let unclear = |error| Failure::new(format!("`{text}` is no moment: {error}"));
        let moment =
            parsed.to_zoned().or_else(|_| parsed.to_timestamp().map(|at| at.to_zoned(jiff::tz::TimeZone::UTC)));
        let moment = moment.map_err(unclear)?;
        return Ok(zone.map_or(moment.clone(), |zone| moment.with_time_zone(zone)).into());
    }
    let date = parsed.to_date().map_err(|error| Failure::new(format!("`{format}` does not say which day: {error}")))?;
    let time = parsed.to_time().unwrap_or(jiff::civil::Time::midnight());
    wall_clock(date.to_datetime(time), zone.unwrap_or(jiff::tz::TimeZone::UTC)).map(Into::into)
}

/// Writes a date and time in a format
#[patter::tool(effect = "pure")]
fn format(
    /// The date and time, as ISO 8601 writes it
    date_time: String,
    /// A strftime format such as `%A, %d %B %Y at %H:%M`
    format: String,
    /// The time zone to write it in; that of the date and time if nothing is said
    time_zone: Option<String>,
) -> Result<String, Failure> {
    short(&format)?;
    let moment = moment(&date_time, time_zone.as_deref())?;
    BrokenDownTime::from(&moment)
        .to_string(&format)
        .map_err(|error| Failure::new(format!("`{format}` is not a format: {error}")))
}

/// Adds a duration to a date and time. A day is a day of the calendar, even if clocks change on it
#[patter::tool(effect = "pure")]
fn add(
    /// The date and time, as ISO 8601 writes it
    date_time: String,
    /// What to add: `P1M2DT3H30M` as ISO 8601 writes it, or `1 month 2 days`; with `-` in front it is taken away
    duration: String,
    /// The time zone to count in; that of the date and time if nothing is said
    time_zone: Option<String>,
) -> Result<Moment, Failure> {
    let moment = moment(&date_time, time_zone.as_deref())?;
    short(&duration)?;
    let span: Span = duration.parse().map_err(|error: jiff::Error| {
        let example = "write ISO 8601, as in `P1M2DT3H`, or words, as in `1 month 2 days`";
        Failure::new(format!("`{duration}` is not a duration; {example}")).with_detail(error)
    })?;
    let sum = moment.checked_add(span);
    sum.map(Into::into).map_err(|error| Failure::new(format!("`{duration}` cannot be added: {error}")))
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl From<Unit> for JiffUnit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Second => JiffUnit::Second,
            Unit::Minute => JiffUnit::Minute,
            Unit::Hour => JiffUnit::Hour,
            Unit::Day => JiffUnit::Day,
            Unit::Week => JiffUnit::Week,
            Unit::Month => JiffUnit::Month,
            Unit::Year => JiffUnit::Year,
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Difference {
    /// The time between the two, as ISO 8601 writes it; with `-` in front if the second is before the first
    duration: String,
    /// The same in seconds
    seconds: f64,
}

/// Tells how much time there is from one date and time to another
#[patter::tool(effect = "pure")]
fn difference(
    /// The first date and time, as ISO 8601 writes it
    from: String,
    /// The second date and time
    to: String,
    /// The largest unit to count in
    #[default = Unit::Day]
    largest_unit: Unit,
    /// The time zone to count days in; that of the first if nothing is said
    time_zone: Option<String>,
) -> Result<Difference, Failure> {
    let from = moment(&from, time_zone.as_deref())?;
    let to = moment(&to, time_zone.as_deref())?.with_time_zone(from.time_zone().clone());
    let span = from
        .until(ZonedDifference::new(&to).largest(largest_unit.into()))
        .map_err(|error| Failure::new(format!("the difference is too large: {error}")))?;
    Ok(Difference { duration: span.to_string(), seconds: to.duration_since(&from).as_secs_f64() })
}

/// Converts a date and time to another time zone
#[patter::tool(effect = "pure")]
fn convert(
    /// The date and time, as ISO 8601 writes it
    date_time: String,
    /// The time zone to convert to: a name such as `Asia/Tokyo`, or an offset such as `+09:00`
    to: String,
    /// The time zone of the date and time, if it names none; UTC if nothing is said
    from: Option<String>,
) -> Result<Moment, Failure> {
    Ok(moment(&date_time, from.as_deref())?.with_time_zone(time_zone(&to)?).into())
}

fn short(text: &str) -> Result<(), Failure> {
    if text.len() > LONGEST {
        return Err(Failure::new(format!("the text has {} bytes; at most {LONGEST} are allowed", text.len())));
    }
    Ok(())
}
