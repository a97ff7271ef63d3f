//! What `#[tool]` writes calls of. Nothing here is meant to be called by hand.

use super::{Definition, Failure};
use patter_core::types::signature::{Field, Presence, Records, Shape, Signature, Type};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;

/// The parameters of a function, as they are declared one after the other.
pub struct Inputs {
    generator: SchemaGenerator,
    properties: Map<String, Json>,
    required: Vec<&'static str>,
}

impl Inputs {
    /// Declares a parameter that must be there.
    pub fn required<T: JsonSchema>(&mut self, name: &'static str, description: Option<&str>) {
        self.required.push(name);
        self.declare::<T>(name, description, None);
    }

    /// Declares a parameter that may be left out.
    pub fn optional<T: JsonSchema>(&mut self, name: &'static str, description: Option<&str>) {
        self.declare::<T>(name, description, None);
    }

    /// Declares a parameter that has a value even if it is left out.
    pub fn defaulted<T: JsonSchema + Serialize>(&mut self, name: &'static str, description: Option<&str>, default: &T) {
        self.declare::<T>(name, description, serde_json::to_value(default).ok());
    }

    fn declare<T: JsonSchema>(&mut self, name: &'static str, description: Option<&str>, default: Option<Json>) {
        let mut schema = self.generator.subschema_for::<T>();
        if let Some(description) = description {
            schema.insert("description".to_owned(), description.into());
        }
        if let Some(default) = default {
            schema.insert("default".to_owned(), default);
        }
        self.properties.insert(name.to_owned(), schema.to_value());
    }
}

/// Returns the definition of a tool with these parameters and this result.
///
/// The schemas of Rust types can all be said. Where one that was written by hand cannot, the signature allows anything
/// in its place, an error is logged, and the call itself still checks the arguments.
pub fn definition(
    name: &str,
    description: &str,
    declare: impl FnOnce(&mut Inputs),
    returns: fn(&mut SchemaGenerator) -> Schema,
) -> Definition {
    let generator = SchemaSettings::draft2020_12().for_deserialize().into_generator();
    let mut inputs = Inputs { generator, properties: Map::new(), required: Vec::new() };
    declare(&mut inputs);
    let Inputs { mut generator, properties, required } = inputs;
    let mut input = json!({ "type": "object", "properties": properties, "required": required });
    define(&mut input, &mut generator);

    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut output = returns(&mut generator).to_value();
    define(&mut output, &mut generator);

    let (signature, records) = match Signature::from_schemas(&input, Some(&output)) {
        Ok(made) => (made.signature, made.records),
        Err(error) => {
            tracing::error!(tool = name, %error, "the schema of a tool cannot be read, so it allows anything");
            let parameters = properties.keys().map(|name| {
                let is_required = required.contains(&name.as_str());
                let presence = if is_required { Presence::Required } else { Presence::Optional };
                Field { name: name.clone(), ty: Type::new(Shape::Any), presence }
            });
            (Signature { parameters: parameters.collect(), returns: Type::new(Shape::Any) }, Records::default())
        }
    };
    Definition { name: name.to_owned(), description: description.to_owned(), signature, records: Arc::new(records) }
}

/// Returns the schema of a result.
pub fn returns<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Adds the definitions that a schema refers to, and says all of it in the words that signatures have.
fn define(schema: &mut Json, generator: &mut SchemaGenerator) {
    let definitions = generator.take_definitions(true);
    if let Json::Object(schema) = schema
        && !definitions.is_empty()
    {
        schema.insert("$defs".to_owned(), Json::Object(definitions));
    }
    simplify(schema);
}

fn simplify(schema: &mut Json) {
    match schema {
        Json::Array(items) => items.iter_mut().for_each(simplify),
        Json::Object(map) => {
            // The width of a number is no news to a model, and its bounds are said apart.
            let is_number = map.get("type").is_some_and(|name| name == "integer" || name == "number");
            if is_number && map.get("format").is_some_and(Json::is_string) {
                map.shift_remove("format");
            }
            leave_out_null(map);
            merge_variants(map);
            // What a schema has for values is not a schema.
            let is_value = |keyword: &str| matches!(keyword, "default" | "const" | "enum" | "examples");
            map.iter_mut().filter(|(keyword, _)| !is_value(keyword)).for_each(|(_, child)| simplify(child));
        }
        _ => {}
    }
}

