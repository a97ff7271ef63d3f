//! The words of a message, and their meaning.

/// The maximum number of characters of a message to examine, far beyond what people type.
const MAX_CHARACTERS: usize = 10_000;

/// A word or a quoted text of a message.
#[derive(Debug, Clone)]
pub(super) struct Word<'t> {
    /// The word without surrounding punctuation.
    pub(super) text: &'t str,
    /// The normalized word for comparison; empty for a quoted text.
    pub(super) stem: String,
    /// The text between the previous word and this one.
    pub(super) gap: &'t str,
    /// The byte range in the message, including quotes.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) is_quoted: bool,
}

impl Word<'_> {
    /// Returns whether a sentence starts here, so that a capital letter is not significant.
    pub(super) fn starts_sentence(&self) -> bool {
        self.start == 0 || self.gap.contains(['.', '!', '?', '\n', ';'])
    }

    /// Returns whether another clause starts here.
    pub(super) fn starts_clause(&self) -> bool {
        self.starts_sentence() || self.gap.contains([',', ':']) || matches!(self.stem.as_str(), "and" | "then" | "or")
    }

    /// Returns whether the word is capitalised like a name.
    pub(super) fn is_capitalised(&self) -> bool {
        let first = self.text.chars().next();
        !self.is_quoted && first.is_some_and(|c| c.is_alphabetic() && !c.is_lowercase()) && self.text != "I"
    }

    /// Returns whether the word looks like a value rather than a word of a sentence.
    pub(super) fn looks_like_a_value(&self) -> bool {
        self.is_quoted || self.is_capitalised() || self.text.contains(|c: char| c.is_numeric() || "@/_.~\\".contains(c))
    }
}

/// Splits a message into words.
pub(super) fn words(message: &str) -> Vec<Word<'_>> {
    let end = message.char_indices().nth(MAX_CHARACTERS).map_or(message.len(), |(at, _)| at);
    let message = message.get(..end).unwrap_or_default();
    let mut words = Vec::new();
    let mut from = 0;
    for (open, close, inner) in quotes(message) {
        plain_words(message, from, open, &mut words);
        let gap_from = words.last().map_or(0, |word: &Word<'_>| word.end);
        let gap = message.get(gap_from..open).unwrap_or_default();
        words.push(Word { text: inner, stem: String::new(), gap, start: open, end: close, is_quoted: true });
        from = close;
    }
    plain_words(message, from, message.len(), &mut words);
    join_greetings(&mut words);
    words
}

/// Finds quoted texts: start, end and content.
fn quotes(message: &str) -> Vec<(usize, usize, &str)> {
    let mut found = Vec::new();
    let mut from = 0;
    let mut before = ' ';
    for (at, c) in message.char_indices() {
        let previous = std::mem::replace(&mut before, c);
        if at < from {
            continue;
        }
        let close = match c {
            '"' | '`' => c,
            '“' | '„' => '”',
            '«' => '»',
            // Between letters, it is an apostrophe.
            '\'' if !previous.is_alphanumeric() => '\'',
            '‘' => '’',
            _ => continue,
        };
        let start = at + c.len_utf8();
        let rest = message.get(start..).unwrap_or_default();
        let ends = rest.match_indices(close).map(|(end, _)| end).find(|end| {
            let after = rest.get(end + close.len_utf8()..).and_then(|after| after.chars().next());
            close == c && c != '\'' || after.is_none_or(|after| !after.is_alphanumeric())
        });
        if let Some((end, inner)) = ends.and_then(|end| Some((end, rest.get(..end)?))) {
            from = start + end + close.len_utf8();
            found.push((at, from, inner));
        }
    }
    found
}

fn plain_words<'t>(message: &'t str, from: usize, to: usize, words: &mut Vec<Word<'t>>) {
    let part = message.get(from..to).unwrap_or_default();
    for piece in part.split(char::is_whitespace).flat_map(split_labels) {
        let text = trim_punctuation(piece);
        if text.is_empty() {
            continue;
        }
        // The piece is a slice of the message, so the difference of the addresses is its offset.
        let start = text.as_ptr() as usize - message.as_ptr() as usize;
        let gap_from = words.last().map_or(0, |word| word.end);
        let gap = message.get(gap_from..start).unwrap_or_default();
        words.push(Word { text, stem: stem(text), gap, start, end: start + text.len(), is_quoted: false });
    }
}

/// Splits `city=Paris` and `name:Bob`, but not `https://…` or `12:30`.
fn split_labels(piece: &str) -> impl Iterator<Item = &str> {
    let is_address = piece.contains("://");
    let is_time = piece.split(':').all(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    let mark = move |c: char| !is_address && (c == '=' || c == ':' && !is_time || c == ',' && !is_number(piece));
    piece.split(mark)
}

fn is_number(piece: &str) -> bool {
    parse_number(piece.trim_end_matches([',', '.', '?', '!', ';'])).is_some()
}

fn trim_punctuation(piece: &str) -> &str {
    let text = piece.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '/');
    let mut text = text.trim_start_matches(|c: char| !c.is_alphanumeric() && !"+-/~.".contains(c));
    // A sign is part of a number, and a dot or a slash is part of a path.
    while let Some(rest) = text.strip_prefix(['+', '-', '.', '~', '/']) {
        let belongs = match text.chars().next() {
            Some('+' | '-') => rest.starts_with(|c: char| c.is_ascii_digit()),
            Some('.') => rest.starts_with(|c: char| c.is_alphanumeric() || c == '/') || rest.starts_with("./"),
            _ => true,
        };
        if belongs {
            break;
        }
        text = rest;
    }
    text
}

