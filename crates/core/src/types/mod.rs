//! The types of tools, their JSON Schemas, and how the two compare.
//!
//! [`signature`] is the type of a tool as declared; [`schema`] derives JSON Schemas from it; [`compatibility`] decides
//! whether a tool can implement a declaration; [`definition`] describes a tool without its implementation;
//! [`validator`] checks the arguments and results of a tool; [`dialect`] adapts schemas to the subset that each
//! provider supports.

pub(crate) mod keyword;
pub mod signature;
pub mod schema;
pub mod compatibility;
pub mod definition;
pub mod validator;
pub mod dialect;
