//! Tests of signatures, their schemas and validation.

use crate::generate::cases;
use patter_core::types::schema::{input_schema, output_schema};
use patter_core::types::signature::{Records, Shape, Signature, Type};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn signature(text: &str) -> Signature {
    Signature::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Checks the schema of the arguments, byte for byte, and that it is a JSON Schema.
fn check(text: &str, expected: &Json) {
    let schema = input_schema(&signature(text), &Records::default());
    assert_eq!(schema.to_string(), expected.to_string(), "{text}");
    assert!(jsonschema::meta::is_valid(&schema), "{schema}");
}

/// Checks the schema of a single parameter `p`.
fn check_type(written: &str, expected: &Json) {
    check(
        &format!("(p{written})==>(::Text)"),
        &json!({ "type": "object", "properties": { "p": expected }, "required": ["p"] }),
    );
}

/// Checks that a signature is rejected with a diagnostic.
fn reject(text: &str, code: &str, message: &str) {
    let error = Signature::parse(text).expect_err(text);
    let found: Vec<_> = error.diagnostics.iter().map(|found| (found.code, found.message.as_ref())).collect();
    assert!(found.contains(&(code, message)), "{text}: {found:?}");
}

#[test]
fn a_signature_may_have_no_parameters() {
    check("()==>(::String)", &json!({ "type": "object", "properties": {} }));
}

#[test]
fn an_identifier_names_a_parameter() {
    let expected =
        json!({ "type": "object", "properties": { "personName": { "type": "string" } }, "required": ["personName"] });
    check("(personName::Text)==>(::String)", &expected);
}

#[test]
fn a_param_name_names_a_parameter() {
    let expected = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    check("(::Text {paramName:\"name\"})==>(::String)", &expected);
    assert_eq!(signature("(::Text {paramName:\"name\"})==>(::String)").to_string(), "(name::Text)==>(::Text)");
}

#[test]
fn an_optional_parameter_is_not_required() {
    for text in [
        "(name::Text)==>(age::Int {optional:true})==>(::String)",
        "(name::Text)==>(age::`Maybe Int`)==>(::String)",
        "(::Text {paramName:\"name\"})==>(::Int {paramName:\"age\", optional:true})==>(::String)",
    ] {
        let properties = json!({ "name": { "type": "string" }, "age": { "type": "integer" } });
        check(text, &json!({ "type": "object", "properties": properties, "required": ["name"] }));
    }
}

#[test]
fn a_parameter_with_a_default_is_not_required() {
    check(
        "(personName::Text)==>(age::Int {default:18})==>(::String)",
        &json!({
            "type": "object",
            "properties": { "personName": { "type": "string" }, "age": { "type": "integer", "default": 18 } },
            "required": ["personName"]
        }),
    );
}

#[test]
fn parameters_keep_their_order() {
    for count in [2, 3, 8] {
        let names: Vec<_> = (0..count).map(|index| format!("p{}", count - index)).collect();
        let nodes: Vec<_> = names.iter().map(|name| format!("({name}::Int)==>")).collect();
        let schema = input_schema(&signature(&format!("{}(::Text)", nodes.concat())), &Records::default());
        let found: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(found, names);
    }
}

#[test]
fn every_type_has_a_schema() {
    for name in ["Text", "String"] {
        check_type(&format!("::{name}"), &json!({ "type": "string" }));
    }
    for name in ["Int", "Integer"] {
        check_type(&format!("::{name}"), &json!({ "type": "integer" }));
    }
    for name in ["Double", "Number"] {
        check_type(&format!("::{name}"), &json!({ "type": "number" }));
    }
    for name in ["Bool", "Boolean"] {
        check_type(&format!("::{name}"), &json!({ "type": "boolean" }));
    }
    check_type("::Any", &json!({}));
    check_type("::Object", &json!({ "type": "object", "properties": {} }));
    check_type("::Array {elementType: 'Text'}", &json!({ "type": "array", "items": { "type": "string" } }));
}

#[test]
fn every_property_has_a_keyword() {
    check_type("::Text {description: 'who'}", &json!({ "type": "string", "description": "who" }));
    check_type("::Text {enum: [low, 'high']}", &json!({ "type": "string", "enum": ["low", "high"] }));
    check_type("::Int {range: 1..10}", &json!({ "type": "integer", "minimum": 1, "maximum": 10 }));
    check_type("::Double {range: 0.5...}", &json!({ "type": "number", "minimum": 0.5 }));
    check_type("::Text {range: 1..80}", &json!({ "type": "string", "minLength": 1, "maxLength": 80 }));
    check_type(
        "::Array {elementType: 'Int', range: ...3}",
        &json!({ "type": "array", "maxItems": 3, "items": { "type": "integer" } }),
    );
    check_type("::Text {pattern: '^a+$'}", &json!({ "type": "string", "pattern": "^a+$" }));
    check_type("::Text {format: 'uri'}", &json!({ "type": "string", "format": "uri" }));
}

#[test]
fn fields_have_two_forms() {
    let expected = json!({
        "type": "object",
        "properties": { "name": { "type": "string" }, "age": { "type": "integer" } },
        "required": ["name", "age"]
    });
    check_type("::Object {fields:[{name:\"name\", type:\"Text\"}, {name:\"age\", type:\"Int\"}]}", &expected);
    check_type("::Object {fields:{name:\"Text\", age:\"Int\"}}", &expected);
}

#[test]
fn objects_can_be_nested() {
    check_type(
        "::Object {fields:[{name:\"address\", type:\"Object\", optional:true, fields:[{name:\"city\", type:\"Text\", default:\"Rome\"}]}]}",
        &json!({
            "type": "object",
            "properties": {
                "address": { "type": "object", "properties": { "city": { "type": "string", "default": "Rome" } } }
            }
        }),
    );
}

#[test]
fn arrays_can_contain_objects_and_arrays() {
    check_type(
        "::Array {elementType:\"Object\", fields:[{name:\"id\", type:\"Int\"}]}",
        &json!({
            "type": "array",
            "items": { "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"] }
        }),
    );
    check_type(
        "::Array {elementType: {type: 'Array', elementType: {type: 'Text', enum: ['a']}}}",
        &json!({ "type": "array", "items": { "type": "array", "items": { "type": "string", "enum": ["a"] } } }),
    );
}

