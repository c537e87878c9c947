// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans: what the code of a line does, for every host.
//!
//! A plan has the cycles and waits of each instruction, as far as they are known before the line executes. A result
//! that is pending at the start of an instruction is known, too: it depends on the instructions before. A plan assumes
//! that nothing is pending at an entry; `late` and `beside.rs` say what differs otherwise.

use arm::Bus;
use arm::engine::{Line, Pending, Set, Wait};
use arm::model::{Core, Multiplier, Tagging, Version};

use crate::action::{ALWAYS, Action, Size};
use crate::decode::action;

/// Most cycles of a line that the code does not compare with the horizon. The margin of the core is larger.
const MOST_CYCLES: u32 = 120;
/// Most cycles of a wait.
const MOST_STALL: u32 = 2;
/// Most cycles that the significant bits of a factor add to a multiplication.
pub const MOST_MULTIPLIER: u8 = 2;
/// Cycles of a branch whose prediction was wrong, beyond the one cycle of a branch whose prediction was right.
pub const MISPREDICTED: u8 = 4;

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
    /// Whether the instruction, if nothing is pending before it, differs only in that it does not wait. Not on a core with
    /// a scoreboard.
    pub differs_by_wait: bool,
    /// Cycles without the stall if the instruction is executed and the pc is not written. The factors of a multiplication
    /// may add cycles.
    pub cycles: u8,
    /// Cycles without the stall if the pc is written. If the branch is predicted, the cycles if the prediction is right.
    pub leaving: u8,
    /// Pending after the instruction if its condition passes. The plan may have something else with the same waits.
    pub passed: Pending,
    /// Whether no older result is pending when the instruction executes.
    pub alone: bool,
    /// Cycles without the stall if the condition fails.
    pub failing: u8,
    /// Most cycles without the stall.
    pub most: u8,
    /// Pending after the instruction if its condition passes, if the plan has something else after it.
    pub apart: Option<Pending>,
    /// Pending after a branch, if the core predicts branches and this prediction is right.
    pub predicted: Option<Pending>,
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
    /// The next instruction is in the line, and does not use the result; or a branch is taken, and nothing is pending. If
    /// the next instruction uses the result, only the interpreter knows.
    Unused = 2,
    /// Nothing is pending after the instruction, or the wait of the next instruction is as planned in every case.
    Over = 3,
}

