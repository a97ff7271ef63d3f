//! The standard library: tools that every project has.

pub mod fs;