#[test]
fn a_type_can_be_a_schema() {
    check_type(
        "::Any {schema: json`{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}`, description: 'either'}",
        &json!({ "anyOf": [{ "type": "string" }, { "type": "null" }], "description": "either" }),
    );
}

#[test]
fn the_result_has_a_schema() {
    let check = |written: &str, expected: Json| {
        let schema = output_schema(&signature(&format!("()==>({written})")), &Records::default());
        assert_eq!(schema, expected, "{written}");
    };
    check("::String", json!({ "type": "string" }));
    check("::`Maybe Int`", json!({ "type": ["integer", "null"] }));
    check(
        "::Object {fields:{tempC:\"Double\"}}",
        json!({ "type": "object", "properties": { "tempC": { "type": "number" } }, "required": ["tempC"] }),
    );
}

#[test]
fn invalid_signatures_are_rejected() {
    reject("(a::Txt)==>(::Text)", "P020", "unknown type `Txt`");
    reject("(a)==>(::Text)", "P021", "this parameter has no type");
    reject("(::Text)==>(::Text)", "P022", "this parameter has no name");
    reject("(a::Text)==>(a::Int)==>(::Text)", "P023", "the name `a` is used twice");
    reject("(a::Text)==>()", "P024", "this signature has no result type");
    reject("(a:Text:Int)==>(::Text)", "P025", "a parameter can have only one type");
    reject(
        "(a::Int {default: 'x'})==>(::Text)",
        "P026",
        "the default does not match its type: expected an Int, found \"x\"",
    );
    reject(
        "(a::Int {range: 1..3, default: 5})==>(::Text)",
        "P026",
        "the default does not match its type: expected a number from 1 to 3, found 5",
    );
    reject("(a::Text {enum: [1]})==>(::Text)", "P027", "1 is an integer, but the type is Text");
    reject("(a::Int {range: 5..1})==>(::Text)", "P028", "the range is empty: 5 is greater than 1");
    reject("(a::Text {pattern: '('})==>(::Text)", "P029", "invalid regular expression: unclosed group");
    reject("(a::Object {fields: 'x'})==>(::Text)", "P030", "`fields` must be a list or a map");
    reject("(a::Array)==>(::Text)", "P031", "the array has no element type");
    reject("(a::Bool {range: 1..2})==>(::Text)", "P032", "`range` does not apply to the type Bool");
    reject("(a::Text)==>()==>(::Text)", "P033", "this parameter is empty");
    reject("(a::Text {defalt: 'x'})==>(::Text)", "P004", "a type has no property `defalt`");
    reject("(a::Any {schema: 'x'})==>(::Text)", "P036", "not a JSON Schema");
    reject("(a::Text)", "P008", "a signature must connect its parameters and its result with arrows");
    reject("(a::Text", "G002", "expected `)`, found the end of the file");
}

