//! Experiments: cases run under one or more arms, checked, saved and compared.
//!
//! A [`Plan`] lists the trials in a random order drawn from a seed. A [`Series`] runs them, several at a time, and
//! [`StoredTrials`] saves each one when it ends, so that an interrupted experiment can resume. The result is a [`Report`].

mod recordings;
mod setup;
mod arm;
mod judge;
mod command_check;
mod stored;
mod series;

pub use arm::Arm;
pub use command_check::CommandChecks;
pub use judge::{Judge, JudgeError};
pub use patter_core::experiment::*;
pub use recordings::{ReplySource, hash_recordings, recorded_replies};
pub use series::{Series, SeriesEnd, SeriesProgress, Throttle};
pub use stored::{NewTrials, StoredTrials, StoredTrialsError};
