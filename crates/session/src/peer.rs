// SPDX-License-Identifier: MIT OR Apache-2.0
//! The peer at the other end of the board's network cable: a TCP/IP stack that answers, pings and sends commands.
//!
//! The peer runs outside the board and takes no board time. All its times are times on the cable, so equal boards and
//! plans give equal frames.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use board::instrument::Cables;
use board::link::{Frame, Rate, Way};
use board::random::Random;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, ChecksumCapabilities, Device, DeviceCapabilities, Medium};
use smoltcp::socket::{icmp, udp};
use smoltcp::time::Instant;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, Icmpv4Message, Icmpv4Packet, Icmpv4Repr,
    IpAddress, IpCidr, IpProtocol, Ipv4Packet, UdpPacket,
};

/// Address of the host, the peer.
pub const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Address of the board.
pub const BOARD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Hardware address of the host.
pub(crate) const MAC: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 2]);
/// Time from the last bit of a frame to the first bit of the answer, when the cable is free.
pub(crate) const THINKS_NS: u64 = 10_000;
/// Largest payload of a UDP packet in one frame, in bytes.
pub const LARGEST_PAYLOAD: usize = 1472;
const IDENT: u16 = 0x7773;
/// UDP port on which the board receives commands (guest/udp_reply).
const BOARD_PORT: u16 = 7000;
/// UDP port from which the host sends commands.
const HOST_PORT: u16 = 7001;

/// A device outside the board. The device acts at times that it chooses, and when a frame arrives.
pub trait Peer {
    /// Returns the time of the next action if no frame arrives, in nanoseconds since power-on.
    fn next_ns(&self) -> u64;
    /// Acts when the time has come or a frame has arrived.
    fn act(&mut self, cables: &mut Cables<'_>);

    /// Acts when the board sleeps and nothing on the board can wake it. Returns whether the peer may wake it later.
    fn act_asleep(&mut self, _: &mut Cables<'_>) -> bool {
        false
    }
}

/// No peer: nothing is connected to the cables.
pub struct NoPeer;

impl Peer for NoPeer {
    fn next_ns(&self) -> u64 {
        u64::MAX
    }

    fn act(&mut self, _: &mut Cables<'_>) {}
}

/// Kind of requests to the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// ICMP echo requests, which the board's kernel answers.
    Echo,
    /// Numbered UDP packets. A program on the board answers each packet with the packet's number.
    Command,
}

/// Requests that the host sends. Echo requests begin after the board's first frame, commands after the first packet of
/// a program on the board.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Time from one request to the next, in ns.
    pub interval_ns: u64,
    /// Largest random deviation of that time, shorter or longer, in ns.
    pub jitter_ns: u64,
    /// Seed of the deviations.
    pub seed: u64,
    /// Time in which requests are sent, in ns.
    pub duration_ns: u64,
    /// Kind of requests.
    pub question: Question,
    /// Bytes after the ICMP or UDP header.
    pub payload: usize,
    /// Whether an answer triggers the next request at once. If so, `interval_ns` applies only when no answer comes.
    pub flood: bool,
}

/// A station at the other end of the network cable.
pub struct Station {
    interface: Interface,
    queues: Queues,
    sockets: SocketSet<'static>,
    icmp: SocketHandle,
    udp: SocketHandle,
    plan: Option<Plan>,
    /// Time of the next request, and latest possible time of a request, in nanoseconds since power-on.
    pinging: Option<(u64, u64)>,
    random: Random,
    /// Time of the next poll of the TCP/IP stack, in nanoseconds since power-on.
    wakes_ns: u64,
    /// Number of sent requests.
    pub requests: u64,
    /// Number of requests dropped because the host's queue was full. The cable is too slow for these requests.
    pub not_sent: u64,
    /// Number of the board's answers.
    pub answers: u64,
}

/// The frames that a TCP/IP stack has not taken yet, and the frames that it made.
#[derive(Default)]
pub(crate) struct Queues {
    pub(crate) received: VecDeque<Vec<u8>>,
    pub(crate) sent: VecDeque<Vec<u8>>,
}

/// Converts nanoseconds since power-on to a time of the TCP/IP stack.
pub(crate) fn instant(ns: u64) -> Instant {
    Instant::from_micros((ns / 1000) as i64)
}

