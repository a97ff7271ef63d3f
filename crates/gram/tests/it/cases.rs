//! Cases of the notation that the corpus of other tools does not cover.

use patter_gram::{
    Decimal, Dialect, Integer, Number, Pattern, PatternKind, Tree, Value, parse, parse_dialect, to_sexp,
};

fn tree(text: &str) -> Tree {
    let (tree, diagnostics) = parse(text);
    assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
    tree
}

/// Checks the S-expression of a text that is plain gram.
fn check(text: &str, expected: &str) {
    let (tree, diagnostics) = parse_dialect(text, Dialect::Portable);
    assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
    let found = to_sexp(&tree).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(found, format!("(gram_pattern {expected})"), "{text}");
}

fn first(tree: &Tree) -> Pattern<'_> {
    tree.patterns().next().unwrap()
}

#[test]
fn double_colons_mark_labels_everywhere() {
    check("(::Text)", "(node_pattern labels: (labels (symbol)))");
    check("(a::Text)", "(node_pattern identifier: (symbol) labels: (labels (symbol)))");
    check("(a:A::B:C)", "(node_pattern identifier: (symbol) labels: (labels (symbol) (symbol) (symbol)))");
    check("(1::A)", "(node_pattern identifier: (integer) labels: (labels (symbol)))");
    check("(::`Maybe Int`)", "(node_pattern labels: (labels (quoted_name content: (string_content))))");
    check("[a::Tool]", "(subject_pattern identifier: (symbol) labels: (labels (symbol)))");
    check(
        "[::Tool {a:: 1}]",
        "(subject_pattern labels: (labels (symbol)) record: (record (record_property key: (symbol) value: (integer))))",
    );
    check(
        "()-[r::KNOWS]->()",
        "(relationship_pattern left: (node_pattern) kind: (right_arrow identifier: (symbol) labels: (labels (symbol))) right: (node_pattern))",
    );
    check("( a :: A )", "(node_pattern identifier: (symbol) labels: (labels (symbol)))");
}

#[test]
fn both_colons_are_equal_and_preserved() {
    let single = tree("(a:A {x: 1})");
    let double = tree("(a::A {x:: 1})");
    assert_eq!(single, double);
    assert_eq!(double.to_string(), "(a::A {x:: 1})");
    assert_eq!(first(&double).labels().collect::<Vec<_>>(), ["A"]);
}

#[test]
fn signatures_are_flat_paths() {
    let tree = tree("(personName::Text {default:\"world\"})==>(age::Int)==>(::String)");
    let path = first(&tree);
    assert_eq!(path.kind(), PatternKind::Path);
    let names: Vec<_> = path.elements().map(|node| node.name().map(String::from)).collect();
    assert_eq!(names, [Some("personName".to_owned()), Some("age".to_owned()), None]);
    assert_eq!(path.arrows().map(patter_gram::Arrow::glyph).collect::<Vec<_>>(), ["==>", "==>"]);
}

#[test]
fn every_arrow_keeps_its_glyph() {
    for glyph in ["--", "-->", "<--", "<-->", "==", "==>", "<==", "<==>", "~~", "~~>", "<~~", "<~~>"] {
        let text = format!("(a){glyph}(b)");
        let tree = tree(&text);
        assert_eq!(first(&tree).arrows().next().unwrap().glyph(), glyph);
        assert_eq!(tree.to_string(), text);
    }
}

#[test]
fn nested_and_empty_arrays_and_maps_are_accepted() {
    let tree = tree("({fields: [{name: \"age\", type: \"Int\"}, [], [[1]]], map: {a: {b: {}}}})");
    let fields = first(&tree).value("fields").unwrap();
    let Value::Array(items) = &fields else { panic!("{fields}") };
    assert_eq!(items[0].get("type"), Some(&Value::from("Int")));
    assert_eq!(items[1], Value::Array(Vec::new()));
    assert_eq!(fields.to_string(), "[{ name: \"age\", type: \"Int\" }, [], [[1]]]");
}

