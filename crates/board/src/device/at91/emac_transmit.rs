// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transmission of the EMAC: reads frames from memory by a ring of descriptors and puts them on the wire.
//!
//! A frame has one buffer or more, each with a descriptor. The EMAC reads a descriptor, then its data in bursts, and at
//! the frame's end writes the status to the frame's first descriptor only. Transmission goes on until the EMAC reads a
//! descriptor that is marked as used. Then the queue pointer stays at this descriptor, and transmission continues there
//! when it is started again. An error returns the queue pointer to the beginning of the ring, as does TE = 0.
//!
//! The preamble begins when the first descriptor is read, or after the gap behind the previous frame. If transmission is
//! cut off, the part that is on the wire is a frame with a wrong checksum.

use super::super::emac_fetch::{BURST, Leaving};
use super::super::emac_queue::Queue;
use super::super::emac_statistics::{SENT, UNDERRUNS};
use super::{
    Emac, INT_BUS_ERROR, INT_SENT, INT_TX_ERROR, INT_TX_USED, INT_UNDERRUN, TSR_COMPLETE,
    TSR_EXHAUSTED, TSR_UNDERRUN, TSR_USED,
};
use crate::bus::dma::{Memory, Purpose};
use crate::device::fcs;
use crate::link::{CHECKSUM, SHORTEST, Sent};
use crate::time;
use arm::Damaged;

const LENGTH: u32 = 0x7ff;
const LAST: u32 = 1 << 15;
const NO_CHECKSUM: u32 = 1 << 16;
const EXHAUSTED: u32 = 1 << 27;
const UNDERRUN: u32 = 1 << 28;
const WRAP: u32 = 1 << 30;
const USED: u32 = 1 << 31;
/// Most buffers of a frame.
const BUFFERS: u32 = 128;
/// Bytes of data that the buffers of a frame can hold.
const LONGEST: usize = (BUFFERS * LENGTH) as usize;

/// What the EMAC does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// Nothing.
    #[default]
    Wait,
    /// Reads a descriptor.
    Descriptor,
    /// Reads data.
    Data,
    /// Writes the status, as the frame has left.
    Status,
}

arm::state!(enum Step: Wait, Descriptor, Data, Status);

/// The frame that is sent, and the queue.
#[derive(Clone, Debug)]
pub(super) struct Transmit {
    pub(super) queue: Queue,
    step: Step,
    /// Core cycle of the next step.
    due: u64,
    /// Whether transmission ends after the current frame.
    halts: bool,
    /// Address and second word of the frame's first descriptor.
    first: u32,
    control: u32,
    /// Number of descriptors of the frame that were read. 0 between frames.
    buffers: u32,
    /// The current buffer: address of its next byte, bytes left, and the marks in its descriptor.
    address: u32,
    left: u32,
    is_last: bool,
    wraps: bool,
    frame: Vec<u8>,
    start_ns: u64,
    end_ns: u64,
    byte_ns: u64,
    /// Time at which the wire is free, after the gap.
    free_ns: u64,
}

arm::state!(
    Transmit: queue, step, due, halts, first, control, buffers, address, left, is_last, wraps, frame, start_ns,
    end_ns, byte_ns, free_ns; => check
);

impl Default for Transmit {
    fn default() -> Transmit {
        Transmit {
            queue: Queue::default(),
            step: Step::Wait,
            due: u64::MAX,
            halts: false,
            first: 0,
            control: 0,
            buffers: 0,
            address: 0,
            left: 0,
            is_last: false,
            wraps: false,
            frame: Vec::new(),
            start_ns: 0,
            end_ns: 0,
            byte_ns: 80,
            free_ns: 0,
        }
    }
}

impl Transmit {
    /// Refuses restored state that transmission cannot reach.
    fn check(&self) -> Result<(), Damaged> {
        time::check([self.start_ns, self.end_ns, self.free_ns])?;
        let fits = self.left <= LENGTH && self.buffers <= BUFFERS && self.frame.len() <= LONGEST;
        let room = LENGTH as usize * (BUFFERS - self.buffers.min(BUFFERS)) as usize;
        let has_room = self.frame.len() + self.left as usize + room <= LONGEST;
        let waits = (self.step == Step::Wait) == (self.due == u64::MAX);
        match fits && has_room && waits && [80, 800].contains(&self.byte_ns) {
            true => Ok(()),
            false => Err(Damaged("the Ethernet controller cannot send such a frame")),
        }
    }

    /// Returns the core cycle of the next step.
    pub(super) fn due(&self) -> u64 {
        self.due
    }

    /// Returns whether transmission is active.
    pub(super) fn is_going(&self) -> bool {
        self.step != Step::Wait
    }

    /// Starts transmission at the queue pointer, unless it is active.
    pub(super) fn start(&mut self, now: u64) {
        if self.step == Step::Wait {
            self.next(Step::Descriptor, now);
        }
    }

