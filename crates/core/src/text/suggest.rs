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
    let mut limit = (length / 3).max(1);
    let wrong: Vec<char> = wrong.chars().flat_map(char::to_lowercase).collect();
    let mut rows = Rows::default();
    let mut letters = Vec::new();
    let mut near = None;
    for name in names {
        // Most names differ too much in length to be close, which is cheap to check.
        if name.chars().count().abs_diff(length) > limit {
            continue;
        }
        letters.clear();
        letters.extend(name.chars().flat_map(char::to_lowercase));
        if let Some(distance) = rows.distance(&wrong, &letters, limit) {
            near = Some(name);
            // From now on only what is closer counts.
            match distance.checked_sub(1) {
                Some(closer) => limit = closer,
                None => break,
            }
        }
    }
    near
}

/// Rows of the table that the edit distance is computed with, for one pair of words after another.
#[derive(Default)]
struct Rows {
    before_last: Vec<usize>,
    last: Vec<usize>,
    current: Vec<usize>,
}

impl Rows {
    /// Returns the edit distance, the number of letters to change, insert, delete or swap with their neighbour, unless it is
    /// greater than a limit.
    fn distance(&mut self, a: &[char], b: &[char], limit: usize) -> Option<usize> {
        if a.len().abs_diff(b.len()) > limit {
            return None;
        }
        // What is further from the diagonal than the limit is more than the limit, so it is not computed.
        let too_far = limit + 1;
        self.before_last.clear();
        self.last.clear();
        self.last.extend((0..=b.len()).map(|column| column.min(too_far)));
        for (row, x) in a.iter().enumerate() {
            self.current.clear();
            self.current.resize(b.len() + 1, too_far);
            set(&mut self.current, 0, (row + 1).min(too_far));
            let mut least_of_row = at(&self.current, 0);
            let first = row.saturating_sub(limit);
            for (column, y) in b.iter().enumerate().take(row + limit + 1).skip(first) {
                let replaced = at(&self.last, column) + usize::from(x != y);
                let mut least = replaced.min(at(&self.last, column + 1) + 1).min(at(&self.current, column) + 1);
                let swapped = row > 0 && column > 0 && a.get(row - 1) == Some(y) && b.get(column - 1) == Some(x);
                if swapped {
                    least = least.min(at(&self.before_last, column - 1) + 1);
                }
                set(&mut self.current, column + 1, least);
                least_of_row = least_of_row.min(least);
            }
            if least_of_row > limit {
                return None;
            }
            std::mem::swap(&mut self.before_last, &mut self.last);
            std::mem::swap(&mut self.last, &mut self.current);
        }
        self.last.last().copied().filter(|distance| *distance <= limit)
    }
}

fn at(row: &[usize], column: usize) -> usize {
    row.get(column).copied().unwrap_or(usize::MAX - 1)
}

fn set(row: &mut [usize], column: usize, distance: usize) {
    if let Some(place) = row.get_mut(column) {
        *place = distance;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("abc", "ab", 1),
            ("kitten", "sitting", 3),
            ("abcdef", "badcfe", 3),
            ("intention", "execution", 5),
        ] {
            let letters = |word: &str| word.chars().collect::<Vec<_>>();
            let mut rows = Rows::default();
            for limit in 0..9 {
                let found = rows.distance(&letters(a), &letters(b), limit);
                assert_eq!(found, (expected <= limit).then_some(expected), "{a} {b} {limit}");
            }
        }
    }

    #[test]
    fn the_closest_name_is_suggested() {
        assert_eq!(nearest("sayHelo", ["sayHello", "sayHola"]), Some("sayHello"));
        assert_eq!(nearest("Intger", ["Int", "Integer"]), Some("Integer"));
    }
}