impl Plan {
    /// What becomes of a late result when the line is entered at instruction `n`.
    pub fn late(&self, n: usize) -> Late {
        if self.beside {
            return self.late_beside(n);
        }
        let step = &self.steps[n];
        let is_simple = matches!(
            step.action,
            Action::Data { .. }
                | Action::Multiply { .. }
                | Action::CountZeros { .. }
                | Action::Nothing
        );
        let follows = n + 1 < self.steps.len()
            && step.before == Pending::NONE
            && self.pending(n + 1) == Pending::NONE;
        match step.action {
            Action::Branch { .. } if step.condition == ALWAYS && step.before == Pending::NONE => {
                Late::Over
            }
            Action::Branch { .. } if follows => Late::Unused,
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
    /// Whether the core has a scoreboard.
    pub beside: bool,
    /// The core's multiplier.
    pub multiplier: Multiplier,
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

/// Whether lines of a core can be planned: ARM's own cores have none of these differences, and XScale has all. The code
/// finds the next line by its MVA, which is the key of hints only if the tags are virtual. Stores of ARMv6 have effects
/// that the code does not know: they clear the exclusive monitor, and may be unaligned.
pub fn is_planned(core: &Core) -> bool {
    if core.version >= Version::V6 {
        return false;
    }
    let behaviour = &core.behaviour;
    let differences = [
        behaviour.late_words,
        behaviour.late_failure,
        behaviour.predicts_branches,
        behaviour.slow_moves,
    ];
    let is_timed = !behaviour.predicts_branches || core.timing.branch == 1 + MISPREDICTED;
    differences == [behaviour.scoreboard; 4] && is_timed && core.tagging == Tagging::Virtual
}

/// Plans a line. Returns `None` if the core's lines cannot be planned.
pub fn plan<B: Bus>(line: &Line<B>) -> Option<Plan> {
    if !is_planned(line.core()) {
        return None;
    }
    let beside = line.core().behaviour.scoreboard;
    let (mut pending, mut cycles, mut most) = (Pending::NONE, 0, 0);
    let mut steps = Vec::with_capacity(line.instructions());
    for n in 0..line.instructions() {
        let (mut step, after) = step(line, n, pending, (cycles, most));
        let (free, free_after) = self::step(line, n, Pending::NONE, (cycles, most));
        let without_wait = Step {
            before: Pending::NONE,
            stall: 0,
            passed: free.passed,
            alone: true,
            ..step
        };
        let is_same = after == free_after || is_same_wait(line, n + 1, after, free_after);
        // A call of the interpreter gets what the plan has pending, and leaves what follows from that.
        let is_told = step.action != Action::Interpret
            && (!step.action.may_call() || step.passed == free.passed);
        step.differs_by_wait = is_same && without_wait == free && is_told && !beside;
        if step.action != Action::Interpret {
            cycles += step.stall + step.passed_over();
            // A wait that is not planned may follow an entry while results are pending.
            most += u32::from(step.most)
                + if beside {
                    MOST_STALL
                } else {
                    step.stall.into()
                };
        }
        steps.push(step);
        pending = after;
    }
    Some(Plan {
        set: line.set(),
        steps,
        after: pending,
        cycles,
        beside,
        multiplier: line.core().behaviour.multiplier,
    })
}

impl Step {
    /// Whether an entry from elsewhere, where nothing is pending, executes the same code behind the wait.
    pub fn is_entry(&self) -> bool {
        self.before == Pending::NONE || self.differs_by_wait
    }

    /// Cycles, without the stall, that the code counts before it knows whether the condition passes.
    pub fn passed_over(&self) -> u8 {
        match self.condition {
            ALWAYS => self.cycles,
            _ => self.failing,
        }
    }

    fn interpreted(before: Pending, start: u8, uses: u16, early_uses: u16) -> Step {
        Step {
            action: Action::Interpret,
            condition: ALWAYS,
            before,
            stall: 0,
            start,
            differs_by_wait: false,
            cycles: 0,
            leaving: 0,
            passed: Pending::NONE,
            alone: false,
            failing: 0,
            most: 0,
            apart: None,
            predicted: None,
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
    let times = Times::new(line, n, action);
    let most = most + u32::from(times.most) + MOST_STALL;
    // After each call of the interpreter, the code compares with the horizon. The bound counts all instructions.
    if action == Action::Interpret || most > MOST_CYCLES {
        return interpreted;
    }
    let condition = condition(line, n, action);
    let behaviour = &line.core().behaviour;
    let Some(passes) = passing(line, n, before, &times) else {
        return interpreted;
    };
    let fails = line.wait(n, before, false, times.failing);
    let is_predicted = is_predicted(line, action);
    let (after, failed) = (passes.left.and(results(line, action)), fails.left);
    // The branch has finished when the next line begins. What is pending then would have to be known there.
    if times.leaving > 0 && passes.left != Pending::NONE && !is_predicted {
        return interpreted;
    }
    let (after, apart) = match (times.leaving > 0, condition == ALWAYS) {
        // Only an entry from elsewhere reaches what follows an unconditional branch.
        (true, true) => (Pending::NONE, None),
        (true, false) => (failed, None),
        (false, true) => (after, None),
        (false, false) if after == failed || is_same_wait(line, n + 1, after, failed) => {
            (failed, None)
        }
        (false, false) if behaviour.scoreboard => (failed, Some(after)),
        (false, false) => return interpreted,
    };
    let step = Step {
        action,
        condition,
        before,
        stall: passes.stall,
        start,
        differs_by_wait: false,
        passed: passes.left.and(results(line, action)),
        alone: passes.left == Pending::NONE,
        cycles: times.cycles,
        leaving: times.leaving,
        failing: times.failing,
        most: times.most,
        apart,
        predicted: is_predicted.then_some(passes.left),
        uses: line.uses(n),
        early_uses: line.early_uses(n),
    };
    (step, after)
}

/// Wait of an instruction whose condition passes, unless what is pending afterwards depends on the cycles that the code
/// adds.
fn passing<B: Bus>(line: &Line<B>, n: usize, before: Pending, times: &Times) -> Option<Wait> {
    let wait = |more| line.wait(n, before, true, times.cycles.max(times.leaving) + more);
    let [least, most] = [0, times.varies].map(wait);
    (least == most).then_some(most)
}

/// Condition of an instruction, wherever the core has it.
fn condition<B: Bus>(line: &Line<B>, n: usize, action: Action) -> u32 {
    let is_in_word = match action {
        Action::Branch { .. } | Action::LoadPc { .. } => true,
        Action::Block { list, .. } => list >> 15 != 0,
        _ => false,
    };
    match line.set() {
        Set::A32 if is_in_word => line.word(n) >> 28,
        _ => line.condition(n),
    }
}

/// Whether the core predicts a branch.
fn is_predicted<B: Bus>(line: &Line<B>, action: Action) -> bool {
    let predicts = line.core().behaviour.predicts_branches && line.set() == Set::A32;
    predicts && matches!(action, Action::Branch { .. })
}

/// Times of an instruction, without the wait.
struct Times {
    cycles: u8,
    leaving: u8,
    failing: u8,
    most: u8,
    /// Cycles that the code may add.
    varies: u8,
}

impl Times {
    fn new<B: Bus>(line: &Line<B>, n: usize, action: Action) -> Times {
        let (behaviour, issue) = (&line.core().behaviour, line.cycles(n));
        let leaving = match action {
            _ if is_predicted(line, action) => 1,
            _ => leaving(line, n, action),
        };
        let loads_pc = match action {
            Action::LoadPc { .. } => true,
            Action::Block { load, list, .. } => load && list >> 15 != 0,
            _ => false,
        };
        let failing = match loads_pc && behaviour.late_failure {
            true => issue + 1,
            false => 1,
        };
        let varies = match action {
            Action::Multiply { .. } | Action::MultiplyLong { .. }
                if behaviour.multiplier == Multiplier::Bits =>
            {
                MOST_MULTIPLIER
            }
            _ => 0,
        };
        Times {
            cycles: if leaving > 0 { 1 } else { issue },
            leaving,
            failing,
            most: issue.max(leaving).max(failing) + varies,
            varies,
        }
    }
}

/// Whether the wait of instruction `n` is the same for both.
fn is_same_wait<B: Bus>(line: &Line<B>, n: usize, one: Pending, other: Pending) -> bool {
    let wait =
        |pending| -> [Wait; 2] { [true, false].map(|passes| line.wait(n, pending, passes, 1)) };
    n < line.instructions() && wait(one) == wait(other)
}

/// Results of an action that are not available at once.
fn results<B: Bus>(line: &Line<B>, action: Action) -> Pending {
    let behaviour = &line.core().behaviour;
    match action {
        Action::Transfer {
            load: true,
            size,
            address,
            d,
        } => {
            // A literal in Thumb state is available as early on XScale as on the other cores.
            let is_literal = line.set() == Set::Thumb && address.base == 15;
            let late_words = behaviour.late_words && !is_literal;
            Pending::load(d, size != Size::Word || late_words)
        }
        Action::Block {
            load: true, list, ..
        } if !list.is_power_of_two() && list >> 15 == 0 => {
            Pending::load(31 - list.leading_zeros() as usize, false)
        }
        Action::Pair { load: true, d, .. } if behaviour.late_words => {
            Pending::load(d, false).and(Pending::load(d + 1, true))
        }
        Action::Pair { load: true, d, .. } => Pending::load(d + 1, false),
        Action::MultiplyLong { high, .. } if behaviour.multiplier == Multiplier::Bits => {
            Pending::product(1 << high)
        }
        Action::MultiplyLong { low, high, .. } => Pending::product(1 << low | 1 << high),
        Action::Multiply {
            flags: false, d, ..
        } => Pending::product(1 << d),
        Action::Status { d } if behaviour.slow_moves => Pending::load(d, false),
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
