//! Reading declarations of commands.

use super::{CommandResult, CommandSpec, DEFAULT_MAX_BYTES, DashPolicy, EnvValue, SuccessCodes};
use crate::declare::property;
use crate::declare::sandbox::Sandbox;
use crate::declare::template::{Part, Template};
use crate::declare::{ToolOptions, unknown_placeholder};
use crate::rule;
use crate::text::with_article;
use crate::types::signature::{Shape, Signature};
use indexmap::IndexMap;
use patter_gram::{Diagnostic, Kind, Pattern, Span, Syntax, Value};

/// The properties that only commands have.
const PROPERTIES: [&str; 10] =
    ["description", "run", "stdin", "env", "cwd", "result", "errors", "succeeds", "maxBytes", "dashes"];

/// The highest limit for the size of stdout, which is kept in memory.
const MAX_BYTES_LIMIT: i64 = 64 * 1024 * 1024;

/// Programs that accept a script after `-c`.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"];

/// Reads a command, and returns it with everything that is wrong with it. Without a valid signature, whatever depends on
/// it is not checked.
pub(crate) fn read(pattern: Pattern<'_>, signature: Option<&Signature>) -> (CommandSpec, Vec<Diagnostic>) {
    let mut reader = CommandReader { pattern, signature, used: Vec::new(), diagnostics: Vec::new() };
    let common = ToolOptions::PROPERTIES.iter().chain(&Sandbox::PROPERTIES).map(|(name, _)| *name);
    let known: Vec<_> = PROPERTIES.into_iter().chain(common).collect();
    reader.diagnostics.extend(property::unknown_properties(pattern, "command", &known));
    reader.text("description");
    let options = ToolOptions::read(pattern).unwrap_or_else(|found| {
        reader.diagnostics.extend(found);
        ToolOptions::default()
    });
    let sandbox = Sandbox::read(pattern).unwrap_or_else(|found| {
        reader.diagnostics.extend(found);
        None
    });
    let run = reader.run();
    let result = reader.result();
    let success_codes = reader.success_codes();
    let spec = CommandSpec {
        run,
        stdin: reader.stdin(),
        env: reader.env(),
        cwd: reader.cwd(),
        result,
        errors: reader.errors(),
        success_codes: match (success_codes, result) {
            (Some(codes), _) => SuccessCodes::Listed(codes),
            (None, CommandResult::Exit) => SuccessCodes::Any,
            (None, CommandResult::Text | CommandResult::Json) => SuccessCodes::Listed(vec![0]),
        },
        max_bytes: reader
            .integer("maxBytes", 1, MAX_BYTES_LIMIT)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(DEFAULT_MAX_BYTES),
        dashes: match reader.word("dashes", &["refuse", "allow"]) {
            Some("allow") => DashPolicy::Allow,
            _ => DashPolicy::Refuse,
        },
        sandbox,
        options,
    };
    reader.unused_parameters();
    (spec, reader.diagnostics)
}

/// The state of reading a command.
pub(super) struct CommandReader<'t, 's> {
    pub(super) pattern: Pattern<'t>,
    signature: Option<&'s Signature>,
    /// The parameters that templates use.
    used: Vec<String>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl CommandReader<'_, '_> {
    fn run(&mut self) -> Vec<Template> {
        let Some(property) = self.pattern.property("run") else {
            let is_misspelt = self.pattern.properties().any(|other| property::meant(&other.key(), &["run"]).is_some());
            if !is_misspelt {
                let found = rule::MISSING_PROPERTY.at(self.head(), "this command has no `run`");
                self.report(found.with_hint("add the program to run: `run: [\"wc\", \"-w\"]`"));
            }
            return Vec::new();
        };
        let Some(value) = property.value() else { return Vec::new() };
        if value.kind() != Kind::Array {
            let found = self.wrong(property, value, "a list of strings");
            self.report(
                found.with_hint("write the program and each argument as a separate string: `run: [\"wc\", \"-w\"]`"),
            );
            return Vec::new();
        }
        let elements: Vec<_> = value.children().collect();
        if elements.is_empty() {
            let found = rule::EMPTY_PROPERTY.at(property.syntax().span(), "`run` is empty");
            self.report(found.with_hint("add the program to run: `run: [\"wc\", \"-w\"]`"));
        }
        let mut run = Vec::with_capacity(elements.len());
        for (index, element) in elements.into_iter().enumerate() {
            let Some(text) = element.read_text() else {
                let found = self.wrong(property, element, "a list of strings");
                self.report(found.with_hint("put quotes around it"));
                continue;
            };
            let allowed = if index == 0 { AllowedPlaceholders::Variables } else { AllowedPlaceholders::All };
            let Some(template) = self.template("run", element.span(), &text, allowed) else { continue };
            if index == 0 && text.trim().is_empty() {
                self.report(rule::EMPTY_PROPERTY.at(element.span(), "the program in `run` is empty"));
            }
            if template.parameters().next().is_some() && template.sole_parameter().is_none() && is_script(&run) {
                let found = rule::PARAMETER_IN_SCRIPT
                    .at(element.span(), "text from the model becomes part of this shell script");
                self.report(found.with_hint(
                    "pass it as an argument instead: `[\"sh\", \"-c\", \"echo \\\"$1\\\"\", \"sh\", \"{text}\"]`",
                ));
            }
            run.push(template);
        }
        run
    }

    fn stdin(&mut self) -> Option<Template> {
        let (value, text) = self.text("stdin")?;
        if text == "none" { None } else { self.template("stdin", value.span(), &text, AllowedPlaceholders::All) }
    }

    fn env(&mut self) -> IndexMap<String, EnvValue> {
        let mut env = IndexMap::new();
        let Some((property, value)) = self.value("env") else { return env };
        match value.kind() {
            Kind::Array => {
                for element in value.children() {
                    let Some(name) = element.read_text() else {
                        let found = self.wrong(property, element, "a list of variable names");
                        self.report(found.with_hint("put quotes around it"));
                        continue;
                    };
                    self.variable_name(element.span(), &name);
                    env.insert(name.into_owned(), EnvValue::Inherited);
                }
            }
            Kind::Map => {
                for entry in value.properties() {
                    let key = entry.key();
                    self.variable_name(entry.syntax().span(), &key);
                    let Some((value, text)) = self.text_of(entry) else { continue };
                    if let Some(template) = self.template("env", value.span(), &text, AllowedPlaceholders::All) {
                        env.insert(key.into_owned(), EnvValue::Text(template));
                    }
                }
            }
            _ => {
                let found = self.wrong(property, value, "a list of variable names, or a map");
                self.report(found.with_hint("write `env: [\"TOKEN\"]` or `env: { TOKEN: \"${MY_TOKEN}\" }`"));
            }
        }
        env
    }

    fn variable_name(&mut self, span: Span, name: &str) {
        let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_name) {
            let found = rule::OUT_OF_BOUNDS.at(span, format!("`{name}` is not a valid variable name"));
            self.report(found.with_hint("use letters, digits and `_`, and do not start with a digit"));
        }
    }

