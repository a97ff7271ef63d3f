//! Integration tests of the notation, in one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    reason = "tests"
)]

// Examples.
mod cases;
mod edits;
mod layout;
mod mistakes;

// Agreement with other gram tools.
mod corpus;
mod oracle;

// Properties of any input.
mod hostile;
mod invariants;
mod properties;

mod generate;
