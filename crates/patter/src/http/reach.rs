//! Which servers may be reached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thiserror::Error;

/// Which servers may be reached: all that have a public address, and others that a project allows.
///
/// A model chooses addresses, and so do the pages that it reads and the servers that redirect. Without this, any of
/// them could make Patter read from the machine itself, from the network around it, or from the metadata service of a
/// cloud.
///
/// ```
/// use patter::http::Reach;
/// let reach = Reach::allowing(["localhost:8080", "10.0.0.0/8"]).unwrap();
/// assert!(reach.permits("10.1.2.3".parse().unwrap()));
/// assert!(!reach.permits("127.0.0.1".parse().unwrap()));
/// assert!(reach.names("localhost", 8080) && !reach.names("localhost", 9090));
/// assert!(Reach::allowing(["http://localhost"]).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reach {
    allowances: Vec<Allowance>,
}

/// Servers that may be reached although they are not public.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Allowance {
    host: Hosts,
    /// The only port; all if there is none.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    /// A host by its name, wherever that leads.
    Named(String),
    /// The addresses that begin with as many bits of one.
    Net(IpAddr, u8),
}

/// A text that allows nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is neither a host, such as `localhost:8080`, nor addresses, such as `10.0.0.0/8`")]
pub struct AllowanceError(String);

impl Reach {
    /// Allows servers beyond the public ones: `localhost:8080`, `internal.example.com`, `127.0.0.1`, `10.0.0.0/8`.
    ///
    /// A name lifts the guard for wherever it leads. Addresses without a port also hold for names that lead to them;
    /// with a port, only where the address itself is written.
    pub fn allowing<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, AllowanceError> {
        let allowances = entries.into_iter().map(|entry| parse(entry).ok_or_else(|| AllowanceError(entry.to_owned())));
        Ok(Self { allowances: allowances.collect::<Result<_, _>>()? })
    }

    /// Tells whether a host is allowed as it is written, whatever address it has.
    pub fn names(&self, host: &str, port: u16) -> bool {
        let host = normal(host);
        let address = literal(&host);
        self.allowances.iter().filter(|allowance| allowance.port.is_none_or(|only| only == port)).any(
            |allowance| match (&allowance.host, address) {
                (Hosts::Named(name), _) => *name == host,
                (Hosts::Net(net, bits), Some(address)) => holds(*net, *bits, address),
                (Hosts::Net(..), None) => false,
            },
        )
    }

    /// Tells whether an address may be reached, on any port.
    pub fn permits(&self, address: IpAddr) -> bool {
        is_public(address)
            || self.allowances.iter().any(|allowance| match &allowance.host {
                Hosts::Net(net, bits) => allowance.port.is_none() && holds(*net, *bits, address),
                Hosts::Named(_) => false,
            })
    }
}

/// Reads an address as it stands in a URL, where those of version 6 are in brackets.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).parse().ok()
}

/// Returns a name in lowercase and without the dot that may end it.
pub(super) fn normal(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

fn parse(entry: &str) -> Option<Allowance> {
    if let Some((net, bits)) = entry.split_once('/') {
        let net: IpAddr = net.parse().ok()?;
        let most = if net.is_ipv4() { 32 } else { 128 };
        let bits = bits.parse().ok().filter(|bits| *bits <= most)?;
        return Some(Allowance { host: Hosts::Net(net, bits), port: None });
    }
    let whole = |net: IpAddr| Hosts::Net(net, if net.is_ipv4() { 32 } else { 128 });
    if let Ok(address) = entry.parse::<IpAddr>() {
        return Some(Allowance { host: whole(address), port: None });
    }
    let (host, port) = match entry.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse().ok()?)),
        None => (entry, None),
    };
    if let Some(address) = literal(host) {
        return Some(Allowance { host: whole(address), port });
    }
    let is_name = !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_'));
    is_name.then(|| Allowance { host: Hosts::Named(normal(host)), port })
}

/// Tells whether an address, or one of version 4 within it, begins with the bits of another.
fn holds(net: IpAddr, bits: u8, address: IpAddr) -> bool {
    let within = |net: u128, address: u128, length: u32| {
        let rest = length - u32::from(bits).min(length);
        net.checked_shr(rest).unwrap_or(0) == address.checked_shr(rest).unwrap_or(0)
    };
    let embedded = if let IpAddr::V6(address) = address { embedded(address) } else { None };
    match (net, address, embedded) {
        (IpAddr::V4(net), IpAddr::V4(address), _) | (IpAddr::V4(net), IpAddr::V6(_), Some(address)) => {
            within(net.to_bits().into(), address.to_bits().into(), 32)
        }
        (IpAddr::V6(net), IpAddr::V6(address), _) => within(net.to_bits(), address.to_bits(), 128),
        _ => false,
    }
}

/// Returns the address of version 4 that one of version 6 leads to: mapped, translated (NAT64) or tunnelled (6to4).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = address.to_bits();
    let v4 = |shift: u32| u32::try_from(bits >> shift & u128::from(u32::MAX)).ok().map(Ipv4Addr::from_bits);
    match bits >> 32 {
        // `::a.b.c.d` is the form that mapped addresses had before; `::` and `::1` look like it.
        0 | 0xffff | 0x0064_ff9b_0000_0000_0000_0000 => v4(0),
        _ if bits >> 112 == 0x2002 => v4(80),
        _ => None,
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        // This machine, private nets, loopback, multicast, reserved, broadcast.
        (0 | 10 | 127 | 224.., ..) => false,
        // Behind a carrier's translation, link-local with the metadata of clouds, private nets.
        (100, 64..=127, _) | (169, 254, _) | (172, 16..=31, _) | (192, 168, _) => false,
        // Protocol assignments, documentation, relays of 6to4, benchmarks.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) => false,
        _ => true,
    }
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    match (a, b) {
        // Protocol assignments with Teredo, documentation.
        (0x2001, 0..=0x01ff | 0x0db8) | (0x3fff, 0..=0x0fff) => false,
        // Only these are given out; loopback, link-local, private and multicast addresses are not among them.
        _ => a & 0xe000 == 0x2000,
    }
}
