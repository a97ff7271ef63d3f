//! The toolbox `dateTime`: dates, times and durations.

mod iso;

use crate::tool::{Tool, ToolContext, ToolFailure};
use iso::{MAX_BYTES, format_offset, parse_moment, parse_time_zone, resolve_civil};
use jiff::fmt::strtime::BrokenDownTime;
use jiff::{Span, Timestamp, Unit as JiffUnit, Zoned, ZonedDifference};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

pub(super) fn tools() -> Vec<Tool> {
    vec![now::tool(), parse::tool(), format::tool(), add::tool(), difference::tool(), convert::tool()]
}

/// A clock. Tools use the one in the shared state, or else the clock of the machine.
///
/// ```
/// use patter::tool::{SharedState, ToolContext, standard::Clock};
/// use std::time::SystemTime;
/// let context = ToolContext::new("1").with_state(SharedState::default().with(Clock::new(|| SystemTime::UNIX_EPOCH)));
/// assert_eq!(context.state::<Clock>().unwrap().now(), SystemTime::UNIX_EPOCH);
/// ```
pub struct Clock(Box<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// Creates a clock from a function.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Box::new(now))
    }

    /// Returns the current time.
    pub fn now(&self) -> SystemTime {
        (self.0)()
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Moment {
    /// The date, time and offset in ISO 8601
    date_time: String,
    /// The name or offset of the time zone
    time_zone: String,
    /// The day of the week, in English
    weekday: String,
    /// The seconds since 1 January 1970 UTC
    unix_seconds: i64,
}

impl From<Zoned> for Moment {
    fn from(zoned: Zoned) -> Self {
        let time_zone = match zoned.time_zone().iana_name() {
            Some(name) => name.to_owned(),
            None if zoned.offset().is_zero() => "UTC".to_owned(),
            None => format_offset(zoned.offset()),
        };
        Self {
            date_time: zoned.timestamp().display_with_offset(zoned.offset()).to_string(),
            time_zone,
            weekday: zoned.strftime("%A").to_string(),
            unix_seconds: zoned.timestamp().as_second(),
        }
    }
}

/// Returns the current date and time in a time zone
#[patter::tool(effect = "reads")]
async fn now(
    /// A time zone such as `Europe/Berlin`, or an offset such as `+02:00`
    #[default = "UTC"]
    time_zone: String,
    context: &ToolContext,
) -> Result<Moment, ToolFailure> {
    let zone = parse_time_zone(&time_zone)?;
    let now = context.state::<Clock>().map_or_else(SystemTime::now, |clock| clock.now());
    Ok(Timestamp::try_from(now)?.to_zoned(zone).into())
}

/// Parses a date and time in ISO 8601 or in a given format
#[patter::tool(effect = "pure")]
fn parse(
    /// The date and time, such as `2024-05-17T14:30:00+02:00`
    text: String,
    /// The strftime format of the text, such as `%d.%m.%Y %H:%M`; by default ISO 8601
    format: Option<String>,
    /// The time zone of the result, and of the text if it has none; by default UTC
    time_zone: Option<String>,
) -> Result<Moment, ToolFailure> {
    let Some(format) = format else { return parse_moment(&text, time_zone.as_deref()).map(Into::into) };
    check_size(&text)?;
    check_size(&format)?;
    let parsed = BrokenDownTime::parse(&format, &text)
        .map_err(|error| ToolFailure::new(format!("`{text}` does not match the format `{format}`: {error}")))?;
    let zone = time_zone.as_deref().map(parse_time_zone).transpose()?;
    if parsed.timestamp().is_some() || parsed.offset().is_some() || parsed.iana_time_zone().is_some() {
        let invalid = |error| ToolFailure::new(format!("`{text}` is not a valid date and time: {error}"));
        let moment =
            parsed.to_zoned().or_else(|_| parsed.to_timestamp().map(|at| at.to_zoned(jiff::tz::TimeZone::UTC)));
        let moment = moment.map_err(invalid)?;
        return Ok(zone.map_or(moment.clone(), |zone| moment.with_time_zone(zone)).into());
    }
    let date = parsed
        .to_date()
        .map_err(|error| ToolFailure::new(format!("the format `{format}` has no complete date: {error}")))?;
    let time = parsed.to_time().unwrap_or(jiff::civil::Time::midnight());
    resolve_civil(date.to_datetime(time), zone.unwrap_or(jiff::tz::TimeZone::UTC)).map(Into::into)
}

/// Formats a date and time
#[patter::tool(effect = "pure")]
fn format(
    /// The date and time in ISO 8601
    date_time: String,
    /// A strftime format such as `%A, %d %B %Y at %H:%M`
    format: String,
    /// The time zone of the output; by default that of the date and time
    time_zone: Option<String>,
) -> Result<String, ToolFailure> {
    check_size(&format)?;
    let moment = parse_moment(&date_time, time_zone.as_deref())?;
    BrokenDownTime::from(&moment)
        .to_string(&format)
        .map_err(|error| ToolFailure::new(format!("invalid format `{format}`: {error}")))
}

/// Adds a duration to a date and time. Days are calendar days, even if clocks change
#[patter::tool(effect = "pure")]
fn add(
    /// The date and time in ISO 8601
    date_time: String,
    /// The duration in ISO 8601 such as `P1M2DT3H30M`, or in words such as `1 month 2 days`; a leading `-` subtracts it
    duration: String,
    /// The time zone to count in; by default that of the date and time
    time_zone: Option<String>,
) -> Result<Moment, ToolFailure> {
    let moment = parse_moment(&date_time, time_zone.as_deref())?;
    check_size(&duration)?;
    let span: Span = duration.parse().map_err(|error: jiff::Error| {
        let example = "use ISO 8601 such as `P1M2DT3H`, or words such as `1 month 2 days`";
        ToolFailure::new(format!("`{duration}` is not a valid duration; {example}")).with_detail(error)
    })?;
    let sum = moment.checked_add(span);
    sum.map(Into::into).map_err(|error| ToolFailure::new(format!("cannot add `{duration}`: {error}")))
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
    /// The duration in ISO 8601; negative if the end is before the start
    duration: String,
    /// The duration in seconds
    seconds: f64,
}

/// Returns the duration between two dates and times
#[patter::tool(effect = "pure")]
fn difference(
    /// The start in ISO 8601
    from: String,
    /// The end in ISO 8601
    to: String,
    /// The largest unit of the duration
    #[default = Unit::Day]
    largest_unit: Unit,
    /// The time zone to count days in; by default that of the start
    time_zone: Option<String>,
) -> Result<Difference, ToolFailure> {
    let from = parse_moment(&from, time_zone.as_deref())?;
    let to = parse_moment(&to, time_zone.as_deref())?.with_time_zone(from.time_zone().clone());
    let span = from
        .until(ZonedDifference::new(&to).largest(largest_unit.into()))
        .map_err(|error| ToolFailure::new(format!("the difference is too large: {error}")))?;
    Ok(Difference { duration: span.to_string(), seconds: to.duration_since(&from).as_secs_f64() })
}

/// Converts a date and time to another time zone
#[patter::tool(effect = "pure")]
fn convert(
    /// The date and time in ISO 8601
    date_time: String,
    /// The target time zone such as `Asia/Tokyo`, or an offset such as `+09:00`
    to: String,
    /// The time zone of the date and time if it has none; by default UTC
    from: Option<String>,
) -> Result<Moment, ToolFailure> {
    Ok(parse_moment(&date_time, from.as_deref())?.with_time_zone(parse_time_zone(&to)?).into())
}

fn check_size(text: &str) -> Result<(), ToolFailure> {
    if text.len() > MAX_BYTES {
        return Err(ToolFailure::new(format!("the text has {} bytes; at most {MAX_BYTES} are allowed", text.len())));
    }
    Ok(())
}
