// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the times between frames, and of a board with bad frames, bursts and a pulled cable.

use super::*;
use crate::boot::Recipe;
use crate::session::Session;
use base::boards;
use board::link::{Fate, Rate};

fn frame(way: Way, start_ns: u64, request: bool, number: u16) -> Frame {
    let repr = if request {
        Icmpv4Repr::EchoRequest {
            ident: 1,
            seq_no: number,
            data: b"x",
        }
    } else {
        Icmpv4Repr::EchoReply {
            ident: 1,
            seq_no: number,
            data: b"x",
        }
    };
    let mut bytes = vec![0; 34 + repr.buffer_len()];
    bytes[12] = 8;
    bytes[14] = 0x45;
    bytes[17] = 20 + repr.buffer_len() as u8;
    bytes[23] = 1;
    repr.emit(
        &mut Icmpv4Packet::new_unchecked(&mut bytes[34..]),
        &ChecksumCapabilities::default(),
    );
    Frame {
        way,
        start_ns,
        end_ns: start_ns,
        bytes,
        bad_checksum: false,
        fate: Fate::Taken,
    }
}

#[test]
fn a_reply_belongs_to_the_request_of_its_number_and_the_other_way() {
    let (to, from) = (Way::ToBoard, Way::FromBoard);
    let frames = [
        frame(to, 1_003, true, 1),
        frame(to, 2_000, true, 2),
        frame(from, 2_500, true, 3),
        frame(from, 3_019, false, 1),
        frame(to, 3_500, false, 3),
        frame(to, 4_000, false, 2),
    ];
    let times = |asker| round_trips(&frames, Question::Echo, asker);
    assert_eq!(times(to).ns, [2_010]);
    assert_eq!(times(from).ns, [1_000]);
    assert_eq!(
        round_trips(&frames, Question::Command, to),
        Times::default()
    );
}

/// Returns a packet from the program on the board, or a command to the program.
fn packet(way: Way, start_ns: u64, number: u16) -> Frame {
    let (from, to) = match way {
        Way::FromBoard => (BOARD_PORT, HOST_PORT),
        Way::ToBoard => (HOST_PORT, BOARD_PORT),
    };
    let mut frame = frame(way, start_ns, true, 0);
    frame.bytes.truncate(34);
    frame.bytes[17] = 30;
    frame.bytes[23] = 17;
    for half in [from, to, 10, 0, number] {
        frame.bytes.extend(half.to_be_bytes());
    }
    frame
}

#[test]
fn a_period_is_between_packets_of_the_program_with_numbers_in_a_row() {
    let (to, from) = (Way::ToBoard, Way::FromBoard);
    let frames = [
        packet(from, 1_000, 65_534),
        frame(from, 1_200, false, 65_535),
        packet(from, 1_500, 65_535),
        packet(to, 1_600, 0),
        packet(from, 2_007, 0),
        packet(from, 3_000, 2),
    ];
    let expected = Times {
        asked: 4,
        ns: vec![500, 500],
    };
    assert_eq!(periods(&frames), expected);
    let replies = round_trips(&frames, Question::Command, to);
    assert_eq!((replies.asked, replies.ns), (1, vec![400]));
}

/// A host with a list of extra actions, at times relative to its first frame.
struct Rough {
    host: Station,
    begin_ns: Option<u64>,
    todo: VecDeque<(u64, Deed)>,
}

#[derive(Clone)]
enum Deed {
    /// Sends frames of this length to this address, without pauses between the frames.
    Send {
        to: [u8; 6],
        frames: u64,
        bytes: usize,
        bad_checksum: bool,
    },
    Plug(Option<Rate>),
}

impl Peer for Rough {
    fn next_ns(&self) -> u64 {
        let deed = match (self.begin_ns, self.todo.front()) {
            (Some(begin), Some((after, _))) => begin + after,
            _ => u64::MAX,
        };
        deed.min(self.host.next_ns())
    }

