//! Reading signatures from patterns.

use super::compact::{CompactType, is_compact};
use super::{Facets, Field, Presence, Record, Records, Shape, Signature, Type};
use crate::rule;
use crate::text::{nearest, with_article};
use indexmap::IndexMap;
use patter_gram::{Arrow, Diagnostic, Kind, Pattern, PatternKind, Property, Span, Syntax, Value, parse};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::fmt;

/// The built-in types, each with its alias.
pub(super) const BUILT_IN: &[(&str, &str)] = &[
    ("Text", "String"),
    ("Int", "Integer"),
    ("Double", "Number"),
    ("Bool", "Boolean"),
    ("Object", "Object"),
    ("Array", "Array"),
    ("Any", "Any"),
];

/// Returns whether a name is that of a built-in type.
pub(crate) fn is_built_in(name: &str) -> bool {
    BUILT_IN.iter().any(|(one, other)| name == *one || name == *other)
}

/// The properties that a type may have.
const PROPERTIES: &[&str] = &[
    "paramName",
    "default",
    "optional",
    "description",
    "enum",
    "range",
    "pattern",
    "format",
    "fields",
    "elementType",
    "schema",
    "nullable",
];

/// An invalid signature, with everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureError {
    /// The diagnostics, in source order.
    pub diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for SignatureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages: Vec<_> = self.diagnostics.iter().map(|diagnostic| diagnostic.message.as_ref()).collect();
        write!(f, "invalid signature: {}", messages.join("; "))
    }
}

impl std::error::Error for SignatureError {}

impl Signature {
    /// Parses a signature that refers to no record types.
    pub fn parse(text: &str) -> Result<Self, SignatureError> {
        let (tree, mut diagnostics) = parse(text);
        diagnostics.retain(Diagnostic::is_error);
        if !diagnostics.is_empty() {
            return Err(SignatureError { diagnostics });
        }
        let mut patterns = tree.patterns();
        match (patterns.next(), patterns.next()) {
            (Some(path), None) => Self::read(path, &Records::default()),
            (_, extra) => {
                let span = extra.map_or(Span::at(0), Pattern::span);
                let message = "a signature must be a single path, such as `(name::Text)==>(::Text)`";
                Err(SignatureError { diagnostics: vec![rule::NO_SIGNATURE.at(span, message)] })
            }
        }
    }

    /// Reads a signature from a path. Its types must be built-in types or in `records`.
    pub fn read(path: Pattern<'_>, records: &Records) -> Result<Self, SignatureError> {
        let is_record = |name: &str| records.get(name).is_some();
        let mut reader = TypeReader::new(&is_record);
        let signature = reader.signature(path);
        let failed = reader.diagnostics.iter().any(Diagnostic::is_error);
        match signature {
            Some(signature) if !failed => Ok(signature),
            _ => Err(SignatureError { diagnostics: reader.diagnostics }),
        }
    }
}

impl Record {
    /// Reads a record type from its declaration, `[Name:Object | (field::Type), …]`.
    pub fn read(pattern: Pattern<'_>, records: &Records) -> Result<Self, SignatureError> {
        let is_record = |name: &str| records.get(name).is_some();
        let mut reader = TypeReader::new(&is_record);
        let record = reader.record(pattern);
        let failed = reader.diagnostics.iter().any(Diagnostic::is_error);
        if failed { Err(SignatureError { diagnostics: reader.diagnostics }) } else { Ok(record) }
    }
}

impl Type {
    /// Parses a type in the form in which it appears after the colons of a node: `Text`, `Maybe Int`,
    /// `Array {elementType: "Text"}`.
    ///
    /// ```
    /// use patter_core::types::signature::{Records, Shape, Type};
    /// assert_eq!(Type::parse("Int", &Records::default()).unwrap().shape, Shape::Integer);
    /// assert!(Type::parse("Txt", &Records::default()).is_err());
    /// ```
    pub fn parse(text: &str, records: &Records) -> Result<Self, SignatureError> {
        let text = text.trim().trim_start_matches(':');
        let is_label = is_compact(text.strip_prefix("Maybe ").map_or(text, str::trim_start));
        let is_maybe = text.starts_with("Maybe ") && !text.contains('{');
        let label = if is_label || is_maybe { format!("`{text}`") } else { text.to_owned() };
        let (tree, mut diagnostics) = parse(&format!("()==>(::{label})"));
        diagnostics.retain(Diagnostic::is_error);
        if !diagnostics.is_empty() {
            return Err(SignatureError { diagnostics });
        }
        match tree.patterns().next() {
            Some(path) => Signature::read(path, records).map(|signature| signature.returns),
            None => Err(SignatureError { diagnostics }),
        }
    }
}

