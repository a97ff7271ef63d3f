//! What the benchmark runs beside Patter: a mock provider (`examples/mock.rs`) and the floor (`examples/floor.rs`).

pub mod harness;
pub mod hello;
