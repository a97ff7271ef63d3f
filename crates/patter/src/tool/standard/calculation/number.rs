//! Numbers with their accuracy.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};
use thiserror::Error;

/// The size limit of a number in bits: almost five thousand digits.
pub(super) const MAX_BITS: u64 = 16_384;
/// The size limit of denominators and of the arguments of `gcd` and `lcm` in bits, since computing divisors is slow.
pub(super) const MAX_DENOMINATOR_BITS: u64 = 4_096;
/// The number of digits of a rounded number.
pub(super) const ROUNDED_DIGITS: u32 = 40;

/// A number.
#[derive(Debug, Clone)]
pub(super) struct Number {
    pub(super) value: BigRational,
    pub(super) accuracy: Accuracy,
}

/// The accuracy of a number, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Accuracy {
    /// Computed in floating point: 15 digits are correct.
    Float,
    /// Rounded: 30 digits are correct.
    Rounded,
    /// Exact.
    Exact,
}

/// An arithmetic error.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum ArithmeticError {
    #[error("division by zero")]
    DivisionByZero,
    #[error("the number is too large: at most 4900 digits are allowed, and 1200 in denominators, `gcd` and `lcm`")]
    TooLarge,
    #[error("the number is too small to be distinguished from zero")]
    TooSmall,
    #[error("{0}")]
    Undefined(&'static str),
}

use ArithmeticError::{DivisionByZero, TooLarge};

impl Number {
    /// Creates a number, unless it is too large. Inexact numbers are shortened.
    pub(super) fn new(value: BigRational, accuracy: Accuracy) -> Result<Self, ArithmeticError> {
        let value = match accuracy {
            Accuracy::Exact => value,
            Accuracy::Rounded | Accuracy::Float if value.numer().bits() + value.denom().bits() < 256 => value,
            Accuracy::Rounded | Accuracy::Float => {
                let (digits, places) = significant(&value, ROUNDED_DIGITS)?;
                scaled(digits, -places)?
            }
        };
        if value.numer().bits() > MAX_BITS || value.denom().bits() > MAX_DENOMINATOR_BITS {
            return Err(TooLarge);
        }
        Ok(Self { value, accuracy })
    }

    pub(super) fn exact(value: impl Into<BigInt>) -> Self {
        Self { value: BigRational::from_integer(value.into()), accuracy: Accuracy::Exact }
    }

    /// Parses `12`, `0.5` or `1.5e-3`.
    pub(super) fn parse(text: &str) -> Result<Self, ArithmeticError> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("0{whole}{fraction}");
        let exponent: i64 = exponent.parse().map_err(|_| TooLarge)?;
        let places = i64::try_from(fraction.len()).map_err(|_| TooLarge)?;
        let digits: BigInt = digits.parse().map_err(|_| ArithmeticError::Undefined("not a number"))?;
        Self::new(scaled(digits, exponent - places)?, Accuracy::Exact)
    }

    pub(super) fn add(&self, other: &Self) -> Result<Self, ArithmeticError> {
        self.combine(other, |a, b| a + b, |a, b| a + b)
    }

    pub(super) fn subtract(&self, other: &Self) -> Result<Self, ArithmeticError> {
        self.combine(other, |a, b| a - b, |a, b| a - b)
    }

    pub(super) fn multiply(&self, other: &Self) -> Result<Self, ArithmeticError> {
        self.combine(other, |a, b| a * b, |a, b| a * b)
    }

    pub(super) fn divide(&self, other: &Self) -> Result<Self, ArithmeticError> {
        if other.value.is_zero() {
            return Err(DivisionByZero);
        }
        Self::new(&self.value / &other.value, self.accuracy.min(other.accuracy))
    }

    /// Returns the remainder of a division, with the sign of the divisor.
    pub(super) fn remainder(&self, other: &Self) -> Result<Self, ArithmeticError> {
        let quotient = self.divide(other)?;
        let whole = Self { value: quotient.value.floor(), accuracy: quotient.accuracy };
        self.subtract(&whole.multiply(other)?)
    }

    pub(super) fn negate(self) -> Self {
        Self { value: -self.value, ..self }
    }

    /// Returns the factorial.
    pub(super) fn factorial(&self) -> Result<Self, ArithmeticError> {
        let count = self.integer().filter(|count| !count.is_negative());
        let count = count.ok_or(ArithmeticError::Undefined("`!` requires a non-negative integer"))?;
        let count = count.to_u32().ok_or(TooLarge)?;
        let mut product = BigInt::one();
        for factor in 2..=count {
            product *= factor;
            if product.bits() > MAX_BITS {
                return Err(TooLarge);
            }
        }
        Self::new(BigRational::from_integer(product), self.accuracy)
    }

    /// Returns the number as an integer, if it is one.
    pub(super) fn integer(&self) -> Option<&BigInt> {
        self.value.is_integer().then(|| self.value.numer())
    }

    /// Integers need no reduction, which is the slow part of arithmetic with fractions.
    fn combine(
        &self,
        other: &Self,
        integer: impl FnOnce(&BigInt, &BigInt) -> BigInt,
        fraction: impl FnOnce(&BigRational, &BigRational) -> BigRational,
    ) -> Result<Self, ArithmeticError> {
        let value = match (self.integer(), other.integer()) {
            (Some(a), Some(b)) => BigRational::from_integer(integer(a, b)),
            _ => fraction(&self.value, &other.value),
        };
        Self::new(value, self.accuracy.min(other.accuracy))
    }
}

