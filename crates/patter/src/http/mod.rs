//! HTTP: the one way in which Patter calls servers.
//!
//! Connections are reused, redirects are followed by hand, and a guard keeps requests away from addresses that are not
//! public (see [`Reach`]). Nothing is read from the environment but what is passed in.

mod charset;
mod error;
mod reach;
mod redirect;
mod resolve;
mod response;
pub(crate) mod tls;

pub use bytes::Bytes;
pub use error::HttpError;
pub use reach::{AllowanceError, Reach};
pub use reqwest::{Method, StatusCode, Url, header};
pub use response::HttpResponse;

pub(crate) use charset::decode;

use reach::{literal, normal};
use redirect::Redirect;
use reqwest::header::HeaderMap;
use resolve::{Guarded, Open};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long it may take to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many redirects are followed.
const MOST_REDIRECTS: usize = 5;

/// Sends requests. Cheap to clone; clones share their connections.
///
/// It reads four variables: `SSL_CERT_FILE` names a file with certificates to trust beside those that browsers trust;
/// `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` (or in lowercase) name proxies and what goes past them. A proxy looks
/// names up itself, so behind one only addresses that are written out, and `localhost`, are guarded here, and the rest
/// is for the proxy to guard.
///
/// ```
/// use patter::http::{HttpClient, Reach};
/// let client = HttpClient::new(Reach::default(), |name| std::env::var(name).ok());
/// # drop(client);
/// ```
#[derive(Clone)]
pub struct HttpClient {
    inner: Arc<Inner>,
}

struct Inner {
    reach: Arc<Reach>,
    settings: Settings,
    clients: OnceLock<Result<Clients, HttpError>>,
}

struct Settings {
    cert_file: Option<String>,
    https_proxy: Option<String>,
    http_proxy: Option<String>,
    no_proxy: Option<String>,
}

struct Clients {
    /// For servers that must be public.
    guarded: reqwest::Client,
    /// For servers that the project allows by name.
    open: reqwest::Client,
    /// The hosts of proxies.
    proxies: Vec<String>,
}

/// A request.
///
/// Headers that are marked as sensitive are not sent to another server on a redirect.
#[derive(Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// The address.
    pub url: Url,
    /// The headers.
    pub headers: HeaderMap,
    /// The body. Tries and redirects share it.
    pub body: Option<Bytes>,
    /// Whether the body holds what no other server may read.
    pub is_body_secret: bool,
    /// Whether it means nothing with another method, so that a redirect that asks for one is an error.
    pub keeps_method: bool,
}

impl HttpClient {
    /// Makes a client that reaches some servers. Variables of the environment are read with the function; the rest is
    /// set up when the first request is sent.
    pub fn new(reach: Reach, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let either = |name: &str| set(name).or_else(|| set(&name.to_ascii_lowercase()));
        let settings = Settings {
            cert_file: set("SSL_CERT_FILE"),
            https_proxy: either("HTTPS_PROXY"),
            http_proxy: either("HTTP_PROXY"),
            no_proxy: either("NO_PROXY"),
        };
        Self { inner: Arc::new(Inner { reach: Arc::new(reach), settings, clients: OnceLock::new() }) }
    }

