//! Schedules: how they are read, and when they fire.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use patter_core::declare::project::Project;
use patter_core::schedule::{Cron, Schedule, Tick};
use proptest::prelude::*;
use std::collections::BTreeSet;

const AGENT: &str = "[digest:Agent { instruction: 'Summarize.', model: 'demo' }]\n";

fn read(schedule: &str) -> Vec<Schedule> {
    Schedule::read_all(&Project::read([("a.gram", format!("{AGENT}{schedule}"))]))
}

fn schedule(at: &str, timezone: &str) -> Schedule {
    let text = format!("[s:Schedule {{ agent: 'digest', at: '{at}', timezone: '{timezone}', input: 'Go' }}]");
    read(&text).pop().unwrap_or_else(|| panic!("{at} is not valid"))
}

fn ms(text: &str) -> u64 {
    let moment = text.parse::<Timestamp>().unwrap_or_else(|error| panic!("{text}: {error}"));
    u64::try_from(moment.as_millisecond()).unwrap()
}

/// Returns the ticks after a moment, in local time.
fn ticks(at: &str, timezone: &str, after: &str, count: usize) -> Vec<String> {
    let schedule = schedule(at, timezone);
    let zone = TimeZone::get(timezone).unwrap();
    let mut after = ms(after);
    let mut found = Vec::new();
    for _ in 0..count {
        let tick = schedule.next(after).unwrap();
        assert!(tick.as_ms() > after, "{tick} is not after {after}");
        assert_eq!(schedule.previous(tick.as_ms()), Some(tick));
        assert!(schedule.has_tick(tick));
        after = tick.as_ms();
        let moment = Timestamp::from_millisecond(i64::try_from(after).unwrap()).unwrap();
        found.push(moment.to_zoned(zone.clone()).strftime("%a %d %b %H:%M:%S %:z").to_string());
    }
    found
}

#[test]
fn schedules_are_read() {
    let schedules = read(
        "[every_morning:Schedule { agent: 'digest', at: '0 7 * * 1-5', timezone: 'europe/zurich', input: 'Go', catchUp: 2h }]
         [Nightly:Schedule { agent: 'digest', at: '@daily', input: 'Go', webhook: 'https://example.com/x' }]",
    );
    let [morning, nightly] = schedules.as_slice() else { panic!("{schedules:?}") };
    assert_eq!(
        (morning.name.as_str(), morning.agent.as_str(), morning.input.as_str()),
        ("every_morning", "digest", "Go")
    );
    assert_eq!((morning.timezone.as_str(), morning.catch_up.as_secs()), ("Europe/Zurich", 7200));
    assert_eq!((nightly.timezone.as_str(), nightly.catch_up.as_secs()), ("UTC", 3600));
    assert_eq!(nightly.webhook.as_deref(), Some("https://example.com/x"));
    let tick = Tick::from_ms(ms("2026-11-17T06:00:00Z")).unwrap();
    assert_eq!(morning.key(tick), "schedule/every_morning/2026-11-17T06:00:00Z");
    assert_eq!(morning.session(tick), "schedule-every-morning-20261117-060000");
    // Names that look the same as ids have different sessions.
    assert_eq!(nightly.session(tick), "schedule-nightly-ab6b5a-20261117-060000");
    // Ones with errors, and second ones with a name, are left out.
    assert!(read("[a:Schedule { agent: 'digest', at: '61 * * * *', input: 'Go' }]").is_empty());
    assert!(read("[:Schedule { agent: 'digest', at: '@daily', input: 'Go' }]").is_empty());
    let twice = "[a:Schedule { agent: 'digest', at: '@daily', input: 'Go' }]";
    assert_eq!(read(&twice.repeat(2)).len(), 1);
}

#[test]
fn ids_of_sessions_are_short_and_different() {
    let tick = Tick::from_ms(ms("2026-11-17T06:00:00Z")).unwrap();
    let names =
        ["a_b", "`a-b`", "A_b", "`ä`", "`ö`", &"x".repeat(38), &"x".repeat(39), &"x".repeat(80), &"x".repeat(81)];
    let mut ids = BTreeSet::new();
    for name in names {
        let text = format!("[{name}:Schedule {{ agent: 'digest', at: '@daily', input: 'Go' }}]");
        let id = read(&text).pop().unwrap_or_else(|| panic!("{name}")).session(tick);
        let is_id = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(id.len() <= 64 && id.chars().all(is_id), "{id}");
        assert!(ids.insert(id.clone()), "{name} has the id {id} of another");
    }
}

