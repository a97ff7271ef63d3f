//! Headers about retrying.

use patter_core::wire::{ShouldRetry, parse_retry_after, retry_advice};
use std::time::{Duration, SystemTime};

#[test]
fn headers_are_parsed_in_order() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 - 10);
    let ms = |after: u64| Some(Duration::from_millis(after));
    type Headers = &'static [(&'static str, &'static str)];
    let cases: [(Headers, ShouldRetry, Option<Duration>); 15] = [
        (&[], ShouldRetry::Unspecified, None),
        (&[("x-should-retry", "true")], ShouldRetry::Yes, None),
        (&[("x-should-retry", "false"), ("retry-after", "2")], ShouldRetry::No, ms(2000)),
        (&[("x-should-retry", "maybe")], ShouldRetry::Unspecified, None),
        (&[("retry-after-ms", "250"), ("retry-after", "9")], ShouldRetry::Unspecified, ms(250)),
        (&[("retry-after-ms", "soon"), ("retry-after", "9")], ShouldRetry::Unspecified, ms(9000)),
        (&[("retry-after", " 0.5 ")], ShouldRetry::Unspecified, ms(500)),
        (&[("retry-after", "-1")], ShouldRetry::Unspecified, None),
        (&[("retry-after", "NaN")], ShouldRetry::Unspecified, None),
        (&[("retry-after", "1e99")], ShouldRetry::Unspecified, None),
        (&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], ShouldRetry::Unspecified, ms(10_000)),
        (&[("retry-after", "Sunday, 06-Nov-94 08:49:37 GMT")], ShouldRetry::Unspecified, ms(10_000)),
        (&[("retry-after", "Sun Nov  6 08:49:37 1994")], ShouldRetry::Unspecified, ms(10_000)),
        (&[("retry-after", "Sat, 05 Nov 1994 08:49:37 GMT")], ShouldRetry::Unspecified, ms(0)),
        (&[("retry-after", "Sun, 99 Nov 1994 08:49:37 GMT")], ShouldRetry::Unspecified, None),
    ];
    for (headers, should_retry, delay) in cases {
        let find = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let advice = retry_advice(find, now);
        assert_eq!((advice.should_retry, advice.delay), (should_retry, delay), "{headers:?}");
    }
}

#[test]
fn dates_are_counted_from_the_epoch() {
    let cases = [
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400),
        ("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800),
        ("Fri, 31 Dec 2027 23:59:59 GMT", 1_830_297_599),
    ];
    for (date, seconds) in cases {
        let delay = parse_retry_after(date, SystemTime::UNIX_EPOCH);
        assert_eq!(delay, Some(Duration::from_secs(seconds)), "{date}");
    }
    for date in ["Wed, 31 Dec 1969 00:00:00 GMT", "Foo, 01 Bar 2000 00:00:00 GMT", "Sat, 01 Jan 2000 61:00:00 GMT"] {
        assert_eq!(parse_retry_after(date, SystemTime::UNIX_EPOCH), None, "{date}");
    }
}