impl Station {
    /// Makes a host that answers requests, and sends the requests of `plan`.
    pub fn new(plan: Option<Plan>) -> Station {
        let mut queues = Queues::default();
        let config = Config::new(MAC.into());
        let mut interface = Interface::new(config, &mut queues, instant(0));
        interface.update_ip_addrs(|addresses| {
            // The list has room for one address.
            let _ = addresses.push(IpCidr::new(IpAddress::Ipv4(HOST), 24));
        });
        let buffer = || {
            let packets = vec![icmp::PacketMetadata::EMPTY; 64];
            icmp::PacketBuffer::new(packets, vec![0; 128 * 1024])
        };
        let mut sockets = SocketSet::new(Vec::new());
        let icmp = sockets.add(icmp::Socket::new(buffer(), buffer()));
        let socket = sockets.get_mut::<icmp::Socket<'_>>(icmp);
        // Cannot fail: a new socket can be bound to any identifier.
        let _ = socket.bind(icmp::Endpoint::Ident(IDENT));
        let buffer =
            || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 64], vec![0; 128 * 1024]);
        let udp = sockets.add(udp::Socket::new(buffer(), buffer()));
        // Cannot fail: a new socket can be bound to any port.
        let _ = sockets.get_mut::<udp::Socket<'_>>(udp).bind(HOST_PORT);
        Station {
            interface,
            queues,
            sockets,
            icmp,
            udp,
            plan,
            pinging: None,
            random: Random::new(plan.map_or(0, |plan| plan.seed)),
            wakes_ns: u64::MAX,
            requests: 0,
            not_sent: 0,
            answers: 0,
        }
    }

    fn request(&mut self, plan: Plan) {
        let sent = match plan.question {
            Question::Echo => self.echo(plan.payload),
            Question::Command => self.command(plan.payload),
        };
        *if sent {
            &mut self.requests
        } else {
            &mut self.not_sent
        } += 1;
    }

    fn command(&mut self, payload: usize) -> bool {
        let mut data = vec![0x77; payload.max(2)];
        data[..2].copy_from_slice(&(self.requests as u16).to_be_bytes());
        let socket = self.sockets.get_mut::<udp::Socket<'_>>(self.udp);
        let to = (IpAddress::Ipv4(BOARD), BOARD_PORT);
        socket.send_slice(&data, to).is_ok()
    }

    fn echo(&mut self, payload: usize) -> bool {
        let checksums = ChecksumCapabilities::default();
        let data = vec![0x77; payload];
        let repr = Icmpv4Repr::EchoRequest {
            ident: IDENT,
            seq_no: self.requests as u16,
            data: &data,
        };
        let socket = self.sockets.get_mut::<icmp::Socket<'_>>(self.icmp);
        match socket.send(repr.buffer_len(), IpAddress::Ipv4(BOARD)) {
            Ok(buffer) => {
                repr.emit(&mut Icmpv4Packet::new_unchecked(buffer), &checksums);
                true
            }
            Err(_) => false,
        }
    }

    /// Polls the stack at time `ns`. The frames that the stack makes are sent from `send_ns` on.
    fn work(&mut self, ns: u64, send_ns: u64, cables: &mut Cables<'_>) {
        let now = instant(ns);
        self.interface
            .poll(now, &mut self.queues, &mut self.sockets);
        let socket = self.sockets.get_mut::<icmp::Socket<'_>>(self.icmp);
        while socket.recv().is_ok() {
            self.answers += 1;
        }
        // A packet that a program sends before the first command is not an answer. Without commands, no packet is an
        // answer.
        let sends_commands = self
            .plan
            .is_some_and(|plan| plan.question == Question::Command);
        let is_answer = sends_commands && self.requests > 0;
        let socket = self.sockets.get_mut::<udp::Socket<'_>>(self.udp);
        while socket.recv().is_ok() {
            self.answers += u64::from(is_answer);
        }
        for frame in self.queues.sent.drain(..) {
            cables.send(send_ns, frame);
        }
        let wakes = self.interface.poll_at(now, &self.sockets);
        self.wakes_ns = wakes.map_or(u64::MAX, |at| {
            (at.total_micros() as u64 + 1).max(ns / 1000 + 1) * 1000
        });
    }
}

impl Peer for Station {
    fn next_ns(&self) -> u64 {
        let ping = self.pinging.map_or(u64::MAX, |(next, _)| next);
        self.wakes_ns.min(ping)
    }

    fn act(&mut self, cables: &mut Cables<'_>) {
        for frame in cables.received() {
            if let (None, Some(plan)) = (self.pinging, self.plan)
                && (plan.question == Question::Echo || from_program(&frame))
            {
                self.pinging = Some((
                    frame.end_ns + plan.interval_ns,
                    frame.end_ns + plan.duration_ns,
                ));
            }
            let (answers, after) = (self.answers, frame.end_ns + THINKS_NS);
            self.queues.received.push_back(frame.bytes);
            self.work(frame.end_ns, after, cables);
            if let (Some((_, last)), Some(Plan { flood: true, .. })) = (self.pinging, self.plan)
                && self.answers > answers
                && after <= last
            {
                self.pinging = Some((after, last));
            }
        }
        while let (Some((at, last)), Some(plan)) = (self.pinging, self.plan) {
            if at > cables.now_ns() {
                break;
            }
            self.request(plan);
            self.work(at, at, cables);
            let jitter = self.random.below(2 * plan.jitter_ns + 1);
            let next = at + plan.interval_ns + jitter - plan.jitter_ns;
            let over = next > last;
            self.pinging = Some((if over { u64::MAX } else { next }, last));
        }
        if self.wakes_ns <= cables.now_ns() {
            let at = self.wakes_ns;
            self.work(at, at, cables);
        }
    }
}

