// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans: what the code of a line does, for every host.
//!
//! A plan has the cycles and waits of each instruction, as far as they are known before the line executes. A result
//! that is pending at the start of an instruction is known, too: it depends on the instructions before, and a line is
//! entered only when nothing is pending.

use arm::Bus;
use arm::engine::{Line, Pending, Set, Wait};
use arm::model::Core;

use crate::action::{ALWAYS, Action, Size};
use crate::decode::action;

/// Most cycles of a line that the code does not compare with the horizon. The margin of the core is larger.
const MOST_CYCLES: u32 = 120;
/// Most cycles of a wait.
const MOST_STALL: u32 = 2;

/// An instruction of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub action: Action,
    pub condition: u32,
    /// Pending before the instruction.
    pub before: Pending,
    /// Wait for it.
    pub stall: u8,
    /// Cycles from the start of the line to the start of the instruction.
    pub start: u8,
    /// Cycles without the stall if the instruction is executed and the pc is not written.
    pub cycles: u8,
    /// Cycles without the stall if the pc is written.
    pub leaving: u8,
    /// Registers for which the instruction waits while a loaded word is pending, as a set of bits.
    pub uses: u16,
    /// Those of them that it needs early.
    pub early_uses: u16,
}

/// What becomes of a late result that is pending when the line is entered at an instruction that does not use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Only the interpreter knows.
    Unknown = 0,
    /// The next instruction is in the line, and waits for one cycle if it uses the result. Nothing can end the run
    /// between the two.
    Waits = 1,
    /// As `Waits`, if the branch is not taken. If it is, nothing is pending.
    Branches = 2,
    /// Nothing is pending after the instruction.
    Over = 3,
}

impl Plan {
    /// What becomes of a late result when the line is entered at instruction `n`.
    pub fn late(&self, n: usize) -> Late {
        let step = &self.steps[n];
        let is_simple = matches!(
            step.action,
            Action::Data { .. } | Action::Multiply { .. } | Action::CountZeros { .. }
        );
        let follows = n + 1 < self.steps.len()
            && step.before == Pending::NONE
            && self.pending(n + 1) == Pending::NONE;
        match step.action {
            Action::Branch { .. } if step.condition == ALWAYS && step.before == Pending::NONE => {
                Late::Over
            }
            Action::Branch { .. } if follows => Late::Branches,
            _ if is_simple && follows && step.cycles == 1 => Late::Waits,
            _ => Late::Unknown,
        }
    }
}

/// The plan of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub set: Set,
    /// The instructions: [`Set::instructions`] of them.
    pub steps: Vec<Step>,
    /// Pending after the last instruction.
    pub after: Pending,
    /// Cycles of the whole line.
    pub cycles: u8,
}

impl Plan {
    /// Pending before instruction `n`, or after the last.
    pub fn pending(&self, n: usize) -> Pending {
        self.steps.get(n).map_or(self.after, |step| step.before)
    }

    /// Cycles before instruction `n`, or of the whole line.
    pub fn start(&self, n: usize) -> u8 {
        self.steps.get(n).map_or(self.cycles, |step| step.start)
    }
}

/// Whether lines of a core can be planned.
pub fn is_planned(core: &Core) -> bool {
    let behaviour = &core.behaviour;
    !(behaviour.scoreboard
        || behaviour.late_words
        || behaviour.late_failure
        || behaviour.predicts_branches
        || behaviour.issue_before_branch)
}

/// Plans a line. Returns `None` if the core's lines cannot be planned.
pub fn plan<B: Bus>(line: &Line<B>) -> Option<Plan> {
    if !is_planned(line.core()) {
        return None;
    }
    let (mut pending, mut cycles, mut most) = (Pending::NONE, 0, 0);
    let mut steps = Vec::with_capacity(line.instructions());
    for n in 0..line.instructions() {
        let (step, after) = step(line, n, pending, (cycles, most));
        if step.action != Action::Interpret {
            cycles += step.stall + step.passed_over();
            most += u32::from(step.stall) + u32::from(step.cycles.max(step.leaving));
        }
        steps.push(step);
        pending = after;
    }
    Some(Plan {
        set: line.set(),
        steps,
        after: pending,
        cycles,
    })
}

