// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Ethernet cable between the board and a host, full duplex: frames take the time that their bits
//! take, with preamble, checksum and the gap behind them, and a probe can stamp them.
//!
//! Times on the wire are nanoseconds since power-on, in which a bit is a whole number at 10 and
//! at 100 Mbit/s. A frame reaches the board's controller at its last bit. The cable is without length.

use crate::time::{self, Clock};
use arm::Damaged;
use std::collections::VecDeque;

arm::state!(Sent: start_ns, end_ns, bytes, bad_checksum);
arm::state!(Tally: taken, filtered, no_room, no_link; => check);
arm::state!(
    Link: free_ns, to_board, from_board; clock, rate, coming, arrived, probe, stop => check
);

/// Preamble and start of frame, bytes.
const PREAMBLE: u64 = 8;
/// Checksum, bytes.
pub(crate) const CHECKSUM: usize = 4;
/// Silence behind each frame, bytes.
const GAP: u64 = 12;
/// The shortest frame without its checksum.
pub const SHORTEST: usize = 60;
/// The resolution of the probe's stamps.
pub const STAMP_NS: u64 = 10;

/// How fast the cable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// 10 Mbit/s.
    Ten,
    /// 100 Mbit/s.
    Hundred,
}

impl Rate {
    /// Nanoseconds that `bytes` bytes take.
    pub fn ns(self, bytes: u64) -> u64 {
        let bit = match self {
            Rate::Ten => 100,
            Rate::Hundred => 10,
        };
        bytes * 8 * bit
    }

    /// From the first bit of the preamble to the last of the checksum, for a frame of `bytes`
    /// without both.
    pub fn frame_ns(self, bytes: usize) -> u64 {
        self.wire_ns(bytes + CHECKSUM)
    }

    /// The same for a frame of `bytes` with its checksum, if it has one.
    pub(crate) fn wire_ns(self, bytes: usize) -> u64 {
        self.ns(PREAMBLE + bytes as u64)
    }

    /// The gap behind a frame.
    pub fn gap_ns(self) -> u64 {
        self.ns(GAP)
    }
}

/// Which way a frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the host to the board.
    ToBoard,
    /// From the board to the host.
    FromBoard,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrived.
    Taken,
    /// The controller at its end was not to take it: its length; of the board's also its address, or the receiver
    /// is off; of the host's its checksum.
    Filtered,
    /// The board's controller had no room for it.
    NoRoom,
    /// There was no cable, or no link, at its end.
    NoLink,
}

/// A frame on the wire, without preamble and checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Which way it went.
    pub way: Way,
    /// First bit of the preamble.
    pub start_ns: u64,
    /// Behind the last bit of the checksum.
    pub end_ns: u64,
    /// From the destination's address on.
    pub bytes: Vec<u8>,
    /// Its checksum is wrong.
    pub bad_checksum: bool,
    /// What became of it.
    pub fate: Fate,
}

impl Frame {
    /// The probe's stamp, in steps of [`STAMP_NS`].
    pub fn stamp_ns(&self) -> u64 {
        self.start_ns / STAMP_NS * STAMP_NS
    }
}

/// A frame as a controller sent it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// First bit of the preamble.
    pub start_ns: u64,
    /// Behind the last bit of the checksum.
    pub end_ns: u64,
    /// From the destination's address on.
    pub bytes: Vec<u8>,
    /// Its checksum is wrong.
    pub bad_checksum: bool,
}

/// How many frames went one way, by fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// That arrived.
    pub taken: u64,
    /// That the controller was not to take.
    pub filtered: u64,
    /// For which the controller had no room.
    pub no_room: u64,
    /// For which there was no cable or link.
    pub no_link: u64,
}

impl Tally {
    fn count(&mut self, fate: Fate) {
        *match fate {
            Fate::Taken => &mut self.taken,
            Fate::Filtered => &mut self.filtered,
            Fate::NoRoom => &mut self.no_room,
            Fate::NoLink => &mut self.no_link,
        } += 1;
    }

    /// What was restored may be no counts.
    fn check(&self) -> Result<(), Damaged> {
        time::check([self.taken, self.filtered, self.no_room, self.no_link])
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.taken + self.filtered + self.no_room + self.no_link
    }
}

/// A tap in the cable that stamps every frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// In the order in which they ended.
    pub frames: Vec<Frame>,
    /// Frames that found its memory full.
    pub lost: u64,
    depth: usize,
}