#[test]
fn ticks_follow_the_fields() {
    let after = "2026-11-17T06:30:15Z";
    let cases = [
        ("0 7 * * 1-5", vec!["Tue 17 Nov 07:00:00 +00:00", "Wed 18 Nov 07:00:00 +00:00"]),
        ("*/20 * * * *", vec!["Tue 17 Nov 06:40:00 +00:00", "Tue 17 Nov 07:00:00 +00:00"]),
        ("50/5 23 31 12 *", vec!["Thu 31 Dec 23:50:00 +00:00", "Thu 31 Dec 23:55:00 +00:00"]),
        ("0 0 * * sun", vec!["Sun 22 Nov 00:00:00 +00:00", "Sun 29 Nov 00:00:00 +00:00"]),
        ("0 0 * * 7", vec!["Sun 22 Nov 00:00:00 +00:00"]),
        (
            "0 0 * * fri-sun",
            vec!["Fri 20 Nov 00:00:00 +00:00", "Sat 21 Nov 00:00:00 +00:00", "Sun 22 Nov 00:00:00 +00:00"],
        ),
        // Either the day or the weekday is enough.
        (
            "0 0 19 * fri",
            vec!["Thu 19 Nov 00:00:00 +00:00", "Fri 20 Nov 00:00:00 +00:00", "Fri 27 Nov 00:00:00 +00:00"],
        ),
        ("0 12 29 feb *", vec!["Tue 29 Feb 12:00:00 +00:00", "Sun 29 Feb 12:00:00 +00:00"]),
        ("*/30 * * * * *", vec!["Tue 17 Nov 06:30:30 +00:00", "Tue 17 Nov 06:31:00 +00:00"]),
        (
            "5,10 0 7 * * *",
            vec!["Tue 17 Nov 07:00:05 +00:00", "Tue 17 Nov 07:00:10 +00:00", "Wed 18 Nov 07:00:05 +00:00"],
        ),
        ("@hourly", vec!["Tue 17 Nov 07:00:00 +00:00"]),
        ("@yearly", vec!["Fri 01 Jan 00:00:00 +00:00"]),
    ];
    for (at, expected) in cases {
        assert_eq!(ticks(at, "UTC", after, expected.len()), expected, "{at}");
    }
}

/// On the last Sunday of March, clocks go from 2:00 to 3:00.
#[test]
fn a_time_that_clocks_skip_fires_once() {
    let after = "2026-03-28T12:00:00Z";
    let zone = "Europe/Zurich";
    let daily = ["Sun 29 Mar 03:30:00 +02:00", "Mon 30 Mar 02:30:00 +02:00"];
    assert_eq!(ticks("30 2 * * *", zone, after, 2), daily);
    // Both times are the same moment.
    let both = ["Sun 29 Mar 03:30:00 +02:00", "Mon 30 Mar 02:30:00 +02:00", "Mon 30 Mar 03:30:00 +02:00"];
    assert_eq!(ticks("30 2,3 * * *", zone, after, 3), both);
    // Every hour follows the real time.
    let hourly = ["Sun 29 Mar 01:30:00 +01:00", "Sun 29 Mar 03:30:00 +02:00", "Sun 29 Mar 04:30:00 +02:00"];
    assert_eq!(ticks("30 * * * *", zone, "2026-03-29T00:00:00Z", 3), hourly);
    // Seen from between the two times, it still comes.
    assert_eq!(ticks("30 2 * * *", zone, "2026-03-29T01:10:00Z", 1), ["Sun 29 Mar 03:30:00 +02:00"]);
}

