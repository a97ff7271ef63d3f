//! Properties of generated documents and arbitrary text.

use crate::generate::{Random, document, mutate};
use crate::invariants::{check_invariants, comments};
use patter_gram::{Diagnostic, Dialect, Value, parse};
use proptest::prelude::*;

#[test]
fn well_formed_documents_satisfy_the_invariants() {
    for seed in 0..4_000 {
        let text = document(&mut Random::new(seed), Dialect::Patter);
        let (_, diagnostics) = parse(&text);
        assert!(!diagnostics.iter().any(Diagnostic::is_error), "{text:?}\n{diagnostics:?}");
        check_invariants(text.as_bytes());
    }
}

#[test]
fn damaged_documents_satisfy_the_invariants() {
    for seed in 0..8_000 {
        let mut random = Random::new(seed);
        let mut text = document(&mut random, Dialect::Patter);
        for _ in 0..=seed % 3 {
            text = mutate(&mut random, &text);
        }
        check_invariants(text.as_bytes());
    }
}

#[test]
fn setting_a_property_changes_nothing_else() {
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let text = document(&mut random, Dialect::Patter);
        let (tree, _) = parse(&text);
        let subjects: Vec<_> = tree
            .walk()
            .filter(|pattern| {
                matches!(pattern.kind(), patter_gram::PatternKind::Node | patter_gram::PatternKind::Bracket)
            })
            .collect();
        if subjects.is_empty() {
            continue;
        }
        let at = random.below(subjects.len());
        let key = ["a", "true", "new key"][random.below(3)];
        let value = Value::Array(vec![Value::from("x"), Value::from(7)]);
        let mut edit = tree.edit();
        edit.set_property(subjects[at], key, &value);
        let (edited, diagnostics) = edit.apply();
        assert!(!diagnostics.iter().any(Diagnostic::is_error), "{text:?}\n{edited}\n{diagnostics:?}");
        let is_subject = |pattern: &patter_gram::Pattern<'_>| {
            matches!(pattern.kind(), patter_gram::PatternKind::Node | patter_gram::PatternKind::Bracket)
        };
        let changed = edited.walk().filter(is_subject).nth(at).unwrap();
        assert_eq!(changed.value(key), Some(value), "{text:?}\n{edited}");
        // Removing a property that was new restores the document.
        if subjects[at].property(key).is_none() {
            assert_eq!(comments(&tree), comments(&edited), "{text:?}\n{edited}");
            let mut edit = edited.edit();
            edit.remove_property(changed, key);
            let (restored, diagnostics) = edit.apply();
            assert!(!diagnostics.iter().any(Diagnostic::is_error), "{edited}\n{restored}\n{diagnostics:?}");
            assert_eq!(comments(&tree), comments(&restored));
            let had_record = subjects[at].record().is_some();
            assert!(!had_record || restored == tree, "{text:?}\n{edited}\n{restored}");
        }
    }
}

#[test]
fn removing_and_adding_elements_keeps_the_others() {
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let text = document(&mut random, Dialect::Patter);
        let (tree, _) = parse(&text);
        let brackets: Vec<_> =
            tree.walk().filter(|pattern| pattern.syntax().kind() == patter_gram::Kind::Bracket).collect();
        if brackets.is_empty() {
            continue;
        }
        let at = random.below(brackets.len());
        let bracket = brackets[at];
        let mut edit = tree.edit();
        let mut kept = Vec::new();
        for element in bracket.elements() {
            if random.chance(40) {
                edit.remove_element(bracket, element);
            } else {
                kept.push(element);
            }
        }
        let adds = random.chance(50);
        if adds {
            edit.push_element(bracket, "(added:Element)");
        }
        let (edited, diagnostics) = edit.apply();
        assert!(!diagnostics.iter().any(Diagnostic::is_error), "{text:?}\n{edited}\n{diagnostics:?}");
        let changed = edited.walk().find(|pattern| {
            pattern.span().start == bracket.span().start && pattern.syntax().kind() == patter_gram::Kind::Bracket
        });
        let changed = changed.unwrap_or_else(|| panic!("{text:?}\n{edited}"));
        let elements: Vec<_> = changed.elements().collect();
        assert_eq!(elements.len(), kept.len() + usize::from(adds), "{text:?}\n{edited}");
        assert!(kept.iter().zip(&elements).all(|(a, b)| a == b), "{text:?}\n{edited}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_satisfies_the_invariants(text in "\\PC*") {
        check_invariants(text.as_bytes());
    }

    #[test]
    fn any_punctuation_satisfies_the_invariants(text in "[\\[\\](){}|,:@\"'`\\\\/*<>=~.0-9a-cx\n \r-]{0,40}") {
        check_invariants(text.as_bytes());
    }

    #[test]
    fn any_bytes_satisfy_the_invariants(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check_invariants(&bytes);
    }
}