#[test]
fn mismatches_have_paths() {
    let signature = signature(
        "(user::Object {fields:[{name:'name', type:'Text'}, {name:'tags', type:'Array', elementType:'Text', optional:true}]})==>(limit::Int {default:10, range:1..100})==>(::Text)",
    );
    let check = |arguments: Json, expected: &[&str]| {
        let found = signature.validate_arguments(arguments, &Records::default());
        let messages: Vec<_> = found.err().unwrap_or_default().iter().map(ToString::to_string).collect();
        assert_eq!(messages, expected);
    };
    check(json!({ "user": { "name": "Ada" } }), &[]);
    check(json!({}), &["`user`: expected an Object, found nothing"]);
    check(
        json!({ "user": { "name": 5, "tags": ["a", 7] }, "limit": 0 }),
        &[
            "`user.name`: expected a Text, found 5",
            "`user.tags[1]`: expected a Text, found 7",
            "`limit`: expected a number from 1 to 100, found 0",
        ],
    );
    check(json!([1]), &["expected an object with the arguments, found [1]"]);
    let filled = signature.validate_arguments(json!({ "user": { "name": "Ada" } }), &Records::default()).unwrap();
    assert_eq!(filled, json!({ "user": { "name": "Ada" }, "limit": 10 }));
}

#[test]
fn a_signature_survives_formatting() {
    for text in [
        "()==>(::Text)",
        "(personName::Text { default: \"world\" })==>(::Text)",
        "(a::Int { range: 1..10 })==>(b::Array { elementType: \"Maybe Text\" })==>(::`Maybe Int`)",
        "(o::Object { fields: [{ name: \"x\", type: \"Int\", optional: true }] })==>(::Any)",
        "(x::Any { schema: json`{\"type\":\"string\"}` })==>(::Bool)",
        "(l::Array { elementType: { type: \"Array\", elementType: { type: \"Text\", enum: [\"a\"] } } })==>(::Double)",
    ] {
        assert_eq!(signature(text).to_string(), text);
    }
}

#[test]
fn defaults_are_filled_in_inside_defaults_but_not_inside_listed_values() {
    let field = "fields: [{name: 'x', type: 'Int', default: 1}]";
    let inside = signature(&format!("(p::Object {{{field}, default: {{}}}})==>(::Any)"));
    assert_eq!(inside.validate_arguments(json!({}), &Records::default()), Ok(json!({ "p": { "x": 1 } })));
    let listed = signature(&format!("(p::Object {{{field}, enum: [{{y: 2}}]}})==>(::Any)"));
    assert_eq!(
        listed.validate_arguments(json!({ "p": { "y": 2 } }), &Records::default()),
        Ok(json!({ "p": { "y": 2 } }))
    );
}

#[test]
fn whole_floats_become_integers() {
    let signature = signature(
        "(n::Int)==>(list::Array {elementType: 'Int'})==>(one::Int {enum: [1, 2]})\
         ==>(inner::Object {fields: {i: 'Int', d: 'Double'}})==>(::Int)",
    );
    let arguments = json!({"n": 1.0, "list": [2.0, -3.0, 1e30], "one": 2.0, "inner": {"i": 1e3, "d": 4.0}});
    let filled = signature.validate_arguments(arguments, &Records::default()).unwrap();
    let expected = r#"{"n":1,"list":[2,-3,1e+30],"one":2,"inner":{"i":1000,"d":4.0}}"#;
    assert_eq!(filled.to_string(), expected);
}

#[test]
fn large_integers_are_compared_exactly() {
    let signature = signature("(p::Int {range: ...9007199254740992})==>(::Any)");
    assert!(signature.validate_arguments(json!({ "p": 9_007_199_254_740_992_u64 }), &Records::default()).is_ok());
    assert!(signature.validate_arguments(json!({ "p": 9_007_199_254_740_993_u64 }), &Records::default()).is_err());
}

#[test]
fn patterns_have_the_semantics_of_json_schema() {
    let signature = signature("(p::Text {pattern: '^\\\\d$'})==>(::Any)");
    assert!(signature.validate_arguments(json!({ "p": "7" }), &Records::default()).is_ok());
    assert!(signature.validate_arguments(json!({ "p": "\u{0667}" }), &Records::default()).is_err());
}

#[test]
fn an_invalid_schema_is_rejected_and_allows_nothing() {
    for schema in ["{\"$schema\":\"http://example.com/x\"}", "{\"$ref\":\"#/nope\"}", "{\"type\":1}"] {
        let error = Signature::parse(&format!("(p::Any {{schema: json`{schema}`}})==>(::Any)")).unwrap_err();
        assert_eq!(error.diagnostics[0].code, "P036");
        assert!(error.diagnostics[0].message.starts_with("not a valid JSON Schema: "), "{error}");
        let ty = Type::new(Shape::Schema(serde_json::from_str(schema).unwrap()));
        assert!(ty.check(&json!(1), &Records::default()).is_err());
    }
}