/// On the last Sunday of October, clocks go from 3:00 back to 2:00.
#[test]
fn a_time_that_clocks_show_twice_fires_once() {
    let zone = "Europe/Zurich";
    let daily = ["Sun 25 Oct 02:30:00 +02:00", "Mon 26 Oct 02:30:00 +01:00"];
    assert_eq!(ticks("30 2 * * *", zone, "2026-10-24T12:00:00Z", 2), daily);
    for after in ["2026-10-25T00:30:00Z", "2026-10-25T00:45:00Z", "2026-10-25T01:15:00Z", "2026-10-25T01:30:00Z"] {
        assert_eq!(ticks("30 2 * * *", zone, after, 1), ["Mon 26 Oct 02:30:00 +01:00"], "{after}");
    }
    let hourly = [
        "Sun 25 Oct 01:30:00 +02:00",
        "Sun 25 Oct 02:30:00 +02:00",
        "Sun 25 Oct 02:30:00 +01:00",
        "Sun 25 Oct 03:30:00 +01:00",
    ];
    assert_eq!(ticks("30 * * * *", zone, "2026-10-24T23:00:00Z", 4), hourly);
}

/// Lord Howe changes its clocks by half an hour, and Samoa left out a whole day.
#[test]
fn odd_changes_of_clocks() {
    assert_eq!(ticks("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", 1), ["Sun 04 Oct 02:45:00 +11:00"]);
    assert_eq!(
        ticks("45 1 * * *", "Australia/Lord_Howe", "2026-04-03T20:00:00Z", 2),
        ["Sun 05 Apr 01:45:00 +11:00", "Mon 06 Apr 01:45:00 +10:30"]
    );
    let skipped = ticks("0 12 30 12 *", "Pacific/Apia", "2011-12-29T00:00:00Z", 1);
    assert_eq!(skipped, ["Sat 31 Dec 12:00:00 +14:00"]);
}

#[test]
fn only_the_last_missed_tick_is_caught_up_with() {
    let hourly = schedule("0 * * * *", "UTC");
    let missed = |now: &str| hourly.missed(ms(now)).map(|tick| tick.to_string());
    assert_eq!(missed("2026-11-17T10:59:59Z").as_deref(), Some("2026-11-17T10:00:00Z"));
    assert_eq!(missed("2026-11-17T11:00:00Z").as_deref(), Some("2026-11-17T11:00:00Z"));
    let daily = schedule("0 7 * * *", "UTC");
    assert_eq!(daily.missed(ms("2026-11-17T08:00:01Z")), None);
    assert_eq!(daily.previous(ms("2026-11-17T06:59:59Z")).unwrap().to_string(), "2026-11-16T07:00:00Z");
}

#[test]
fn mistakes_are_marked_where_they_are() {
    let cases = [
        ("", 0..0, "the time is empty", "write `minute hour day month weekday`"),
        ("0 7 * *", 0..7, "the time has 4 fields, but needs 5 or 6", "such as `0 7 * * 1-5`"),
        ("0 0 7 * * * 2026", 12..16, "the time has 7 fields, but needs 5 or 6", ""),
        ("60 7 * * *", 0..2, "the minute cannot be 60", "the minute is 0 to 59"),
        ("0  24 * * *", 3..5, "the hour cannot be 24", "the hour is 0 to 23"),
        ("0 7 0 * *", 4..5, "the day cannot be 0", "the day is 1 to 31"),
        ("0 7 * 13 *", 6..8, "the month cannot be 13", "1 to 12 or jan to dec"),
        ("0 7 * * monday", 8..14, "`monday` is not a weekday", "did you mean `mon`?"),
        ("0 7 * * mno", 8..11, "`mno` is not a weekday", "did you mean `mon`?"),
        ("0 7 * * 5-1", 8..11, "the range of the weekday ends before it starts", "write two ranges: `5-7,0-1`"),
        ("0 7 1,,2 * *", 6..6, "a number of the day is missing", ""),
        ("*/0 * * * *", 2..3, "`0` is not a step of the minute", ""),
        ("*/5/5 * * * *", 0..5, "the minute has more than one step", ""),
        ("1-2-3 * * * *", 0..5, "`1-2-3` is not a range of the minute", ""),
        ("? * * * *", 0..1, "`?` is not a minute", "`*` stands for all"),
        ("@dayly", 0..6, "`@dayly` is not the name of a time", "did you mean `@daily`?"),
    ];
    for (text, span, message, hint) in cases {
        let error = text.parse::<Cron>().unwrap_err();
        assert_eq!((error.span.start..error.span.end, error.message.as_str()), (span, message), "{text}");
        assert!(error.hint.contains(hint), "{text}: {}", error.hint);
    }
}

