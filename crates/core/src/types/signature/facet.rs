//! Reading the facets of a type, and whether a value may be omitted.

use super::read::{TypeReader, TypeRole};
use super::schema_cache::SchemaCache;
use super::validate::check_value;
use super::value::{integer_number, value_to_json};
use super::{Bounds, Presence, Records, Shape, Type};
use crate::rule;
use crate::text::{nearest, with_article};
use patter_gram::{Diagnostic, Number as GramNumber, Property, Syntax, Value};
use serde_json::{Number, Value as Json};
use std::borrow::Cow;
use std::collections::HashSet;

/// The formats of JSON Schema and OpenAPI.
const FORMATS: &[&str] = &[
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "uri-template",
    "iri",
    "iri-reference",
    "uuid",
    "json-pointer",
    "relative-json-pointer",
    "regex",
    "byte",
    "binary",
    "password",
];

/// Returns the standard format that a format resembles, if it is not one itself.
pub(crate) fn misspelt_format(format: &str) -> Option<&'static str> {
    nearest(format, FORMATS.iter().copied()).filter(|near| *near != format)
}

impl TypeReader<'_> {
    pub(super) fn facets<'t>(&mut self, ty: &mut Type, property: &impl Fn(&str) -> Option<Property<'t>>) {
        ty.facets.description = self.text(property("description"));
        ty.facets.format = self.text(property("format"));
        self.check_format(ty.facets.format.as_deref(), property("format"));
        ty.facets.pattern = self.pattern(ty, property("pattern"));
        ty.facets.range = self.range(ty, property("range"));
        let applicability = [
            ("fields", matches!(&ty.shape, Shape::Object(_)) || is_array_of_objects(&ty.shape)),
            ("elementType", matches!(&ty.shape, Shape::Array(_))),
            ("schema", matches!(&ty.shape, Shape::Any | Shape::Schema(_))),
            ("format", matches!(&ty.shape, Shape::Text | Shape::Any)),
        ];
        for (key, applies) in applicability {
            if let Some(property) = property(key).filter(|_| !applies) {
                let span = property.syntax().span();
                let found = rule::INAPPLICABLE_PROPERTY.at(span, format!("`{key}` does not apply to the type {ty}"));
                self.report(found.with_hint("remove it, or change the type"));
            }
        }
        ty.facets.allowed = self.allowed(ty, property("enum"));
    }

    pub(super) fn nullable(&mut self, property: Option<Property<'_>>) -> bool {
        let Some(property) = property else { return false };
        match property.value().and_then(Value::read) {
            Some(Value::Boolean(nullable)) => nullable,
            _ => {
                let found = rule::WRONG_VALUE.at(property.syntax().span(), "`nullable` must be true or false");
                self.report(found);
                false
            }
        }
    }

    fn text(&mut self, property: Option<Property<'_>>) -> Option<String> {
        let property = property?;
        let text = property.value().and_then(Syntax::read_text);
        if text.is_none() {
            let message = format!("`{}` must be a string", property.key());
            self.report(rule::WRONG_VALUE.at(property.syntax().span(), message).with_hint("put quotes around it"));
        }
        text.map(Cow::into_owned)
    }

    /// Reports a format that resembles a standard one. Others are allowed, because anyone may define formats.
    fn check_format(&mut self, format: Option<&str>, property: Option<Property<'_>>) {
        let (Some(format), Some(property)) = (format, property) else { return };
        let Some(near) = misspelt_format(format) else { return };
        let span = property.value().map_or(property.syntax().span(), Syntax::span);
        let found = rule::MISSPELT_FORMAT.at(span, format!("`{format}` is not a standard format"));
        self.report(found.with_hint(format!("did you mean `{near}`?")));
    }

    fn pattern(&mut self, ty: &Type, property: Option<Property<'_>>) -> Option<String> {
        let pattern = self.text(property)?;
        let span = property?.syntax().span();
        if !matches!(ty.shape, Shape::Text) {
            let found = rule::INAPPLICABLE_PROPERTY.at(span, format!("`pattern` does not apply to the type {ty}"));
            self.report(found.with_hint("only Text can have a pattern"));
            return None;
        }
        if let Err(error) = regex::Regex::new(&pattern) {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let found = rule::BAD_PATTERN.at(span, format!("invalid regular expression: {reason}"));
            self.report(found.with_hint("put a backslash before a character that is meant literally"));
            return None;
        }
        Some(pattern)
    }

    fn range(&mut self, ty: &Type, property: Option<Property<'_>>) -> Option<Bounds> {
        let property = property?;
        let span = property.syntax().span();
        let Some(Value::Range { lower, upper }) = property.value().and_then(Value::read) else {
            let found = rule::BAD_RANGE.at(span, "`range` must be a range");
            self.report(found.with_hint("write `range: 1..10`, `range: 1...` or `range: ...10`"));
            return None;
        };
        let number = |bound: Option<GramNumber>| bound.map(|bound| json_number(&bound));
        let lower = number(lower);
        let upper = number(upper);
        let is_count = matches!(ty.shape, Shape::Text | Shape::Array(_));
        let is_valid = |bound: &Option<Option<Number>>| match bound {
            Some(Some(number)) => {
                number.is_u64() || !is_count && (matches!(ty.shape, Shape::Number) || number.is_i64())
            }
            Some(None) => false,
            None => true,
        };
        if !matches!(ty.shape, Shape::Integer | Shape::Number | Shape::Text | Shape::Array(_)) {
            let found = rule::INAPPLICABLE_PROPERTY.at(span, format!("`range` does not apply to the type {ty}"));
            self.report(found.with_hint(
                "a range applies to numbers, to the length of a Text and to the number of items in an Array",
            ));
            return None;
        }
        if !is_valid(&lower) || !is_valid(&upper) {
            let message = match ty.shape {
                Shape::Integer => "the bounds of an Int must be whole numbers",
                Shape::Number => "the bounds of a Double must be numbers",
                _ => "the bounds of a length or a number of items must be whole numbers, at least 0",
            };
            self.report(rule::BAD_RANGE.at(span, message));
            return None;
        }
        let bounds = Bounds { lower: lower.flatten(), upper: upper.flatten() };
        if let (Some(lower), Some(upper)) = (&bounds.lower, &bounds.upper)
            && lower.as_f64() > upper.as_f64()
        {
            let found = rule::BAD_RANGE.at(span, format!("the range is empty: {lower} is greater than {upper}"));
            self.report(found.with_hint(format!("write `{upper}..{lower}`")));
            return None;
        }
        Some(bounds)
    }

    fn allowed(&mut self, ty: &Type, property: Option<Property<'_>>) -> Option<Vec<Json>> {
        let property = property?;
        let value = property.value();
        let items = match value.and_then(Value::read) {
            Some(Value::Array(items)) if !items.is_empty() => items,
            _ => {
                let found = rule::BAD_ENUM.at(property.syntax().span(), "`enum` must be a list of values");
                self.report(found.with_hint("write `enum: [\"low\", \"high\"]`"));
                return None;
            }
        };
        let mut allowed: Vec<Json> = Vec::new();
        let mut mismatch: Option<Diagnostic> = None;
        let mut listed = HashSet::new();
        let mut cache = SchemaCache::default();
        cache.add(ty);
        for (item, syntax) in items.iter().zip(value.into_iter().flat_map(Syntax::children)) {
            if contains_null(item) {
                let found = rule::BAD_ENUM.at(syntax.span(), "`null` is not a value that can be listed");
                self.report(found.with_hint("remove it; to allow that the value is omitted, write `optional: true`"));
                continue;
            }
            let json = value_to_json(item).filter(|json| ty.allows_shallow(json));
            // Record types may not be known yet.
            let mismatches = json.as_ref().filter(|_| !ty.mentions_record());
            let mismatches = mismatches.and_then(|json| check_value(ty, json, &Records::default(), &cache).err());
            if let Some(reason) = mismatches.as_ref().and_then(|mismatches| mismatches.first()) {
                mismatch = Some(match mismatch {
                    Some(first) => first.with_related(syntax.span(), "also this value"),
                    None => rule::BAD_ENUM
                        .at(syntax.span(), format!("{item} does not match the type: {reason}"))
                        .with_hint("change the values, the range or the pattern"),
                });
                continue;
            }
            match json {
                Some(json) if !listed.insert(json.to_string()) => {
                    let found = rule::BAD_ENUM.at(syntax.span(), format!("{item} is listed twice"));
                    self.report(found.with_hint("remove one of them"));
                }
                Some(json) => allowed.push(json),
                None => {
                    mismatch = Some(match mismatch {
                        Some(first) => first.with_related(syntax.span(), "also this value"),
                        None => {
                            let message = format!("{item} is {}, but the type is {ty}", with_article(item.type_name()));
                            rule::BAD_ENUM.at(syntax.span(), message).with_hint("change the values or the type")
                        }
                    });
                }
            }
        }
        self.diagnostics.extend(mismatch);
        Some(allowed)
    }

    pub(super) fn presence<'t>(
        &mut self,
        ty: &Type,
        property: &impl Fn(&str) -> Option<Property<'t>>,
        maybe: bool,
        role: TypeRole,
    ) -> Presence {
        let optional = property("optional").map(|property| (property, property.value().and_then(Value::read)));
        let is_optional = match optional {
            Some((_, Some(Value::Boolean(optional)))) => optional,
            Some((property, _)) => {
                let found = rule::WRONG_VALUE.at(property.syntax().span(), "`optional` must be true or false");
                self.report(found);
                false
            }
            None => false,
        };
        if matches!(role, TypeRole::Result | TypeRole::Element) {
            for property in ["default", "optional"].into_iter().filter_map(property) {
                let message = format!("`{}` has no effect on {}", property.key(), with_article(role.noun()));
                let found = rule::INAPPLICABLE_PRESENCE.at(property.syntax().span(), message);
                self.report(found.with_hint(if property.key() == "optional" {
                    format!("remove it; if the value may be missing, use the type `Maybe {ty}`")
                } else {
                    "remove it; only parameters and fields can have a default".to_owned()
                }));
            }
            return Presence::Required;
        }
        let default = property("default");
        if let Some((property, Some(Value::Boolean(false)))) = optional
            && (maybe || default.is_some())
        {
            let message = match default {
                Some(_) => "`optional: false` contradicts the default: a value with a default may be omitted",
                None => "`optional: false` contradicts `Maybe`, which means that the value may be omitted",
            };
            let found = rule::CONTRADICTORY_PRESENCE.at(property.syntax().span(), message);
            self.report(found.with_hint(match default {
                Some(_) => "remove the default if the value is required, or else `optional: false`".to_owned(),
                None => format!("write the type {ty} if the value is required, or else remove `optional: false`"),
            }));
        }
        let Some(default) = default else {
            return if maybe || is_optional { Presence::Optional } else { Presence::Required };
        };
        let Some(value) = default.value().and_then(Value::read) else { return Presence::Optional };
        let span = default.value().map_or(default.syntax().span(), Syntax::span);
        if contains_null(&value) {
            let found = rule::BAD_DEFAULT.at(span, "`null` cannot be a default");
            self.report(found.with_hint(match ty.shape {
                Shape::Text => "to allow that it is omitted, write `optional: true` instead; quote it to mean the text",
                _ => "to allow that it is omitted, write `optional: true` instead",
            }));
            return Presence::Optional;
        }
        let Some(json) = value_to_json(&value) else {
            let message = format!("{} cannot be a default", with_article(value.type_name()));
            self.report(rule::BAD_DEFAULT.at(span, message).with_hint("use a different value, or remove it"));
            return Presence::Optional;
        };
        // Record types may not be known yet, so their defaults are checked later, with the whole project.
        if let Err(mismatches) = ty.check(&json, &Records::default())
            && !ty.mentions_record()
        {
            let reason = mismatches.first().map_or_else(String::new, ToString::to_string);
            let found = rule::BAD_DEFAULT.at(span, format!("the default does not match its type: {reason}"));
            self.report(found.with_hint("change the default or the type"));
        }
        Presence::Default(json)
    }
}

/// Returns whether a value is or contains the symbol `null`, which gram does not distinguish from other symbols.
fn contains_null(value: &Value) -> bool {
    match value {
        Value::Symbol(symbol) => symbol == "null",
        Value::Array(items) => items.iter().any(contains_null),
        Value::Map(entries) => entries.iter().any(|(_, value)| contains_null(value)),
        _ => false,
    }
}

fn is_array_of_objects(shape: &Shape) -> bool {
    matches!(shape, Shape::Array(item) if matches!(item.shape, Shape::Object(_)))
}

/// Converts a bound of a range to JSON. A measurement has no equivalent.
fn json_number(number: &GramNumber) -> Option<Number> {
    match number {
        GramNumber::Integer(integer) => integer_number(integer),
        GramNumber::Decimal(decimal) => Number::from_f64(decimal.to_f64()),
        GramNumber::Measurement { .. } => None,
    }
}
