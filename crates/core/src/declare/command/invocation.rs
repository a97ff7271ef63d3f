//! What a call of a command tool runs: the templates, filled in.

use super::{CommandSpec, Dashes, EnvValue};
use crate::declare::template::{Part, Template, argument_text};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::fmt;
use thiserror::Error;

/// The variables that every command gets, where they are set. No other is passed on unless the tool names it, and what
/// others hold is secret.
pub const ALWAYS_PASSED: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// What one call runs.
#[derive(Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What is written to stdin, if anything.
    pub stdin: Option<String>,
    /// The variables that it gets beyond the usual ones.
    pub env: Vec<(String, String)>,
    /// What nobody may read in messages and results: what variables of the environment hold.
    pub secrets: Vec<String>,
}

/// Why a call cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvocationError {
    /// An argument looks like an option.
    #[error("`{parameter}` would be read as an option, since it makes an argument begin with `-`")]
    Dash {
        /// The parameter.
        parameter: String,
    },
    /// An argument or a variable holds a NUL.
    #[error("`{name}` holds a NUL byte, which no argument of a command can have")]
    Nul {
        /// The parameter or the variable.
        name: String,
    },
    /// A variable is needed, and not set.
    #[error("the variable `{name}` is not set, and the tool needs it")]
    Unset {
        /// The variable.
        name: String,
    },
}

impl InvocationError {
    /// Returns what whoever wrote the tool can do about it.
    pub fn hint(&self) -> String {
        match self {
            InvocationError::Dash { .. } => {
                "if the program knows it, put `--` before the argument in `run`; if options are meant, say `dashes: \"allow\"`"
                    .to_owned()
            }
            InvocationError::Nul { .. } => "pass binary content on stdin".to_owned(),
            InvocationError::Unset { name } => format!("set `{name}` in the environment, or in `.env`"),
        }
    }
}

impl CommandSpec {
    /// Fills in the templates. A variable of the environment is looked up by its name.
    ///
    /// An element of `run` that is one parameter alone becomes as many arguments as its array has items. An element, or
    /// a variable, with a parameter that is left out is left out as a whole, so that `--limit={limit}` is there only
    /// with a limit.
    pub fn invocation(
        &self,
        arguments: &Map<String, Json>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Invocation, InvocationError> {
        let mut filling = Filling { arguments, variable, secrets: Vec::new() };
        let mut filled = Vec::with_capacity(self.run.len());
        let mut are_options_over = self.dashes == Dashes::Allow;
        for element in &self.run {
            filling.element(element, are_options_over, &mut filled)?;
            are_options_over |= matches!(element.parts(), [Part::Text(text)] if text == "--");
        }
        let mut env = Vec::new();
        for (name, value) in &self.env {
            let value = match value {
                EnvValue::Passed => variable(name).inspect(|value| {
                    if !ALWAYS_PASSED.contains(&name.as_str()) {
                        filling.secrets.push(value.clone());
                    }
                }),
                EnvValue::Text(template) => filling.complete(template)?,
            };
            let Some(value) = value else { continue };
            refuse_nul(name, &value)?;
            env.push((name.clone(), value));
        }
        let stdin = self.stdin.as_ref().map(|template| filling.text(template)).transpose()?;
        let mut filled = filled.into_iter();
        let program = filled.next().unwrap_or_default();
        Ok(Invocation { program, arguments: filled.collect(), stdin, env, secrets: filling.secrets })
    }

    /// Returns what the model is told for an exit code, if anything is said of it.
    pub fn error(&self, code: u8, arguments: &Map<String, Json>) -> Option<String> {
        let template = self.errors.get(&code)?;
        Filling { arguments, variable: &|_| None, secrets: Vec::new() }.text(template).ok()
    }
}

/// Secrets may be in any of it, and stay out of what is logged.
impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation").field("arguments", &self.arguments.len()).finish_non_exhaustive()
    }
}

struct Filling<'a> {
    arguments: &'a Map<String, Json>,
    variable: &'a dyn Fn(&str) -> Option<String>,
    secrets: Vec<String>,
}

impl Filling<'_> {
    /// Adds the arguments that an element of `run` stands for.
    fn element(
        &mut self,
        element: &Template,
        are_options_over: bool,
        filled: &mut Vec<String>,
    ) -> Result<(), InvocationError> {
        let refuse_dash = |text: &str, parameter: Option<&str>| match parameter {
            Some(parameter) if !are_options_over && text.starts_with('-') => {
                Err(InvocationError::Dash { parameter: parameter.to_owned() })
            }
            _ => Ok(()),
        };
        if let Some((name, Some(Json::Array(items)))) =
            element.whole_parameter().map(|name| (name, self.arguments.get(name)))
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
        if let Some(text) = self.complete(element)? {
            refuse_dash(&text, self.leading_parameter(element))?;
            filled.push(text);
        }
        Ok(())
    }

    /// Returns the parameter that a text begins with: the model decides how it begins.
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

    /// Fills in an argument or a variable, unless a parameter of it is left out.
    fn complete(&mut self, template: &Template) -> Result<Option<String>, InvocationError> {
        for name in template.parameters() {
            match argument_text(self.arguments, name) {
                Some(text) => refuse_nul(name, &text)?,
                None => return Ok(None),
            }
        }
        self.text(template).map(Some)
    }

    /// Fills in a text. A parameter that is left out is nothing.
    fn text(&mut self, template: &Template) -> Result<String, InvocationError> {
        let mut text = String::new();
        for part in template.parts() {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Parameter(name) => {
                    text.push_str(&argument_text(self.arguments, name).unwrap_or(Cow::Borrowed("")));
                }
                Part::Variable(name) => {
                    let value = (self.variable)(name).ok_or_else(|| InvocationError::Unset { name: name.clone() })?;
                    text.push_str(&value);
                    self.secrets.push(value);
                }
            }
        }
        Ok(text)
    }
}

fn refuse_nul(name: &str, text: &str) -> Result<(), InvocationError> {
    if text.contains('\0') { Err(InvocationError::Nul { name: name.to_owned() }) } else { Ok(()) }
}
