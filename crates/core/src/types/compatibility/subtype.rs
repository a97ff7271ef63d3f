//! Structural subtyping.

use super::describe::describe;
use crate::types::signature::{
    Bounds, Facets, Field, PathStep, Presence, Records, SchemaCache, Shape, Type, ValueIndex, check_value,
    compare_numbers,
};
use serde_json::{Number, Value as Json, json};
use std::cmp::Ordering;
use std::collections::HashSet;

/// A part of two types where one is not a subtype of the other.
pub(super) struct Discrepancy {
    pub(super) path: Vec<PathStep>,
    pub(super) kind: DiscrepancyKind,
}

/// Why one part is not a subtype of the other, with descriptions of both.
pub(super) enum DiscrepancyKind {
    Type {
        sub: String,
        sup: String,
    },
    Missing,
    Optional,
    Unknown {
        sup: String,
    },
    /// The other side does not accept a field of this name, but only these.
    Unaccepted {
        accepted: Vec<String>,
    },
}

/// How the defaults of the subtype are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DefaultHandling {
    /// They are filled in, so a field with a default is always present.
    Apply,
    /// They are ignored, so a field with a default may be missing.
    Ignore,
}

/// What is assumed about the fields of an object that only one of two types lists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UnlistedFields {
    /// A field that only the supertype lists may contain anything. One that only the subtype lists is accepted.
    Anything,
    /// A field that only the supertype lists may contain anything. One that only the subtype lists would be lost, unless
    /// the supertype lists none.
    Lost,
    /// A field that only the supertype lists is missing. One that only the subtype lists is accepted.
    Missing,
    /// A field that only the supertype lists is missing. One that only the subtype lists is not accepted.
    Rejected,
}

/// The path to a part of a type: one more than the index of its last step, or 0 for the whole type.
type PathId = usize;

/// Compares types, and records where one is not a subtype of the other.
pub(super) struct SubtypeCheck<'t> {
    sub_records: &'t Records,
    sup_records: &'t Records,
    defaults: DefaultHandling,
    /// What is assumed about objects inside the types.
    unlisted: UnlistedFields,
    /// Pairs that remain to be compared, the next one last. This is a list instead of recursion because record types may
    /// form long chains.
    open: Vec<(PathId, &'t Type, &'t Type)>,
    /// The steps of all paths, each with the path that it extends.
    steps: Vec<(PathId, PathStep)>,
    /// Pairs of field lists that have been visited, so that the comparison of recursive types terminates.
    seen: HashSet<(*const Field, *const Field)>,
    pub(super) discrepancies: Vec<Discrepancy>,
}

impl<'t> SubtypeCheck<'t> {
    pub(super) fn new(sub_records: &'t Records, sup_records: &'t Records, defaults: DefaultHandling) -> Self {
        Self {
            sub_records,
            sup_records,
            defaults,
            unlisted: UnlistedFields::Anything,
            open: Vec::new(),
            steps: Vec::new(),
            seen: HashSet::new(),
            discrepancies: Vec::new(),
        }
    }

    pub(super) fn with_unlisted(self, unlisted: UnlistedFields) -> Self {
        Self { unlisted, ..self }
    }

    pub(super) fn types(&mut self, sub: &'t Type, sup: &'t Type) {
        self.open.push((0, sub, sup));
        self.finish();
    }

    pub(super) fn parameters(&mut self, sub: &'t [Field], sup: &'t [Field]) {
        self.fields(0, sub, sup, UnlistedFields::Rejected);
        self.finish();
    }

    fn finish(&mut self) {
        while let Some((path, sub, sup)) = self.open.pop() {
            if !self.compare(path, sub, sup) {
                self.report(path, DiscrepancyKind::Type { sub: describe(sub), sup: describe(sup) });
            }
        }
    }

    /// Extends a path by a step.
    fn extend_path(&mut self, path: PathId, step: PathStep) -> PathId {
        self.steps.push((path, step));
        self.steps.len()
    }

    fn path(&self, mut id: PathId) -> Vec<PathStep> {
        let mut path = Vec::new();
        while let Some((parent, step)) = id.checked_sub(1).and_then(|index| self.steps.get(index)) {
            path.push(step.clone());
            id = *parent;
        }
        path.reverse();
        path
    }

    fn report(&mut self, path: PathId, kind: DiscrepancyKind) {
        self.discrepancies.push(Discrepancy { path: self.path(path), kind });
    }

    /// Compares the outer layer of two types, and queues the types inside them.
    fn compare(&mut self, path: PathId, sub: &'t Type, sup: &'t Type) -> bool {
        if sub.facets.nullable && sup.check(&Json::Null, self.sup_records).is_err() {
            return false;
        }
        if allows_everything(sup) {
            return true;
        }
        if let Some(allowed) = &sub.facets.allowed {
            let mut cache = SchemaCache::default();
            cache.add(sub);
            cache.add(sup);
            let mut values = allowed.iter().filter(|value| check_value(sub, value, self.sub_records, &cache).is_ok());
            return values.all(|value| check_value(sup, value, self.sup_records, &cache).is_ok());
        }
        self.shapes(path, sub, sup) && has_tighter_facets(sub, sup)
    }

