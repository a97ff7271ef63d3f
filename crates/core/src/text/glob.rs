//! Names with wildcards.

/// A name with wildcards: `*` matches any text, `?` a single character.
///
/// ```
/// use patter_core::text::Glob;
/// assert!(Glob::new("get*ById").matches("getPetById"));
/// assert!(Glob::new("GET /pets/*").matches("GET /pets/{petId}/photos"));
/// assert!(!Glob::new("get?").matches("getPet"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    parts: Vec<char>,
}

impl Glob {
    /// Creates a glob from a text. Every text is a valid glob.
    pub fn new(text: &str) -> Self {
        Self { parts: text.chars().collect() }
    }

    /// Returns whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let mut at = 0;
        let mut part = 0;
        // Where to resume if the text after the last `*` does not match: the `*` then covers one more character.
        let mut retry: Option<(usize, usize)> = None;
        while let Some(character) = text.get(at) {
            match self.parts.get(part) {
                Some('*') => {
                    retry = Some((part, at));
                    part += 1;
                }
                Some(wanted) if *wanted == '?' || wanted == character => {
                    at += 1;
                    part += 1;
                }
                _ => {
                    let Some((star, from)) = retry else { return false };
                    retry = Some((star, from + 1));
                    (part, at) = (star + 1, from + 1);
                }
            }
        }
        self.parts.iter().skip(part).all(|rest| *rest == '*')
    }
}
