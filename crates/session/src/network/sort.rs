// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sorts the guest's frames by what the network does with them.

use std::net::SocketAddrV4;

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame, EthernetProtocol, IpAddress,
    IpProtocol, Ipv4Packet, TcpPacket, UdpPacket, UdpRepr,
};

use super::reach::DNS;
use crate::peer::{BOARD, HOST, MAC};

/// What the network does with a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    /// The TCP/IP stack answers.
    Stack,
    /// Nothing answers.
    Ignored,
    /// Nothing answers, because the guest has another address than the network's.
    Stranger,
    /// The guest opens a TCP connection from this port.
    Opens { port: u16, to: SocketAddrV4 },
    /// The guest sends a datagram from this port.
    Datagram {
        mac: EthernetAddress,
        port: u16,
        to: SocketAddrV4,
        payload: &'a [u8],
    },
}

/// Sorts a frame of the guest. The frame may have any content.
pub(crate) fn sort(frame: &[u8]) -> Kind<'_> {
    let Ok(ethernet) = EthernetFrame::new_checked(frame) else {
        return Kind::Ignored;
    };
    if ethernet.dst_addr() != MAC && !ethernet.dst_addr().is_broadcast() {
        return Kind::Ignored;
    }
    let (mac, payload) = (ethernet.src_addr(), ethernet.payload());
    match ethernet.ethertype() {
        EthernetProtocol::Arp => arp(payload),
        EthernetProtocol::Ipv4 if mac.is_unicast() => ip(mac, payload),
        _ => Kind::Ignored,
    }
}

/// The network answers for its own addresses only, so that the guest can look for a second owner of its address.
fn arp(payload: &[u8]) -> Kind<'_> {
    let packet = ArpPacket::new_checked(payload);
    let Ok(Ok(ArpRepr::EthernetIpv4 {
        operation,
        source_protocol_addr,
        target_protocol_addr,
        ..
    })) = packet.as_ref().map(ArpRepr::parse)
    else {
        return Kind::Ignored;
    };
    let ours = target_protocol_addr == HOST || target_protocol_addr == DNS;
    match operation {
        ArpOperation::Request | ArpOperation::Reply if !ours => Kind::Ignored,
        ArpOperation::Request | ArpOperation::Reply if source_protocol_addr != BOARD => {
            Kind::Stranger
        }
        ArpOperation::Request | ArpOperation::Reply => Kind::Stack,
        ArpOperation::Unknown(_) => Kind::Ignored,
    }
}

fn ip(mac: EthernetAddress, payload: &[u8]) -> Kind<'_> {
    let Ok(packet) = Ipv4Packet::new_checked(payload) else {
        return Kind::Ignored;
    };
    let (from, to) = (packet.src_addr(), packet.dst_addr());
    let whole = !packet.more_frags() && packet.frag_offset() == 0;
    if !whole || packet.version() != 4 || !packet.verify_checksum() {
        return Kind::Ignored;
    }
    if from != BOARD {
        return Kind::Stranger;
    }
    // The packet's payload borrows from the packet, and the answer must borrow from the frame.
    let inner = &payload[usize::from(packet.header_len())..usize::from(packet.total_len())];
    match packet.next_header() {
        IpProtocol::Icmp if to == HOST || to == DNS => Kind::Stack,
        IpProtocol::Tcp => match TcpPacket::new_checked(inner) {
            Ok(tcp) if tcp.syn() && !tcp.ack() && !tcp.rst() => Kind::Opens {
                port: tcp.src_port(),
                to: SocketAddrV4::new(to, tcp.dst_port()),
            },
            Ok(_) => Kind::Stack,
            Err(_) => Kind::Ignored,
        },
        IpProtocol::Udp => {
            let Ok(udp) = UdpPacket::new_checked(inner) else {
                return Kind::Ignored;
            };
            let (from, far) = (IpAddress::Ipv4(from), IpAddress::Ipv4(to));
            let sums = ChecksumCapabilities::default();
            match UdpRepr::parse(&udp, &from, &far, &sums) {
                Ok(repr) => Kind::Datagram {
                    mac,
                    port: repr.src_port,
                    to: SocketAddrV4::new(to, repr.dst_port),
                    payload: udp.payload(),
                },
                Err(_) => Kind::Ignored,
            }
        }
        _ => Kind::Ignored,
    }
}
