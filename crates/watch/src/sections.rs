// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections of code with preemption off: how long they last, and which code begins them. The observer derives them from
//! the preemption count that Linux keeps in each task.
//!
//! The observer ([`board::Observer`]) changes nothing. A section begins with the store that makes the count of the
//! current task non-zero, and ends with the store that makes it 0. A task switch within a section does not end the
//! section. The idle task always has preemption off. Therefore, a section begins where the idle task calls the
//! scheduler, and a switch to the idle task ends a section. A section's time does not include the time of interrupts in
//! it. An interrupt outside a section is a separate section.

use std::collections::BTreeMap;

use crate::checker::calls::{Calls, Node};
use arm::{Context, Event, Reaction};
use board::Observer;
use board::bus::SystemBus;
use board::bus::dma::Transfer;

/// Bits of the count that are set while an interrupt or a softirq is handled (Linux include/linux/preempt.h).
const INTERRUPT: u32 = 0xf_0100;

/// Offset of the preemption count in a task, in bytes. A task begins with its thread_info: the flags, then the count
/// (Linux arch/arm/include/asm/thread_info.h).
pub const COUNT_OFFSET: u32 = 4;

/// Kernel addresses that are needed to follow sections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preemption {
    /// Entry of `__schedule()`.
    pub schedule: u32,
    /// Entry of `__switch_to()`: the task in r2 runs next.
    pub switch_to: u32,
    /// Address of the idle task.
    pub idle: u32,
    /// Offset of the count in a task, in bytes.
    pub count_offset: u32,
}

/// The sections that one instruction began under one chain of callers. Most fields describe the longest of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Number of these sections.
    pub times: u64,
    /// Core cycles since power-on at the start of the longest section.
    pub from: u64,
    /// Core cycles of the longest section, without interrupts.
    pub cycles: u64,
    /// Core cycles that interrupts took in the longest section.
    pub interrupts: u64,
    /// Virtual address of the instruction that began the section, and its callers, innermost first.
    pub begun: (u32, Vec<u32>),
    /// Virtual address of the instruction that ended the longest section, and its callers, innermost first.
    pub ended: (u32, Vec<u32>),
    /// Whether different tasks ran at the start and at the end.
    pub switched: bool,
    /// The longest calls in the section. Each entry has an instruction of the called function, its callers, and the
    /// cycles of the call. Calls in interrupts are included.
    pub within: Vec<(u32, Vec<u32>, u64)>,
}

/// Maximum number of calls in [`Section::within`].
const WITHIN: usize = 4;

/// An instruction and its callers.
type Place = (u32, Node);

#[derive(Clone, Copy)]
struct Open {
    from: u64,
    place: Place,
    task: u32,
    /// Interrupt bits of the count at the start.
    own: u32,
    /// Cycles of finished interrupts, and the start of the current interrupt.
    interrupts: u64,
    interrupt: Option<u64>,
}

#[derive(Clone)]
struct Longest {
    times: u64,
    from: u64,
    cycles: u64,
    interrupts: u64,
    ended: Place,
    switched: bool,
    within: Vec<(Place, u64)>,
}

/// Follows the sections of a running board.
#[derive(Clone)]
pub struct Sections {
    kernel: Preemption,
    calls: Calls,
    task: u32,
    open: Option<Open>,
    /// Calls in the open section. Each call has an instruction of its function, and its cycles.
    spent: BTreeMap<Node, (u32, u64)>,
    /// Current call, and the cycle of its start.
    within: (Node, u64),
    met: BTreeMap<Place, Longest>,
}

impl Sections {
    /// Returns an observer of a kernel in which `task` runs. Preemption must be on, unless `task` is the idle task.
    pub fn new(kernel: Preemption, task: u32) -> Sections {
        Sections {
            kernel,
            calls: Calls::new(),
            task,
            open: None,
            spent: BTreeMap::new(),
            within: (0, 0),
            met: BTreeMap::new(),
        }
    }

