//! `patter import`.

use crate::folder::Folder;

const SHOP: &str = "openapi: 3.1.0
info: {title: Shop API, version: 1.2.0}
servers: [{url: https://shop.example.com/v1}]
security: [{key: []}]
paths:
  /orders:
    get:
      operationId: list_orders
      summary: Lists orders
      parameters:
        - {name: state, in: query, schema: {enum: [open, closed]}}
      responses:
        200: {description: ok, content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Order'}}}}}
  /orders/{order-id}/receipt:
    put:
      operationId: putReceipt
      parameters: [{name: order-id, in: path, required: true, schema: {type: string}}]
      requestBody: {required: true, content: {multipart/mixed: {schema: {type: object}}}}
      responses: {204: {description: done}}
components:
  securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}
  schemas:
    Order: {type: object, required: [id], properties: {id: {type: integer}, note: {type: [string, 'null']}}}
";

macro_rules! snapshot {
    ($name:literal, $output:expr) => {
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!($name, $output) })
    };
}

#[test]
fn openapi_prints_a_toolbox_and_warns_about_what_is_left_out() {
    let folder = Folder::new();
    folder.write("shop.yaml", SHOP);
    let printed = folder.run(&["import", "openapi", "shop.yaml"]);
    snapshot!("import_openapi", printed);
    assert_eq!(folder.run_with(&["import", "openapi", "-"], SHOP), printed);
    let all = folder.run(&["import", "openapi", "shop.yaml", "--only", "putReceipt"]);
    snapshot!("import_openapi_nothing", all);
}

#[test]
fn openapi_writes_a_valid_file() {
    let folder = Folder::new();
    folder.write("shop.yaml", SHOP);
    let import = |more: &[&str]| {
        let all: Vec<_> = ["import", "openapi", "shop.yaml", "--only", "list*", "--output", "shop.gram"]
            .into_iter()
            .chain(more.iter().copied())
            .collect();
        folder.run(&all)
    };
    assert_eq!(import(&[]), "exit 0\n--- stdout\n--- stderr\nwrote shop.gram: 1 tool\n");
    assert!(folder.run(&["fmt", "--check"]).starts_with("exit 0"));
    let checked = folder.run(&["check", "--deny-warnings"]);
    assert_eq!(checked, "exit 0\n--- stdout\n--- stderr\nchecked 1 file: no problems found\n");
    // An existing file is not overwritten without --force, and never half written.
    folder.write("shop.gram", "mine");
    snapshot!("import_openapi_exists", import(&[]));
    assert_eq!(folder.read("shop.gram"), "mine");
    assert_eq!(import(&["--force", "--name", "store"]), "exit 0\n--- stdout\n--- stderr\nwrote shop.gram: 1 tool\n");
    assert!(folder.read("shop.gram").contains("[store:Toolbox |"));
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn openapi_reports_errors() {
    let folder = Folder::new();
    let check = |text: &str, arguments: &[&str], expected: &str| {
        folder.write("a.json", text);
        let all: Vec<_> = ["import", "openapi", "a.json"].into_iter().chain(arguments.iter().copied()).collect();
        assert_eq!(folder.run(&all), format!("exit 1\n--- stdout\n--- stderr\n{expected}\n"));
    };
    check(
        "{\"swagger\": \"1.2\"}",
        &[],
        "error: cannot import `a.json`: Swagger 1.2 is not supported\n  help: supported versions: 2.0, 3.0 and 3.1",
    );
    check(
        &SHOP.replace("https://shop.example.com", ""),
        &[],
        "error: cannot import `a.json`: the server address `/v1` is not absolute\n  \
         help: it is relative to where the document is published: `--server https://api.example.com/v1`",
    );
    check(
        SHOP,
        &["--only", "list*", "--output", "no/such/shop.gram"],
        "error: cannot write `no/such/shop.gram`: its folder does not exist\n  help: create the folder first",
    );
    let broken = folder.run_with(&["import", "openapi", "-"], "a: [");
    assert!(
        broken.starts_with(
            "exit 1\n--- stdout\n--- stderr\nerror: cannot read `<stdin>`: the document is neither JSON nor YAML: "
        ),
        "{broken}"
    );
    let missing = folder.run(&["import", "openapi", "no.yaml"]);
    assert_eq!(missing, "exit 1\n--- stdout\n--- stderr\nerror: cannot read `no.yaml`: no such file\n");
    assert!(folder.run(&["import", "openapi", "a.json", "--force"]).starts_with("exit 2"));
    assert!(folder.run(&["import"]).starts_with("exit 2"));
}

#[test]
fn openapi_limits_the_number_of_warnings() {
    let folder = Folder::new();
    let paths: String = (0..60).map(|index| format!("  /p{index}: {{trace: {{}}}}\n")).collect();
    let text = SHOP.replace("components:", &format!("{paths}components:"));
    let shown = |more: &[&str]| {
        let all: Vec<_> = ["import", "openapi", "-"].into_iter().chain(more.iter().copied()).collect();
        let printed = folder.run_with(&all, &text);
        (printed.matches("warning: ").count(), printed.contains("… and 11 more (--max-errors 0 shows all)\n"))
    };
    assert_eq!(shown(&[]), (50, true));
    assert_eq!(shown(&["--max-errors", "0"]), (61, false));
}
