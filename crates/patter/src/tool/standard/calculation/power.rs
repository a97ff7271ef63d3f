//! Powers and roots.

use super::number::{Accuracy, ArithmeticError, MAX_BITS, Number, ROUNDED_DIGITS, from_positive_float, ten_to};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// The highest root that is computed to all digits. Higher roots are rare, and computed in floating point.
const MAX_ROOT: u32 = 16;

/// Returns a number to the power of another.
pub(super) fn power(base: &Number, exponent: &Number) -> Result<Number, ArithmeticError> {
    let accuracy = base.accuracy.min(exponent.accuracy);
    let degree = exponent.value.denom().to_u32().filter(|degree| *degree <= MAX_ROOT);
    let raised = integer_power(&base.value, exponent.value.numer());
    match degree {
        Some(1) => Number::new(raised?, accuracy),
        _ if base.value.is_negative() => {
            Err(ArithmeticError::Undefined("a negative number to a fractional power is not a real number"))
        }
        Some(degree) if raised.is_ok() => root(&Number::new(raised?, accuracy)?, degree),
        _ if base.value.is_zero() => raised.and_then(|zero| Number::new(zero, accuracy)),
        _ => {
            let float = |number: &Number| number.value.to_f64().ok_or(ArithmeticError::TooLarge);
            from_positive_float(float(base)?.powf(float(exponent)?))
        }
    }
}

/// Returns a number to an integer power, unless the result would be too large, which is checked in advance.
fn integer_power(base: &BigRational, exponent: &BigInt) -> Result<BigRational, ArithmeticError> {
    if exponent.is_zero() || base.is_one() {
        return Ok(BigRational::one());
    }
    if base.is_zero() {
        return if exponent.is_negative() { Err(ArithmeticError::DivisionByZero) } else { Ok(BigRational::zero()) };
    }
    let is_odd = exponent.bit(0);
    if base.abs().is_one() {
        return Ok(if is_odd { -BigRational::one() } else { BigRational::one() });
    }
    let times = exponent.abs().to_u32().ok_or(ArithmeticError::TooLarge)?;
    let bits = base.numer().bits().max(base.denom().bits()) - 1;
    if bits.checked_mul(u64::from(times)).is_none_or(|bits| bits > MAX_BITS) {
        return Err(ArithmeticError::TooLarge);
    }
    // Powers of coprime numbers are coprime.
    let numerator = base.numer().pow(times);
    let denominator = base.denom().pow(times);
    Ok(match (exponent.is_negative(), numerator.is_negative()) {
        (false, _) => BigRational::new_raw(numerator, denominator),
        (true, false) => BigRational::new_raw(denominator, numerator),
        (true, true) => BigRational::new_raw(-denominator, -numerator),
    })
}

/// Returns a root, which is exact if it is a fraction and rounded otherwise.
pub(super) fn root(number: &Number, degree: u32) -> Result<Number, ArithmeticError> {
    let value = &number.value;
    if value.is_negative() {
        return Err(ArithmeticError::Undefined("a negative number has no real root"));
    }
    let numerator = value.numer().nth_root(degree);
    let denominator = value.denom().nth_root(degree);
    if numerator.pow(degree) == *value.numer() && denominator.pow(degree) == *value.denom() {
        return Number::new(BigRational::new(numerator, denominator), number.accuracy);
    }
    // Enough places for all digits of the result to be correct, however small the number is.
    let zeros = value.denom().bits().saturating_sub(value.numer().bits()) * 30_103 / 100_000 / u64::from(degree);
    let places = u64::from(ROUNDED_DIGITS) + zeros + 2;
    let scale = ten_to(places * u64::from(degree))?;
    let digits = (value.numer() * scale / value.denom()).nth_root(degree);
    Number::new(BigRational::new(digits, ten_to(places)?), number.accuracy.min(Accuracy::Rounded))
}
