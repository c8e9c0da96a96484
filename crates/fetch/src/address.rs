//! Which addresses are nobody's business but this machine's and its network's. A server that can
//! make us connect to one of them could read what only we can reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// From the registries of special addresses, with those of machines that hand out credentials.
const V4: &[(Ipv4Addr, u32, &str)] = &[
    (Ipv4Addr::UNSPECIFIED, 8, "this machine"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "a private network"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "a provider's inner network"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "this machine"),
    (Ipv4Addr::new(168, 63, 129, 16), 32, "a cloud's inner service"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "the local link or a cloud's inner service"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "a private network"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "a special purpose"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "a private network"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "benchmarks"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "many machines at once"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "no use"),
];

/// Within `2000::/3`, the only part that is the public network.
const V6: &[(Ipv6Addr, u32, &str)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "a special purpose"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "documentation"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "a relay"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "documentation"),
];

/// An address of the old kind behind a translator.
const TRANSLATED: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);

/// What an address is for, if it is not for everybody.
#[must_use]
pub fn why_private(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => v6(address),
    }
}

fn v4(address: Ipv4Addr) -> Option<&'static str> {
    let within = |(net, bits, _): &&(Ipv4Addr, u32, &str)| {
        (address.to_bits() ^ net.to_bits()).leading_zeros() >= *bits
    };
    V4.iter().find(within).map(|(_, _, why)| *why)
}

fn v6(address: Ipv6Addr) -> Option<&'static str> {
    let within =
        |net: Ipv6Addr, bits: u32| (address.to_bits() ^ net.to_bits()).leading_zeros() >= bits;
    if within(TRANSLATED, 96) {
        let [.., a, b, c, d] = address.octets();
        return v4(Ipv4Addr::new(a, b, c, d));
    }
    if !within(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3) {
        return Some(outside(address));
    }
    V6.iter().find(|(net, bits, _)| within(*net, *bits)).map(|(_, _, why)| *why)
}

/// The word people know it by.
fn outside(address: Ipv6Addr) -> &'static str {
    if address.is_loopback() || address.is_unspecified() {
        "this machine"
    } else if address.is_multicast() {
        "many machines at once"
    } else if address.is_unicast_link_local() {
        "the local link"
    } else if address.is_unique_local() {
        "a private network"
    } else if address.to_ipv4_mapped().is_some() {
        "an address in another's clothes"
    } else {
        "no public use"
    }
}
