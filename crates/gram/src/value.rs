//! Typed values.

use crate::number::{Decimal, Integer, Number};
use crate::{Kind, Span, Syntax, dedent, quote, quote_name, text};
use std::borrow::Cow;
use std::fmt;

/// The value of a property, independent of its spelling: quoting, number bases and trivia are not part of it.
///
/// [`fmt::Display`] writes it as gram.
///
/// ```
/// use patter_gram::{Value, parse};
/// let (tree, _) = parse("({a: 'x', b: 0xFF, c: [1..5, 3km, date`2024-04-05`]})");
/// let node = tree.patterns().next().unwrap();
/// assert_eq!(node.value("a"), Some(Value::String("x".into())));
/// assert_eq!(node.value("b"), Some(Value::from(255)));
/// assert_eq!(node.value("c").unwrap().to_string(), "[1..5, 3km, date`2024-04-05`]");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Text, quoted or fenced. The content of a fence is raw; see [`Syntax::read_text`].
    String(String),
    /// Text with a tag that says what it is, such as ``date`2024-04-05` ``.
    Tagged {
        /// The tag.
        tag: String,
        /// The text.
        text: String,
    },
    /// A whole number of any size.
    Integer(Integer),
    /// A decimal fraction, exact.
    Decimal(Decimal),
    /// A whole number with a unit.
    Measurement {
        /// The number.
        amount: Integer,
        /// The unit.
        unit: String,
    },
    /// A range, closed or open on one side.
    Range {
        /// The lower bound; `None` for `...5`.
        lower: Option<Number>,
        /// The upper bound; `None` for `1...`.
        upper: Option<Number>,
    },
    /// `true` or `false`.
    Boolean(bool),
    /// A bare word.
    Symbol(String),
    /// Values in order.
    Array(Vec<Value>),
    /// Keys and values in order; keys may repeat.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// Reads the value of a node; `None` if it is not a value or is malformed.
    pub fn read(syntax: Syntax<'_>) -> Option<Value> {
        Some(match syntax.kind() {
            Kind::String => Value::String(syntax.unquoted().into_owned()),
            Kind::Fence => Value::String(syntax.fence_content()?.to_owned()),
            Kind::Tagged => {
                let text = syntax.tagged_content()?.into_owned();
                Value::Tagged { tag: syntax.child(Kind::Tag)?.text().to_owned(), text }
            }
            Kind::Integer | Kind::Hexadecimal | Kind::Octal => Value::Integer(Integer::parse(syntax.text())?),
            Kind::Decimal => Value::Decimal(Decimal::parse(syntax.text())?),
            Kind::Measurement => {
                let Number::Measurement { amount, unit } = Number::read(syntax)? else { return None };
                Value::Measurement { amount, unit }
            }
            Kind::Range => {
                let is_lower = |bound: &Syntax<'_>| bound.span().start == syntax.span().start;
                let bound = |wanted: bool| syntax.children().find(|bound| is_lower(bound) == wanted);
                Value::Range { lower: bound(true).and_then(Number::read), upper: bound(false).and_then(Number::read) }
            }
            Kind::Boolean => Value::Boolean(syntax.text() == "true"),
            Kind::Symbol => Value::Symbol(syntax.text().to_owned()),
            Kind::Array => Value::Array(syntax.children().map(Value::read).collect::<Option<_>>()?),
            Kind::Map => Value::Map(
                syntax
                    .properties()
                    .map(|property| Some((property.key().into_owned(), Value::read(property.value()?)?)))
                    .collect::<Option<_>>()?,
            ),
            _ => return None,
        })
    }

    /// Parses a value; `None` unless the text is exactly one value.
    ///
    /// ```
    /// use patter_gram::Value;
    /// assert_eq!(Value::parse("42"), Some(Value::from(42)));
    /// assert_eq!(Value::parse("two words"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Value> {
        let wrapped = format!("{{v: {text}\n}}");
        let (tree, diagnostics) = crate::parse(&wrapped);
        let record = tree.record()?;
        let mut properties = record.properties();
        let (Some(only), None) = (properties.next(), properties.next()) else { return None };
        let is_whole = diagnostics.is_empty() && record.span().end as usize == wrapped.len();
        Value::read(only.value()?).filter(|_| is_whole)
    }

    /// Returns the text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = self { Some(text) } else { None }
    }

    /// Returns the value of a key, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let Value::Map(entries) = self else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Returns the name of the value's type, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::String(_) => "string",
            Value::Tagged { .. } => "tagged string",
            Value::Integer(_) => "integer",
            Value::Decimal(_) => "decimal",
            Value::Measurement { .. } => "measurement",
            Value::Range { .. } => "range",
            Value::Boolean(_) => "boolean",
            Value::Symbol(_) => "symbol",
            Value::Array(_) => "array",
            Value::Map(_) => "map",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::String(text) => f.write_str(&quote(text)),
            // Before a backtick these two words are booleans; after a fence they are tags.
            Value::Tagged { tag, text } if tag == "true" || tag == "false" => write!(f, "```{tag}\n{text}```"),
            Value::Tagged { tag, text } => write!(f, "{tag}{}", text::quote_with(text, '`')),
            Value::Integer(integer) => integer.fmt(f),
            Value::Decimal(decimal) => decimal.fmt(f),
            Value::Measurement { amount, unit } => write!(f, "{amount}{unit}"),
            Value::Range { lower: Some(lower), upper: Some(upper) } => write!(f, "{lower}..{upper}"),
            Value::Range { lower: Some(lower), upper: None } => write!(f, "{lower}..."),
            Value::Range { lower: None, upper: Some(upper) } => write!(f, "...{upper}"),
            Value::Range { lower: None, upper: None } => f.write_str("..."),
            Value::Boolean(boolean) => boolean.fmt(f),
            Value::Symbol(symbol) => f.write_str(symbol),
            Value::Array(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Value::Map(entries) if entries.is_empty() => f.write_str("{}"),
            Value::Map(entries) => {
                f.write_str("{ ")?;
                for (index, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{}: {value}", if index > 0 { ", " } else { "" }, quote_name(key))?;
                }
                f.write_str(" }")
            }
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(text.to_owned())
    }
}

