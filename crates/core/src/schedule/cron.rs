//! Cron expressions: five fields, or six with seconds.

use crate::text::nearest;
use patter_gram::Span;
use std::fmt;
use thiserror::Error;

/// The months, as expressions may name them.
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// The days of a week, as expressions may name them.
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// Expressions with a name.
const NAMED: [(&str, &str); 6] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
];
/// The most days that a month has, from January on. February has 29 in some years.
const DAYS: [u8; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// A cron expression: `minute hour day month weekday`, with seconds as an optional first field.
///
/// A field is `*`, a number, a range `1-5`, a list `1,15` or steps such as `*/10` and `8-18/2`. Months and weekdays may be
/// named; weekdays are counted from Sunday, which is 0 or 7. If both the day and the weekday are restricted, either of them is
/// enough, as in other programs. `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly` are short forms.
///
/// ```
/// use patter_core::schedule::Cron;
/// let cron: Cron = "0 7 * * mon-fri".parse().unwrap();
/// assert_eq!(cron.to_string(), "0 7 * * mon-fri");
/// let error = "0 25 * * *".parse::<Cron>().unwrap_err();
/// assert_eq!(error.to_string(), "the hour cannot be 25");
/// assert_eq!((error.span.start, error.span.end), (2, 4));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    pub(super) seconds: Choice,
    pub(super) minutes: Choice,
    pub(super) hours: Choice,
    days: Choice,
    months: Choice,
    weekdays: Choice,
}

/// An error in a cron expression.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct CronError {
    /// The place in the expression.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub hint: String,
}

/// The numbers that a field allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    /// The bit of each number is set.
    bits: u64,
    /// Whether the field is `*`.
    pub(super) is_any: bool,
}

impl Choice {
    pub(super) fn has(self, number: i8) -> bool {
        u32::try_from(number).is_ok_and(|number| self.bits.checked_shr(number).unwrap_or(0) & 1 == 1)
    }

    /// Returns the smallest number from one on.
    pub(super) fn from(self, number: i8) -> Option<i8> {
        (number..=59).find(|number| self.has(*number))
    }
}

/// A field of an expression.
struct Field {
    noun: &'static str,
    min: u8,
    max: u8,
    names: &'static [&'static str],
}

const SECOND: Field = Field { noun: "second", min: 0, max: 59, names: &[] };
const MINUTE: Field = Field { noun: "minute", min: 0, max: 59, names: &[] };
const HOUR: Field = Field { noun: "hour", min: 0, max: 23, names: &[] };
const DAY: Field = Field { noun: "day", min: 1, max: 31, names: &[] };
const MONTH: Field = Field { noun: "month", min: 1, max: 12, names: &MONTHS };
/// Sunday is 0, and 7 too.
const WEEKDAY: Field = Field { noun: "weekday", min: 0, max: 7, names: &WEEKDAYS };

impl std::str::FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        if text.trim_start().starts_with('@') {
            return named(text);
        }
        let fields = words(text);
        let (seconds, rest) = match fields.as_slice() {
            [seconds, rest @ ..] if rest.len() == 5 => (Some(*seconds), rest),
            rest => (None, rest),
        };
        let [minutes, hours, days, months, weekdays] = *rest else { return Err(wrong_number(text, &fields)) };
        let only_zero = Choice { bits: 1, is_any: false };
        let mut weekdays = WEEKDAY.parse(weekdays)?;
        if weekdays.has(7) {
            weekdays.bits |= 1;
        }
        Ok(Self {
            text: text.trim().to_owned(),
            seconds: seconds.map_or(Ok(only_zero), |field| SECOND.parse(field))?,
            minutes: MINUTE.parse(minutes)?,
            hours: HOUR.parse(hours)?,
            days: DAY.parse(days)?,
            months: MONTH.parse(months)?,
            weekdays,
        })
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Cron {
    /// Returns whether there is a day on which it applies: the 30th of February does not come.
    pub fn can_fire(&self) -> bool {
        let is_possible = |(month, days): (i8, u8)| {
            self.months.has(month) && (1..=days).any(|day| self.days.has(i8::try_from(day).unwrap_or_default()))
        };
        // With a weekday, the day is only one of two possibilities.
        !self.weekdays.is_any || (1..).zip(DAYS).any(is_possible)
    }

    /// Returns whether it applies on a day. Weekdays are counted from Sunday.
    pub(super) fn has_day(&self, month: i8, day: i8, weekday: i8) -> bool {
        let by_day = self.days.has(day);
        let by_weekday = self.weekdays.has(weekday);
        self.months.has(month)
            && match (self.days.is_any, self.weekdays.is_any) {
                (false, false) => by_day || by_weekday,
                _ => by_day && by_weekday,
            }
    }
}

/// A part of an expression, with where it starts.
type Word<'t> = (usize, &'t str);

/// Splits a text at white space.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut start = 0;
    let mut words = Vec::new();
    for part in text.split_inclusive(char::is_whitespace) {
        let word = part.trim_end();
        if !word.is_empty() {
            words.push((start, word));
        }
        start += part.len();
    }
    words
}

