//! Requests for permission, and their outcomes.

use super::tool::ToolKinds;
use super::update::permission_call;
use crate::serve::Waiting;
use serde_json::{Value as Json, json};

const ALLOW: &str = "allow";
const REJECT: &str = "reject";

/// What the user decided about a call.
///
/// ```
/// use patter_core::serve::acp::PermissionOutcome;
/// use serde_json::json;
/// let read = |outcome| PermissionOutcome::read(&json!({ "outcome": outcome }));
/// assert_eq!(read(json!({"outcome": "selected", "optionId": "allow"})), Some(PermissionOutcome::Allowed));
/// assert_eq!(read(json!({"outcome": "cancelled"})), Some(PermissionOutcome::Cancelled));
/// assert_eq!(read(json!({"outcome": "selected", "optionId": "yes"})), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionOutcome {
    /// The call may be made, this time.
    Allowed,
    /// The call may not be made, this time.
    Rejected,
    /// The turn was cancelled.
    Cancelled,
}

impl PermissionOutcome {
    /// Reads the result of a request. Returns `None` if it is none of the offered options: nothing is then permitted.
    pub fn read(result: &Json) -> Option<Self> {
        let outcome = result.get("outcome")?;
        let text = |name: &str| outcome.get(name).and_then(Json::as_str);
        match (text("outcome")?, text("optionId")) {
            ("cancelled", _) => Some(Self::Cancelled),
            ("selected", Some(ALLOW)) => Some(Self::Allowed),
            ("selected", Some(REJECT)) => Some(Self::Rejected),
            _ => None,
        }
    }
}

/// Returns the parameters of a request for permission. The user decides about this one call: agents have no permissions that
/// grow while they run.
pub fn permission_params(session: &str, call: &Waiting, kinds: ToolKinds<'_>) -> Json {
    json!({
        "sessionId": session,
        "toolCall": permission_call(call, kinds),
        "options": [
            {"optionId": ALLOW, "name": "Allow once", "kind": "allow_once"},
            {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
        ],
    })
}
