// SPDX-License-Identifier: MIT OR Apache-2.0
//! The walk over the plan of a line: which pieces of code the line has, in which order.

use arm::engine::Pending;
use dynasmrt::{DynasmApi, DynasmLabelApi};

use crate::action::{ALWAYS, Action};
use crate::format::At;
use crate::line::{Host, Line};
use crate::plan::Step;

impl<H: Host> Line<'_, H> {
    /// The instructions, and what follows them. Returns the place of each, and the entries.
    pub fn instructions(&mut self) -> (Vec<usize>, Vec<At>) {
        let plan = self.plan;
        let (mut offsets, mut entries) = (Vec::new(), Vec::new());
        for (number, step) in plan.steps.iter().enumerate() {
            offsets.push(self.ops.offset().0);
            self.ops.dynamic_label(self.starts[number]);
            // The instruction waits for something in its place, but an entry from elsewhere does not.
            if step.stall > 0 {
                H::count_wait(self, step.stall);
            }
            self.ops.dynamic_label(self.waited[number]);
            entries.push((self.offset(), step.start + step.stall));
            self.step(number, step);
        }
        offsets.push(self.ops.offset().0);
        self.end();
        for (number, step) in plan.steps.iter().enumerate() {
            if !step.is_entry() {
                entries[number] = (self.offset(), step.start);
                self.enter_fresh(number, step);
            }
        }
        (offsets, entries)
    }

    /// Distance of the next code from the start of the line's code.
    fn offset(&self) -> u16 {
        u16::try_from(self.ops.offset().0).expect("a line has less than 64 KB of code")
    }

    /// Bytes of an instruction.
    pub fn width(&self) -> usize {
        self.plan.set.width()
    }

    /// The entry at an instruction for which the plan has pending results, while nothing is pending.
    fn enter_fresh(&mut self, number: usize, step: &Step) {
        let Some(fresh) = self.plan.fresh(number) else {
            let before = Pending::NONE;
            let step = Step {
                before,
                stall: 0,
                ..*step
            };
            return self.interpret(number, step);
        };
        if fresh.stall > 0 {
            H::take_wait_back(self, fresh.stall);
        }
        if let Some(told) = fresh.told {
            H::tell(self, told, Pending::NONE);
        }
        H::jump(self, self.starts[number]);
    }

    /// Goes on after the last instruction.
    fn end(&mut self) {
        let plan = self.plan;
        let count = plan.steps.len();
        self.ops.dynamic_label(self.starts[count]);
        if plan.after == Pending::NONE {
            H::go_on(self);
        } else {
            H::target_instruction(self, count);
            H::go(self, plan.cycles, count, plan.after);
        }
    }

    /// Executes an instruction by the interpreter.
    fn interpret(&mut self, number: usize, step: Step) {
        let call = self.call(number, step, false);
        H::jump_out(self, call);
    }

    fn step(&mut self, number: usize, step: &Step) {
        if step.action == Action::Interpret {
            return self.interpret(number, *step);
        }
        let slow = self.slow(number, step);
        if let (Action::Branch { distance, link }, Some(pending)) = (step.action, step.predicted) {
            return self.predicted_branch(number, step, (distance, link), pending);
        }
        H::condition(self, step.condition, self.starts[number + 1]);
        match step.action {
            Action::Branch { distance, link } => self.branch(number, step, distance, link),
            Action::Jump { register, link, .. } => {
                H::target_register(self, register);
                // The interpreter changes the instruction set.
                if let Some(slow) = slow {
                    H::leave_set(self, slow);
                }
                self.jump_to_target(number, step, link);
            }
            Action::Call { offset } => {
                H::target_register(self, 14);
                H::add_to_target(self, offset);
                self.jump_to_target(number, step, true);
            }
            action => match slow {
                Some(slow) => H::access(self, number, step, slow),
                None => H::compute(self, number, action),
            },
        }
        if let Some(pending) = step.apart {
            return self.go_on_apart(number, step, pending);
        }
        if step.leaving == 0 && step.condition != ALWAYS && step.cycles > 1 {
            H::count(self, step.cycles - 1);
        }
    }

    /// The way to the call for an instruction that code does not always execute itself.
    fn slow(&mut self, number: usize, step: &Step) -> Option<H::Slow> {
        if !step.action.may_call() {
            return None;
        }
        let is_access = match step.action {
            Action::Transfer { .. } => true,
            Action::Block { list, .. } => list >> 15 == 0,
            _ => false,
        };
        // On a core with a scoreboard, other results may be pending at an entry than the plan has.
        let accesses = is_access && step.alone && !self.plan.beside;
        let call = self.call(number, *step, accesses);
        Some(H::slow(self, call))
    }

    /// Leaves the line for the target.
    pub fn leave(&mut self, number: usize, step: &Step) {
        let cycles = step.start + step.stall + step.leaving;
        H::go(self, cycles, number + 1, Pending::NONE);
    }

    /// Jumps to the target, without its low bits.
    fn jump_to_target(&mut self, number: usize, step: &Step, link: bool) {
        H::align_target(self);
        if link {
            H::link(self, number);
        }
        self.leave(number, step);
    }

    fn branch(&mut self, number: usize, step: &Step, distance: i32, link: bool) {
        if link {
            H::link(self, number);
        }
        let to = distance as usize / self.width();
        if (0..32).contains(&distance) && self.plan.steps[to].is_entry() {
            H::branch_within(self, number, step, to);
        }
        H::target_distance(self, distance);
        self.leave(number, step);
    }

    /// Branches on a core that predicts branches. `pending` is pending afterwards if the prediction was right.
    fn predicted_branch(
        &mut self,
        number: usize,
        step: &Step,
        (distance, link): (i32, bool),
        pending: Pending,
    ) {
        let [missed, wrong, right] = [(); 3].map(|()| self.ops.new_dynamic_label());
        let is_pending = pending != Pending::NONE;
        H::condition(self, step.condition, missed);
        H::taken(self, number, is_pending.then_some(wrong));
        if is_pending {
            if link {
                H::link(self, number);
            }
            H::target_distance(self, distance);
            let cycles = step.start + step.stall + step.leaving;
            H::go(self, cycles, number + 1, pending);
        }
        self.ops.dynamic_label(wrong);
        self.branch(number, step, distance, link);
        self.ops.dynamic_label(missed);
        if step.condition == ALWAYS {
            return;
        }
        H::not_taken(self, number, is_pending.then_some(right));
        if is_pending {
            // After a wrong prediction, nothing is pending, but the plan has something.
            H::target_instruction(self, number + 1);
            let cycles = step.start + step.stall + step.failing;
            H::go(self, cycles, number + 1, Pending::NONE);
        }
        self.ops.dynamic_label(right);
    }

    /// Goes on after an instruction whose condition passed, while other results are pending than the plan has.
    fn go_on_apart(&mut self, number: usize, step: &Step, pending: Pending) {
        let Some(entry) = self.plan.entry(number + 1, pending) else {
            H::target_instruction(self, number + 1);
            let cycles = step.start + step.stall + step.cycles;
            return H::go(self, cycles, number + 1, pending);
        };
        let more = entry.stall + step.cycles - step.failing;
        if more > 0 {
            H::count(self, more);
        }
        if entry.stall > 0 {
            H::count_wait(self, entry.stall);
        }
        if entry.is_told {
            H::tell(self, number + 1, pending);
        }
    }
}