/// Splits a part at a character.
fn split(word: Word<'_>, at: char) -> impl Iterator<Item = Word<'_>> {
    let (mut start, text) = word;
    text.split(at).map(move |part| {
        let here = start;
        start += part.len() + at.len_utf8();
        (here, part)
    })
}

fn span_of((start, text): Word<'_>) -> Span {
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Span::new(offset(start), offset(start + text.len()))
}

fn named(text: &str) -> Result<Cron, CronError> {
    let name = text.trim().to_lowercase();
    let known = NAMED.iter().find(|(known, _)| *known == name || (name == "@annually" && *known == "@yearly"));
    match known {
        Some((_, fields)) => Ok(Cron { text: text.trim().to_owned(), ..fields.parse()? }),
        None => {
            let names = NAMED.iter().map(|(name, _)| *name);
            let hint = match nearest(&name, names.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the names are {}", names.collect::<Vec<_>>().join(", ")),
            };
            let span = words(text).first().map_or(Span::at(0), |word| span_of(*word));
            Err(CronError { span, message: format!("`{}` is not the name of a time", text.trim()), hint })
        }
    }
}

fn wrong_number(text: &str, fields: &[Word<'_>]) -> CronError {
    let message = match fields.len() {
        0 => "the time is empty".to_owned(),
        1 => "the time has 1 field, but needs 5 or 6".to_owned(),
        count => format!("the time has {count} fields, but needs 5 or 6"),
    };
    let hint = "write `minute hour day month weekday`, such as `0 7 * * 1-5` for 7:00 from Monday to Friday; seconds can \
                come first";
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    // What is too much, or everything.
    let start = fields.get(6).map_or(0, |(start, _)| *start);
    CronError { span: Span::new(offset(start), offset(text.len())), message, hint: hint.to_owned() }
}

impl Field {
    fn parse(&self, word: Word<'_>) -> Result<Choice, CronError> {
        let mut bits = 0;
        for part in split(word, ',') {
            bits |= self.parse_part(part)?;
        }
        Ok(Choice { bits, is_any: word.1 == "*" })
    }

    /// Parses `*`, a number or a range, with or without steps.
    fn parse_part(&self, part: Word<'_>) -> Result<u64, CronError> {
        let mut pieces = split(part, '/');
        let range = pieces.next().unwrap_or(part);
        let step = pieces.next();
        if pieces.next().is_some() {
            return Err(self.error(part, format!("the {} has more than one step", self.noun)));
        }
        let (first, last) = self.parse_range(range, step.is_some())?;
        let step = match step {
            None => 1,
            Some(step) => match step.1.parse::<u8>() {
                Ok(number @ 1..) => usize::from(number),
                _ => return Err(self.error(step, format!("`{}` is not a step of the {}", step.1, self.noun))),
            },
        };
        Ok((first..=last).step_by(step).fold(0, |bits, number| bits | 1 << number))
    }

    fn parse_range(&self, range: Word<'_>, has_step: bool) -> Result<(u8, u8), CronError> {
        if range.1 == "*" {
            // 7 means Sunday, as 0 does.
            let max = if self.max == 7 { 6 } else { self.max };
            return Ok((self.min, max));
        }
        let mut ends = split(range, '-');
        let first = self.parse_number(ends.next().unwrap_or(range))?;
        let last = match ends.next() {
            Some(last) => self.parse_number(last)?,
            None if has_step => self.max,
            None => first,
        };
        if ends.next().is_some() {
            return Err(self.error(range, format!("`{}` is not a range of the {}", range.1, self.noun)));
        }
        // From Friday to Sunday.
        let last = if self.max == 7 && last == 0 && first > 0 { 7 } else { last };
        match first <= last {
            true => Ok((first, last)),
            false => {
                let message = format!("the range of the {} ends before it starts", self.noun);
                let hint = format!("write two ranges: `{first}-{},{}-{last}`", self.max, self.min);
                Err(CronError { span: span_of(range), message, hint })
            }
        }
    }

    fn parse_number(&self, word: Word<'_>) -> Result<u8, CronError> {
        let (_, text) = word;
        let name = text.to_lowercase();
        if let Some(index) = self.names.iter().position(|known| *known == name) {
            return Ok(u8::try_from(index).unwrap_or_default() + self.min);
        }
        if text.is_empty() {
            return Err(self.error(word, format!("a number of the {} is missing", self.noun)));
        }
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            let mut error = self.error(word, format!("`{text}` is not a {}", self.noun));
            let near = self.names.iter().find(|known| name.starts_with(*known)).copied();
            if let Some(near) = near.or_else(|| nearest(&name, self.names.iter().copied())) {
                error.hint = format!("did you mean `{near}`?");
            }
            return Err(error);
        }
        match text.parse::<u8>() {
            Ok(number) if (self.min..=self.max).contains(&number) => Ok(number),
            _ => Err(self.error(word, format!("the {} cannot be {text}", self.noun))),
        }
    }

    fn error(&self, word: Word<'_>, message: String) -> CronError {
        let names = match (self.names.first(), self.names.last()) {
            (Some(first), Some(last)) => format!(" or {first} to {last}"),
            _ => String::new(),
        };
        let hint = format!(
            "the {} is {} to {}{names}; `*` stands for all, and `*/5` for every fifth",
            self.noun, self.min, self.max
        );
        CronError { span: span_of(word), message, hint }
    }
}
