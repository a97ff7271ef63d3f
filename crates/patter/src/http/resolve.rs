//! DNS lookups that respect the network policy.

use super::policy::{NetworkPolicy, normalize_host};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use thiserror::Error;

/// A resolver that returns only addresses the policy allows.
///
/// Connections are made to the addresses returned here, so a second DNS answer cannot bypass the check.
pub(super) struct PolicyResolver {
    pub(super) policy: Arc<NetworkPolicy>,
    /// The hosts of proxies, which the operator chose.
    pub(super) proxies: Vec<String>,
}

/// A resolver that returns every address.
pub(crate) struct SystemResolver;

/// An error for a host name that resolves to an address the policy does not allow.
#[derive(Debug, Error)]
#[error("`{name}` resolves to {address}, which is not public")]
pub(super) struct PrivateAddressError {
    pub(super) name: String,
    pub(super) address: IpAddr,
}

/// An error for a host name that was not found.
#[derive(Debug, Error)]
#[error("cannot look up the host name")]
pub(super) struct LookupError(#[source] std::io::Error);

impl Resolve for PolicyResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = Arc::clone(&self.policy);
        let is_proxy = self.proxies.contains(&normalize_host(name.as_str()));
        Box::pin(async move {
            let addresses = look_up(name.as_str()).await?;
            if !is_proxy {
                check_addresses(&policy, name.as_str(), &addresses)?;
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Checks the addresses that a name resolves to. One blocked address makes the name suspect: attackers mix public and
/// private ones.
pub(super) fn check_addresses(
    policy: &NetworkPolicy,
    name: &str,
    addresses: &[SocketAddr],
) -> Result<(), PrivateAddressError> {
    match addresses.iter().map(SocketAddr::ip).find(|address| !policy.allows_address(*address)) {
        Some(address) => Err(PrivateAddressError { name: name.to_owned(), address }),
        None => Ok(()),
    }
}

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move { Ok(Box::new(look_up(name.as_str()).await?.into_iter()) as Addrs) })
    }
}

pub(super) async fn look_up(name: &str) -> Result<Vec<SocketAddr>, LookupError> {
    Ok(tokio::net::lookup_host((name, 0)).await.map_err(LookupError)?.collect())
}
