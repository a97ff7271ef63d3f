//! What tools accept and return: types, their JSON Schemas, and how the two compare.
//!
//! [`signature`] is the type of a tool as its declaration writes it; [`schema`] derives JSON Schemas from it;
//! [`compatible`] decides whether one tool can serve another's declaration; [`dialect`] adapts schemas to what each
//! provider accepts; [`definition`] is a tool apart from its implementation.

pub mod signature;
pub mod schema;
pub(crate) mod keyword;
pub mod definition;
pub mod compatible;
pub mod dialect;
