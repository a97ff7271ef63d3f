//! Conversion of JSON Schemas to signatures, such as those of MCP servers and Rust types.

use super::constraint::{
    add_allowed, add_facets, has_only, is_open, is_representable, is_type_name, string, type_and_null,
};
use super::extract::SchemaExtractor;
use super::plain::is_plain;
use super::schema_error::{MAX_SCHEMA_DEPTH, SchemaError};
use super::upgrade::upgrade_draft;
use super::{Field, Presence, Record, Records, Shape, Signature, Type};
use crate::types::keyword::{collect_references, free_name, is_annotation, pointer, subschemas, unescape_token};
use indexmap::IndexMap;
use jsonschema::Draft;
use serde_json::{Map, Value as Json};
use std::collections::{HashMap, HashSet};

/// The maximum nesting of types. Deeper parts remain schemas, so that the signature can still be written as text.
const MAX_TYPE_DEPTH: usize = 20;
/// The keywords of an object schema that can be expressed as fields.
const OBJECT_KEYWORDS: &[&str] = &["type", "properties", "required", "additionalProperties"];
/// The maximum number of types to create. The rest remains schemas, so that nested references cannot grow exponentially.
const MAX_TYPES: usize = 5_000;

/// A signature converted from JSON Schemas.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvertedSignature {
    /// The signature.
    pub signature: Signature,
    /// The record types that the signature refers to.
    pub records: Records,
    /// The input schema, if it constrains the arguments as a whole in a way that parameters cannot express, such as
    /// `additionalProperties: false`. Arguments are valid only if both the signature and this schema allow them.
    pub residual_schema: Option<Json>,
}

impl Signature {
    /// Converts the schemas of a tool to a signature. Without an output schema, the result has the type `Any`.
    ///
    /// Parts that types cannot express remain schemas, as small as possible, so that the schemas of the signature allow
    /// the same values. Annotations such as `title` are dropped, and so are the defaults of required parameters.
    ///
    /// ```
    /// use patter_core::types::signature::Signature;
    /// use serde_json::json;
    /// let input = json!({
    ///     "type": "object",
    ///     "properties": { "city": { "type": "string" }, "days": { "type": "integer", "minimum": 1, "default": 3 } },
    ///     "required": ["city"]
    /// });
    /// let converted = Signature::from_schemas(&input, Some(&json!({ "type": ["number", "null"] }))).unwrap();
    /// assert_eq!(
    ///     converted.signature.to_string(),
    ///     "(city::Text)==>(days::Int { range: 1..., default: 3 })==>(::`Maybe Double`)"
    /// );
    /// assert_eq!(converted.residual_schema, None);
    /// ```
    pub fn from_schemas(input: &Json, output: Option<&Json>) -> Result<ConvertedSignature, SchemaError> {
        Self::from_schemas_naming(input, output, RecordNaming::RecursiveOnly)
    }

    /// Converts the schemas of a tool to a signature, with a choice of which objects become record types.
    pub(crate) fn from_schemas_naming(
        input: &Json,
        output: Option<&Json>,
        naming: RecordNaming,
    ) -> Result<ConvertedSignature, SchemaError> {
        let input = document(input)?;
        let no_records = Records::default();
        let mut reader = SchemaReader::new(&input, &no_records, naming);
        let (parameters, is_exact) = reader.parameters();
        let mut records = reader.finish()?;
        let Some(output) = output.map(document).transpose()? else {
            let signature = Signature { parameters, returns: Type::new(Shape::Any) };
            return Ok(ConvertedSignature { signature, records, residual_schema: (!is_exact).then_some(input) });
        };
        let (mut returns, mut others) = read_result(&output, &no_records, naming)?;
        if others.iter().any(|(name, record)| records.get(name).is_some_and(|known| known != record)) {
            (returns, others) = read_result(&output, &records, naming)?;
        }
        records.records.extend(others.records);
        Ok(ConvertedSignature {
            signature: Signature { parameters, returns },
            records,
            residual_schema: (!is_exact).then_some(input),
        })
    }
}

fn read_result(output: &Json, taken: &Records, naming: RecordNaming) -> Result<(Type, Records), SchemaError> {
    let mut reader = SchemaReader::new(output, taken, naming);
    let returns = reader.read_type(output, 0);
    Ok((returns, reader.finish()?))
}

