// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network between the guest and the world outside: user-mode networking, without rights on the host.
//!
//! Clients of the host reach ports of the guest ([`Forward`]). The guest reaches other machines by TCP and UDP through
//! sockets of this program, and the host's DNS resolver at [`DNS`]. The guest does not reach the host's loopback and
//! the host's own addresses, unless the user allows it.
//!
//! A run with this network depends on the world outside. Two such runs differ, so their results are never stored and
//! no snapshot is made of them.
//!
//! Not modelled: IPv6, fragments, ICMP to machines other than the host, and a DHCP server.

mod forward;
mod reach;
mod sort;
mod stack;
mod tcp;
mod udp;

pub use forward::Forward;
pub use reach::DNS;

use std::time::{Duration, Instant};

use anyhow::Result;
use board::instrument::Cables;
use board::{Machine, Stop};

use self::forward::Listening;
use self::reach::Reach;
use self::sort::Kind;
use self::stack::Stack;
use self::tcp::Connections;
use self::udp::Datagrams;
use crate::pace::Pace;
use crate::peer::{BOARD, Peer, THINKS_NS};
use base::interrupt;

/// Board time between two looks at the host's sockets, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;
/// Longest real time between two looks at the host's sockets.
const LOOK: Duration = Duration::from_millis(2);
/// While this many frames are on their way to the board, datagrams wait in the host's sockets.
const CROWDED: usize = 128;

/// The command line's options for the network.
#[derive(clap::Args, Clone, Default)]
#[group(id = "network")]
pub struct Options {
    /// Connect the guest to the host's network, and lead a TCP port of the host to a port of the guest, 10.0.0.2
    ///
    /// The host listens on 127.0.0.1 unless ADDR is given. PORT 0 is any free port. The guest reaches other machines
    /// through 10.0.0.1, and the host's DNS resolver at 10.0.0.3 (docs/use/GUESTS.md).
    #[arg(long, value_name = "[ADDR:]PORT:GUEST_PORT")]
    pub forward: Vec<Forward>,
    /// With --forward: let the guest reach the host's own addresses. The host's 127.0.0.1 is the guest's 10.0.0.1
    #[arg(long, requires = "forward")]
    pub host_loopback: bool,
}

impl Options {
    /// Opens the network, if the user asks for one. Call it before anything is built, so that a taken port is reported
    /// at once.
    ///
    /// # Errors
    /// Fails when a port of the host is taken.
    pub fn open(&self) -> Result<Option<Network>> {
        if self.forward.is_empty() {
            return Ok(None);
        }
        Network::open(&self.forward, self.host_loopback).map(Some)
    }
}

/// The network at the other end of the board's cable.
pub struct Network {
    stack: Stack,
    ports: Vec<Listening>,
    connections: Connections,
    datagrams: Datagrams,
    reach: Reach,
    /// Comparison of board time with real time. It starts with the board's first frame.
    pace: Option<Pace>,
    /// Real time and board time at which the board fell asleep.
    asleep: Option<(Instant, u64)>,
    /// Time of the stack's next work and of the next look at the host's sockets, in nanoseconds since power-on.
    wakes_ns: u64,
    looks_ns: u64,
    /// Number of frames from an address other than the board's.
    strangers: u64,
}

impl Network {
    /// Listens on the host's ports.
    ///
    /// # Errors
    /// Fails when a port is taken.
    pub fn open(forwards: &[Forward], host_loopback: bool) -> Result<Network> {
        let ports = forwards.iter().map(|forward| forward.listen());
        Ok(Network {
            ports: ports.collect::<Result<_>>()?,
            stack: Stack::new(),
            connections: Connections::new(),
            datagrams: Datagrams::default(),
            reach: Reach::new(host_loopback),
            pace: None,
            asleep: None,
            wakes_ns: u64::MAX,
            looks_ns: 0,
            strangers: 0,
        })
    }

    /// Connects the network to the board's cable. Prints the host's ports.
    pub fn plug(&self, cables: &mut Cables<'_>) {
        cables.set_stop_on_frame(true);
        for port in &self.ports {
            // Cannot fail: the socket listens.
            if let Ok(host) = port.listener.local_addr() {
                eprintln!("note: {host} leads to port {} of the guest", port.guest);
            }
        }
    }

