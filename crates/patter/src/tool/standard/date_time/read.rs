//! Reading dates, times and time zones.

use crate::tool::Failure;
use jiff::Zoned;
use jiff::civil::{DateTime, Time};
use jiff::fmt::temporal::{DateTimeParser, Pieces, PiecesOffset};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use patter_core::text::nearest;

/// How long a date, a format or a duration may be, in bytes.
pub(super) const LONGEST: usize = 200;

/// Writes an offset as ISO 8601 does, such as `+02:00`.
pub(super) fn offset_text(offset: Offset) -> String {
    let minutes = offset.seconds() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}

/// Returns the time zone with a name, or with a fixed offset.
pub(super) fn time_zone(name: &str) -> Result<TimeZone, Failure> {
    if name == "Z" {
        return Ok(TimeZone::UTC);
    }
    DateTimeParser::new().parse_time_zone(name).map_err(|error| {
        let name: String = name.chars().take(100).collect();
        let known: Vec<String> = jiff::tz::db().available().map(|known| known.to_string()).collect();
        let hint = match nearest(&name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write a name such as `Europe/Berlin`, or an offset such as `+02:00`".to_owned(),
        };
        Failure::new(format!("there is no time zone `{name}`; {hint}")).with_detail(error)
    })
}

/// Reads a date and time as ISO 8601 writes it, with an offset, a time zone in brackets, both or neither.
///
/// The result is in the time zone that is given, or else in that of the text, or else in UTC.
pub(super) fn moment(text: &str, zone: Option<&str>) -> Result<Zoned, Failure> {
    let zone = zone.map(time_zone).transpose()?;
    let wrong = |error: jiff::Error| {
        let shown: String = text.chars().take(100).collect();
        let example = "write ISO 8601, as in `2024-05-17T14:30:00+02:00` or `2024-05-17`";
        Failure::new(format!("`{shown}` is not a date and time; {example}")).with_detail(error)
    };
    if text.len() > LONGEST {
        return Err(wrong(jiff::Error::from_args(format_args!("longer than {LONGEST} bytes"))));
    }
    let pieces = Pieces::parse(text).map_err(wrong)?;
    let civil = pieces.date().to_datetime(pieces.time().unwrap_or(Time::midnight()));
    let own_zone = pieces.to_time_zone().map_err(wrong)?;
    let Some(offset) = pieces.offset() else {
        return match (own_zone, zone) {
            (Some(own), Some(zone)) => Ok(wall_clock(civil, own)?.with_time_zone(zone)),
            (Some(zone), None) | (None, Some(zone)) => wall_clock(civil, zone),
            (None, None) => wall_clock(civil, TimeZone::UTC),
        };
    };
    let (offset, its_zone) = match offset {
        PiecesOffset::Zulu => (Offset::UTC, TimeZone::UTC),
        _ => (offset.to_numeric_offset(), TimeZone::fixed(offset.to_numeric_offset())),
    };
    let at = offset.to_timestamp(civil).map_err(wrong)?;
    if let Some(own) = &own_zone
        && own.to_offset(at) != offset
        && its_zone != TimeZone::UTC
    {
        let actual = offset_text(own.to_offset(at));
        return Err(Failure::new(format!(
            "`{text}` contradicts itself: the offset of that time zone was {actual} then"
        )));
    }
    Ok(at.to_zoned(zone.or(own_zone).unwrap_or(its_zone)))
}

/// Returns the moment when clocks show a time. They may show it twice, or never, when they are changed.
pub(super) fn wall_clock(civil: DateTime, zone: TimeZone) -> Result<Zoned, Failure> {
    let name = zone.iana_name().unwrap_or("this time zone").to_owned();
    let ambiguous = zone.into_ambiguous_zoned(civil);
    let (before, after) = match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { offset } => (offset, offset),
        AmbiguousOffset::Gap { before, after } | AmbiguousOffset::Fold { before, after } => (before, after),
    };
    let (before, after) = (offset_text(before), offset_text(after));
    match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { .. } => ambiguous
            .unambiguous()
            .map_err(|error| Failure::new(format!("`{civil}` is out of range")).with_detail(error)),
        AmbiguousOffset::Gap { .. } => Err(Failure::new(format!(
            "`{civil}` did not happen in {name}: clocks were put forward there, from offset {before} to {after}"
        ))),
        AmbiguousOffset::Fold { .. } => Err(Failure::new(format!(
            "`{civil}` happened twice in {name}, since clocks were put back there: \
             write `{civil}{before}` for the first time or `{civil}{after}` for the second"
        ))),
    }
}
