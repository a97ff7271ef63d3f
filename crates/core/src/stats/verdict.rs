//! Verdicts on metrics, as data and in words.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Display};

/// The verdict on one metric of an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricVerdict {
    /// The conclusion.
    #[serde(rename = "finding")]
    pub conclusion: Conclusion,
    /// Whether the difference is large enough to matter.
    #[serde(rename = "matters")]
    pub relevance: Relevance,
    /// The verdict in words, including the notes, without a full stop.
    #[serde(rename = "words")]
    pub text: String,
    /// The claim about the arm, such as "is slower by 12–17%"; `None` if no difference was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<String>,
    /// Caveats about the pairs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<VerdictNote>,
}

/// The conclusion about one metric of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// The arm is better.
    Better,
    /// The arm is worse.
    Worse,
    /// There is no evidence of a difference. That does not mean that there is none.
    Unclear,
    /// There are no pairs.
    Unmeasured,
}

/// Whether a difference is as large as the margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relevance {
    /// The whole interval is within the margin: the arms are practically equal.
    #[serde(rename = "no")]
    Negligible,
    /// The whole interval is beyond the margin.
    #[serde(rename = "yes")]
    Relevant,
    /// The data are inconclusive.
    Unknown,
}

/// A caveat about the pairs behind a verdict. Its `Display` is a sentence without a full stop.
///
/// ```
/// use patter_core::stats::VerdictNote;
/// let note = VerdictNote::MissingValues { pairs: 2 };
/// assert_eq!(note.to_string(), "2 pairs with missing values are left out");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum VerdictNote {
    /// Pairs were left out because at least one value is missing.
    MissingValues {
        /// The number of pairs.
        pairs: usize,
    },
}

impl Display for VerdictNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VerdictNote::MissingValues { pairs: 1 } => f.write_str("1 pair with a missing value is left out"),
            VerdictNote::MissingValues { pairs } => write!(f, "{pairs} pairs with missing values are left out"),
        }
    }
}
