//! When a schedule fires, as a function of a moment.
//!
//! Clocks are changed twice a year in many time zones. A time that a clock skips is moved by as much as the clock; a time that
//! it shows twice is the first of the two. A schedule for every hour follows the real time instead: it fires in both hours that
//! have the same name, and an hour that does not exist is left out.

use super::cron::Cron;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Span, Timestamp, ToSpan};

/// How many days to look ahead. The 29th of February may be eight years away.
const MAX_DAYS: u16 = 9 * 366;
/// A change of the clock in this time before or after a moment counts for it. No known one is larger than a day.
const NEAR: SignedDuration = SignedDuration::from_hours(26);

/// Returns the first moment after another at which an expression applies.
pub(super) fn next(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let change = clock_change(zone, after);
    let local = zone.to_datetime(after);
    // Clock times before this one may come again, or may have been moved to later.
    let start = local.checked_sub(change).ok()?;
    let mut best: Option<Timestamp> = None;
    let mut last_local = None;
    let mut candidate = first_from(cron, start)?;
    loop {
        if last_local.is_some_and(|last| candidate > last) {
            return best;
        }
        for moment in moments(cron, zone, candidate).into_iter().flatten().filter(|moment| *moment > after) {
            best = Some(best.map_or(moment, |best| best.min(moment)));
        }
        if best.is_some() {
            if change.is_zero() {
                return best;
            }
            last_local = last_local.or_else(|| candidate.checked_add(change).ok());
        }
        let following = candidate.checked_add(Span::new().seconds(1)).ok().and_then(|from| first_from(cron, from));
        let Some(following) = following else { return best };
        candidate = following;
    }
}

/// Returns the last moment up to another at which an expression applied.
pub(super) fn previous(cron: &Cron, zone: &TimeZone, until: Timestamp) -> Option<Timestamp> {
    let fires_after = |from: Timestamp| next(cron, zone, from).filter(|moment| *moment <= until);
    let mut from = until.checked_sub(SignedDuration::from_hours(i64::from(MAX_DAYS) * 24)).ok()?;
    let mut found = fires_after(from)?;
    let mut without = until;
    // The later the start, the later the next moment: it is found by halving.
    while without.duration_since(from) > SignedDuration::from_secs(1) {
        let half = SignedDuration::from_secs(without.duration_since(from).as_secs() / 2);
        let middle = from.checked_add(half).ok()?;
        match fires_after(middle) {
            Some(moment) => (from, found) = (middle, moment),
            None => without = middle,
        }
    }
    Some(found)
}

/// Returns by how much clocks change around a moment.
fn clock_change(zone: &TimeZone, moment: Timestamp) -> SignedDuration {
    let around = [moment.checked_sub(NEAR).unwrap_or(moment), moment, moment.checked_add(NEAR).unwrap_or(moment)];
    let offsets = around.map(|moment| zone.to_offset(moment).seconds());
    let largest = offsets.iter().max().copied().unwrap_or_default();
    let smallest = offsets.iter().min().copied().unwrap_or_default();
    SignedDuration::from_secs(i64::from(largest) - i64::from(smallest))
}

/// Returns the moments of a clock time.
fn moments(cron: &Cron, zone: &TimeZone, local: DateTime) -> [Option<Timestamp>; 2] {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    match ambiguous.offset() {
        AmbiguousOffset::Fold { .. } if cron.hours.is_any => {
            let later = zone.to_ambiguous_timestamp(local).later().ok();
            [ambiguous.earlier().ok(), later]
        }
        AmbiguousOffset::Gap { .. } if cron.hours.is_any => [None, None],
        _ => [ambiguous.compatible().ok(), None],
    }
}

/// Returns the first clock time from one on to which an expression applies.
fn first_from(cron: &Cron, from: DateTime) -> Option<DateTime> {
    let mut date = from.date();
    let mut time = first_time(cron, from.time());
    for _ in 0..MAX_DAYS {
        if has_date(cron, date)
            && let Some(time) = time
        {
            return Some(date.to_datetime(time));
        }
        date = date.checked_add(1.day()).ok()?;
        time = first_time(cron, Time::midnight());
    }
    None
}

fn has_date(cron: &Cron, date: Date) -> bool {
    cron.has_day(date.month(), date.day(), date.weekday().to_sunday_zero_offset())
}

/// Returns the first time of a day from one on.
fn first_time(cron: &Cron, from: Time) -> Option<Time> {
    // A time between two seconds comes after the first of them.
    let mut second = from.second() + i8::from(from.subsec_nanosecond() > 0);
    let mut minute = from.minute();
    let mut hour = from.hour();
    loop {
        let found_hour = cron.hours.from(hour)?;
        if found_hour > hour {
            (minute, second) = (0, 0);
        }
        hour = found_hour;
        let found_minute = cron.minutes.from(minute);
        if found_minute.is_none_or(|found| found > minute) {
            second = 0;
        }
        match found_minute {
            Some(found) => minute = found,
            None => {
                (hour, minute) = (hour + 1, 0);
                continue;
            }
        }
        match cron.seconds.from(second) {
            Some(second) => return Time::new(hour, minute, second, 0).ok(),
            None => (minute, second) = (minute + 1, 0),
        }
    }
}
