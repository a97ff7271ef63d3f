//! A calculator that does not round where it need not.
//!
//! Numbers are fractions of whole numbers of any size, up to a limit, so `0.1 + 0.2` is `0.3` and `1/3*3` is `1`. Only
//! roots and the functions of analysis round; what they give is marked, and so is all that is computed from it.

mod function;
mod number;
mod power;
mod print;
mod read;

use crate::tool::Failure;
use schemars::JsonSchema;
use serde::Serialize;

/// How long an expression may be, in characters.
const LONGEST: usize = 1_000;

/// What a calculation gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Calculation {
    /// The number, in decimal notation
    pub value: String,
    /// Whether the number is exactly the result; if not, it is rounded
    pub exact: bool,
}

/// Computes the value of an expression, exactly where that is possible.
///
/// Operators: `+ - * / % ^` (`%` is the remainder, with the sign of the divisor), `!` for the factorial, parentheses.
/// Functions: sqrt, abs, floor, ceil, round(x) or round(x, places), min, max, gcd, lcm, ln, log(x) to base 10 or
/// log(x, base), exp, sin, cos, tan (in radians). Constants: pi, e. Numbers: 12, 0.5, 1.5e-3. What is not exact is rounded
/// to 30 significant digits, or to 15 after ln, log, exp, sin, cos and tan.
#[patter::tool(effect = "pure")]
pub fn calculator(
    /// What to compute, such as `2 * (3 + 4)^2`
    expression: String,
) -> Result<Calculation, Failure> {
    let length = expression.chars().count();
    if length > LONGEST {
        return Err(Failure::new(format!("the expression has {length} characters; at most {LONGEST} are allowed")));
    }
    let number = read::evaluate(&expression).map_err(|error| Failure::new(error.to_string()))?;
    let (value, exact) = print::decimal(&number);
    Ok(Calculation { value, exact })
}
