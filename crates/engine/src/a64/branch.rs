// SPDX-License-Identifier: MIT OR Apache-2.0
//! Branches, within a line and to other lines.

use arm::engine::{Pending, Set};
use dynasmrt::aarch64::RX;
use dynasmrt::{DynasmApi, DynasmLabelApi};

use super::line::{Line, asm};
use crate::action::ALWAYS;
use crate::plan::Step;

impl Line<'_> {
    /// Leaves the line for the address in `w0`.
    pub fn leave(&mut self, number: usize, step: &Step) {
        self.go(step.start + step.stall + step.leaving, number + 1, 0);
    }

    /// Jumps to the address in `w0`, without its low bits.
    pub fn jump_to(&mut self, number: usize, step: &Step, link: bool) {
        match self.f.set {
            Set::A32 => asm!(self ; and w0, w0, !3),
            Set::Thumb => asm!(self ; and w0, w0, !1),
        }
        if link {
            self.link(number);
        }
        self.leave(number, step);
    }

    /// Puts the return address into r14. In Thumb state, its bit 0 is set.
    fn link(&mut self, number: usize) {
        let thumb = u32::from(self.f.set == Set::Thumb);
        asm!(self
            ; add w1, w23, self.distance(number + 1) + thumb
            ; str w1, [x19, self.r(14)]
        );
    }

    pub fn branch(&mut self, number: usize, step: &Step, distance: i32, link: bool) {
        if link {
            self.link(number);
        }
        let to = distance as usize / self.f.set.width();
        if (0..32).contains(&distance) && self.plan.steps[to].is_entry() {
            self.branch_within(number, step, to);
        }
        self.add(RX::X0, RX::X23, distance);
        self.leave(number, step);
    }

    /// Branches to another instruction of the line, if the horizon is not near.
    fn branch_within(&mut self, number: usize, step: &Step, to: usize) {
        let cycles = step.start + step.stall + step.leaving;
        let start = self.waited[to];
        let to_cycles = self.plan.steps[to].start + self.plan.steps[to].stall;
        asm!(self
            ; add x9, x21, u32::from(cycles)
            ; cmp x9, x27
            ; b.hi >far
            ; sub x21, x9, u32::from(to_cycles)
            ; add x22, x22, number as u32 + 1
            ; sub x22, x22, to as u32
            ; b =>start
            ; far:
        );
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
        let at = self.distance(number) + 1;
        self.condition(step.condition, missed);
        asm!(self ; add w0, w23, at ; bl extern taken);
        if pending != Pending::NONE {
            asm!(self ; b.ne >wrong);
            if link {
                self.link(number);
            }
            self.add(RX::X0, RX::X23, distance);
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
        asm!(self ; add w0, w23, at ; bl extern not_taken);
        if pending != Pending::NONE {
            // After a wrong prediction, nothing is pending, but the plan has something.
            asm!(self ; b.eq >on ; add w0, w23, self.distance(number + 1));
            self.go(step.start + step.stall + step.failing, number + 1, 0);
            asm!(self ; on:);
        }
    }

    /// Goes on after an instruction whose condition passed, while other results are pending than the plan has.
    pub fn go_on_apart(&mut self, number: usize, step: &Step, pending: Pending) {
        let Some(entry) = self.plan.entry(number + 1, pending) else {
            asm!(self ; add w0, w23, self.distance(number + 1));
            return self.go(
                step.start + step.stall + step.cycles,
                number + 1,
                pending.bits(),
            );
        };
        let more = entry.stall + step.cycles - step.failing;
        if more > 0 {
            asm!(self ; add x21, x21, u32::from(more));
        }
        self.wait(entry.stall);
        if entry.is_told {
            self.tell(number + 1, pending);
        }
    }
}
