//! Very many cases, put together into groups by lot.
//!
//! A test and an interval over 2,000 groups are as good as over all cases: sums of groups are symmetric if differences
//! are, their means spread and lean as those of cases do, and what is lost is one part in 2,000 of the degrees of
//! freedom. It must be by lot, because neighbouring cases are often of one sort.

use super::Rng;
use super::bootstrap::mean;
use std::borrow::Cow;

/// With more cases than this there are so many groups.
const GROUPS: usize = 2_000;

/// Returns what may be flipped in one piece: the differences, or the sums of groups of them.
pub(super) fn group_sums<'v>(values: &'v [f64], rng: &mut Rng) -> Cow<'v, [f64]> {
    match groups(values, rng) {
        None => Cow::Borrowed(values),
        Some(groups) => groups.into_iter().map(|group| group.sum).collect(),
    }
}

/// Returns what may be drawn in one piece: the values, or the means of groups of them. Their mean is that of all
/// values.
pub(super) fn group_means<'v>(values: &'v [f64], rng: &mut Rng) -> Cow<'v, [f64]> {
    let Some(groups) = groups(values, rng) else { return Cow::Borrowed(values) };
    let centre = mean(values);
    // Groups differ in size by one at most; what a group is off by is set against the usual size.
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
    for dealt in shuffled.chunks(GROUPS) {
        for (group, value) in groups.iter_mut().zip(dealt) {
            group.sum += value;
            group.size += 1.0;
        }
    }
    Some(groups)
}
