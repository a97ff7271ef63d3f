//! Reading the properties of a command tool.

use super::{CommandResult, CommandSpec, DEFAULT_MAX_BYTES, Dashes, EnvValue, Succeeds};
use crate::declare::property;
use crate::declare::template::{Part, Template};
use crate::declare::{Conduct, unknown_hole};
use crate::text::with_article;
use crate::types::signature::{Shape, Signature};
use crate::{rule, text::nearest};
use indexmap::IndexMap;
use patter_gram::{Diagnostic, Kind, Pattern, Span, Syntax, Value};

/// The properties that only commands have.
const PROPERTIES: [&str; 10] =
    ["description", "run", "stdin", "env", "cwd", "result", "errors", "succeeds", "maxBytes", "dashes"];

/// The most bytes of stdout that may be asked for: they are held in memory.
const MOST_BYTES: i64 = 64 * 1024 * 1024;

/// Programs that take a script after `-c`.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"];

/// Reads a command tool, and tells what is wrong with it. Where the signature cannot be read, what depends on it is not
/// checked.
pub(crate) fn read(pattern: Pattern<'_>, signature: Option<&Signature>) -> (CommandSpec, Vec<Diagnostic>) {
    let mut reading = Reading { pattern, signature, used: Vec::new(), diagnostics: Vec::new() };
    let common = Conduct::PROPERTIES.iter().map(|(name, _)| *name);
    let known: Vec<_> = PROPERTIES.into_iter().chain(common).collect();
    reading.diagnostics.extend(property::unknown(pattern, "command", &known));
    reading.text("description");
    let conduct = Conduct::read(pattern).unwrap_or_else(|found| {
        reading.diagnostics.extend(found);
        Conduct::default()
    });
    let run = reading.run();
    let (result, succeeds) = (reading.result(), reading.succeeds());
    let spec = CommandSpec {
        run,
        stdin: reading.stdin(),
        env: reading.env(),
        cwd: reading.cwd(),
        result,
        errors: reading.errors(),
        succeeds: match (succeeds, result) {
            (Some(codes), _) => Succeeds::With(codes),
            (None, CommandResult::Exit) => Succeeds::Always,
            (None, CommandResult::Text | CommandResult::Json) => Succeeds::With(vec![0]),
        },
        max_bytes: reading
            .integer("maxBytes", 1, MOST_BYTES)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(DEFAULT_MAX_BYTES),
        dashes: match reading.word("dashes", &["refuse", "allow"]) {
            Some("allow") => Dashes::Allow,
            _ => Dashes::Refuse,
        },
        conduct,
    };
    reading.unused_parameters();
    (spec, reading.diagnostics)
}

