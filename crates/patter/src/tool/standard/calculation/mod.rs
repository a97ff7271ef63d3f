//! A calculator with exact arithmetic.
//!
//! Numbers are fractions of integers of any size, up to a limit, so `0.1 + 0.2` is `0.3` and `1/3*3` is `1`. Only roots
//! and transcendental functions round; their results are marked as inexact, and so is everything computed from them.

mod parse;
mod number;
mod power;
mod function;
mod print;

use crate::tool::ToolFailure;
use schemars::JsonSchema;
use serde::Serialize;

/// The length limit of an expression, in characters.
const MAX_CHARS: usize = 1_000;

/// The result of a calculation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Calculation {
    /// The result, in decimal notation
    pub value: String,
    /// Whether the result is exact; otherwise it is rounded
    pub exact: bool,
}

/// Computes the value of an arithmetic expression, exactly where possible.
///
/// Operators: `+ - * / % ^` (`%` is the remainder, with the sign of the divisor), `!` for the factorial, parentheses.
/// Functions: sqrt, abs, floor, ceil, round(x) or round(x, places), min, max, gcd, lcm, ln, log(x) to base 10 or
/// log(x, base), exp, sin, cos, tan (in radians). Constants: pi, e. Numbers: 12, 0.5, 1.5e-3. Inexact results are rounded
/// to 30 significant digits, or to 15 after ln, log, exp, sin, cos and tan.
#[patter::tool(effect = "pure")]
pub fn calculator(
    /// The expression to evaluate, such as `2 * (3 + 4)^2`
    expression: String,
) -> Result<Calculation, ToolFailure> {
    let length = expression.chars().count();
    if length > MAX_CHARS {
        return Err(ToolFailure::new(format!(
            "the expression has {length} characters; at most {MAX_CHARS} are allowed"
        )));
    }
    let number = parse::evaluate(&expression).map_err(|error| ToolFailure::new(error.to_string()))?;
    let (value, exact) = print::decimal(&number);
    Ok(Calculation { value, exact })
}
