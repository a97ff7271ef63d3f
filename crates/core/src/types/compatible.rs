//! Whether a tool may serve a declaration.
//!
//! The tool must take every argument that the declaration can produce, and give no result that the declaration does
//! not promise. Types are compared by what they allow: a narrower one may stand where a wider one is expected.

mod contract;
mod describe;
mod narrower;

pub use contract::{Contract, Difference, exact};

use crate::types::signature::{Records, Signature, Step, Type};
use describe::described;
use narrower::{Defaults, Narrower};
use std::fmt;

/// A reason why a tool cannot serve a declaration.
///
/// ```
/// use patter_core::{types::compatible::compatible, types::signature::{Records, Signature}};
/// let records = Records::default();
/// let declared = Signature::parse("(age::Int)==>(::Text)").unwrap();
/// let tool = Signature::parse("(age::Text)==>(::Text)").unwrap();
/// let reasons = compatible((&declared, &records), (&tool, &records)).unwrap_err();
/// assert_eq!(reasons[0].to_string(), "`age` is declared Int, the tool takes Text");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incompatibility {
    /// Whether it is about the arguments or about the result.
    pub side: Side,
    /// The way to the place, from the outside in. Any item of an array is the item 0.
    pub path: Vec<Step>,
    /// What does not fit there.
    pub reason: Reason,
}

/// A side of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What goes to the tool.
    Arguments,
    /// What comes from the tool.
    Result,
}

/// What does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The types, described for people.
    Type {
        /// What is declared.
        declared: String,
        /// What the tool takes or gives.
        tool: String,
    },
    /// One side needs what the other does not have.
    Missing,
    /// One side needs what the other may leave out.
    Optional,
    /// One side says nothing about this place, so it may hold anything; the other side wants this type.
    Unknown {
        /// The type, described for people.
        wanted: String,
    },
}

impl fmt::Display for Incompatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.written_path();
        let place = match (self.side, path.is_empty()) {
            (Side::Arguments, true) => "the input".to_owned(),
            (Side::Arguments, false) => format!("`{path}`"),
            (Side::Result, true) => "the result".to_owned(),
            (Side::Result, false) => format!("`{path}` of the result"),
        };
        match (&self.reason, self.side) {
            (Reason::Type { declared, tool }, Side::Arguments) => {
                write!(f, "{place} is declared {declared}, the tool takes {tool}")
            }
            (Reason::Type { declared, tool }, Side::Result) => {
                write!(f, "{place} is declared {declared}, the tool returns {tool}")
            }
            (Reason::Missing, Side::Arguments) => write!(f, "the tool requires {place}, which is not declared"),
            (Reason::Missing, Side::Result) => write!(f, "{place} is declared, the tool does not return it"),
            (Reason::Optional, Side::Arguments) => write!(f, "the tool requires {place}, which may be left out"),
            (Reason::Optional, Side::Result) => write!(f, "{place} is declared, the tool may leave it out"),
            (Reason::Unknown { wanted }, Side::Arguments) => {
                write!(f, "{place} is not declared and may be anything, the tool takes {wanted}")
            }
            (Reason::Unknown { wanted }, Side::Result) => {
                write!(f, "{place} is declared {wanted}, the tool may return anything")
            }
        }
    }
}

impl std::error::Error for Incompatibility {}

impl Incompatibility {
    fn written_path(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Key(key) if path.is_empty() => path.push_str(key),
                Step::Key(key) => path.extend([".", key]),
                Step::Index(_) => path.push_str("[]"),
            }
        }
        path
    }
}

/// Tells whether a tool may serve a declaration, and if not, all the reasons.
///
/// - The declaration produces the parameters that it declares and no others, with its own defaults put in. The tool
///   may take more, if it does not require it, and wider types.
/// - Inside of parameters and results objects are open: what one side does not mention may hold anything.
/// - A format is never a reason, as it is not checked. Patterns and schemas are only known to fit if they are equal.
///
/// ```
/// use patter_core::{types::compatible::compatible, types::signature::{Records, Signature}};
/// let records = Records::default();
/// let fits = |declared: &str, tool: &str| {
///     let (declared, tool) = (Signature::parse(declared).unwrap(), Signature::parse(tool).unwrap());
///     compatible((&declared, &records), (&tool, &records)).is_ok()
/// };
/// assert!(fits("(a::Int)==>(::Double)", "(a::Double)==>(unit::Text {default: \"km\"})==>(::Int)"));
/// assert!(!fits("(a::Double)==>(::Double)", "(a::Int)==>(::Int)"));
/// ```
pub fn compatible(declared: (&Signature, &Records), tool: (&Signature, &Records)) -> Result<(), Vec<Incompatibility>> {
    let mut arguments = Narrower::new(declared.1, tool.1, Defaults::PutIn);
    arguments.parameters(&declared.0.parameters, &tool.0.parameters);
    let mut results = Narrower::new(tool.1, declared.1, Defaults::LeftOut);
    results.types(&tool.0.returns, &declared.0.returns);
    let arguments = arguments.misfits.into_iter().map(|misfit| misfit.at(Side::Arguments));
    let results = results.misfits.into_iter().map(|misfit| misfit.at(Side::Result));
    let reasons: Vec<_> = arguments.chain(results).collect();
    if reasons.is_empty() { Ok(()) } else { Err(reasons) }
}

/// Tells whether every value of a type is one of another, each with the record types that it may name.
///
/// ```
/// use patter_core::{types::compatible::is_narrower, types::signature::{Records, Shape, Type}};
/// let records = Records::default();
/// let (int, double) = (Type::new(Shape::Integer), Type::new(Shape::Number));
/// assert!(is_narrower((&int, &records), (&double, &records)));
/// assert!(!is_narrower((&double, &records), (&int, &records)));
/// ```
pub fn is_narrower(narrow: (&Type, &Records), wide: (&Type, &Records)) -> bool {
    let mut check = Narrower::new(narrow.1, wide.1, Defaults::LeftOut);
    check.types(narrow.0, wide.0);
    check.misfits.is_empty()
}

/// A place where one type is not narrower than the other.
struct Misfit {
    path: Vec<Step>,
    what: What,
}

enum What {
    Type { narrow: String, wide: String },
    Missing,
    Optional,
    Unknown { wide: String },
}

impl Misfit {
    fn at(self, side: Side) -> Incompatibility {
        let reason = match (self.what, side) {
            (What::Type { narrow, wide }, Side::Arguments) => Reason::Type { declared: narrow, tool: wide },
            (What::Type { narrow, wide }, Side::Result) => Reason::Type { declared: wide, tool: narrow },
            (What::Missing, _) => Reason::Missing,
            (What::Optional, _) => Reason::Optional,
            (What::Unknown { wide }, _) => Reason::Unknown { wanted: wide },
        };
        Incompatibility { side, path: self.path, reason }
    }

    fn types(path: Vec<Step>, narrow: &Type, wide: &Type) -> Self {
        Self { path, what: What::Type { narrow: described(narrow), wide: described(wide) } }
    }
}
