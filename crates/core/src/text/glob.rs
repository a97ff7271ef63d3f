//! Names with wildcards.

/// A name with wildcards: `*` stands for anything, `?` for one character.
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
    /// Reads a name with wildcards; every text is one.
    pub fn new(text: &str) -> Self {
        Self { parts: text.chars().collect() }
    }

    /// Tells whether a text matches from its start to its end.
    pub fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let (mut at, mut part) = (0, 0);
        // Where to go on if what follows the last `*` does not match: it takes one character more.
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
