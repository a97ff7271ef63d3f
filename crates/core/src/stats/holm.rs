//! Correction for multiple tests.

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
