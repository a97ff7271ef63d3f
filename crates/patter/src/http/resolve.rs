//! Names to addresses, none of which is out of reach.

use super::reach::{Reach, normal};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use thiserror::Error;

/// Looks names up, and hands out only addresses that may be reached. The connection is made to what this returns, so
/// no other answer of the name server can come between.
pub(super) struct Guarded {
    pub(super) reach: Arc<Reach>,
    /// The hosts of proxies, which the operator chose.
    pub(super) proxies: Vec<String>,
}

/// Looks names up.
pub(super) struct Open;

/// A name that leads only where nothing may be reached.
#[derive(Debug, Error)]
#[error("`{name}` leads to {address}, which is not public")]
pub(super) struct OutOfReach {
    pub(super) name: String,
    pub(super) address: IpAddr,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = Arc::clone(&self.reach);
        let is_proxy = self.proxies.contains(&normal(name.as_str()));
        Box::pin(async move {
            let addresses = look_up(name.as_str()).await?;
            let refused = addresses.iter().map(SocketAddr::ip).find(|address| !reach.permits(*address));
            match refused {
                // One address out of reach makes the name suspect, as an attacker mixes them.
                Some(address) if !is_proxy => Err(OutOfReach { name: name.as_str().to_owned(), address }.into()),
                _ => Ok(Box::new(addresses.into_iter()) as Addrs),
            }
        })
    }
}

impl Resolve for Open {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move { Ok(Box::new(look_up(name.as_str()).await?.into_iter()) as Addrs) })
    }
}

async fn look_up(name: &str) -> std::io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.collect())
}
