//! Functions and constants.

use super::number::{Accuracy, ArithmeticError, MOST_BITS_BELOW, Number, divide_rounded, ten_to};
use super::power::{power, root};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// The names of all functions and constants.
pub(super) const NAMES: &[&str] = &[
    "sqrt", "abs", "floor", "ceil", "round", "min", "max", "gcd", "lcm", "ln", "log", "exp", "sin", "cos", "tan", "pi",
    "e",
];

const PI: &str = "3.14159265358979323846264338327950288419716939937511";
const E: &str = "2.71828182845904523536028747135266249775724709369996";

/// Returns the constant with a name.
pub(super) fn constant(name: &str) -> Option<Result<Number, ArithmeticError>> {
    let text = match name {
        "pi" | "π" => PI,
        "e" => E,
        _ => return None,
    };
    Some(Number::read(text).map(|number| Number { accuracy: Accuracy::Rounded, ..number }))
}

/// Applies a function. Nothing is returned if it does not take that many arguments.
pub(super) fn apply(name: &str, arguments: &[Number]) -> Option<Result<Number, ArithmeticError>> {
    Some(match (name, arguments) {
        ("sqrt", [x]) => root(x, 2),
        ("abs", [x]) => Ok(Number { value: x.value.abs(), accuracy: x.accuracy }),
        ("floor", [x]) => Ok(Number { value: x.value.floor(), accuracy: x.accuracy }),
        ("ceil", [x]) => Ok(Number { value: x.value.ceil(), accuracy: x.accuracy }),
        ("round", [x]) => round(x, &Number::exact(0)),
        ("round", [x, places]) => round(x, places),
        ("min", [first, rest @ ..]) => {
            Ok(rest.iter().fold(first.clone(), |least, x| if x.value < least.value { x.clone() } else { least }))
        }
        ("max", [first, rest @ ..]) => {
            Ok(rest.iter().fold(first.clone(), |most, x| if x.value > most.value { x.clone() } else { most }))
        }
        ("gcd", [_, _, ..]) => fold_whole(arguments, gcd),
        ("lcm", [_, _, ..]) => fold_whole(arguments, |a, b| {
            let divisor = gcd(a, b);
            if divisor.is_zero() { divisor } else { (a / divisor * b).abs() }
        }),
        ("ln", [x]) => logarithm(x, None),
        ("log", [x]) => logarithm(x, Some(&Number::exact(10))),
        ("log", [x, base]) => logarithm(x, Some(base)),
        ("exp", [x]) if is_exactly(x, 0) => Ok(Number::exact(1)),
        ("exp", [x]) => float(x).and_then(|x| above_zero(x.exp())),
        ("sin" | "tan", [x]) if is_exactly(x, 0) => Ok(Number::exact(0)),
        ("cos", [x]) if is_exactly(x, 0) => Ok(Number::exact(1)),
        ("sin" | "cos" | "tan", [x]) => trigonometric(name, x),
        _ => return None,
    })
}

/// Returns what floating point computed, with the digits that are right.
fn from_float(float: f64) -> Result<Number, ArithmeticError> {
    if !float.is_finite() {
        return Err(ArithmeticError::TooLarge);
    }
    let text = format!("{:.14e}", float.abs());
    let number = Number::read(&text)?;
    let number = Number { accuracy: Accuracy::Float, ..number };
    Ok(if float < 0.0 { number.negate() } else { number })
}

/// Returns what floating point computed of a number that is above zero.
pub(super) fn above_zero(float: f64) -> Result<Number, ArithmeticError> {
    if float < f64::MIN_POSITIVE { Err(ArithmeticError::TooSmall) } else { from_float(float) }
}

fn is_exactly(number: &Number, value: i32) -> bool {
    number.accuracy == Accuracy::Exact && *number.value.numer() == BigInt::from(value) && number.value.denom().is_one()
}

fn float(number: &Number) -> Result<f64, ArithmeticError> {
    number.value.to_f64().filter(|float| float.is_finite()).ok_or(ArithmeticError::TooLarge)
}

