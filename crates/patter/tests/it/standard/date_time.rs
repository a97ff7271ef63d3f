//! The toolbox `dateTime`.

use super::{call_in, check};
use patter::tool::{SharedState, ToolContext, standard::Clock};
use serde_json::{Value as Json, json};
use std::time::{Duration, SystemTime};

fn moment(date_time: &str, time_zone: &str, weekday: &str, unix_seconds: i64) -> Json {
    json!({ "dateTime": date_time, "timeZone": time_zone, "weekday": weekday, "unixSeconds": unix_seconds })
}

#[test]
fn now_uses_the_clock_of_the_context() {
    let clock = Clock::new(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1_715_956_200));
    let context = ToolContext::new("1").with_state(SharedState::default().with(clock));
    let now = |arguments: Json| call_in(&context, "dateTime/now", arguments);
    assert_eq!(now(json!({})).unwrap(), moment("2024-05-17T14:30:00+00:00", "UTC", "Friday", 1_715_956_200));
    let expected = moment("2024-05-17T20:15:00+05:45", "Asia/Kathmandu", "Friday", 1_715_956_200);
    assert_eq!(now(json!({ "timeZone": "Asia/Kathmandu" })).unwrap(), expected);
    let expected = moment("2024-05-17T09:30:00-05:00", "-05:00", "Friday", 1_715_956_200);
    assert_eq!(now(json!({ "timeZone": "-05:00" })).unwrap(), expected);
    let message = now(json!({ "timeZone": "Europe/Berln" })).unwrap_err();
    assert_eq!(message, "unknown time zone `Europe/Berln`; did you mean `Europe/Berlin`?");
    let message = now(json!({ "timeZone": "Middle Earth" })).unwrap_err();
    assert!(message.ends_with("use a name such as `Europe/Berlin`, or an offset such as `+02:00`"), "{message}");
    let system = call_in(&ToolContext::new("1"), "dateTime/now", json!({})).unwrap();
    assert!(system["unixSeconds"].as_i64().unwrap() > 1_715_956_200);
}

#[test]
fn parse_accepts_iso_8601() {
    let parse = |text: &str, zone: Option<&str>, expected: Json| {
        let mut arguments = json!({ "text": text });
        if let Some(zone) = zone {
            arguments["timeZone"] = json!(zone);
        }
        check("dateTime/parse", arguments, expected);
    };
    let seconds = 1_715_956_200;
    parse("2024-05-17T14:30:00Z", None, moment("2024-05-17T14:30:00+00:00", "UTC", "Friday", seconds));
    parse("2024-05-17 14:30Z", None, moment("2024-05-17T14:30:00+00:00", "UTC", "Friday", seconds));
    parse("2024-05-17T14:30", None, moment("2024-05-17T14:30:00+00:00", "UTC", "Friday", seconds));
    parse("2024-05-17", None, moment("2024-05-17T00:00:00+00:00", "UTC", "Friday", seconds - 52_200));
    parse("2024-05-17T16:30:00+02:00", None, moment("2024-05-17T16:30:00+02:00", "+02:00", "Friday", seconds));
    parse("2024-05-17T14:30:00.250Z", None, moment("2024-05-17T14:30:00.25+00:00", "UTC", "Friday", seconds));
    let berlin = moment("2024-05-17T16:30:00+02:00", "Europe/Berlin", "Friday", seconds);
    parse("2024-05-17T16:30:00+02:00[Europe/Berlin]", None, berlin.clone());
    parse("2024-05-17T16:30:00[Europe/Berlin]", None, berlin.clone());
    parse("2024-05-17T16:30:00", Some("Europe/Berlin"), berlin.clone());
    parse("2024-05-17T14:30:00Z", Some("Europe/Berlin"), berlin);
    parse(
        "2024-05-17T16:30:00[Europe/Berlin]",
        Some("UTC"),
        moment("2024-05-17T14:30:00+00:00", "UTC", "Friday", seconds),
    );
    parse(
        "2024-05-17T16:30:00+05:00[Europe/Berlin]",
        None,
        json!("!is inconsistent: the offset of the time zone was +02:00 at that time"),
    );
    parse("tomorrow", None, json!("!`tomorrow` is not a valid date and time; use ISO 8601"));
    parse("2024-02-30", None, json!("!is not a valid date and time"));
    parse(&"2".repeat(201), None, json!("!is not a valid date and time"));
}

#[test]
fn parse_reports_clock_changes() {
    let parse = |text: &str, expected: Json| {
        check("dateTime/parse", json!({ "text": text, "timeZone": "Europe/Berlin" }), expected);
    };
    parse(
        "2024-03-31T02:30:00",
        json!(
            "!`2024-03-31T02:30:00` does not exist in Europe/Berlin: clocks were set forward from offset +01:00 to +02:00"
        ),
    );
    parse(
        "2024-10-27T02:30:00",
        json!(
            "!is ambiguous in Europe/Berlin, since clocks were set back: use `2024-10-27T02:30:00+02:00` for the first occurrence or `2024-10-27T02:30:00+01:00` for the second"
        ),
    );
    parse("2024-10-27T02:30:00+02", moment("2024-10-27T02:30:00+02:00", "Europe/Berlin", "Sunday", 1_729_989_000));
    parse("2024-10-27T02:30:00+01", moment("2024-10-27T02:30:00+01:00", "Europe/Berlin", "Sunday", 1_729_992_600));
}

