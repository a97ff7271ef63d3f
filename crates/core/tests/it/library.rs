//! Layers, overrides, names and binding.

use patter_core::declare::project::Project;
use patter_core::library::{Defined, Entry, Layer, Library, Matching, Sealing, Target, bind};
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
fn equal_full_names_are_overridden_by_the_higher_layer_and_told() {
    for (lower, higher) in [(Internal, Org), (Internal, Ours), (Org, Ours)] {
        // The order in which they are given makes no difference.
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

#[test]
fn what_is_sealed_is_not_overridden() {
    let sealed = |layer| entry("fs/read", layer, Sealing::Sealed, layer);
    let errors = |entries: Vec<Entry<Layer>>| -> Vec<String> {
        Library::merge(entries).unwrap_err().iter().map(ToString::to_string).collect()
    };
    let message = "the project layer may not override `fs/read`, which the internal layer has sealed";
    assert_eq!(errors(vec![sealed(Internal), open("fs/read", Ours)]), [message]);
    assert_eq!(
        errors(vec![sealed(Org), open("fs/read", Ours)]),
        ["the project layer may not override `fs/read`, which the org layer has sealed"]
    );
    // All errors come at once.
    assert_eq!(errors(vec![sealed(Internal), open("fs/read", Org), open("fs/read", Ours)]).len(), 2);
    assert_eq!(errors(vec![open("a", Ours), open("a", Ours)]), ["the project layer has two tools `a`"]);
    // A seal does not keep anything from having another name, and none is needed for the highest layer.
    assert!(Library::merge([sealed(Internal), open("our/read", Ours)]).is_ok());
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
    check("run", Err(("`run` may be `a/run` or `b/run` of the project layer", Some("write the full name"))));
    check("sayHelo", Err(("there is no tool `sayHelo`", Some("did you mean `sayHello`?"))));
    check("other/sayHello", Err(("there is no tool `other/sayHello`", Some("did you mean `greetings/sayHello`?"))));
    check("nothingLikeIt", Err(("there is no tool `nothingLikeIt`", None)));
    check("", Err(("there is no tool ``", None)));
}

pub(crate) struct Tool(Definition);

impl Defined for Tool {
    fn definition(&self) -> &Definition {
        &self.0
    }
}

pub(crate) fn library(tools: &[(&str, &str)]) -> Library<Tool> {
    let tools = tools.iter().map(|(name, signature)| {
        let full = FullName::parse(name).unwrap();
        let tool = Definition::new(full.own(), "Does it", signature).unwrap();
        Entry { name: full, layer: Layer::Project, sealing: Sealing::Open, value: Tool(tool) }
    });
    Library::merge(tools).unwrap()
}

#[test]
fn an_agent_is_bound_or_all_failures_are_told() {
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
    let bindings = bind(&agent, &project, &good, Matching::Compatible).unwrap();
    let targets = bindings.iter().map(|binding| match &binding.target {
        Target::Tool { name, declared } => format!("{} -> {name} {}", binding.name, declared.signature),
        Target::Agent { name } => format!("{} -> agent {name}", binding.name),
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
    let error = bind(&agent, &project, &bad, Matching::Compatible).unwrap_err();
    let told = error.failures.iter().map(|failure| format!("{failure} | {}", failure.hint().unwrap_or_default()));
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"));
    // The same library, held to the letter.
    let error = bind(&agent, &project, &good, Matching::Exact).unwrap_err();
    assert_eq!(error.failures.iter().map(|failure| failure.name.as_str()).collect::<Vec<_>>(), ["inPlace"]);
}
