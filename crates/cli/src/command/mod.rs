//! One file for each verb.

pub(crate) mod ab;
pub(crate) mod call;
pub(crate) mod chat;
pub(crate) mod check;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod experiments;
pub(crate) mod explain;
pub(crate) mod fmt;
pub(crate) mod import;
pub(crate) mod lock;
pub(crate) mod new;
pub(crate) mod parse;
pub(crate) mod replay;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod sessions;
pub(crate) mod show;
pub(crate) mod tools;
pub(crate) mod why;
