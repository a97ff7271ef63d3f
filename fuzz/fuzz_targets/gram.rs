//! Any bytes: parsing never panics, printing reproduces them, formatting preserves meaning and comments.
//!
//! Run with `cargo fuzz run gram`. The regular tests check the same invariants on a bounded number of inputs
//! (`crates/gram/tests/it/invariants.rs`, which this file includes).
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/gram/tests/it/invariants.rs"]
mod invariants;

fuzz_target!(|bytes: &[u8]| invariants::check_invariants(bytes));
