//! Finding tools by their signature.

use super::is_subtype;
use crate::types::signature::{Field, Presence, Records, Signature, Type};
use std::collections::{HashMap, HashSet};

/// What a tool must accept and return, to be found by its signature.
#[derive(Debug, Clone, Default)]
pub struct WantedSignature {
    /// The types of the values that it is called with, in any order.
    pub accepts: Vec<Type>,
    /// The type that its result must have.
    pub returns: Option<Type>,
    /// The record types that these refer to.
    pub records: Records,
}

/// The largest number of values that a tool is looked for by.
pub const MAX_WANTED: usize = 8;

impl WantedSignature {
    /// Returns whether a tool can be called with values of the wanted types, each for another parameter and nothing else,
    /// and returns only results of the wanted type.
    ///
    /// ```
    /// use patter_core::types::compatibility::WantedSignature;
    /// use patter_core::types::signature::{Records, Shape, Signature, Type};
    /// let records = Records::default();
    /// let wanted = WantedSignature { accepts: vec![Type::new(Shape::Integer)], ..WantedSignature::default() };
    /// let fits = |tool: &str| wanted.fits((&Signature::parse(tool).unwrap(), &records));
    /// assert!(fits("(a::Double)==>(unit::Text {default: \"km\"})==>(::Text)"));
    /// assert!(!fits("(a::Double)==>(unit::Text)==>(::Text)"), "it also needs a unit");
    /// assert!(!fits("(a::Text)==>(::Text)"));
    /// ```
    pub fn fits(&self, (signature, records): (&Signature, &Records)) -> bool {
        let returns = self.returns.as_ref();
        let is_result = returns.is_none_or(|wanted| is_subtype((&signature.returns, records), (wanted, &self.records)));
        // Without a wish, any parameters will do.
        let is_called = self.accepts.is_empty() || self.can_call(signature, records);
        is_result && is_called
    }

    fn can_call(&self, signature: &Signature, records: &Records) -> bool {
        let required = signature.parameters.iter().filter(|parameter| parameter.presence == Presence::Required).count();
        if self.accepts.len() > MAX_WANTED || required > self.accepts.len() {
            return false;
        }
        let accepts = |parameter: &Field, value: &Type| is_subtype((value, &self.records), (&parameter.ty, records));
        let is_required = |parameter: &&Field| parameter.presence == Presence::Required;
        let of_value = |value: &Type| indices(&signature.parameters, |parameter| accepts(parameter, value));
        let of_parameter = |parameter: &Field| indices(&self.accepts, |value| accepts(parameter, value));
        let values: Vec<_> = self.accepts.iter().map(of_value).collect();
        let required: Vec<_> = signature.parameters.iter().filter(is_required).map(of_parameter).collect();
        // If every value has a parameter of its own, and every required parameter a value of its own, then there is one way
        // to do both (Mendelsohn and Dulmage).
        can_match_all(&required) && can_match_all(&values)
    }
}

fn indices<T>(items: &[T], is_wanted: impl Fn(&T) -> bool) -> Vec<usize> {
    items.iter().enumerate().filter(|(_, item)| is_wanted(item)).map(|(index, _)| index).collect()
}

/// Returns whether each of some items can have a partner of its own, given who can be the partner of each.
fn can_match_all(candidates: &[Vec<usize>]) -> bool {
    let mut partners = HashMap::new();
    (0..candidates.len()).all(|item| find_partner(item, candidates, &mut partners, &mut HashSet::new()))
}

/// Finds a partner for an item, if need be by finding others for those that have one. The depth is the number of items
/// with a partner, at most [`MAX_WANTED`].
fn find_partner(
    item: usize,
    candidates: &[Vec<usize>],
    partners: &mut HashMap<usize, usize>,
    seen: &mut HashSet<usize>,
) -> bool {
    for partner in candidates.get(item).into_iter().flatten() {
        if !seen.insert(*partner) {
            continue;
        }
        let is_free = match partners.get(partner).copied() {
            None => true,
            Some(other) => find_partner(other, candidates, partners, seen),
        };
        if is_free {
            partners.insert(*partner, item);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(accepts: &[&str], returns: Option<&str>, tool: &str) -> bool {
        let records = Records::default();
        let parse = |text: &str| Type::parse(text, &records).unwrap();
        let accepts = accepts.iter().map(|text| parse(text)).collect();
        let wanted = WantedSignature { accepts, returns: returns.map(parse), records: Records::default() };
        wanted.fits((&Signature::parse(tool).unwrap(), &records))
    }

    #[test]
    fn tools_are_found_by_what_they_accept_and_return() {
        let cases: &[(&[&str], Option<&str>, &str, bool)] = &[
            (&[], None, "(a::Text)==>(::Int)", true),
            (&[], Some("Number"), "(a::Text)==>(::Int)", true),
            (&[], Some("Int"), "(a::Text)==>(::Number)", false),
            (&["Text"], Some("Int"), "(a::Text)==>(::Int)", true),
            (&["Text"], None, "()==>(::Int)", false),
            (&["Int", "Text"], None, "(a::Text)==>(b::Number)==>(::Int)", true),
            (&["Text", "Text"], None, "(a::Text)==>(b::Number)==>(::Int)", false),
            (&["Int", "Text"], None, "(a::Any)==>(b::Int)==>(::Int)", true),
            (&["Text"], None, "(a::Text)==>(b::Text)==>(::Int)", false),
            (&["Text"], None, "(a::Text {optional: true})==>(b::Text)==>(::Int)", true),
            (&["Array {elementType: \"Int\"}"], None, "(a::Array {elementType: \"Number\"})==>(::Int)", true),
        ];
        for (accepts, returns, tool, expected) in cases {
            assert_eq!(fits(accepts, *returns, tool), *expected, "{accepts:?} {returns:?} {tool}");
        }
    }
}
