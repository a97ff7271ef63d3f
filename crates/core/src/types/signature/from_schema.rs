//! Signatures from JSON Schemas, such as those of MCP servers and of Rust types.

use super::modern::modern;
use super::narrow::{allow, is_open, is_sayable, is_type_name, narrow, only, text, types};
use super::opaque::Opaque;
use super::plain::is_plain;
use super::{Field, Presence, Record, Records, Shape, Signature, Type};
use crate::types::keyword::{children, free_name, is_silent, pointer, references, unescaped};
use indexmap::IndexMap;
use jsonschema::Draft;
use serde_json::{Map, Value as Json};
use std::collections::{HashMap, HashSet};
use thiserror::Error;

/// How deep types may nest. What is deeper stays a schema, and the signature can still be written as text.
const DEEPEST_TYPE: usize = 20;
/// How deep a schema may nest: less than what fits into JSON text with room for the definitions that it carries.
const DEEPEST_SCHEMA: usize = 100;
/// The keywords of an object that can be a list of fields.
const OBJECT: &[&str] = &["type", "properties", "required", "additionalProperties"];
/// How many parts of a schema become types. The rest stays as it is, so that references cannot multiply for ever.
const MOST_PARTS: usize = 5_000;

/// A signature made from JSON Schemas.
#[derive(Debug, Clone, PartialEq)]
pub struct FromSchemas {
    /// The signature.
    pub signature: Signature,
    /// The record types that it names: what contains itself.
    pub records: Records,
    /// The input schema, if it says more about the arguments as a whole than parameters can, such as
    /// `additionalProperties: false`. Then arguments are valid if both the signature and this schema allow them.
    pub unsaid: Option<Json>,
}

/// Why a schema cannot be read.
///
/// ```
/// use patter_core::types::signature::{SchemaError, Signature};
/// let error = Signature::from_schemas(&serde_json::json!({ "type": "strng" }), None).unwrap_err();
/// assert!(matches!(error, SchemaError::Invalid(_)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// It is not a JSON Schema.
    #[error("this is not a JSON Schema: {0}")]
    Invalid(String),
    /// It nests too deep.
    #[error("this schema nests deeper than {DEEPEST_SCHEMA} levels")]
    TooDeep,
    /// It grows too large when its references are followed.
    #[error("this schema is too large")]
    TooLarge,
    /// It refers to something by other means than its place in the schema.
    #[error("this schema refers to `{0}`, which cannot be followed")]
    Reference(String),
}

impl Signature {
    /// Returns the signature of a tool with these schemas. Without an output schema the result may be anything.
    ///
    /// What no type can say stays a schema, in the smallest part that needs one, so that the schemas of the signature
    /// allow the same values. Annotations such as `title` are dropped, and so is the default of what is required.
    ///
    /// ```
    /// use patter_core::types::signature::Signature;
    /// use serde_json::json;
    /// let input = json!({
    ///     "type": "object",
    ///     "properties": { "city": { "type": "string" }, "days": { "type": "integer", "minimum": 1, "default": 3 } },
    ///     "required": ["city"]
    /// });
    /// let made = Signature::from_schemas(&input, Some(&json!({ "type": ["number", "null"] }))).unwrap();
    /// assert_eq!(
    ///     made.signature.to_string(),
    ///     "(city::Text)==>(days::Int { range: 1..., default: 3 })==>(::`Maybe Double`)"
    /// );
    /// assert_eq!(made.unsaid, None);
    /// ```
    pub fn from_schemas(input: &Json, output: Option<&Json>) -> Result<FromSchemas, SchemaError> {
        Self::from_schemas_naming(input, output, Naming::Circles)
    }