    fn act(&mut self, cables: &mut Cables<'_>) {
        self.begin_ns.get_or_insert(cables.now_ns());
        self.host.act(cables);
        while let (Some(begin), Some((after, deed))) = (self.begin_ns, self.todo.front().cloned()) {
            if begin + after > cables.now_ns() {
                break;
            }
            self.todo.pop_front();
            match deed {
                Deed::Plug(rate) => cables.plug(rate),
                Deed::Send {
                    to,
                    frames,
                    bytes,
                    bad_checksum,
                } => {
                    for _ in 0..frames {
                        let mut frame = to.to_vec();
                        frame.extend([2, 0, 0, 0, 0, 2, 0x88, 0xb5]);
                        frame.resize(bytes, 0xa5);
                        cables.send_raw(begin + after, frame, bad_checksum);
                    }
                }
            }
        }
    }
}

const BOARDS_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Boots a board with the plain kernel to its prompt.
fn booted() -> Session {
    let board = boards::load("sam9263").unwrap().0;
    let boot = Recipe::of("plain").prepare(&board).unwrap().boot();
    let mut session = Session::boot(&board, 1, &boot).unwrap();
    session.cables().set_stop_on_frame(true);
    session
}

/// Returns a host with these actions, in milliseconds after the first frame.
fn rough(todo: &[(u64, Deed)]) -> Rough {
    let at_ns = |(ms, deed): &(u64, Deed)| (ms * 1_000_000, deed.clone());
    Rough {
        host: Station::new(None),
        begin_ns: None,
        todo: todo.iter().map(at_ns).collect(),
    }
}

/// The chip's filter must accept the groups that a guest joins. Linux itself joins 224.0.0.1. It joins 224.0.0.251, the
/// group of mDNS, only for a program.
#[test]
#[ignore = "needs the kernel"]
fn linux_is_given_frames_to_groups_that_it_has_joined_and_to_no_others() {
    let to_group = |last, frames| Deed::Send {
        to: [1, 0, 0x5e, 0, 0, last],
        frames,
        bytes: 60,
        bad_checksum: false,
    };
    let mut session = booted();
    let mut rough = rough(&[(100, to_group(1, 3)), (150, to_group(251, 2))]);
    let guest = "sh -c 'ip addr add 10.0.0.2/24 dev eth0; ip link set eth0 up; ping -c 1 10.0.0.1; \
        sleep 0.4; cd /sys/class/net/eth0/statistics; echo groups=$(cat multicast)'";
    let measured = session.run_guest_beside(guest, 60.0, &mut rough).unwrap();
    let said = String::from_utf8_lossy(&measured.console).into_owned();
    assert!(said.contains("groups=3"), "{said}");
    assert_eq!(session.link().to_board().filtered, 2);
}

#[test]
#[ignore = "needs the kernel"]
fn linux_survives_bad_frames_bursts_and_the_cable_pulled_out() {
    let mut session = booted();
    let send = |frames, bytes, bad_checksum| Deed::Send {
        to: BOARDS_MAC,
        frames,
        bytes,
        bad_checksum,
    };
    let todo = [
        (200, send(3, 100, true)),
        (210, send(4, 20, false)),
        (220, send(5, 1600, false)),
        (230, send(6, 9000, false)),
        (250, send(40, 60, false)),
        (300, Deed::Plug(None)),
        (350, send(7, 60, false)),
        (500, Deed::Plug(Some(Rate::Hundred))),
    ];
    let mut rough = rough(&todo);
    let guest = "sh -c 'ip addr add 10.0.0.2/24 dev eth0; ip link set eth0 up; ping -c 1 10.0.0.1; \
        sleep 0.4; cat /sys/class/net/eth0/carrier; sleep 0.6; cat /sys/class/net/eth0/carrier; \
        ping -c 2 10.0.0.1; cd /sys/class/net/eth0/statistics; echo errors=$(cat rx_crc_errors)'";
    let measured = session.run_guest_beside(guest, 60.0, &mut rough).unwrap();
    let said = String::from_utf8_lossy(&measured.console).into_owned();
    for part in [
        "\r\n0\r\n1\r\n",
        "2 packets received, 0% packet loss",
        "errors=3",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let tally = session.link().to_board();
    assert_eq!(tally.filtered, 4 + 5 + 6);
    assert_eq!(tally.no_link, 7);
    assert!(tally.no_room > 0, "the board holds fewer than 40 frames");
    // Two replies of ARP, because Linux forgets its neighbours without a link. Three replies of ping, three frames with
    // bad checksums, and the burst of 40 frames.
    assert_eq!(tally.taken + tally.no_room, 2 + 3 + 3 + 40);
}