    /// Ends transmission after the frame that is on the wire.
    pub(super) fn halt(&mut self) {
        match self.buffers {
            0 => self.wait(),
            _ => self.halts = true,
        }
    }

    /// Begins a frame with one buffer and without a descriptor.
    pub(super) fn begin(
        &mut self,
        address: u32,
        length: u32,
        has_checksum: bool,
        byte_ns: u64,
        now_ns: u64,
    ) {
        self.control = if has_checksum { NO_CHECKSUM } else { 0 };
        self.buffers = 1;
        (self.address, self.left) = (address, length & LENGTH);
        (self.is_last, self.wraps) = (true, false);
        self.byte_ns = byte_ns;
        self.start_ns = now_ns.max(self.free_ns);
    }

    /// Sets the time at which the frame's data are fetched.
    pub(super) fn continue_at(&mut self, now: u64) {
        self.next(Step::Data, now);
    }

    /// Returns the bytes of the current buffer that are not fetched yet.
    pub(super) fn unfetched(&self) -> u32 {
        self.left
    }

    fn next(&mut self, step: Step, due: u64) {
        // The largest number stands for no step.
        (self.step, self.due) = (step, due.min(u64::MAX - 1));
    }

    fn wait(&mut self) {
        self.buffers = 0;
        self.left = 0;
        self.halts = false;
        self.frame.clear();
        (self.step, self.due) = (Step::Wait, u64::MAX);
    }
}

impl Emac {
    /// Gives the transmitter another ring. Cuts off the frame on the wire.
    pub(super) fn set_transmit_queue(&mut self, now: u64, base: u32) {
        if self.transmit.buffers != 0 {
            self.tsr |= TSR_UNDERRUN;
            self.raise(INT_UNDERRUN);
        }
        self.cut_off(now);
        self.transmit.queue.set(base);
    }

    /// Disables transmission. Cuts off the frame on the wire.
    pub(super) fn stop_transmit(&mut self, now: u64) {
        self.direct.stop();
        self.cut_off(now);
        self.transmit.queue.restart();
    }

    fn cut_off(&mut self, now: u64) {
        let end_ns = self.clock.ticks(now);
        let transmit = &mut self.transmit;
        if transmit.buffers != 0 && transmit.start_ns < end_ns {
            transmit.free_ns = end_ns + self.phy.rate().gap_ns();
            let frame = Sent {
                start_ns: transmit.start_ns,
                end_ns,
                bytes: std::mem::take(&mut transmit.frame),
                bad_checksum: true,
            };
            if self.phy.passes() {
                self.sent.push(frame);
            }
        }
        self.transmit.wait();
    }

    /// Does the next step, which is due.
    pub(super) fn transmit_step(&mut self, memory: &mut Memory<'_>) {
        match self.transmit.step {
            Step::Wait => self.transmit.wait(),
            Step::Descriptor => self.read_descriptor(memory),
            Step::Data => self.read_data(memory),
            Step::Status => self.finish(memory),
        }
    }

    fn read_descriptor(&mut self, memory: &mut Memory<'_>) {
        let at = self.transmit.queue.pointer();
        let mut bytes = [0; 8];
        memory.set_purpose(Purpose::Descriptor(self.transmit.queue.number()));
        if memory.read(at, &mut bytes).is_err() {
            return self.transmit_bus_error(memory);
        }
        let descriptor = u64::from_le_bytes(bytes);
        let control = (descriptor >> 32) as u32;
        let is_first = self.transmit.buffers == 0;
        if control & USED != 0 {
            self.tsr |= TSR_USED;
            self.raise(INT_TX_USED);
        }
        match (control & USED != 0, is_first) {
            (true, true) => return self.transmit.wait(),
            (true, false) => return self.transmit_exhausted(memory),
            (false, _) if self.transmit.buffers == BUFFERS => {
                return self.transmit_exhausted(memory);
            }
            _ => {}
        }
        let rate = self.phy.rate();
        let transmit = &mut self.transmit;
        if is_first {
            (transmit.first, transmit.control) = (at, control);
            transmit.byte_ns = rate.ns(1);
            transmit.start_ns = self.clock.ticks(memory.now()).max(transmit.free_ns);
        }
        transmit.buffers += 1;
        transmit.address = descriptor as u32;
        transmit.left = control & LENGTH;
        transmit.is_last = control & LAST != 0;
        transmit.wraps = control & WRAP != 0;
        self.continue_buffer(memory);
    }