/// A command tool that is being read.
pub(super) struct Reading<'t, 's> {
    pub(super) pattern: Pattern<'t>,
    signature: Option<&'s Signature>,
    /// The parameters that stand in a template.
    used: Vec<String>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl Reading<'_, '_> {
    fn run(&mut self) -> Vec<Template> {
        let Some(property) = self.pattern.property("run") else {
            let is_misspelt = self.pattern.properties().any(|other| nearest(&other.key(), ["run"]).is_some());
            if !is_misspelt {
                let found = rule::MISSING_PROPERTY.at(self.head(), "this command has no `run`");
                self.report(found.with_hint("say what to run: `run: [\"wc\", \"-w\"]`"));
            }
            return Vec::new();
        };
        let Some(value) = property.value() else { return Vec::new() };
        if value.kind() != Kind::Array {
            let found = self.wrong(property, value, "a list of texts");
            self.report(found.with_hint("write the program and each argument as a text: `run: [\"wc\", \"-w\"]`"));
            return Vec::new();
        }
        let elements: Vec<_> = value.children().collect();
        if elements.is_empty() {
            let found = rule::EMPTY_PROPERTY.at(property.syntax().span(), "`run` names no program");
            self.report(found.with_hint("say what to run: `run: [\"wc\", \"-w\"]`"));
        }
        let mut run = Vec::with_capacity(elements.len());
        for (index, element) in elements.into_iter().enumerate() {
            let Some(text) = element.read_text() else {
                let found = self.wrong(property, element, "a list of texts");
                self.report(found.with_hint("put quotes around it"));
                continue;
            };
            let holes = if index == 0 { Holes::Variables } else { Holes::All };
            let Some(template) = self.template("run", element.span(), &text, holes) else { continue };
            if index == 0 && text.trim().is_empty() {
                self.report(rule::EMPTY_PROPERTY.at(element.span(), "the program in `run` is empty"));
            }
            if template.parameters().next().is_some() && template.whole_parameter().is_none() && is_script(&run) {
                let found = rule::PARAMETER_IN_SCRIPT
                    .at(element.span(), "what a model puts into this script is run as part of it");
                self.report(
                    found.with_hint(
                        "pass it as an argument: `[\"sh\", \"-c\", \"echo \\\"$1\\\"\", \"sh\", \"{text}\"]`",
                    ),
                );
            }
            run.push(template);
        }
        run
    }

    fn stdin(&mut self) -> Option<Template> {
        let (value, text) = self.text("stdin")?;
        if text == "none" { None } else { self.template("stdin", value.span(), &text, Holes::All) }
    }

    fn env(&mut self) -> IndexMap<String, EnvValue> {
        let mut env = IndexMap::new();
        let Some((property, value)) = self.value("env") else { return env };
        match value.kind() {
            Kind::Array => {
                for element in value.children() {
                    let Some(name) = element.read_text() else {
                        let found = self.wrong(property, element, "a list of names");
                        self.report(found.with_hint("put quotes around it"));
                        continue;
                    };
                    self.variable_name(element.span(), &name);
                    env.insert(name.into_owned(), EnvValue::Passed);
                }
            }
            Kind::Map => {
                for entry in value.properties() {
                    let key = entry.key();
                    self.variable_name(entry.syntax().span(), &key);
                    let Some((value, text)) = self.text_of(entry) else { continue };
                    if let Some(template) = self.template("env", value.span(), &text, Holes::All) {
                        env.insert(key.into_owned(), EnvValue::Text(template));
                    }
                }
            }
            _ => {
                let found = self.wrong(property, value, "names of variables, or a map of them");
                self.report(found.with_hint("write `env: [\"TOKEN\"]` or `env: { TOKEN: \"${MY_TOKEN}\" }`"));
            }
        }
        env
    }

    fn variable_name(&mut self, span: Span, name: &str) {
        let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_name) {
            let found = rule::OUT_OF_BOUNDS.at(span, format!("`{name}` is not the name of a variable"));
            self.report(found.with_hint("names have letters, digits and `_`, and begin with no digit"));
        }
    }

    fn cwd(&mut self) -> Option<String> {
        let (value, text) = self.text("cwd")?;
        let template = self.template("cwd", value.span(), &text, Holes::None)?;
        match template.parts() {
            [Part::Text(folder)] => Some(folder.clone()),
            _ => None,
        }
    }

    fn result(&mut self) -> CommandResult {
        let returns = self.signature.map(|signature| &signature.returns.shape);
        let word = self.word("result", &["auto", "text", "json", "exit"]);
        let (result, is_right) = match (word, returns) {
            (Some("text"), Some(shape)) => {
                (CommandResult::Text, matches!(shape, Shape::Text | Shape::Any | Shape::Schema(_)))
            }
            (Some("exit"), Some(shape)) => {
                (CommandResult::Exit, matches!(shape, Shape::Integer | Shape::Number | Shape::Any | Shape::Schema(_)))
            }
            (Some("text"), None) | (None | Some("auto"), Some(Shape::Text)) => (CommandResult::Text, true),
            (Some("exit"), None) => (CommandResult::Exit, true),
            _ => (CommandResult::Json, true),
        };
        if !is_right {
            let span = self.pattern.get("result").map_or(self.head(), Syntax::span);
            let (gives, hint) = match result {
                CommandResult::Exit => ("an exit code", "let the signature end in `(::Int)`, or leave `result` out"),
                CommandResult::Text | CommandResult::Json => {
                    ("a text", "let the signature end in `(::Text)`, or leave `result` out")
                }
            };
            let returns =
                self.signature.map_or_else(String::new, |signature| with_article(&signature.returns.to_string()));
            let message = format!("the result is {gives}, but the signature returns {returns}");
            self.report(rule::WRONG_RESULT.at(span, message).with_hint(hint));
        }
        result
    }