    /// Returns the longest section of each group. A group has one instruction that begins sections and one chain of
    /// callers.
    pub fn all(&self) -> impl Iterator<Item = Section> + use<'_> {
        let place = |(pc, node): Place| (pc, self.calls.callers(node));
        self.met.iter().map(move |(begun, longest)| Section {
            times: longest.times,
            from: longest.from,
            cycles: longest.cycles,
            interrupts: longest.interrupts,
            begun: place(*begun),
            ended: place(longest.ended),
            switched: longest.switched,
            within: (longest.within.iter())
                .map(|((pc, node), cycles)| (*pc, self.calls.callers(*node), *cycles))
                .collect(),
        })
    }

    fn begin(&mut self, context: &Context, count: u32) {
        let node = self.calls.now(context);
        self.spent.clear();
        self.spent.insert(node, (context.pc, 0));
        self.within = (node, context.cycle);
        self.open = Some(Open {
            from: context.cycle,
            place: (context.pc, node),
            task: self.task,
            own: count & INTERRUPT,
            interrupts: 0,
            interrupt: None,
        });
    }

    /// Follows the open section into another call, or to the section's end.
    fn follow_call(&mut self, context: &Context, node: Node) {
        let (before, since) = core::mem::replace(&mut self.within, (node, context.cycle));
        if let Some(call) = self.spent.get_mut(&before) {
            call.1 += context.cycle - since;
        }
        self.spent.entry(node).or_insert((context.pc, 0));
    }

    fn end(&mut self, context: &Context) {
        let Some(open) = self.open.take() else {
            return;
        };
        self.follow_call(context, self.within.0);
        let cycles = context.cycle - open.from - open.interrupts;
        let mut times = 1;
        if let Some(met) = self.met.get_mut(&open.place) {
            met.times += 1;
            times = met.times;
            if met.cycles >= cycles {
                return;
            }
        }
        let longest = Longest {
            times,
            from: open.from,
            cycles,
            interrupts: open.interrupts,
            ended: (context.pc, self.calls.now(context)),
            switched: open.task != self.task,
            within: longest(&self.spent),
        };
        self.met.insert(open.place, longest);
    }

    #[inline]
    fn fetched(&mut self, context: &Context, registers: &[u32; 16]) {
        if self.open.is_some() {
            let node = self.calls.now(context);
            if node != self.within.0 {
                self.follow_call(context, node);
            }
        }
        if context.pc == self.kernel.schedule && self.task == self.kernel.idle {
            self.begin(context, 0);
        } else if context.pc == self.kernel.switch_to {
            self.task = registers[2];
            if self.task == self.kernel.idle {
                self.end(context);
            }
        }
    }

    fn counted(&mut self, context: &Context, count: u32) {
        let is_idle = self.task == self.kernel.idle;
        let now = context.cycle;
        match &mut self.open {
            None if is_idle || count == 0 => {}
            None => self.begin(context, count),
            Some(_) if count == 0 && !is_idle => self.end(context),
            Some(open) if count & INTERRUPT & !open.own == 0 => {
                open.interrupts += open.interrupt.take().map_or(0, |since| now - since);
            }
            Some(open) => {
                open.interrupt.get_or_insert(now);
            }
        }
    }
}

/// Returns the longest calls.
fn longest(spent: &BTreeMap<Node, (u32, u64)>) -> Vec<(Place, u64)> {
    let all = spent.iter();
    let mut all: Vec<_> = all
        .map(|(node, (pc, cycles))| ((*pc, *node), *cycles))
        .collect();
    all.sort_by_key(|(_, cycles)| core::cmp::Reverse(*cycles));
    all.truncate(WITHIN);
    all
}

impl Observer for Sections {
    #[inline]
    fn observe(&mut self, _: &SystemBus, context: &Context, event: Event<'_>) -> Reaction {
        match event {
            Event::Fetch {
                width,
                value,
                registers,
                ..
            } => {
                self.calls.fetched(context, width, value, registers);
                self.fetched(context, registers);
            }
            Event::Store { mva, value, .. }
                if mva.0 == self.task.wrapping_add(self.kernel.count_offset) =>
            {
                self.counted(context, value);
            }
            _ => {}
        }
        Reaction::Continue
    }

