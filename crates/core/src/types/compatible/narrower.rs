//! Structural subtyping.

use super::describe::described;
use super::{Misfit, What};
use crate::types::signature::{Bounds, Facets, Field, Presence, Records, Shape, Step, Type, compare, same};
use serde_json::{Number, Value as Json, json};
use std::cmp::Ordering;
use std::collections::HashSet;

/// What happens to the defaults of the narrower type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Defaults {
    /// They are put in where nothing is, so the field is always there.
    PutIn,
    /// They are not: the field may be missing.
    LeftOut,
}

/// Whether there may be more fields than those that are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    None,
    Any,
}

/// A place inside of a type: the number of the step that leads to it; 0 is outside.
type Place = usize;

/// Compares types, and notes where one is not narrower than the other.
pub(super) struct Narrower<'t> {
    narrow: &'t Records,
    wide: &'t Records,
    defaults: Defaults,
    /// Pairs still to be compared, the next one last. A list instead of the call stack: record types may form long
    /// chains.
    open: Vec<(Place, &'t Type, &'t Type)>,
    /// The steps to the places, each with the place that it starts from.
    steps: Vec<(Place, Step)>,
    /// Pairs of fields that were compared, or are being compared: types that contain themselves end here.
    seen: HashSet<(*const Field, *const Field)>,
    pub(super) misfits: Vec<Misfit>,
}

impl<'t> Narrower<'t> {
    pub(super) fn new(narrow: &'t Records, wide: &'t Records, defaults: Defaults) -> Self {
        Self { narrow, wide, defaults, open: Vec::new(), steps: Vec::new(), seen: HashSet::new(), misfits: Vec::new() }
    }

    pub(super) fn types(&mut self, narrow: &'t Type, wide: &'t Type) {
        self.open.push((0, narrow, wide));
        self.finish();
    }

    pub(super) fn parameters(&mut self, narrow: &'t [Field], wide: &'t [Field]) {
        self.fields(0, narrow, wide, Others::None);
        self.finish();
    }

    fn finish(&mut self) {
        while let Some((place, narrow, wide)) = self.open.pop() {
            if !self.compare(place, narrow, wide) {
                self.misfits.push(Misfit::types(self.path(place), narrow, wide));
            }
        }
    }

    /// Takes a step from a place, and returns where it leads.
    fn step(&mut self, from: Place, step: Step) -> Place {
        self.steps.push((from, step));
        self.steps.len()
    }

    fn path(&self, mut place: Place) -> Vec<Step> {
        let mut path = Vec::new();
        while let Some((from, step)) = place.checked_sub(1).and_then(|index| self.steps.get(index)) {
            path.push(step.clone());
            place = *from;
        }
        path.reverse();
        path
    }

    fn misfit(&mut self, place: Place, what: What) {
        self.misfits.push(Misfit { path: self.path(place), what });
    }

    /// Compares two types from outside, and leaves what is inside for later.
    fn compare(&mut self, place: Place, narrow: &'t Type, wide: &'t Type) -> bool {
        if narrow.facets.nullable && wide.check(&Json::Null, self.wide).is_err() {
            return false;
        }
        if is_anything(wide) {
            return true;
        }
        if let Some(allowed) = &narrow.facets.allowed {
            let mut values = allowed.iter().filter(|value| narrow.check(value, self.narrow).is_ok());
            return values.all(|value| wide.check(value, self.wide).is_ok());
        }
        self.shapes(place, narrow, wide) && narrows(narrow, wide)
    }

    fn shapes(&mut self, place: Place, narrow: &'t Type, wide: &'t Type) -> bool {
        match (&narrow.shape, &wide.shape) {
            (_, Shape::Any)
            | (Shape::Text, Shape::Text)
            | (Shape::Boolean, Shape::Boolean)
            | (Shape::Integer, Shape::Integer | Shape::Number)
            | (Shape::Number, Shape::Number) => true,
            (Shape::Schema(narrow), Shape::Schema(wide)) => narrow == wide,
            (Shape::Array(narrow), Shape::Array(wide)) => {
                let item = self.step(place, Step::Index(0));
                self.open.push((item, narrow, wide));
                true
            }
            (narrow, wide) => match (fields_of(narrow, self.narrow), fields_of(wide, self.wide)) {
                (Some(narrow), Some(wide)) => {
                    self.fields(place, narrow, wide, Others::Any);
                    true
                }
                _ => false,
            },
        }
    }