    /// Returns the signature of a tool with these schemas, and says what becomes a record type.
    pub(crate) fn from_schemas_naming(
        input: &Json,
        output: Option<&Json>,
        naming: Naming,
    ) -> Result<FromSchemas, SchemaError> {
        let input = document(input)?;
        let nothing = Records::default();
        let mut reader = Reader::new(&input, &nothing, naming);
        let (parameters, is_exact) = reader.parameters();
        let mut records = reader.finish()?;
        let Some(output) = output.map(document).transpose()? else {
            let signature = Signature { parameters, returns: Type::new(Shape::Any) };
            return Ok(FromSchemas { signature, records, unsaid: (!is_exact).then_some(input) });
        };
        let (mut returns, mut others) = result(&output, &nothing, naming)?;
        if others.iter().any(|(name, record)| records.get(name).is_some_and(|known| known != record)) {
            (returns, others) = result(&output, &records, naming)?;
        }
        records.records.extend(others.records);
        Ok(FromSchemas { signature: Signature { parameters, returns }, records, unsaid: (!is_exact).then_some(input) })
    }
}

fn result(output: &Json, taken: &Records, naming: Naming) -> Result<(Type, Records), SchemaError> {
    let mut reader = Reader::new(output, taken, naming);
    let returns = reader.ty(output, Place::Bare, 0);
    Ok((returns, reader.finish()?))
}

/// Returns a schema as one of 2020-12, if it is a schema at all. One that does not say its draft may be older.
fn document(schema: &Json) -> Result<Json, SchemaError> {
    if depth(schema) > DEEPEST_SCHEMA {
        return Err(SchemaError::TooDeep);
    }
    if is_plain(schema) {
        return Ok(schema.clone());
    }
    let validator = match jsonschema::validator_for(schema) {
        Ok(validator) => validator,
        Err(error) => [Draft::Draft7, Draft::Draft4]
            .into_iter()
            .filter(|_| schema.get("$schema").is_none())
            .find_map(|draft| jsonschema::options().with_draft(draft).build(schema).ok())
            .ok_or_else(|| SchemaError::Invalid(error.to_string()))?,
    };
    let schema = modern(schema, validator.draft());
    let found = unfollowable(&schema, &["$dynamicRef", "$recursiveRef"]).map(str::to_owned);
    found.map_or(Ok(schema), |reference| Err(SchemaError::Reference(reference)))
}

/// Finds what makes references count from elsewhere than the root.
fn unfollowable<'s>(schema: &'s Json, keywords: &[&str]) -> Option<&'s str> {
    let found = keywords.iter().find_map(|keyword| schema.get(*keyword)?.as_str());
    let inside = |(_, child)| unfollowable(child, &["$id", "$dynamicRef", "$recursiveRef"]);
    found.or_else(|| children(schema.as_object()?).into_iter().find_map(inside))
}

fn depth(json: &Json) -> usize {
    match json {
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Json::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or_default(),
        _ => 1,
    }
}

/// Where a type stands. Named parts cannot be null: for them `Maybe` means that they may be left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Named,
    Bare,
}

/// What becomes a record type: of what a schema refers to, objects that contain themselves, or all objects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    Circles,
    Objects,
}

struct Reader<'d> {
    document: &'d Json,
    naming: Naming,
    opaque: Opaque<'d>,
    /// Names that are not free for record types.
    taken: &'d Records,
    /// The record types, by what they stand for: pointers into the document.
    named: IndexMap<String, String>,
    /// What pointers lead to, by where they start.
    reach: HashMap<String, HashSet<String>>,
    /// Whether pointers lead back to themselves.
    circular: HashMap<String, bool>,
    parts: usize,
}

impl<'d> Reader<'d> {
    fn new(document: &'d Json, taken: &'d Records, naming: Naming) -> Self {
        let (named, reach, circular) = (IndexMap::new(), HashMap::new(), HashMap::new());
        Self { document, naming, opaque: Opaque::new(document), taken, named, reach, circular, parts: 0 }
    }

    /// Reads the record types that were named on the way.
    fn finish(mut self) -> Result<Records, SchemaError> {
        let mut records = Records::default();
        let mut next = 0;
        while let Some((target, name)) = self.named.get_index(next).map(|(target, name)| (target.clone(), name.clone()))
        {
            next += 1;
            if let Some(Json::Object(map)) = self.document.pointer(&target) {
                let record = Record { description: text(map, "description"), fields: self.fields(map, 0) };
                records.insert(name, record);
            }
        }
        self.opaque.error.map_or(Ok(records), Err)
    }

