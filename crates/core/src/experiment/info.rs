//! What an experiment is about: its kind, arms, cases and judges.

use crate::run::Limits;
use serde::{Deserialize, Serialize};

/// The kind of an experiment.
///
/// ```
/// use patter_core::experiment::ReportKind;
/// assert_eq!(serde_json::to_string(&ReportKind::Ab).unwrap(), r#""ab""#);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportKind {
    /// One arm, checked against gates.
    Eval,
    /// Several arms, compared with one another.
    Ab,
}

/// A description of an arm.
///
/// ```
/// use patter_core::experiment::ArmInfo;
/// let arm = ArmInfo { name: "a".to_owned(), description: "unchanged".to_owned(), ..ArmInfo::default() };
/// assert!(arm.model.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ArmInfo {
    /// The name of the arm.
    pub name: String,
    /// The agent.
    pub agent: String,
    /// The hash of the agent's text.
    pub agent_hash: String,
    /// The hash of the bindings of the agent's tools.
    pub bindings_hash: String,
    /// The model.
    pub model: String,
    /// The limits of a run.
    #[serde(default)]
    pub limits: Limits,
    /// The hash of what else decides what the arm does: the agents that it calls, rules and approvals, the contents of
    /// scripts and recordings.
    #[serde(default)]
    pub setup_hash: String,
    /// The file of the agent.
    pub file: String,
    /// How the arm was specified.
    #[serde(rename = "what")]
    pub description: String,
}

/// A description of a case. Of its checks, it has only the hash.
///
/// ```
/// use patter_core::experiment::CaseInfo;
/// let json = r#"{"id": "greets", "turns": ["Hello!"], "tags": [], "hash": "5b7e"}"#;
/// assert_eq!(serde_json::from_str::<CaseInfo>(json).unwrap().id, "greets");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CaseInfo {
    /// The id of the case.
    pub id: String,
    /// The messages of the user.
    pub turns: Vec<String>,
    /// The tags of the case.
    pub tags: Vec<String>,
    /// The hash of the messages, the checks, and the judges and scripts that the checks use. Empty in reports of versions
    /// that did not record it.
    #[serde(default)]
    pub hash: String,
}

/// A description of an agent that judges answers.
///
/// ```
/// use patter_core::experiment::JudgeInfo;
/// assert!(JudgeInfo::default().instruction.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JudgeInfo {
    /// The name by which cases refer to the judge.
    pub name: String,
    /// The agent.
    pub agent: String,
    /// The hash of the agent's text.
    pub agent_hash: String,
    /// The model.
    pub model: String,
    /// The hash of what else decides what the judge does: its tools, the agents that it calls, and the contents of scripts.
    #[serde(default)]
    pub setup_hash: String,
    /// The instruction of the agent.
    pub instruction: String,
}
