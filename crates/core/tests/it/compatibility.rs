//! Tests of the compatibility of tools with declarations.

use crate::generate::{cases, object, records, signature, two_signatures, two_types, ty, value};
use patter_core::gram::parse;
use patter_core::types::compatibility::{Contract, check_compatible, check_exact, is_subtype};
use patter_core::types::signature::{Record, Records, Shape, Signature, Type};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value as Json, json};

/// Reads declarations of record types, which may refer to each other.
fn declared(texts: &[&str]) -> Records {
    let mut records = Records::default();
    for _ in 0..2 {
        for text in texts {
            let (tree, _) = parse(text);
            let pattern = tree.patterns().next().unwrap();
            let name = pattern.name().unwrap().into_owned();
            records.insert(name.clone(), Record { description: None, fields: Vec::new() });
            if let Ok(record) = Record::read(pattern, &records) {
                records.insert(name, record);
            }
        }
    }
    records
}

fn read(text: &str, records: &Records) -> Signature {
    let (tree, _) = parse(text);
    Signature::read(tree.patterns().next().unwrap(), records).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Checks the reasons why a tool cannot implement a declaration; there are none if it can.
fn check(declared: &str, tool: &str, expected: &[&str]) {
    check_with(&Records::default(), declared, &Records::default(), tool, expected);
}

fn check_with(own: &Records, declared: &str, others: &Records, tool: &str, expected: &[&str]) {
    let found = check_compatible((&read(declared, own), own), (&read(tool, others), others));
    let messages: Vec<_> = found.err().unwrap_or_default().iter().map(ToString::to_string).collect();
    assert_eq!(messages, expected, "{declared} implemented by {tool}");
}

/// Checks the compatibility of two types of a parameter `p`.
fn check_parameter(declared: &str, tool: &str, expected: &[&str]) {
    check(&format!("(p::{declared})==>(::Any)"), &format!("(p::{tool})==>(::Any)"), expected);
}

#[test]
fn a_tool_may_accept_wider_types_and_return_narrower_ones() {
    check("(a::Int)==>(::Double)", "(a::Double)==>(b::Text {optional: true})==>(::Int)", &[]);
    check("(a::Int)==>(b::Text)==>(::Any)", "(b::Text)==>(a::Any)==>(::Text)", &[]);
    check("(a::Int {default: 3})==>(::Text)", "(a::Int)==>(::Text)", &[]);
    check("(a::Int)==>(::`Maybe Int`)", "(a::Int {optional: true})==>(::Int)", &[]);
    check_parameter("Int {range: 2..5}", "Double {range: 1.5...}", &[]);
    check_parameter("Text {enum: [a, b]}", "Text {enum: [c, b, a]}", &[]);
    check_parameter("Text {enum: ['ab', 'b']}", "Text {pattern: 'b$', range: 1..2}", &[]);
    check_parameter("Double {enum: [1.0, 2]}", "Int", &[]);
    check_parameter("Bool", "Any {enum: [true, false]}", &[]);
    check_parameter("Text {format: 'date'}", "Text {format: 'uri', range: 0...}", &[]);
    check_parameter("Object {fields: {a: 'Int', b: 'Text'}}", "Object {fields: {a: 'Double', b: 'Any'}}", &[]);
    check_parameter("Object {fields: {a: 'Int'}}", "Object {fields: {}}", &[]);
    check_parameter("Object {fields: [{name: 'a', type: 'Int', default: 1}]}", "Object {fields: {a: 'Int'}}", &[]);
    check_parameter("Object {fields: {}}", "Object {fields: [{name: 'a', type: 'Any', optional: true}]}", &[]);
    check_parameter("Array {elementType: 'Int', range: 1..2}", "Array {elementType: 'Double', range: 0..3}", &[]);
    check_parameter("Any {schema: json`{\"not\":{}}`}", "Any {schema: json`{\"not\":{}}`}", &[]);
    check_parameter("Any {schema: json`{\"not\":{}}`}", "Any {schema: json`{}`}", &[]);
}

#[test]
fn no_argument_is_lost() {
    check(
        "(name::Text)==>(::Text)",
        "(personName::Text {default: 'world'})==>(::Text)",
        &["the tool does not have the declared parameter `name` (it has `personName`)"],
    );
    check(
        "(a::Int)==>(b::Int {optional: true})==>(c::Int {default: 1})==>(::Any)",
        "(a::Int)==>(::Any)",
        &[
            "the tool does not have the declared parameter `b` (it has `a`)",
            "the tool does not have the declared parameter `c` (it has `a`)",
        ],
    );
    check("(a::Any)==>(::Any)", "()==>(::Any)", &["the tool does not have the declared parameter `a` (it has none)"]);
    // Nor is a field of one.
    check_parameter(
        "Object {fields: {force: 'Bool', dry: 'Bool'}}",
        "Object {fields: {force: 'Bool'}}",
        &["the tool does not have the declared field `p.dry` (it has `force`)"],
    );
    check_parameter(
        "Array {elementType: 'Object', fields: {a: 'Int', b: 'Int'}}",
        "Array {elementType: 'Object', fields: {a: 'Int'}}",
        &["the tool does not have the declared field `p[].b` (it has `a`)"],
    );
    // A result may have more than what is declared; nothing is lost there that was promised.
    check("()==>(::Object {fields: {a: 'Int'}})", "()==>(::Object {fields: {a: 'Int', b: 'Int'}})", &[]);
}

#[test]
fn reasons_are_described() {
    check("(age::Int)==>(::Any)", "(age::Text)==>(::Any)", &["`age` is declared as Int, but the tool accepts Text"]);
    check("()==>(::Any)", "(zip::Text)==>(::Any)", &["the tool requires `zip`, which is not declared"]);
    check(
        "(zip::Text {optional: true})==>(::Any)",
        "(zip::Text)==>(::Any)",
        &["the tool requires `zip`, which is declared as optional"],
    );
    check("()==>(::Text)", "()==>(::Int)", &["the result is declared as Text, but the tool returns Int"]);
    check(
        "()==>(::Text)",
        "()==>(::`Maybe Text`)",
        &["the result is declared as Text, but the tool returns Maybe Text"],
    );
    check_parameter("Double", "Int", &["`p` is declared as Double, but the tool accepts Int"]);
    check_parameter("Any", "Text", &["`p` is declared as Any, but the tool accepts Text"]);
    check_parameter("Int", "Int {range: 1...}", &["`p` is declared as Int, but the tool accepts Int of at least 1"]);
    check_parameter(
        "Int {range: 0..5}",
        "Int {range: 1..9}",
        &["`p` is declared as Int from 0 to 5, but the tool accepts Int from 1 to 9"],
    );
    check_parameter(
        "Text {enum: [a, b]}",
        "Text {enum: [b, c]}",
        &[r#"`p` is declared as Text (one of "a", "b"), but the tool accepts Text (one of "b", "c")"#],
    );
    check_parameter(
        "Text {pattern: 'a'}",
        "Text {pattern: 'b', range: ...3}",
        &["`p` is declared as Text matching `a`, but the tool accepts Text of length at most 3 matching `b`"],
    );
    check_parameter(
        "Array {elementType: 'Text'}",
        "Array {elementType: 'Int', range: ...3}",
        &[
            "`p` is declared as Array of Text, but the tool accepts Array of Int with at most 3 items",
            "`p[]` is declared as Text, but the tool accepts Int",
        ],
    );
    check_parameter(
        "Any {schema: json`{\"not\":{}}`}",
        "Any {schema: json`{\"type\":\"null\"}`}",
        &[
            r#"`p` is declared as a value of the schema {"not":{}}, but the tool accepts a value of the schema {"type":"null"}"#,
        ],
    );
    check_parameter(
        "Object {fields: {a: 'Text', c: 'Text'}}",
        "Object {fields: [{name: 'a', type: 'Int'}, {name: 'b', type: 'Int'}, {name: 'd', type: 'Int', optional: true}]}",
        &[
            "the tool requires `p.b`, which is not declared",
            "`p.d` is not declared and may be anything, but the tool accepts Int",
            "the tool does not have the declared field `p.c` (it has `a`, `b`, `d`)",
            "`p.a` is declared as Text, but the tool accepts Int",
        ],
    );
    check(
        "()==>(::Object {fields: [{name: 'a', type: 'Int'}, {name: 'b', type: 'Int'}, {name: 'c', type: 'Int', optional: true}]})",
        "()==>(::Object {fields: [{name: 'b', type: 'Int', default: 1}]})",
        &[
            "`a` in the result is declared, but the tool does not return it",
            "`b` in the result is declared as required, but the tool may omit it",
            "`c` in the result is declared as Int, but the tool may return anything",
        ],
    );
}

#[test]
fn record_types_are_compared_by_structure() {
    let own = declared(&["[Tree:Object | (value::Int), (children::Array {elementType: 'Tree'})]"]);
    let wider = declared(&["[Node:Object | (value::Double), (children::Array {elementType: 'Node'})]"]);
    let unrolled = declared(&[
        "[A:Object | (value::Int), (children::Array {elementType: 'B'})]",
        "[B:Object | (value::Int), (children::Array {elementType: 'A'})]",
    ]);
    let broken = declared(&[
        "[A:Object | (value::Int), (children::Array {elementType: 'B'})]",
        "[B:Object | (value::Text), (children::Array {elementType: 'A'})]",
    ]);
    check_with(&own, "(t::Tree)==>(::Any)", &wider, "(t::Node)==>(::Any)", &[]);
    check_with(&own, "(t::Tree)==>(::Tree)", &unrolled, "(t::B)==>(::A)", &[]);
    check_with(
        &own,
        "(t::Tree)==>(::Any)",
        &broken,
        "(t::A)==>(::Any)",
        &["`t.children[].value` is declared as Int, but the tool accepts Text"],
    );
    check_with(
        &wider,
        "(t::Node)==>(::Any)",
        &own,
        "(t::Tree)==>(::Any)",
        &["`t.value` is declared as Double, but the tool accepts Int"],
    );
}

#[test]
fn long_chains_of_record_types_need_no_deep_stack() {
    let mut records = Records::default();
    let count = 10_000;
    for index in 0..count {
        let next = Type::new(Shape::Record(format!("R{}", (index + 1) % count)));
        let field = patter_core::types::signature::Field {
            name: "next".into(),
            ty: next,
            presence: patter_core::types::signature::Presence::Optional,
        };
        records.insert(format!("R{index}"), Record { description: None, fields: vec![field] });
    }
    let first = Type::new(Shape::Record("R0".into()));
    assert!(is_subtype((&first, &records), (&first, &records)));
}

#[test]
fn an_exact_match_compares_names_descriptions_and_schemas() {
    let records = Records::default();
    let contract = |name, description, signature| Contract { name, description, signature, records: &records };
    let messages = |declared: Contract<'_>, tool: Contract<'_>| -> Vec<String> {
        check_exact(declared, tool).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    };
    let own = read("(a::Int)==>(::String)", &records);
    let same = read("(::Integer {paramName: 'a'})==>(::Text)", &records);
    let wider = read("(a::Double)==>(::Any)", &records);
    assert_eq!(messages(contract("f", "does", &own), contract("f", "does", &same)), Vec::<String>::new());
    assert_eq!(
        messages(contract("f", "does", &own), contract("g", "Does", &wider)),
        [
            "the declared name is `f`, but the tool's is `g`",
            r#"the declared description is "does", but the tool's is "Does""#,
            r#"the declared input schema is {"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}, but the tool's is {"type":"object","properties":{"a":{"type":"number"}},"required":["a"]}"#,
            r#"the declared output schema is {"type":"string"}, but the tool's is {}"#,
        ]
    );
}

fn without_undeclared(mut arguments: Json, signature: &Signature) -> Json {
    if let Json::Object(map) = &mut arguments {
        map.retain(|name, _| signature.parameter(name).is_some());
    }
    arguments
}

proptest! {
    #![proptest_config(cases(160))]

    #[test]
    fn every_value_of_a_subtype_is_a_value_of_the_supertype(
        (narrow, wide, values) in two_types().prop_flat_map(|(narrow, wide)| {
            let values = prop::collection::vec(value(&narrow, 2), 12);
            (Just(narrow), Just(wide), values)
        })
    ) {
        let records = records();
        if is_subtype((&narrow, &records), (&wide, &records)) {
            for value in values.iter().filter(|value| narrow.check(value, &records).is_ok()) {
                prop_assert_eq!(wide.check(value, &records), Ok(()), "{}", value);
            }
        }
    }

    #[test]
    fn a_compatible_tool_accepts_all_declared_arguments_and_returns_only_declared_results(
        (declared, tool, arguments, results) in two_signatures().prop_flat_map(|(declared, tool)| {
            let arguments = prop::collection::vec(object(&declared.parameters, 2), 8);
            let results = prop::collection::vec(value(&tool.returns, 2), 8);
            (Just(declared), Just(tool), arguments, results)
        })
    ) {
        let records = records();
        if check_compatible((&declared, &records), (&tool, &records)).is_ok() {
            for arguments in arguments {
                let arguments = without_undeclared(arguments, &declared);
                if let Ok(filled) = declared.validate_arguments(arguments, &records) {
                    let accepted = tool.validate_arguments(filled.clone(), &records);
                    prop_assert!(accepted.is_ok(), "{} {:?}\n{}\n{}", filled, accepted, declared, tool);
                }
            }
            for result in results.iter().filter(|result| tool.returns.check(result, &records).is_ok()) {
                prop_assert_eq!(declared.returns.check(result, &records), Ok(()), "{}", result);
            }
        }
    }

    #[test]
    fn every_type_is_a_subtype_of_itself(ty in ty(2)) {
        prop_assert!(is_subtype((&ty, &records()), (&ty, &records())));
    }

    #[test]
    fn every_tool_implements_its_own_declaration(signature in signature()) {
        prop_assert_eq!(check_compatible((&signature, &records()), (&signature, &records())), Ok(()));
    }
}

/// The properties above would also hold if only equal types were ever subtypes.
#[test]
fn subtypes_are_not_only_equal_types() {
    let mut runner = TestRunner::deterministic();
    let records = records();
    let mut subtypes = 0;
    let mut unequal = 0;
    let mut rejected = 0;
    let mut witnessed = 0;
    for _ in 0..400 {
        let (narrow, wide) = two_types().new_tree(&mut runner).unwrap().current();
        if is_subtype((&narrow, &records), (&wide, &records)) {
            subtypes += 1;
            unequal += u32::from(narrow != wide);
            continue;
        }
        rejected += 1;
        let mut values = (0..30).map(|_| value(&narrow, 2).new_tree(&mut runner).unwrap().current());
        let is_witness = |value: Json| narrow.check(&value, &records).is_ok() && wide.check(&value, &records).is_err();
        witnessed += u32::from(values.any(is_witness));
    }
    println!("{subtypes} subtypes, {unequal} of them unequal; {rejected} rejected, {witnessed} of them with a witness");
    assert!(unequal > 60 && rejected > 100, "{unequal} {rejected}");
    // For nearly every rejection there is a value that proves it right.
    assert!(witnessed * 10 > rejected * 8, "{witnessed} of {rejected}");
}

#[test]
fn an_undeclared_record_type_allows_nothing() {
    let ty = Type::new(Shape::Record("Nowhere".into()));
    assert!(!is_subtype((&ty, &Records::default()), (&ty, &Records::default())));
    assert!(ty.check(&json!({}), &Records::default()).is_err());
}

#[test]
fn long_lists_of_values_take_linear_time() {
    const COUNT: usize = 100_000;
    let listed = |numbers: &mut dyn Iterator<Item = usize>| {
        let mut ty = Type::new(Shape::Text);
        ty.facets.allowed = Some(numbers.map(|number| json!(format!("value-{number}"))).collect());
        ty
    };
    let records = Records::default();
    let narrow = listed(&mut (0..COUNT));
    let wide = listed(&mut (0..=COUNT).rev());
    let start = std::time::Instant::now();
    assert!(is_subtype((&narrow, &records), (&wide, &records)));
    assert!(!is_subtype((&wide, &records), (&narrow, &records)));
    let mut whole = Type::new(Shape::Integer);
    whole.facets.allowed = Some((0..COUNT).rev().map(Json::from).collect());
    let range = Signature::parse(&format!("(a::Int {{range: 0..{}}})==>(::Text)", COUNT - 1)).unwrap();
    assert!(is_subtype((&range.parameters[0].ty, &records), (&whole, &records)));
    let values: Vec<_> = (0..COUNT).map(|number| json!(format!("value-{number}"))).collect();
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string", "enum": values, "pattern": "^value"}}});
    let converted = Signature::from_schemas(&schema, None).unwrap();
    assert_eq!(converted.signature.parameters[0].ty.facets.allowed.as_ref().unwrap().len(), COUNT);
    // Comparing all of them with each other would take hours.
    assert!(start.elapsed() < std::time::Duration::from_secs(60), "{:?}", start.elapsed());
}
