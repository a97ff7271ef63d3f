//! Decimal notation of numbers.

use super::number::{Accuracy, Number, significant};
use num_bigint::BigInt;
use num_traits::{One, Signed, Zero};

/// The number of decimal places that an exact number may have.
const MAX_PLACES: u64 = 1_000;

/// Returns a number in decimal notation, and whether that is exact.
pub(super) fn decimal(number: &Number) -> (String, bool) {
    if let (Accuracy::Exact, Some(places)) = (number.accuracy, places(number.value.denom())) {
        let digits = number.value.numer() * BigInt::from(10).pow(places) / number.value.denom();
        return (plain(&digits, i64::from(places)), true);
    }
    let digits = if number.accuracy == Accuracy::Float { 15 } else { 30 };
    let Ok((mut rounded, mut places)) = significant(&number.value, digits) else {
        return (number.value.to_string(), number.accuracy == Accuracy::Exact);
    };
    while !rounded.is_zero() && (&rounded % 10_u8).is_zero() {
        rounded /= 10;
        places -= 1;
    }
    let length = i64::try_from(rounded.abs().to_string().len()).unwrap_or_default();
    let exponent = length - 1 - places;
    let text = match exponent {
        -7..30 => plain(&rounded, places),
        _ => format!("{}e{exponent}", plain(&rounded, length - 1)),
    };
    (text, false)
}

/// Returns the number of decimal places of fractions with this denominator, if it is finite.
fn places(denominator: &BigInt) -> Option<u32> {
    let twos = denominator.trailing_zeros().unwrap_or_default();
    let mut rest = denominator >> twos;
    let mut fives = 0;
    while (&rest % 5_u8).is_zero() {
        rest /= 5;
        fives += 1;
    }
    let places = twos.max(fives);
    u32::try_from(places).ok().filter(|_| rest.is_one() && places <= MAX_PLACES)
}

/// Writes digits with a decimal point before the last `places` of them.
fn plain(digits: &BigInt, places: i64) -> String {
    let sign = if digits.is_negative() { "-" } else { "" };
    let digits = digits.abs().to_string();
    match usize::try_from(places) {
        Ok(0) => format!("{sign}{digits}"),
        Ok(places) => {
            let padded = format!("{digits:0>width$}", width = places + 1);
            let (whole, fraction) = padded.split_at(padded.len() - places);
            format!("{sign}{whole}.{fraction}")
        }
        Err(_) => format!("{sign}{digits}{}", "0".repeat(usize::try_from(places.unsigned_abs()).unwrap_or_default())),
    }
}