    fn shapes(&mut self, path: PathId, sub: &'t Type, sup: &'t Type) -> bool {
        match (&sub.shape, &sup.shape) {
            (_, Shape::Any)
            | (Shape::Text, Shape::Text)
            | (Shape::Boolean, Shape::Boolean)
            | (Shape::Integer, Shape::Integer | Shape::Number)
            | (Shape::Number, Shape::Number) => true,
            (Shape::Schema(sub), Shape::Schema(sup)) => sub == sup,
            (Shape::Array(sub), Shape::Array(sup)) => {
                let item = self.extend_path(path, PathStep::Index(0));
                self.open.push((item, sub, sup));
                true
            }
            (sub, sup) => match (fields_of(sub, self.sub_records), fields_of(sup, self.sup_records)) {
                (Some(sub), Some(sup)) => {
                    self.fields(path, sub, sup, self.unlisted);
                    true
                }
                _ => false,
            },
        }
    }

    fn fields(&mut self, path: PathId, sub: &'t [Field], sup: &'t [Field], unlisted: UnlistedFields) {
        if !self.seen.insert((sub.as_ptr(), sup.as_ptr())) {
            return;
        }
        let mut inside = Vec::new();
        for field in sup {
            let path = self.extend_path(path, PathStep::Key(field.name.clone()));
            let is_required = field.presence == Presence::Required;
            let Some(found) = sub.iter().find(|other| other.name == field.name) else {
                if is_required {
                    self.report(path, DiscrepancyKind::Missing);
                } else if matches!(unlisted, UnlistedFields::Anything | UnlistedFields::Lost)
                    && !allows_everything(&field.ty)
                {
                    self.report(path, DiscrepancyKind::Unknown { sup: describe(&field.ty) });
                }
                continue;
            };
            let is_present = match found.presence {
                Presence::Required => true,
                Presence::Default(_) => self.defaults == DefaultHandling::Apply,
                Presence::Optional => false,
            };
            if is_required && !is_present {
                self.report(path, DiscrepancyKind::Optional);
            }
            inside.push((path, &found.ty, &field.ty));
        }
        let is_closed = match unlisted {
            UnlistedFields::Anything | UnlistedFields::Missing => false,
            UnlistedFields::Lost => !sup.is_empty(),
            UnlistedFields::Rejected => true,
        };
        if is_closed {
            let is_unaccepted = |field: &&Field| !sup.iter().any(|other| other.name == field.name);
            for field in sub.iter().filter(is_unaccepted) {
                let path = self.extend_path(path, PathStep::Key(field.name.clone()));
                let accepted = sup.iter().map(|field| field.name.clone()).collect();
                self.report(path, DiscrepancyKind::Unaccepted { accepted });
            }
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

fn allows_everything(ty: &Type) -> bool {
    let is_any = match &ty.shape {
        Shape::Any | Shape::Schema(Json::Bool(true)) => true,
        Shape::Schema(Json::Object(keywords)) => keywords.is_empty(),
        _ => false,
    };
    let Facets { allowed, range, pattern, description: _, format: _, nullable: _ } = &ty.facets;
    is_any && allowed.is_none() && range.is_none() && pattern.is_none()
}

/// Returns whether the facets of `sub`, which lists no allowed values, are at least as tight as those of `sup`.
fn has_tighter_facets(sub: &Type, sup: &Type) -> bool {
    let is_listed = match &sup.facets.allowed {
        None => true,
        Some(allowed) if sub.shape == Shape::Boolean => {
            [json!(true), json!(false)].iter().all(|value| allowed.contains(value))
        }
        // A range of whole numbers is a list of them, too.
        Some(allowed) if sub.shape == Shape::Integer => sub.facets.range.as_ref().is_some_and(|range| {
            let index = ValueIndex::new(allowed);
            whole_numbers(range, allowed.len())
                .is_some_and(|mut numbers| numbers.all(|number| index.contains(allowed, &number)))
        }),
        Some(_) => false,
    };
    let has_size = !matches!(sub.shape, Shape::Boolean | Shape::Object(_) | Shape::Record(_));
    let is_in_range = match &sup.facets.range {
        Some(range) if has_size => contains(range, sub.facets.range.as_ref(), &sub.shape),
        _ => true,
    };
    let may_be_text = matches!(sub.shape, Shape::Any | Shape::Text | Shape::Schema(_));
    let has_pattern = match &sup.facets.pattern {
        Some(pattern) if may_be_text => sub.facets.pattern.as_ref() == Some(pattern),
        _ => true,
    };
    is_listed && is_in_range && has_pattern
}

/// Iterates over the whole numbers in a range, unless there are more than `limit`.
fn whole_numbers(range: &Bounds, limit: usize) -> Option<impl Iterator<Item = Json>> {
    let lower = range.lower.as_ref()?.as_i64()?;
    let upper = range.upper.as_ref()?.as_i64()?;
    let count = usize::try_from(upper.checked_sub(lower)?.checked_add(1)?).ok()?;
    (count <= limit).then(|| (lower..=upper).map(Json::from))
}

/// Returns whether a range contains another range of a shape.
fn contains(outer: &Bounds, inner: Option<&Bounds>, shape: &Shape) -> bool {
    let least = matches!(shape, Shape::Text | Shape::Array(_)).then(|| Number::from(0));
    let lower = inner.and_then(|bounds| bounds.lower.as_ref()).or(least.as_ref());
    let upper = inner.and_then(|bounds| bounds.upper.as_ref());
    let is_within = |beyond: Ordering, inner: Option<&Number>, outer: &Number| {
        inner.is_some_and(|inner| compare_numbers(inner, outer).is_some_and(|found| found != beyond))
    };
    outer.lower.as_ref().is_none_or(|bound| is_within(Ordering::Less, lower, bound))
        && outer.upper.as_ref().is_none_or(|bound| is_within(Ordering::Greater, upper, bound))
}