    fn errors(&mut self) -> IndexMap<u8, Template> {
        let mut errors = IndexMap::new();
        let Some((property, value)) = self.value("errors") else { return errors };
        if value.kind() != Kind::Map {
            let found = self.wrong(property, value, "a map");
            self.report(found.with_hint("write a message for each exit code: `errors: { \"1\": \"nothing found\" }`"));
            return errors;
        }
        for entry in value.properties() {
            let key = entry.key();
            let Ok(code) = key.parse::<u8>() else {
                let span = entry.key_syntax().map_or(entry.syntax().span(), Syntax::span);
                let found = rule::OUT_OF_BOUNDS.at(span, format!("`{key}` is not an exit code"));
                self.report(found.with_hint("exit codes go from 0 to 255"));
                continue;
            };
            let Some((value, text)) = self.text_of(entry) else { continue };
            if let Some(template) = self.template("errors", value.span(), &text, Holes::Parameters) {
                errors.insert(code, template);
            }
        }
        errors
    }

    fn succeeds(&mut self) -> Option<Vec<u8>> {
        let (property, value) = self.value("succeeds")?;
        if value.kind() != Kind::Array {
            let found = self.wrong(property, value, "a list of exit codes");
            self.report(found.with_hint("write `succeeds: [0, 1]`"));
            return None;
        }
        let mut codes = Vec::new();
        for element in value.children() {
            let code = match Value::read(element) {
                Some(Value::Integer(code)) => code.to_i64().and_then(|code| u8::try_from(code).ok()),
                _ => None,
            };
            match code {
                Some(code) => codes.push(code),
                None => {
                    let found =
                        rule::OUT_OF_BOUNDS.at(element.span(), format!("`{}` is not an exit code", element.text()));
                    self.report(found.with_hint("exit codes go from 0 to 255"));
                }
            }
        }
        Some(codes)
    }

    /// Reads a text with holes, and remembers the parameters in it.
    fn template(&mut self, key: &str, span: Span, text: &str, holes: Holes) -> Option<Template> {
        let template = match Template::parse(text) {
            Ok(template) => template,
            Err(error) => {
                self.report(rule::BAD_TEMPLATE.at(span, error.to_string()).with_hint(error.hint()));
                return None;
            }
        };
        if let (Some(name), Holes::None | Holes::Variables) = (template.parameters().next(), holes) {
            let what = if key == "run" { "the program in `run`" } else { "`cwd`" };
            let found = rule::MISPLACED_HOLE.at(span, format!("{what} cannot be decided by a model: `{{{name}}}`"));
            self.report(found.with_hint("write it out; for braces that stand for themselves, write `{{` and `}}`"));
            return None;
        }
        if let (Some(name), Holes::None | Holes::Parameters) = (template.variables().next(), holes) {
            let message = format!("`{key}` cannot hold a variable: `${{{name}}}`");
            self.report(
                rule::MISPLACED_HOLE.at(span, message).with_hint("variables may stand in `run`, `stdin` and `env`"),
            );
            return None;
        }
        let mut is_right = true;
        for name in template.parameters() {
            if let Some(signature) = self.signature.filter(|signature| signature.parameter(name).is_none()) {
                self.report(unknown_hole(name, span, signature));
                is_right = false;
            }
            self.used.push(name.to_owned());
        }
        is_right.then_some(template)
    }

    /// Reports parameters that go nowhere, unless a template that may have them could not be read.
    fn unused_parameters(&mut self) {
        if self.diagnostics.iter().any(Diagnostic::is_error) {
            return;
        }
        let Some(signature) = self.signature else { return };
        let path = self.pattern.elements().next();
        for parameter in signature.parameters.iter().filter(|parameter| !self.used.contains(&parameter.name)) {
            let node = path
                .and_then(|path| path.elements().find(|node| node.name().as_deref() == Some(parameter.name.as_str())));
            let span = node.map_or(self.head(), Pattern::span);
            let message = format!("nothing in the command uses the parameter `{}`", parameter.name);
            let hint = format!("put `{{{}}}` into `run`, `stdin` or `env`, or remove the parameter", parameter.name);
            self.diagnostics.push(rule::UNUSED_PARAMETER.at(span, message).with_hint(hint));
        }
    }
}

/// What may stand in a text with holes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holes {
    None,
    Parameters,
    Variables,
    All,
}

/// Tells whether the next argument is the script of a shell.
fn is_script(run: &[Template]) -> bool {
    let [program, .., last] = run else { return false };
    let (program, last) = (program.to_string(), last.to_string());
    let name = program.rsplit('/').next().unwrap_or_default();
    let is_flag = last.starts_with('-') && !last.starts_with("--") && last.ends_with('c');
    SHELLS.contains(&name) && is_flag
}