    /// Returns the parameters, and whether they say all that the document says about an object.
    fn parameters(&mut self) -> (Vec<Field>, bool) {
        let mut root = self.document;
        let mut seen = HashSet::new();
        while let Some(target) = root.get("$ref").and_then(Json::as_str).and_then(pointer) {
            let is_plain = root.as_object().is_some_and(|map| only(map, &["$ref"]));
            match self.document.pointer(&target).filter(|_| is_plain && seen.insert(target.clone())) {
                Some(next) => root = next,
                None => break,
            }
        }
        match root {
            Json::Object(map) => {
                let takes_objects = types(map).is_some_and(|(base, _)| base.is_none_or(|base| base == "object"));
                (self.fields(map, 0), takes_objects && only(map, OBJECT) && is_open(map))
            }
            other => (Vec::new(), *other == Json::Bool(true)),
        }
    }

    /// Returns the type of a schema; of what no type can say, the schema itself.
    fn ty(&mut self, schema: &'d Json, place: Place, depth: usize) -> Type {
        self.said(schema, place, depth).unwrap_or_else(|| self.opaque.ty(schema))
    }

    fn said(&mut self, schema: &'d Json, place: Place, depth: usize) -> Option<Type> {
        self.parts += 1;
        let map = match schema {
            _ if depth >= DEEPEST_TYPE || self.parts > MOST_PARTS => return None,
            Json::Object(map) => map,
            Json::Bool(true) => return Some(Type::new(Shape::Any)),
            _ => return None,
        };
        let combines = |keyword: &&String| matches!(keyword.as_str(), "$ref" | "allOf" | "anyOf" | "oneOf");
        let mut ty = match map.keys().find(combines).map(String::as_str) {
            Some("$ref") if only(map, &["$ref", "enum"]) => {
                let mut ty = self.reference(map.get("$ref")?.as_str()?, place, depth)?;
                if let Some(listed) = map.get("enum") {
                    allow(&mut ty, listed.as_array()?, false)?;
                }
                ty
            }
            Some(keyword) if keyword != "$ref" && only(map, &[keyword]) => {
                self.combined(keyword, map.get(keyword)?.as_array()?, place, depth)?
            }
            Some(_) => return None,
            None => self.typed(map, place, depth)?,
        };
        if let Some(description) = text(map, "description") {
            ty.facets.description = Some(description);
        }
        Some(ty)
    }

    /// Reads what a reference points to, maybe as a record type.
    fn reference(&mut self, reference: &str, place: Place, depth: usize) -> Option<Type> {
        let target = pointer(reference)?;
        let schema = self.document.pointer(&target)?;
        if self.naming == Naming::Circles && !self.contains_itself(&target) {
            return self.said(schema, place, depth + 1);
        }
        let map = schema
            .as_object()
            .filter(|map| map.get("type").is_some_and(|name| name == "object") && only(map, OBJECT) && is_open(map))?;
        let name = match self.named.get(&target) {
            Some(name) => name.clone(),
            None => {
                let title = text(map, "title").unwrap_or_else(|| "Root".to_owned());
                let wanted = target.rsplit_once('/').map_or(title, |(_, token)| unescaped(token));
                let wanted = if is_type_name(&wanted) { wanted } else { format!("{}Record", wanted.trim()) };
                let (taken, named) = (self.taken, &self.named);
                let is_free = |name: &str| taken.get(name).is_none() && !named.values().any(|other| other == name);
                let name = free_name(&wanted, is_free);
                self.named.insert(target, name.clone());
                name
            }
        };
        Some(Type::new(Shape::Record(name)))
    }

    /// Tells whether a reference leads back to itself.
    fn contains_itself(&mut self, target: &str) -> bool {
        if let Some(known) = self.circular.get(target) {
            return *known;
        }
        let found = self.leads_back(target);
        self.circular.insert(target.to_owned(), found);
        found
    }

