//! Signatures: what a tool takes and gives.
//!
//! A signature is written as a path, `(name::Text)==>(age::Int {default: 18})==>(::Text)`: parameters, then the result.
//! [`Signature::read`] reads it from a pattern, [`Signature::parse`] from text; [`std::fmt::Display`] writes it back.

mod compiled;
mod facet;
mod from_schema;
mod modern;
mod narrow;
mod opaque;
mod plain;
mod print;
mod read;
mod validate;
mod value;

pub use compiled::Validator;
pub(crate) use from_schema::Naming;
pub use from_schema::{FromSchemas, SchemaError};
pub use read::SignatureError;
pub use validate::{Mismatch, Step};
pub(crate) use validate::{compare, same};
pub use value::{json_of, value_of};

pub(crate) use narrow::is_type_name;
pub(crate) use read::{Reader, is_built_in};

use indexmap::IndexMap;
use serde_json::{Number, Value as Json};

/// What a tool takes and gives.
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

/// A named part of an object: a parameter of a tool, or a field of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Whether it may be left out.
    pub presence: Presence,
}

/// Whether a field may be left out.
#[derive(Debug, Clone, PartialEq)]
pub enum Presence {
    /// It must be there.
    Required,
    /// It may be left out.
    Optional,
    /// It may be left out, and is then this value.
    Default(Json),
}

/// The type of a value: a shape, and what narrows or describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Type {
    /// What sort of value it is.
    pub shape: Shape,
    /// What narrows it further.
    pub facets: Facets,
}

/// What sort of value a type allows.
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
    /// Values of one type, in order.
    Array(Box<Type>),
    /// Named values. Others may be there too.
    Object(Vec<Field>),
    /// A record type, by name.
    Record(String),
    /// What a JSON Schema allows that no other shape can say.
    Schema(Json),
}

/// What narrows or describes a type.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facets {
    /// What it is, for people and models.
    pub description: Option<String>,
    /// The only values allowed.
    pub allowed: Option<Vec<Json>>,
    /// Bounds of a number, of the length of a text, or of the number of items.
    pub range: Option<Bounds>,
    /// A regular expression that a text must match somewhere.
    pub pattern: Option<String>,
    /// The form of a text, such as `date` or `uri`. It informs and is not checked.
    pub format: Option<String>,
    /// Whether `null` is allowed too.
    pub nullable: bool,
}

/// A range, closed or open to one side.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds {
    /// The least value allowed.
    pub lower: Option<Number>,
    /// The greatest value allowed.
    pub upper: Option<Number>,
}

/// The record types that signatures may name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Records {
    records: IndexMap<String, Record>,
}

/// A record type: a named object.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// What it is.
    pub description: Option<String>,
    /// Its fields, in declared order; names are unique.
    pub fields: Vec<Field>,
}

impl Type {
    /// Returns a type of a shape, with nothing to narrow it.
    pub fn new(shape: Shape) -> Self {
        Self { shape, facets: Facets::default() }
    }
}

impl Signature {
    /// Returns the parameter with a name.
    pub fn parameter(&self, name: &str) -> Option<&Field> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }
}

impl Records {
    /// Adds a record type. Returns the one that had the name before.
    pub fn insert(&mut self, name: impl Into<String>, record: Record) -> Option<Record> {
        self.records.insert(name.into(), record)
    }

    /// Returns the record type with a name.
    pub fn get(&self, name: &str) -> Option<&Record> {
        self.records.get(name)
    }

    /// Iterates over the record types, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Record)> {
        self.records.iter().map(|(name, record)| (name.as_str(), record))
    }
}
