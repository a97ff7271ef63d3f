//! Ids of calls, called agents and interrupts. They are made of what they identify, so that nothing has to remember them.

use crate::serve::Waiting;
use crate::session::RunPath;

/// Returns the id of a call in a run. It is that of the run too, if the call is one of an agent.
///
/// ```
/// use patter_core::serve::ag_ui::call_id;
/// assert_eq!(call_id(&vec![], "c1"), "c1");
/// assert_eq!(call_id(&vec!["c1".into()], "c2"), "c1/c2");
/// ```
pub fn call_id(run: &RunPath, call: &str) -> String {
    run.iter().map(String::as_str).chain([call]).collect::<Vec<_>>().join("/")
}

/// Returns the id of the interrupt in which a call waits for approval. It is about exactly this call, with these arguments.
pub fn interrupt_id(call: &Waiting) -> String {
    format!("{}@{}", call_id(&call.run, &call.call_id), call.hash)
}
