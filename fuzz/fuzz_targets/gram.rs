//! Any bytes: reading never fails, printing gives them back, formatting keeps meaning and comments.
//!
//! `cargo fuzz run gram`. The normal tests check the same on a bounded number of inputs
//! (`crates/gram/tests/it/promises.rs`, which this includes).
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/gram/tests/it/promises.rs"]
mod promises;

fuzz_target!(|bytes: &[u8]| promises::check_any(bytes));
