//! Common mistakes and their diagnostics: one snapshot each.

use patter_gram::{LineIndex, Rendering, parse, render};

/// Checks all diagnostics of a text.
fn check(name: &str, source: &str) {
    let (tree, diagnostics) = parse(source);
    assert_eq!(tree.to_string(), source);
    assert!(!diagnostics.is_empty(), "no diagnostics for {source:?}");
    let index = LineIndex::new(source);
    let rendered: Vec<_> = diagnostics
        .iter()
        .map(|diagnostic| render(diagnostic, source, &index, "agent.gram", Rendering::Plain))
        .collect();
    insta::with_settings!({ description => source, omit_expression => true }, {
        insta::assert_snapshot!(name, rendered.join("\n\n"));
    });
}

macro_rules! mistakes {
    ($($name:ident: $source:expr;)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), $source);
        })*
    };
}

mistakes! {
    missing_comma_between_properties: "(a {name: 'Ada' born: 1815})";
    missing_comma_between_properties_on_lines: "(a {\n  name: 'Ada'\n  born: 1815\n})";
    missing_comma_between_elements: "[team | ada grace]";
    missing_comma_in_array: "({tags: ['a' 'b']})";
    trailing_comma_in_record: "(a {name: 'Ada',})";
    trailing_comma_in_elements: "[team | ada, grace,]";
    trailing_comma_in_array: "({tags: ['a', 'b',]})";
    double_comma: "(a {x: 1,, y: 2})";
    comma_between_patterns: "(a), (b)";
    front_matter: "---\nname: helper\nmodel: openai/gpt-5\n---\n[a:Agent]";
    unclosed_node: "(a:Person\n(b)";
    unclosed_node_before_an_arrow: "(a==>(b)";
    unclosed_bracket: "[team:Team |\n  ada,\n  grace\n";
    unclosed_bracket_before_the_next: "[a:Agent |\n  (x)\n\n[b:Agent |\n  (y)\n]";
    unclosed_record: "(a {name: 'Ada')";
    unclosed_record_before_the_bar: "[a:Agent {model: 'demo' | b]";
    unclosed_array: "({tags: ['a', 'b'})";
    unclosed_everything: "[a {k: [1, {x: 2";
    unmatched_closer: "(a))";
    wrong_closer: "[a | (b]";
    unclosed_double_quote: "(a {name: \"Ada, born: 1815})\n(b)";
    unclosed_backtick: "(`over there)";
    unclosed_fence: "(a {text: ```\n  Hello\n})";
    unclosed_comment: "(a)\n/** about b\n(b)";
    one_stroke_right: "(a)->(b)";
    one_stroke_left: "(a)<-(b)";
    one_stroke: "(a)-(b)";
    one_stroke_double: "(a)=>(b)";
    three_strokes: "(a)--->(b)";
    mixed_strokes: "(a)-=>(b)";
    half_an_arrow_with_subject: "(a)-[r]>(b)";
    unicode_arrow: "(a)→(b)";
    arrow_inside_the_name: "(a-->(b)";
    path_to_a_bracket: "(a)-->[b]";
    path_to_a_name: "(a)-->b";
    path_to_a_capitalized_name: "(a)==>Text";
    path_to_a_label: "[t | (a::Text)==>::Object {fields: {x: 'Int'}}]\n(b)==>:";
    path_without_an_end: "(a)-->\n";
    arrow_without_a_start: "-->(b)";
    no_elements_after_the_bar: "[a | ]";
    missing_bar_before_a_node: "[a:Agent (b)]";
    missing_bar_before_a_bracket: "[a:Agent {model: 'demo'}\n  [b:Tool | ()-->()]\n]";
    comma_instead_of_a_bar: "[a, b]";
    record_in_the_middle_of_a_file: "(a)\n{version: 1}\n(b)";
    record_among_elements: "[a | {x: 1}]";
    invalid_escape: r#"({path: "C:\Users"})"#;
    unicode_escape: r#"({text: "\u00e9"})"#;
    line_break_in_a_string: "({text: \"first\nsecond\", x: 1})";
    fence_on_one_line: "({text: ```hello```})";
    tag_before_a_fence: "({text: md```\n# Hi\n```})";
    exponent: "({x: 1e5})";
    exponent_with_fraction: "({x: 1.5e-3})";
    digit_separator: "({x: 1_000})";
    leading_point: "({x: .5})";
    trailing_point: "({x: 5.})";
    plus_sign: "({x: +5})";
    octal_with_eight: "({x: 08})";
    fractional_measurement: "({x: 1.5km})";
    range_with_three_dots: "({x: 1...5})";
    range_without_an_upper_bound: "({x: 1..})";
    non_ascii_identifier: "(größe:Maß)";
    non_ascii_label: "(:Größe)";
    non_ascii_key: "({größe: 1})";
    non_ascii_value: "({size: groß})";
    curly_quotes: "({text: “hello”})";
    quoted_identifier: "(\"over there\")";
    quoted_label: "(a:\"Team Label\")";
    number_with_unit_as_identifier: "(12px)";
    label_without_a_name: "(a:)";
    label_with_a_space_between_colons: "(a: :B)";
    labels_after_the_record: "(a {x: 1} :B)";
    two_records: "(a {x: 1} {y: 2})";
    two_names: "(over there)";
    comma_in_a_subject: "(a, b)";
    node_in_a_node: "(a (b))";
    key_in_single_quotes: "({'a': 1})";
    key_that_is_a_number: "({1: 'one'})";
    key_without_a_colon: "({name 'Ada'})";
    equals_instead_of_a_colon: "({name = 'Ada'})";
    missing_value: "({name: , born: 1815})";
    missing_value_at_the_end: "({name:})";
    unquoted_text: "({text: You are kind, x: 1})";
    pattern_as_a_value: "({friend: (b)})";
    duplicate_key: "(a {name: 'Ada', x: 1, \"name\": 'Grace'})";
    annotation_without_a_value: "@old (a)";
    annotation_without_a_pattern: "@old(true)";
    annotation_without_a_plain_key: "@`old`(true) (a)";
    annotation_inside_a_node: "(@old(true) a)";
    annotation_among_elements: "[a | @old(true) (b)]";
    header_without_a_name: "@@ (a)";
    header_after_an_annotation: "@old(true) @@a (b)";
    bare_name_at_the_top: "sayHello";
    reference_with_a_label: "[a:Agent | sayHello:Tool]";
    c_comment: "/* about */ (a)";
    hash_comment: "# about\n(a)";
    semicolon: "(a);";
    stray_text: "(a) % (b)";
    missing_quote_before_the_next_property: "(a {\n  text: \"x,\n  more: 1\n})";
    apostrophe_in_single_quotes: "({text: 'It's nice', x: 1})";
    triple_quotes: "({text: \"\"\"\n  Hello\n\"\"\"})";
    bar_between_elements: "[a | b | c]";
    semicolon_between_properties: "({x: 1; y: 2})";
    arrow_inside_the_label: "(a:L-->(b)";
    path_of_bare_names: "(a)-->b-->(c)";
    space_in_an_arrow: "(a) -- > (b)";
    keys_in_an_array: "({k: [a: 1, b: 2]})";
    url_without_quotes: "({url: http://example.com/x, y: 1})";
    date_without_quotes: "({born: 1815-12-10})";
    time_without_quotes: "({at: 10:30})";
    unit_with_a_slash: "({speed: 5km/h})";
    percentage: "({share: 50%})";
    range_to_a_word: "({x: 1..a})";
    range_with_two_dots_before: "({x: ..5})";
    tag_before_double_quotes: "({born: date\"1815\"})";
    annotation_with_two_values: "@key(1, 2) (a)";
    tabs_and_wide_characters: "\t(数 {名: 1})";
}

