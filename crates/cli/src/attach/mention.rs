//! Files that a message mentions: `@photo.png`, or `@"my photo.png"`.

use std::path::PathBuf;

/// A word of a message that starts with `@`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    /// What follows the `@`, without quotes.
    pub(crate) name: String,
    /// The path that it may be.
    pub(crate) path: PathBuf,
}

impl Mention {
    /// Returns whether it was probably meant to be a file, although there is none.
    pub(crate) fn looks_like_path(&self) -> bool {
        let has_ending = self
            .path
            .extension()
            .is_some_and(|ending| (1..=4).contains(&ending.len()) && ending.to_str().is_some_and(str::is_ascii));
        self.name.contains('/') || has_ending
    }
}

/// Returns the words of a text that start with `@`. Punctuation after a name belongs to the sentence, unless there is a file
/// of the whole name. `home` is the folder that `~` stands for.
pub(crate) fn mentions(text: &str, home: Option<&str>) -> Vec<Mention> {
    let mut mentions: Vec<Mention> = Vec::new();
    let mut previous = ' ';
    for (index, character) in text.char_indices() {
        // The `@` of an address is inside of a word.
        let starts = character == '@' && (previous.is_whitespace() || matches!(previous, '(' | '"' | '\''));
        previous = character;
        if !starts {
            continue;
        }
        let rest = text.get(index + 1..).unwrap_or_default();
        let name = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => whole_name(rest, home),
        };
        let mention = Mention { name: name.to_owned(), path: path(name, home) };
        if !name.is_empty() && !mentions.contains(&mention) {
            mentions.push(mention);
        }
    }
    mentions
}

/// Returns the name at the start of a text.
fn whole_name<'t>(text: &'t str, home: Option<&str>) -> &'t str {
    let word = text.split(char::is_whitespace).next().unwrap_or_default();
    let trimmed = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'']);
    if path(word, home).is_file() { word } else { trimmed }
}

fn path(name: &str, home: Option<&str>) -> PathBuf {
    match (name.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_an_at_sign_are_mentions() {
        let names = |text: &str| {
            let found = mentions(text, Some("/home/ada"));
            found.into_iter().map(|mention| mention.path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names("What is @photo.png?"), ["photo.png"]);
        assert_eq!(names("@a/b.pdf, (@c.md) and @a/b.pdf."), ["a/b.pdf", "c.md"]);
        assert_eq!(names("@\"my photo.png\" is nice"), ["my photo.png"]);
        assert_eq!(names("@~/x.png"), ["/home/ada/x.png"]);
        assert_eq!(names("mail ada@example.com, an @ sign, @"), Vec::<String>::new());
    }

    #[test]
    fn names_without_a_file_may_be_meant_as_paths() {
        let looks = |name: &str| mentions(&format!("@{name}"), None).iter().any(Mention::looks_like_path);
        assert!(looks("photo.png") && looks("src/main") && looks("./x"));
        assert!(!looks("ada") && !looks("everyone!"));
    }
}
