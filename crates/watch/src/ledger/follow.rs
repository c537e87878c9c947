// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows execution: the current function, task and interrupt.

use super::calls::Arrival;
use super::evictions::Settled;
use super::names::name;
use super::trace::{Step, StepKind};
use super::{Function, Hooks, IRQ, IRQ_VECTOR, Ledger, Masked, Task, TaskId, USER, VECTORS};
use arm::{Cause, Context, Cpu, Event, Exit, Reaction, Side};
use board::bus::SystemBus;
use board::bus::dma::Transfer;
use board::{Observed, Observer};

impl Ledger {
    /// Charges the next cycles to the instruction at the context's pc.
    #[inline]
    fn at(&mut self, context: &Context) {
        if context.pc.wrapping_sub(self.from) >= self.bytes {
            let function = self.enter(context);
            self.calls.go_ahead(function);
            self.ahead = true;
        }
    }

    #[inline(never)]
    fn enter(&mut self, context: &Context) -> Function {
        let user = context.mode & 0x1f == USER;
        let (function, from, bytes) = self.recent.at(&self.functions, context.pc, user);
        self.user = user;
        (self.from, self.bytes) = (from, bytes);
        self.now = self.cell(function);
        self.trace.note(context.cycle, self.now, StepKind::Function);
        function
    }

    /// Follows an instruction outside the last function. The instruction may be a call, a return, an exception or a
    /// task switch.
    #[inline(never)]
    fn arrived(&mut self, context: &Context, registers: &[u32; 16]) -> Reaction {
        let pc = context.pc;
        let handler_return = self.interrupts.last().and_then(|(_, back)| *back);
        let ends = handler_return == Some((pc, registers[13]));
        let mut interrupted = None;
        if ends {
            self.interrupts.pop();
            interrupted = self.calls.interrupt_ended();
            self.take_place();
            self.trace
                .note(context.cycle, self.now, StepKind::InterruptEnd);
        }
        let from_user = || self.functions.of(registers[14]) == Function::USER;
        if pc & 0xffff < VECTORS && context.mode & 0x1f != USER && from_user() {
            self.calls.arrived_from_user();
        }
        if pc & 0xffff == IRQ_VECTOR && context.mode & 0x1f == IRQ {
            self.interrupts.push((None, None));
            self.calls.interrupt();
            self.take_place();
            self.trace
                .note(context.cycle, self.now, StepKind::Interrupt);
        }
        let mut function = self.enter(context);
        // User land is outside all interrupts.
        if self.user && !self.interrupts.is_empty() {
            self.interrupts.clear();
            self.take_place();
            function = self.enter(context);
        }
        let first = pc == self.from && pc != 0;
        self.calls.arrived(Arrival {
            function,
            first,
            pc,
            stack: registers[13],
            link: registers[14] & !1,
        });
        if let Some(call) = interrupted.filter(|_| self.interrupts.is_empty()) {
            self.wakes.interrupt_ended(context.cycle, call);
        }
        if self.user {
            self.in_user_land(context.cycle);
            return Reaction::Continue;
        }
        if !first {
            return Reaction::Continue;
        }
        self.called(context, registers)
    }

    /// Follows a user instruction that is about to be executed.
    fn in_user_land(&mut self, cycle: u64) {
        self.switches.in_user_land(&self.sum);
        let sample = self.wakes.in_user_land(cycle, self.task, &self.sum);
        let Some(sample) = sample.filter(|_| self.trace.is_on()) else {
            return;
        };
        let steps = self.trace.since(self.wakes.samples()[sample].rise);
        let function = |step: &Step| self.cells[step.cell as usize].owner.function;
        self.wakes.set_visited(sample, steps.iter().map(function));
        if self.wakes.keeps(sample) {
            let steps = steps.to_vec();
            self.wakes.set_steps(sample, steps);
        }
    }

    /// Follows the call of a function, and recognises the hooks.
    fn called(&mut self, context: &Context, registers: &[u32; 16]) -> Reaction {
        let Hooks {
            schedule,
            switch_to,
            exit,
            dead,
            irq,
            irq_line,
            enqueue,
            name_offset,
        } = self.hooks;
        let pc = context.pc;
        if pc == schedule {
            self.switches.begin(context.cycle, &self.sum);
            self.wakes.scheduled();
            self.trace.note(context.cycle, self.now, StepKind::Schedule);
        } else if pc == switch_to {
            self.switch_to(context, registers);
        } else if enqueue.contains(&pc) && registers[2] & 1 != 0 {
            self.woken(context.cycle, registers[1]);
        } else if pc == irq {
            if let Some(last) = self.interrupts.last_mut() {
                last.1 = Some((registers[14] & !1, registers[13]));
            }
        } else if pc == irq_line {
            if let Some(last) = self.interrupts.last_mut() {
                // The first call is for the interrupt controller next to the core. Calls for cascaded controllers may
                // follow.
                last.0.get_or_insert(registers[1]);
                self.take_place();
                let function = self.enter(context);
                self.calls.stay(function, registers[13]);
            }
        } else if pc == dead {
            self.tasks[self.task as usize].dead = true;
        } else if pc == exit {
            let task = &mut self.tasks[self.task as usize];
            task.ended = true;
            task.dead |= dead == 0;
            if name_offset.is_some() {
                self.exiting = true;
                return Reaction::Stop;
            }
        }
        Reaction::Continue
    }

    fn woken(&mut self, cycle: u64, address: u32) {
        let task = self.task_at(address);
        self.trace.note(cycle, self.now, StepKind::Wake(task));
        if task != self.task {
            let line = self.interrupts.last().map(|(line, _)| *line);
            match line {
                // If the interrupt's line is unknown, the cause of the wake-up is unknown, too.
                Some(None) => {}
                line => self.wakes.woken(cycle, task, line.flatten(), self.task),
            }
        }
    }

