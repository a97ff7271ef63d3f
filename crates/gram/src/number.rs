//! Exact numbers.

use crate::{Kind, Syntax};
use std::fmt;

/// A whole number of any size, exact.
///
/// Equality does not depend on the base. Beyond 128 bits, numbers written in hexadecimal or octal are stored in
/// hexadecimal and never equal a number written in decimal.
///
/// ```
/// use patter_gram::Integer;
/// assert_eq!(Integer::parse("0xFF"), Integer::parse("255"));
/// let big = "123456789012345678901234567890123456789012345678901234567890";
/// assert_eq!(Integer::parse(big).unwrap().to_string(), big);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Integer(Repr);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Repr {
    Small(i128),
    /// Canonical text of a number beyond 128 bits: decimal digits, or `0x` and hexadecimal digits.
    Big(Box<str>),
}

impl Integer {
    /// Parses an integer as written in gram: decimal, `0x` hexadecimal, or octal with a leading 0.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let (radix, digits) = match digits.strip_prefix("0x") {
            Some(digits) => (16, digits),
            None if digits.len() > 1 && digits.starts_with('0') => (8, digits),
            None => (10, digits),
        };
        if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
            return None;
        }
        if radix != 10 && negative {
            return None;
        }
        let signed = if negative { text } else { digits };
        if let Ok(small) = i128::from_str_radix(signed, radix) {
            return Some(Self(Repr::Small(small)));
        }
        let canonical = match radix {
            16 => format!("0x{}", digits.trim_start_matches('0').to_ascii_uppercase()),
            8 => octal_to_hexadecimal(digits),
            _ => text.to_owned(),
        };
        Some(Self(Repr::Big(canonical.into())))
    }

    /// Returns the number, if it fits in 64 bits.
    pub fn to_i64(&self) -> Option<i64> {
        self.to_i128().and_then(|small| i64::try_from(small).ok())
    }

    /// Returns the number, if it fits in 128 bits.
    pub fn to_i128(&self) -> Option<i128> {
        if let Repr::Small(small) = self.0 { Some(small) } else { None }
    }
}

impl From<i128> for Integer {
    fn from(small: i128) -> Self {
        Self(Repr::Small(small))
    }
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Small(small) => small.fmt(f),
            Repr::Big(text) => text.fmt(f),
        }
    }
}

fn octal_to_hexadecimal(digits: &str) -> String {
    let bits: Vec<bool> = digits
        .bytes()
        .flat_map(|digit| [2, 1, 0].map(|bit| (digit - b'0') >> bit & 1 == 1))
        .skip_while(|bit| !bit)
        .collect();
    let nibble = |bits: &[bool]| bits.iter().fold(0, |value, bit| value * 2 + u32::from(*bit));
    let (head, tail) = bits.split_at(bits.len() % 4);
    let nibbles = Some(head).filter(|head| !head.is_empty()).into_iter().chain(tail.chunks(4));
    let hexadecimal = nibbles.filter_map(|bits| char::from_digit(nibble(bits), 16));
    format!("0x{}", hexadecimal.collect::<String>().to_ascii_uppercase())
}

/// A decimal fraction, exact: `1.50` and `1.5` are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decimal(Box<str>);

impl Decimal {
    /// Parses a decimal as written in gram: `-?digits.digits`.
    ///
    /// ```
    /// use patter_gram::Decimal;
    /// assert_eq!(Decimal::parse("1.50"), Decimal::parse("1.5"));
    /// assert_eq!(Decimal::parse("1"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.')?;
        let whole_digits = whole.strip_prefix('-').unwrap_or(whole);
        let all_digits = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits(whole_digits) || !all_digits(fraction) {
            return None;
        }
        if whole_digits.len() > 1 && whole_digits.starts_with('0') {
            return None;
        }
        let fraction = match fraction.trim_end_matches('0') {
            "" => "0",
            fraction => fraction,
        };
        let is_zero = whole_digits == "0" && fraction == "0";
        let whole = if is_zero { whole_digits } else { whole };
        Some(Self(format!("{whole}.{fraction}").into()))
    }

    /// Converts a floating-point number; `None` if it is not finite.
    pub(crate) fn from_f64(float: f64) -> Option<Self> {
        let text = float.to_string();
        Self::parse(&if text.contains('.') { text } else { format!("{text}.0") })
    }

    /// Returns the canonical text: at least one digit after the point, no trailing zeros.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the nearest floating-point number.
    pub fn to_f64(&self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A number as the bound of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Number {
    /// A whole number.
    Integer(Integer),
    /// A decimal fraction.
    Decimal(Decimal),
    /// A whole number with a unit.
    Measurement {
        /// The number.
        amount: Integer,
        /// The unit.
        unit: String,
    },
}

impl Number {
    pub(crate) fn read(syntax: Syntax<'_>) -> Option<Number> {
        Self::parse(syntax.kind(), syntax.text())
    }

    pub(crate) fn parse(kind: Kind, text: &str) -> Option<Number> {
        Some(match kind {
            Kind::Integer | Kind::Hexadecimal | Kind::Octal => Number::Integer(Integer::parse(text)?),
            Kind::Decimal => Number::Decimal(Decimal::parse(text)?),
            Kind::Measurement => {
                let unit_start = text.find(|c: char| c.is_ascii_alphabetic())?;
                let (amount, unit) = text.split_at_checked(unit_start)?;
                Number::Measurement { amount: Integer::parse(amount)?, unit: unit.to_owned() }
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Integer(integer) => integer.fmt(f),
            Number::Decimal(decimal) => decimal.fmt(f),
            Number::Measurement { amount, unit } => write!(f, "{amount}{unit}"),
        }
    }
}
