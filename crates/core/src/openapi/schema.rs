//! Schemas of OpenAPI as plain JSON Schemas, without references but to record types.
//!
//! Each object among the components is a record type. Everything else is copied to where it is referred to, up to a
//! depth and a size; what is beyond is taken for anything, with a note.

mod merge;
mod simple;

use super::Notes;
use super::document::text_of;
use crate::check::endless_records;
use crate::types::keyword::{free_name, pointer, reference_to, references, unescaped};
use crate::types::signature::{Naming, Presence, Record, Records, Signature, Type, is_type_name};
use indexmap::IndexMap;
use merge::Merged;
pub(super) use merge::is_set;
use serde_json::{Map, Value as Json, json};

/// How deep schemas may nest, references included.
const DEEPEST: usize = 14;
/// How many schemas one type may consist of.
const MOST_PARTS: usize = 2_000;
/// How many of them may be inside of what stays a JSON Schema.
const MOST_INSIDE: usize = 80;
/// How long the description of a parameter or a field may be.
pub(super) const LONGEST_DESCRIPTION: usize = 300;

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It is that of a parameter or a field.
    Named,
    /// It is that of a result or of the items of an array.
    Bare,
    /// It is inside of what no type can say, where there are no record types.
    Inside,
}

pub(super) struct Schemas<'d> {
    document: &'d Json,
    /// The names of record types by their pointers; `None` for what is no record type.
    named: IndexMap<String, Option<String>>,
    parts: usize,
    inside: usize,
}

/// The references that were followed, and how deep that is.
#[derive(Default)]
struct Way {
    targets: Vec<String>,
    depth: usize,
}

impl<'d> Schemas<'d> {
    pub(super) fn new(document: &'d Json) -> Self {
        Self { document, named: IndexMap::new(), parts: 0, inside: 0 }
    }

    /// Returns a schema as a plain one.
    pub(super) fn plain(&mut self, schema: &'d Json, place: Place, notes: &mut Notes) -> Json {
        (self.parts, self.inside) = (0, 0);
        self.schema(schema, place, &mut Way::default(), notes)
    }