/// Reads a project, and returns the signature of a tool with the record types.
fn with_records(text: &str, name: &str) -> (Signature, Records) {
    let project = patter_core::declare::project::Project::read([("a.gram", text)]);
    let (_, tool) = project.tools().find(|(declaration, _)| declaration.name == name).unwrap();
    (tool.signature(project.records()).unwrap(), project.records().clone())
}

#[test]
fn a_record_type_that_is_used_once_is_inlined() {
    let (signature, records) = with_records(
        "[Address:Object {description: 'where'} | (city::Text), (zip::Text {optional: true})]
         [t:Tool {description: 'x'} | (to::Address)==>(::Bool)]",
        "t",
    );
    let expected = json!({
        "type": "object",
        "properties": {
            "to": {
                "type": "object",
                "properties": { "city": { "type": "string" }, "zip": { "type": "string" } },
                "required": ["city"],
                "description": "where"
            }
        },
        "required": ["to"]
    });
    assert_eq!(input_schema(&signature, &records).to_string(), expected.to_string());
}

#[test]
fn shared_and_recursive_record_types_become_definitions() {
    let (signature, records) = with_records(
        "[Node:Object | (name::Text), (children::Array {elementType: 'Node'})]
         [t:Tool {description: 'x'} | (a::Node)==>(::Node)]",
        "t",
    );
    let schema = input_schema(&signature, &records);
    assert_eq!(schema["properties"]["a"], json!({ "$ref": "#/$defs/Node" }));
    assert_eq!(schema["$defs"]["Node"]["properties"]["children"]["items"], json!({ "$ref": "#/$defs/Node" }));
    assert!(jsonschema::meta::is_valid(&schema));
    let tree = json!({ "a": { "name": "x", "children": [{ "name": "y", "children": [] }] } });
    assert!(jsonschema::is_valid(&schema, &tree));
    assert!(signature.validate_arguments(tree, &records).is_ok());
    let wrong = json!({ "a": { "name": "x", "children": [{ "name": 1, "children": [] }] } });
    assert!(!jsonschema::is_valid(&schema, &wrong));
    let message = signature.validate_arguments(wrong, &records).unwrap_err()[0].to_string();
    assert_eq!(message, "`a.children[0].name`: expected a Text, found 1");
}

#[test]
fn nested_record_types_do_not_grow_exponentially() {
    let mut text = String::from("[t:Tool {description: 'x'} | (a::R0)==>(::Bool)] [R40:Object | (x::Int)]\n");
    for index in 0..40 {
        text += &format!("[R{index}:Object | (a::R{0}), (b::R{0})]\n", index + 1);
    }
    let (signature, records) = with_records(&text, "t");
    assert!(input_schema(&signature, &records).to_string().len() < 10_000);
}

#[test]
fn types_can_be_written_in_brackets_and_braces() {
    let text = json!({ "type": "string" });
    let int = json!({ "type": "integer" });
    check_type("::`[Text]`", &json!({ "type": "array", "items": text }));
    check_type("::`[ [Int] ]`", &json!({ "type": "array", "items": { "type": "array", "items": int } }));
    check_type("::`[Maybe Int]`", &json!({ "type": "array", "items": { "type": ["integer", "null"] } }));
    let object = json!({ "type": "object", "properties": { "a": int, "b": text }, "required": ["a"] });
    check_type("::`{a: Int, b: Maybe Text}`", &object);
    check_type("::`{ \"a\"::Int, 'b' : Maybe Text }`", &object);
    check_type("::`[{a: Int, b: Maybe Text}]`", &json!({ "type": "array", "items": object }));
    check_type("::`{}`", &json!({ "type": "object", "properties": {} }));
    check_type(
        "::`[Text]` {range: 1..3, description: 'tags'}",
        &json!({ "type": "array", "description": "tags", "minItems": 1, "maxItems": 3, "items": text }),
    );
    let listed =
        json!({ "type": "object", "properties": { "x": { "type": "array", "items": int } }, "required": ["x"] });
    check_type("::Object {fields: {x: '[Int]'}}", &listed);
    check_type("::Object {fields: [{name: 'x', type: '[Int]'}]}", &listed);
    check_type("::Array {elementType: '{x: [Int]}'}", &json!({ "type": "array", "items": listed }));
    check(
        "(p::`Maybe [Text]`)==>(::Int)",
        &json!({ "type": "object", "properties": { "p": { "type": "array", "items": text } } }),
    );
    for (returns, expected) in [
        ("[Int]", json!({ "type": "array", "items": int })),
        ("{a: Int, b: Maybe Text}", object),
        ("Maybe [Int]", json!({ "type": ["array", "null"], "items": int })),
    ] {
        let ty = Type::parse(returns, &Records::default()).unwrap();
        assert_eq!(patter_core::types::schema::type_schema(&ty, &Records::default()), expected, "{returns}");
        // A label means the same.
        assert_eq!(signature(&format!("()==>(::`{returns}`)")).returns, ty);
    }
}

