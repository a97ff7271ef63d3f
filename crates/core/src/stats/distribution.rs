//! Probability distributions for tests and plans. Logarithms, exponentials and `erfc` come from `libm`, which gives the
//! same results on every platform.

use libm::{erfc, exp, lgamma, log, log1p};
use std::f64::consts::{PI, SQRT_2};

/// Returns the probability that a standard normal variable is at most `z`.
///
/// ```
/// use patter_core::stats::distribution::{normal, normal_quantile};
/// assert!((normal(1.959963984540054) - 0.975).abs() < 1e-12);
/// assert!((normal_quantile(0.975) - 1.959963984540054).abs() < 1e-12);
/// ```
pub fn normal(z: f64) -> f64 {
    0.5 * erfc(-z / SQRT_2)
}

/// Returns the quantile of the standard normal distribution at probability `p`: infinite at 0 and 1.
pub fn normal_quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p == 0.5 {
        return 0.0;
    }
    let tail = p.min(1.0 - p);
    if tail == 0.0 {
        return if p > 0.5 { f64::INFINITY } else { f64::NEG_INFINITY };
    }
    // Abramowitz and Stegun 26.2.23 is accurate to 4.5e-4; each step of Halley's method triples the digits.
    let t = (-2.0 * log(tail)).sqrt();
    let mut z =
        -(t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
    for _ in 0..3 {
        let step = (normal(z) - tail) * (2.0 * PI).sqrt() * exp(z * z / 2.0);
        if !step.is_finite() {
            break; // `z` is so far out that the density underflows
        }
        z -= step / (1.0 + z * step / 2.0);
    }
    if p > 0.5 { -z } else { z }
}

/// Returns the regularized incomplete beta function: the probability that a beta variable is at most `x`.
pub fn beta(a: f64, b: f64, x: f64) -> f64 {
    if !(a > 0.0 && b > 0.0) || x.is_nan() {
        return f64::NAN;
    }
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = exp(a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b));
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// Returns the probability of at least `k` successes in `n` trials.
pub fn binomial_at_least(k: usize, n: usize, p: f64) -> f64 {
    match k {
        0 => 1.0,
        _ if k > n => 0.0,
        _ => beta(k as f64, (n - k + 1) as f64, p),
    }
}

/// Returns the probability that a variable with Student's distribution is at most `t`.
pub fn student(t: f64, freedom: f64) -> f64 {
    let tail = 0.5 * beta(freedom / 2.0, 0.5, freedom / (freedom + t * t));
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// Returns the quantile of Student's distribution at probability `p`.
pub fn student_quantile(p: f64, freedom: f64) -> f64 {
    if p == 0.5 {
        return 0.0;
    }
    let tail = p.min(1.0 - p);
    // The quantile is farther out than the normal one, so the search starts there.
    let mut low = normal_quantile(tail) * 2.0;
    while low.is_finite() && student(low, freedom) > tail {
        low *= 2.0;
    }
    let t = root(low, 0.0, |t| student(t, freedom) - tail);
    if p > 0.5 { -t } else { t }
}

/// Returns the probability that a variable with the noncentral Student distribution exceeds `t`, which is positive. It
/// averages a normal probability over the distribution of the standard deviation by Simpson's rule, accurate to about
/// 1e-9.
pub fn noncentral_student_above(t: f64, freedom: f64, shift: f64) -> f64 {
    if freedom > 1e6 {
        return normal(shift - t);
    }
    let half = freedom / 2.0;
    let constant = std::f64::consts::LN_2 + half * log(half) - lgamma(half);
    // Farther out, one of the factors is below 1e-17.
    let reach = 12.0 / (2.0 * freedom).sqrt();
    let from = (1.0 - reach).max(0.0);
    let to = (1.0 + reach).min((shift + 9.0) / t);
    if to <= from {
        return 0.0;
    }
    // If the integrand ends smoothly, few steps are enough.
    let steps = if from > 0.0 { 120 } else { 300 };
    let width = (to - from) / f64::from(steps);
    let at = |step: u32| {
        let s = from + width * f64::from(step);
        let power = if freedom == 1.0 { 0.0 } else { (freedom - 1.0) * log(s) };
        exp(constant + power - half * s * s) * normal(shift - t * s)
    };
    let inner: f64 = (1..steps).map(|step| at(step) * if step % 2 == 1 { 4.0 } else { 2.0 }).sum();
    (at(0) + inner + at(steps)) * width / 3.0
}

/// Finds where a function changes its sign between two values, by the method of Chandrupatla (1997): inverse quadratic
/// interpolation where it is reliable, bisection otherwise. Infinite values are handled by bisection.
pub(super) fn root(low: f64, high: f64, function: impl Fn(f64) -> f64) -> f64 {
    let mut a = (low, function(low));
    let mut b = (high, function(high));
    let mut share = 0.5;
    for _ in 0..200 {
        let x = a.0 + share * (b.0 - a.0);
        let new = (x, function(x));
        let c = if (new.1 > 0.0) == (a.1 > 0.0) { a } else { std::mem::replace(&mut b, a) };
        a = new;
        let near = if a.1.abs() < b.1.abs() { a } else { b };
        let tolerance = (4.0 * f64::EPSILON * near.0.abs() + f64::MIN_POSITIVE) / (b.0 - a.0).abs();
        if near.1 == 0.0 || tolerance.is_nan() || tolerance > 0.5 {
            return near.0;
        }
        let along = (a.0 - b.0) / (c.0 - b.0);
        let up = (a.1 - b.1) / (c.1 - b.1);
        let is_reliable = up * up < along && (1.0 - up) * (1.0 - up) < 1.0 - along;
        let parabola =
            a.1 / (b.1 - a.1) * c.1 / (b.1 - c.1) + (c.0 - a.0) / (b.0 - a.0) * a.1 / (c.1 - a.1) * b.1 / (c.1 - b.1);
        share = if is_reliable && parabola.is_finite() { parabola.clamp(tolerance, 1.0 - tolerance) } else { 0.5 };
    }
    a.0
}

/// Evaluates the continued fraction of the incomplete beta function by the method of Lentz.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let nonzero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    // It converges in about the square root of the larger parameter; the bound is far beyond that.
    for m in 1..20_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / nonzero(1.0 + term * d);
            c = nonzero(1.0 + term / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}
