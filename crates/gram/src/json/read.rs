//! Reading the JSON form.

use crate::{Decimal, Diagnostic, Integer, MAX_DEPTH, Number, Tree, Value, format, is_symbol, parse, quote_name};
use serde_json::{Map, Value as Json};
use std::fmt;
use std::fmt::Write;

/// An error that occurs when JSON is not the JSON form of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// The location, as a JSON pointer.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = if self.pointer.is_empty() { "/" } else { &self.pointer };
        write!(f, "{} at {location}", self.message)
    }
}

impl std::error::Error for JsonError {}

type WriteResult = Result<(), JsonError>;

/// Creates a tree, formatted, from its JSON form.
pub fn from_json(json: &Json) -> Result<Tree, JsonError> {
    let mut writer = Writer { out: String::new(), pointer: Vec::new() };
    writer.file(json)?;
    let invalid = |diagnostics: Vec<Diagnostic>| {
        let message = diagnostics.into_iter().next().map_or_else(String::new, |first| first.message.into_owned());
        JsonError { pointer: String::new(), message }
    };
    let text = format(&writer.out).map_err(invalid)?;
    let (tree, _) = parse(&text);
    Ok(tree)
}

struct Writer<'j> {
    out: String,
    pointer: Vec<Segment<'j>>,
}

enum Segment<'j> {
    Key(&'j str),
    Index(usize),
}

impl<'j> Writer<'j> {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, JsonError> {
        let mut pointer = String::new();
        for segment in &self.pointer {
            let _ = match segment {
                Segment::Key(key) => write!(pointer, "/{}", key.replace('~', "~0").replace('/', "~1")),
                Segment::Index(index) => write!(pointer, "/{index}"),
            };
        }
        Err(JsonError { pointer, message: message.into() })
    }

    fn descend(&mut self, segment: Segment<'j>, write: impl FnOnce(&mut Self) -> WriteResult) -> WriteResult {
        self.pointer.push(segment);
        write(self)?;
        self.pointer.pop();
        Ok(())
    }

    fn object(&self, json: &'j Json, known: &[&str]) -> Result<&'j Map<String, Json>, JsonError> {
        let Json::Object(object) = json else { return self.fail("expected an object") };
        match object.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => self.fail(format!("unknown member `{key}`, expected {}", known.join(", "))),
            None => Ok(object),
        }
    }

    fn file(&mut self, json: &'j Json) -> WriteResult {
        let file = self.object(json, &["record", "patterns"])?;
        if let Some(record) = file.get("record") {
            self.descend(Segment::Key("record"), |writer| writer.properties(record))?;
        }
        self.list(file, "patterns", "\n", Self::pattern)
    }