fn round(number: &Number, places: &Number) -> Result<Number, ArithmeticError> {
    let places = places.whole().and_then(ToPrimitive::to_i64).filter(|places| places.abs() <= 1_000);
    let places = places.ok_or(ArithmeticError::Undefined("`round` takes a whole number of places up to 1000"))?;
    let power = ten_to(places.unsigned_abs())?;
    let (above, below) = (number.value.numer(), number.value.denom());
    let value = if places < 0 {
        BigRational::from_integer(divide_rounded(above, &(below * &power)) * power)
    } else {
        BigRational::new(divide_rounded(&(above * &power), below), power)
    };
    Number::new(value, number.accuracy)
}

fn fold_whole(arguments: &[Number], combine: impl Fn(&BigInt, &BigInt) -> BigInt) -> Result<Number, ArithmeticError> {
    let mut result: Option<Number> = None;
    for argument in arguments {
        let whole = argument.whole().ok_or(ArithmeticError::Undefined("this function takes whole numbers"))?;
        if whole.bits() > MOST_BITS_BELOW {
            return Err(ArithmeticError::TooLarge);
        }
        result = Some(match result {
            None => Number::new(BigRational::from_integer(whole.abs()), argument.accuracy)?,
            Some(so_far) => {
                let combined = combine(so_far.value.numer(), whole);
                Number::new(BigRational::from_integer(combined), so_far.accuracy.min(argument.accuracy))?
            }
        });
    }
    result.ok_or(ArithmeticError::Undefined("this function takes whole numbers"))
}

fn gcd(a: &BigInt, b: &BigInt) -> BigInt {
    let (mut a, mut b) = (a.abs(), b.abs());
    while !b.is_zero() {
        (a, b) = (b.clone(), a % b);
    }
    a
}

/// Returns a logarithm: exactly if it is a whole number and the base is exact.
fn logarithm(number: &Number, base: Option<&Number>) -> Result<Number, ArithmeticError> {
    let is_positive = |number: &Number| number.value.is_positive();
    if !is_positive(number) || !base.is_none_or(|base| is_positive(base) && !base.value.is_one()) {
        let message = "only numbers above 0 have a logarithm, to a base that is above 0 and not 1";
        return Err(ArithmeticError::Undefined(message));
    }
    if is_exactly(number, 1) {
        return Ok(Number::exact(0));
    }
    let Some(base) = base else { return from_float(natural(&number.value)) };
    let result = natural(&number.value) / natural(&base.value);
    let whole = Number::exact(result.round().to_i64().unwrap_or_default());
    match power(base, &whole) {
        Ok(exact) if exact.value == number.value && number.accuracy.min(base.accuracy) == Accuracy::Exact => Ok(whole),
        _ => from_float(result),
    }
}

/// Returns the natural logarithm of a number that may be larger than floating point can say.
fn natural(value: &BigRational) -> f64 {
    let of_whole = |whole: &BigInt| {
        let shift = whole.bits().saturating_sub(64);
        let leading = (whole >> shift).to_f64().unwrap_or(1.0);
        leading.ln() + shift.to_f64().unwrap_or_default() * std::f64::consts::LN_2
    };
    match value.to_f64() {
        // Close to 1 the difference of two logarithms would lose digits.
        Some(float) if float.is_normal() => float.ln(),
        _ => of_whole(value.numer()) - of_whole(value.denom()),
    }
}

fn trigonometric(name: &str, number: &Number) -> Result<Number, ArithmeticError> {
    let x = float(number)?;
    if x.abs() > 1e9 {
        return Err(ArithmeticError::Undefined("the angle is too large; the limit is 10^9"));
    }
    // What is left of a multiple of pi, or of a half, is an error of rounding.
    let noise = 1e-15 * x.abs().max(1.0);
    let settle = |value: f64| if value.abs() < noise && x.abs() > 0.5 { 0.0 } else { value };
    let (sine, cosine) = (settle(x.sin()), settle(x.cos()));
    match name {
        "sin" => from_float(sine),
        "cos" => from_float(cosine),
        _ if cosine == 0.0 => Err(ArithmeticError::Undefined("`tan` has no value here")),
        _ => from_float(if sine == 0.0 { 0.0 } else { x.tan() }),
    }
}
