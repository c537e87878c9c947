// SPDX-License-Identifier: MIT OR Apache-2.0
//! Task switches. The direct cost is the time from the scheduler's entry to the first user instruction. The indirect
//! cost is the cost of later misses of lines and translations that the switch evicted.

use super::evictions::{Kind, MissCause, Missed, Settled};
use super::{Cycles, TaskId};
use arm::Cause;

/// Maximum number of switches kept. Further switches are dropped.
const KEPT: usize = 1 << 20;
const NO_SWITCH: u32 = u32::MAX;

/// Number of a call of the scheduler. [`SwitchId::NONE`] stands for no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchId(u32);

impl SwitchId {
    pub const NONE: SwitchId = SwitchId(0);
}

/// A task switch.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// Core cycle of the scheduler's entry.
    pub cycle: u64,
    /// Task that ran before.
    pub from: TaskId,
    /// Task that runs next.
    pub to: TaskId,
    /// Cycles until the first user instruction, by cause. `None` if another switch came first.
    pub direct: Option<Cycles>,
    /// Later misses of lines and translations that the switch evicted. The order is I-cache lines, D-cache lines,
    /// translations, lines missed by stores.
    pub indirect: [Missed; 4],
    /// Whether pin 0 was high ([`super::Owner::timed`]).
    pub timed: bool,
}

impl Switch {
    /// Returns the cycles until the first user instruction.
    pub fn direct_cycles(&self) -> Option<u64> {
        self.direct.map(|direct| direct.iter().sum())
    }

    /// Returns the cycles of later misses.
    pub fn indirect_cycles(&self) -> u64 {
        self.indirect.iter().map(|missed| missed.cycles).sum()
    }
}

/// The task switches of a run.
#[derive(Clone, Debug, Default)]
pub struct Switches {
    all: Vec<Switch>,
    /// For each call of the scheduler: index of its switch in `all`, or [`NO_SWITCH`].
    of_entry: Vec<u32>,
    /// Cycle and charges at the last call of the scheduler. `None` after execution has reached user land.
    begun: Option<(u64, [i64; Cause::COUNT])>,
    /// Whether the last call of the scheduler switched tasks. In this case, the switch is the last of `all`.
    open: bool,
    timed: bool,
}

impl Switches {
    pub(super) fn all(&self) -> &[Switch] {
        &self.all
    }

    pub(super) fn set_timed(&mut self, timed: bool) {
        self.timed = timed;
    }

    /// Records a call of the scheduler.
    pub(super) fn begin(&mut self, cycle: u64, sum: &[i64; Cause::COUNT]) {
        self.begun = Some((cycle, *sum));
        self.open = false;
        self.of_entry.push(NO_SWITCH);
    }

    /// Records a task switch.
    pub(super) fn switch(&mut self, cycle: u64, (from, to): (TaskId, TaskId)) {
        if self.all.len() == KEPT {
            return;
        }
        self.open = self.begun.is_some();
        if let Some(last) = self.of_entry.last_mut().filter(|_| self.open) {
            *last = self.all.len() as u32;
        }
        self.all.push(Switch {
            cycle: self.begun.map_or(cycle, |(cycle, _)| cycle),
            from,
            to,
            direct: None,
            indirect: Default::default(),
            timed: self.timed,
        });
    }

    /// Records that a user instruction is next.
    pub(super) fn in_user_land(&mut self, sum: &[i64; Cause::COUNT]) {
        if core::mem::take(&mut self.open)
            && let (Some(switch), Some((_, before))) = (self.all.last_mut(), self.begun)
        {
            let spent = |n: usize| (sum[n] - before[n]).max(0) as u64;
            switch.direct = Some(core::array::from_fn(spent));
        }
        self.begun = None;
    }

    /// Returns the last call of the scheduler, if execution has not reached user land after it.
    pub(super) fn open(&self) -> SwitchId {
        match self.begun {
            Some(_) => SwitchId(self.of_entry.len() as u32),
            None => SwitchId::NONE,
        }
    }

    /// Charges a miss to the switch that evicted its line or translation, if there is one.
    pub(super) fn suffered(&mut self, settled: &Settled) {
        let direct = settled.switch == self.open();
        if settled.miss.by == MissCause::First || settled.switch == SwitchId::NONE || direct {
            return;
        }
        let kind = match settled.miss.kind {
            Kind::Instruction => 0,
            Kind::Data => 1,
            Kind::Translation => 2,
            Kind::Store => 3,
        };
        // A call of the scheduler need not switch tasks.
        let found = self.of_entry[settled.switch.0 as usize - 1];
        if let Some(switch) = self.all.get_mut(found as usize) {
            switch.indirect[kind].add(settled);
        }
    }
}
