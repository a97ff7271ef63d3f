//! Changes to signatures and record types.

use super::{Differ, Judgement, Subject};
use crate::types::compatibility::is_subtype;
use crate::types::signature::{Facets, Field, Presence, Signature, Type};

impl Differ<'_> {
    /// Compares signatures from the point of view of a caller: every valid call should remain valid, and every result
    /// should match the old type.
    pub(super) fn compare_signatures(&mut self, subject: &Subject, old: &Signature, new: &Signature) {
        self.compare_field_lists(subject, "parameter", &old.parameters, &new.parameters);
        let (narrower, wider) = self.compare_types(&old.returns, &new.returns);
        let types = format!("from {} to {}", old.returns, new.returns);
        match (narrower, wider) {
            (true, true) => self.compare_annotations(subject, "the result", &old.returns.facets, &new.returns.facets),
            (false, true) => self.push(subject, Judgement::Breaking, format!("type of the result widened {types}")),
            (true, false) => self.push(subject, Judgement::Compatible, format!("type of the result narrowed {types}")),
            (false, false) => self.push(subject, Judgement::Breaking, format!("type of the result changed {types}")),
        }
    }

    pub(super) fn compare_records(&mut self, subject: &Subject, name: &str) {
        let (Some(old), Some(new)) = (self.old.records().get(name), self.new.records().get(name)) else { return };
        self.compare_field_lists(subject, "field", &old.fields, &new.fields);
    }

    fn compare_field_lists(&mut self, subject: &Subject, noun: &str, old: &[Field], new: &[Field]) {
        let before = self.changes.len();
        for field in new {
            match old.iter().find(|earlier| earlier.name == field.name) {
                Some(earlier) => self.compare_fields(subject, noun, earlier, field),
                None if field.presence == Presence::Required => {
                    self.push(subject, Judgement::Breaking, format!("required {noun} `{}` added", field.name));
                }
                None => self.push(subject, Judgement::Compatible, format!("optional {noun} `{}` added", field.name)),
            }
        }
        for field in old.iter().filter(|field| !new.iter().any(|other| other.name == field.name)) {
            self.push(subject, Judgement::Breaking, format!("{noun} `{}` removed", field.name));
        }
        let names = |fields: &[Field]| fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
        if self.changes.len() == before && names(old) != names(new) {
            self.push(subject, Judgement::Cosmetic, format!("{noun}s reordered"));
        }
    }

    fn compare_fields(&mut self, subject: &Subject, noun: &str, old: &Field, new: &Field) {
        let name = &new.name;
        match (&old.presence, &new.presence) {
            (old, new) if old == new => {}
            (_, Presence::Required) => {
                self.push(subject, Judgement::Breaking, format!("{noun} `{name}` is now required"));
            }
            (Presence::Required, _) => {
                self.push(subject, Judgement::Compatible, format!("{noun} `{name}` is no longer required"));
            }
            (_, Presence::Default(default)) => {
                self.push(subject, Judgement::Compatible, format!("default of `{name}` set to {default}"));
            }
            (_, Presence::Optional) => {
                self.push(subject, Judgement::Compatible, format!("default of `{name}` removed"));
            }
        }
        let (narrower, wider) = self.compare_types(&old.ty, &new.ty);
        let types = if old.ty.to_string() == new.ty.to_string() {
            format!("({}, with different constraints)", new.ty)
        } else {
            format!("from {} to {}", old.ty, new.ty)
        };
        match (narrower, wider) {
            (true, true) => {
                self.compare_annotations(subject, &format!("{noun} `{name}`"), &old.ty.facets, &new.ty.facets);
            }
            (false, true) => self.push(subject, Judgement::Compatible, format!("type of `{name}` widened {types}")),
            (true, false) => self.push(subject, Judgement::Breaking, format!("type of `{name}` narrowed {types}")),
            (false, false) => {
                self.push(subject, Judgement::Breaking, format!("type of `{name}` changed {types}"));
            }
        }
    }

    /// Returns whether the new type is a subtype of the old one, and whether the old one is a subtype of the new.
    fn compare_types(&self, old: &Type, new: &Type) -> (bool, bool) {
        let old = (old, self.old.records());
        let new = (new, self.new.records());
        (is_subtype(new, old), is_subtype(old, new))
    }

    /// Compares the parts of facets that constrain nothing.
    fn compare_annotations(&mut self, subject: &Subject, part: &str, old: &Facets, new: &Facets) {
        if old.description != new.description {
            let before = old.description.as_deref().unwrap_or_default();
            let after = new.description.as_deref().unwrap_or_default();
            let description = format!("description of {part} changed");
            self.push_text(subject, Judgement::Compatible, &description, before, after);
        }
        if old.format != new.format {
            self.push(subject, Judgement::Compatible, format!("format of {part} changed"));
        }
    }
}
