// SPDX-License-Identifier: MIT OR Apache-2.0
//! The addresses that the guest may reach through the host.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use crate::peer::HOST;

/// Address at which the guest reaches the host's DNS resolver.
pub const DNS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
/// Port of DNS.
const DNS_PORT: u16 = 53;
/// File with the addresses of the host's resolvers.
const RESOLVERS: &str = "/etc/resolv.conf";

/// Rules for the addresses that the guest may reach.
pub(crate) struct Reach {
    /// Whether the guest may reach the host's loopback and the host's own addresses.
    host_loopback: bool,
    resolver: Option<Ipv4Addr>,
}

impl Reach {
    pub(crate) fn new(host_loopback: bool) -> Reach {
        let resolvers = std::fs::read_to_string(RESOLVERS).unwrap_or_default();
        Reach {
            host_loopback,
            resolver: first_resolver(&resolvers),
        }
    }

    /// Returns the address on the host's side for an address that the guest wants to reach. Returns `None` if the guest
    /// may not reach it.
    pub(crate) fn target(&self, wanted: SocketAddrV4) -> Option<SocketAddrV4> {
        let (ip, port) = (*wanted.ip(), wanted.port());
        let reached = match ip {
            HOST => self.host_loopback.then_some(Ipv4Addr::LOCALHOST),
            DNS if port == DNS_PORT => self.resolver,
            _ if ip.octets()[..3] == HOST.octets()[..3] => None,
            _ if ip.octets()[0] == 0 || ip.octets()[0] >= 224 => None,
            // Cloud machines serve their secrets on link-local addresses.
            _ if ip.is_loopback() || ip.is_link_local() || is_own(ip) => {
                self.host_loopback.then_some(ip)
            }
            _ => Some(ip),
        };
        reached.map(|ip| SocketAddrV4::new(ip, port))
    }
}

/// Returns whether an address is one of the host's own. A program can bind a socket only to such an address.
fn is_own(ip: Ipv4Addr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

/// Returns the first IPv4 address of a resolver in the text of `resolv.conf`.
fn first_resolver(text: &str) -> Option<Ipv4Addr> {
    let servers = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next())?
    });
    servers.filter_map(|word| word.parse().ok()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(host_loopback: bool, wanted: [u8; 4], port: u16) -> Option<[u8; 4]> {
        let reach = Reach {
            host_loopback,
            resolver: Some(Ipv4Addr::new(127, 0, 0, 53)),
        };
        let target = reach.target(SocketAddrV4::new(wanted.into(), port))?;
        assert_eq!(target.port(), port);
        Some(target.ip().octets())
    }

    #[test]
    fn the_hosts_own_addresses_need_permission() {
        for own in [[127, 0, 0, 1], [127, 9, 9, 9], [169, 254, 169, 254]] {
            assert_eq!(reached(false, own, 80), None);
            assert_eq!(reached(true, own, 80), Some(own));
        }
        assert_eq!(reached(false, HOST.octets(), 80), None);
        assert_eq!(reached(true, HOST.octets(), 80), Some([127, 0, 0, 1]));
    }

    #[test]
    fn the_guests_network_and_what_is_no_single_machine_are_never_reached() {
        for ip in [
            [10, 0, 0, 2],
            [10, 0, 0, 77],
            [10, 0, 0, 255],
            [0, 0, 0, 0],
            [0, 1, 2, 3],
            [224, 0, 0, 1],
            [240, 0, 0, 1],
            [255, 255, 255, 255],
        ] {
            assert_eq!(reached(true, ip, 80), None, "{ip:?}");
        }
        // An address for documents (RFC 5737), which is on no machine.
        assert_eq!(reached(false, [192, 0, 2, 1], 80), Some([192, 0, 2, 1]));
    }

    #[test]
    fn the_resolver_is_reached_only_for_names() {
        assert_eq!(reached(false, DNS.octets(), 53), Some([127, 0, 0, 53]));
        assert_eq!(reached(true, DNS.octets(), 80), None);
        let text = "# nameserver 1.1.1.1\noptions x\nnameserver ::1\nnameserver 9.8.7.6\nnameserver 1.2.3.4\n";
        assert_eq!(first_resolver(text), Some(Ipv4Addr::new(9, 8, 7, 6)));
        assert_eq!(first_resolver("nameserver\nnameserver x\n"), None);
    }
}
