//! What narrows a type, and whether a value may be left out.

use super::read::{Place, Reader};
use super::value::{integer_number, json_of};
use super::{Bounds, Presence, Records, Shape, Type};
use crate::rule;
use crate::text::with_article;
use patter_gram::{Diagnostic, Number as GramNumber, Property, Syntax, Value};
use serde_json::{Number, Value as Json};
use std::borrow::Cow;
use std::collections::HashSet;

impl Reader<'_> {
    pub(super) fn facets<'t>(&mut self, ty: &mut Type, property: &impl Fn(&str) -> Option<Property<'t>>) {
        ty.facets.description = self.text(property("description"));
        ty.facets.format = self.text(property("format"));
        ty.facets.pattern = self.pattern(ty, property("pattern"));
        ty.facets.range = self.range(ty, property("range"));
        let misapplied = [
            ("fields", matches!(&ty.shape, Shape::Object(_)) || is_array_of_objects(&ty.shape)),
            ("elementType", matches!(&ty.shape, Shape::Array(_))),
            ("schema", matches!(&ty.shape, Shape::Any | Shape::Schema(_))),
            ("format", matches!(&ty.shape, Shape::Text | Shape::Any)),
        ];
        for (key, fits) in misapplied {
            if let Some(property) = property(key).filter(|_| !fits) {
                let span = property.syntax().span();
                let found = rule::MISAPPLIED.at(span, format!("`{key}` does not fit the type {ty}"));
                self.report(found.with_hint("remove it, or change the type"));
            }
        }
        ty.facets.allowed = self.allowed(ty, property("enum"));
    }

    fn text(&mut self, property: Option<Property<'_>>) -> Option<String> {
        let property = property?;
        let text = property.value().and_then(Syntax::read_text);
        if text.is_none() {
            let message = format!("`{}` must be a text", property.key());
            self.report(rule::WRONG_VALUE.at(property.syntax().span(), message).with_hint("put quotes around it"));
        }
        text.map(Cow::into_owned)
    }

    fn pattern(&mut self, ty: &Type, property: Option<Property<'_>>) -> Option<String> {
        let pattern = self.text(property)?;
        let span = property?.syntax().span();
        if !matches!(ty.shape, Shape::Text) {
            let found = rule::MISAPPLIED.at(span, format!("`pattern` does not fit the type {ty}"));
            self.report(found.with_hint("only Text has a pattern"));
            return None;
        }
        if let Err(error) = regex::Regex::new(&pattern) {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            self.report(rule::BAD_PATTERN.at(span, format!("this is not a regular expression: {reason}")));
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
        let (lower, upper) = (number(lower), number(upper));
        let counts = matches!(ty.shape, Shape::Text | Shape::Array(_));
        let is_whole = |bound: &Option<Option<Number>>| match bound {
            Some(Some(number)) => number.is_u64() || !counts && (matches!(ty.shape, Shape::Number) || number.is_i64()),
            Some(None) => false,
            None => true,
        };
        if !matches!(ty.shape, Shape::Integer | Shape::Number | Shape::Text | Shape::Array(_)) {
            let found = rule::MISAPPLIED.at(span, format!("`range` does not fit the type {ty}"));
            self.report(found.with_hint("numbers, texts (their length) and arrays (their items) have a range"));
            return None;
        }
        if !is_whole(&lower) || !is_whole(&upper) {
            let message = match ty.shape {
                Shape::Integer => "the range of an Int has whole numbers for ends",
                Shape::Number => "the range of a Double has numbers for ends",
                _ => "this range counts, so its ends are whole numbers from 0",
            };
            self.report(rule::BAD_RANGE.at(span, message));
            return None;
        }
        let bounds = Bounds { lower: lower.flatten(), upper: upper.flatten() };
        if let (Some(lower), Some(upper)) = (&bounds.lower, &bounds.upper)
            && lower.as_f64() > upper.as_f64()
        {
            let found = rule::BAD_RANGE.at(span, format!("the range is empty: {lower} is more than {upper}"));
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
        let mut misfit: Option<Diagnostic> = None;
        let mut listed = HashSet::new();
        for (item, syntax) in items.iter().zip(value.into_iter().flat_map(Syntax::children)) {
            let json = json_of(item).filter(|json| ty.allows_shallow(json));
            match json {
                Some(json) if !listed.insert(json.to_string()) => {
                    let found = rule::BAD_ENUM.at(syntax.span(), format!("{item} is listed twice"));
                    self.report(found.with_hint("remove one of the two"));
                }
                Some(json) => allowed.push(json),
                None => {
                    misfit = Some(match misfit {
                        Some(first) => first.with_related(syntax.span(), "and this"),
                        None => {
                            let message = format!("{item} is {}, but the type is {ty}", with_article(item.type_name()));
                            rule::BAD_ENUM.at(syntax.span(), message).with_hint("change the values, or the type")
                        }
                    });
                }
            }
        }
        self.diagnostics.extend(misfit);
        Some(allowed)
    }

    pub(super) fn presence<'t>(
        &mut self,
        ty: &Type,
        property: &impl Fn(&str) -> Option<Property<'t>>,
        maybe: bool,
        place: Place,
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
        if matches!(place, Place::Result | Place::Element) {
            for property in ["default", "optional"].into_iter().filter_map(property) {
                let message = format!("`{}` has no effect on {}", property.key(), with_article(place.noun()));
                let found = rule::OPTIONAL_RESULT.at(property.syntax().span(), message);
                self.report(found.with_hint(if property.key() == "optional" {
                    format!("remove it; where the value may be missing, write the type `Maybe {ty}`")
                } else {
                    "remove it; only parameters and fields have a default".to_owned()
                }));
            }
            return Presence::Required;
        }
        let Some(default) = property("default") else {
            return if maybe || is_optional { Presence::Optional } else { Presence::Required };
        };
        let Some(value) = default.value().and_then(Value::read) else { return Presence::Optional };
        let span = default.value().map_or(default.syntax().span(), Syntax::span);
        let Some(json) = json_of(&value) else {
            let message = format!("a {} cannot be a default", value.type_name());
            self.report(rule::BAD_DEFAULT.at(span, message).with_hint("remove it, or write another value"));
            return Presence::Optional;
        };
        // Record types may not be known yet; the check of a project looks at their defaults when all are.
        if let Err(mismatches) = ty.check(&json, &Records::default())
            && !ty.mentions_record()
        {
            let reason = mismatches.first().map_or_else(String::new, ToString::to_string);
            let found = rule::BAD_DEFAULT.at(span, format!("this default does not fit its type: {reason}"));
            self.report(found.with_hint("change the default, or the type"));
        }
        Presence::Default(json)
    }
}

fn is_array_of_objects(shape: &Shape) -> bool {
    matches!(shape, Shape::Array(item) if matches!(item.shape, Shape::Object(_)))
}

/// Returns a number of a range as JSON; a measurement has none.
fn json_number(number: &GramNumber) -> Option<Number> {
    match number {
        GramNumber::Integer(integer) => integer_number(integer),
        GramNumber::Decimal(decimal) => Number::from_f64(decimal.to_f64()),
        GramNumber::Measurement { .. } => None,
    }
}
