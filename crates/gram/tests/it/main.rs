//! Tests of the notation from outside, in one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    reason = "tests"
)]

mod cases;
mod corpus;
mod edits;
mod generate;
mod hostile;
mod layout;
mod mistakes;
mod oracle;
mod promises;
mod properties;