impl Device for Queues {
    type RxToken<'a> = Received;
    type TxToken<'a> = ToSend<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, ToSend<'_>)> {
        let frame = self.received.pop_front()?;
        Some((Received(frame), ToSend(&mut self.sent)))
    }

    fn transmit(&mut self, _: Instant) -> Option<ToSend<'_>> {
        Some(ToSend(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.max_transmission_unit = 1514;
        capabilities.medium = Medium::Ethernet;
        capabilities
    }
}

pub(crate) struct Received(Vec<u8>);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

pub(crate) struct ToSend<'a>(&'a mut VecDeque<Vec<u8>>);

impl phy::TxToken for ToSend<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut frame = vec![0; length];
        let result = fill(&mut frame);
        self.0.push_back(frame);
        result
    }
}

/// A request or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    asks: bool,
    question: Question,
    /// Sender's identifier and number of the request.
    number: (u16, u16),
}

fn part(frame: &Frame) -> Option<Part> {
    let ethernet = EthernetFrame::new_checked(frame.bytes.as_slice()).ok()?;
    if ethernet.ethertype() != EthernetProtocol::Ipv4 {
        return None;
    }
    let ip = Ipv4Packet::new_checked(ethernet.payload()).ok()?;
    match ip.next_header() {
        IpProtocol::Icmp => {
            let icmp = Icmpv4Packet::new_checked(ip.payload()).ok()?;
            let kind = icmp.msg_type();
            let echo = matches!(kind, Icmpv4Message::EchoRequest | Icmpv4Message::EchoReply);
            echo.then(|| Part {
                asks: kind == Icmpv4Message::EchoRequest,
                question: Question::Echo,
                number: (icmp.echo_ident(), icmp.echo_seq_no()),
            })
        }
        IpProtocol::Udp => {
            let udp = UdpPacket::new_checked(ip.payload()).ok()?;
            let number = udp.payload().first_chunk()?;
            let asks = udp.dst_port() == BOARD_PORT;
            (asks || udp.src_port() == BOARD_PORT).then(|| Part {
                asks,
                question: Question::Command,
                number: (BOARD_PORT, u16::from_be_bytes(*number)),
            })
        }
        _ => None,
    }
}

/// Returns whether a program on the board, rather than the kernel, sent the frame.
fn from_program(frame: &Frame) -> bool {
    let program = |part: Part| !part.asks && part.question == Question::Command;
    frame.way == Way::FromBoard && part(frame).is_some_and(program)
}

/// Times between frames, with a resolution of 10 ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Number of times that there would be if no packet were missing.
    pub asked: u64,
    /// Measured times in ns, ordered by their ends.
    pub ns: Vec<u64>,
}

/// Measures the time from each request's first bit to the first bit of its reply. `asker` is the direction of the
/// requests.
pub fn round_trips(frames: &[Frame], question: Question, asker: Way) -> Times {
    let mut asked: Vec<((u16, u16), u64)> = Vec::new();
    let mut times = Times::default();
    for frame in frames {
        let Some(part) = part(frame).filter(|part| part.question == question) else {
            continue;
        };
        if part.asks && frame.way == asker {
            times.asked += 1;
            asked.push((part.number, frame.stamp_ns()));
        } else if !part.asks
            && frame.way != asker
            && let Some(at) = asked.iter().rposition(|a| a.0 == part.number)
        {
            times.ns.push(frame.stamp_ns() - asked.remove(at).1);
        }
    }
    times
}

/// Measures the time from each packet of the program to the next packet. A missing packet leaves a gap, which gives no
/// time.
pub fn periods(frames: &[Frame]) -> Times {
    let mut times = Times::default();
    let mut last: Option<(u16, u64)> = None;
    for frame in frames.iter().filter(|frame| from_program(frame)) {
        let Some(Part { number, .. }) = part(frame) else {
            continue;
        };
        let (number, at) = (number.1, frame.stamp_ns());
        if let Some((before, since)) = last {
            let step = number.wrapping_sub(before);
            times.asked += u64::from(step);
            if step == 1 {
                times.ns.push(at - since);
            }
        }
        last = Some((number, at));
    }
    times
}

/// Returns the rate of a cable with `mbit` Mbit/s.
pub fn rate(mbit: u32) -> Option<Rate> {
    match mbit {
        10 => Some(Rate::Ten),
        100 => Some(Rate::Hundred),
        _ => None,
    }
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