    /// Reads a burst. Linux gives addresses of bytes, and the first burst ends at the end of a word.
    fn read_data(&mut self, memory: &mut Memory<'_>) {
        let transmit = &mut self.transmit;
        let count = transmit.left.min(BURST - (transmit.address & 3));
        let mut bytes = [0; BURST as usize];
        let bytes = &mut bytes[..count as usize];
        memory.set_purpose(Purpose::Buffer(transmit.queue.number()));
        if memory.read(transmit.address, bytes).is_err() {
            return self.transmit_bus_error(memory);
        }
        transmit.frame.extend_from_slice(bytes);
        transmit.address = transmit.address.wrapping_add(count);
        transmit.left -= count;
        self.continue_buffer(memory);
    }

    /// Chooses the next step after a descriptor or a burst.
    fn continue_buffer(&mut self, memory: &Memory<'_>) {
        let now = memory.now();
        let transmit = &mut self.transmit;
        if transmit.left > 0 {
            let leaving = Leaving {
                fetched: transmit.frame.len() as u64,
                start_ns: transmit.start_ns,
                byte_ns: transmit.byte_ns,
            };
            let moment = self.fetch.moment(self.clock.ticks(now), leaving);
            let due = self.clock.cycles(moment);
            return transmit.next(Step::Data, due);
        }
        let wraps = transmit.wraps;
        transmit.queue.advance(wraps);
        if !transmit.is_last {
            return transmit.next(Step::Descriptor, now);
        }
        let data = transmit.frame.len();
        let bytes = match transmit.control & NO_CHECKSUM {
            0 => data.max(SHORTEST) + CHECKSUM,
            _ => data,
        };
        // The preamble has 8 bytes.
        transmit.end_ns = transmit.start_ns + transmit.byte_ns * (8 + bytes as u64);
        transmit.next(Step::Status, self.clock.cycles(transmit.end_ns));
    }

    /// Ends a frame whose last bit has left.
    fn finish(&mut self, memory: &mut Memory<'_>) {
        let passes = self.phy.passes();
        let gap_ns = self.phy.rate().gap_ns();
        let transmit = &mut self.transmit;
        let mut bytes = std::mem::take(&mut transmit.frame);
        let bad_checksum = transmit.control & NO_CHECKSUM != 0 && !fcs::remove(&mut bytes);
        if transmit.control & NO_CHECKSUM == 0 && bytes.len() < SHORTEST {
            bytes.resize(SHORTEST, 0);
        }
        let (start_ns, end_ns) = (transmit.start_ns, transmit.end_ns);
        transmit.free_ns = end_ns + gap_ns;
        if passes {
            self.sent.push(Sent {
                start_ns,
                end_ns,
                bytes,
                bad_checksum,
            });
        }
        if self.direct.is_used {
            transmit.wait();
            self.end_direct(memory.now());
        } else if !self.finish_descriptor(memory) {
            return;
        }
        self.statistics.count(SENT);
        self.tsr |= TSR_COMPLETE;
        self.raise(INT_SENT);
    }

    /// Marks the descriptor of a frame that has left. Returns whether memory took the mark.
    fn finish_descriptor(&mut self, memory: &mut Memory<'_>) -> bool {
        let transmit = &mut self.transmit;
        memory.set_purpose(Purpose::Descriptor(
            transmit.queue.number_of(transmit.first),
        ));
        let status = memory.write_word(transmit.first.wrapping_add(4), transmit.control | USED);
        if status.is_err() {
            // The frame has left, and its descriptor cannot be written.
            self.transmit.buffers = 0;
            self.transmit_bus_error(memory);
            return false;
        }
        let halts = transmit.halts;
        transmit.wait();
        if !halts {
            transmit.next(Step::Descriptor, memory.now());
        }
        true
    }

    fn transmit_bus_error(&mut self, memory: &mut Memory<'_>) {
        self.raise(INT_BUS_ERROR);
        self.statistics.count(UNDERRUNS);
        self.transmit_error(UNDERRUN, memory);
    }

    /// A frame has no more buffers before its last one.
    fn transmit_exhausted(&mut self, memory: &mut Memory<'_>) {
        self.tsr |= TSR_EXHAUSTED;
        self.raise(INT_TX_ERROR);
        self.transmit_error(UNDERRUN | EXHAUSTED, memory);
    }

    /// Ends transmission, with these bits in the frame's first descriptor if the frame has one.
    fn transmit_error(&mut self, bits: u32, memory: &mut Memory<'_>) {
        self.tsr |= TSR_UNDERRUN;
        self.raise(INT_UNDERRUN);
        let Transmit { first, control, .. } = self.transmit;
        if self.direct.is_used {
            self.cut_off(memory.now());
            self.tsr |= TSR_COMPLETE;
            self.raise(INT_SENT);
            return self.end_direct(memory.now());
        }
        if self.transmit.buffers != 0 {
            let first_number = self.transmit.queue.number_of(first);
            memory.set_purpose(Purpose::Descriptor(first_number));
            // There is no further error to report if this write fails.
            let _ = memory.write_word(first.wrapping_add(4), control | bits);
        }
        self.cut_off(memory.now());
        self.transmit.queue.restart();
    }
}
