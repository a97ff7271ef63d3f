//! The sign-flip test of paired differences: if the arms are alike, each difference is equally likely to have either sign.

use super::Rng;
use serde::{Deserialize, Serialize};

/// The maximum number of nonzero differences for which all signs are enumerated. With more, signs are drawn.
const MAX_ENUMERATED: usize = 16;
/// The maximum number of steps for the distribution of sums on a lattice.
const MAX_LATTICE_STEPS: f64 = 2e7;

/// The result of a sign-flip test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SignFlipResult {
    /// The probability that random signs give a sum at least as far from 0.
    pub p: f64,
    /// The number of random draws; `None` if all signs were enumerated.
    pub drawn: Option<usize>,
}

/// Tests whether differences are symmetric about 0, by their sum under all signs (Fisher 1935), two-sided.
///
/// Dividing the sum by its standard error would change nothing, since the squares do not depend on the signs. `unit` is a
/// number of which all differences are multiples, if there is one: then the distribution is computed exactly for many
/// differences as well, and with differences of 1 this is the exact McNemar test. Otherwise, with more than 16 nonzero
/// differences, signs are drawn `resamples` times, and the observed signs count as one of the draws (Phipson and Smyth
/// 2010), so that the p-value is valid and never 0.
///
/// ```
/// use patter_core::stats::{Rng, sign_flip};
/// let result = sign_flip(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], None, 10_000, &mut Rng::new(1));
/// assert_eq!(result.p, 2.0 / 64.0);
/// assert_eq!(result.drawn, None);
/// ```
pub fn sign_flip(differences: &[f64], unit: Option<f64>, resamples: usize, rng: &mut Rng) -> SignFlipResult {
    let sizes: Vec<f64> = differences.iter().map(|difference| difference.abs()).filter(|&size| size != 0.0).collect();
    let total: f64 = sizes.iter().sum();
    // The tolerance treats sums that differ only by rounding as equal.
    let observed = differences.iter().sum::<f64>().abs() - total * 1e-12;
    if sizes.is_empty() || observed <= 0.0 {
        return SignFlipResult { p: 1.0, drawn: None };
    }
    if sizes.len() <= MAX_ENUMERATED {
        return SignFlipResult { p: enumerate_signs(&sizes, observed), drawn: None };
    }
    if let Some(p) = unit.and_then(|unit| lattice_p(&sizes, unit, observed)) {
        return SignFlipResult { p, drawn: None };
    }
    let extreme = (0..resamples).filter(|_| random_sum(&sizes, rng).abs() >= observed).count();
    SignFlipResult { p: (extreme + 1) as f64 / (resamples + 1) as f64, drawn: Some(resamples) }
}

fn enumerate_signs(sizes: &[f64], observed: f64) -> f64 {
    let mut sums = vec![0.0];
    for size in sizes {
        sums = sums.iter().flat_map(|sum| [sum + size, sum - size]).collect();
    }
    sums.iter().filter(|sum| sum.abs() >= observed).count() as f64 / sums.len() as f64
}

/// Returns the p-value from the exact distribution of the sums, unless there are too many.
fn lattice_p(sizes: &[f64], unit: f64, observed: f64) -> Option<f64> {
    let steps: Vec<usize> = sizes.iter().map(|size| (size / unit).round() as usize).collect();
    let is_exact =
        sizes.iter().zip(&steps).all(|(size, &step)| step > 0 && (size - step as f64 * unit).abs() < 1e-9 * unit);
    let width = steps.iter().map(|&step| step as f64).sum::<f64>() * 2.0 + 1.0;
    if !is_exact || width * steps.len() as f64 > MAX_LATTICE_STEPS {
        return None;
    }
    // Each difference is either added or not: the signed sum is twice that, minus the total.
    let total: usize = steps.iter().sum();
    let mut probabilities = vec![1.0];
    for &step in &steps {
        let mut next = vec![0.0; probabilities.len() + step];
        for (to, from) in next.iter_mut().zip(&probabilities) {
            *to += from / 2.0;
        }
        for (to, from) in next.iter_mut().skip(step).zip(&probabilities) {
            *to += from / 2.0;
        }
        probabilities = next;
    }
    let is_extreme = |added: usize| (2.0 * added as f64 - total as f64).abs() * unit >= observed;
    Some(
        probabilities
            .iter()
            .enumerate()
            .filter(|&(added, _)| is_extreme(added))
            .map(|(_, probability)| probability)
            .sum::<f64>()
            .min(1.0),
    )
}

fn random_sum(sizes: &[f64], rng: &mut Rng) -> f64 {
    let mut sum = 0.0;
    for group in sizes.chunks(64) {
        let mut bits = rng.next_u64();
        for &size in group {
            sum += if bits & 1 == 1 { size } else { -size };
            bits >>= 1;
        }
    }
    sum
}
