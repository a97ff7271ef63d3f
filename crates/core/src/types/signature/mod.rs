//! Signatures: the types of the parameters and the result of a tool.
//!
//! A signature is written as a path of parameters that ends in the result:
//! `(name::Text)==>(age::Int {default: 18})==>(::Text)`. [`Signature::read`] reads it from a pattern and
//! [`Signature::parse`] from text; [`std::fmt::Display`] formats it.

mod value;
mod compact;
mod read;
mod facet;
mod print;
mod value_index;
mod schema_cache;
mod validate;
mod schema_error;
mod plain;
mod upgrade;
mod constraint;
mod extract;
mod from_schema;

pub(crate) use constraint::is_type_name;
pub(crate) use facet::misspelt_format;
pub use from_schema::ConvertedSignature;
pub(crate) use from_schema::RecordNaming;
pub use read::SignatureError;
pub(crate) use read::{TypeReader, is_built_in};
pub(crate) use schema_cache::SchemaCache;
pub use schema_error::SchemaError;
pub use validate::{Mismatch, PathStep};
pub(crate) use validate::{check_arguments, check_value, compare_numbers, fill_defaults, json_eq};
pub use value::{json_to_value, value_to_json};
pub(crate) use value_index::ValueIndex;

use indexmap::IndexMap;
use serde_json::{Number, Value as Json};

/// The parameters and the result of a tool.
///
/// ```
/// use patter_core::types::signature::{Signature, Shape};
/// let signature = Signature::parse("(personName::Text)==>(age::Int {default: 18})==>(::String)").unwrap();
/// assert_eq!(signature.parameters.len(), 2);
/// assert_eq!(signature.returns.shape, Shape::Text);
/// assert_eq!(signature.to_string(), "(personName::Text)==>(age::Int { default: 18 })==>(::Text)");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    /// The parameters, in declared order; names are unique.
    pub parameters: Vec<Field>,
    /// The type of the result.
    pub returns: Type,
}

/// A parameter of a tool, or a field of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The name.
    pub name: String,
    /// The type.
    pub ty: Type,
    /// Whether it may be omitted.
    pub presence: Presence,
}

/// Whether a field may be omitted.
#[derive(Debug, Clone, PartialEq)]
pub enum Presence {
    /// It must be present.
    Required,
    /// It may be omitted.
    Optional,
    /// It may be omitted, and then has this value.
    Default(Json),
}

/// The type of a value: a shape, with facets that constrain or describe it.
#[derive(Debug, Clone, PartialEq)]
pub struct Type {
    /// The kind of value.
    pub shape: Shape,
    /// Constraints and descriptions.
    pub facets: Facets,
}

/// The kind of value that a type allows.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Any value.
    Any,
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list of values of one type.
    Array(Box<Type>),
    /// An object with fields. It may have other fields too.
    Object(Vec<Field>),
    /// A record type, by its name.
    Record(String),
    /// The values allowed by a JSON Schema, for types that no other shape can express.
    Schema(Json),
}

/// Constraints on a type, and its description.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facets {
    /// The description, for people and models.
    pub description: Option<String>,
    /// The allowed values, if they are listed.
    pub allowed: Option<Vec<Json>>,
    /// The bounds of a number, of the length of a text, or of the number of items in an array.
    pub range: Option<Bounds>,
    /// A regular expression that some part of a text must match.
    pub pattern: Option<String>,
    /// The format of a text, such as `date` or `uri`. It is not enforced.
    pub format: Option<String>,
    /// Whether `null` is allowed.
    pub nullable: bool,
}

/// A range that may be open at one end.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds {
    /// The minimum.
    pub lower: Option<Number>,
    /// The maximum.
    pub upper: Option<Number>,
}

/// The record types that signatures may refer to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Records {
    records: IndexMap<String, Record>,
}

/// A record type: a named object.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The description.
    pub description: Option<String>,
    /// The fields, in declared order; names are unique.
    pub fields: Vec<Field>,
}

impl Type {
    /// Creates a type without facets.
    pub fn new(shape: Shape) -> Self {
        Self { shape, facets: Facets::default() }
    }
}

impl Signature {
    /// Returns the parameter with the given name.
    pub fn parameter(&self, name: &str) -> Option<&Field> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }
}

impl Records {
    /// Adds a record type. Returns the record type that it replaces, if any.
    pub fn insert(&mut self, name: impl Into<String>, record: Record) -> Option<Record> {
        self.records.insert(name.into(), record)
    }

    /// Returns the record type with the given name.
    pub fn get(&self, name: &str) -> Option<&Record> {
        self.records.get(name)
    }

    /// Iterates over the record types in the order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Record)> {
        self.records.iter().map(|(name, record)| (name.as_str(), record))
    }
}