/// Fields by name, each with the span of its name.
type FieldMap = IndexMap<String, (Field, Span)>;

/// The role of a type in a signature.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TypeRole {
    Parameter,
    Field,
    Element,
    Result,
}

impl TypeRole {
    pub(super) const fn noun(self) -> &'static str {
        match self {
            TypeRole::Parameter => "parameter",
            TypeRole::Field => "field",
            TypeRole::Element => "element",
            TypeRole::Result => "result",
        }
    }
}

/// Reads types, and collects everything that is wrong with them.
pub(crate) struct TypeReader<'r> {
    /// Returns whether a name is that of a record type.
    is_record: &'r dyn Fn(&str) -> bool,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl<'r> TypeReader<'r> {
    pub(crate) fn new(is_record: &'r dyn Fn(&str) -> bool) -> Self {
        Self { is_record, diagnostics: Vec::new() }
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Reads a signature. Invalid types become `Any`, so that all mistakes are found.
    pub(crate) fn signature(&mut self, path: Pattern<'_>) -> Option<Signature> {
        if path.kind() != PatternKind::Path {
            let found = rule::NO_SIGNATURE
                .at(path.span(), "a signature must connect its parameters and its result with arrows");
            self.report(
                found.with_hint("write `(name::Text)==>(::Text)`, or `()==>(::Text)` if there are no parameters"),
            );
            return None;
        }
        let mut nodes = path.elements();
        let result = nodes.next_back()?;
        let parameters: Vec<_> = nodes.collect();
        let has_no_parameters = parameters.len() == 1 && parameters.iter().all(|node| is_empty(*node));
        let fields = if has_no_parameters { Vec::new() } else { self.fields(&parameters, TypeRole::Parameter) };
        self.check_arrows(path);
        // After a dangling arrow, which is a syntax error, the last node is not the result.
        if path.arrows().count() < path.elements().count() {
            self.check_result_name(result);
        }
        let returns = match self.type_of_node(result, TypeRole::Result) {
            Some((ty, _)) => ty,
            None => Type::new(Shape::Any),
        };
        Some(Signature { parameters: fields, returns })
    }

    /// Reports arrows that point to the left, or that differ from the first one. They mean the same, but a reader expects
    /// the result where the arrows point to.
    fn check_arrows(&mut self, path: Pattern<'_>) {
        let mut arrows = path.arrows();
        let Some(first) = arrows.clone().next() else { return };
        let span = |arrow: Arrow<'_>| arrow.syntax().span();
        let points_back = |arrow: &Arrow<'_>| arrow.points_left() && !arrow.points_right();
        if let Some(reversed) = arrows.clone().find(points_back) {
            let message = "this arrow points to the left, but the last node is always the result";
            let found = rule::MISLEADING_ARROW.at(span(reversed), message);
            self.report(found.with_hint("write `==>`, with the parameters first: `(name::Text)==>(::Text)`"));
        } else if let Some(other) = arrows.find(|arrow| arrow.glyph() != first.glyph()) {
            let message = format!("this signature mixes `{}` and `{}`", first.glyph(), other.glyph());
            let found = rule::MISLEADING_ARROW.at(span(other), message).with_related(span(first), "the first arrow");
            self.report(found.with_hint("all arrows mean the same; use `==>` everywhere"));
        }
    }

    /// Reports a result with a name: most likely it is a parameter, and the result was forgotten.
    fn check_result_name(&mut self, result: Pattern<'_>) {
        let (Some(identifier), Some(label)) = (result.identifier(), result.labels().next()) else { return };
        let name = identifier.text();
        let message = format!("the last node is the result, but `{name}` is named like a parameter");
        let found = rule::MISSING_RESULT.at(result.span(), message);
        self.report(found.with_hint(format!(
            "if it is a parameter, add the result: `==>(::Text)`; if it is the result, remove its name: `(::{label})`"
        )));
    }

    /// Reads a record type: `[Name:Object | (field::Type), …]`.
    pub(crate) fn record(&mut self, pattern: Pattern<'_>) -> Record {
        let mut nodes = Vec::new();
        for element in pattern.elements() {
            if element.kind() == PatternKind::Node {
                nodes.push(element);
            } else {
                let found = rule::BAD_FIELDS.at(element.span(), "a field of a record type must be a node");
                self.report(found.with_hint("write `(name::Text)`"));
            }
        }
        let description = pattern.get("description").and_then(Syntax::read_text).map(Cow::into_owned);
        Record { description, fields: self.fields(&nodes, TypeRole::Field) }
    }

    /// Reads nodes as fields, and reports duplicate names.
    fn fields(&mut self, nodes: &[Pattern<'_>], role: TypeRole) -> Vec<Field> {
        let mut fields = FieldMap::new();
        for node in nodes {
            if is_empty(*node) {
                let message = format!("this {} is empty", role.noun());
                let found = rule::EMPTY_PARAMETER.at(node.span(), message);
                self.report(found.with_hint("remove it, or give it a name and a type: `(name::Text)`"));
                continue;
            }
            let Some((ty, presence)) = self.type_of_node(*node, role) else { continue };
            let Some((name, span)) = self.name_of(*node, role) else { continue };
            self.add_field(&mut fields, Field { name, ty, presence }, span);
        }
        fields.into_values().map(|(field, _)| field).collect()
    }

    fn add_field(&mut self, fields: &mut FieldMap, field: Field, span: Span) {
        if let Some((_, first)) = fields.get(&field.name) {
            let found = rule::DUPLICATE_PARAMETER.at(span, format!("the name `{}` is used twice", field.name));
            let found = found.with_related(*first, "first used here");
            return self.report(found.with_hint("rename one of them"));
        }
        fields.insert(field.name.clone(), (field, span));
    }

    /// Returns the name of a parameter: its identifier, or the property `paramName`.
    fn name_of(&mut self, node: Pattern<'_>, role: TypeRole) -> Option<(String, Span)> {
        let named = node.get("paramName").filter(|_| role == TypeRole::Parameter);
        let identifier = node.identifier();
        match (identifier, named.and_then(|value| Some((value.read_text()?, value.span())))) {
            (Some(identifier), None) => Some((identifier.unquoted().into_owned(), identifier.span())),
            (None, Some((name, span))) if !name.is_empty() => Some((name.into_owned(), span)),
            (Some(identifier), Some((_, span))) => {
                let found = rule::NAME_PROPERTY.at(span, "this parameter has two names");
                let found = found.with_related(identifier.span(), "also named here");
                self.report(found.with_hint("remove `paramName`"));
                Some((identifier.unquoted().into_owned(), identifier.span()))
            }
            _ => {
                let label = node.labels().next().unwrap_or(Cow::Borrowed("Text"));
                let found = rule::ANONYMOUS_PARAMETER.at(node.span(), format!("this {} has no name", role.noun()));
                self.report(found.with_hint(format!("write the name before the type: `(name::{label})`")));
                None
            }
        }
    }

    fn type_of_node(&mut self, node: Pattern<'_>, role: TypeRole) -> Option<(Type, Presence)> {
        let mut labels = node.syntax().children().filter(|part| part.kind() == Kind::Label);
        let properties: Vec<_> = node.properties().collect();
        let (Some(label), extra) = (labels.next(), labels.next()) else {
            let found = match role {
                TypeRole::Result => rule::MISSING_RESULT
                    .at(node.span(), "this signature has no result type")
                    .with_hint("end the signature with the type of the result: `==>(::Text)`"),
                _ => {
                    let name = node.name().unwrap_or(Cow::Borrowed("name"));
                    rule::MISSING_TYPE
                        .at(node.span(), format!("this {} has no type", role.noun()))
                        .with_hint(format!("write the type after the name: `({name}::Text)`"))
                }
            };
            self.report(found);
            return None;
        };
        if let Some(extra) = extra {
            let found =
                rule::SEVERAL_TYPES.at(extra.span(), format!("{} can have only one type", with_article(role.noun())));
            self.report(found.with_related(label.span(), "the first type").with_hint("remove one of the labels"));
        }
        let name = node.labels().next().unwrap_or_default();
        Some(self.type_named(&name, label.span(), &properties, role))
    }

    /// Reads a type from its name and its properties.
    fn type_named(&mut self, name: &str, span: Span, properties: &[Property<'_>], role: TypeRole) -> (Type, Presence) {
        self.unknown_properties(properties, role);
        let (maybe, name) = match name.trim().strip_prefix("Maybe ") {
            Some(inner) => (true, inner.trim()),
            None => (false, name.trim()),
        };
        let property = |key: &str| properties.iter().rev().find(|property| property.key() == key).copied();
        let shape =
            if is_compact(name) { self.compact(name, span, &property) } else { self.shape(name, span, &property) };
        let mut ty = Type { shape, facets: Facets::default() };
        self.facets(&mut ty, &property);
        let is_unnamed = matches!(role, TypeRole::Element | TypeRole::Result);
        // The default of a nullable part may be null, so this is known before the default is checked.
        ty.facets.nullable = maybe && is_unnamed || self.nullable(property("nullable"));
        let presence = self.presence(&ty, &property, maybe, role);
        (ty, presence)
    }

    fn unknown_properties(&mut self, properties: &[Property<'_>], role: TypeRole) {
        for property in properties {
            let key = property.key();
            let is_known = PROPERTIES.contains(&key.as_ref()) && (key != "paramName" || role == TypeRole::Parameter);
            let is_in_map = matches!(key.as_ref(), "name" | "type") && role != TypeRole::Parameter;
            if is_known || is_in_map {
                continue;
            }
            let span = property.key_syntax().map_or(property.syntax().span(), Syntax::span);
            let mut found = rule::UNKNOWN_PROPERTY.at(span, format!("a type has no property `{key}`"));
            found.hint = Some(match nearest(&key, PROPERTIES.iter().copied()) {
                Some(name) => format!("did you mean `{name}`?").into(),
                None => format!("known properties: {}", PROPERTIES.join(", ")).into(),
            });
            self.report(found);
        }
    }

    fn shape<'t>(&mut self, name: &str, span: Span, property: &impl Fn(&str) -> Option<Property<'t>>) -> Shape {
        match name {
            "Text" | "String" => Shape::Text,
            "Int" | "Integer" => Shape::Integer,
            "Double" | "Number" => Shape::Number,
            "Bool" | "Boolean" => Shape::Boolean,
            "Any" => match property("schema") {
                Some(schema) => self.schema(schema),
                None => Shape::Any,
            },
            "Object" => Shape::Object(property("fields").map_or_else(Vec::new, |fields| self.object_fields(fields))),
            "Array" => self.array(span, property),
            name if (self.is_record)(name) => Shape::Record(name.to_owned()),
            name => {
                let names = BUILT_IN.iter().flat_map(|(name, other)| [*name, *other]);
                let mut found = rule::UNKNOWN_TYPE.at(span, format!("unknown type `{name}`"));
                found.hint = Some(match (nearest(name, names), instead_of(name)) {
                    (_, Some(instead)) => instead.into(),
                    (Some(near), None) => format!("did you mean `{near}`?").into(),
                    (None, None) => format!(
                        "the types are Text, Int, Double, Bool, Object, Array, Any, and record types such as `[{name}:Object | (field::Text)]`"
                    )
                    .into(),
                });
                self.report(found);
                Shape::Any
            }
        }
    }

    /// Reads a type in brackets or braces.
    fn compact<'t>(&mut self, text: &str, span: Span, property: &impl Fn(&str) -> Option<Property<'t>>) -> Shape {
        for property in ["fields", "elementType"].into_iter().filter_map(property) {
            let message = format!("`{}` does not apply to a type in brackets", property.key());
            let found = rule::INAPPLICABLE_PROPERTY.at(property.syntax().span(), message);
            self.report(found.with_hint("remove it, or write `Array` or `Object` instead of the brackets"));
        }
        match CompactType::parse(text) {
            Ok(ty) => self.compact_shape(ty, span),
            Err(reason) => {
                let found = rule::UNKNOWN_TYPE.at(span, format!("`{text}` is not a type: {reason}"));
                self.report(found.with_hint("write `[Text]` for an array, or `{name: Text, age: Int}` for an object"));
                Shape::Any
            }
        }
    }

    fn compact_shape(&mut self, ty: CompactType, span: Span) -> Shape {
        match ty {
            CompactType::Named(name) => self.type_named(&name, span, &[], TypeRole::Element).0.shape,
            CompactType::Maybe(inner) => self.compact_shape(*inner, span),
            CompactType::Array(item) => {
                let nullable = matches!(*item, CompactType::Maybe(_));
                let mut item = Type::new(self.compact_shape(*item, span));
                item.facets.nullable = nullable;
                Shape::Array(Box::new(item))
            }
            CompactType::Object(listed) => {
                let mut fields = FieldMap::new();
                for (name, ty) in listed {
                    let is_optional = matches!(ty, CompactType::Maybe(_));
                    let presence = if is_optional { Presence::Optional } else { Presence::Required };
                    let ty = Type::new(self.compact_shape(ty, span));
                    self.add_field(&mut fields, Field { name, ty, presence }, span);
                }
                Shape::Object(fields.into_values().map(|(field, _)| field).collect())
            }
        }
    }

    fn schema(&mut self, property: Property<'_>) -> Shape {
        let text = property.value().and_then(|value| match Value::read(value)? {
            Value::Tagged { tag, text } if tag == "json" => Some(text),
            _ => None,
        });
        let found = match text.map(|text| parse_json_schema(&text)) {
            Some(Ok(schema)) => return Shape::Schema(schema),
            Some(Err(reason)) => {
                let message = format!("not a valid JSON Schema: {reason}");
                rule::BAD_SCHEMA.at(property.syntax().span(), message)
            }
            None => rule::BAD_SCHEMA
                .at(property.syntax().span(), "not a JSON Schema")
                .with_hint("write it as a tagged string: schema: json`{\"type\":\"string\"}`"),
        };
        self.report(found);
        Shape::Any
    }

    fn array<'t>(&mut self, span: Span, property: &impl Fn(&str) -> Option<Property<'t>>) -> Shape {
        let element = property("elementType").and_then(Property::value);
        let item = match element.map(|value| (value, Value::read(value))) {
            Some((value, Some(Value::String(name) | Value::Symbol(name)))) => {
                // The fields of an object are next to the element type.
                let fields: Vec<_> = property("fields").into_iter().collect();
                self.type_named(&name, value.span(), &fields, TypeRole::Element).0
            }
            Some((value, Some(Value::Map(_)))) => {
                let properties: Vec<_> = value.properties().collect();
                let named = properties.iter().find(|property| property.key() == "type").and_then(|ty| ty.value());
                match named.and_then(|ty| Some((ty.span(), type_text(ty)?))) {
                    Some((span, name)) => self.type_named(&name, span, &properties, TypeRole::Element).0,
                    None => {
                        let found = rule::BAD_ELEMENT_TYPE.at(value.span(), "the element type has no `type`");
                        self.report(found.with_hint("write `elementType: { type: \"Text\" }`"));
                        Type::new(Shape::Any)
                    }
                }
            }
            _ => {
                let found = rule::BAD_ELEMENT_TYPE.at(span, "the array has no element type");
                self.report(found.with_hint("write `Array {elementType: \"Text\"}`"));
                Type::new(Shape::Any)
            }
        };
        Shape::Array(Box::new(item))
    }

    /// Reads `fields`: maps with `name` and `type`, or one map from names to types.
    fn object_fields(&mut self, property: Property<'_>) -> Vec<Field> {
        let mut fields = FieldMap::new();
        match property.value() {
            Some(value) if value.kind() == Kind::Array => {
                let mut invalid: Option<Diagnostic> = None;
                for item in value.children() {
                    let found = self.listed_field(item, &mut fields);
                    invalid = match (invalid, found) {
                        (Some(first), Some(other)) => Some(first.with_related(other.span, "also this field")),
                        (first, found) => first.or(found),
                    };
                }
                self.diagnostics.extend(invalid);
            }
            Some(value) if value.kind() == Kind::Map => {
                for entry in value.properties() {
                    self.mapped_field(entry, &mut fields);
                }
            }
            _ => {
                let found = rule::BAD_FIELDS.at(property.syntax().span(), "`fields` must be a list or a map");
                self.report(
                    found.with_hint("write `fields: [{name: \"age\", type: \"Int\"}]` or `fields: {age: \"Int\"}`"),
                );
            }
        }
        fields.into_values().map(|(field, _)| field).collect()
    }

    /// Reads a field from a list, or returns a diagnostic.
    fn listed_field(&mut self, item: Syntax<'_>, fields: &mut FieldMap) -> Option<Diagnostic> {
        let properties: Vec<_> = item.properties().filter(|_| item.kind() == Kind::Map).collect();
        let text = |key: &str| {
            let value = properties.iter().find(|property| property.key() == key)?.value()?;
            Some((type_text(value)?, value.span()))
        };
        let (Some((name, name_span)), Some((type_name, type_span))) = (text("name"), text("type")) else {
            let found = rule::BAD_FIELDS.at(item.span(), "a field needs a name and a type");
            let name = type_text(item).or_else(|| Some(text("name")?.0)).unwrap_or_else(|| "age".to_owned());
            return Some(found.with_hint(format!("write `{{name: {}, type: \"Text\"}}`", patter_gram::quote(&name))));
        };
        let (ty, presence) = self.type_named(&type_name, type_span, &properties, TypeRole::Field);
        self.add_field(fields, Field { name, ty, presence }, name_span);
        None
    }

    fn mapped_field(&mut self, entry: Property<'_>, fields: &mut FieldMap) {
        let span = entry.key_syntax().map_or(entry.syntax().span(), Syntax::span);
        let Some((value, type_name)) = entry.value().and_then(|value| Some((value, type_text(value)?))) else {
            let found = rule::BAD_FIELDS.at(entry.syntax().span(), "the type of a field must be a string");
            return self.report(found.with_hint("write `fields: {age: \"Int\"}`"));
        };
        let (ty, presence) = self.type_named(&type_name, value.span(), &[], TypeRole::Field);
        self.add_field(fields, Field { name: entry.key().into_owned(), ty, presence }, span);
    }
}

