// SPDX-License-Identifier: MIT OR Apache-2.0
//! The full-duplex Ethernet cable between the board and a host. A frame takes the time of its bits, including
//! preamble, checksum and the gap after it. A probe can stamp frames.
//!
//! Times on the wire are nanoseconds since power-on. A bit takes a whole number of nanoseconds at 10 and at 100 Mbit/s.
//! A frame reaches the board's controller with its last bit. A bus master is told about the frame's first bit as well.
//! The cable adds no delay.

use crate::time::{self, Clock};
use arm::Damaged;
use std::collections::VecDeque;

arm::state!(Sent: start_ns, end_ns, bytes, bad_checksum);
arm::state!(Tally: taken, filtered, no_room, no_link; => check);
arm::state!(
    Link: free_ns, to_board, from_board; clock, rate, coming, arrived, probe, stop, tells_beginnings, has_begun
    => check
);

/// Preamble and start-of-frame delimiter, bytes.
const PREAMBLE: u64 = 8;
/// Checksum, bytes.
pub(crate) const CHECKSUM: usize = 4;
/// Gap after each frame, bytes.
const GAP: u64 = 12;
/// Shortest frame without its checksum, bytes.
pub const SHORTEST: usize = 60;
/// Resolution of the probe's time stamps, ns.
pub const STAMP_NS: u64 = 10;

/// Bit rate of the cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// 10 Mbit/s.
    Ten,
    /// 100 Mbit/s.
    Hundred,
}

impl Rate {
    /// Returns the nanoseconds that `bytes` bytes take.
    pub fn ns(self, bytes: u64) -> u64 {
        let bit = match self {
            Rate::Ten => 100,
            Rate::Hundred => 10,
        };
        bytes * 8 * bit
    }

    /// Returns the nanoseconds from the first bit of the preamble to the last bit of the checksum. `bytes` does not
    /// include preamble and checksum.
    pub fn frame_ns(self, bytes: usize) -> u64 {
        self.wire_ns(bytes + CHECKSUM)
    }

    /// Returns the nanoseconds of a frame with its preamble. `bytes` counts the checksum, if the frame has one.
    pub(crate) fn wire_ns(self, bytes: usize) -> u64 {
        self.ns(PREAMBLE + bytes as u64)
    }

    /// Returns the nanoseconds of the gap after a frame.
    pub fn gap_ns(self) -> u64 {
        self.ns(GAP)
    }
}

/// Direction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the host to the board.
    ToBoard,
    /// From the board to the host.
    FromBoard,
}

/// Fate of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The frame arrived.
    Taken,
    /// The receiver filtered the frame. The board's controller filters by length and address, and filters all frames
    /// while its receiver is off. The host filters by length and checksum.
    Filtered,
    /// The board's controller had no room for the frame.
    NoRoom,
    /// The receiver had no cable or no link.
    NoLink,
}

/// A frame on the wire, without preamble and checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Direction of the frame.
    pub way: Way,
    /// Time of the first bit of the preamble.
    pub start_ns: u64,
    /// Time after the last bit of the checksum.
    pub end_ns: u64,
    /// Contents, starting with the destination address.
    pub bytes: Vec<u8>,
    /// Whether the checksum is wrong.
    pub bad_checksum: bool,
    /// Fate of the frame.
    pub fate: Fate,
}

impl Frame {
    /// Returns the probe's time stamp, in steps of [`STAMP_NS`].
    pub fn stamp_ns(&self) -> u64 {
        self.start_ns / STAMP_NS * STAMP_NS
    }
}

/// A frame that a controller sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Time of the first bit of the preamble.
    pub start_ns: u64,
    /// Time after the last bit of the checksum.
    pub end_ns: u64,
    /// Contents, starting with the destination address.
    pub bytes: Vec<u8>,
    /// Whether the checksum is wrong.
    pub bad_checksum: bool,
}

/// Numbers of frames in one direction, by fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Frames that arrived.
    pub taken: u64,
    /// Frames that the receiver filtered.
    pub filtered: u64,
    /// Frames for which the board's controller had no room.
    pub no_room: u64,
    /// Frames whose receiver had no cable or no link.
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

    /// Refuses restored counts that no run reaches.
    fn check(&self) -> Result<(), Damaged> {
        time::check([self.taken, self.filtered, self.no_room, self.no_link])
    }

    /// Returns the number of all frames.
    pub fn all(&self) -> u64 {
        self.taken + self.filtered + self.no_room + self.no_link
    }
}

/// A tap in the cable that stamps every frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Frames, in the order of their ends.
    pub frames: Vec<Frame>,
    /// Number of frames that the probe lost because its memory was full.
    pub lost: u64,
    depth: usize,
}

/// The cable.
#[derive(Clone, Debug)]
pub struct Link {
    clock: Clock,
    rate: Option<Rate>,
    /// Frames that have not reached the board yet, in order.
    coming: VecDeque<Frame>,
    /// Time at which the wire to the board is free, ns.
    free_ns: u64,
    arrived: Vec<Frame>,
    to_board: Tally,
    from_board: Tally,
    probe: Option<Probe>,
    stop: bool,
    /// Whether the board's controller is told when the first bit of a frame arrives.
    tells_beginnings: bool,
    /// Whether the controller was told about the first frame in `coming`.
    has_begun: bool,
}

