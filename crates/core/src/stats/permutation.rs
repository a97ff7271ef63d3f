//! The test of paired differences: if the arms are alike, each difference could as well have the other sign.

use super::Rng;
use serde::{Deserialize, Serialize};

/// With so many differences that are not 0, all signs are tried; with more, signs are drawn.
const ALL_SIGNS: usize = 16;
/// So much work is done at most for sums on a lattice.
const LATTICE_WORK: f64 = 2e7;

/// A p-value, and how it was found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SignFlip {
    /// How probable it is that signs by chance alone give a sum at least as far from 0.
    pub p: f64,
    /// Whether all signs are accounted for, or so many that were drawn.
    pub drawn: Option<usize>,
}

/// Tests whether differences are symmetric about 0 by their sum under all signs (Fisher 1935), two-sided.
///
/// Dividing the sum by its standard error would change nothing, since the squares are the same whatever the signs.
/// `unit` is a number of which all differences are multiples, where there is one: then the distribution is known in
/// full also for many differences, and with differences of 1 this is the exact test of McNemar. Otherwise, beyond 16
/// differences that are not 0, signs are drawn `resamples` times, and what was seen counts as one of the draws (Phipson
/// and Smyth 2010), so that the p-value is valid and never 0.
///
/// ```
/// use patter_core::stats::{Rng, sign_flip};
/// let test = sign_flip(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], None, 10_000, &mut Rng::new(1));
/// assert_eq!(test.p, 2.0 / 64.0);
/// assert_eq!(test.drawn, None);
/// ```
pub fn sign_flip(differences: &[f64], unit: Option<f64>, resamples: usize, rng: &mut Rng) -> SignFlip {
    let sizes: Vec<f64> = differences.iter().map(|difference| difference.abs()).filter(|&size| size != 0.0).collect();
    let total: f64 = sizes.iter().sum();
    // Sums that are equal but for rounding are equal.
    let seen = differences.iter().sum::<f64>().abs() - total * 1e-12;
    if sizes.is_empty() || seen <= 0.0 {
        return SignFlip { p: 1.0, drawn: None };
    }
    if sizes.len() <= ALL_SIGNS {
        return SignFlip { p: all_signs(&sizes, seen), drawn: None };
    }
    if let Some(p) = unit.and_then(|unit| on_lattice(&sizes, unit, seen)) {
        return SignFlip { p, drawn: None };
    }
    let extreme = (0..resamples).filter(|_| drawn_sum(&sizes, rng).abs() >= seen).count();
    SignFlip { p: (extreme + 1) as f64 / (resamples + 1) as f64, drawn: Some(resamples) }
}

fn all_signs(sizes: &[f64], seen: f64) -> f64 {
    let mut sums = vec![0.0];
    for size in sizes {
        sums = sums.iter().flat_map(|sum| [sum + size, sum - size]).collect();
    }
    sums.iter().filter(|sum| sum.abs() >= seen).count() as f64 / sums.len() as f64
}

/// Returns the p-value from the distribution of all sums, step by step, where there are not too many.
fn on_lattice(sizes: &[f64], unit: f64, seen: f64) -> Option<f64> {
    let steps: Vec<usize> = sizes.iter().map(|size| (size / unit).round() as usize).collect();
    let exact =
        sizes.iter().zip(&steps).all(|(size, &step)| step > 0 && (size - step as f64 * unit).abs() < 1e-9 * unit);
    let width = steps.iter().map(|&step| step as f64).sum::<f64>() * 2.0 + 1.0;
    if !exact || width * steps.len() as f64 > LATTICE_WORK {
        return None;
    }
    // Each difference is added or not: the sum with signs is twice that, less the total.
    let total: usize = steps.iter().sum();
    let mut chances = vec![1.0];
    for &step in &steps {
        let mut next = vec![0.0; chances.len() + step];
        for (to, from) in next.iter_mut().zip(&chances) {
            *to += from / 2.0;
        }
        for (to, from) in next.iter_mut().skip(step).zip(&chances) {
            *to += from / 2.0;
        }
        chances = next;
    }
    let far = |added: usize| (2.0 * added as f64 - total as f64).abs() * unit >= seen;
    Some(chances.iter().enumerate().filter(|&(added, _)| far(added)).map(|(_, chance)| chance).sum::<f64>().min(1.0))
}

fn drawn_sum(sizes: &[f64], rng: &mut Rng) -> f64 {
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
