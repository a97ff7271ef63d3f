//! The client: connections, proxies and redirects.

use super::direct::DirectClient;
use super::error::host_and_port;
use super::policy::{NetworkPolicy, normalize_host, parse_address};
use super::resolve::{PolicyResolver, SystemResolver, check_addresses, look_up};
use super::{HttpError, HttpRequest, HttpResponse, redirect, tls};
use reqwest::{StatusCode, Url};
use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// An HTTP client. Cheap to clone; clones share their connections.
///
/// It reads four variables: `SSL_CERT_FILE` is a file with certificates to trust in addition to those that browsers
/// trust; `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` (or lowercase) configure proxies. The policy applies to requests
/// through a proxy too: a host name is looked up here first, and refused if that fails or leads to a private address,
/// unless the policy allows the name. The proxy then looks it up again, so only the proxy can rule out a name server
/// that changes its answer in between.
///
/// ```
/// use patter::http::{HttpClient, NetworkPolicy};
/// let client = HttpClient::new(NetworkPolicy::default(), |name| std::env::var(name).ok());
/// # drop(client);
/// ```
#[derive(Clone)]
pub struct HttpClient {
    inner: Arc<Inner>,
}

struct Inner {
    policy: Arc<NetworkPolicy>,
    variables: ClientVariables,
    clients: OnceLock<Result<Clients, HttpError>>,
}

/// The variables that configure a client.
struct ClientVariables {
    cert_file: Option<String>,
    https_proxy: Option<String>,
    http_proxy: Option<String>,
    no_proxy: Option<String>,
}

struct Clients {
    /// The clients for servers that must be public.
    restricted: ClientPair,
    /// The clients for servers that the project allows by name.
    unrestricted: ClientPair,
    /// The hosts of proxies.
    proxies: Vec<String>,
}

/// A client for everything, and one that does less.
struct ClientPair {
    full: reqwest::Client,
    direct: DirectClient,
}

impl HttpClient {
    /// Creates a client with a policy. `variable` looks up environment variables. Connections and certificates are set
    /// up by the first request.
    pub fn new(policy: NetworkPolicy, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let either = |name: &str| set(name).or_else(|| set(&name.to_ascii_lowercase()));
        let variables = ClientVariables {
            cert_file: set("SSL_CERT_FILE"),
            https_proxy: either("HTTPS_PROXY"),
            http_proxy: either("HTTP_PROXY"),
            no_proxy: either("NO_PROXY"),
        };
        Self { inner: Arc::new(Inner { policy: Arc::new(policy), variables, clients: OnceLock::new() }) }
    }

    /// Sends a request and follows at most five redirects. Returns the response as soon as its head arrived, whatever
    /// its status.
    pub async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.send_if(request, |_| true).await
    }

    /// Sends a request like [`HttpClient::send`], and follows redirects only to URLs that a function permits.
    pub(crate) async fn send_if(
        &self,
        request: HttpRequest,
        permits: impl Fn(&Url) -> bool,
    ) -> Result<HttpResponse, HttpError> {
        let mut request = request;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send_once(&request).await?;
            match redirect::next_request(&request, &response)? {
                None => return Ok(response),
                Some(next) if !permits(&next.url) => {
                    return Err(HttpError::ExcludedRedirect { server: host_and_port(&next.url) });
                }
                Some(next) => request = next,
            }
        }
        Err(HttpError::TooManyRedirects(MAX_REDIRECTS))
    }

    /// Sends a request, and follows no redirects: they are responses like others.
    pub async fn send_once(&self, request: &HttpRequest) -> Result<HttpResponse, HttpError> {
        let clients = self.clients_for(&request.url).await?;
        let proxy = self.inner.variables.proxy_variable(&request.url);
        let started = Instant::now();
        if proxy.is_none() && !request.accepts_compression {
            let result = clients.direct.send(request).await?;
            trace(request, result.as_ref().map(hyper::Response::status).map_err(as_error), started.elapsed());
            return match result {
                Ok(response) => Ok(HttpResponse::direct(request.url.clone(), response)),
                Err(error) => Err(HttpError::connection(&error, error.is_connect(), &request.url, None)),
            };
        }
        let mut sent = reqwest::Request::new(request.method.clone(), request.url.clone());
        *sent.headers_mut() = request.headers.clone();
        *sent.body_mut() = request.body.clone().map(Into::into);
        let result = clients.full.execute(sent).await;
        trace(request, result.as_ref().map(reqwest::Response::status).map_err(as_error), started.elapsed());
        match result {
            Ok(response) => Ok(HttpResponse::new(request.url.clone(), response)),
            Err(error) => Err(HttpError::connection(&error, error.is_connect(), &request.url, proxy)),
        }
    }

    /// Returns the clients for a URL, if the policy allows it.
    async fn clients_for(&self, url: &Url) -> Result<&ClientPair, HttpError> {
        let clients = self.inner.clients.get_or_init(|| self.inner.build()).as_ref().map_err(Clone::clone)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(HttpError::Scheme(url.scheme().to_owned()));
        }
        let host = normalize_host(url.host_str().unwrap_or_default());
        let port = url.port_or_known_default().unwrap_or(0);
        if self.inner.policy.allows_host(&host, port) {
            return Ok(&clients.unrestricted);
        }
        let is_local = || host == "localhost" || host.ends_with(".localhost") || clients.proxies.contains(&host);
        let is_blocked = match parse_address(&host) {
            Some(address) => !self.inner.policy.allows_address(address),
            None => !clients.proxies.is_empty() && is_local(),
        };
        if is_blocked {
            return Err(HttpError::PrivateAddress { host, port, address: None });
        }
        if let Some(proxy) = self.inner.variables.proxy_variable(url)
            && parse_address(&host).is_none()
        {
            self.check_name(&host, port, proxy).await?;
        }
        Ok(&clients.restricted)
    }

    /// Checks a host name that a proxy will resolve.
    async fn check_name(&self, host: &str, port: u16, proxy: &'static str) -> Result<(), HttpError> {
        let found = tokio::time::timeout(CONNECT_TIMEOUT, look_up(host)).await;
        let Some(addresses) = found.ok().and_then(Result::ok).filter(|addresses| !addresses.is_empty()) else {
            return Err(HttpError::UnknownBehindProxy { host: host.to_owned(), port, proxy });
        };
        check_addresses(&self.inner.policy, host, &addresses).map_err(|error| HttpError::PrivateAddress {
            host: host.to_owned(),
            port,
            address: Some(error.address),
        })
    }
}