#[test]
fn parse_accepts_formats() {
    let parse = |text: &str, format: &str, expected: Json| {
        check("dateTime/parse", json!({ "text": text, "format": format }), expected);
    };
    parse("17.05.2024 14:30", "%d.%m.%Y %H:%M", moment("2024-05-17T14:30:00+00:00", "UTC", "Friday", 1_715_956_200));
    parse("May 17, 2024", "%B %d, %Y", moment("2024-05-17T00:00:00+00:00", "UTC", "Friday", 1_715_904_000));
    parse(
        "2024-05-17 16:30 +0200",
        "%Y-%m-%d %H:%M %z",
        moment("2024-05-17T16:30:00+02:00", "+02:00", "Friday", 1_715_956_200),
    );
    parse("1715956200", "%s", moment("2024-05-17T14:30:00+00:00", "UTC", "Friday", 1_715_956_200));
    parse("17.05.", "%d.%m.", json!("!the format `%d.%m.` has no complete date"));
    parse("17/05/2024", "%d.%m.%Y", json!("!`17/05/2024` does not match the format `%d.%m.%Y`"));
    let arguments = json!({ "text": "31.03.2024 02:30", "format": "%d.%m.%Y %H:%M", "timeZone": "Europe/Berlin" });
    check("dateTime/parse", arguments, json!("!does not exist in Europe/Berlin"));
}

#[test]
fn format_supports_strftime() {
    let format = |arguments: Json, expected: Json| check("dateTime/format", arguments, expected);
    let at = "2024-05-17T14:30:00Z";
    format(json!({ "dateTime": at, "format": "%A, %d %B %Y at %H:%M" }), json!("Friday, 17 May 2024 at 14:30"));
    format(json!({ "dateTime": at, "format": "%H:%M %Z", "timeZone": "Europe/Berlin" }), json!("16:30 CEST"));
    format(json!({ "dateTime": at, "format": "week %V" }), json!("week 20"));
    format(json!({ "dateTime": at, "format": "%" }), json!("!invalid format `%`"));
    format(json!({ "dateTime": at, "format": "x".repeat(201) }), json!("!at most 200 are allowed"));
}

#[test]
fn add_uses_calendar_days() {
    let add = |date_time: &str, duration: &str, expected: &str| {
        let arguments = json!({ "dateTime": date_time, "duration": duration, "timeZone": "Europe/Berlin" });
        match super::call("dateTime/add", arguments) {
            Ok(moment) => assert_eq!(moment["dateTime"], expected, "{date_time} + {duration}"),
            Err(message) => assert!(expected.strip_prefix('!').is_some_and(|part| message.contains(part)), "{message}"),
        }
    };
    add("2024-01-31T12:00", "P1M", "2024-02-29T12:00:00+01:00");
    add("2024-05-17T12:00", "-P1Y", "2023-05-17T12:00:00+02:00");
    add("2024-05-17T12:00", "1 week 2 days", "2024-05-26T12:00:00+02:00");
    // A day is not always 24 hours.
    add("2024-03-30T12:00", "P1D", "2024-03-31T12:00:00+02:00");
    add("2024-03-30T12:00", "PT24H", "2024-03-31T13:00:00+02:00");
    // A time in the skipped hour moves to after it.
    add("2024-03-30T02:30", "P1D", "2024-03-31T03:30:00+02:00");
    add("2024-05-17T12:00", "a while", "!`a while` is not a valid duration; use ISO 8601 such as `P1M2DT3H`");
    add("2024-05-17T12:00", "P9000Y", "!cannot add `P9000Y`");
    add("noon", "P1D", "!`noon` is not a valid date and time");
}

#[test]
fn difference_uses_calendar_days() {
    let difference = |arguments: Json, duration: &str, seconds: f64| {
        check("dateTime/difference", arguments, json!({ "duration": duration, "seconds": seconds }));
    };
    difference(json!({ "from": "2024-05-17", "to": "2024-05-20T06:00" }), "P3DT6H", 280_800.0);
    difference(json!({ "from": "2024-05-20", "to": "2024-05-17" }), "-P3D", -259_200.0);
    difference(json!({ "from": "2024-01-31", "to": "2025-03-01", "largestUnit": "year" }), "P1Y1M1D", 34_128_000.0);
    difference(json!({ "from": "2024-05-17", "to": "2024-05-18", "largestUnit": "hour" }), "PT24H", 86_400.0);
    let zone = "Europe/Berlin";
    difference(json!({ "from": "2024-03-31", "to": "2024-04-01", "timeZone": zone }), "P1D", 82_800.0);
    difference(
        json!({ "from": "2024-03-31", "to": "2024-04-01", "timeZone": zone, "largestUnit": "hour" }),
        "PT23H",
        82_800.0,
    );
    difference(json!({ "from": "2024-05-17T12:00+02:00", "to": "2024-05-17T12:00Z" }), "PT2H", 7_200.0);
}

#[test]
fn convert_changes_the_time_zone() {
    let convert = |arguments: Json, expected: Json| check("dateTime/convert", arguments, expected);
    let tokyo = moment("2024-05-17T23:30:00+09:00", "Asia/Tokyo", "Friday", 1_715_956_200);
    convert(json!({ "dateTime": "2024-05-17T14:30:00Z", "to": "Asia/Tokyo" }), tokyo.clone());
    convert(json!({ "dateTime": "2024-05-17T16:30:00", "from": "Europe/Berlin", "to": "Asia/Tokyo" }), tokyo);
    convert(json!({ "dateTime": "2024-05-17T14:30:00Z", "to": "Mars" }), json!("!unknown time zone `Mars`"));
}