    fn transferred(&mut self, _: &Transfer) -> Reaction {
        Reaction::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arm::{Mva, Pa, Width};
    use board::spec::BoardSpec;

    const KERNEL: Preemption = Preemption {
        schedule: 0xc000_1000,
        switch_to: 0xc000_2000,
        idle: 0xc100_0000,
        count_offset: 4,
    };
    const TASKS: [u32; 2] = [0xc200_0000, 0xc200_1000];

    struct Scripted {
        bus: SystemBus,
        sections: Sections,
        cycle: u64,
    }

    impl Scripted {
        fn new(task: u32) -> Scripted {
            Scripted {
                bus: SystemBus::new(&BoardSpec::named("sam9263").unwrap()).unwrap(),
                sections: Sections::new(KERNEL, task),
                cycle: 0,
            }
        }

        fn send(&mut self, pc: u32, event: Event<'_>) {
            self.cycle += 10;
            let context = Context {
                cycle: self.cycle,
                pc,
                mode: 0x13,
                ..Context::default()
            };
            self.sections.observe(&self.bus, &context, event);
        }

        fn counts(&mut self, pc: u32, task: u32, value: u32) {
            let store = Event::Store {
                mva: Mva(task + 4),
                pa: Pa(0),
                width: Width::Word,
                value,
                cached: true,
            };
            self.send(pc, store);
        }

        fn at(&mut self, pc: u32, next: u32) {
            let mut registers = [0; 16];
            (registers[2], registers[13]) = (next, 0xc010_0000);
            let fetch = Event::Fetch {
                mva: Mva(pc),
                pa: Pa(0),
                width: Width::Word,
                value: 0,
                cached: true,
                registers: &registers,
            };
            self.send(pc, fetch);
        }

        /// Returns for each section: the first instruction, the last instruction, the cycles, the count, and whether
        /// tasks switched.
        fn all(&self) -> Vec<(u32, u32, u64, u64, bool)> {
            let one = |s: Section| (s.begun.0, s.ended.0, s.cycles, s.times, s.switched);
            self.sections.all().map(one).collect()
        }
    }

    #[test]
    fn a_section_lasts_until_the_count_is_0_and_the_longest_is_kept() {
        let mut script = Scripted::new(TASKS[0]);
        for inner in [0, 3, 1] {
            script.counts(8, TASKS[0], 1);
            for _ in 0..inner {
                script.counts(12, TASKS[0], 2);
                script.counts(TASKS[1], TASKS[1], 0);
            }
            script.counts(16, TASKS[0], 0);
        }
        assert_eq!(script.all(), [(8, 16, 70, 3, false)]);
    }

    #[test]
    fn an_interrupt_in_a_section_is_not_its_own_time_and_one_outside_is_a_section() {
        let mut script = Scripted::new(TASKS[0]);
        for count in [1, 0x1_0001, 0x1_0002, 1, 0x101, 1, 0] {
            script.counts(8, TASKS[0], count);
        }
        script.counts(12, TASKS[0], 0x1_0000);
        script.counts(16, TASKS[0], 0x1_0001);
        script.counts(20, TASKS[0], 0);
        let expected = [(8, 8, 30, 1, false), (12, 20, 20, 1, false)];
        assert_eq!(script.all(), expected);
        assert_eq!(script.sections.all().next().unwrap().interrupts, 30);
    }

    #[test]
    fn an_interrupt_in_a_softirq_or_in_the_idle_tasks_section_is_not_its_own_time() {
        let mut script = Scripted::new(TASKS[0]);
        for count in [0x100, 0x1_0100, 0x1_0101, 0x1_0100, 0x100, 0] {
            script.counts(8, TASKS[0], count);
        }
        script.at(KERNEL.switch_to, KERNEL.idle);
        script.at(KERNEL.schedule, 0);
        for count in [0x1_0001, 0x1_0002, 0x1_0001, 1] {
            script.counts(12, KERNEL.idle, count);
        }
        script.at(KERNEL.switch_to, TASKS[0]);
        script.counts(16, TASKS[0], 0);
        let expected = [(8, 8, 20, 1, false), (KERNEL.schedule, 16, 30, 1, true)];
        assert_eq!(script.all(), expected);
    }

    #[test]
    fn an_idle_task_that_keeps_running_does_not_grow_a_section() {
        let mut script = Scripted::new(KERNEL.idle);
        script.at(KERNEL.schedule, 0);
        for n in 0..1000 {
            script.at(0xc000_3000 + 4 * (n & 1), 0);
        }
        assert!(script.sections.spent.len() < 3);
        script.at(KERNEL.schedule, 0);
        script.at(KERNEL.switch_to, TASKS[0]);
        script.counts(16, TASKS[0], 0);
        assert_eq!(script.all(), [(KERNEL.schedule, 16, 20, 1, true)]);
    }

    #[test]
    fn a_change_of_task_ends_no_section_and_one_to_the_idle_task_does() {
        let mut script = Scripted::new(TASKS[0]);
        script.counts(8, TASKS[0], 1);
        script.at(KERNEL.switch_to, TASKS[1]);
        script.counts(16, TASKS[1], 0);
        script.counts(24, TASKS[1], 1);
        script.at(KERNEL.switch_to, KERNEL.idle);
        script.counts(32, KERNEL.idle, 0);
        script.counts(36, KERNEL.idle, 1);
        script.at(KERNEL.schedule, 0);
        script.at(KERNEL.switch_to, TASKS[0]);
        script.counts(40, TASKS[0], 0);
        let expected = [
            (8, 16, 20, 1, true),
            (24, KERNEL.switch_to, 10, 1, true),
            (KERNEL.schedule, 40, 20, 1, true),
        ];
        assert_eq!(script.all(), expected);
    }
}