    /// Runs the board until core cycle `cycle`, like [`Machine::run_until`], and moves frames meanwhile.
    pub fn run_until(&mut self, machine: &mut Machine, cycle: u64) -> Stop {
        loop {
            let due = machine.link().cycle(self.next_ns());
            let stop = machine.run_until(cycle.min(due));
            match stop {
                Stop::Frame => self.act(&mut machine.cables()),
                Stop::Limit if machine.now() >= due => self.act(&mut machine.cables()),
                stop => return stop,
            }
            if machine.now() >= cycle {
                return Stop::Limit;
            }
        }
    }

    /// Returns notes on what the network refused.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.connections.too_many > 0 {
            notes.push(format!(
                "the network refused {} connections, because {} were open",
                self.connections.too_many,
                tcp::MOST
            ));
        }
        if self.strangers > 0 {
            notes.push(format!(
                "the network ignored {} frames, because the guest sent them from an address other than {BOARD}",
                self.strangers
            ));
        }
        notes
    }

    /// Takes a frame of the guest that ended at `ns`.
    fn take(&mut self, frame: Vec<u8>, ns: u64) {
        self.pace.get_or_insert_with(|| Pace::new(ns as f64 / 1e9));
        let to_stack = match sort::sort(&frame) {
            Kind::Stack => Some(frame),
            Kind::Ignored => None,
            Kind::Stranger => {
                self.strangers += 1;
                None
            }
            Kind::Opens { port, to } => {
                self.connections
                    .opens((port, to), frame, &self.reach, &mut self.stack)
            }
            Kind::Datagram {
                mac,
                port,
                to,
                payload,
            } => {
                self.datagrams.send((mac, port), to, payload, &self.reach);
                None
            }
        };
        self.stack.queues.received.extend(to_stack);
        self.stack.poll(ns);
    }

    /// Looks at the host's sockets at `ns`. Leaves datagrams to later if the cable is crowded.
    fn look(&mut self, ns: u64, crowded: bool) {
        for port in &self.ports {
            self.connections.take_clients(port, &mut self.stack);
        }
        self.stack.poll(ns);
        self.connections.look(&mut self.stack);
        self.stack.poll(ns);
        if !crowded {
            self.stack.queues.sent.extend(self.datagrams.answers());
        }
        self.wakes_ns = self.stack.wakes_ns();
    }

    /// Looks at the host's sockets and sends the frames for the board from `ns` on.
    fn exchange(&mut self, ns: u64, cables: &mut Cables<'_>) {
        self.look(ns, cables.link().waiting() >= CROWDED);
        for frame in self.stack.queues.sent.drain(..) {
            cables.send(ns, frame);
        }
    }
}

impl Peer for Network {
    fn next_ns(&self) -> u64 {
        self.wakes_ns.min(self.looks_ns)
    }

    fn act(&mut self, cables: &mut Cables<'_>) {
        self.asleep = None;
        for frame in cables.received() {
            let after = frame.end_ns + THINKS_NS;
            self.take(frame.bytes, frame.end_ns);
            for answer in self.stack.queues.sent.drain(..) {
                cables.send(after, answer);
            }
        }
        let now_ns = cables.now_ns();
        if self.looks_ns <= now_ns {
            self.looks_ns = now_ns + LOOK_NS;
            if let Some(pace) = &mut self.pace {
                std::thread::sleep(pace.ahead(now_ns as f64 / 1e9).min(LOOK));
            }
        }
        self.exchange(now_ns, cables);
    }

    /// Waits a little. Time on the cable goes on in real time while the board sleeps.
    fn act_asleep(&mut self, cables: &mut Cables<'_>) -> bool {
        let (since, from_ns) = *self
            .asleep
            .get_or_insert_with(|| (Instant::now(), cables.now_ns()));
        std::thread::sleep(LOOK);
        let slept_ns = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.exchange(from_ns.saturating_add(slept_ns), cables);
        !interrupt::asked()
    }
}

#[cfg(test)]
mod tests;
