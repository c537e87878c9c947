// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data blocks between the interface and the card, unit by unit.

use super::{
    BLOCK_ENDED, BLOCK_MAX, COMMAND_BLOCKS, COMMAND_KIND, COMMAND_READ, DATA_CHECKSUM,
    DATA_TIMEOUT, MODE_BYTES, MODE_PAD_ONES, MODE_PDC, MODE_READ_PROOF, MODE_WRITE_PROOF, Mci,
    OVERRUN, SLOTS_WIDE, UNDERRUN,
};
use crate::device::card::{ACCESS_NS, Card, Flow};
use arm::Damaged;

/// Card clocks of a block's checksum and end bit.
const CHECK_BITS: u64 = 17;
/// Card clocks of the card's answer to a block.
const ACCEPT_BITS: u64 = 8;
/// Card clocks before a block, with its start bit.
const GAP_BITS: u64 = 3;

/// What happens at the next event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// A block begins.
    #[default]
    Block,
    /// A unit ends (from the card), or begins (to the card).
    Unit,
    /// The block's checksum ends.
    Check,
    /// The card has sent nothing for too long.
    Timeout,
}

arm::state!(enum Step: Block, Unit, Check, Timeout);

/// A data transfer.
#[derive(Clone, Debug)]
pub(super) struct Data {
    /// Direction. No direction stands for no transfer.
    pub flow: Flow,
    step: Step,
    /// Core cycle of the next event.
    pub due: u64,
    /// Whether the interface has stopped the card's clock, or waits for the first unit of a block.
    stalled: bool,
    /// Length of a block.
    pub(super) length: u32,
    /// Blocks that are left; `None` for a transfer that a command ends.
    left: Option<u32>,
    /// Bytes of the present block.
    bytes: Vec<u8>,
    /// Bytes of the present block that have moved.
    moved: u32,
    /// Whether the checksum of the present block is wrong.
    corrupt: bool,
}

arm::state!(Data: flow, step, due, stalled, length, left, bytes, moved, corrupt; => check);

impl Data {
    /// Refuses a restored block that is longer than a register can say.
    fn check(&self) -> Result<(), Damaged> {
        match self.length <= BLOCK_MAX {
            true => Ok(()),
            false => Err(Damaged("a block for a card is too long")),
        }
    }
}

impl Default for Data {
    fn default() -> Data {
        Data {
            flow: Flow::None,
            step: Step::Block,
            due: u64::MAX,
            stalled: false,
            length: 0,
            left: None,
            bytes: Vec::new(),
            moved: 0,
            corrupt: false,
        }
    }
}

impl Mci {
    /// Returns the bytes of a unit of RDR and TDR.
    pub(super) fn unit(&self) -> usize {
        if self.mode & MODE_BYTES != 0 { 1 } else { 4 }
    }

    fn card(&mut self) -> Option<&mut Card> {
        self.slot.card_mut()
    }

    /// Returns the card clocks of `bytes` bytes on the data lines.
    fn data_bits(&self, bytes: u32) -> u64 {
        let lines = if self.slots & SLOTS_WIDE != 0 { 4 } else { 1 };
        u64::from(bytes) * 8 / lines
    }

    /// Starts a transfer behind the response of its command, which ended at `at`.
    pub(super) fn start_data(&mut self, at: u64, command: u32) {
        let reads = command & COMMAND_READ != 0;
        let count = Some(self.block_count).filter(|count| *count != 0);
        let many = command & COMMAND_KIND == COMMAND_BLOCKS;
        let delay = match reads {
            true => self.card_time(ACCESS_NS),
            false => self.bits(GAP_BITS),
        };
        self.data = Data {
            flow: if reads { Flow::ToHost } else { Flow::FromHost },
            due: at.saturating_add(delay),
            length: self.block_length,
            left: if many { count } else { Some(1) },
            ..Data::default()
        };
        (self.received, self.sent) = (None, None);
        self.not_busy = false;
    }

    /// Ends the transfer.
    pub(super) fn end_data(&mut self) {
        if self.data.flow != Flow::None {
            self.data = Data::default();
            self.sent = None;
            self.not_busy = self.busy_done == u64::MAX;
        }
    }

    fn fail(&mut self, flag: u32) {
        self.latched |= flag;
        self.end_data();
    }

    /// Continues a transfer that waited for RDR or TDR.
    pub(super) fn resume(&mut self, now: u64) {
        if core::mem::take(&mut self.data.stalled) {
            self.data.due = now;
        }
    }

    fn stall(&mut self) {
        (self.data.stalled, self.data.due) = (true, u64::MAX);
    }

    fn next(&mut self, step: Step, at: u64, bits: u64) {
        self.data.step = step;
        self.data.due = at.saturating_add(self.bits(bits));
    }