    /// Returns the properties of an object, with whether each is required. `None` where it is more than an object.
    pub(super) fn properties(&self, schema: &'d Json, notes: &mut Notes) -> Option<Merged<'d>> {
        let merged = Merged::of(self.document, schema, notes)?;
        (!merged.is_nullable && !merged.properties.is_empty()).then_some(merged)
    }

    /// Reads a signature from plain schemas.
    pub(super) fn signature(input: Map<String, Json>, output: Json) -> Result<Signature, String> {
        let (input, output) = (with_stubs(Json::Object(input)), with_stubs(output));
        let made = Signature::from_schemas_naming(&input, Some(&output), Naming::Objects);
        made.map(|made| made.signature).map_err(|error| error.to_string())
    }

    /// Reads all record types that were named, those that they name themselves included.
    pub(super) fn records(&mut self, notes: &mut Notes) -> Records {
        let mut records = Records::default();
        let mut next = 0;
        while let Some((target, name)) = self.named.get_index(next).map(|(target, name)| (target.clone(), name.clone()))
        {
            next += 1;
            let (Some(name), Some(schema)) = (name, self.document.pointer(&target)) else { continue };
            notes.place = format!("schema {}", unescaped(target.rsplit('/').next().unwrap_or_default()));
            let Some(merged) = Merged::of(self.document, schema, notes) else { continue };
            (self.parts, self.inside) = (0, 0);
            let mut way = Way { targets: vec![target], depth: 0 };
            let body = self.object(&merged, Place::Bare, &mut way, notes);
            let fields = match Self::signature(body, json!({})) {
                Ok(signature) => signature.parameters,
                Err(error) => {
                    notes.add(format!("is taken for any object: {error}"));
                    Vec::new()
                }
            };
            records.insert(name, Record { description: merged.description, fields });
        }
        finite(records, notes)
    }

    fn schema(&mut self, schema: &'d Json, place: Place, way: &mut Way, notes: &mut Notes) -> Json {
        let Json::Object(map) = schema else { return json!({}) };
        self.parts += 1;
        self.inside += usize::from(place == Place::Inside);
        if way.depth >= DEEPEST || self.parts > MOST_PARTS || self.inside > MOST_INSIDE {
            notes.add("a type is too large to be said in full, and is taken for anything from some depth on");
            return json!({});
        }
        way.depth += 1;
        let is_nullable = simple::is_nullable(map);
        // For named parts only a JSON Schema can say that they may be null.
        let within = if is_nullable && place == Place::Named { Place::Inside } else { place };
        let mut made = self.without_null(map, within, way, notes);
        if is_nullable {
            made = simple::with_null(made);
        }
        if let Some(description) = text_of(map, "description", LONGEST_DESCRIPTION) {
            made.insert("description".to_owned(), description.into());
        }
        way.depth -= 1;
        Json::Object(made)
    }

    fn without_null(
        &mut self,
        map: &'d Map<String, Json>,
        place: Place,
        way: &mut Way,
        notes: &mut Notes,
    ) -> Map<String, Json> {
        if let Some(reference) = map.get("$ref").and_then(Json::as_str) {
            return self.reference(reference, place, way, notes);
        }
        let schemas = |keyword: &str| map.get(keyword).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_object = map.contains_key("properties");
        if let ([one], false) = (schemas("allOf"), is_object) {
            return self.inner(one, place, way, notes);
        }
        let options: Vec<_> =
            schemas("oneOf").iter().chain(schemas("anyOf")).filter(|option| !simple::is_null(option)).collect();
        match options.as_slice() {
            _ if is_object => {}
            [] => {}
            [one] => return self.inner(one, place, way, notes),
            _ => {
                if let Some(allowed) = simple::alternatives(&options) {
                    return allowed;
                }
                let options: Vec<_> =
                    options.iter().map(|option| self.schema(option, Place::Inside, way, notes)).collect();
                return keywords([("anyOf", Json::Array(options))]);
            }
        }
        if let Some(merged) = Merged::of_map(self.document, map, notes) {
            return match simple::map_values(map).filter(|_| merged.properties.is_empty()) {
                Some(values) => {
                    let values = self.schema(values, Place::Inside, way, notes);
                    keywords([("type", "object".into()), ("additionalProperties", values)])
                }
                None => self.object(&merged, place, way, notes),
            };
        }
        if let [_, ..] = schemas("allOf") {
            let all: Vec<_> = schemas("allOf").iter().map(|one| self.schema(one, Place::Inside, way, notes)).collect();
            return keywords([("allOf", Json::Array(all))]);
        }
        let mut made = simple::keywords(map, notes);
        if made.get("type").is_some_and(|name| name == "array") {
            let place = if place == Place::Inside { place } else { Place::Bare };
            let items = map.get("items").map_or_else(|| json!({}), |items| self.schema(items, place, way, notes));
            made.insert("items".to_owned(), items);
        }
        made
    }

    fn inner(&mut self, schema: &'d Json, place: Place, way: &mut Way, notes: &mut Notes) -> Map<String, Json> {
        match self.schema(schema, place, way, notes) {
            Json::Object(map) => map,
            _ => Map::new(),
        }
    }

    fn object(&mut self, merged: &Merged<'d>, place: Place, way: &mut Way, notes: &mut Notes) -> Map<String, Json> {
        let place = if place == Place::Inside { place } else { Place::Named };
        let mut properties = Map::new();
        for (name, schema) in &merged.properties {
            properties.insert((*name).to_owned(), self.schema(schema, place, way, notes));
        }
        let mut object = keywords([("type", "object".into()), ("properties", Json::Object(properties))]);
        let required: Vec<_> = merged.required().map(Json::from).collect();
        if !required.is_empty() {
            object.insert("required".to_owned(), Json::Array(required));
        }
        object
    }

    fn reference(&mut self, reference: &str, place: Place, way: &mut Way, notes: &mut Notes) -> Map<String, Json> {
        let found = pointer(reference).and_then(|target| Some((self.document.pointer(&target)?, target)));
        let Some((schema, target)) = found else {
            notes.add(format!("`{reference}` is not in this document, and is taken for anything"));
            return Map::new();
        };
        match self.record(schema, &target) {
            Some(name) if place != Place::Inside => return keywords([("$ref", reference_to(&name).into())]),
            // It contains itself where nothing can say so.
            Some(_) if way.targets.contains(&target) => return keywords([("type", "object".into())]),
            None if way.targets.contains(&target) => return Map::new(),
            _ => {}
        }
        way.targets.push(target);
        let made = self.inner(schema, place, way, notes);
        way.targets.pop();
        made
    }

    /// Returns the name of the record type that a component is, if it is one.
    fn record(&mut self, schema: &'d Json, target: &str) -> Option<String> {
        if let Some(known) = self.named.get(target) {
            return known.clone();
        }
        let component = target.strip_prefix("/components/schemas/").filter(|name| !name.contains('/'));
        // What there is to say about it is said once its fields are read.
        let is_record = schema.get("$ref").is_none() && self.properties(schema, &mut Notes::default()).is_some();
        let name = component.filter(|_| is_record).map(|component| {
            let wanted = unescaped(component);
            let wanted = if is_type_name(&wanted) { wanted } else { format!("{}Record", wanted.trim()) };
            free_name(&wanted, |name| !self.named.values().flatten().any(|other| other == name))
        });
        self.named.insert(target.to_owned(), name.clone());
        name
    }
}

/// Adds what stands for the record types that a schema refers to: an object under each name.
fn with_stubs(mut schema: Json) -> Json {
    let mut found = Vec::new();
    references(&schema, &mut found);
    let names =
        found.into_iter().filter_map(pointer).filter_map(|target| Some(unescaped(target.strip_prefix("/$defs/")?)));
    let stubs: Map<_, _> = names.map(|name| (name, json!({ "type": "object" }))).collect();
    if let (Json::Object(map), false) = (&mut schema, stubs.is_empty()) {
        map.insert("$defs".to_owned(), Json::Object(stubs));
    }
    schema
}

fn keywords<const N: usize>(entries: [(&str, Json); N]) -> Map<String, Json> {
    entries.into_iter().map(|(keyword, value)| (keyword.to_owned(), value)).collect()
}

/// Makes fields optional where every value of a record type would have to hold another one for ever.
fn finite(mut records: Records, notes: &mut Notes) -> Records {
    loop {
        let endless = endless_records(&records);
        if endless.is_empty() {
            return records;
        }
        let mut mended = Records::default();
        for (name, record) in records.iter() {
            let mut record = record.clone();
            for field in record.fields.iter_mut().filter(|field| endless.contains(name) && field.ty.mentions_record()) {
                field.presence = Presence::Optional;
                let message = format!("`{}` is optional here, since no value could have it", field.name);
                notes.add_about(format!("schema {name}"), message);
            }
            mended.insert(name, record);
        }
        records = mended;
    }
}

/// Returns the record types that types mention, directly or through one another, in the order in which they are known.
pub(super) fn mentioned<'r>(types: impl Iterator<Item = &'r Type>, records: &'r Records) -> Vec<(&'r str, &'r Record)> {
    let mut open = Vec::new();
    types.for_each(|ty| crate::types::schema::mentions(ty, &mut open));
    let mut used = std::collections::HashSet::new();
    while let Some(name) = open.pop() {
        if used.insert(name)
            && let Some(record) = records.get(name)
        {
            record.fields.iter().for_each(|field| crate::types::schema::mentions(&field.ty, &mut open));
        }
    }
    records.iter().filter(|(name, _)| used.contains(name)).collect()
}
