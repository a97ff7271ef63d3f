//! Whether a tool can implement a declaration.
//!
//! The tool must accept every argument that the declaration allows, and return only results that the declaration
//! allows. Types are compared by the values they allow: a subtype can be used wherever its supertype is expected.

mod describe;
mod subtype;
mod contract;
mod fit;

pub use contract::{Contract, ContractDifference, check_exact};
pub use fit::{MAX_WANTED, WantedSignature};

use crate::types::signature::{PathStep, Records, Signature, Type};
use std::fmt;
use subtype::{DefaultHandling, Discrepancy, DiscrepancyKind, SubtypeCheck, UnlistedFields};

/// A reason why a tool cannot implement a declaration.
///
/// ```
/// use patter_core::{types::compatibility::check_compatible, types::signature::{Records, Signature}};
/// let records = Records::default();
/// let declared = Signature::parse("(age::Int)==>(::Text)").unwrap();
/// let tool = Signature::parse("(age::Text)==>(::Text)").unwrap();
/// let reasons = check_compatible((&declared, &records), (&tool, &records)).unwrap_err();
/// assert_eq!(reasons[0].to_string(), "`age` is declared as Int, but the tool accepts Text");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incompatibility {
    /// Whether the arguments or the result are incompatible.
    pub side: Side,
    /// The path to the incompatible part, from the outside in. The items of an array have the index 0.
    pub path: Vec<PathStep>,
    /// Why the part is incompatible.
    pub reason: IncompatibilityReason,
}

/// A side of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The arguments of the tool.
    Arguments,
    /// The result of the tool.
    Result,
}

/// Why a part of a signature is incompatible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IncompatibilityReason {
    /// The types are incompatible.
    Type {
        /// A description of the declared type.
        declared: String,
        /// A description of the type that the tool accepts or returns.
        tool: String,
    },
    /// One side requires the part, and the other side does not have it.
    Missing,
    /// One side requires the part, and the other side may omit it.
    Optional,
    /// One side does not mention the part, so it may be anything, and the other side expects a type.
    Unknown {
        /// A description of the expected type.
        expected: String,
    },
    /// The declaration has a parameter, or a field of one, that the tool does not have, so its value would be lost.
    Unaccepted {
        /// The parameters or fields that the tool has.
        accepted: Vec<String>,
    },
}

impl fmt::Display for Incompatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.format_path();
        let part = match (self.side, path.is_empty()) {
            (Side::Arguments, true) => "the input".to_owned(),
            (Side::Arguments, false) => format!("`{path}`"),
            (Side::Result, true) => "the result".to_owned(),
            (Side::Result, false) => format!("`{path}` in the result"),
        };
        match (&self.reason, self.side) {
            (IncompatibilityReason::Type { declared, tool }, Side::Arguments) => {
                write!(f, "{part} is declared as {declared}, but the tool accepts {tool}")
            }
            (IncompatibilityReason::Type { declared, tool }, Side::Result) => {
                write!(f, "{part} is declared as {declared}, but the tool returns {tool}")
            }
            (IncompatibilityReason::Missing, Side::Arguments) => {
                write!(f, "the tool requires {part}, which is not declared")
            }
            (IncompatibilityReason::Missing, Side::Result) => {
                write!(f, "{part} is declared, but the tool does not return it")
            }
            (IncompatibilityReason::Optional, Side::Arguments) => {
                write!(f, "the tool requires {part}, which is declared as optional")
            }
            (IncompatibilityReason::Optional, Side::Result) => {
                write!(f, "{part} is declared as required, but the tool may omit it")
            }
            (IncompatibilityReason::Unaccepted { accepted }, _) => {
                let names: Vec<_> = accepted.iter().map(|name| format!("`{name}`")).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                let noun = if self.path.len() > 1 { "field" } else { "parameter" };
                write!(f, "the tool does not have the declared {noun} {part} (it has {names})")
            }
            (IncompatibilityReason::Unknown { expected }, Side::Arguments) => {
                write!(f, "{part} is not declared and may be anything, but the tool accepts {expected}")
            }
            (IncompatibilityReason::Unknown { expected }, Side::Result) => {
                write!(f, "{part} is declared as {expected}, but the tool may return anything")
            }
        }
    }
}

impl std::error::Error for Incompatibility {}