/// What may be left out need not be null as well.
fn leave_out_null(map: &mut Map<String, Json>) {
    let required: Vec<_> = match map.get("required") {
        Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let Some(Json::Object(properties)) = map.get_mut("properties") else { return };
    for (name, property) in properties {
        if required.contains(name) {
            continue;
        }
        let Json::Object(property) = property else { continue };
        if property.get("default").is_some_and(Json::is_null) {
            property.shift_remove("default");
        }
        if let Some(Json::Array(types)) = property.get_mut("type") {
            types.retain(|name| name != "null");
            if let [one] = types.as_slice() {
                let one = one.clone();
                property.insert("type".to_owned(), one);
            }
        }
        if let Some(Json::Array(options)) = property.get_mut("enum") {
            options.retain(|option| !option.is_null());
        }
        if let Some(Json::Array(options)) = property.get_mut("anyOf") {
            options.retain(|option| *option != json!({ "type": "null" }));
        }
    }
}

/// An enum whose variants are described is a list of texts, with the descriptions in that of the whole.
fn merge_variants(map: &mut Map<String, Json>) {
    let Some(Json::Array(variants)) = map.get("oneOf") else { return };
    let mut names = Vec::new();
    let mut about: Vec<String> = map.get("description").and_then(Json::as_str).map(str::to_owned).into_iter().collect();
    for variant in variants {
        let listed = match (variant.get("const"), variant.get("enum")) {
            (Some(name), None) => std::slice::from_ref(name),
            (None, Some(Json::Array(names))) => names,
            _ => return,
        };
        if !listed.iter().all(Json::is_string) {
            return;
        }
        if let (Some(text), [Json::String(name)]) = (variant.get("description").and_then(Json::as_str), listed) {
            about.push(format!("- {name}: {text}"));
        }
        names.extend(listed.iter().cloned());
    }
    map.shift_remove("oneOf");
    map.insert("type".to_owned(), "string".into());
    map.insert("enum".to_owned(), Json::Array(names));
    map.insert("description".to_owned(), about.join("\n").into());
}

/// The arguments of a call, to be taken one after the other.
pub struct Arguments(Map<String, Json>);

impl Arguments {
    /// Takes the arguments of a call.
    pub fn new(arguments: Json) -> Self {
        match arguments {
            Json::Object(arguments) => Self(arguments),
            _ => Self(Map::new()),
        }
    }

    /// Takes an argument that must be there.
    pub fn required<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Failure> {
        match self.0.remove(name) {
            Some(value) => read(name, value),
            None => Err(Failure::new(format!("the argument `{name}` is missing"))),
        }
    }

    /// Takes an argument that may be left out. Null is nothing.
    pub fn optional<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, Failure> {
        match self.0.remove(name) {
            None | Some(Json::Null) => Ok(None),
            Some(value) => read(name, value).map(Some),
        }
    }
}

fn read<T: DeserializeOwned>(name: &str, value: Json) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|error| Failure::new(format!("the argument `{name}` is wrong: {error}")))
}

/// What a function gives that can fail.
pub trait Fallible {
    /// What it gives if it does not.
    type Value;
}

impl<T, E> Fallible for Result<T, E> {
    type Value = T;
}

/// Returns the result of a function that cannot fail.
pub fn answer<T: Serialize>(value: T) -> Result<Json, Failure> {
    serde_json::to_value(value)
        .map_err(|error| Failure::new("the result of the tool cannot be written as JSON").with_detail(error))
}

/// Returns the result of a function that can fail.
pub fn answer_or_failure<T: Serialize, E: Into<Failure>>(result: Result<T, E>) -> Result<Json, Failure> {
    result.map_err(Into::into).and_then(answer)
}

/// Runs a function that may block where it holds up nobody.
pub async fn blocking<T: Send + 'static>(function: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return Ok(function()) };
    match runtime.spawn_blocking(function).await {
        Ok(value) => Ok(value),
        Err(error) => match error.try_into_panic() {
            // The executor reports the panic, as it does those of async functions.
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(Failure::new("the tool was stopped").with_detail(error)),
        },
    }
}
