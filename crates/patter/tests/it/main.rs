//! The tests of what the crate does, against real servers, processes and files.
mod command;