    fn fields(&mut self, place: Place, narrow: &'t [Field], wide: &'t [Field], others: Others) {
        if !self.seen.insert((narrow.as_ptr(), wide.as_ptr())) {
            return;
        }
        let mut inside = Vec::new();
        for field in wide {
            let place = self.step(place, Step::Key(field.name.clone()));
            let is_required = field.presence == Presence::Required;
            let Some(found) = narrow.iter().find(|other| other.name == field.name) else {
                if is_required {
                    self.misfit(place, What::Missing);
                } else if others == Others::Any && !is_anything(&field.ty) {
                    self.misfit(place, What::Unknown { wide: described(&field.ty) });
                }
                continue;
            };
            let is_there = match found.presence {
                Presence::Required => true,
                Presence::Default(_) => self.defaults == Defaults::PutIn,
                Presence::Optional => false,
            };
            if is_required && !is_there {
                self.misfit(place, What::Optional);
            }
            inside.push((place, &found.ty, &field.ty));
        }
        self.open.extend(inside.into_iter().rev());
    }
}

/// Returns the fields of an object or a record type.
fn fields_of<'t>(shape: &'t Shape, records: &'t Records) -> Option<&'t [Field]> {
    match shape {
        Shape::Object(fields) => Some(fields),
        Shape::Record(name) => records.get(name).map(|record| record.fields.as_slice()),
        _ => None,
    }
}

/// Tells whether a type allows every value.
fn is_anything(ty: &Type) -> bool {
    let is_wide = match &ty.shape {
        Shape::Any | Shape::Schema(Json::Bool(true)) => true,
        Shape::Schema(Json::Object(keywords)) => keywords.is_empty(),
        _ => false,
    };
    let Facets { allowed, range, pattern, description: _, format: _, nullable: _ } = &ty.facets;
    is_wide && allowed.is_none() && range.is_none() && pattern.is_none()
}

/// Tells whether the facets of a type without listed values are at least as narrow as those of another.
fn narrows(narrow: &Type, wide: &Type) -> bool {
    let lists_all = match &wide.facets.allowed {
        None => true,
        Some(allowed) if narrow.shape == Shape::Boolean => {
            [json!(true), json!(false)].iter().all(|value| allowed.iter().any(|other| same(other, value)))
        }
        Some(_) => false,
    };
    let has_size = !matches!(narrow.shape, Shape::Boolean | Shape::Object(_) | Shape::Record(_));
    let in_range = match &wide.facets.range {
        Some(range) if has_size => contains(range, narrow.facets.range.as_ref(), &narrow.shape),
        _ => true,
    };
    let may_be_text = matches!(narrow.shape, Shape::Any | Shape::Text | Shape::Schema(_));
    let matches = match &wide.facets.pattern {
        Some(pattern) if may_be_text => narrow.facets.pattern.as_ref() == Some(pattern),
        _ => true,
    };
    lists_all && in_range && matches
}

fn contains(wide: &Bounds, narrow: Option<&Bounds>, shape: &Shape) -> bool {
    let least = matches!(shape, Shape::Text | Shape::Array(_)).then(|| Number::from(0));
    let lower = narrow.and_then(|bounds| bounds.lower.as_ref()).or(least.as_ref());
    let upper = narrow.and_then(|bounds| bounds.upper.as_ref());
    let is = |order: Ordering, inner: Option<&Number>, outer: &Number| {
        inner.is_some_and(|inner| compare(inner, outer).is_some_and(|found| found != order))
    };
    wide.lower.as_ref().is_none_or(|outer| is(Ordering::Less, lower, outer))
        && wide.upper.as_ref().is_none_or(|outer| is(Ordering::Greater, upper, outer))
}
