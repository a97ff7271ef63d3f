//! Tests of error messages, names and descriptions.

use crate::describe::{camel_case, description};
use crate::expand::expand;
use proc_macro2::TokenStream;
use syn::ItemFn;

/// Expands a function with options, and returns the error messages.
fn errors(options: &str, function: &str) -> Vec<String> {
    let parse = |text: &str| text.parse::<TokenStream>().unwrap();
    match expand(parse(options), parse(function)) {
        Ok(_) => Vec::new(),
        Err(error) => error.into_iter().map(|error| error.to_string()).collect(),
    }
}

#[test]
fn reports_all_errors_in_the_function() {
    let check = |function: &str, expected: &[&str]| {
        let found = errors("", function);
        assert_eq!(found.len(), expected.len(), "{function}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{function}: {found}");
        }
    };
    check("/// Adds\nfn add(a: i64, b: Option<i64>, context: &ToolContext, db: Shared<Db>) -> i64 { a }", &[]);
    check("fn add(a: i64) -> i64 { a }", &["a tool needs a doc comment"]);
    check("///\nfn add(a: i64) -> i64 { a }", &["a tool needs a doc comment"]);
    check("/// # Errors\n/// none\nfn add(a: i64) -> i64 { a }", &["a tool needs a doc comment"]);
    check("/// Adds\nfn add(&self) {}", &["a tool is a function, not a method"]);
    check("/// Adds\nfn add<T>(a: T) {}", &["cannot be generic"]);
    check("/// Adds\nfn add(a: i64) where i64: Copy {}", &["cannot be generic"]);
    check("/// Adds\nunsafe fn add() {}", &["cannot be unsafe"]);
    check("/// Adds\nextern \"C\" fn add() {}", &["must have the Rust ABI"]);
    check("/// Adds\nfn add((a, b): (i64, i64)) {}", &["must be a plain name: destructure it"]);
    check("/// Adds\nfn add(name: &str) {}", &["use `String`"]);
    check("/// Adds\nfn add(names: &[String]) {}", &["only the context is a reference"]);
    check("/// Adds\nfn add(context: &mut ToolContext) {}", &["only the context is a reference"]);
    check("/// Adds\nfn add(context: ToolContext) {}", &["use `&ToolContext`"]);
    check("/// Adds\nfn add(a: impl Into<i64>) {}", &["need concrete types"]);
    check("/// Adds\nfn add(a_b: i64, aB: i64) {}", &["two parameters are named `aB`"]);
    check("/// Adds\nfn add(#[default = 1] a: Option<i64>) {}", &["use the type without `Option`"]);
    check("/// Adds\nfn add(#[default = 1] a: &ToolContext) {}", &["has no default"]);
    check("/// Adds\nfn add(#[default(1)] a: i64) {}", &["use `#[default = …]`"]);
    check("/// Adds\nfn add(#[description(1)] a: i64) {}", &["use `#[description = \"…\"]`"]);
    check("struct Add;", &["expected `fn`"]);
    check("fn add<T>(&self, name: &str) {}", &["generic", "not a method", "`String`", "doc comment"]);
}

#[test]
fn reports_errors_in_the_options() {
    let check = |options: &str, expected: &str| {
        let found = errors(options, "/// Adds\nfn add() {}").join(", ");
        assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{options}: {found}");
    };
    check("", "");
    check("name = \"sum\", effect = \"reads\", idempotent, timeout = \"2m\", concurrency = 4, sealed", "");
    check("nam = \"sum\"", "unknown option `nam`; available options: `name`, `effect`");
    check("name = \"my sum\"", "starts with a letter");
    check("name = \"1st\"", "starts with a letter");
    check("name = sum", "expected string literal");
    check("effect = \"none\"", "unknown effect `none`");
    for timeout in ["500ms", "10s", "2m", "1h", "1.5s", ".5s", "30"] {
        check(&format!("timeout = \"{timeout}\""), "");
    }
    for timeout in ["", "0s", "0.0s", "-1s", "1e3s", "1.2.3s", "3 weeks", "s", "."] {
        check(&format!("timeout = \"{timeout}\""), "invalid duration");
    }
    check("concurrency = 0", "at least 1");
    check("effect = \"pure\", blocking", "");
    check("sealed, sealed", "`sealed` is given twice");
}

#[test]
fn rejects_blocking_async_functions() {
    assert_eq!(
        errors("blocking", "/// Adds\nasync fn add() {}"),
        ["an async function must not block: remove `async` or `blocking`"]
    );
}

#[test]
fn keeps_the_function_and_removes_the_attributes_of_the_macro() {
    let function =
        "/// Greets\npub async fn greet(/// who\n#[default = \"you\"] #[cfg(all())] name: String) -> String { name }";
    let expanded = expand(TokenStream::new(), function.parse().unwrap()).unwrap();
    let file: syn::File = syn::parse2(expanded).unwrap();
    let syn::Item::Fn(kept) = &file.items[0] else { panic!("the function is first") };
    let expected: ItemFn = syn::parse_str("pub async fn greet(#[cfg(all())] name: String) -> String { name }").unwrap();
    assert_eq!((&kept.vis, &kept.sig, &kept.block), (&expected.vis, &expected.sig, &expected.block));
}

#[test]
fn applies_cfg_attributes_to_all_items() {
    let function = "/// Greets\n#[cfg(windows)] fn greet() {}";
    let file: syn::File = syn::parse2(expand(TokenStream::new(), function.parse().unwrap()).unwrap()).unwrap();
    let attributes = file.items.iter().map(|item| match item {
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        other => panic!("{other:?}"),
    });
    let conditional = attributes.filter(|attributes| attributes.iter().any(|one| one.path().is_ident("cfg"))).count();
    assert_eq!((conditional, file.items.len()), (3, 3));
}

#[test]
fn converts_names_to_camel_case() {
    for (rust, name) in
        [("say_hello", "sayHello"), ("now", "now"), ("r#type", "type"), ("_unused", "unused"), ("a_b2_c", "aB2C")]
    {
        assert_eq!(camel_case(rust), name);
    }
}

#[test]
fn reads_descriptions_up_to_a_heading() {
    let check = |comment: &str, expected: &str| {
        let function: ItemFn = syn::parse_str(&format!("{comment}\nfn f() {{}}")).unwrap();
        assert_eq!(description(&function.attrs).as_deref(), Some(expected));
    };
    check("/// One\n/// line.\n///\n///\n/// Another\n/// # Errors\n/// none", "One line.\n\nAnother");
    check("/// Takes\n/// - a list\n/// - of things", "Takes\n- a list\n- of things");
    check("/// Takes what\n/// `is` quoted\n/// *or* not", "Takes what `is` quoted *or* not");
    check("/** A block */", "A block");
}
