//! Parsing of dates, times and time zones.

use crate::tool::ToolFailure;
use jiff::Zoned;
use jiff::civil::{DateTime, Time};
use jiff::fmt::temporal::{DateTimeParser, Pieces, PiecesOffset};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use patter_core::text::{nearest, truncate};

/// The size limit of a date, a format or a duration, in bytes.
pub(super) const MAX_BYTES: usize = 200;

/// The number of characters that an error message shows of an argument.
const MAX_SHOWN_CHARS: usize = 100;

/// Formats an offset in ISO 8601, such as `+02:00`.
pub(super) fn format_offset(offset: Offset) -> String {
    let minutes = offset.seconds() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}

/// Parses the name of a time zone, or an offset.
pub(super) fn parse_time_zone(name: &str) -> Result<TimeZone, ToolFailure> {
    if name == "Z" {
        return Ok(TimeZone::UTC);
    }
    DateTimeParser::new().parse_time_zone(name).map_err(|error| {
        let name = truncate(name, MAX_SHOWN_CHARS);
        let names: Vec<String> = jiff::tz::db().available().map(|name| name.to_string()).collect();
        let hint = match nearest(&name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "use a name such as `Europe/Berlin`, or an offset such as `+02:00`".to_owned(),
        };
        ToolFailure::new(format!("unknown time zone `{name}`; {hint}")).with_detail(error)
    })
}

/// Parses a date and time in ISO 8601, with an offset, a time zone in brackets, both or neither.
///
/// The result is in the given time zone, or else in that of the text, or else in UTC.
pub(super) fn parse_moment(text: &str, zone: Option<&str>) -> Result<Zoned, ToolFailure> {
    let zone = zone.map(parse_time_zone).transpose()?;
    let invalid = |error: jiff::Error| {
        let shown = truncate(text, MAX_SHOWN_CHARS);
        let example = "use ISO 8601 such as `2024-05-17T14:30:00+02:00` or `2024-05-17`";
        ToolFailure::new(format!("`{shown}` is not a valid date and time; {example}")).with_detail(error)
    };
    if text.len() > MAX_BYTES {
        return Err(invalid(jiff::Error::from_args(format_args!("longer than {MAX_BYTES} bytes"))));
    }
    let pieces = Pieces::parse(text).map_err(invalid)?;
    let civil = pieces.date().to_datetime(pieces.time().unwrap_or(Time::midnight()));
    let own_zone = pieces.to_time_zone().map_err(invalid)?;
    let Some(offset) = pieces.offset() else {
        return match (own_zone, zone) {
            (Some(own), Some(zone)) => Ok(resolve_civil(civil, own)?.with_time_zone(zone)),
            (Some(zone), None) | (None, Some(zone)) => resolve_civil(civil, zone),
            (None, None) => resolve_civil(civil, TimeZone::UTC),
        };
    };
    let (offset, its_zone) = match offset {
        PiecesOffset::Zulu => (Offset::UTC, TimeZone::UTC),
        _ => (offset.to_numeric_offset(), TimeZone::fixed(offset.to_numeric_offset())),
    };
    let at = offset.to_timestamp(civil).map_err(invalid)?;
    if let Some(own) = &own_zone
        && own.to_offset(at) != offset
        && its_zone != TimeZone::UTC
    {
        let actual = format_offset(own.to_offset(at));
        return Err(ToolFailure::new(format!(
            "`{text}` is inconsistent: the offset of the time zone was {actual} at that time"
        )));
    }
    Ok(at.to_zoned(zone.or(own_zone).unwrap_or(its_zone)))
}

/// Returns the moment at which clocks show a time. When clocks change, they may show it twice or never.
pub(super) fn resolve_civil(civil: DateTime, zone: TimeZone) -> Result<Zoned, ToolFailure> {
    let name = zone.iana_name().unwrap_or("this time zone").to_owned();
    let ambiguous = zone.into_ambiguous_zoned(civil);
    let (before, after) = match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { offset } => (offset, offset),
        AmbiguousOffset::Gap { before, after } | AmbiguousOffset::Fold { before, after } => (before, after),
    };
    let before = format_offset(before);
    let after = format_offset(after);
    match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { .. } => ambiguous
            .unambiguous()
            .map_err(|error| ToolFailure::new(format!("`{civil}` is out of range")).with_detail(error)),
        AmbiguousOffset::Gap { .. } => Err(ToolFailure::new(format!(
            "`{civil}` does not exist in {name}: clocks were set forward from offset {before} to {after}"
        ))),
        AmbiguousOffset::Fold { .. } => Err(ToolFailure::new(format!(
            "`{civil}` is ambiguous in {name}, since clocks were set back: \
             use `{civil}{before}` for the first occurrence or `{civil}{after}` for the second"
        ))),
    }
}