/// Checks a schema and converts it to 2020-12. A schema without `$schema` may have an older draft.
fn document(schema: &Json) -> Result<Json, SchemaError> {
    if depth(schema) > MAX_SCHEMA_DEPTH {
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
    let schema = upgrade_draft(schema, validator.draft());
    let found = unsupported_reference(&schema, &["$dynamicRef", "$recursiveRef"]).map(str::to_owned);
    found.map_or(Ok(schema), |reference| Err(SchemaError::Reference(reference)))
}

/// Finds a dynamic reference, or an identifier that would make references relative to something other than the root.
fn unsupported_reference<'s>(schema: &'s Json, keywords: &[&str]) -> Option<&'s str> {
    let found = keywords.iter().find_map(|keyword| schema.get(*keyword)?.as_str());
    let inside = |(_, child)| unsupported_reference(child, &["$id", "$dynamicRef", "$recursiveRef"]);
    found.or_else(|| subschemas(schema.as_object()?).into_iter().find_map(inside))
}

fn depth(json: &Json) -> usize {
    match json {
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Json::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or_default(),
        _ => 1,
    }
}

/// Which objects become record types, among those that a schema refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordNaming {
    RecursiveOnly,
    AllObjects,
}

struct SchemaReader<'d> {
    document: &'d Json,
    naming: RecordNaming,
    extractor: SchemaExtractor<'d>,
    /// Record types whose names are not available.
    taken: &'d Records,
    /// The names of the record types, by the JSON pointer to their schema.
    named: IndexMap<String, String>,
    /// The targets of the references in a schema, by its JSON pointer.
    targets: HashMap<String, HashSet<String>>,
    /// Whether schemas are recursive, by their JSON pointer.
    recursive: HashMap<String, bool>,
    types: usize,
}

impl<'d> SchemaReader<'d> {
    fn new(document: &'d Json, taken: &'d Records, naming: RecordNaming) -> Self {
        Self {
            document,
            naming,
            extractor: SchemaExtractor::new(document),
            taken,
            named: IndexMap::new(),
            targets: HashMap::new(),
            recursive: HashMap::new(),
            types: 0,
        }
    }

    /// Reads the record types that were named along the way.
    fn finish(mut self) -> Result<Records, SchemaError> {
        let mut records = Records::default();
        let mut next = 0;
        while let Some((target, name)) = self.named.get_index(next).map(|(target, name)| (target.clone(), name.clone()))
        {
            next += 1;
            if let Some(Json::Object(map)) = self.document.pointer(&target) {
                let record = Record { description: string(map, "description"), fields: self.fields(map, 0) };
                records.insert(name, record);
            }
        }
        self.extractor.error.map_or(Ok(records), Err)
    }

    /// Returns the parameters, and whether they express everything that the document requires of an object.
    fn parameters(&mut self) -> (Vec<Field>, bool) {
        let mut root = self.document;
        let mut seen = HashSet::new();
        while let Some(target) = root.get("$ref").and_then(Json::as_str).and_then(pointer) {
            let is_plain = root.as_object().is_some_and(|map| has_only(map, &["$ref"]));
            match self.document.pointer(&target).filter(|_| is_plain && seen.insert(target.clone())) {
                Some(next) => root = next,
                None => break,
            }
        }
        match root {
            Json::Object(map) => {
                let allows_objects =
                    type_and_null(map).is_some_and(|(base, _)| base.is_none_or(|base| base == "object"));
                (self.fields(map, 0), allows_objects && has_only(map, OBJECT_KEYWORDS) && is_open(map))
            }
            other => (Vec::new(), *other == Json::Bool(true)),
        }
    }

    /// Returns the type of a schema, or the schema itself if no type can express it.
    fn read_type(&mut self, schema: &'d Json, depth: usize) -> Type {
        self.express(schema, depth).unwrap_or_else(|| self.extractor.extract_type(schema))
    }

    fn express(&mut self, schema: &'d Json, depth: usize) -> Option<Type> {
        self.types += 1;
        let map = match schema {
            _ if depth >= MAX_TYPE_DEPTH || self.types > MAX_TYPES => return None,
            Json::Object(map) => map,
            Json::Bool(true) => return Some(Type::new(Shape::Any)),
            _ => return None,
        };
        let is_combination = |keyword: &&String| matches!(keyword.as_str(), "$ref" | "allOf" | "anyOf" | "oneOf");
        let mut ty = match map.keys().find(is_combination).map(String::as_str) {
            Some("$ref") if has_only(map, &["$ref", "enum"]) => {
                let mut ty = self.reference(map.get("$ref")?.as_str()?, depth)?;
                if let Some(listed) = map.get("enum") {
                    add_allowed(&mut ty, listed.as_array()?, false)?;
                }
                ty
            }
            Some(keyword) if keyword != "$ref" && has_only(map, &[keyword]) => {
                self.combination(keyword, map.get(keyword)?.as_array()?, depth)?
            }
            Some(_) => return None,
            None => self.simple(map, depth)?,
        };
        if let Some(description) = string(map, "description") {
            ty.facets.description = Some(description);
        }
        Some(ty)
    }

