//! Tests of layers, overrides, name resolution and binding.

use patter_core::declare::project::Project;
use patter_core::library::{Entry, HasDefinition, Layer, Library, LibraryTool, MatchMode, Sealing, Target, bind};
use patter_core::name::FullName;
use patter_core::types::definition::Definition;

use Layer::{Internal, Org, Project as Ours};

fn entry<T>(name: &str, layer: Layer, sealing: Sealing, value: T) -> Entry<T> {
    Entry { name: FullName::parse(name).unwrap(), layer, sealing, value }
}

fn open(name: &str, layer: Layer) -> Entry<Layer> {
    entry(name, layer, Sealing::Open, layer)
}

#[test]
fn a_higher_layer_overrides_equal_full_names() {
    for (lower, higher) in [(Internal, Org), (Internal, Ours), (Org, Ours)] {
        // The order of the entries makes no difference.
        for entries in
            [[open("fs/read", lower), open("fs/read", higher)], [open("fs/read", higher), open("fs/read", lower)]]
        {
            let library = Library::merge(entries).unwrap();
            assert_eq!(library.get("fs/read").unwrap().value, higher);
            let overrides: Vec<_> = library.overrides().map(|o| (o.winner.layer, o.loser.layer)).collect();
            assert_eq!(overrides, [(higher, lower)]);
        }
    }
    let all = Library::merge([open("a", Internal), open("a", Org), open("a", Ours)]).unwrap();
    let overrides: Vec<_> = all.overrides().map(|o| (o.winner.layer, o.loser.layer)).collect();
    assert_eq!(overrides, [(Ours, Internal), (Ours, Org)]);
    let candidates: Vec<_> = all.candidates("a").iter().map(|entry| entry.layer).collect();
    assert_eq!(candidates, [Ours, Org, Internal]);
}

/// The tools of a server are for others to decide, so they do not take over names that are in use.
#[test]
fn a_bare_name_refers_to_a_tool_of_a_server_last() {
    let entries =
        || [open("fetch", Internal), open("acme/http/get", Org), open("web/fetch", Ours), open("web/get", Ours)];
    let resolve = |library: &Library<Layer>, name: &str| library.resolve(name).unwrap().name.to_string();
    let plain = Library::merge(entries()).unwrap();
    assert_eq!((resolve(&plain, "fetch"), resolve(&plain, "get")), ("web/fetch".into(), "web/get".into()));
    let more = [open("web/search", Ours), open("files/search", Ours), open("web/only", Ours)];
    let library = Library::merge(entries().into_iter().chain(more)).unwrap();
    let library = library.with_servers(["web".to_owned(), "files".to_owned()]);
    assert_eq!((resolve(&library, "fetch"), resolve(&library, "get")), ("fetch".into(), "acme/http/get".into()));
    assert_eq!((resolve(&library, "only"), resolve(&library, "web/fetch")), ("web/only".into(), "web/fetch".into()));
    assert!(library.resolve("search").unwrap_err().to_string().contains("web/search"));
    let candidates: Vec<_> = library.candidates("get").iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(candidates, ["acme/http/get", "web/get"]);
}

#[test]
fn sealed_entries_cannot_be_overridden() {
    let sealed = |layer| entry("fs/read", layer, Sealing::Sealed, layer);
    let errors = |entries: Vec<Entry<Layer>>| -> Vec<String> {
        Library::merge(entries).unwrap_err().iter().map(ToString::to_string).collect()
    };
    let message = "the project layer cannot override `fs/read`, which is sealed by the internal layer";
    assert_eq!(errors(vec![sealed(Internal), open("fs/read", Ours)]), [message]);
    assert_eq!(
        errors(vec![sealed(Org), open("fs/read", Ours)]),
        ["the project layer cannot override `fs/read`, which is sealed by the org layer"]
    );
    // All errors are returned at once.
    assert_eq!(errors(vec![sealed(Internal), open("fs/read", Org), open("fs/read", Ours)]).len(), 2);
    assert_eq!(errors(vec![open("a", Ours), open("a", Ours)]), ["the project layer has two tools named `a`"]);
    // The same tool under a different full name is not an override.
    assert!(Library::merge([sealed(Internal), open("our/read", Ours)]).is_ok());
}