impl Step {
    /// Cycles, without the stall, that the code counts before it knows whether the condition passes.
    pub fn passed_over(&self) -> u8 {
        match self.condition {
            ALWAYS => self.cycles,
            _ => 1,
        }
    }

    fn interpreted(before: Pending, start: u8, uses: u16, early_uses: u16) -> Step {
        Step {
            action: Action::Interpret,
            condition: ALWAYS,
            before,
            stall: 0,
            start,
            cycles: 0,
            leaving: 0,
            uses,
            early_uses,
        }
    }
}

/// Plans one instruction, which begins after `start` cycles, and after `most` if the condition of each instruction passes.
/// Also returns what is pending afterwards.
fn step<B: Bus>(
    line: &Line<B>,
    n: usize,
    before: Pending,
    (start, most): (u8, u32),
) -> (Step, Pending) {
    let interpreted = (
        Step::interpreted(before, start, line.uses(n), line.early_uses(n)),
        Pending::NONE,
    );
    let action = action(line, n);
    let most = most + u32::from(line.cycles(n).max(leaving(line, n, action))) + MOST_STALL;
    // After each call of the interpreter, the code compares with the horizon. The bound counts all instructions.
    if action == Action::Interpret || most > MOST_CYCLES {
        return interpreted;
    }
    let condition = match action {
        Action::Branch { .. } if line.set() == Set::A32 => line.word(n) >> 28,
        _ => line.condition(n),
    };
    let (passes, fails) = (line.wait(n, before, true), line.wait(n, before, false));
    let results = results(action);
    let (after, failed) = (passes.left.and(results), fails.left);
    let mut cycles = line.cycles(n);
    let leaving = leaving(line, n, action);
    let after = match (leaving > 0, condition == ALWAYS) {
        // The branch has finished when the next line begins. What is pending then would have to be known there.
        (true, _) if passes.left != Pending::NONE => return interpreted,
        (true, _) => {
            cycles = 1;
            // Only an entry from elsewhere reaches what follows an unconditional branch.
            if condition == ALWAYS {
                Pending::NONE
            } else {
                failed
            }
        }
        (false, true) => after,
        (false, false) if after == failed || is_same(line, n + 1, after, failed) => failed,
        (false, false) => return interpreted,
    };
    let step = Step {
        action,
        condition,
        before,
        stall: passes.stall,
        start,
        cycles,
        leaving,
        uses: line.uses(n),
        early_uses: line.early_uses(n),
    };
    (step, after)
}

/// Whether the wait of instruction `n` is the same for both.
fn is_same<B: Bus>(line: &Line<B>, n: usize, one: Pending, other: Pending) -> bool {
    let wait = |pending| -> [Wait; 2] { [true, false].map(|passes| line.wait(n, pending, passes)) };
    n < line.instructions() && wait(one) == wait(other)
}

/// Results of an action that are not available at once.
fn results(action: Action) -> Pending {
    match action {
        Action::Transfer {
            load: true,
            size,
            d,
            ..
        } => Pending::load(d, size != Size::Word),
        Action::Block {
            load: true, list, ..
        } if !list.is_power_of_two() && list >> 15 == 0 => {
            Pending::load(31 - list.leading_zeros() as usize, false)
        }
        Action::Pair { load: true, d, .. } => Pending::load(d + 1, false),
        Action::MultiplyLong { low, high, .. } => Pending::product(1 << low | 1 << high),
        Action::Multiply {
            flags: false, d, ..
        } => Pending::product(1 << d),
        _ => Pending::NONE,
    }
}

/// Cycles of an action that writes the pc, or zero.
fn leaving<B: Bus>(line: &Line<B>, n: usize, action: Action) -> u8 {
    let (timing, issue) = (&line.core().timing, line.cycles(n));
    match action {
        Action::Branch { .. } | Action::Call { .. } | Action::Jump { exchange: true, .. } => issue,
        Action::Jump { .. } => timing.logical_to_pc as u8,
        Action::LoadPc { .. } => issue + timing.load_to_pc as u8,
        Action::Block {
            load: true, list, ..
        } if list >> 15 != 0 => {
            let all = u64::from(list.count_ones()) + timing.load_to_pc;
            all.max(timing.block_to_pc_minimum) as u8
        }
        _ => 0,
    }
}
