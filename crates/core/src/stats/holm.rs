//! Correction for multiple tests.

/// Until the primary metric is found to differ, p-values of the others are multiplied by this.
const PENALTY: f64 = 5.0;

/// Adjusts p-values for multiple testing by the method of Holm (1979). Keeps their order.
///
/// If adjusted p-values of at most `alpha` are called significant, the probability of any false positive is at most
/// `alpha`, however the tests depend on each other.
///
/// ```
/// use patter_core::stats::holm;
/// assert_eq!(holm(&[0.01, 0.5, 0.02]), [0.03, 0.5, 0.04]);
/// ```
pub fn holm(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> = ps.iter().copied().enumerate().collect();
    order.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut highest: f64 = 0.0;
    for (rank, (_, p)) in order.iter_mut().enumerate() {
        highest = highest.max(*p * (ps.len() - rank) as f64).min(1.0);
        *p = highest;
    }
    order.sort_by_key(|&(index, _)| index);
    order.into_iter().map(|(_, p)| p).collect()
}

/// Adjusts the p-values of a primary metric and of the others, which follow it.
///
/// The primary metric is tested first, at the full level `alpha`: its p-values, one for each arm, are adjusted by [`holm`]
/// among themselves, and do not pay for the other metrics. Those are adjusted by [`holm`] among themselves, too, and count
/// at the full level if the primary metric differs under every arm. Otherwise they count at a fifth of it, so that a
/// difference in latency or cost can be found where all answers are equally good.
///
/// The probability of a false positive is at most `alpha` for the primary metric, and at most `1.2·alpha` for all metrics
/// together. If the primary metric is equal under some arm, the others count at the full level only after a false positive
/// there, and otherwise add at most a fifth of the level. If it differs under every arm, only the others can be wrong.
///
/// ```
/// use patter_core::stats::gatekeep;
/// // The primary metric differs, so the others are adjusted for each other only.
/// assert_eq!(gatekeep(&[0.03], &[0.01, 0.4]), (vec![0.03], vec![0.03, 0.4]));
/// // It does not, so they need stronger evidence.
/// assert_eq!(gatekeep(&[0.3], &[0.001, 0.4]), (vec![0.3], vec![0.01, 0.4]));
/// ```
pub fn gatekeep(primary: &[f64], others: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let primary = holm(primary);
    let gate = primary.iter().copied().reduce(f64::max).unwrap_or(1.0);
    let others = holm(others).into_iter().map(|p| p.max(gate).min((p * PENALTY).min(1.0))).collect();
    (primary, others)
}

/// Returns the strictest level of [`gatekeep`] for one of the other metrics.
pub(super) fn strictest_level(alpha: f64, others: usize) -> f64 {
    alpha / PENALTY / others.max(1) as f64
}