#[test]
fn values_have_types() {
    let check = |text: &str, expected: Value| {
        let tree = tree(&format!("({{v: {text}}})"));
        assert_eq!(first(&tree).value("v"), Some(expected), "{text}");
    };
    let integer = |text: &str| Value::Integer(Integer::parse(text).unwrap());
    check("'it\\'s'", Value::from("it's"));
    check("\"tab\\tline\\nslash\\/\"", Value::from("tab\tline\nslash/"));
    check("`back\\`tick`", Value::from("back`tick"));
    check("```\n  raw\n  ```", Value::from("  raw\n  "));
    check("date`2024-04-05`", Value::Tagged { tag: "date".into(), text: "2024-04-05".into() });
    check("date /** when */ `2024`", Value::Tagged { tag: "date".into(), text: "2024".into() });
    check("```md\n# Hi\n```", Value::Tagged { tag: "md".into(), text: "# Hi\n".into() });
    check("``` // a `note`\nx```", Value::from("x"));
    check("42", Value::from(42));
    check("-0", Value::from(0));
    check("0xff", Value::from(255));
    check("042", Value::from(34));
    check("123456789012345678901234567890123456789012", integer("123456789012345678901234567890123456789012"));
    check("1.50", Value::Decimal(Decimal::parse("1.5").unwrap()));
    check("5km", Value::Measurement { amount: Integer::parse("5").unwrap(), unit: "km".into() });
    let number = |text: &str| Some(Number::Integer(Integer::parse(text).unwrap()));
    check("1..5", Value::Range { lower: number("1"), upper: number("5") });
    check("1...", Value::Range { lower: number("1"), upper: None });
    check("... 5", Value::Range { lower: None, upper: number("5") });
    check("true", Value::Boolean(true));
    check("truth", Value::Symbol("truth".into()));
}

#[test]
fn numbers_beyond_128_bits_are_exact_in_every_base() {
    let octal = Integer::parse(&format!("0{}", "7".repeat(60))).unwrap();
    let hexadecimal = Integer::parse(&format!("0x{}", "F".repeat(45))).unwrap();
    assert_eq!(octal, hexadecimal);
    assert_eq!(octal.to_string(), format!("0x{}", "F".repeat(45)));
    assert_ne!(Integer::parse(&"9".repeat(60)), Integer::parse(&"9".repeat(61)));
}

#[test]
fn equality_ignores_only_trivia_quoting_and_bases() {
    let same = |a: &str, b: &str| assert_eq!(tree(a), tree(b));
    let differ = |a: &str, b: &str| assert_ne!(tree(a), tree(b));
    same("(a {x: 'y'})", "( `a` // note\n { \"x\" : \"y\" } )");
    same("({x: 0x10})", "({x: 16})");
    same("({x: 1.50})", "({x: 1.5})");
    same("({x: \"a\\nb\"})", "({x: ```\na\nb```})");
    same("(a)-[]->(b)", "(a)-->(b)");
    differ("(a)-->(b)", "(a)==>(b)");
    differ("(a)-->(b)", "(a)--(b)");
    differ("({x: 1})", "({x: 1.0})");
    differ("({x: a})", "({x: 'a'})");
    differ("(a {x: 1, y: 2})", "(a {y: 2, x: 1})");
    differ("(42)", "(`42`)");
    differ("(a {})", "(a)");
    differ("[a | b]", "[a | (b)]");
    differ("[a | b] (c)", "[a | b, (c)]");
    differ("@x(1) (a)", "@x(2) (a)");
    differ("({x: [1, 2]})", "({x: [[1, 2]]})");
}

#[test]
fn annotations_belong_to_their_pattern() {
    let tree = tree("@@p:Place @desc(\"old\") (a) (b)");
    let patterns: Vec<_> = tree.patterns().collect();
    let annotations: Vec<_> = patterns[0].annotations().collect();
    assert_eq!(annotations[0].name().as_deref(), Some("p"));
    assert_eq!(annotations[0].labels().collect::<Vec<_>>(), ["Place"]);
    assert_eq!(annotations[1].key().as_deref(), Some("desc"));
    assert_eq!(Value::read(annotations[1].value().unwrap()), Some(Value::from("old")));
    assert_eq!(patterns[1].annotations().count(), 0);
    assert_eq!(patterns[0].span().slice(tree.source()), "@@p:Place @desc(\"old\") (a)");
}

#[test]
fn a_file_can_start_with_a_record() {
    let tree = tree("// head\n{version: 1}\n(a)");
    let record = tree.record().unwrap();
    assert_eq!(record.properties().map(|property| property.key().into_owned()).collect::<Vec<_>>(), ["version"]);
    assert_eq!(tree.patterns().count(), 1);
}

#[test]
fn all_errors_are_reported_in_one_pass() {
    let (_, diagnostics) = parse("(a)->(b)\n(c {x: 1e5, y: })\n[d | ]\n(größe)\n");
    let codes: Vec<_> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(codes, ["G021", "G008", "G014", "G024", "G010"]);
}

#[test]
fn patterns_after_an_error_are_still_parsed() {
    let (tree, _) = parse("(a {x: })\n[b:Agent | (c]\n(d)");
    let names: Vec<_> = tree.patterns().filter_map(Pattern::name).collect();
    assert_eq!(names, ["a", "b", "d"]);
}

#[test]
fn every_rule_has_a_unique_code() {
    let mut codes: Vec<_> = patter_gram::RULES.iter().map(|rule| rule.code).collect();
    let count = codes.len();
    codes.dedup();
    assert_eq!(codes.len(), count);
    assert!(codes.is_sorted());
}