    fn cwd(&mut self) -> Option<String> {
        let (value, text) = self.text("cwd")?;
        let template = self.template("cwd", value.span(), &text, AllowedPlaceholders::None)?;
        match template.parts() {
            [Part::Text(folder)] => Some(folder.clone()),
            _ => None,
        }
    }

    fn result(&mut self) -> CommandResult {
        let returns = self.signature.map(|signature| &signature.returns.shape);
        let word = self.word("result", &["auto", "text", "json", "exit"]);
        let (result, matches_signature) = match (word, returns) {
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
        if !matches_signature {
            let span = self.pattern.get("result").map_or(self.head(), Syntax::span);
            let (noun, hint) = match result {
                CommandResult::Exit => ("an exit code", "end the signature with `(::Int)`, or remove `result`"),
                CommandResult::Text | CommandResult::Json => {
                    ("a text", "end the signature with `(::Text)`, or remove `result`")
                }
            };
            let returns =
                self.signature.map_or_else(String::new, |signature| with_article(&signature.returns.to_string()));
            let message = format!("the result is {noun}, but the signature returns {returns}");
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
                self.report(found.with_hint("exit codes range from 0 to 255"));
                continue;
            };
            let Some((value, text)) = self.text_of(entry) else { continue };
            if let Some(template) = self.template("errors", value.span(), &text, AllowedPlaceholders::Parameters) {
                errors.insert(code, template);
            }
        }
        errors
    }

    fn success_codes(&mut self) -> Option<Vec<u8>> {
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
                    self.report(found.with_hint("exit codes range from 0 to 255"));
                }
            }
        }
        Some(codes)
    }

    /// Parses a template, and records the parameters in it.
    fn template(&mut self, key: &str, span: Span, text: &str, allowed: AllowedPlaceholders) -> Option<Template> {
        let template = match Template::parse(text) {
            Ok(template) => template,
            Err(error) => {
                self.report(rule::BAD_TEMPLATE.at(span, error.to_string()).with_hint(error.hint()));
                return None;
            }
        };
        if let (Some(name), AllowedPlaceholders::None | AllowedPlaceholders::Variables) =
            (template.parameters().next(), allowed)
        {
            let property = if key == "run" { "the program in `run`" } else { "`cwd`" };
            let found =
                rule::MISPLACED_PLACEHOLDER.at(span, format!("{property} cannot be chosen by the model: `{{{name}}}`"));
            self.report(found.with_hint("write a fixed value; write `{{` and `}}` for literal braces"));
            return None;
        }
        if let (Some(name), AllowedPlaceholders::None | AllowedPlaceholders::Parameters) =
            (template.variables().next(), allowed)
        {
            let message = format!("`{key}` cannot contain an environment variable: `${{{name}}}`");
            self.report(
                rule::MISPLACED_PLACEHOLDER
                    .at(span, message)
                    .with_hint("environment variables are allowed in `run`, `stdin` and `env`"),
            );
            return None;
        }
        let mut is_valid = true;
        for name in template.parameters() {
            if let Some(signature) = self.signature.filter(|signature| signature.parameter(name).is_none()) {
                self.report(unknown_placeholder(name, span, signature));
                is_valid = false;
            }
            self.used.push(name.to_owned());
        }
        is_valid.then_some(template)
    }

    /// Reports unused parameters, unless an invalid template may contain them.
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
            let message = format!("the command does not use the parameter `{}`", parameter.name);
            let hint = format!("use `{{{}}}` in `run`, `stdin` or `env`, or remove the parameter", parameter.name);
            self.diagnostics.push(rule::UNUSED_PARAMETER.at(span, message).with_hint(hint));
        }
    }
}

/// The placeholders that a template may contain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AllowedPlaceholders {
    None,
    Parameters,
    Variables,
    All,
}

/// Returns whether the next argument is the script of a shell.
fn is_script(run: &[Template]) -> bool {
    let [program, .., last] = run else { return false };
    let program = program.to_string();
    let last = last.to_string();
    let name = program.rsplit('/').next().unwrap_or_default();
    let is_flag = last.starts_with('-') && !last.starts_with("--") && last.ends_with('c');
    SHELLS.contains(&name) && is_flag
}