impl From<i64> for Value {
    fn from(integer: i64) -> Self {
        Value::Integer(Integer::from(i128::from(integer)))
    }
}

impl From<bool> for Value {
    fn from(boolean: bool) -> Self {
        Value::Boolean(boolean)
    }
}

/// Text and properties of nodes.
impl<'t> Syntax<'t> {
    /// Returns quoted text without its quotes and with its escapes resolved; other text unchanged.
    pub fn unquoted(self) -> Cow<'t, str> {
        text::unquote(self.text(), self.flags())
    }

    /// Reads a string as an instruction or description: quoted strings unchanged, fences without their layout (see
    /// [`dedent`]). Returns `None` if this is not a string.
    ///
    /// ```
    /// let (tree, _) = patter_gram::parse("({text: ```\n    Be kind.\n    ```})");
    /// let node = tree.patterns().next().unwrap();
    /// assert_eq!(node.get("text").unwrap().read_text().unwrap(), "Be kind.");
    /// ```
    pub fn read_text(self) -> Option<Cow<'t, str>> {
        match self.kind() {
            Kind::String => Some(self.unquoted()),
            Kind::Fence => Some(Cow::Owned(dedent(self.fence_content()?))),
            Kind::Tagged if self.text().starts_with("```") => Some(Cow::Owned(dedent(self.fence_content()?))),
            Kind::Tagged => self.tagged_content(),
            _ => None,
        }
    }

    /// Iterates over the properties of a record or a map.
    pub fn properties(self) -> impl Iterator<Item = Property<'t>> + Clone {
        self.children().filter(|child| child.kind() == Kind::Property).map(|syntax| Property { syntax })
    }

    /// Returns the raw text between the fences, from the line after the opening fence.
    pub(crate) fn fence_content(self) -> Option<&'t str> {
        let header_end = self.child(Kind::Tag).map_or(self.span().start + 3, |tag| tag.span().end);
        let comments = self.tree().comment_spans();
        let first = comments.partition_point(|comment| comment.start < header_end);
        // The opening line may contain comments; the text starts after the line break that follows the last of them.
        let mut from = header_end;
        for comment in comments.iter().skip(first) {
            let gap = Span::new(from, comment.start).slice(self.tree().source());
            if gap.contains('\n') || !self.span().contains(*comment) {
                break;
            }
            from = comment.end;
        }
        let body = Span::new(from, self.span().end).slice(self.tree().source());
        let (_, content) = body.split_once('\n')?;
        if self.is_unclosed() { Some(content) } else { content.strip_suffix("```") }
    }

    fn tagged_content(self) -> Option<Cow<'t, str>> {
        if self.text().starts_with("```") {
            return self.fence_content().map(Cow::Borrowed);
        }
        // Only trivia separates the tag from its text, but a comment may contain backticks.
        let tag_end = self.child(Kind::Tag)?.span().end;
        let comments = self.tree().comment_spans();
        let first = comments.partition_point(|comment| comment.start < tag_end);
        let mut from = tag_end;
        for comment in comments.iter().skip(first).take_while(|comment| comment.end <= self.span().end) {
            from = comment.end;
        }
        let quoted = Span::new(from, self.span().end).slice(self.tree().source()).trim_start();
        Some(text::unquote(quoted, self.flags()))
    }
}

/// A property of a record or map: `key: value`.
#[derive(Debug, Clone, Copy)]
pub struct Property<'t> {
    syntax: Syntax<'t>,
}

impl<'t> Property<'t> {
    /// Returns the syntax of the whole property.
    pub fn syntax(self) -> Syntax<'t> {
        self.syntax
    }

    /// Returns the key, without quotes.
    pub fn key(self) -> Cow<'t, str> {
        self.key_syntax().map_or(Cow::Borrowed(""), Syntax::unquoted)
    }

    /// Returns the syntax of the key.
    pub fn key_syntax(self) -> Option<Syntax<'t>> {
        self.syntax.child(Kind::Key)
    }

    /// Returns the syntax of the value, unless it is missing.
    pub fn value(self) -> Option<Syntax<'t>> {
        self.syntax.children().find(|child| child.kind().is_value())
    }
}
