//! Limits that the system sets on the program.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::num::NonZeroU32;

/// The number of open files to ask for. More could slow down tools, which inherit it and may look at each.
const WANTED_FILES: u64 = 65_536;
/// The open files that are not part of a run.
const RESERVED_FILES: u64 = 64;
/// The open files of a run: connections to a model, and pipes to a program.
const FILES_PER_RUN: u64 = 4;

/// Raises the limit of open files as far as the system allows. By default it is low, so that programs that cannot deal with
/// many files keep working.
pub(crate) fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(WANTED_FILES, |maximum| maximum.min(WANTED_FILES));
    if current.is_some_and(|current| current < wanted) {
        // Without it, fewer runs are possible at once.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

/// Returns how many runs are possible at once with the open files that the system allows, and how many files that is.
pub(crate) fn max_runs() -> Option<(NonZeroU32, u64)> {
    let files = getrlimit(Resource::Nofile).current?;
    let runs = u32::try_from(files.saturating_sub(RESERVED_FILES) / FILES_PER_RUN).unwrap_or(u32::MAX);
    Some((NonZeroU32::new(runs).unwrap_or(NonZeroU32::MIN), files))
}