    fn leads_back(&mut self, target: &str) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![target.to_owned()];
        while let Some(next) = open.pop() {
            let document = self.document;
            let reached = self.reach.entry(next).or_insert_with_key(|next| {
                let mut found = Vec::new();
                document.pointer(next).into_iter().for_each(|schema| references(schema, &mut found));
                found.into_iter().filter_map(pointer).collect()
            });
            if reached.contains(target) {
                return true;
            }
            open.extend(reached.iter().filter(|other| seen.insert((*other).clone())).cloned());
        }
        false
    }

    /// Reads a combination that says no more than one type: of a single schema, or of one and `null`.
    fn combined(&mut self, keyword: &str, options: &'d [Json], place: Place, depth: usize) -> Option<Type> {
        if let [one] = options {
            return self.said(one, place, depth + 1);
        }
        let is_null = |option: &Json| {
            option
                .as_object()
                .is_some_and(|map| only(map, &["type"]) && map.get("type").is_some_and(|name| name == "null"))
        };
        let one = match options {
            [one, null] | [null, one] if is_null(null) => one,
            _ => return None,
        };
        if place == Place::Named || keyword == "allOf" {
            return None;
        }
        let mut ty = self.ty(one, place, depth + 1);
        // Exactly one option must hold, so the other may not allow null as well.
        if keyword == "oneOf" && (ty.facets.nullable || matches!(ty.shape, Shape::Any | Shape::Schema(_))) {
            return None;
        }
        ty.facets.nullable = true;
        Some(ty)
    }

    fn typed(&mut self, map: &'d Map<String, Json>, place: Place, depth: usize) -> Option<Type> {
        let (base, null) = types(map)?;
        let (shape, keywords): (Shape, &[&str]) = match base {
            None => (Shape::Any, &["format"]),
            Some("string") => (Shape::Text, &["minLength", "maxLength", "pattern", "format"]),
            Some("integer") => (Shape::Integer, &["minimum", "maximum", "format"]),
            Some("number") => (Shape::Number, &["minimum", "maximum", "format"]),
            Some("boolean") => (Shape::Boolean, &["format"]),
            Some("array") => (Shape::Array(Box::new(Type::new(Shape::Any))), &["items", "minItems", "maxItems"]),
            Some("object") => (Shape::Object(Vec::new()), &["properties", "required", "additionalProperties"]),
            _ => return None,
        };
        let known = |keyword: &String| {
            matches!(keyword.as_str(), "type" | "enum" | "const")
                || keywords.contains(&keyword.as_str())
                || is_silent(keyword)
        };
        if !map.keys().all(known) || !is_open(map) {
            return None;
        }
        let mut ty = Type::new(shape);
        narrow(&mut ty, map, null)?;
        if ty.facets.nullable && place == Place::Named {
            return None;
        }
        match &mut ty.shape {
            Shape::Array(item) => {
                if let Some(items) = map.get("items") {
                    **item = self.ty(items, Place::Bare, depth + 1);
                }
            }
            Shape::Object(fields) => *fields = self.fields(map, depth),
            _ => {}
        }
        Some(ty)
    }

    fn fields(&mut self, map: &'d Map<String, Json>, depth: usize) -> Vec<Field> {
        let required: Vec<_> =
            map.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect();
        let properties = map.get("properties").and_then(Json::as_object);
        let mut fields: Vec<Field> = Vec::new();
        for (name, schema) in properties.into_iter().flatten() {
            fields.push(self.field(name, schema, required.contains(&name.as_str()), depth));
        }
        for name in required {
            if !properties.is_some_and(|properties| properties.contains_key(name))
                && fields.iter().all(|field| field.name != name)
            {
                fields.push(Field { name: name.to_owned(), ty: Type::new(Shape::Any), presence: Presence::Required });
            }
        }
        fields
    }

    fn field(&mut self, name: &str, schema: &'d Json, is_required: bool, depth: usize) -> Field {
        let mut ty = self.ty(schema, Place::Named, depth + 1);
        let presence = match schema.get("default") {
            _ if is_required => Presence::Required,
            None => Presence::Optional,
            // A record type is not known until all is read; neither is it when a signature is read from text.
            Some(default)
                if is_sayable(default) && (ty.mentions_record() || ty.check(default, &Records::default()).is_ok()) =>
            {
                Presence::Default(default.clone())
            }
            Some(default) => {
                ty = self.opaque.ty(schema);
                if let Shape::Schema(Json::Object(map)) = &mut ty.shape {
                    map.insert("default".to_owned(), default.clone());
                }
                Presence::Optional
            }
        };
        Field { name: name.to_owned(), ty, presence }
    }
}
