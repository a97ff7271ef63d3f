//! Logins at MCP servers with a URL: OAuth 2.1, as the protocol profiles it.
//!
//! A login starts with the server's challenge. [`discovery`] finds the server's authorization server (RFC 9728, RFC 8414,
//! OpenID Connect), [`registration`] obtains a client id (configured, a metadata document, or RFC 7591), and [`login`]
//! sends the person to the authorization page, with PKCE and the resource (RFC 8707) that the tokens are for. [`callback`]
//! receives the answer on a loopback port, [`token`] exchanges it, and [`store`] keeps the tokens in a file that only the
//! user can read. [`transport`] sends them with each request, and [`credentials`] renews them.
//!
//! Every URL here is chosen by a foreign server. All of them go through [`web`], which requires TLS, blocks private
//! addresses, and limits sizes and times. Tokens are stored by the URL of the server, so that a project that changes the URL
//! of a server gets no token for it.

mod callback;
mod challenge;
mod credentials;
mod discovery;
mod error;
mod login;
mod registration;
mod settings;
mod store;
mod token;
mod transport;
mod web;

pub use error::LoginError;
pub use login::{Login, LoginOptions, LoginPage};
pub use settings::OauthConfig;
pub use store::{LoginStatus, LoginStore};

pub(super) use credentials::{Credentials, Denial};
pub(super) use settings::OauthSettings;
pub(super) use transport::AuthorizedClient;
pub(super) use web::safe_page;