impl ClientVariables {
    /// Returns the variable of the proxy for a URL. `NO_PROXY` may exclude its host.
    fn proxy_variable(&self, url: &Url) -> Option<&'static str> {
        match url.scheme() {
            "https" => self.https_proxy.as_ref().map(|_| "HTTPS_PROXY"),
            _ => self.http_proxy.as_ref().map(|_| "HTTP_PROXY"),
        }
    }
}

impl Inner {
    fn build(&self) -> Result<Clients, HttpError> {
        let ClientVariables { cert_file, https_proxy, http_proxy, no_proxy } = &self.variables;
        let tls = tls::config(cert_file.as_deref())?;
        let mut proxies = Vec::new();
        let mut hosts = Vec::new();
        type BuildProxy = fn(&str) -> reqwest::Result<reqwest::Proxy>;
        let schemes: [(_, _, BuildProxy); 2] = [
            ("HTTPS_PROXY", https_proxy, |url| reqwest::Proxy::https(url)),
            ("HTTP_PROXY", http_proxy, |url| reqwest::Proxy::http(url)),
        ];
        for (name, value, build) in schemes {
            let Some(value) = value else { continue };
            let full = if value.contains("://") { value.clone() } else { format!("http://{value}") };
            // The value is not shown, since it may contain a password.
            let invalid = || HttpError::Setup(format!("`{name}` is not a valid proxy URL"));
            let url = Url::parse(&full).map_err(|_| invalid())?;
            hosts.push(normalize_host(url.host_str().ok_or_else(invalid)?));
            let exceptions = no_proxy.as_deref().and_then(reqwest::NoProxy::from_string);
            proxies.push(build(&full).map_err(|_| invalid())?.no_proxy(exceptions));
        }
        let builder = || {
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
            builder
        };
        let failed = |error| HttpError::Setup(format!("cannot set up the HTTP client: {error}"));
        let resolver = PolicyResolver { policy: Arc::clone(&self.policy), proxies: hosts.clone() };
        let direct = |policy| DirectClient::new(tls.clone(), policy, CONNECT_TIMEOUT);
        let restricted = ClientPair {
            full: builder().dns_resolver(resolver).build().map_err(failed)?,
            direct: direct(Some(Arc::clone(&self.policy))),
        };
        let unrestricted =
            ClientPair { full: builder().dns_resolver(SystemResolver).build().map_err(failed)?, direct: direct(None) };
        Ok(Clients { restricted, unrestricted, proxies: hosts })
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("policy", &self.inner.policy).finish_non_exhaustive()
    }
}

fn as_error<E: Error + 'static>(error: &E) -> &(dyn Error + 'static) {
    error
}

/// Logs a request. Only the host of the URL is shown: the rest may contain secrets.
fn trace(request: &HttpRequest, result: Result<StatusCode, &(dyn Error + 'static)>, duration: Duration) {
    let method = request.method.as_str();
    let host = request.url.host_str();
    match result {
        Ok(status) => tracing::debug!(method, host, status = status.as_u16(), ?duration, "HTTP request"),
        Err(error) => {
            // Its own text has the URL.
            let causes = error.source().map(tracing::field::debug);
            tracing::debug!(method, host, causes, ?duration, "HTTP request failed");
        }
    }
}
