// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of task: what each costs directly, from the scheduler's entry to the first user instruction, and what it
//! costs later, as misses of what it took away.

use super::evictions::{By, Kind, Missed, Settled};
use super::{Cycles, TaskId};
use arm::Cause;

/// Changes kept; those beyond are not.
const KEPT: usize = 1 << 20;
const NO_SWITCH: u32 = u32::MAX;

/// A time that the scheduler was entered, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchId(u32);

impl SwitchId {
    pub const NONE: SwitchId = SwitchId(0);
}

/// A change of task.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// Core cycle of the scheduler's entry.
    pub cycle: u64,
    /// Who ran before.
    pub from: TaskId,
    /// Who runs then.
    pub to: TaskId,
    /// What went by until the first user instruction; none where there came another change before.
    pub direct: Option<Cycles>,
    /// Misses behind this time of I-cache lines, of D-cache lines, of translations and of lines to store to that went away in it.
    pub indirect: [Missed; 4],
    /// Pin 0 was high ([`super::Owner::timed`]).
    pub timed: bool,
}

impl Switch {
    /// Cycles until the first user instruction.
    pub fn direct_cycles(&self) -> Option<u64> {
        self.direct.map(|direct| direct.iter().sum())
    }

    /// Cycles of later misses.
    pub fn indirect_cycles(&self) -> u64 {
        self.indirect.iter().map(|missed| missed.cycles).sum()
    }
}

/// The changes of a run.
#[derive(Clone, Debug, Default)]
pub struct Switches {
    all: Vec<Switch>,
    /// Which of `all` each entry of the scheduler led to, or [`NO_SWITCH`].
    of_entry: Vec<u32>,
    /// The scheduler was entered.
    begun: Option<(u64, [i64; Cause::COUNT])>,
    /// And the task changed, which is the last of `all`.
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

    /// The scheduler is entered.
    pub(super) fn begin(&mut self, cycle: u64, sum: &[i64; Cause::COUNT]) {
        self.begun = Some((cycle, *sum));
        self.open = false;
        self.of_entry.push(NO_SWITCH);
    }

    /// The task changes.
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

    /// A user instruction is next.
    pub(super) fn in_user_land(&mut self, sum: &[i64; Cause::COUNT]) {
        if core::mem::take(&mut self.open)
            && let (Some(switch), Some((_, before))) = (self.all.last_mut(), self.begun)
        {
            let spent = |n: usize| (sum[n] - before[n]).max(0) as u64;
            switch.direct = Some(core::array::from_fn(spent));
        }
        self.begun = None;
    }

    /// The entry of the scheduler that execution has not come back to user land from.
    pub(super) fn open(&self) -> SwitchId {
        match self.begun {
            Some(_) => SwitchId(self.of_entry.len() as u32),
            None => SwitchId::NONE,
        }
    }

    /// Somebody missed what may have gone away in a change.
    pub(super) fn suffered(&mut self, settled: &Settled) {
        let direct = settled.switch == self.open();
        if settled.miss.by == By::First || settled.switch == SwitchId::NONE || direct {
            return;
        }
        let kind = match settled.miss.kind {
            Kind::Instruction => 0,
            Kind::Data => 1,
            Kind::Translation => 2,
            Kind::Store => 3,
        };
        // The scheduler may have been entered, and nothing changed.
        let found = self.of_entry[settled.switch.0 as usize - 1];
        if let Some(switch) = self.all.get_mut(found as usize) {
            switch.indirect[kind].add(settled);
        }
    }
}