    fn list(
        &mut self,
        object: &'j Map<String, Json>,
        key: &'j str,
        separator: &str,
        write: fn(&mut Self, &'j Json) -> WriteResult,
    ) -> WriteResult {
        let Some(json) = object.get(key) else { return Ok(()) };
        self.descend(Segment::Key(key), |writer| {
            let Json::Array(items) = json else { return writer.fail("expected an array") };
            for (index, item) in items.iter().enumerate() {
                writer.out.push_str(if index > 0 { separator } else { "" });
                writer.descend(Segment::Index(index), |writer| write(writer, item))?;
            }
            Ok(())
        })
    }

    fn pattern(&mut self, json: &'j Json) -> WriteResult {
        let kind = json.get("kind").and_then(Json::as_str);
        let known: &[&str] = match kind {
            Some("node") => &["kind", "annotations", "id", "labels", "properties"],
            Some("bracket") => &["kind", "annotations", "id", "labels", "properties", "elements"],
            Some("path") => &["kind", "annotations", "nodes", "arrows"],
            Some("reference") => &["kind", "id"],
            _ if json.is_object() => return self.fail("`kind` must be `node`, `path`, `bracket` or `reference`"),
            _ => return self.fail("expected an object"),
        };
        let pattern = self.object(json, known)?;
        if self.pointer.len() > 2 * MAX_DEPTH + 2 {
            return self.fail(format!("patterns nest deeper than {MAX_DEPTH} levels"));
        }
        if pattern.contains_key("annotations") {
            self.list(pattern, "annotations", "\n", Self::annotation)?;
            self.out.push('\n');
        }
        match kind {
            Some("node") => {
                self.out.push('(');
                self.subject(pattern)?;
                self.out.push(')');
                Ok(())
            }
            Some("bracket") => {
                self.out.push('[');
                self.subject(pattern)?;
                if pattern.get("elements").and_then(Json::as_array).is_some_and(|elements| !elements.is_empty()) {
                    self.out.push_str(" | ");
                }
                self.list(pattern, "elements", ", ", Self::pattern)?;
                self.out.push(']');
                Ok(())
            }
            Some("reference") => match pattern.get("id") {
                Some(id) => self.descend(Segment::Key("id"), |writer| writer.id(id)),
                None => self.fail("a reference needs an `id`"),
            },
            _ => self.path(pattern),
        }
    }

    fn path(&mut self, path: &'j Map<String, Json>) -> WriteResult {
        let (Some(Json::Array(nodes)), Some(Json::Array(arrows))) = (path.get("nodes"), path.get("arrows")) else {
            return self.fail("a path needs `nodes` and `arrows`");
        };
        if nodes.len() < 2 || arrows.len() + 1 != nodes.len() {
            return self.fail("a path needs at least two nodes and an arrow between each two");
        }
        for (index, node) in nodes.iter().enumerate() {
            let is_node = node.get("kind").and_then(Json::as_str) == Some("node") && node.get("annotations").is_none();
            if !is_node {
                return self.fail("the `nodes` of a path must be of kind `node`, without annotations");
            }
            self.descend(Segment::Key("nodes"), |writer| {
                writer.descend(Segment::Index(index), |writer| writer.pattern(node))
            })?;
            if let Some(arrow) = arrows.get(index) {
                self.descend(Segment::Key("arrows"), |writer| {
                    writer.descend(Segment::Index(index), |writer| writer.arrow(arrow))
                })?;
            }
        }
        Ok(())
    }

    fn arrow(&mut self, json: &'j Json) -> WriteResult {
        let arrow = self.object(json, &["arrow", "id", "labels", "properties"])?;
        let glyph = arrow.get("arrow").and_then(Json::as_str).unwrap_or_default();
        let line = glyph.strip_prefix('<').unwrap_or(glyph);
        let line = line.strip_suffix('>').unwrap_or(line);
        let Some(stroke) = ["-", "=", "~"].into_iter().find(|stroke| line == stroke.repeat(2)) else {
            return self.fail(format!("`{glyph}` is not an arrow"));
        };
        let left = if glyph.starts_with('<') { "<" } else { "" };
        let right = if glyph.ends_with('>') { ">" } else { "" };
        let _ = write!(self.out, "{left}{stroke}[");
        self.subject(arrow)?;
        let _ = write!(self.out, "]{stroke}{right}");
        Ok(())
    }

    fn annotation(&mut self, json: &'j Json) -> WriteResult {
        let Some(key) = json.get("key") else {
            let header = self.object(json, &["id", "labels"])?;
            if header.is_empty() {
                return self.fail("an annotation needs a `key`, an `id` or `labels`");
            }
            self.out.push_str("@@");
            return self.subject(header);
        };
        let annotation = self.object(json, &["key", "value"])?;
        match key.as_str().filter(|key| is_symbol(key)) {
            Some(key) => {
                let _ = write!(self.out, "@{key}(");
            }
            None => return self.fail("the `key` of an annotation must be a symbol"),
        }
        match annotation.get("value") {
            Some(value) => self.descend(Segment::Key("value"), |writer| writer.value(value))?,
            None => return self.fail("an annotation needs a `value`"),
        }
        self.out.push(')');
        Ok(())
    }

    fn subject(&mut self, object: &'j Map<String, Json>) -> WriteResult {
        if let Some(id) = object.get("id") {
            self.descend(Segment::Key("id"), |writer| writer.id(id))?;
        }
        self.list(object, "labels", "", |writer, label| match label.as_str() {
            Some(label) => {
                let _ = write!(writer.out, ":{}", quote_name(label));
                Ok(())
            }
            None => writer.fail("a label must be a string"),
        })?;
        if let Some(properties) = object.get("properties") {
            self.descend(Segment::Key("properties"), |writer| writer.properties(properties))?;
        }
        Ok(())
    }

    fn id(&mut self, json: &'j Json) -> WriteResult {
        match json {
            Json::String(name) => self.out.push_str(&quote_name(name)),
            Json::Number(number) if number.is_i64() || number.is_u64() => {
                let _ = write!(self.out, "{number}");
            }
            Json::Object(_) => match self.read_value(json)? {
                Value::Integer(integer) => {
                    let _ = write!(self.out, "{integer}");
                }
                _ => return self.fail("an `id` must be a string or an integer"),
            },
            _ => return self.fail("an `id` must be a string or an integer"),
        }
        Ok(())
    }

    fn properties(&mut self, json: &'j Json) -> WriteResult {
        let entries = match json {
            Json::Object(object) => self.entries(object)?,
            Json::Array(flat) => self.flat_entries(flat)?,
            _ => return self.fail("expected an object, or an array of alternating keys and values"),
        };
        let _ = write!(self.out, " {}", Value::Map(entries));
        Ok(())
    }

    fn entries(&mut self, object: &'j Map<String, Json>) -> Result<Vec<(String, Value)>, JsonError> {
        let mut entries = Vec::with_capacity(object.len());
        for (key, value) in object {
            self.pointer.push(Segment::Key(key));
            entries.push((key.clone(), self.read_value(value)?));
            self.pointer.pop();
        }
        Ok(entries)
    }

    fn flat_entries(&mut self, flat: &'j [Json]) -> Result<Vec<(String, Value)>, JsonError> {
        let mut entries = Vec::with_capacity(flat.len() / 2);
        for pair in flat.chunks(2) {
            let [Json::String(key), value] = pair else {
                return self.fail("expected alternating keys and values");
            };
            self.pointer.push(Segment::Key(key));
            entries.push((key.clone(), self.read_value(value)?));
            self.pointer.pop();
        }
        Ok(entries)
    }

    fn value(&mut self, json: &'j Json) -> WriteResult {
        let value = self.read_value(json)?;
        let _ = write!(self.out, "{value}");
        Ok(())
    }

    fn read_value(&mut self, json: &'j Json) -> Result<Value, JsonError> {
        if self.pointer.len() > 3 * MAX_DEPTH {
            return self.fail(format!("values nest deeper than {MAX_DEPTH} levels"));
        }
        Ok(match json {
            Json::Null => return self.fail("gram has no null"),
            Json::Bool(boolean) => Value::Boolean(*boolean),
            Json::String(text) => Value::String(text.clone()),
            Json::Number(number) => match Integer::parse(&number.to_string()) {
                Some(integer) => Value::Integer(integer),
                None => match number.as_f64().and_then(Decimal::from_f64) {
                    Some(decimal) => Value::Decimal(decimal),
                    None => return self.fail("this number cannot be written in gram"),
                },
            },
            Json::Array(items) => {
                let mut values = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    self.pointer.push(Segment::Index(index));
                    values.push(self.read_value(item)?);
                    self.pointer.pop();
                }
                Value::Array(values)
            }
            Json::Object(object) if object.keys().any(|key| key.starts_with('$')) => self.special(object)?,
            Json::Object(object) => Value::Map(self.entries(object)?),
        })
    }