/// The cable.
#[derive(Clone, Debug)]
pub struct Link {
    clock: Clock,
    rate: Option<Rate>,
    /// Towards the board, in their order.
    coming: VecDeque<Frame>,
    /// When the wire towards the board is free.
    free_ns: u64,
    arrived: Vec<Frame>,
    to_board: Tally,
    from_board: Tally,
    probe: Option<Probe>,
    stop: bool,
}

impl Link {
    /// A cable at 100 Mbit/s.
    pub(crate) fn new(cpu_hz: u64) -> Link {
        Link {
            clock: Clock {
                cpu_hz,
                hz: 1_000_000_000,
            },
            rate: Some(Rate::Hundred),
            coming: VecDeque::new(),
            free_ns: 0,
            arrived: Vec::new(),
            to_board: Tally::default(),
            from_board: Tally::default(),
            probe: None,
            stop: false,
        }
    }

    /// What was restored may be no time.
    fn check(&self) -> Result<(), Damaged> {
        time::check([self.free_ns])
    }

    /// Whether it is as it was made, but for what went by.
    pub(crate) fn is_bare(&self) -> bool {
        let nothing = self.coming.is_empty() && self.arrived.is_empty() && self.probe.is_none();
        nothing && self.rate == Some(Rate::Hundred) && !self.stop
    }

    /// The cable's speed, if it is plugged in.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Frames towards the board, by fate.
    pub fn to_board(&self) -> Tally {
        self.to_board
    }

    /// Frames from the board, by fate.
    pub fn from_board(&self) -> Tally {
        self.from_board
    }

    /// The probe, when there is one.
    pub fn probe(&self) -> Option<&Probe> {
        self.probe.as_ref()
    }

    /// Frames towards the board that are not there yet.
    pub fn waiting(&self) -> usize {
        self.coming.len()
    }

    /// Nanoseconds at core cycle `cycle`.
    pub fn ns(&self, cycle: u64) -> u64 {
        self.clock.ticks(cycle)
    }

    /// The first core cycle at nanosecond `ns`.
    pub fn cycle(&self, ns: u64) -> u64 {
        self.clock.cycles(ns)
    }

    /// Puts a probe of that many frames into the cable.
    pub(crate) fn tap(&mut self, depth: usize) {
        self.probe = Some(Probe {
            depth,
            ..Probe::default()
        });
    }

    /// Whether a run ends when the board has sent a frame.
    pub(crate) fn set_stop(&mut self, stop: bool) {
        self.stop = stop;
    }

    /// Plugs in or out. What is on its way then is lost.
    pub(crate) fn plug(&mut self, now: u64, rate: Option<Rate>) {
        self.rate = rate;
        self.free_ns = self.ns(now);
        for _ in std::mem::take(&mut self.coming) {
            self.to_board.count(Fate::NoLink);
        }
    }

    /// The host sends: at `not_before_ns`, or as soon as the wire is free. Shorter frames than the
    /// shortest are filled up when `pad`; when the frame starts.
    pub(crate) fn send(
        &mut self,
        not_before_ns: u64,
        mut bytes: Vec<u8>,
        pad: bool,
        bad_checksum: bool,
    ) -> Option<u64> {
        let Some(rate) = self.rate else {
            self.to_board.count(Fate::NoLink);
            return None;
        };
        if pad && bytes.len() < SHORTEST {
            bytes.resize(SHORTEST, 0);
        }
        let start_ns = not_before_ns.max(self.free_ns);
        let end_ns = start_ns + rate.frame_ns(bytes.len());
        self.free_ns = end_ns + rate.gap_ns();
        self.coming.push_back(Frame {
            way: Way::ToBoard,
            start_ns,
            end_ns,
            bytes,
            bad_checksum,
            fate: Fate::Taken,
        });
        Some(start_ns)
    }

    /// When [`Link::next_arrival`] has something.
    pub(crate) fn deadline(&self) -> u64 {
        let first = self.coming.front();
        first.map_or(u64::MAX, |frame| self.cycle(frame.end_ns))
    }

    /// A frame whose last bit is at the board at `now`.
    pub(crate) fn next_arrival(&mut self, now: u64) -> Option<Frame> {
        if self.deadline() > now {
            return None;
        }
        self.coming.pop_front()
    }

    /// What became of a frame towards the board.
    pub(crate) fn given(&mut self, frame: Frame) {
        self.to_board.count(frame.fate);
        self.log(&frame);
    }

