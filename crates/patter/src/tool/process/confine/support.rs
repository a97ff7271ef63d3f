//! What the system can enforce.

use std::sync::OnceLock;

/// What this system can enforce of a sandbox.
///
/// ```
/// let support = patter::tool::sandbox::SandboxSupport::detect();
/// if let Some(gap) = support.gap() {
///     println!("a sandbox has no effect on {gap}");
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SandboxSupport {
    landlock: u32,
    seccomp: bool,
}

impl SandboxSupport {
    /// Asks the system, once.
    pub fn detect() -> Self {
        static SUPPORT: OnceLock<SandboxSupport> = OnceLock::new();
        *SUPPORT.get_or_init(Self::ask)
    }

    #[cfg(target_os = "linux")]
    fn ask() -> Self {
        // Only the thread loses rights.
        let landlock = std::thread::spawn(super::files::detect_version).join().unwrap_or(0);
        let seccomp = std::thread::spawn(super::calls::is_available).join().unwrap_or(false);
        Self { landlock, seccomp }
    }

    #[cfg(not(target_os = "linux"))]
    fn ask() -> Self {
        Self::default()
    }

    /// Returns the version of Landlock, which restricts access to files, or 0.
    pub fn landlock_version(self) -> u32 {
        self.landlock
    }

    /// Returns whether seccomp, which restricts system calls, is available.
    pub fn has_seccomp(self) -> bool {
        self.seccomp
    }

    /// Returns what a sandbox cannot restrict here, in words, or nothing if it restricts everything.
    pub fn gap(self) -> Option<&'static str> {
        match self {
            Self { landlock: 0, seccomp: false } => Some("files, the network and other processes"),
            Self { landlock: 0, seccomp: true } => Some("files"),
            Self { landlock: 1..3, seccomp: true } => Some("truncating files"),
            Self { landlock: 3.., seccomp: true } => None,
            Self { landlock: 1.., seccomp: false } => Some("UDP, local sockets and some system calls"),
        }
    }

    /// Describes what is available, for people.
    pub fn describe(self) -> String {
        let landlock = match self.landlock {
            0 => "without Landlock".to_owned(),
            version => format!("Landlock {version}"),
        };
        let seccomp = if self.seccomp { "seccomp" } else { "no seccomp" };
        format!("{landlock}, {seccomp}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_is_missing() {
        let gap = |landlock, seccomp| SandboxSupport { landlock, seccomp }.gap();
        assert_eq!(gap(0, false), Some("files, the network and other processes"));
        assert_eq!(gap(0, true), Some("files"));
        assert_eq!(gap(2, true), Some("truncating files"));
        assert_eq!(gap(3, true), None);
        assert_eq!(gap(7, false), Some("UDP, local sockets and some system calls"));
    }
}
