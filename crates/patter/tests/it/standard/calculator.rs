//! The calculator: known values, hostile input, and a comparison with big integers.

use super::{call, check};
use num_bigint::BigInt;
use serde_json::json;

fn exactly(expression: &str, value: &str) {
    check("calculator", json!({ "expression": expression }), json!({ "value": value, "exact": true }));
}

fn about(expression: &str, value: &str) {
    check("calculator", json!({ "expression": expression }), json!({ "value": value, "exact": false }));
}

fn fails(expression: &str, message: &str) {
    check("calculator", json!({ "expression": expression }), json!(format!("!{message}")));
}

#[test]
fn arithmetic_is_exact() {
    exactly("0.1 + 0.2", "0.3");
    exactly("1/3*3", "1");
    exactly("2^200", "1606938044258990275541962092341162602522202993782792835301376");
    exactly("2**10", "1024");
    exactly("1 - 0.9", "0.1");
    exactly("1/8", "0.125");
    exactly("-1/8", "-0.125");
    exactly("1.5e3 + 2E-2", "1500.02");
    exactly(".5 + 5.", "5.5");
    exactly("1e30/1e30", "1");
    exactly("10^-3", "0.001");
    exactly("2^-2", "0.25");
    exactly("(-2)^-3", "-0.125");
    exactly("0^0", "1");
    exactly("(-1)^123456789012345678901", "-1");
    exactly("7 % 3", "1");
    exactly("-7 % 3", "2");
    exactly("7 % -3", "-2");
    exactly("5.5 % 2", "1.5");
    exactly("3 × 4 ÷ 2 − 1", "5");
}

#[test]
fn operators_have_the_usual_precedence() {
    exactly("2 + 3 * 4", "14");
    exactly("(2 + 3) * 4", "20");
    exactly("2 - 3 - 4", "-5");
    exactly("24 / 4 / 2", "3");
    exactly("-2^2", "-4");
    exactly("(-2)^2", "4");
    exactly("2^3^2", "512");
    exactly("2^-1", "0.5");
    exactly("2^3!", "64");
    exactly("-3!", "-6");
    exactly("--3", "3");
    exactly("2 * -3", "-6");
    exactly("8 % 5 * 2", "6");
}

#[test]
fn functions_and_constants() {
    exactly("sqrt(16/9)*3", "4");
    exactly("√16 + 1", "5");
    exactly("8^(1/3)", "2");
    exactly("4^1.5", "8");
    exactly("4^-0.5", "0.5");
    exactly("abs(-3.5)", "3.5");
    exactly("floor(-1.5) + ceil(-1.5)", "-3");
    exactly("round(2.5) + round(-2.5)", "0");
    exactly("round(2.345, 2)", "2.35");
    exactly("round(1250, -2)", "1300");
    exactly("min(3, 1, 2) + max(3, 1, 2)", "4");
    exactly("gcd(12, -18)", "6");
    exactly("gcd(0, 0)", "0");
    exactly("lcm(4, 6, 10)", "60");
    exactly("lcm(0, 5)", "0");
    exactly("20!", "2432902008176640000");
    exactly("0!", "1");
    exactly("log(1000)", "3");
    exactly("log(0.001)", "-3");
    exactly("log(2^4000, 2)", "4000");
    exactly("ln(1) + exp(0) + cos(0) + sin(0) + tan(0)", "2");
    about("1/3", "0.333333333333333333333333333333");
    about("2/3", "0.666666666666666666666666666667");
    about("-1/7", "-0.142857142857142857142857142857");
    about("1/3*10^-20", "3.33333333333333333333333333333e-21");
    about("10^40/3", "3.33333333333333333333333333333e39");
    about("sqrt(2)", "1.41421356237309504880168872421");
    about("sqrt(2e-30)", "1.41421356237309504880168872421e-15");
    about("2^0.5", "1.41421356237309504880168872421");
    about("10^(1/3)", "2.15443469003188372175929356652");
    about("pi", "3.14159265358979323846264338328");
    about("PI*2", "6.28318530717958647692528676656");
    about("e", "2.71828182845904523536028747135");
    about("exp(1)", "2.71828182845905");
    about("ln(2)", "0.693147180559945");
    about("ln(10^4000)", "9210.34037197618");
    about("log(2)", "0.301029995663981");
    about("log(2, 3)", "0.630929753571457");
    about("sin(pi/6)", "0.5");
    about("sin(pi)", "0");
    about("cos(pi)", "-1");
    about("tan(pi/4)", "1");
    about("2^0.01", "1.00695555005672");
}