    /// Sends a request and follows redirects, at most five. Returns the reply as soon as its head is there, whatever
    /// its status.
    pub async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let mut request = request;
        for _ in 0..=MOST_REDIRECTS {
            let client = self.client_for(&request.url)?;
            let mut builder = client.request(request.method.clone(), request.url.clone());
            builder = builder.headers(request.headers.clone());
            if let Some(body) = &request.body {
                builder = builder.body(body.clone());
            }
            let response = builder.send().await.map_err(|error| HttpError::of(error, &request.url))?;
            match redirect::of(&request, &response)? {
                Redirect::No => return Ok(HttpResponse::new(response)),
                Redirect::To(next) => request = *next,
            }
        }
        Err(HttpError::Redirects(MOST_REDIRECTS))
    }

    /// Returns the client for an address, if that may be reached.
    fn client_for(&self, url: &Url) -> Result<&reqwest::Client, HttpError> {
        let clients = self.inner.clients.get_or_init(|| self.inner.build()).as_ref().map_err(Clone::clone)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(HttpError::Scheme(url.scheme().to_owned()));
        }
        let host = normal(url.host_str().unwrap_or_default());
        let port = url.port_or_known_default().unwrap_or(0);
        if self.inner.reach.names(&host, port) {
            return Ok(&clients.open);
        }
        let is_local = || host == "localhost" || host.ends_with(".localhost") || clients.proxies.contains(&host);
        let is_refused = match literal(&host) {
            Some(address) => !self.inner.reach.permits(address),
            None => !clients.proxies.is_empty() && is_local(),
        };
        if is_refused {
            return Err(HttpError::OutOfReach { host, port, address: None });
        }
        Ok(&clients.guarded)
    }
}

impl Inner {
    fn build(&self) -> Result<Clients, HttpError> {
        let Settings { cert_file, https_proxy, http_proxy, no_proxy } = &self.settings;
        let tls = tls::config(cert_file.as_deref())?;
        let mut proxies = Vec::new();
        let mut hosts = Vec::new();
        type ForScheme = fn(&str) -> reqwest::Result<reqwest::Proxy>;
        let schemes: [(_, _, ForScheme); 2] = [
            ("HTTPS_PROXY", https_proxy, |url| reqwest::Proxy::https(url)),
            ("HTTP_PROXY", http_proxy, |url| reqwest::Proxy::http(url)),
        ];
        for (name, value, proxy) in schemes {
            let Some(value) = value else { continue };
            let full = if value.contains("://") { value.clone() } else { format!("http://{value}") };
            // What is wrong with it is not shown, since it may hold a password.
            let wrong = || HttpError::Setup(format!("{name} is no address of a proxy"));
            let url = Url::parse(&full).map_err(|_| wrong())?;
            hosts.push(normal(url.host_str().ok_or_else(wrong)?));
            let past = no_proxy.as_deref().and_then(reqwest::NoProxy::from_string);
            proxies.push(proxy(&full).map_err(|_| wrong())?.no_proxy(past));
        }
        let client = |is_guarded: bool| {
            let mut builder = reqwest::Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .referer(false)
                .connect_timeout(CONNECT_TIMEOUT)
                .user_agent(concat!("patter/", env!("CARGO_PKG_VERSION")))
                .no_proxy();
            for proxy in &proxies {
                builder = builder.proxy(proxy.clone());
            }
            let guarded = Guarded { reach: Arc::clone(&self.reach), proxies: hosts.clone() };
            let builder = if is_guarded { builder.dns_resolver(guarded) } else { builder.dns_resolver(Open) };
            builder.build().map_err(|error| HttpError::Setup(format!("HTTP cannot be set up: {error}")))
        };
        Ok(Clients { guarded: client(true)?, open: client(false)?, proxies: hosts })
    }
}

impl HttpRequest {
    /// Returns a request that asks for what is at an address.
    pub fn get(url: Url) -> Self {
        let (method, headers) = (Method::GET, HeaderMap::new());
        Self { method, url, headers, body: None, is_body_secret: false, keeps_method: false }
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("reach", &self.inner.reach).finish_non_exhaustive()
    }
}

/// Shows neither path, query, headers nor body, which may hold secrets.
impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.url.origin().ascii_serialization();
        f.debug_struct("HttpRequest").field("method", &self.method).field("origin", &origin).finish_non_exhaustive()
    }
}

/// Returns a time between a half of one and the whole of it, by chance, so that many who wait do not come back at once.
pub(crate) fn jittered(longest: Duration) -> Duration {
    let chance = RandomState::new().hash_one(0_u8) % 512;
    longest / 2 + longest.mul_f64(chance as f64 / 1024.0)
}
