// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams of the guest, each pair of ports by a socket of the host.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, IpAddress, IpProtocol, Ipv4Packet, Ipv4Repr,
    UdpPacket, UdpRepr,
};

use super::reach::Reach;
use crate::peer::{BOARD, LARGEST_PAYLOAD, MAC};

/// Largest number of pairs of ports. A new pair replaces the pair that was silent for the longest time.
const MOST: usize = 64;
/// A silent pair of ports is forgotten after this time.
const SILENT: Duration = Duration::from_secs(120);
/// Largest number of answers that a pair of ports takes at once.
const AT_ONCE: usize = 16;
/// Bytes of the Ethernet, IP and UDP headers.
const HEADERS: usize = 14 + 20 + 8;

/// A port of the guest and the place to which it sends.
struct Pair {
    port: u16,
    /// The place as the guest names it.
    to: SocketAddrV4,
    mac: EthernetAddress,
    socket: UdpSocket,
    used: Instant,
}

/// All datagrams.
#[derive(Default)]
pub(crate) struct Datagrams {
    pairs: Vec<Pair>,
}

impl Datagrams {
    /// Sends a datagram of the guest. A datagram that cannot be sent is lost, as on every network.
    pub(crate) fn send(
        &mut self,
        (mac, port): (EthernetAddress, u16),
        to: SocketAddrV4,
        payload: &[u8],
        reach: &Reach,
    ) {
        let known = |pair: &Pair| pair.port == port && pair.to == to;
        let at = match self.pairs.iter().position(known) {
            Some(at) => at,
            None => {
                let Some(socket) = reach.target(to).and_then(open) else {
                    return;
                };
                self.make_room();
                self.pairs.push(Pair {
                    port,
                    to,
                    mac,
                    socket,
                    used: Instant::now(),
                });
                self.pairs.len() - 1
            }
        };
        let pair = &mut self.pairs[at];
        pair.mac = mac;
        pair.used = Instant::now();
        let _ = pair.socket.send(payload);
    }

    fn make_room(&mut self) {
        let oldest = self.pairs.iter().enumerate().min_by_key(|(_, p)| p.used);
        if let Some((at, _)) = oldest
            && self.pairs.len() >= MOST
        {
            self.pairs.swap_remove(at);
        }
    }

    /// Returns the answers that have arrived, as frames for the guest.
    pub(crate) fn answers(&mut self) -> Vec<Vec<u8>> {
        self.pairs.retain(|pair| pair.used.elapsed() < SILENT);
        let mut frames = Vec::new();
        // One byte more than the guest takes shows that a datagram is too large.
        let mut buffer = [0; LARGEST_PAYLOAD + 1];
        for pair in &mut self.pairs {
            for _ in 0..AT_ONCE {
                match pair.socket.recv(&mut buffer) {
                    Ok(length @ ..=LARGEST_PAYLOAD) => {
                        pair.used = Instant::now();
                        frames.push(pair.frame(&buffer[..length]));
                    }
                    Ok(_) => {}
                    Err(_) => break,
                }
            }
        }
        frames
    }
}

/// Opens a socket of the host that sends to a place and takes answers only from there.
fn open(to: SocketAddrV4) -> Option<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.set_nonblocking(true).ok()?;
    socket.connect(to).ok()?;
    Some(socket)
}

impl Pair {
    /// Returns an answer as a frame for the guest.
    fn frame(&self, payload: &[u8]) -> Vec<u8> {
        let sums = ChecksumCapabilities::default();
        let mut bytes = vec![0; HEADERS + payload.len()];
        let mut ethernet = EthernetFrame::new_unchecked(bytes.as_mut_slice());
        ethernet.set_src_addr(MAC);
        ethernet.set_dst_addr(self.mac);
        ethernet.set_ethertype(EthernetProtocol::Ipv4);
        let udp = UdpRepr {
            src_port: self.to.port(),
            dst_port: self.port,
        };
        let ip = Ipv4Repr {
            src_addr: *self.to.ip(),
            dst_addr: BOARD,
            next_header: IpProtocol::Udp,
            payload_len: udp.header_len() + payload.len(),
            hop_limit: 64,
        };
        let mut packet = Ipv4Packet::new_unchecked(ethernet.payload_mut());
        ip.emit(&mut packet, &sums);
        udp.emit(
            &mut UdpPacket::new_unchecked(packet.payload_mut()),
            &IpAddress::Ipv4(*self.to.ip()),
            &IpAddress::Ipv4(BOARD),
            payload.len(),
            |place| place.copy_from_slice(payload),
            &sums,
        );
        bytes
    }
}

#[cfg(test)]
impl Datagrams {
    /// Returns the number of pairs of ports.
    pub(crate) fn pairs(&self) -> usize {
        self.pairs.len()
    }
}
