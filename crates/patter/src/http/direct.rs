//! The client for requests that need neither a proxy nor compression, such as those of models. It does less than the other
//! client, and takes less than half of its instructions.

use super::policy::NetworkPolicy;
use super::resolve::{check_addresses, look_up};
use super::{HttpError, HttpRequest};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderValue, USER_AGENT};
use hyper::{Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_service::Service;

/// How long an unused connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How often a connection is probed, and how long it may take to answer.
const PROBE_INTERVAL: Duration = Duration::from_secs(15);
#[cfg(target_os = "linux")]
const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// A client without proxies.
pub(super) struct DirectClient {
    client: Client<TimedConnector, Full<Bytes>>,
    user_agent: HeaderValue,
}

impl DirectClient {
    /// Creates a client whose servers must be those that a policy allows, if there is one.
    pub(super) fn new(mut tls: ClientConfig, policy: Option<Arc<NetworkPolicy>>, connect_timeout: Duration) -> Self {
        let mut connector = HttpConnector::new_with_resolver(CheckedResolver { policy });
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_keepalive(Some(PROBE_INTERVAL));
        connector.set_keepalive_interval(Some(PROBE_INTERVAL));
        connector.set_keepalive_retries(Some(3));
        #[cfg(target_os = "linux")]
        connector.set_tcp_user_timeout(Some(USER_TIMEOUT));
        // The builder sets them.
        tls.alpn_protocols.clear();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(connector);
        let connector = TimedConnector { connector, timeout: connect_timeout };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build(connector);
        Self { client, user_agent: HeaderValue::from_static(concat!("patter/", env!("CARGO_PKG_VERSION"))) }
    }

    /// Sends a request. The outer error is about the request itself.
    pub(super) async fn send(&self, request: &HttpRequest) -> Result<Result<Response<Incoming>, Error>, HttpError> {
        let uri = Uri::try_from(request.url.as_str());
        let uri = uri.map_err(|_| HttpError::Setup("the URL has characters that cannot be sent".to_owned()))?;
        let mut sent = hyper::Request::new(Full::new(request.body.clone().unwrap_or_default()));
        *sent.method_mut() = request.method.clone();
        *sent.uri_mut() = uri;
        *sent.headers_mut() = request.headers.clone();
        sent.headers_mut().entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        sent.headers_mut().entry(USER_AGENT).or_insert(self.user_agent.clone());
        Ok(self.client.request(sent).await)
    }
}

type Connector = HttpsConnector<HttpConnector<CheckedResolver>>;

/// A connector with a time limit for all of it: lookup, connection and encryption.
#[derive(Clone)]
struct TimedConnector {
    connector: Connector,
    timeout: Duration,
}

impl Service<Uri> for TimedConnector {
    type Response = <Connector as Service<Uri>>::Response;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = crate::tool::BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = tokio::time::timeout(self.timeout, self.connector.call(uri));
        Box::pin(async move { connecting.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))? })
    }
}

/// Resolves names to addresses that a policy allows. Connections are made to these, so a second answer of the name server
/// cannot bypass the check.
#[derive(Clone)]
struct CheckedResolver {
    policy: Option<Arc<NetworkPolicy>>,
}

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = crate::tool::BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let policy = self.policy.clone();
        Box::pin(async move {
            let addresses = look_up(name.as_str()).await?;
            if let Some(policy) = policy {
                check_addresses(&policy, name.as_str(), &addresses)?;
            }
            Ok(addresses.into_iter())
        })
    }
}
