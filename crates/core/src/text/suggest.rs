//! "Did you mean": the nearest of some names.

/// Returns the name that a misspelt one most likely means, if one is near enough.
///
/// ```
/// use patter_core::text::nearest;
/// assert_eq!(nearest("descripton", ["description", "model"]), Some("description"));
/// assert_eq!(nearest("xyz", ["description", "model"]), None);
/// ```
pub fn nearest<'n>(wrong: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let length = wrong.chars().count();
    let limit = (length / 3).max(1);
    let wrong = wrong.to_lowercase();
    // Names of quite another length cannot be near, and most are of another length.
    let candidates = names.into_iter().filter(|name| name.chars().count().abs_diff(length) <= limit);
    let near = candidates.map(|name| (distance(&wrong, &name.to_lowercase()), name));
    near.filter(|(distance, _)| *distance <= limit).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Counts the letters to change, add, remove or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (row, x) in a.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, y) in b.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX - 1);
            let replaced = at(&last, column) + usize::from(x != y);
            let mut least = replaced.min(at(&last, column + 1) + 1).min(at(&current, column) + 1);
            let swapped = row > 0 && column > 0 && a.get(row - 1) == Some(y) && b.get(column - 1) == Some(x);
            if swapped {
                least = least.min(at(&before_last, column - 1) + 1);
            }
            current.push(least);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_changes() {
        for (a, b, expected) in
            [("", "", 0), ("abc", "abc", 0), ("abc", "acb", 1), ("abc", "ab", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn prefers_the_nearest() {
        assert_eq!(nearest("sayHelo", ["sayHello", "sayHola"]), Some("sayHello"));
        assert_eq!(nearest("Intger", ["Int", "Integer"]), Some("Integer"));
    }
}
