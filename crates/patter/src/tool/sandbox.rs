//! What the processes of tools may do.

pub use super::process::SandboxSupport;
pub use patter_core::declare::sandbox::{Sandbox, SandboxLevel};

/// The sandboxes of a project.
///
/// ```
/// use patter::tool::sandbox::{Sandbox, SandboxPolicy};
/// let policy = SandboxPolicy { default: Sandbox::strict(), ..SandboxPolicy::default() };
/// assert_eq!(policy.sandbox(None), Sandbox::strict());
/// assert_eq!(policy.sandbox(Some(&Sandbox::default())), Sandbox::default());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxPolicy {
    /// The sandbox of commands and MCP servers that declare none.
    pub default: Sandbox,
    /// Whether a process is not started if the system cannot enforce its sandbox.
    pub required: bool,
}

impl SandboxPolicy {
    /// Returns the sandbox of a process, given what it declares.
    pub fn sandbox(&self, declared: Option<&Sandbox>) -> Sandbox {
        declared.unwrap_or(&self.default).clone()
    }

    /// Returns a warning about what the system does not enforce of a sandbox, or an error if the process must not be
    /// started.
    pub(super) fn check(&self, sandbox: &Sandbox) -> Result<Option<String>, String> {
        if sandbox.is_none() { Ok(None) } else { self.judge(SandboxSupport::detect()) }
    }

    fn judge(&self, support: SandboxSupport) -> Result<Option<String>, String> {
        match support.gap() {
            None => Ok(None),
            Some(gap) if self.required => {
                Err(format!("this system cannot enforce the sandbox: it does not restrict {gap}"))
            }
            Some(gap) => Ok(Some(format!("this system does not enforce the sandbox: it does not restrict {gap}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_or_refuses_where_a_sandbox_is_not_enforced() {
        let lacking = SandboxSupport::default();
        let mut policy = SandboxPolicy::default();
        let warning = policy.judge(lacking).unwrap().unwrap();
        assert_eq!(
            warning,
            "this system does not enforce the sandbox: it does not restrict files, the network and other processes"
        );
        policy.required = true;
        assert!(policy.judge(lacking).is_err());
        assert_eq!(policy.check(&Sandbox::default()), Ok(None));
    }
}
