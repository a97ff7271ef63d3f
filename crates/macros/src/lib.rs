//! Macros of Patter, beside the crate `patter`, which re-exports them. There are none yet.
