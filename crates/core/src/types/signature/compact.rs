//! Types written in brackets and braces: `[Text]`, `{ name: Text, age: Maybe Int }`.
//!
//! Such a type is a label, so it is written between backticks: ``(tags::`[Text]`)``. It means the same as
//! `Array { elementType: "Text" }` and `Object { fields: { … } }`.

/// The maximum nesting of brackets and braces, so that reading them may recurse.
const MAX_DEPTH: usize = 32;

/// A type as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CompactType {
    /// A name, such as `Text`.
    Named(String),
    /// `Maybe T`.
    Maybe(Box<CompactType>),
    /// `[T]`.
    Array(Box<CompactType>),
    /// `{ a: T, b: T }`.
    Object(Vec<(String, CompactType)>),
}

/// Returns whether a type is written in brackets or braces.
pub(super) fn is_compact(name: &str) -> bool {
    name.starts_with(['[', '{'])
}

impl CompactType {
    /// Parses a type, or returns what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader { rest: text.trim_start() };
        let ty = reader.ty(0)?;
        match reader.rest.chars().next() {
            None => Ok(ty),
            Some(extra) => Err(format!("`{extra}` after the end of the type")),
        }
    }
}

struct Reader<'t> {
    /// What is left of the text, without leading white space.
    rest: &'t str,
}

impl Reader<'_> {
    fn ty(&mut self, depth: usize) -> Result<CompactType, String> {
        if depth > MAX_DEPTH {
            return Err(format!("types are nested more than {MAX_DEPTH} levels deep"));
        }
        if self.accept("[") {
            let item = self.ty(depth + 1)?;
            return self.expect("]").map(|()| CompactType::Array(Box::new(item)));
        }
        if self.accept("{") {
            return self.fields(depth + 1).map(CompactType::Object);
        }
        let name = self.word()?;
        if name == "Maybe" && !self.rest.is_empty() && !self.rest.starts_with([']', '}', ',']) {
            return Ok(CompactType::Maybe(Box::new(self.ty(depth + 1)?)));
        }
        Ok(CompactType::Named(name))
    }

    fn fields(&mut self, depth: usize) -> Result<Vec<(String, CompactType)>, String> {
        let mut fields = Vec::new();
        if self.accept("}") {
            return Ok(fields);
        }
        loop {
            let name = match self.rest.chars().next() {
                Some(quote @ ('"' | '\'')) => self.quoted(quote)?,
                _ => self.word()?,
            };
            self.expect(":")?;
            // Both colons mean the same.
            self.accept(":");
            fields.push((name, self.ty(depth)?));
            if !self.accept(",") {
                return self.expect("}").map(|()| fields);
            }
        }
    }

    /// Reads a name: everything up to white space or punctuation.
    fn word(&mut self) -> Result<String, String> {
        let is_end = |c: char| c.is_whitespace() || matches!(c, '[' | ']' | '{' | '}' | ',' | ':' | '"' | '\'');
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return Err(match self.rest.chars().next() {
                Some(found) => format!("a name is missing before `{found}`"),
                None => "a name is missing at the end".to_owned(),
            });
        }
        self.rest = rest.trim_start();
        Ok(word.to_owned())
    }

    fn quoted(&mut self, quote: char) -> Result<String, String> {
        let inner = self.rest.strip_prefix(quote).unwrap_or(self.rest);
        let Some((name, rest)) = inner.split_once(quote) else { return Err("a quote is not closed".to_owned()) };
        self.rest = rest.trim_start();
        Ok(name.to_owned())
    }

    fn accept(&mut self, mark: &str) -> bool {
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, mark: &str) -> Result<(), String> {
        if self.accept(mark) { Ok(()) } else { Err(format!("`{mark}` is missing")) }
    }
}