#[test]
fn long_lines_are_cut_around_the_mistake() {
    let source = format!("(a {{text: '{}', x: 1e5, y: '{}'}})", "before ".repeat(100), "after ".repeat(100));
    check("long_line", &source);
}

#[test]
fn distant_spans_have_separate_excerpts() {
    let source = format!("[a:Agent |\n{}", "  (x),\n".repeat(40));
    check("far_apart", &source);
}

#[test]
fn bytes_that_are_not_utf8_are_reported() {
    let (tree, diagnostics) = patter_gram::parse_bytes(b"(caf\xe9 {x: '\xff\xfe'})", patter_gram::Dialect::Patter);
    let index = LineIndex::new(tree.source());
    let rendered: Vec<_> =
        diagnostics.iter().map(|found| render(found, tree.source(), &index, "agent.gram", Rendering::Plain)).collect();
    insta::assert_snapshot!("not_utf8", rendered.join("\n\n"));
}

#[test]
fn brackets_nested_too_deeply_are_reported_once() {
    let (_, diagnostics) = parse(&"[x | ".repeat(1_000));
    let codes: Vec<_> = diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(codes, ["G035", "G002"]);
}

#[test]
fn extensions_are_reported_in_plain_gram() {
    let source = "({a: [], b: [[1]], c: [{d: 1}], e: {f: {g: 1}}, h: {i:: 1}})";
    let (_, diagnostics) = patter_gram::parse_dialect(source, patter_gram::Dialect::Portable);
    let found: Vec<_> =
        diagnostics.iter().map(|found| format!("{} {}", found.span.slice(source), found.message)).collect();
    assert_eq!(
        found,
        [
            "[] an empty array is not plain gram",
            "[ an array in an array is not plain gram",
            "{ a map in an array is not plain gram",
            "{ a map in a map is not plain gram",
            ":: `::` in a map is not plain gram",
        ]
    );
}