#[test]
fn a_bare_name_does_not_pass_over_a_sealed_tool() {
    let sealed = |name, layer| entry(name, layer, Sealing::Sealed, layer);
    let library = Library::merge([
        open("send", Internal),
        sealed("acme/mail/send", Org),
        open("mail/send", Ours),
        open("other/send", Ours),
        sealed("fs/read", Internal),
        open("acme/fs/read", Org),
        open("our/read", Ours),
    ])
    .unwrap();
    assert_eq!(library.resolve("send").unwrap().name.as_str(), "acme/mail/send");
    assert_eq!(library.resolve("read").unwrap().name.as_str(), "fs/read");
    // A full name says which one is meant.
    assert_eq!(library.resolve("mail/send").unwrap().layer, Ours);
    let candidates: Vec<_> = library.candidates("send").iter().map(|entry| entry.name.to_string()).collect();
    assert_eq!(candidates, ["acme/mail/send", "mail/send", "other/send", "send"]);
    // A project may seal its own tools, which hides nothing from it.
    let own = Library::merge([sealed("our/a", Ours), open("a", Internal)]).unwrap();
    assert_eq!(own.resolve("a").unwrap().name.as_str(), "our/a");
}

#[test]
fn an_agent_does_not_pass_over_a_sealed_tool() {
    struct Tool(Definition);
    impl HasDefinition for Tool {
        fn definition(&self) -> &Definition {
            &self.0
        }
    }
    let tool = |name: &str| Tool(Definition::new(name, "Sends", "(to::Text)==>(::Text)").unwrap());
    let library = Library::merge([entry("acme/mail/send", Org, Sealing::Sealed, tool("send"))]).unwrap();
    let send = "[send:Agent {instruction: 'Pretend.', model: 'demo', description: 'Sends'}]";
    let outer = |elements: &str| format!("[outer:Agent {{instruction: 'Send.', model: 'demo'}} | {elements}]");
    for text in [outer(send), format!("{}\n{send}", outer("send"))] {
        let project = Project::read([("a.gram", &text)]);
        let agent = project.main_agent(Some("outer")).unwrap();
        let error = bind(&agent, &project, &library, MatchMode::Compatible).unwrap_err();
        let expected = "the agent `send` has the name of the tool `acme/mail/send`, which is sealed";
        assert_eq!(error.failures[0].to_string(), expected, "{text}");
        assert_eq!(error.failures[0].hint().unwrap(), "rename the agent");
    }
}

#[test]
fn names_are_resolved() {
    let library = Library::merge([
        open("sayHello", Internal),
        open("greetings/sayHello", Ours),
        open("acme/mail/send", Org),
        open("mail/send", Internal),
        open("a/run", Ours),
        open("b/run", Ours),
        open("run", Internal),
    ])
    .unwrap();
    let check = |name: &str, expected: Result<&str, (&str, Option<&str>)>| match (library.resolve(name), expected) {
        (Ok(found), Ok(full)) => assert_eq!(found.name.as_str(), full, "{name}"),
        (Err(error), Err((message, hint))) => {
            assert_eq!((error.to_string().as_str(), error.hint().as_deref()), (message, hint), "{name}");
        }
        (found, expected) => panic!("{name}: {found:?}, expected {expected:?}"),
    };
    check("sayHello", Ok("greetings/sayHello"));
    check("greetings/sayHello", Ok("greetings/sayHello"));
    check("send", Ok("acme/mail/send"));
    check("mail/send", Ok("mail/send"));
    check("acme/mail/send", Ok("acme/mail/send"));
    check(
        "run",
        Err(("`run` is ambiguous in the project layer: it may be `a/run` or `b/run`", Some("use the full name"))),
    );
    check("sayHelo", Err(("there is no tool `sayHelo`", Some("did you mean `sayHello`?"))));
    check("other/sayHello", Err(("there is no tool `other/sayHello`", Some("did you mean `greetings/sayHello`?"))));
    check("nothingLikeIt", Err(("there is no tool `nothingLikeIt`", None)));
    check("", Err(("there is no tool ``", None)));
}

