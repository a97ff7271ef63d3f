//! Suggestions for misspelt names: "did you mean …?".

/// Returns the name closest to a misspelt one, if any is close enough.
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
    // Most names differ too much in length to be close, which is cheap to check.
    let candidates = names.into_iter().filter(|name| name.chars().count().abs_diff(length) <= limit);
    let near = candidates.map(|name| (distance(&wrong, &name.to_lowercase()), name));
    near.filter(|(distance, _)| *distance <= limit).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Returns the edit distance: the number of letters to change, insert, delete or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
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
    fn distance_counts_edits() {
        for (a, b, expected) in
            [("", "", 0), ("abc", "abc", 0), ("abc", "acb", 1), ("abc", "ab", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn the_closest_name_is_suggested() {
        assert_eq!(nearest("sayHelo", ["sayHello", "sayHola"]), Some("sayHello"));
        assert_eq!(nearest("Intger", ["Int", "Integer"]), Some("Integer"));
    }
}
