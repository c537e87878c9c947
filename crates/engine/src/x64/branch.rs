// SPDX-License-Identifier: MIT OR Apache-2.0
//! Branches, within a line and to other lines.

use arm::engine::{Pending, Set};
use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::LIMIT;
use super::line::{Line, asm};
use crate::action::ALWAYS;
use crate::plan::Step;

impl Line<'_> {
    /// Leaves the line for the address in `eax`.
    pub fn leave(&mut self, number: usize, step: &Step) {
        self.go(step.start + step.stall + step.leaving, number + 1, 0);
    }

    /// Jumps to the address in `eax`, without its low bits.
    pub fn jump_to(&mut self, number: usize, step: &Step, link: bool) {
        asm!(self ; and eax, BYTE -(self.width() as i8));
        if link {
            self.link(number);
        }
        self.leave(number, step);
    }

    /// Puts the return address into r14. In Thumb state, its bit 0 is set.
    fn link(&mut self, number: usize) {
        let thumb = i8::from(self.f.set == Set::Thumb);
        let next = (self.width() * (number + 1)) as i8 + thumb;
        asm!(self
            ; lea ecx, [BYTE r14 + next]
            ; mov [BYTE rbx + self.r(14)], ecx
        );
    }

    pub fn branch(&mut self, number: usize, step: &Step, distance: i32, link: bool) {
        if link {
            self.link(number);
        }
        let to = distance as usize / self.width();
        if (0..32).contains(&distance) && self.plan.steps[to].is_entry() {
            self.branch_within(number, step, to);
        }
        asm!(self ; lea eax, [r14 + distance]);
        self.leave(number, step);
    }

    /// Branches on a core that predicts branches. `pending` is pending afterwards if the prediction was right.
    pub fn predicted_branch(
        &mut self,
        number: usize,
        step: &Step,
        (distance, link): (i32, bool),
        pending: Pending,
    ) {
        let missed = self.ops.new_dynamic_label();
        let [taken, not_taken] = [self.stubs.taken, self.stubs.not_taken];
        let at = (self.width() * number) as i8 + 1;
        self.condition(step.condition, missed);
        asm!(self ; lea eax, [BYTE r14 + at] ; call extern taken);
        if pending != Pending::NONE {
            asm!(self ; jc >wrong);
            if link {
                self.link(number);
            }
            asm!(self ; lea eax, [r14 + distance]);
            self.go(
                step.start + step.stall + step.leaving,
                number + 1,
                pending.bits(),
            );
            asm!(self ; wrong:);
        }
        self.branch(number, step, distance, link);
        asm!(self ; =>missed);
        if step.condition == ALWAYS {
            return;
        }
        asm!(self ; lea eax, [BYTE r14 + at] ; call extern not_taken);
        if pending != Pending::NONE {
            // After a wrong prediction, nothing is pending, but the plan has something.
            let on = (self.width() * (number + 1)) as i8;
            asm!(self ; jnc >on ; lea eax, [BYTE r14 + on]);
            self.go(step.start + step.stall + step.failing, number + 1, 0);
            asm!(self ; on:);
        }
    }

    /// Goes on after an instruction whose condition passed, while other results are pending than the plan has.
    pub fn go_on_apart(&mut self, number: usize, step: &Step, pending: Pending) {
        let Some(entry) = self.plan.entry(number + 1, pending) else {
            let on = (self.width() * (number + 1)) as i8;
            asm!(self ; lea eax, [BYTE r14 + on]);
            return self.go(
                step.start + step.stall + step.cycles,
                number + 1,
                pending.bits(),
            );
        };
        let more = entry.stall + step.cycles - step.failing;
        if more > 0 {
            asm!(self ; add r12, BYTE more as i8);
        }
        if entry.stall > 0 {
            asm!(self ; add QWORD [rbx + self.f.interlock_cycles], entry.stall as i32);
        }
        if entry.is_told {
            self.tell(number + 1, pending);
        }
    }

    /// Branches to another instruction of the line, if the horizon is not near.
    fn branch_within(&mut self, number: usize, step: &Step, to: usize) {
        let cycles = (step.start + step.stall + step.leaving) as i8;
        let start = self.waited[to];
        let to_cycles = self.plan.steps[to].start + self.plan.steps[to].stall;
        asm!(self
            ; lea rax, [BYTE r12 + cycles]
            ; cmp rax, [BYTE rbp + LIMIT]
            ; ja >far
            ; add r12, BYTE cycles - to_cycles as i8
            ; add r13, BYTE number as i8 + 1 - to as i8
            ; jmp =>start
            ; far:
        );
    }
}
