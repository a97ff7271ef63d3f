//! The HTTP client that all requests go through.
//!
//! Connections are reused, redirects are followed here, and private addresses are blocked unless a [`NetworkPolicy`]
//! allows them. The environment is read only through the function that the caller passes in.

mod client;
mod direct;
mod policy;
mod resolve;
pub(crate) mod tls;
mod request;
mod redirect;
mod response;
mod charset;
mod backoff;
mod problem;
mod error;

pub use bytes::Bytes;
pub use client::HttpClient;
pub use error::HttpError;
pub use policy::{AllowListError, NetworkPolicy};
pub use problem::ConnectionProblem;
pub use request::HttpRequest;
pub use reqwest::{Method, StatusCode, Url, header};
pub use response::HttpResponse;

pub(crate) use backoff::jittered;
pub(crate) use charset::decode;
pub(crate) use error::host_and_port;
pub(crate) use resolve::SystemResolver;
