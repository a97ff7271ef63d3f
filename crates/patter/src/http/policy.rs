//! The network policy: which servers may be contacted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thiserror::Error;

/// The servers that may be contacted: all with a public address, and others that a project allows.
///
/// URLs are chosen by models, by the pages that models read and by servers that redirect. Without a policy, any of them
/// could make Patter read from this machine, from the local network or from the metadata service of a cloud.
///
/// ```
/// use patter::http::NetworkPolicy;
/// let policy = NetworkPolicy::from_allow_list(["localhost:8080", "10.0.0.0/8"]).unwrap();
/// assert!(policy.allows_address("10.1.2.3".parse().unwrap()));
/// assert!(!policy.allows_address("127.0.0.1".parse().unwrap()));
/// assert!(policy.allows_host("localhost", 8080) && !policy.allows_host("localhost", 9090));
/// assert!(NetworkPolicy::from_allow_list(["http://localhost"]).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkPolicy {
    allowances: Vec<Allowance>,
}

/// An entry of the allow list: servers that may be contacted although they are not public.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Allowance {
    hosts: HostPattern,
    /// The allowed port, or nothing for all ports.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    /// A host name, whatever address it resolves to.
    Name(String),
    /// The addresses that share a prefix of this many bits with an address.
    Network(IpAddr, u8),
}

/// An error for an invalid entry of an allow list.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is neither a host such as `localhost:8080` nor a network such as `10.0.0.0/8`")]
pub struct AllowListError(String);

impl NetworkPolicy {
    /// Allows more than the public servers: `localhost:8080`, `internal.example.com`, `127.0.0.1`, `10.0.0.0/8`.
    ///
    /// A host name is allowed whatever it resolves to. An address without a port also applies to host names that resolve
    /// to it; an address with a port applies only to URLs that contain the address itself.
    pub fn from_allow_list<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, AllowListError> {
        let allowances = entries.into_iter().map(|entry| parse(entry).ok_or_else(|| AllowListError(entry.to_owned())));
        Ok(Self { allowances: allowances.collect::<Result<_, _>>()? })
    }

    /// Returns whether the allow list has a host as written in a URL.
    pub fn allows_host(&self, host: &str, port: u16) -> bool {
        let host = normalize_host(host);
        let address = parse_address(&host);
        self.allowances.iter().filter(|allowance| allowance.port.is_none_or(|only| only == port)).any(
            |allowance| match (&allowance.hosts, address) {
                (HostPattern::Name(name), _) => *name == host,
                (HostPattern::Network(net, bits), Some(address)) => contains(*net, *bits, address),
                (HostPattern::Network(..), None) => false,
            },
        )
    }

    /// Returns whether an address may be contacted on any port.
    pub fn allows_address(&self, address: IpAddr) -> bool {
        is_public(address)
            || self.allowances.iter().any(|allowance| match &allowance.hosts {
                HostPattern::Network(net, bits) => allowance.port.is_none() && contains(*net, *bits, address),
                HostPattern::Name(_) => false,
            })
    }
}

/// Parses an address as written in a URL, where IPv6 addresses are in brackets.
pub(super) fn parse_address(host: &str) -> Option<IpAddr> {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).parse().ok()
}

/// Returns a host name in lowercase and without a trailing dot.
pub(super) fn normalize_host(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

fn parse(entry: &str) -> Option<Allowance> {
    if let Some((net, bits)) = entry.split_once('/') {
        let net: IpAddr = net.parse().ok()?;
        let bits = bits.parse().ok().filter(|bits| *bits <= address_bits(net))?;
        return Some(Allowance { hosts: HostPattern::Network(net, bits), port: None });
    }
    let single = |address: IpAddr| HostPattern::Network(address, address_bits(address));
    if let Ok(address) = entry.parse::<IpAddr>() {
        return Some(Allowance { hosts: single(address), port: None });
    }
    let (host, port) = match entry.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse().ok()?)),
        None => (entry, None),
    };
    if let Some(address) = parse_address(host) {
        return Some(Allowance { hosts: single(address), port });
    }
    let is_name = !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_'));
    is_name.then(|| Allowance { hosts: HostPattern::Name(normalize_host(host)), port })
}

/// Returns the number of bits in an address.
fn address_bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Returns whether a network contains an address, or the IPv4 address embedded in it.
fn contains(net: IpAddr, bits: u8, address: IpAddr) -> bool {
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

/// Returns the IPv4 address embedded in an IPv6 address: mapped, translated (NAT64) or tunnelled (6to4).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = address.to_bits();
    let v4 = |shift: u32| u32::try_from(bits >> shift & u128::from(u32::MAX)).ok().map(Ipv4Addr::from_bits);
    match bits >> 32 {
        // `::a.b.c.d` is the obsolete form of mapped addresses; `::` and `::1` look like it.
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
        // This machine, private networks, loopback, multicast, reserved, broadcast.
        (0 | 10 | 127 | 224.., ..) => false,
        // Carrier-grade NAT, link-local (with the metadata services of clouds), private networks.
        (100, 64..=127, _) | (169, 254, _) | (172, 16..=31, _) | (192, 168, _) => false,
        // Protocol assignments, documentation, 6to4 relays, benchmarks.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) => false,
        _ => true,
    }
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    match (a, b) {
        // Protocol assignments (with Teredo), documentation.
        (0x2001, 0..=0x01ff | 0x0db8) | (0x3fff, 0..=0x0fff) => false,
        // Global unicast; excludes loopback, link-local, private and multicast addresses.
        _ => a & 0xe000 == 0x2000,
    }
}