impl Link {
    /// Makes a cable at 100 Mbit/s.
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
            tells_beginnings: false,
            has_begun: false,
        }
    }

    /// Tells the board's controller when the first bit of a frame arrives.
    pub(crate) fn tell_beginnings(&mut self) {
        self.tells_beginnings = true;
    }

    /// Refuses a restored time that no run reaches.
    fn check(&self) -> Result<(), Damaged> {
        time::check([self.free_ns])
    }

    /// Returns whether the cable is in its initial state, apart from the record of past frames.
    pub(crate) fn is_bare(&self) -> bool {
        let nothing = self.coming.is_empty() && self.arrived.is_empty() && self.probe.is_none();
        nothing && self.rate == Some(Rate::Hundred) && !self.stop
    }

    /// Returns the cable's bit rate, if it is plugged in.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Returns the numbers of frames to the board.
    pub fn to_board(&self) -> Tally {
        self.to_board
    }

    /// Returns the numbers of frames from the board.
    pub fn from_board(&self) -> Tally {
        self.from_board
    }

    /// Returns the probe, if there is one.
    pub fn probe(&self) -> Option<&Probe> {
        self.probe.as_ref()
    }

    /// Returns the number of frames that have not reached the board yet.
    pub fn waiting(&self) -> usize {
        self.coming.len()
    }

    /// Converts a core cycle to nanoseconds.
    pub fn ns(&self, cycle: u64) -> u64 {
        self.clock.ticks(cycle)
    }

    /// Returns the first core cycle at nanosecond `ns`.
    pub fn cycle(&self, ns: u64) -> u64 {
        self.clock.cycles(ns)
    }

    /// Connects a probe that holds `depth` frames to the cable.
    pub(crate) fn tap(&mut self, depth: usize) {
        self.probe = Some(Probe {
            depth,
            ..Probe::default()
        });
    }

    /// Sets whether a run ends when the board has sent a frame.
    pub(crate) fn set_stop(&mut self, stop: bool) {
        self.stop = stop;
    }

    /// Plugs the cable in at this rate. Without a rate, unplugs it. Frames on the wire are lost.
    pub(crate) fn plug(&mut self, now: u64, rate: Option<Rate>) {
        self.rate = rate;
        self.free_ns = self.ns(now);
        self.has_begun = false;
        for _ in std::mem::take(&mut self.coming) {
            self.to_board.count(Fate::NoLink);
        }
    }

    /// Sends a frame of the host at `not_before_ns`, or as soon after that as the wire is free. With `pad`, pads a
    /// frame to at least [`SHORTEST`] bytes. Returns the time at which the frame starts, if there is a cable.
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

    /// Returns the first core cycle at which [`Link::next_beginning`] or [`Link::next_arrival`] has a frame to return.
    pub(crate) fn deadline(&self) -> u64 {
        let awaits_beginning = self.tells_beginnings && !self.has_begun;
        let first = self.coming.front().map(|frame| match awaits_beginning {
            true => frame.start_ns,
            false => frame.end_ns,
        });
        first.map_or(u64::MAX, |ns| self.cycle(ns))
    }

    /// Returns a frame whose first bit has reached the board by `now`, once, if the controller is told about it.
    pub(crate) fn next_beginning(&mut self, now: u64) -> Option<&Frame> {
        if !self.tells_beginnings || self.has_begun || self.deadline() > now {
            return None;
        }
        self.has_begun = true;
        self.coming.front()
    }

    /// Takes a frame whose last bit has reached the board by `now`. [`Link::next_beginning`] comes first.
    pub(crate) fn next_arrival(&mut self, now: u64) -> Option<Frame> {
        if self.deadline() > now {
            return None;
        }
        self.has_begun = false;
        self.coming.pop_front()
    }

    /// Records a frame to the board with its fate.
    pub(crate) fn given(&mut self, frame: Frame) {
        self.to_board.count(frame.fate);
        self.log(&frame);
    }

    /// Records a frame that the board sent. Returns whether the run must stop for the frame.
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

    /// Takes the frames that the host received since the last call. The cable keeps them only while runs stop for
    /// frames.
    pub(crate) fn take_arrived(&mut self) -> Vec<Frame> {
        std::mem::take(&mut self.arrived)
    }

    fn log(&mut self, frame: &Frame) {
        // Without a cable, the probe sees nothing.
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
        // 72 bytes of 80 ns take 5760 ns, which are 1036.8 cycles.
        assert_eq!(link.deadline(), 1037);
        assert_eq!(link.next_arrival(1036), None);
        assert_eq!(link.next_arrival(1037).unwrap().bytes.len(), 60);
        assert_eq!(link.deadline(), u64::MAX);
    }

    #[test]
    fn a_beginning_is_told_once_and_before_the_arrival() {
        let mut link = Link::new(1_000_000_000);
        link.tell_beginnings();
        link.send(100, vec![0; 60], true, false);
        link.send(100, vec![0; 60], true, false);
        for start in [100, 100 + 84 * 80] {
            assert_eq!(link.deadline(), start);
            assert_eq!(link.next_beginning(start - 1), None);
            assert_eq!(link.next_beginning(start).unwrap().start_ns, start);
            assert_eq!(link.next_beginning(start), None);
            assert_eq!(link.deadline(), start + 72 * 80);
            assert_eq!(link.next_arrival(start + 72 * 80 - 1), None);
            assert!(link.next_arrival(start + 72 * 80).is_some());
        }
        link.send(0, vec![0; 60], true, false);
        assert!(link.next_beginning(u64::MAX - 1).is_some());
        link.plug(0, Some(Rate::Hundred));
        assert_eq!(link.send(7, vec![0; 60], true, false), Some(7));
        assert!(link.next_beginning(7).is_some(), "another frame");
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