/// Returns whether an expression with seconds applies to a local time, by reading it naively.
fn applies(at: &str, local: &Zoned) -> bool {
    let fields: Vec<_> = at.split(' ').collect();
    let allows = |field: &str, value: i8| {
        field.split(',').any(|part| {
            let (range, step) = part.split_once('/').unwrap_or((part, "1"));
            let (first, last) = match range.split_once('-') {
                Some((first, last)) => (first.parse().unwrap(), last.parse().unwrap()),
                None if range == "*" => (0, 59),
                None => (range.parse().unwrap(), range.parse::<i8>().unwrap()),
            };
            // Steps of days and months start with 1.
            let start = if range == "*" && value > 0 && step != "1" && field == fields[3] { 1 } else { first };
            (first..=last).contains(&value) && (value - start) % step.parse::<i8>().unwrap() == 0
        })
    };
    let weekday = local.weekday().to_sunday_zero_offset();
    let by_day = allows(fields[3], local.day());
    let by_weekday = allows(fields[5], weekday);
    allows(fields[0], local.second())
        && allows(fields[1], local.minute())
        && allows(fields[2], local.hour())
        && allows(fields[4], local.month())
        && if fields[3] == "*" || fields[5] == "*" { by_day && by_weekday } else { by_day || by_weekday }
}

fn field(min: i8, max: i8) -> impl Strategy<Value = String> {
    let number = min..=max;
    prop_oneof![
        3 => Just("*".to_owned()),
        2 => number.clone().prop_map(|number| number.to_string()),
        1 => (number.clone(), number.clone()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (number.clone(), number).prop_map(|(a, b)| format!("{a},{b}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Away from changes of clocks, ticks are exactly the seconds to which the expression applies.
    #[test]
    fn no_tick_is_left_out_or_added(
        minute in field(0, 59), hour in field(0, 23), day in field(1, 31), weekday in field(0, 6),
        start in 1_770_000_000_i64..1_771_000_000,
    ) {
        let at = format!("0 {minute} {hour} {day} * {weekday}");
        let schedule = schedule(&at, "Asia/Kolkata");
        let zone = TimeZone::get("Asia/Kolkata").unwrap();
        let from = Timestamp::from_second(start).unwrap();
        let found = schedule.next(u64::try_from(start).unwrap() * 1000);
        let mut moment = from.checked_add(SignedDuration::from_secs(60 - start % 60)).unwrap();
        let mut expected = None;
        for _ in 0..3 * 24 * 60 {
            if applies(&at, &moment.to_zoned(zone.clone())) {
                expected = Some(moment);
                break;
            }
            moment = moment.checked_add(SignedDuration::from_secs(60)).unwrap();
        }
        match expected {
            Some(expected) => prop_assert_eq!(found.unwrap().to_string(), expected.to_string(), "{}", at),
            None => prop_assert!(found.is_none_or(|found| found.as_ms() > u64::try_from(moment.as_millisecond() - 60_000).unwrap())),
        }
    }

    /// Wherever clocks change, ticks increase, and each one is found from everywhere before it.
    #[test]
    fn ticks_are_in_order(
        minute in field(0, 59), hour in field(0, 23),
        zone in prop::sample::select(vec!["Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]),
        start in 1_760_000_000_u64..1_800_000_000, shift in 0_u64..200_000,
    ) {
        let schedule = schedule(&format!("{minute} {hour} * * *"), zone);
        let start_ms = start * 1000;
        let first = schedule.next(start_ms).unwrap();
        let second = schedule.next(first.as_ms()).unwrap();
        prop_assert!(start_ms < first.as_ms() && first < second);
        prop_assert_eq!(schedule.previous(second.as_ms() - 1), Some(first));
        let between = start_ms + (shift * 1000).min(first.as_ms() - start_ms - 1);
        prop_assert_eq!(schedule.next(between), Some(first));
    }
}
