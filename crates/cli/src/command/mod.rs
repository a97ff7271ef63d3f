//! One file for each verb.

pub(crate) mod check;
pub(crate) mod fmt;
pub(crate) mod parse;
pub(crate) mod schema;
pub(crate) mod show;