#[test]
fn mistakes_in_brackets_and_braces_are_reported() {
    for (written, message) in [
        ("[Text", "`[Text` is not a type: `]` is missing"),
        ("[]", "`[]` is not a type: a name is missing before `]`"),
        ("{a Int}", "`{a Int}` is not a type: `:` is missing"),
        ("{a: Int,}", "`{a: Int,}` is not a type: a name is missing before `}`"),
        ("{a: }", "`{a: }` is not a type: a name is missing before `}`"),
        ("{'a: Int}", "`{'a: Int}` is not a type: a quote is not closed"),
        ("[Int] x", "`[Int] x` is not a type: `x` after the end of the type"),
        ("[Itn]", "unknown type `Itn`"),
        ("[Array]", "the array has no element type"),
    ] {
        let code = if written == "[Array]" { "P031" } else { "P020" };
        reject(&format!("(p::`{written}`)==>(::Int)"), code, message);
    }
    reject("(p::`{a: Int, a: Int}`)==>(::Int)", "P023", "the name `a` is used twice");
    reject(
        "(p::`[Text]` {elementType: 'Int'})==>(::Int)",
        "P032",
        "`elementType` does not apply to a type in brackets",
    );
    // Deep nesting is an error, and not a crash.
    let deep = "[".repeat(100_000);
    let error = Signature::parse(&format!("(p::`{deep}`)==>(::Int)")).unwrap_err();
    assert!(error.to_string().contains("nested more than 32 levels deep"));
}

#[test]
fn parameters_and_fields_may_be_null() {
    check_type("::Int {nullable: true}", &json!({ "type": ["integer", "null"] }));
    let field = json!({ "type": "object", "properties": { "a": { "type": ["string", "null"] } }, "required": ["a"] });
    check_type("::Object {fields: [{name: 'a', type: 'Text', nullable: true}]}", &field);
    let written = "(a::Int { nullable: true, optional: true })==>(::Object { fields: [{ name: \"b\", type: \"Text\", nullable: true }] })";
    assert_eq!(signature(written).to_string(), written);
    let records = Records::default();
    let ty = &signature("(p::Int {nullable: true})==>(::Int)").parameters[0].ty;
    assert!(ty.check(&Json::Null, &records).is_ok() && ty.check(&json!("x"), &records).is_err());
    let converted = Signature::from_schemas(&json!({ "type": "object", "properties": { "p": field } }), None).unwrap();
    assert_eq!(
        converted.signature.to_string(),
        "(p::Object { fields: [{ name: \"a\", type: \"Text\", nullable: true }], optional: true })==>(::Any)"
    );
    reject("(p::Int {nullable: 'yes'})==>(::Int)", "P005", "`nullable` must be true or false");
}

/// Generates types in brackets and braces.
fn compact(depth: u32) -> BoxedStrategy<String> {
    let name = prop::sample::select(vec!["Text", "Int", "Double", "Bool", "Any", "Object"]).prop_map(str::to_owned);
    if depth == 0 {
        return name.boxed();
    }
    let inner = move || {
        (compact(depth - 1), any::<bool>()).prop_map(|(ty, maybe)| if maybe { format!("Maybe {ty}") } else { ty })
    };
    let fields = prop::collection::btree_map("[a-z]{1,3}", inner(), 0..4);
    let object = fields.prop_map(|fields| {
        let fields: Vec<_> = fields.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
        format!("{{{}}}", fields.join(", "))
    });
    prop_oneof![1 => name, 2 => inner().prop_map(|item| format!("[{item}]")), 2 => object].boxed()
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn types_in_brackets_print_as_types_that_mean_the_same(written in compact(4)) {
        let read = signature(&format!("(p::`{written}`)==>(::`{written}`)"));
        let printed = signature(&read.to_string());
        prop_assert_eq!(&printed, &read);
        let records = Records::default();
        prop_assert_eq!(input_schema(&printed, &records), input_schema(&read, &records));
        prop_assert_eq!(&Type::parse(&written, &records).unwrap(), &read.returns);
    }
}