    /// Reads the values that JSON has no type for.
    fn special(&mut self, object: &'j Map<String, Json>) -> Result<Value, JsonError> {
        let is_tagged = object.len() == 2 && object.contains_key("$tag") && object.contains_key("$text");
        if object.len() != 1 && !is_tagged {
            return self.fail("a value with a `$` key cannot have other keys; write a map as `$map`");
        }
        let text = |key: &str| object.get(key).and_then(Json::as_str);
        let found = if let Some(symbol) = text("$symbol") {
            Some(Value::Symbol(symbol.into())).filter(|_| is_symbol(symbol) && !matches!(symbol, "true" | "false"))
        } else if let Some(integer) = text("$integer") {
            Integer::parse(integer).map(Value::Integer)
        } else if let Some(decimal) = text("$decimal") {
            Decimal::parse(decimal).map(Value::Decimal)
        } else if let Some(measurement) = text("$measurement") {
            Value::parse(measurement).filter(|value| matches!(value, Value::Measurement { .. }))
        } else if let (Some(tag), Some(text)) = (text("$tag"), text("$text")) {
            let needs_fence = matches!(tag, "true" | "false");
            let fits_fence = !text.contains("```") && !text.ends_with('`');
            let tagged = Value::Tagged { tag: tag.into(), text: text.into() };
            Some(tagged).filter(|_| is_symbol(tag) && (fits_fence || !needs_fence))
        } else if let Some(Json::Array(flat)) = object.get("$map") {
            Some(Value::Map(self.flat_entries(flat)?))
        } else if let Some(Json::Array(bounds)) = object.get("$range") {
            self.range(bounds)
        } else {
            None
        };
        match found {
            Some(value) => Ok(value),
            None => self.fail(
                "expected a valid `$symbol`, `$integer`, `$decimal`, `$measurement`, `$tag` with `$text`, `$range` or `$map`",
            ),
        }
    }

    fn range(&mut self, bounds: &'j [Json]) -> Option<Value> {
        let [lower, upper] = bounds else { return None };
        let mut bound = |json: &'j Json| match json {
            Json::Null => Some(None),
            json => match self.read_value(json).ok()? {
                Value::Integer(integer) => Some(Some(Number::Integer(integer))),
                Value::Decimal(decimal) => Some(Some(Number::Decimal(decimal))),
                Value::Measurement { amount, unit } => Some(Some(Number::Measurement { amount, unit })),
                _ => None,
            },
        };
        let lower = bound(lower)?;
        let upper = bound(upper)?;
        (lower.is_some() || upper.is_some()).then_some(Value::Range { lower, upper })
    }
}
