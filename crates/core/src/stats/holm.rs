//! Several tests at once.

/// Returns p-values adjusted for all of them by the method of Holm (1979), in the order given.
///
/// Whoever calls what is at most `alpha` a finding is wrong about any of the tests with a probability of at most
/// `alpha`, however the tests depend on one another.
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
    order.sort_by_key(|&(place, _)| place);
    order.into_iter().map(|(_, p)| p).collect()
}
