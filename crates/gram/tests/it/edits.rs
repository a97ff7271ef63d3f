//! Edits by example: each changes what it should and nothing else.

use patter_gram::{Edit, EditError, Pattern, Value, parse};

/// Applies changes to the first pattern of a text.
fn check(source: &str, change: impl for<'t> Fn(&mut Edit<'t>, Pattern<'t>), expected: &str) {
    let (tree, _) = parse(source);
    let pattern = tree.patterns().next().unwrap();
    let mut edit = tree.edit();
    change(&mut edit, pattern);
    assert!(edit.errors().is_empty(), "{:?}", edit.errors());
    let (edited, diagnostics) = edit.apply();
    assert_eq!(edited.to_string(), expected);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
}

fn set(key: &'static str, value: impl Into<Value>) -> impl for<'t> Fn(&mut Edit<'t>, Pattern<'t>) {
    let value = value.into();
    move |edit, pattern| {
        edit.set_property(pattern, key, &value);
    }
}

#[test]
fn existing_properties_are_changed_in_place() {
    check("(a {x : 'old' /** why */, y:2})", set("x", "new"), "(a {x : \"new\" /** why */, y:2})");
    check("(a {`x`: [1,\n 2]})", set("x", 3), "(a {`x`: 3})");
}

#[test]
fn new_properties_are_added_after_the_others() {
    check("(a)", set("x", 1), "(a {x: 1})");
    check("()", set("x", 1), "( {x: 1})");
    check(
        "(a:A)-->(b)",
        |edit, path| {
            edit.set_property(path.elements().next().unwrap(), "x", &1.into());
        },
        "(a:A {x: 1})-->(b)",
    );
    check("(a {})", set("x", 1), "(a {x: 1})");
    check("(a {y: 2})", set("x", 1), "(a {y: 2, x: 1})");
    check("(a {y: 2, z: 3 // last\n})", set("x", 1), "(a {y: 2, z: 3, x: 1 // last\n})");
    check(
        "[a {\n  y: 2, // two\n  z: 3 // three\n} | b]",
        set("x", 1),
        "[a {\n  y: 2, // two\n  z: 3, // three\n  x: 1\n} | b]",
    );
    check("[a {\n    y: 2\n}]", set("new key", true), "[a {\n    y: 2,\n    `new key`: true\n}]");
}

#[test]
fn properties_are_removed_with_their_comma() {
    let remove = |edit: &mut Edit<'_>, pattern: Pattern<'_>| {
        edit.remove_property(pattern, "x");
    };
    check("(a {x: 1, y: 2})", remove, "(a {y: 2})");
    check("(a {y: 2, x: 1})", remove, "(a {y: 2})");
    check("(a {x: 1})", remove, "(a {})");
    check("(a {\n  y: 2,\n  x: 1, // one\n  z: 3\n})", remove, "(a {\n  y: 2,\n  // one\n  z: 3\n})");
    check("(a {\n  y: 2,\n  x: 1,\n  z: 3\n})", remove, "(a {\n  y: 2,\n  z: 3\n})");
    check("(a {\n  y: 2,\n  x: 1\n})", remove, "(a {\n  y: 2\n})");
    check("(a {y: 2})", remove, "(a {y: 2})");
}

#[test]
fn names_and_labels_are_changed() {
    check(
        "(a:A /** note */ {x: 1})",
        |edit, node| {
            edit.rename(node, "over there");
        },
        "(`over there`:A /** note */ {x: 1})",
    );
    check(
        "(:A)",
        |edit, node| {
            edit.rename(node, "a");
        },
        "(a:A)",
    );
    check(
        "(a:A {x: 1})",
        |edit, node| {
            edit.add_label(node, "Maybe Int");
        },
        "(a:A:`Maybe Int` {x: 1})",
    );
    check(
        "({x: 1})",
        |edit, node| {
            edit.add_label(node, "B");
        },
        "(:B{x: 1})",
    );
    check(
        "(a:A::B)",
        |edit, node| {
            edit.remove_label(node, "A");
        },
        "(a::B)",
    );
    check(
        "(a:A)",
        |edit, node| {
            edit.add_label(node, "A");
        },
        "(a:A)",
    );
}

#[test]
fn elements_are_added_and_removed() {
    let element = |index: usize| {
        move |edit: &mut Edit<'_>, bracket: Pattern<'_>| {
            edit.remove_element(bracket, bracket.elements().nth(index).unwrap());
        }
    };
    check(
        "[a]",
        |edit, bracket| {
            edit.push_element(bracket, "(b)");
        },
        "[a | (b)]",
    );
    check(
        "[a | b]",
        |edit, bracket| {
            edit.push_element(bracket, "(c)");
            edit.push_element(bracket, "d");
        },
        "[a | b, (c), d]",
    );
    check(
        "[a |\n  b // last\n]",
        |edit, bracket| {
            edit.push_element(bracket, "c");
        },
        "[a |\n  b, // last\n  c\n]",
    );
    check("[a | b, c, d]", element(1), "[a | b, d]");
    check("[a | b, c]", element(0), "[a | c]");
    check("[a | b, c]", element(1), "[a | b]");
    check("[a | b]", element(0), "[a]");
    check("[a |\n  b, // first\n  c\n]", element(0), "[a |\n  // first\n  c\n]");
}

#[test]
fn changes_can_be_combined() {
    check(
        "[a | b, c, d]",
        |edit, bracket| {
            for element in bracket.elements() {
                edit.remove_element(bracket, element);
            }
            edit.push_element(bracket, "e").rename(bracket, "z").add_label(bracket, "Z");
        },
        "[z:Z | e]",
    );
    check(
        "(a {x: 1})",
        |edit, node| {
            edit.set_property(node, "x", &2.into()).set_property(node, "x", &3.into());
        },
        "(a {x: 3})",
    );
}

#[test]
fn changes_can_come_in_any_order_and_the_last_one_wins() {
    check(
        "(a)",
        |edit, node| {
            edit.set_property(node, "x", &1.into()).add_label(node, "L").set_property(node, "y", &2.into());
        },
        "(a:L {x: 1, y: 2})",
    );
    check(
        "()",
        |edit, node| {
            edit.add_label(node, "L").rename(node, "n").rename(node, "m").add_label(node, "L");
        },
        "(m:L)",
    );
    check(
        "(:L)",
        |edit, node| {
            edit.rename(node, "n").remove_label(node, "L");
        },
        "(n)",
    );
    check(
        "(a {z: 1})",
        |edit, node| {
            edit.remove_property(node, "z").set_property(node, "z", &5.into());
        },
        "(a {z: 5})",
    );
    check(
        "[a | b]",
        |edit, bracket| {
            edit.set_property(bracket, "x", &1.into());
            edit.remove_element(bracket, bracket.elements().next().unwrap());
        },
        "[a {x: 1}]",
    );
    check(
        "[a |\n  b, // c\n  d\n]",
        |edit, bracket| {
            edit.remove_element(bracket, bracket.elements().nth(1).unwrap()).push_element(bracket, "x");
        },
        "[a |\n  b, // c\n  x\n]",
    );
}

#[test]
fn commas_are_never_moved_into_comments() {
    let remove = |edit: &mut Edit<'_>, pattern: Pattern<'_>| {
        edit.remove_property(pattern, "d");
    };
    check("(a {\n  b: 1,\n  // about d\n  d: 2,\n  e: 3\n})", remove, "(a {\n  b: 1,\n  // about d\n  e: 3\n})");
    check("(a {\n  b: 1, // b\n  d: 2 // d\n})", remove, "(a {\n  b: 1 // b\n  // d\n})");
}

#[test]
fn line_breaks_match_the_file() {
    check("(a {\r\n  b: 1,\r\n  c: 2\r\n})", set("x", 1), "(a {\r\n  b: 1,\r\n  c: 2,\r\n  x: 1\r\n})");
}

#[test]
fn values_that_cannot_be_written_are_rejected() {
    let (tree, _) = parse("(a)");
    let node = tree.patterns().next().unwrap();
    let mut edit = tree.edit();
    edit.set_property(node, "x", &Value::Symbol("two words".into()));
    edit.set_property(node, "y", &Value::Range { lower: None, upper: None });
    edit.set_property_text(node, "z", "1, w: 2");
    assert_eq!(edit.errors(), ["x", "y", "z"].map(|key| EditError::NotAValue(key.to_owned())));
}

#[test]
fn patterns_without_a_subject_are_rejected() {
    let (tree, _) = parse("[a | b, (c)-->(d)]");
    let bracket = tree.patterns().next().unwrap();
    let elements: Vec<_> = bracket.elements().collect();
    let mut edit = tree.edit();
    edit.set_property(elements[0], "x", &1.into());
    edit.add_label(elements[1], "X");
    edit.push_element(elements[0], "y");
    let reference = elements[0].span();
    let path = elements[1].span();
    assert_eq!(
        edit.errors(),
        [EditError::NoSubject(reference), EditError::NoSubject(path), EditError::NotABracket(reference)]
    );
    assert_eq!(edit.apply().0.to_string(), "[a | b, (c)-->(d)]");
}

#[test]
fn bytes_that_are_not_utf8_survive_an_edit() {
    let (tree, _) = patter_gram::parse_bytes(b"(a) // caf\xe9\n(b) // \xff", patter_gram::Dialect::Patter);
    let mut edit = tree.edit();
    edit.rename(tree.patterns().nth(1).unwrap(), "longer");
    assert_eq!(edit.apply().0.to_bytes(), b"(a) // caf\xe9\n(longer) // \xff");
}
