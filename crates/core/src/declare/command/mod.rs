//! Declarations of tools that are local commands: `[name:Command {run: […]} | signature]`.

mod property;
mod read;
mod invocation;

pub use invocation::{CommandLine, CommandLineError, INHERITED_VARIABLES};
pub(crate) use read::read;

use super::ToolOptions;
use super::sandbox::Sandbox;
use crate::declare::template::Template;
use crate::types::signature::Signature;
use indexmap::IndexMap;
use patter_gram::{Diagnostic, Pattern};

/// The default maximum number of bytes that a command may write to stdout.
pub const DEFAULT_MAX_BYTES: usize = 1024 * 1024;

/// The template of a command, and how to turn its output into a result.
///
/// No shell is involved: each element of `run` is one argument, regardless of what the model puts into it.
///
/// ```
/// use patter_core::declare::CommandSpec;
/// use patter_core::{gram::parse, types::signature::Signature};
/// use serde_json::json;
/// let (tree, _) = parse("[count:Command {run: ['wc', '-w', '--', '{files}']} | (files::Array {elementType: 'Text'})==>(::Text)]");
/// let pattern = tree.patterns().next().unwrap();
/// let signature = Signature::parse("(files::Array {elementType: 'Text'})==>(::Text)").unwrap();
/// let spec = CommandSpec::read(pattern, &signature).unwrap();
/// let arguments = json!({"files": ["a.txt", "b c.txt"]});
/// let invocation = spec.invocation(arguments.as_object().unwrap(), &|_| None).unwrap();
/// assert_eq!(invocation.arguments, ["-w", "--", "a.txt", "b c.txt"]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CommandSpec {
    /// The program and its arguments. There is always a program, and it contains no parameters.
    pub run: Vec<Template>,
    /// The text to write to stdin, if any.
    pub stdin: Option<Template>,
    /// The environment variables of the command beyond [`INHERITED_VARIABLES`], in order.
    pub env: IndexMap<String, EnvValue>,
    /// The working folder, relative to the root of the project.
    pub cwd: Option<String>,
    /// The part of the output that is the result.
    pub result: CommandResult,
    /// The messages for the model, by exit code. These codes are failures.
    pub errors: IndexMap<u8, Template>,
    /// The exit codes that mean success.
    pub success_codes: SuccessCodes,
    /// The maximum number of bytes that it may write to stdout.
    pub max_bytes: usize,
    /// What to do with arguments that look like options.
    pub dashes: DashPolicy,
    /// What the command may do. The project decides about a command that declares nothing.
    pub sandbox: Option<Sandbox>,
    /// The options that all implementations have in common.
    pub options: ToolOptions,
}

/// The value of an environment variable of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvValue {
    /// The value in the current environment, if it is set.
    Inherited,
    /// The value of a template.
    Text(Template),
}

/// The part of the output that is the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandResult {
    /// The text on stdout, without one trailing newline.
    Text,
    /// The JSON value on stdout.
    Json,
    /// The exit code.
    Exit,
}

/// The exit codes that mean success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SuccessCodes {
    /// All of them, because the code is the result.
    Any,
    /// These.
    Listed(Vec<u8>),
}

/// What to do with an argument that starts with a dash chosen by the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DashPolicy {
    /// Refuse it unless it comes after `--`, because the program could treat it as an option.
    Refuse,
    /// Pass it to the program.
    Allow,
}

impl CommandSpec {
    /// Reads a declaration, or returns everything that is wrong with it.
    pub fn read(pattern: Pattern<'_>, signature: &Signature) -> Result<Self, Vec<Diagnostic>> {
        let (spec, mut diagnostics) = read(pattern, Some(signature));
        diagnostics.retain(Diagnostic::is_error);
        if diagnostics.is_empty() { Ok(spec) } else { Err(diagnostics) }
    }

    /// Returns the names of the environment variables that the command receives, in order.
    pub fn variables(&self) -> Vec<&str> {
        let words = self.run.iter().chain(&self.stdin).flat_map(Template::variables);
        let env = self.env.iter().flat_map(|(name, value)| match value {
            EnvValue::Inherited => vec![name.as_str()],
            EnvValue::Text(template) => template.variables().collect(),
        });
        words.chain(env).collect()
    }
}

impl SuccessCodes {
    /// Returns whether an exit code means success.
    pub fn contains(&self, code: u8) -> bool {
        match self {
            SuccessCodes::Any => true,
            SuccessCodes::Listed(codes) => codes.contains(&code),
        }
    }
}
