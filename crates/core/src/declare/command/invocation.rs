//! Filling in the templates of a command for a call.

use super::{CommandSpec, DashPolicy, EnvValue};
use crate::declare::template::{Part, Template, argument_text};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::fmt;
use thiserror::Error;

/// The environment variables that every command inherits, if they are set. Other variables are inherited only if the tool
/// lists them, and their values are secrets.
pub const INHERITED_VARIABLES: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// The command that a call runs.
#[derive(Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The program.
    pub program: String,
    /// The arguments.
    pub arguments: Vec<String>,
    /// The text to write to stdin, if any.
    pub stdin: Option<String>,
    /// The environment variables beyond [`INHERITED_VARIABLES`].
    pub env: Vec<(String, String)>,
    /// The values of environment variables, which must not appear in messages and results.
    pub secrets: Vec<String>,
}

/// An error when filling in the templates.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandLineError {
    /// An argument looks like an option.
    #[error("`{parameter}` would be treated as an option, because the argument would start with `-`")]
    Dash {
        /// The parameter.
        parameter: String,
    },
    /// An argument or a variable contains a NUL byte.
    #[error("`{name}` contains a NUL byte, which a command cannot receive as an argument")]
    Nul {
        /// The parameter or the variable.
        name: String,
    },
    /// A required variable is not set.
    #[error("the tool needs the environment variable `{name}`, which is not set")]
    Unset {
        /// The variable.
        name: String,
    },
}

impl CommandLineError {
    /// Returns a hint for the author of the tool.
    pub fn hint(&self) -> String {
        match self {
            CommandLineError::Dash { .. } => {
                "if the program supports it, put `--` before the argument in `run`; to allow options, set `dashes: \"allow\"`"
                    .to_owned()
            }
            CommandLineError::Nul { .. } => "pass binary content on stdin".to_owned(),
            CommandLineError::Unset { name } => format!("set `{name}` in the environment, or in `.env`"),
        }
    }
}

impl CommandSpec {
    /// Fills in the templates. `variable` looks up an environment variable by its name.
    ///
    /// An element of `run` that is a single parameter becomes one argument for each item if the parameter is an array. An
    /// element or a variable is omitted as a whole if it contains a parameter that was omitted, so that
    /// `--limit={limit}` appears only if there is a limit.
    pub fn invocation(
        &self,
        arguments: &Map<String, Json>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<CommandLine, CommandLineError> {
        let mut filler = TemplateFiller { arguments, variable, secrets: Vec::new() };
        let mut filled = Vec::with_capacity(self.run.len());
        let mut after_separator = self.dashes == DashPolicy::Allow;
        for element in &self.run {
            filler.element(element, after_separator, &mut filled)?;
            after_separator |= matches!(element.parts(), [Part::Text(text)] if text == "--");
        }
        let mut env = Vec::new();
        for (name, value) in &self.env {
            let value = match value {
                EnvValue::Inherited => variable(name).inspect(|value| {
                    if !INHERITED_VARIABLES.contains(&name.as_str()) {
                        filler.secrets.push(value.clone());
                    }
                }),
                EnvValue::Text(template) => filler.fill_complete(template)?,
            };
            let Some(value) = value else { continue };
            refuse_nul(name, &value)?;
            env.push((name.clone(), value));
        }
        let stdin = self.stdin.as_ref().map(|template| filler.fill(template)).transpose()?;
        let mut filled = filled.into_iter();
        let program = filled.next().unwrap_or_default();
        Ok(CommandLine { program, arguments: filled.collect(), stdin, env, secrets: filler.secrets })
    }

    /// Returns the message for the model about an exit code, if one is declared.
    pub fn error_message(&self, code: u8, arguments: &Map<String, Json>) -> Option<String> {
        let template = self.errors.get(&code)?;
        TemplateFiller { arguments, variable: &|_| None, secrets: Vec::new() }.fill(template).ok()
    }
}

/// Hides the contents, which may include secrets, from logs.
impl fmt::Debug for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandLine").field("arguments", &self.arguments.len()).finish_non_exhaustive()
    }
}

struct TemplateFiller<'a> {
    arguments: &'a Map<String, Json>,
    variable: &'a dyn Fn(&str) -> Option<String>,
    secrets: Vec<String>,
}

impl TemplateFiller<'_> {
    /// Adds the arguments for an element of `run`.
    fn element(
        &mut self,
        element: &Template,
        after_separator: bool,
        filled: &mut Vec<String>,
    ) -> Result<(), CommandLineError> {
        let refuse_dash = |text: &str, parameter: Option<&str>| match parameter {
            Some(parameter) if !after_separator && text.starts_with('-') => {
                Err(CommandLineError::Dash { parameter: parameter.to_owned() })
            }
            _ => Ok(()),
        };
        if let Some((name, Some(Json::Array(items)))) =
            element.sole_parameter().map(|name| (name, self.arguments.get(name)))
        {
            for item in items {
                let text = match item {
                    Json::Null => continue,
                    Json::String(text) => text.clone(),
                    other => other.to_string(),
                };
                refuse_nul(name, &text)?;
                refuse_dash(&text, Some(name))?;
                filled.push(text);
            }
            return Ok(());
        }
        if let Some(text) = self.fill_complete(element)? {
            refuse_dash(&text, self.leading_parameter(element))?;
            filled.push(text);
        }
        Ok(())
    }

    /// Returns the parameter that a text starts with, so that the model decides about its first character.
    fn leading_parameter<'t>(&self, template: &'t Template) -> Option<&'t str> {
        for part in template.parts() {
            match part {
                Part::Text(_) => return None,
                Part::Parameter(name) => return Some(name),
                Part::Variable(name) if (self.variable)(name).is_some_and(|value| !value.is_empty()) => return None,
                Part::Variable(_) => {}
            }
        }
        None
    }

    /// Fills in an argument or a variable, or returns `None` if it contains a parameter that was omitted.
    fn fill_complete(&mut self, template: &Template) -> Result<Option<String>, CommandLineError> {
        for name in template.parameters() {
            match argument_text(self.arguments, name) {
                Some(text) => refuse_nul(name, &text)?,
                None => return Ok(None),
            }
        }
        self.fill(template).map(Some)
    }

    /// Fills in a text. Parameters that were omitted become empty.
    fn fill(&mut self, template: &Template) -> Result<String, CommandLineError> {
        let mut text = String::new();
        for part in template.parts() {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Parameter(name) => {
                    text.push_str(&argument_text(self.arguments, name).unwrap_or(Cow::Borrowed("")));
                }
                Part::Variable(name) => {
                    let value = (self.variable)(name).ok_or_else(|| CommandLineError::Unset { name: name.clone() })?;
                    text.push_str(&value);
                    self.secrets.push(value);
                }
            }
        }
        Ok(text)
    }
}

fn refuse_nul(name: &str, text: &str) -> Result<(), CommandLineError> {
    if text.contains('\0') { Err(CommandLineError::Nul { name: name.to_owned() }) } else { Ok(()) }
}
