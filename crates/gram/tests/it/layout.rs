//! The canonical layout by example.

use patter_gram::format;

fn check(source: &str, expected: &str) {
    let formatted = format(source).unwrap();
    assert_eq!(formatted, expected, "\n--- found ---\n{formatted}--- expected ---\n{expected}");
    assert_eq!(format(&formatted).unwrap(), formatted, "formatting is not idempotent");
}

#[test]
fn short_patterns_fit_on_one_line() {
    check("( a : Person{name:'Ada',born:1815} )", "(a:Person { name: 'Ada', born: 1815 })\n");
    check("[ team|ada , grace]", "[team | ada, grace]\n");
    check("[|a]", "[| a]\n");
    check("( ) - [ r : KNOWS ] -> ( ) <- [] - ()", "()-[r:KNOWS]->()<--()\n");
    check("({})\n[ ]", "({})\n[]\n");
    check("({ a:[ ],b:{ } , c : [1,2] })", "({ a: [], b: {}, c: [1, 2] })\n");
    check("({r: 1 .. 5, s: ... 5, t: date `x`})", "({ r: 1..5, s: ...5, t: date`x` })\n");
    check("{ version:1 }(a)", "{ version: 1 }\n(a)\n");
    check("", "");
    check("\n\n", "");
}

#[test]
fn quoting_colons_and_number_bases_are_preserved() {
    let text = "(a::A:B { 'single': 1 })";
    assert!(format(text).is_err());
    check("(a::A:B {\"k\":'x', `l`::0xFF,m:042})", "(a::A:B { \"k\": 'x', `l`:: 0xFF, m: 042 })\n");
}

#[test]
fn long_records_have_one_property_per_line() {
    check(
        "(a:Person {description: 'A person who wrote the first program for a machine that was never built', born: 1815})",
        "(a:Person {\n  description: 'A person who wrote the first program for a machine that was never built',\n  born: 1815\n})\n",
    );
}

#[test]
fn agents_with_tools_are_indented() {
    check(
        "[hello:Agent{description:\"Greets\",instruction:```\n    Be kind.\n  ```,model:'demo'}|[sayHello:Tool{description:\"Returns a friendly greeting for the given name\"}|(personName::Text{default:\"world\"})==>(::String)],other]",
        "[hello:Agent {
  description: \"Greets\",
  instruction: ```
    Be kind.
  ```,
  model: 'demo'
} |
  [sayHello:Tool { description: \"Returns a friendly greeting for the given name\" } |
    (personName::Text { default: \"world\" })==>(::String)
  ],
  other
]
",
    );
}

#[test]
fn long_paths_have_one_arrow_per_line() {
    check(
        "(query::Text {description: 'what to look for'})==>(limit::Int {default: 10, range: 1..100})==>(::Array {elementType: 'Text'})",
        "(query::Text { description: 'what to look for' })
  ==>(limit::Int { default: 10, range: 1..100 })
  ==>(::Array { elementType: 'Text' })
",
    );
}

#[test]
fn long_arrays_have_one_item_per_line() {
    let item = "'a value of some length to fill the line'";
    check(
        &format!("({{k: [{item},{item},{item}]}})"),
        &format!("({{\n  k: [\n    {item},\n    {item},\n    {item}\n  ]\n}})\n"),
    );
}

#[test]
fn annotations_have_one_line_each() {
    check("@@p:Place @desc('x')(a)-->(b)", "@@p:Place\n@desc('x')\n(a)-->(b)\n");
    check("@a(1) // one\n@b(2)\n// about a\n(a)", "@a(1) // one\n@b(2)\n// about a\n(a)\n");
}

#[test]
fn comments_stay_with_what_they_describe() {
    check(
        "// head\n\n\n[team:Team| // members\nada, // the first\n\n  // an admiral\n  grace // the second\n  // and more\n]  // done",
        "// head

[team:Team |
  // members
  ada, // the first

  // an admiral
  grace // the second
  // and more
] // done
",
    );
    check("(a {x: 1, // one\ny: 2 /** two */})", "(a {\n  x: 1, // one\n  y: 2 /** two */\n})\n");
    check("(a {x: 1, /** two */ y: 2})", "(a {\n  x: 1,\n  /** two */\n  y: 2\n})\n");
    check("(a /** who */ :Person)", "/** who */\n(a:Person)\n");
    check("(a {x: // why\n1})", "(a {\n  // why\n  x: 1\n})\n");
    check("(a {// nothing\n})", "(a {\n  // nothing\n})\n");
    check(
        "(name::Text) // who\n==>(age::Int) // how old\n==>(::Text)",
        "(name::Text) // who\n  ==>(age::Int) // how old\n  ==>(::Text)\n",
    );
    check("// only a comment", "// only a comment\n");
}

#[test]
fn one_empty_line_between_items_is_kept() {
    check("(a)\n\n\n\n(b)\n(c)\n\n", "(a)\n\n(b)\n(c)\n");
}

#[test]
fn line_breaks_match_the_file() {
    check("(a)\r\n(b) // x\r\n", "(a)\r\n(b) // x\r\n");
    check("\u{feff}(a)\n", "(a)\n");
}
