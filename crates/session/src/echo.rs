// SPDX-License-Identifier: MIT OR Apache-2.0
//! A peer that sends every UDP packet back to its sender. A program on the board compares what it receives with what it
//! sent, so both directions of the network are checked.
//!
//! The peer answers ARP requests for [`HOST`]. It exchanges the addresses and the ports of a UDP packet. The exchange
//! changes no checksum, so the board finds a packet that came damaged. Frames of other kinds, fragments and packets to
//! other addresses are dropped.

use board::instrument::Cables;

use crate::peer::{HOST, MAC, Peer, THINKS_NS};

/// Length of an Ethernet header, in bytes.
const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const ARP: [u8; 2] = [0x08, 0x06];
const UDP: u8 = 17;
/// The first 8 bytes of an ARP request from Ethernet to IPv4.
const ARP_REQUEST: [u8; 8] = [0, 1, 8, 0, 6, 4, 0, 1];
/// Last byte of the operation of an ARP reply.
const ARP_REPLY: u8 = 2;

/// The peer. It keeps nothing between two frames.
pub struct Echo;

impl Peer for Echo {
    fn next_ns(&self) -> u64 {
        u64::MAX
    }

    fn act(&mut self, cables: &mut Cables<'_>) {
        for frame in cables.received() {
            if let Some(answer) = answer(&frame.bytes) {
                cables.send(frame.end_ns + THINKS_NS, answer);
            }
        }
    }
}

/// Returns the answer to a frame, if the peer answers it.
fn answer(frame: &[u8]) -> Option<Vec<u8>> {
    let kind = frame.get(12..ETHERNET)?;
    if kind == IPV4 {
        return back(frame);
    }
    (kind == ARP).then(|| told(frame)).flatten()
}

/// Returns the answer to an ARP request for the peer's address.
fn told(frame: &[u8]) -> Option<Vec<u8>> {
    let request: [u8; 28] = frame.get(ETHERNET..ETHERNET + 28)?.try_into().ok()?;
    if request[..8] != ARP_REQUEST || request[24..] != HOST.octets() {
        return None;
    }
    let mut reply = frame.to_vec();
    reply[..6].copy_from_slice(&request[8..14]);
    reply[6..12].copy_from_slice(MAC.as_bytes());
    let body = &mut reply[ETHERNET..];
    body[7] = ARP_REPLY;
    body[8..14].copy_from_slice(MAC.as_bytes());
    body[14..18].copy_from_slice(&HOST.octets());
    body[18..28].copy_from_slice(&request[8..18]);
    Some(reply)
}

/// Returns a UDP packet with its addresses and ports exchanged.
fn back(frame: &[u8]) -> Option<Vec<u8>> {
    let ip = frame.get(ETHERNET..)?;
    let header = usize::from(ip.first()? & 0xf) * 4;
    let is_version_4 = ip.first()? >> 4 == 4;
    let is_whole = ip.get(6)? & 0x3f == 0 && *ip.get(7)? == 0;
    let is_here = ip.get(16..20)? == HOST.octets();
    let has_ports = header >= 20 && ip.len() >= header + 8;
    if !(is_version_4 && is_whole && is_here && has_ports && *ip.get(9)? == UDP) {
        return None;
    }
    let mut echo = frame.to_vec();
    exchange(&mut echo, 0, 6);
    exchange(&mut echo, ETHERNET + 12, 4);
    exchange(&mut echo, ETHERNET + header, 2);
    Some(echo)
}

/// Exchanges two fields of `len` bytes, of which the first begins at `at`.
fn exchange(bytes: &mut [u8], at: usize, len: usize) {
    let (first, second) = bytes[at..at + 2 * len].split_at_mut(len);
    first.swap_with_slice(second);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::BOARD;

    const BOARD_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn frame(to: [u8; 6], kind: [u8; 2], body: &[u8]) -> Vec<u8> {
        [&to[..], &BOARD_MAC, &kind, body].concat()
    }

    fn packet(payload: &[u8]) -> Vec<u8> {
        let (length, udp) = (28 + payload.len() as u16, 8 + payload.len() as u16);
        let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, UDP, 0, 0];
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        ip.extend(BOARD.octets());
        ip.extend(HOST.octets());
        ip.extend([0x12, 0x34, 0x56, 0x78]);
        ip.extend(udp.to_be_bytes());
        ip.extend([0, 0]);
        ip.extend(payload);
        frame(MAC.0, IPV4, &ip)
    }

    #[test]
    fn a_packet_comes_back_from_the_addressee_with_the_same_payload() {
        let sent = packet(b"payload");
        let echo = answer(&sent).unwrap();
        assert_eq!((&echo[..6], &echo[6..12]), (&BOARD_MAC[..], &MAC.0[..]));
        assert_eq!(echo[26..30], HOST.octets());
        assert_eq!(echo[30..34], BOARD.octets());
        assert_eq!(echo[34..38], [0x56, 0x78, 0x12, 0x34]);
        assert_eq!(echo[38..], sent[38..]);
        assert_eq!(echo[14..26], sent[14..26]);
    }

    #[test]
    fn an_arp_request_for_the_host_is_answered() {
        let mut body = ARP_REQUEST.to_vec();
        body.extend(BOARD_MAC);
        body.extend(BOARD.octets());
        body.extend([0; 6]);
        body.extend(HOST.octets());
        let reply = answer(&frame([0xff; 6], ARP, &body)).unwrap();
        assert_eq!(reply[..12], [&BOARD_MAC[..], &MAC.0[..]].concat());
        assert_eq!(reply[20..22], [0, 2]);
        assert_eq!(reply[22..32], [&MAC.0[..], &HOST.octets()].concat());
        assert_eq!(reply[32..42], [&BOARD_MAC[..], &BOARD.octets()].concat());
        let last = body.len() - 1;
        body[last] = 9;
        assert_eq!(answer(&frame([0xff; 6], ARP, &body)), None);
    }

    #[test]
    fn short_and_strange_frames_are_dropped() {
        let whole = packet(b"");
        for length in 0..whole.len() {
            assert_eq!(answer(&whole[..length]), None, "{length}");
        }
        for (at, value) in [
            (14, 0x4f),
            (14, 0x41),
            (14, 0x65),
            (20, 0x20),
            (21, 1),
            (23, 6),
            (33, 9),
        ] {
            let mut strange = whole.clone();
            strange[at] = value;
            assert_eq!(answer(&strange), None, "{at}");
        }
    }
}