/// Treats "good morning" as a greeting and "good night" as a goodbye.
fn join_greetings(words: &mut [Word<'_>]) {
    for at in 1..words.len() {
        if words.get(at - 1).is_some_and(|word| word.stem == "good") {
            let Some(word) = words.get_mut(at) else { continue };
            match word.stem.as_str() {
                "morn" | "even" | "afternoon" | "day" => word.stem = "hello".to_owned(),
                "night" => word.stem = "goodbye".to_owned(),
                _ => {}
            }
        }
    }
}

/// Splits the name of a tool or a parameter into words: `sayHello`, `say_hello` and `say-hello` all have two.
pub(super) fn name_words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut before = ' ';
    let mut characters = name.chars().peekable();
    while let Some(c) = characters.next() {
        let next_is_lower = characters.peek().is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && (before.is_lowercase() || before.is_uppercase() && next_is_lower) {
            spaced.push(' ');
        }
        spaced.push(if c.is_alphanumeric() { c } else { ' ' });
        before = c;
    }
    spaced.split_whitespace().map(stem).collect()
}

/// Normalizes a word for comparison: removes case and common endings, and unifies synonyms.
pub(super) fn stem(word: &str) -> String {
    let lower = word.to_lowercase().replace('’', "'");
    let lower = lower.strip_suffix("'s").unwrap_or(&lower);
    let synonym = match lower {
        "hello" | "hi" | "hey" | "howdy" | "hallo" | "greet" | "greets" | "greeting" | "greetings" | "welcome" => {
            "hello"
        }
        "bye" | "goodbye" | "bye-bye" | "good-bye" | "farewell" => "goodbye",
        "mail" | "mails" | "e-mail" | "e-mails" | "email" | "emails" => "email",
        "plus" | "sum" => "add",
        "remove" | "removes" => "delet",
        "this" | "is" | "his" | "was" | "has" | "does" | "us" | "yes" | "bus" | "gas" => lower,
        _ => "",
    };
    if !synonym.is_empty() {
        return synonym.to_owned();
    }
    if lower.starts_with("calculat") || lower.starts_with("comput") {
        return "calculat".to_owned();
    }
    without_ending(lower)
}

fn without_ending(lower: &str) -> String {
    let long = |stem: &&str| stem.chars().count() > 2;
    if let Some(start) = lower.strip_suffix("ies").filter(long) {
        return format!("{start}y");
    }
    let mut stem = lower;
    if !lower.ends_with("ss") && !lower.ends_with("us") {
        stem = lower.strip_suffix('s').filter(long).unwrap_or(lower);
    }
    for ending in ["ing", "ed"] {
        if let Some(start) = stem.strip_suffix(ending).filter(long) {
            let mut characters = start.chars().rev();
            let is_double = characters.next() == characters.next() && !start.ends_with(['l', 's']);
            stem = if is_double { start.get(..start.len() - 1).unwrap_or(start) } else { start };
            break;
        }
    }
    stem.strip_suffix('e').filter(long).unwrap_or(stem).to_owned()
}

/// Parses a number: `20`, `-3.5`, `1,000`, `two`.
pub(super) fn parse_number(text: &str) -> Option<serde_json::Number> {
    const WORDS: [&str; 13] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    if let Some(value) = WORDS.iter().position(|word| text.eq_ignore_ascii_case(word)) {
        return Some(value.into());
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) || !digits.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut groups = digits.split('.').next().unwrap_or_default().split(',').skip(1);
    let plain = text.strip_prefix('+').unwrap_or(text).replace(',', "");
    if !groups.all(|group| group.len() == 3) || plain.contains(|c: char| !c.is_ascii_digit() && c != '.' && c != '-') {
        return None;
    }
    match plain.parse::<i64>() {
        Ok(integer) => Some(integer.into()),
        Err(_) => plain.parse().ok().filter(|value: &f64| value.is_finite()).and_then(serde_json::Number::from_f64),
    }
}

/// Parses a yes or no.
pub(super) fn parse_bool(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "yes" | "true" | "on" | "y" => Some(true),
        "no" | "false" | "off" | "n" => Some(false),
        _ => None,
    }
}

/// Returns whether a word has only a grammatical function.
pub(super) fn is_function_word(stem: &str) -> bool {
    const STEMS: &str = " a about again all also am an and any are as at be been but by can could did do does don't for from \
        had has hav he her him his how i i'd i'll i'm if in into is it its just let lik me my no not now of off on or our pleas \
        she should so som than thank that the their them then ther thes they this thos to too up us very want was we wer \
        what when wher which who whom whos why will with would yes you your ";
    is_listed(STEMS, stem)
}

/// Returns whether a word is too generic to identify a tool.
pub(super) fn is_generic(stem: &str) -> bool {
    const STEMS: &str = " ask call chang check creat current find first friendly get giv given good help id item last list \
        look mak nam need new next number one part result retriev return run say see send set show tell text tool updat us \
        use valu ";
    is_function_word(stem) || is_listed(STEMS, stem)
}

fn is_listed(list: &str, stem: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == stem)
}
