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

mod corpus;
mod generate;
mod hostile;
mod mistakes;
mod oracle;
mod properties;