/// Parses a JSON Schema, or returns the reason why it is invalid.
fn parse_json_schema(text: &str) -> Result<Json, String> {
    let schema: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    // Compiling it also detects an unknown `$schema` and dangling references.
    match jsonschema::validator_for(&schema) {
        Ok(_) => Ok(schema),
        Err(error) if error.instance_path().as_str().is_empty() => Err(error.to_string()),
        Err(error) => Err(format!("at {}, {error}", error.instance_path())),
    }
}

fn is_empty(node: Pattern<'_>) -> bool {
    node.syntax().children().next().is_none()
}

fn type_text(value: Syntax<'_>) -> Option<String> {
    match Value::read(value)? {
        Value::String(text) | Value::Symbol(text) => Some(text),
        _ => None,
    }
}

/// Returns what to write instead of a type that other languages have.
fn instead_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "List" | "Vec" | "Set" | "Sequence" | "Tuple" => "write `Array {elementType: \"Text\"}`",
        "Float" | "Decimal" | "Real" | "Float64" => "write `Double`",
        "Long" | "Short" | "Byte" | "BigInt" => "write `Int`",
        "Char" | "Varchar" | "Uuid" | "UUID" => "write `Text`",
        "Dict" | "Map" | "Json" | "JSON" | "Struct" | "Record" => "write `Object {fields: {name: \"Text\"}}`",
        "Date" => "write `Text {format: \"date\"}`",
        "DateTime" | "Timestamp" => "write `Text {format: \"date-time\"}`",
        "Url" | "URL" | "Uri" => "write `Text {format: \"uri\"}`",
        "Maybe" | "Optional" | "Option" => {
            "write the type in backticks, as in `Maybe Int`, or add `{optional: true}` to it"
        }
        _ => return None,
    })
}
