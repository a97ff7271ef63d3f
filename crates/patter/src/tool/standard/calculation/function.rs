//! Functions and constants.

use super::number::{
    Accuracy, ArithmeticError, MAX_DENOMINATOR_BITS, Number, divide_rounded, from_float, from_positive_float, ten_to,
};
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
    Some(Number::parse(text).map(|number| Number { accuracy: Accuracy::Rounded, ..number }))
}

/// Applies a function. Returns nothing if it does not accept that many arguments.
pub(super) fn apply(name: &str, arguments: &[Number]) -> Option<Result<Number, ArithmeticError>> {
    Some(match (name, arguments) {
        ("sqrt", [x]) => root(x, 2),
        ("abs", [x]) => Ok(Number { value: x.value.abs(), accuracy: x.accuracy }),
        ("floor", [x]) => Ok(Number { value: x.value.floor(), accuracy: x.accuracy }),
        ("ceil", [x]) => Ok(Number { value: x.value.ceil(), accuracy: x.accuracy }),
        ("round", [x]) => round(x, &Number::exact(0)),
        ("round", [x, places]) => round(x, places),
        ("min", [first, rest @ ..]) => {
            Ok(rest.iter().fold(first.clone(), |min, x| if x.value < min.value { x.clone() } else { min }))
        }
        ("max", [first, rest @ ..]) => {
            Ok(rest.iter().fold(first.clone(), |max, x| if x.value > max.value { x.clone() } else { max }))
        }
        ("gcd", [_, _, ..]) => fold_integers(arguments, gcd),
        ("lcm", [_, _, ..]) => fold_integers(arguments, |a, b| {
            let divisor = gcd(a, b);
            if divisor.is_zero() { divisor } else { (a / divisor * b).abs() }
        }),
        ("ln", [x]) => logarithm(x, None),
        ("log", [x]) => logarithm(x, Some(&Number::exact(10))),
        ("log", [x, base]) => logarithm(x, Some(base)),
        ("exp", [x]) if is_exactly(x, 0) => Ok(Number::exact(1)),
        ("exp", [x]) => float(x).and_then(|x| from_positive_float(x.exp())),
        ("sin" | "tan", [x]) if is_exactly(x, 0) => Ok(Number::exact(0)),
        ("cos", [x]) if is_exactly(x, 0) => Ok(Number::exact(1)),
        ("sin" | "cos" | "tan", [x]) => trigonometric(name, x),
        _ => return None,
    })
}

fn is_exactly(number: &Number, value: i32) -> bool {
    number.accuracy == Accuracy::Exact && *number.value.numer() == BigInt::from(value) && number.value.denom().is_one()
}

fn float(number: &Number) -> Result<f64, ArithmeticError> {
    number.value.to_f64().filter(|float| float.is_finite()).ok_or(ArithmeticError::TooLarge)
}

fn round(number: &Number, places: &Number) -> Result<Number, ArithmeticError> {
    let places = places.integer().and_then(ToPrimitive::to_i64).filter(|places| places.abs() <= 1_000);
    let places =
        places.ok_or(ArithmeticError::Undefined("`round` requires an integer number of places, at most 1000"))?;
    let power = ten_to(places.unsigned_abs())?;
    let numerator = number.value.numer();
    let denominator = number.value.denom();
    let value = if places < 0 {
        BigRational::from_integer(divide_rounded(numerator, &(denominator * &power)) * power)
    } else {
        BigRational::new(divide_rounded(&(numerator * &power), denominator), power)
    };
    Number::new(value, number.accuracy)
}

fn fold_integers(
    arguments: &[Number],
    combine: impl Fn(&BigInt, &BigInt) -> BigInt,
) -> Result<Number, ArithmeticError> {
    let mut result: Option<Number> = None;
    for argument in arguments {
        let integer = argument.integer().ok_or(ArithmeticError::Undefined("this function requires integers"))?;
        if integer.bits() > MAX_DENOMINATOR_BITS {
            return Err(ArithmeticError::TooLarge);
        }
        result = Some(match result {
            None => Number::new(BigRational::from_integer(integer.abs()), argument.accuracy)?,
            Some(so_far) => {
                let combined = combine(so_far.value.numer(), integer);
                Number::new(BigRational::from_integer(combined), so_far.accuracy.min(argument.accuracy))?
            }
        });
    }
    result.ok_or(ArithmeticError::Undefined("this function requires integers"))
}

fn gcd(a: &BigInt, b: &BigInt) -> BigInt {
    let mut a = a.abs();
    let mut b = b.abs();
    while !b.is_zero() {
        (a, b) = (b.clone(), a % b);
    }
    a
}

/// Returns a logarithm, which is exact if it is an integer and the base is exact.
fn logarithm(number: &Number, base: Option<&Number>) -> Result<Number, ArithmeticError> {
    let is_positive = |number: &Number| number.value.is_positive();
    if !is_positive(number) || !base.is_none_or(|base| is_positive(base) && !base.value.is_one()) {
        let message = "a logarithm requires a number above 0, and a base above 0 other than 1";
        return Err(ArithmeticError::Undefined(message));
    }
    if is_exactly(number, 1) {
        return Ok(Number::exact(0));
    }
    let Some(base) = base else { return from_float(natural(&number.value)) };
    let result = natural(&number.value) / natural(&base.value);
    let rounded = Number::exact(result.round().to_i64().unwrap_or_default());
    match power(base, &rounded) {
        Ok(exact) if exact.value == number.value && number.accuracy.min(base.accuracy) == Accuracy::Exact => {
            Ok(rounded)
        }
        _ => from_float(result),
    }
}

/// Returns the natural logarithm of a number that may exceed the range of floating point.
fn natural(value: &BigRational) -> f64 {
    let of_integer = |integer: &BigInt| {
        let shift = integer.bits().saturating_sub(64);
        let leading = (integer >> shift).to_f64().unwrap_or(1.0);
        leading.ln() + shift.to_f64().unwrap_or_default() * std::f64::consts::LN_2
    };
    match value.to_f64() {
        // Close to 1 the difference of two logarithms would lose digits.
        Some(float) if float.is_normal() => float.ln(),
        _ => of_integer(value.numer()) - of_integer(value.denom()),
    }
}

fn trigonometric(name: &str, number: &Number) -> Result<Number, ArithmeticError> {
    let x = float(number)?;
    if x.abs() > 1e9 {
        return Err(ArithmeticError::Undefined("the angle is too large; the limit is 10^9"));
    }
    // The remainder at multiples of pi/2 is a rounding error.
    let noise = 1e-15 * x.abs().max(1.0);
    let settle = |value: f64| if value.abs() < noise && x.abs() > 0.5 { 0.0 } else { value };
    let sine = settle(x.sin());
    let cosine = settle(x.cos());
    match name {
        "sin" => from_float(sine),
        "cos" => from_float(cosine),
        _ if cosine == 0.0 => Err(ArithmeticError::Undefined("`tan` is undefined here")),
        _ => from_float(if sine == 0.0 { 0.0 } else { x.tan() }),
    }
}
