//! What headers say about another try.

use patter_core::wire::{Verdict, retry_after};
use std::time::{Duration, SystemTime};

#[test]
fn headers_are_read_in_order() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 - 10);
    let ms = |after: u64| Some(Duration::from_millis(after));
    type Headers = &'static [(&'static str, &'static str)];
    let cases: [(Headers, Verdict, Option<Duration>); 15] = [
        (&[], Verdict::Unsaid, None),
        (&[("x-should-retry", "true")], Verdict::Yes, None),
        (&[("x-should-retry", "false"), ("retry-after", "2")], Verdict::No, ms(2000)),
        (&[("x-should-retry", "maybe")], Verdict::Unsaid, None),
        (&[("retry-after-ms", "250"), ("retry-after", "9")], Verdict::Unsaid, ms(250)),
        (&[("retry-after-ms", "soon"), ("retry-after", "9")], Verdict::Unsaid, ms(9000)),
        (&[("retry-after", " 0.5 ")], Verdict::Unsaid, ms(500)),
        (&[("retry-after", "-1")], Verdict::Unsaid, None),
        (&[("retry-after", "NaN")], Verdict::Unsaid, None),
        (&[("retry-after", "1e99")], Verdict::Unsaid, None),
        (&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], Verdict::Unsaid, ms(10_000)),
        (&[("retry-after", "Sunday, 06-Nov-94 08:49:37 GMT")], Verdict::Unsaid, ms(10_000)),
        (&[("retry-after", "Sun Nov  6 08:49:37 1994")], Verdict::Unsaid, ms(10_000)),
        (&[("retry-after", "Sat, 05 Nov 1994 08:49:37 GMT")], Verdict::Unsaid, ms(0)),
        (&[("retry-after", "Sun, 99 Nov 1994 08:49:37 GMT")], Verdict::Unsaid, None),
    ];
    for (headers, verdict, after) in cases {
        let find = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let retry = retry_after(find, now);
        assert_eq!((retry.verdict, retry.after), (verdict, after), "{headers:?}");
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
        let retry = retry_after(|name| (name == "retry-after").then_some(date), SystemTime::UNIX_EPOCH);
        assert_eq!(retry.after, Some(Duration::from_secs(seconds)), "{date}");
    }
    for date in ["Wed, 31 Dec 1969 00:00:00 GMT", "Foo, 01 Bar 2000 00:00:00 GMT", "Sat, 01 Jan 2000 61:00:00 GMT"] {
        let retry = retry_after(|name| (name == "retry-after").then_some(date), SystemTime::UNIX_EPOCH);
        assert_eq!(retry.after, None, "{date}");
    }
}