/// Creates a number from a floating-point result, with its correct digits.
pub(super) fn from_float(float: f64) -> Result<Number, ArithmeticError> {
    if !float.is_finite() {
        return Err(ArithmeticError::TooLarge);
    }
    let text = format!("{:.14e}", float.abs());
    let number = Number::parse(&text)?;
    let number = Number { accuracy: Accuracy::Float, ..number };
    Ok(if float < 0.0 { number.negate() } else { number })
}

/// Creates a number from a floating-point result that is mathematically above zero.
pub(super) fn from_positive_float(float: f64) -> Result<Number, ArithmeticError> {
    if float < f64::MIN_POSITIVE { Err(ArithmeticError::TooSmall) } else { from_float(float) }
}

/// Returns a power of ten, unless it is too large.
pub(super) fn ten_to(exponent: u64) -> Result<BigInt, ArithmeticError> {
    let exponent =
        u32::try_from(exponent).ok().filter(|exponent| u64::from(*exponent) < MAX_BITS / 2).ok_or(TooLarge)?;
    Ok(BigInt::from(10).pow(exponent))
}

/// Returns an integer multiplied by a power of ten.
pub(super) fn scaled(digits: BigInt, places: i64) -> Result<BigRational, ArithmeticError> {
    let power = ten_to(places.unsigned_abs())?;
    Ok(if places < 0 { BigRational::new(digits, power) } else { BigRational::from_integer(digits * power) })
}

/// Returns the first digits of a number, rounded to an integer, and the number of places that the point was moved to the
/// right.
pub(super) fn significant(value: &BigRational, digits: u32) -> Result<(BigInt, i64), ArithmeticError> {
    if value.is_zero() {
        return Ok((BigInt::zero(), 0));
    }
    let above = value.numer().bits().to_i64().unwrap_or(i64::MAX);
    let below = value.denom().bits().to_i64().unwrap_or(i64::MAX);
    // One bit is log10(2) digits.
    let estimate = (above - below) * 30_103 / 100_000;
    let mut places = i64::from(digits) - 1 - estimate;
    let min = ten_to(u64::from(digits) - 1)?;
    let max = ten_to(u64::from(digits))?;
    loop {
        let power = ten_to(places.unsigned_abs())?;
        let (numerator, denominator) = if places < 0 {
            (value.numer().clone(), value.denom() * power)
        } else {
            (value.numer() * power, value.denom().clone())
        };
        let rounded = divide_rounded(&numerator, &denominator);
        let size = rounded.abs();
        if size >= max {
            places -= 1;
        } else if size < min {
            places += 1;
        } else {
            return Ok((rounded, places));
        }
    }
}

/// Divides, and rounds halves away from zero.
pub(super) fn divide_rounded(numerator: &BigInt, denominator: &BigInt) -> BigInt {
    let rounded: BigInt = (numerator.abs() * 2 + denominator) / (denominator * 2);
    if numerator.is_negative() { -rounded } else { rounded }
}
