//! Tools that are commands of this machine: `[name:Command {run: […]} | signature]`.

mod invocation;
mod property;
mod read;

pub use invocation::{ALWAYS_PASSED, Invocation, InvocationError};
pub(crate) use read::read;

use super::Conduct;
use crate::declare::template::Template;
use crate::types::signature::Signature;
use indexmap::IndexMap;
use patter_gram::{Diagnostic, Pattern};

/// How many bytes a command may write to stdout where nothing else is said.
pub const DEFAULT_MAX_BYTES: usize = 1024 * 1024;

/// What a command tool runs, and how its arguments and its output are read.
///
/// There is no shell: each element of `run` is one argument, whatever the model puts into it.
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
    /// The program and its arguments. There is a program, and it has no parameters.
    pub run: Vec<Template>,
    /// What is written to stdin; nothing where there is none.
    pub stdin: Option<Template>,
    /// The variables that the command gets beyond the usual ones, in order.
    pub env: IndexMap<String, EnvValue>,
    /// The folder to run in, relative to the root of the project.
    pub cwd: Option<String>,
    /// What of the run is the result.
    pub result: CommandResult,
    /// What the model is told for an exit code. Such a code is a failure.
    pub errors: IndexMap<u8, Template>,
    /// The exit codes that are no failure.
    pub succeeds: Succeeds,
    /// How many bytes it may write to stdout.
    pub max_bytes: usize,
    /// What to do with an argument that looks like an option.
    pub dashes: Dashes,
    /// What all tools with an implementation may say of their calls.
    pub conduct: Conduct,
}

/// What a variable of a command holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvValue {
    /// What it holds for us, if it is set.
    Passed,
    /// A text.
    Text(Template),
}

/// What of a run is the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandResult {
    /// What it wrote to stdout, without one newline at the end.
    Text,
    /// What it wrote to stdout, as JSON.
    Json,
    /// The exit code.
    Exit,
}

/// The exit codes that are no failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Succeeds {
    /// All of them: the code is the result.
    Always,
    /// Some.
    With(Vec<u8>),
}

/// What to do with an argument that begins with what the model gave, and with a dash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dashes {
    /// Refuse it, unless `--` stands before it: the program could take it for an option.
    Refuse,
    /// Pass it on.
    Allow,
}

impl CommandSpec {
    /// Reads what a pattern says.
    pub fn read(pattern: Pattern<'_>, signature: &Signature) -> Result<Self, Vec<Diagnostic>> {
        let (spec, mut diagnostics) = read(pattern, Some(signature));
        diagnostics.retain(Diagnostic::is_error);
        if diagnostics.is_empty() { Ok(spec) } else { Err(diagnostics) }
    }
}

impl Succeeds {
    /// Tells whether an exit code is no failure.
    pub fn contains(&self, code: u8) -> bool {
        match self {
            Succeeds::Always => true,
            Succeeds::With(codes) => codes.contains(&code),
        }
    }
}