    /// Reads the target of a reference, possibly as a record type.
    fn reference(&mut self, reference: &str, depth: usize) -> Option<Type> {
        let target = pointer(reference)?;
        let schema = self.document.pointer(&target)?;
        if self.naming == RecordNaming::RecursiveOnly && !self.is_recursive(&target) {
            return self.express(schema, depth + 1);
        }
        let map = schema.as_object().filter(|map| {
            map.get("type").is_some_and(|name| name == "object") && has_only(map, OBJECT_KEYWORDS) && is_open(map)
        })?;
        let name = match self.named.get(&target) {
            Some(name) => name.clone(),
            None => {
                let title = string(map, "title").unwrap_or_else(|| "Root".to_owned());
                let wanted = target.rsplit_once('/').map_or(title, |(_, token)| unescape_token(token));
                let wanted = if is_type_name(&wanted) { wanted } else { format!("{}Record", wanted.trim()) };
                let is_free =
                    |name: &str| self.taken.get(name).is_none() && !self.named.values().any(|other| other == name);
                let name = free_name(&wanted, is_free);
                self.named.insert(target, name.clone());
                name
            }
        };
        Some(Type::new(Shape::Record(name)))
    }

    /// Returns whether a schema refers to itself, directly or through others.
    fn is_recursive(&mut self, target: &str) -> bool {
        if let Some(known) = self.recursive.get(target) {
            return *known;
        }
        let found = self.reaches_itself(target);
        self.recursive.insert(target.to_owned(), found);
        found
    }

    fn reaches_itself(&mut self, target: &str) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![target.to_owned()];
        while let Some(next) = open.pop() {
            let document = self.document;
            let targets = self.targets.entry(next).or_insert_with_key(|next| {
                let mut found = Vec::new();
                document.pointer(next).into_iter().for_each(|schema| collect_references(schema, &mut found));
                found.into_iter().filter_map(pointer).collect()
            });
            if targets.contains(target) {
                return true;
            }
            open.extend(targets.iter().filter(|other| seen.insert((*other).clone())).cloned());
        }
        false
    }

    /// Reads a combination that is equivalent to a single type: of one schema, or of one schema and `null`.
    fn combination(&mut self, keyword: &str, options: &'d [Json], depth: usize) -> Option<Type> {
        if let [one] = options {
            return self.express(one, depth + 1);
        }
        let is_null = |option: &Json| {
            option
                .as_object()
                .is_some_and(|map| has_only(map, &["type"]) && map.get("type").is_some_and(|name| name == "null"))
        };
        let one = match options {
            [one, null] | [null, one] if is_null(null) => one,
            _ => return None,
        };
        if keyword == "allOf" {
            return None;
        }
        let mut ty = self.read_type(one, depth + 1);
        // Exactly one option must match, so the other may not allow null as well.
        if keyword == "oneOf" && (ty.facets.nullable || matches!(ty.shape, Shape::Any | Shape::Schema(_))) {
            return None;
        }
        ty.facets.nullable = true;
        Some(ty)
    }

    /// Reads a schema without references and combinations.
    fn simple(&mut self, map: &'d Map<String, Json>, depth: usize) -> Option<Type> {
        let (base, null) = type_and_null(map)?;
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
                || is_annotation(keyword)
        };
        if !map.keys().all(known) || !is_open(map) {
            return None;
        }
        let mut ty = Type::new(shape);
        add_facets(&mut ty, map, null)?;
        match &mut ty.shape {
            Shape::Array(item) => {
                if let Some(items) = map.get("items") {
                    **item = self.read_type(items, depth + 1);
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
        let mut ty = self.read_type(schema, depth + 1);
        let presence = match schema.get("default") {
            _ if is_required => Presence::Required,
            None => Presence::Optional,
            // Record types are known only at the end, as when a signature is read from text.
            Some(default)
                if is_representable(default)
                    && (ty.mentions_record() || ty.check(default, &Records::default()).is_ok()) =>
            {
                Presence::Default(default.clone())
            }
            Some(default) => {
                ty = self.extractor.extract_type(schema);
                if let Shape::Schema(Json::Object(map)) = &mut ty.shape {
                    map.insert("default".to_owned(), default.clone());
                }
                Presence::Optional
            }
        };
        Field { name: name.to_owned(), ty, presence }
    }
}
