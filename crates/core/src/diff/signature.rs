//! Changes of signatures and record types.

use super::{Differ, Judgement, Subject};
use crate::types::compatible::is_narrower;
use crate::types::signature::{Facets, Field, Presence, Signature, Type};

impl Differ<'_> {
    /// Compares signatures from the side of those who call: every call that was right should still be, and every result
    /// should be one that was promised.
    pub(super) fn signature(&mut self, subject: &Subject, old: &Signature, new: &Signature) {
        self.fields(subject, "parameter", &old.parameters, &new.parameters);
        let (narrower, wider) = self.compare(&old.returns, &new.returns);
        let types = format!("{} instead of {}", new.returns, old.returns);
        match (narrower, wider) {
            (true, true) => self.described(subject, "the result", &old.returns.facets, &new.returns.facets),
            (false, true) => self.push(subject, Judgement::Breaking, format!("returns more: {types}")),
            (true, false) => self.push(subject, Judgement::Compatible, format!("returns less: {types}")),
            (false, false) => self.push(subject, Judgement::Breaking, format!("returns {types}")),
        }
    }

    pub(super) fn record(&mut self, subject: &Subject, name: &str) {
        let (Some(old), Some(new)) = (self.old.records().get(name), self.new.records().get(name)) else { return };
        self.fields(subject, "field", &old.fields, &new.fields);
    }

    fn fields(&mut self, subject: &Subject, noun: &str, old: &[Field], new: &[Field]) {
        let before = self.changes.len();
        for field in new {
            match old.iter().find(|earlier| earlier.name == field.name) {
                Some(earlier) => self.field(subject, noun, earlier, field),
                None if field.presence == Presence::Required => {
                    self.push(
                        subject,
                        Judgement::Breaking,
                        format!("takes the new {noun} `{}`, which is required", field.name),
                    );
                }
                None => self.push(subject, Judgement::Compatible, format!("may take the new {noun} `{}`", field.name)),
            }
        }
        for field in old.iter().filter(|field| !new.iter().any(|other| other.name == field.name)) {
            self.push(subject, Judgement::Breaking, format!("does not take the {noun} `{}` any more", field.name));
        }
        let names = |fields: &[Field]| fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
        if self.changes.len() == before && names(old) != names(new) {
            self.push(subject, Judgement::Cosmetic, format!("has its {noun}s in another order"));
        }
    }

    fn field(&mut self, subject: &Subject, noun: &str, old: &Field, new: &Field) {
        let name = &new.name;
        match (&old.presence, &new.presence) {
            (old, new) if old == new => {}
            (_, Presence::Required) => {
                self.push(subject, Judgement::Breaking, format!("requires the {noun} `{name}` now"));
            }
            (Presence::Required, _) => {
                self.push(subject, Judgement::Compatible, format!("does not require the {noun} `{name}` any more"));
            }
            (_, Presence::Default(default)) => {
                self.push(subject, Judgement::Compatible, format!("has the default {default} for `{name}` now"));
            }
            (_, Presence::Optional) => {
                self.push(subject, Judgement::Compatible, format!("has no default for `{name}` any more"));
            }
        }
        let (narrower, wider) = self.compare(&old.ty, &new.ty);
        let types = if old.ty.to_string() == new.ty.to_string() {
            format!("{}, with other bounds", new.ty)
        } else {
            format!("{} instead of {}", new.ty, old.ty)
        };
        match (narrower, wider) {
            (true, true) => self.described(subject, &format!("the {noun} `{name}`"), &old.ty.facets, &new.ty.facets),
            (false, true) => self.push(subject, Judgement::Compatible, format!("takes more for `{name}`: {types}")),
            (true, false) => self.push(subject, Judgement::Breaking, format!("takes less for `{name}`: {types}")),
            (false, false) => {
                self.push(subject, Judgement::Breaking, format!("takes something else for `{name}`: {types}"));
            }
        }
    }

    /// Tells whether the new type is within the old one, and whether the old one is within the new.
    fn compare(&self, old: &Type, new: &Type) -> (bool, bool) {
        let (old, new) = ((old, self.old.records()), (new, self.new.records()));
        (is_narrower(new, old), is_narrower(old, new))
    }

    fn described(&mut self, subject: &Subject, what: &str, old: &Facets, new: &Facets) {
        if old.description != new.description {
            let (old, new) = (old.description.as_deref().unwrap_or(""), new.description.as_deref().unwrap_or(""));
            self.push_text(subject, Judgement::Compatible, &format!("describes {what} otherwise"), old, new);
        }
        if old.format != new.format {
            self.push(subject, Judgement::Compatible, format!("has another format for {what}"));
        }
    }
}
