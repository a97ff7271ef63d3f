//! Random pooling of very many cases into groups.
//!
//! A test and an interval over 2,000 groups are as good as over all cases: sums of groups are symmetric if differences
//! are, their means have the variance and skewness of the cases', and only one part in 2,000 of the degrees of freedom is
//! lost. The groups must be random, because neighbouring cases are often similar.

use super::Rng;
use super::bootstrap::mean;
use std::borrow::Cow;

/// The number of groups, and the number of cases beyond which they are used.
const GROUPS: usize = 2_000;

/// Returns the values to flip: the differences, or the sums of groups of them.
pub(super) fn group_sums<'v>(values: &'v [f64], rng: &mut Rng) -> Cow<'v, [f64]> {
    match groups(values, rng) {
        None => Cow::Borrowed(values),
        Some(groups) => groups.into_iter().map(|group| group.sum).collect(),
    }
}

/// Returns the values to resample: the values, or the means of groups of them, which have the same overall mean.
pub(super) fn group_means<'v>(values: &'v [f64], rng: &mut Rng) -> Cow<'v, [f64]> {
    let Some(groups) = groups(values, rng) else { return Cow::Borrowed(values) };
    let centre = mean(values);
    // Group sizes differ by at most one; deviations are scaled to the average size.
    let size = values.len() as f64 / groups.len() as f64;
    groups.into_iter().map(|group| centre + (group.sum - group.size * centre) / size).collect()
}

#[derive(Clone)]
struct Group {
    sum: f64,
    size: f64,
}

fn groups(values: &[f64], rng: &mut Rng) -> Option<Vec<Group>> {
    if values.len() <= GROUPS {
        return None;
    }
    let mut shuffled = values.to_vec();
    for last in (1..shuffled.len()).rev() {
        shuffled.swap(last, rng.below(last + 1));
    }
    let mut groups = vec![Group { sum: 0.0, size: 0.0 }; GROUPS];
    for round in shuffled.chunks(GROUPS) {
        for (group, value) in groups.iter_mut().zip(round) {
            group.sum += value;
            group.size += 1.0;
        }
    }
    Some(groups)
}
