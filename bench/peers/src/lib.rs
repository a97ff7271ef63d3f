//! What the benchmark runs beside Patter: a mock provider (`examples/mock.rs`), the floor (`examples/floor.rs`), and the
//! floor of a server (`examples/floor_server.rs`).

pub mod floor;
pub mod harness;
pub mod hello;