#[test]
fn reports_errors_with_their_position() {
    fails("", "the expression is empty (at character 1)");
    fails("1 +", "expected a number, not the end (at character 4)");
    fails("1 + * 2", "expected a number, not `*` (at character 5)");
    fails("(1 + 2", "unmatched `(` (at character 1)");
    fails("(1 2)", "expected an operator or `)` before `2` (at character 4)");
    fails("1 + 2)", "unmatched `)` (at character 6)");
    fails("2pi", "expected an operator before `p` (at character 2)");
    fails("2 (3)", "expected an operator before `(` (at character 3)");
    fails("1,000", "expected an operator before `,` (at character 2)");
    fails("1_000", "without separators (at character 2)");
    fails("1.2.3", "with one point and without separators (at character 4)");
    fails(".", "expected a number, not `.` (at character 1)");
    fails("1/0", "division by zero (at character 2)");
    fails("1 % 0", "division by zero (at character 3)");
    fails("0^-1", "division by zero (at character 2)");
    fails("0^-0.5", "division by zero (at character 2)");
    fails("sqr(4)", "unknown name `sqr`; did you mean `sqrt`? (at character 1)");
    fails("x + 1", "unknown name `x`; ");
    fails("sqrt 4", "`sqrt` is a function: write `sqrt(…)` (at character 6)");
    fails("sqrt(4, 5)", "`sqrt` does not accept 2 arguments (at character 1)");
    fails("min()", "`min` does not accept 0 arguments");
    fails("max(1 2)", "expected `,` or `)` in `max(…)`, not `2` (at character 7)");
    fails("max(1,", "expected a number, not the end");
    fails("max(1", "expected `,` or `)` in `max(…)`, not the end");
    fails("sqrt(-1)", "a negative number has no real root");
    fails("(-8)^(1/3)", "a negative number to a fractional power is not a real number");
    fails("ln(0)", "a logarithm requires a number above 0");
    fails("log(2, 1)", "a logarithm requires a number above 0");
    fails("tan(pi/2)", "`tan` is undefined here");
    fails("1.5!", "`!` requires a non-negative integer (at character 4)");
    fails("(-1)!", "`!` requires a non-negative integer");
    fails("5!!", "write `(n!)!`");
    fails("gcd(1.5, 2)", "requires integers");
    fails("round(1, 0.5)", "an integer number of places");
    fails("2 $ 3", "expected an operator before `$` (at character 3)");
}

#[test]
fn rejects_hostile_input_at_once() {
    let too_large = "the number is too large";
    fails("9^9^9^9", too_large);
    fails("9^-9^9^9", too_large);
    fails("2^100000", too_large);
    fails("1.1^1000000", too_large);
    fails("1e999999999", too_large);
    fails("1e-999999999", too_large);
    fails("1e99999999999999999999", too_large);
    fails("100000!", too_large);
    fails("(10^4000)!", too_large);
    fails("1/7^4000", too_large);
    fails("gcd(2^4097, 3^9999)", too_large);
    fails("exp(1000)", too_large);
    fails("sin(10^400)", too_large);
    fails("sin(10^10)", "the angle is too large");
    fails("exp(-1000)", "too small to be distinguished from zero");
    fails("(2^4000)^(2^4000+0.5)", too_large);
    fails("round(1, 10^9)", "an integer number of places");
    fails(&"(".repeat(900), "nests deeper than 64 levels (at character 66)");
    fails(&"-".repeat(900), "nests deeper than 64 levels");
    fails(&"2^".repeat(400), "nests deeper than 64 levels");
    fails(&"√".repeat(400), "nests deeper than 64 levels");
    fails(&"1+".repeat(501), "the expression has 1002 characters; at most 1000 are allowed");
    fails(&format!("{}1", "sin(".repeat(200)), "nests deeper than 64 levels");
    // Accepted, and still fast: each step has numbers of the maximum size.
    let heavy = format!("1{}", "*(2^16000+1)/(2^16000+1)".repeat(30));
    exactly(&heavy, "1");
    let fractions = (1..120).map(|n| format!("1/{n}")).collect::<Vec<_>>().join("+");
    assert!(call("calculator", json!({ "expression": fractions })).is_ok());
}

/// A small deterministic generator of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Generates a random expression of integers, fully parenthesised, and its value.
fn generate(random: &mut Random, depth: u32) -> (String, BigInt) {
    if depth == 0 || random.below(4) == 0 {
        let number = random.below(1_000_000);
        return (number.to_string(), BigInt::from(number));
    }
    let (left, a) = generate(random, depth - 1);
    match random.below(6) {
        0 => (format!("-({left})"), -a),
        1 => {
            let exponent = u32::try_from(random.below(4)).unwrap();
            (format!("({left})^{exponent}"), (0..exponent).fold(BigInt::from(1), |product, _| product * &a))
        }
        operator => {
            let (right, b) = generate(random, depth - 1);
            match operator {
                2 => (format!("({left}) + ({right})"), a + b),
                3 => (format!("({left}) - ({right})"), a - b),
                4 => (format!("({left})*({right})"), a * b),
                // A division after the multiplication has an integer result.
                _ if b == BigInt::ZERO => (format!("({left}) + ({right})"), a + b),
                _ => (format!("(({left})*({right}))/({right})"), a),
            }
        }
    }
}

#[test]
fn integers_agree_with_big_integers() {
    let mut random = Random(7);
    for _ in 0..500 {
        let (expression, expected) = generate(&mut random, 4);
        if expression.len() <= 1_000 {
            exactly(&expression, &expected.to_string());
        }
    }
}

#[test]
fn survives_random_input() {
    let alphabet: Vec<char> = "0123456789.e+-*/%^!(), sqrtlnpiE√²∞\n\u{0}".chars().collect();
    let mut random = Random(11);
    for _ in 0..3_000 {
        let length = random.below(40);
        let pick = |random: &mut Random| alphabet[usize::try_from(random.below(alphabet.len() as u64)).unwrap()];
        let expression: String = (0..length).map(|_| pick(&mut random)).collect();
        if let Err(message) = call("calculator", json!({ "expression": expression })) {
            assert!(message.contains(" (at character "), "{expression}: {message}");
        }
    }
}
