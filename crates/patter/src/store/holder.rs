//! The holder of claims, as others see it.

/// Names this process, which holds its claims.
pub(super) fn holder() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("process {} on {host}", std::process::id())
}