pub(crate) struct Tool(Definition);

impl HasDefinition for Tool {
    fn definition(&self) -> &Definition {
        &self.0
    }
}

impl LibraryTool for Tool {
    fn is_idempotent(&self) -> bool {
        true
    }

    fn kind_name(&self) -> &str {
        "native"
    }

    fn source(&self) -> &str {
        "Rust"
    }

    fn revision(&self) -> Option<&str> {
        None
    }
}

pub(crate) fn library(tools: &[(&str, &str)]) -> Library<Tool> {
    let tools = tools.iter().map(|(name, signature)| {
        let full = FullName::parse(name).unwrap();
        let tool = Definition::new(full.tool_name(), "Does it", signature).unwrap();
        Entry { name: full, layer: Layer::Project, sealing: Sealing::Open, value: Tool(tool) }
    });
    Library::merge(tools).unwrap()
}

#[test]
fn an_agent_is_bound_or_all_failures_are_reported() {
    let project = Project::read([(
        "a.gram",
        "[shared:Tool {description: 'Does it'} | (a::Int)==>(::Text)]
         [helper:Agent {instruction: 'Help.', model: 'demo'}]
         [main:Agent {instruction: 'Do.', model: 'demo'} |
           [inPlace:Tool {description: 'Does it'} | (a::Int)==>(::Text)],
           [strict:Tool {description: 'Does it', exact: true} | (a::Int)==>(::Text)],
           shared, helper, onlyInLibrary]",
    )]);
    let (_, agent) = project.agents().find(|(_, agent)| agent.name().as_deref() == Some("main")).unwrap();
    let same = "(a::Int)==>(::Text)";
    let good = library(&[
        ("x/inPlace", "(a::Number)==>(::Text)"),
        ("strict", same),
        ("shared", same),
        ("y/onlyInLibrary", "(b::Text)==>(::Int)"),
    ]);
    let bindings = bind(&agent, &project, &good, MatchMode::Compatible).unwrap();
    let targets = bindings.iter().map(|binding| match &binding.target {
        Target::Tool { name, declared } => format!("{} -> {name} {}", binding.name, declared.signature),
        Target::Agent { agent } => format!("{} -> agent {}", binding.name, agent.path()),
    });
    assert_eq!(
        targets.collect::<Vec<_>>(),
        [
            "inPlace -> x/inPlace (a::Int)==>(::Text)",
            "strict -> strict (a::Int)==>(::Text)",
            "shared -> shared (a::Int)==>(::Text)",
            "helper -> agent helper",
            "onlyInLibrary -> y/onlyInLibrary (b::Text)==>(::Int)",
        ]
    );

    let bad = library(&[
        ("inPlace", "(a::Text)==>(::Text)"),
        ("strict", "(a::Number)==>(::Text)"),
        ("x/shared", same),
        ("y/shared", same),
    ]);
    let error = bind(&agent, &project, &bad, MatchMode::Compatible).unwrap_err();
    let failures = error.failures.iter().map(|failure| format!("{failure} | {}", failure.hint().unwrap_or_default()));
    insta::assert_snapshot!(failures.collect::<Vec<_>>().join("\n"));
    // The same library, with exact matches.
    let error = bind(&agent, &project, &good, MatchMode::Exact).unwrap_err();
    assert_eq!(error.failures.iter().map(|failure| failure.name.as_str()).collect::<Vec<_>>(), ["inPlace"]);
}