    pub(super) fn task_at(&mut self, address: u32) -> TaskId {
        let dead = |task: &TaskId| self.tasks[*task as usize].dead && *task != self.task;
        if let Some(task) = self.living.get(&address).filter(|task| !dead(task)) {
            return *task;
        }
        let task = self.tasks.len() as TaskId;
        self.tasks.push(Task {
            address,
            ended: false,
            dead: false,
            name: String::new(),
        });
        self.living.insert(address, task);
        task
    }

    fn switch_to(&mut self, context: &Context, registers: &[u32; 16]) {
        let before = self.task;
        self.task = self.task_at(registers[2]);
        let dead = self.tasks[before as usize].dead;
        let stack = registers[13];
        self.calls.switch((before, self.task), dead, stack);
        self.switches.switch(context.cycle, (before, self.task));
        self.wakes.switched(context.cycle, (before, self.task));
        self.take_place();
        let function = self.enter(context);
        self.calls.stay(function, registers[13]);
        self.trace
            .note(context.cycle, self.now, StepKind::Switch(self.task));
    }

    /// Follows an event of a line or a translation.
    #[inline(never)]
    fn moved(&mut self, context: &Context, event: Event<'_>) {
        self.at(context);
        let by = (self.now, self.switches.open());
        match event {
            Event::Fill { side, mva, .. } if side != Side::Prefetch => {
                self.settle();
                self.lost.filled(by.0, side, mva, context.cycle);
            }
            Event::FillAwaited { mva } => {
                self.settle();
                self.lost.awaited(by.0, mva);
            }
            Event::StoreMissed { mva, cycles } => {
                let settled = self.lost.store_missed(by.0, mva, cycles);
                self.suffered(&settled);
            }
            Event::Claim { mva } => self.lost.claimed(mva, context.cycle),
            Event::Replaced { side, mva } => self.lost.replaced(by, side, mva),
            Event::Invalidate { side, mva, .. } => self.lost.invalidated(by, side, mva),
            Event::InvalidateAll { side } => self.lost.all_invalidated(by, side, context.cycle),
            Event::TlbFill {
                side,
                entry,
                mva,
                bytes,
                locked,
            } => {
                self.settle();
                let page = (bytes, locked);
                self.lost.tlb_filled(by, (side, entry), mva, page);
            }
            Event::TlbInvalidate { side, entry } => {
                self.lost.tlb_invalidated(by, (side, entry));
            }
            Event::TlbInvalidateAll { side } => self.lost.tlb_all_invalidated(by, side),
            Event::TlbUnlock { side } => self.lost.tlb_unlocked(side),
            _ => {}
        }
    }

    #[cold]
    fn follow_edges(&mut self, system: &SystemBus) {
        let edges = &system.edges()[self.edges.min(system.edges().len())..];
        self.edges = system.edges().len();
        if let Some(edge) = edges.iter().rev().find(|edge| edge.pin == 0) {
            self.timed = edge.level;
            self.switches.set_timed(self.timed);
            self.take_place();
        }
    }

    /// Ends the last miss, whose cycles are now known.
    fn settle(&mut self) {
        if let Some(settled) = self.lost.settle(self.timed) {
            self.suffered(&settled);
        }
    }

    fn suffered(&mut self, settled: &Settled) {
        self.switches.suffered(settled);
        self.trace.missed(settled);
    }
}

impl Observer for Ledger {
    const ACCESSES: bool = false;

    /// Runs the core. Whenever a task exits, reads the task's name and continues.
    #[inline(never)]
    fn run_core(cpu: &mut Cpu<Observed<Ledger>>, limit: u64) -> Exit {
        loop {
            let exit = cpu.run(limit);
            let ledger = &mut cpu.bus.observer;
            if !core::mem::take(&mut ledger.exiting) {
                return exit;
            }
            let task = ledger.task;
            name(cpu, task);
            cpu.bus.go_on();
            if exit != Exit::Attention {
                return exit;
            }
        }
    }

    #[inline]
    fn observe(&mut self, system: &SystemBus, context: &Context, event: Event<'_>) -> Reaction {
        let Event::Fetch { registers, .. } = event else {
            self.moved(context, event);
            return Reaction::Continue;
        };
        if self.lost.is_waiting() {
            self.settle();
        }
        if system.edges().len() != self.edges {
            self.follow_edges(system);
        }
        if self.masked != context.masked {
            self.masked = context.masked;
            self.changed = Masked {
                since: context.cycle,
                at: self.now,
                call: self.calls.now(),
            };
            self.trace
                .note(context.cycle, self.now, StepKind::Masked(self.masked));
        }
        // If the fetch of this instruction missed, `now` may already belong to the instruction's function.
        if context.pc.wrapping_sub(self.from) >= self.bytes || self.ahead {
            self.ahead = false;
            return self.arrived(context, registers);
        }
        Reaction::Continue
    }

    fn transferred(&mut self, transfer: &Transfer) -> Reaction {
        self.masters.add(transfer);
        Reaction::Continue
    }

    fn raised(&mut self, now: u64, lines: u64) {
        if self.wakes.is_idle() {
            self.trace.begin();
        }
        let masked = self.masked.then_some(self.changed);
        self.wakes.raised(now, lines, &self.sum, masked);
        self.trace.note(now, self.now, StepKind::Raised(lines));
    }

    #[inline]
    fn spent(&mut self, cause: Cause, cycles: i64) {
        self.sum[cause as usize] += cycles;
        self.cells[self.now as usize].spent[cause as usize] += cycles;
        self.calls.spent(cause, cycles);
        if self.lost.spent(cause, cycles) {
            self.settle();
        }
    }
}