impl Incompatibility {
    fn new(discrepancy: Discrepancy, side: Side) -> Self {
        let reason = match (discrepancy.kind, side) {
            (DiscrepancyKind::Type { sub, sup }, Side::Arguments) => {
                IncompatibilityReason::Type { declared: sub, tool: sup }
            }
            (DiscrepancyKind::Type { sub, sup }, Side::Result) => {
                IncompatibilityReason::Type { declared: sup, tool: sub }
            }
            (DiscrepancyKind::Missing, _) => IncompatibilityReason::Missing,
            (DiscrepancyKind::Optional, _) => IncompatibilityReason::Optional,
            (DiscrepancyKind::Unknown { sup }, _) => IncompatibilityReason::Unknown { expected: sup },
            (DiscrepancyKind::Unaccepted { accepted }, _) => IncompatibilityReason::Unaccepted { accepted },
        };
        Self { side, path: discrepancy.path, reason }
    }

    fn format_path(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                PathStep::Key(key) if path.is_empty() => path.push_str(key),
                PathStep::Key(key) => path.extend([".", key]),
                PathStep::Index(_) => path.push_str("[]"),
            }
        }
        path
    }
}

/// Checks whether a tool can implement a declaration, and returns all reasons if it cannot.
///
/// - A call has the declared parameters and no others, with the declared defaults filled in. The tool has all of them, or
///   an argument would be lost. It may accept wider types and further optional parameters.
/// - Inside parameters and results, objects are open: fields that one side does not mention may contain anything. But the
///   tool has all declared fields of a parameter, or their values would be lost too, unless it lists none.
/// - Formats are ignored, because they are not enforced. Patterns and schemas are compatible only if they are equal.
///
/// ```
/// use patter_core::{types::compatibility::check_compatible, types::signature::{Records, Signature}};
/// let records = Records::default();
/// let is_compatible = |declared: &str, tool: &str| {
///     let declared = Signature::parse(declared).unwrap();
///     let tool = Signature::parse(tool).unwrap();
///     check_compatible((&declared, &records), (&tool, &records)).is_ok()
/// };
/// assert!(is_compatible("(a::Int)==>(::Double)", "(a::Double)==>(unit::Text {default: \"km\"})==>(::Int)"));
/// assert!(!is_compatible("(a::Double)==>(::Double)", "(a::Int)==>(::Int)"));
/// ```
pub fn check_compatible(
    declared: (&Signature, &Records),
    tool: (&Signature, &Records),
) -> Result<(), Vec<Incompatibility>> {
    let mut arguments =
        SubtypeCheck::new(declared.1, tool.1, DefaultHandling::Apply).with_unlisted(UnlistedFields::Lost);
    arguments.parameters(&declared.0.parameters, &tool.0.parameters);
    let mut results = SubtypeCheck::new(tool.1, declared.1, DefaultHandling::Ignore);
    results.types(&tool.0.returns, &declared.0.returns);
    let arguments = arguments.discrepancies.into_iter().map(|found| Incompatibility::new(found, Side::Arguments));
    let results = results.discrepancies.into_iter().map(|found| Incompatibility::new(found, Side::Result));
    let reasons: Vec<_> = arguments.chain(results).collect();
    if reasons.is_empty() { Ok(()) } else { Err(reasons) }
}

/// Returns whether every value of the type `sub` is also a value of the type `sup`. Each type comes with the record types
/// that it may refer to.
///
/// ```
/// use patter_core::{types::compatibility::is_subtype, types::signature::{Records, Shape, Type}};
/// let records = Records::default();
/// let int = Type::new(Shape::Integer);
/// let double = Type::new(Shape::Number);
/// assert!(is_subtype((&int, &records), (&double, &records)));
/// assert!(!is_subtype((&double, &records), (&int, &records)));
/// ```
pub fn is_subtype(sub: (&Type, &Records), sup: (&Type, &Records)) -> bool {
    let mut check = SubtypeCheck::new(sub.1, sup.1, DefaultHandling::Ignore);
    check.types(sub.0, sup.0);
    check.discrepancies.is_empty()
}

/// Returns whether a later version of the type of an argument accepts everything that callers of an earlier version send.
/// They send the fields that they know and no others, and none of them may be lost.
pub fn accepts_earlier(earlier: (&Type, &Records), later: (&Type, &Records)) -> bool {
    is_subtype_assuming(UnlistedFields::Rejected, earlier, later)
}

/// Returns whether a later version of the type of a result keeps what an earlier version promised. It has the fields that
/// it lists, of which callers ignore those that they do not know.
pub fn keeps_promise(earlier: (&Type, &Records), later: (&Type, &Records)) -> bool {
    is_subtype_assuming(UnlistedFields::Missing, later, earlier)
}

fn is_subtype_assuming(unlisted: UnlistedFields, sub: (&Type, &Records), sup: (&Type, &Records)) -> bool {
    let mut check = SubtypeCheck::new(sub.1, sup.1, DefaultHandling::Ignore).with_unlisted(unlisted);
    check.types(sub.0, sup.0);
    check.discrepancies.is_empty()
}