    /// The board sent a frame. True when the run is to stop for it.
    pub(crate) fn sent(&mut self, sent: Sent) -> bool {
        let fate = match self.rate {
            Some(_) if sent.bad_checksum || sent.bytes.len() < SHORTEST => Fate::Filtered,
            Some(_) => Fate::Taken,
            None => Fate::NoLink,
        };
        let frame = Frame {
            way: Way::FromBoard,
            start_ns: sent.start_ns,
            end_ns: sent.end_ns,
            bytes: sent.bytes,
            bad_checksum: sent.bad_checksum,
            fate,
        };
        self.from_board.count(fate);
        self.log(&frame);
        if self.stop && fate == Fate::Taken {
            self.arrived.push(frame);
        }
        self.stop && fate == Fate::Taken
    }

    /// Frames for the host since the last call; kept only while runs stop for them.
    pub(crate) fn take_arrived(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.arrived)
    }

    fn log(&mut self, frame: &Frame) {
        // Without a cable there is nothing that the probe could see.
        if frame.fate == Fate::NoLink {
            return;
        }
        match &mut self.probe {
            Some(probe) if probe.frames.len() < probe.depth => probe.frames.push(frame.clone()),
            Some(probe) => probe.lost += 1,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_take_the_time_of_their_bits_to_the_nanosecond() {
        for (rate, bit) in [(Rate::Ten, 100), (Rate::Hundred, 10)] {
            for bytes in [60usize, 61, 1514] {
                let mut link = Link::new(180_000_000);
                link.plug(0, Some(rate));
                let first = link.send(1_000, vec![0; bytes], true, false);
                let second = link.send(1_000, vec![0; bytes], true, false);
                let bits = (8 + bytes as u64 + 4) * 8;
                assert_eq!(first, Some(1_000));
                assert_eq!(second, Some(1_000 + (bits + 96) * bit));
                let frame = link.next_arrival(u64::MAX - 1).unwrap();
                assert_eq!(frame.end_ns - frame.start_ns, bits * bit);
            }
        }
    }

    #[test]
    fn a_frame_arrives_with_its_last_bit() {
        let mut link = Link::new(180_000_000);
        link.send(0, vec![0; 20], true, false);
        // 72 bytes of 80 ns are 5760 ns, 1036.8 cycles.
        assert_eq!(link.deadline(), 1037);
        assert_eq!(link.next_arrival(1036), None);
        assert_eq!(link.next_arrival(1037).unwrap().bytes.len(), 60);
        assert_eq!(link.deadline(), u64::MAX);
    }

    #[test]
    fn the_probe_counts_what_it_cannot_hold() {
        let mut link = Link::new(1_000_000_000);
        link.tap(2);
        for n in 0..5 {
            link.send(n * 12_345, vec![0; 60], true, false);
        }
        while let Some(frame) = link.next_arrival(u64::MAX - 1) {
            link.given(frame);
        }
        let probe = link.probe().unwrap();
        assert_eq!((probe.frames.len(), probe.lost), (2, 3));
        assert_eq!(probe.frames[1].start_ns, 12_345);
        assert_eq!(probe.frames[1].stamp_ns(), 12_340);
    }

    #[test]
    fn only_a_cable_with_nothing_on_it_is_bare() {
        let bare = || Link::new(1_000_000_000);
        assert!(bare().is_bare());
        let changes: [fn(&mut Link); 5] = [
            |link| link.tap(1),
            |link| link.set_stop(true),
            |link| link.plug(0, None),
            |link| link.plug(0, Some(Rate::Ten)),
            |link| assert_eq!(link.send(7, vec![0; 60], true, false), Some(7)),
        ];
        for change in changes {
            let mut link = bare();
            change(&mut link);
            assert!(!link.is_bare());
        }
    }

    #[test]
    fn without_a_cable_frames_are_lost_and_counted() {
        let mut link = Link::new(1_000_000_000);
        link.tap(9);
        link.send(0, vec![0; 60], true, false);
        link.plug(100, None);
        assert_eq!(link.deadline(), u64::MAX);
        assert_eq!(link.send(200, vec![0; 60], true, false), None);
        assert_eq!(link.to_board().no_link, 2);
        let sent = Sent {
            start_ns: 300,
            end_ns: 6_060,
            bytes: vec![0; 60],
            bad_checksum: false,
        };
        assert!(!link.sent(sent));
        assert_eq!((link.from_board().no_link, link.from_board().all()), (1, 1));
        assert!(link.probe().unwrap().frames.is_empty());
    }
}
