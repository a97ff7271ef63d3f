//! One file for each verb.

pub(crate) mod fmt;
pub(crate) mod parse;