    /// Carries out the event of the transfer, which is due at `at`.
    pub(super) fn step_data(&mut self, at: u64) {
        match (self.data.flow, self.data.step) {
            (Flow::None, _) => self.data = Data::default(),
            (_, Step::Timeout) => self.fail(DATA_TIMEOUT),
            (Flow::ToHost, Step::Block) => self.begin_read(at),
            (Flow::ToHost, Step::Unit) => self.receive_unit(at),
            (Flow::ToHost, Step::Check) if self.data.corrupt => self.fail(DATA_CHECKSUM),
            (Flow::ToHost, Step::Check) => self.end_block(at, 0),
            (Flow::FromHost, Step::Block) => {
                (self.data.moved, self.data.bytes) = (0, Vec::new());
                self.data.step = Step::Unit;
                self.send_unit(at);
            }
            (Flow::FromHost, Step::Unit) => self.send_unit(at),
            (Flow::FromHost, Step::Check) => self.end_write(at),
        }
    }

    /// Ends a block, and the transfer if it was the last. The card is busy for some core cycles.
    fn end_block(&mut self, at: u64, busy: u64) {
        self.data.left = self.data.left.map(|left| left.saturating_sub(1));
        let (is_last, writes) = (self.data.left == Some(0), self.data.flow == Flow::FromHost);
        if writes && (is_last || self.mode & MODE_PDC == 0) {
            self.latched |= BLOCK_ENDED;
        }
        if !is_last {
            self.next(Step::Block, at.saturating_add(busy), GAP_BITS);
            return;
        }
        if busy != 0 {
            self.busy_until(at.saturating_add(busy));
        }
        self.end_data();
    }

    fn begin_read(&mut self, at: u64) {
        let wide = self.slots & SLOTS_WIDE != 0;
        let card = self.card();
        let is_wide = card.as_ref().is_some_and(|card| card.is_wide());
        let Some(mut bytes) = card.and_then(Card::send_block) else {
            return self.next(Step::Timeout, at, self.timeout_bits());
        };
        let length = self.data.length as usize;
        self.data.corrupt = bytes.len() != length || wide != is_wide;
        bytes.resize(length, 0);
        if wide != is_wide {
            bytes.fill(0xff);
        }
        (self.data.bytes, self.data.moved) = (bytes, 0);
        self.next(Step::Unit, at, self.data_bits(self.unit_bytes()));
    }

    /// Returns the bytes of the next unit that belong to the block.
    fn unit_bytes(&self) -> u32 {
        let left = self.data.length.saturating_sub(self.data.moved);
        (self.unit() as u32).min(left)
    }

    fn receive_unit(&mut self, at: u64) {
        if self.received.is_some() {
            if self.mode & MODE_READ_PROOF != 0 {
                return self.stall();
            }
            self.latched |= OVERRUN;
        }
        let bytes = self.unit_bytes();
        let pad = if self.mode & MODE_PAD_ONES != 0 {
            0xff
        } else {
            0
        };
        let mut unit = [pad; 4];
        for (to, n) in unit.iter_mut().zip(0..bytes) {
            let byte = self.data.bytes.get((self.data.moved + n) as usize);
            *to = byte.copied().unwrap_or(0);
        }
        self.received = Some(u32::from_le_bytes(unit));
        self.after_unit(at, bytes);
    }

    /// Counts a unit. The next unit or the checksum follows.
    fn after_unit(&mut self, at: u64, bytes: u32) {
        self.data.moved = self.data.moved.saturating_add(bytes);
        if self.data.moved < self.data.length {
            // The unit of a read ends when it is seen, and the unit of a write begins.
            let next = match self.data.flow {
                Flow::FromHost => bytes,
                _ => self.unit_bytes(),
            };
            return self.next(Step::Unit, at, self.data_bits(next));
        }
        let sent = match self.data.flow {
            Flow::FromHost => self.data_bits(bytes) + ACCEPT_BITS,
            _ => 0,
        };
        self.next(Step::Check, at, sent + CHECK_BITS);
    }

    fn send_unit(&mut self, at: u64) {
        let Some(unit) = self.sent.take() else {
            if self.data.moved == 0 || self.mode & MODE_WRITE_PROOF != 0 {
                return self.stall();
            }
            return self.fail(UNDERRUN);
        };
        let bytes = self.unit_bytes();
        self.data
            .bytes
            .extend(&unit.to_le_bytes()[..bytes as usize]);
        self.after_unit(at, bytes);
    }

    fn end_write(&mut self, at: u64) {
        let wide = self.slots & SLOTS_WIDE != 0;
        let bytes = core::mem::take(&mut self.data.bytes);
        let card = self.card().filter(|card| card.is_wide() == wide);
        match card.and_then(|card| card.receive_block(&bytes)) {
            Some(busy_ns) => self.end_block(at, self.card_time(busy_ns)),
            None => self.fail(DATA_CHECKSUM),
        }
    }
}
