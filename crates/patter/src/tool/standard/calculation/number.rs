//! Exact numbers, and how exact they are.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};
use thiserror::Error;

/// How large a number may be: almost five thousand digits.
pub(super) const MOST_BITS: u64 = 16_384;
/// How large a denominator may be, and a number whose divisors are looked for. That takes time.
pub(super) const MOST_BITS_BELOW: u64 = 4_096;
/// How many digits of a rounded number are kept.
pub(super) const KEPT: u32 = 40;

/// A number.
#[derive(Debug, Clone)]
pub(super) struct Number {
    pub(super) value: BigRational,
    pub(super) accuracy: Accuracy,
}

/// How exact a number is, from the worst on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Accuracy {
    /// It was computed in floating point: 15 digits are right.
    Float,
    /// It was rounded: 30 digits are right.
    Rounded,
    /// It is the number itself.
    Exact,
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum ArithmeticError {
    #[error("division by zero")]
    DivisionByZero,
    #[error(
        "the number gets too large: at most 4900 digits are allowed, and 1200 of a denominator or in `gcd` and `lcm`"
    )]
    TooLarge,
    #[error("the number gets too small to be told from zero")]
    TooSmall,
    #[error("{0}")]
    Undefined(&'static str),
}

use ArithmeticError::{DivisionByZero, TooLarge};

impl Number {
    /// Returns a number, if it is not too large. What is rounded already is kept short.
    pub(super) fn new(value: BigRational, accuracy: Accuracy) -> Result<Self, ArithmeticError> {
        let value = match accuracy {
            Accuracy::Exact => value,
            Accuracy::Rounded | Accuracy::Float if value.numer().bits() + value.denom().bits() < 256 => value,
            Accuracy::Rounded | Accuracy::Float => {
                let (digits, places) = significant(&value, KEPT)?;
                scaled(digits, -places)?
            }
        };
        if value.numer().bits() > MOST_BITS || value.denom().bits() > MOST_BITS_BELOW {
            return Err(TooLarge);
        }
        Ok(Self { value, accuracy })
    }

    pub(super) fn exact(value: impl Into<BigInt>) -> Self {
        Self { value: BigRational::from_integer(value.into()), accuracy: Accuracy::Exact }
    }

    /// Reads `12`, `0.5` or `1.5e-3`.
    pub(super) fn read(text: &str) -> Result<Self, ArithmeticError> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("0{whole}{fraction}");
        let exponent: i64 = exponent.parse().map_err(|_| TooLarge)?;
        let places = i64::try_from(fraction.len()).map_err(|_| TooLarge)?;
        let digits: BigInt = digits.parse().map_err(|_| ArithmeticError::Undefined("this is not a number"))?;
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

    /// Returns what remains of a division, with the sign of the divisor.
    pub(super) fn remainder(&self, other: &Self) -> Result<Self, ArithmeticError> {
        let quotient = self.divide(other)?;
        let whole = Self { value: quotient.value.floor(), accuracy: quotient.accuracy };
        self.subtract(&whole.multiply(other)?)
    }

    pub(super) fn negate(self) -> Self {
        Self { value: -self.value, ..self }
    }

    /// Returns the product of all whole numbers from 1 on.
    pub(super) fn factorial(&self) -> Result<Self, ArithmeticError> {
        let count = self.whole().filter(|count| !count.is_negative());
        let count = count.ok_or(ArithmeticError::Undefined("only whole numbers from 0 on have a factorial"))?;
        let count = count.to_u32().ok_or(TooLarge)?;
        let mut product = BigInt::one();
        for factor in 2..=count {
            product *= factor;
            if product.bits() > MOST_BITS {
                return Err(TooLarge);
            }
        }
        Self::new(BigRational::from_integer(product), self.accuracy)
    }

    /// Returns the whole number that it is.
    pub(super) fn whole(&self) -> Option<&BigInt> {
        self.value.is_integer().then(|| self.value.numer())
    }

    /// Whole numbers need no reduction, which is the slow part of computing with fractions.
    fn combine(
        &self,
        other: &Self,
        whole: impl FnOnce(&BigInt, &BigInt) -> BigInt,
        fraction: impl FnOnce(&BigRational, &BigRational) -> BigRational,
    ) -> Result<Self, ArithmeticError> {
        let value = match (self.whole(), other.whole()) {
            (Some(a), Some(b)) => BigRational::from_integer(whole(a, b)),
            _ => fraction(&self.value, &other.value),
        };
        Self::new(value, self.accuracy.min(other.accuracy))
    }
}

/// Returns ten to some power, if that is not too large.
pub(super) fn ten_to(exponent: u64) -> Result<BigInt, ArithmeticError> {
    let exponent =
        u32::try_from(exponent).ok().filter(|exponent| u64::from(*exponent) < MOST_BITS / 2).ok_or(TooLarge)?;
    Ok(BigInt::from(10).pow(exponent))
}

/// Returns whole numbers with the point moved to the right.
pub(super) fn scaled(digits: BigInt, places: i64) -> Result<BigRational, ArithmeticError> {
    let power = ten_to(places.unsigned_abs())?;
    Ok(if places < 0 { BigRational::new(digits, power) } else { BigRational::from_integer(digits * power) })
}

/// Returns the first digits of a number as a whole number, rounded, and how many places the point was moved to the right.
pub(super) fn significant(value: &BigRational, digits: u32) -> Result<(BigInt, i64), ArithmeticError> {
    if value.is_zero() {
        return Ok((BigInt::zero(), 0));
    }
    let above = value.numer().bits().to_i64().unwrap_or(i64::MAX);
    let below = value.denom().bits().to_i64().unwrap_or(i64::MAX);
    // One bit is 0.30103 digits.
    let estimate = (above - below) * 30_103 / 100_000;
    let mut places = i64::from(digits) - 1 - estimate;
    let (least, most) = (ten_to(u64::from(digits) - 1)?, ten_to(u64::from(digits))?);
    loop {
        let power = ten_to(places.unsigned_abs())?;
        let (numerator, denominator) = if places < 0 {
            (value.numer().clone(), value.denom() * power)
        } else {
            (value.numer() * power, value.denom().clone())
        };
        let rounded = divide_rounded(&numerator, &denominator);
        let size = rounded.abs();
        if size >= most {
            places -= 1;
        } else if size < least {
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
