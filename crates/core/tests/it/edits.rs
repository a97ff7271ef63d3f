//! Changes of many declarations at once.

use patter_core::check::Options;
use patter_core::declare::project::Project;
use patter_core::edit::{DeclarationEdit, DeclarationEditError};
use patter_core::query::FilePlace;

const TEXT: &str = "// The desk.
[desk:Agent { // who answers
  instruction: 'Help with `find`.', model: 'demo', maxCost: 1.0
} |
  find, // and nothing else
  [judge:Agent { description: 'Judges', instruction: 'Judge.', model: 'demo' }]
]
[find:Tool { description: 'Finds' } | (id::Text)==>(::Text)] // a tool
";

fn places(project: &Project, names: &[&str]) -> Vec<FilePlace> {
    let files = project.files().iter().enumerate();
    let named = files.flat_map(|(file, source)| source.tree.walk().map(move |pattern| (file, pattern)));
    let is_named = |name: Option<std::borrow::Cow<'_, str>>| name.is_some_and(|name| names.contains(&&*name));
    let named = named.filter(|(_, pattern)| is_named(pattern.name()) && pattern.labels().next().is_some());
    named.map(|(file, pattern)| FilePlace { file, span: pattern.span() }).collect()
}

fn apply(text: &str, names: &[&str], edit: &DeclarationEdit) -> Result<String, DeclarationEditError> {
    let project = Project::read([("a.gram", text)]);
    let changed = edit.apply(&project, places(&project, names), &Options::default())?;
    Ok(changed.first().map_or_else(|| text.to_owned(), |changed| changed.text.clone()))
}

fn edit(set: &[&str], unset: &[&str], add: &[&str], remove: &[&str]) -> DeclarationEdit {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mut edit = DeclarationEdit { unset: owned(unset), remove: owned(remove), ..DeclarationEdit::default() };
    set.iter().for_each(|assignment| edit.set(assignment).unwrap());
    add.iter().for_each(|element| edit.add(element).unwrap());
    edit
}

#[test]
fn only_what_is_named_changes() {
    let changed = apply(TEXT, &["desk", "judge"], &edit(&["model=OpenAI/gpt-5", "maxTurns=3"], &["maxCost"], &[], &[]));
    assert_eq!(
        changed.unwrap(),
        "// The desk.
[desk:Agent { // who answers
  instruction: 'Help with `find`.', model: \"OpenAI/gpt-5\", maxTurns: 3
} |
  find, // and nothing else
  [judge:Agent { description: 'Judges', instruction: 'Judge.', model: \"OpenAI/gpt-5\", maxTurns: 3 }]
]
[find:Tool { description: 'Finds' } | (id::Text)==>(::Text)] // a tool
"
    );
}

#[test]
fn elements_are_added_once_and_removed() {
    let text =
        "[a:Agent { instruction: 'Use `x`.', model: 'demo' } | x] [b:Agent { instruction: 'B.', model: 'demo' }]";
    let add = edit(&[], &[], &["fs/read", "[own:Tool { description: 'Own' } | ()==>(::Text)]"], &[]);
    let changed = apply(text, &["a", "b"], &add).unwrap();
    assert_eq!(
        changed,
        "[a:Agent { instruction: 'Use `x`.', model: 'demo' } | x, `fs/read`, [own:Tool { description: 'Own' } | ()==>(::Text)]] \
         [b:Agent { instruction: 'B.', model: 'demo' } | `fs/read`, [own:Tool { description: 'Own' } | ()==>(::Text)]]"
    );
    assert_eq!(apply(&changed, &["a", "b"], &add).unwrap(), changed, "what is there is not added again");
    let remove = edit(&[], &[], &[], &["fs/read", "own"]);
    assert_eq!(apply(&changed, &["a", "b"], &remove).unwrap(), text);
    assert_eq!(apply(text, &["a"], &edit(&[], &[], &["y"], &["x"])).unwrap(), text.replace("| x]", "| y]"));
}

#[test]
fn nothing_changes_if_there_would_be_errors() {
    let error = apply(TEXT, &["desk"], &edit(&["modle=demo"], &[], &[], &[])).unwrap_err();
    assert_eq!(error.to_string(), "the files would have errors, so nothing was changed");
    let DeclarationEditError::NewErrors { findings, .. } = error else { panic!("{error}") };
    assert_eq!(findings[0].diagnostic.message, "an agent has no property `modle`");
    let error = apply(TEXT, &["desk"], &edit(&[], &["instruction"], &[], &[])).unwrap_err();
    assert!(matches!(error, DeclarationEditError::NewErrors { .. }));
    let error = apply("[desk:Agent { model: 'demo' ", &["desk"], &edit(&["model=x"], &[], &[], &[])).unwrap_err();
    assert_eq!(error.to_string(), "`a.gram` has errors, so nothing was changed");
    let mut wrong = DeclarationEdit::default();
    assert_eq!(wrong.add("[x:Tool").unwrap_err().to_string().split(':').next(), Some("`[x"));
    assert_eq!(wrong.add("[x] [y]").unwrap_err().to_string(), "`[x] [y]` is not one pattern");
    assert!(wrong.is_empty());
}

#[test]
fn values_are_read_as_gram_or_text() {
    let table = [
        ("a=demo", "\"demo\""),
        ("a=OpenAI/gpt-5", "\"OpenAI/gpt-5\""),
        ("a=0.5", "0.5"),
        ("a=30s", "30s"),
        ("a=true", "true"),
        ("a=[\"x\", \"y\"]", "[\"x\", \"y\"]"),
        ("a='x = y'", "'x = y'"),
        ("a=two words", "\"two words\""),
        ("a=", "\"\""),
    ];
    for (assignment, expected) in table {
        let mut edit = DeclarationEdit::default();
        edit.set(assignment).unwrap();
        assert_eq!(edit.set, [("a".to_owned(), expected.to_owned())], "{assignment}");
    }
}
