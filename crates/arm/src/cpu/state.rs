// SPDX-License-Identifier: MIT OR Apache-2.0
//! The saved state of the core, taken between two calls of [`Cpu::run`].
//!
//! Decoded operations are not saved; a restore looks them up by their words. The current line is saved, because until
//! the core leaves it, its operations execute without another lookup in cache and TLB.

use super::Cpu;
use super::engine::Slot;
use crate::bus::{Bus, Signals};
use crate::cpu::Interlock;
use crate::isa::{DecodeTable, Op};
use crate::psr;
use crate::state::{Damaged, Saved, State};

crate::state!(Signals: irq, fiq, stopped, attention);

impl State for Interlock {
    fn save(&self, to: &mut Vec<u8>) {
        self.0.save(to);
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        self.0.restore(from)
    }
}

crate::state!(
    Cpu<B: Bus>:
    r, pc, flags, control, banks,
    cycles, interlock, fetch, fcse,
    waiting, signals, abort_chain, monitor, imprecise_abort, first_later, cp15, branches, fills, memory, counters, bus;
    horizon, exit, config, decode, cp15_rows, engine
    => restored
);

/// Bound for clocks and counters. A core needs many years to reach it, and values below it leave room for additions.
const LATEST: u64 = 1 << 56;

impl<B: Bus> Cpu<B> {
    /// Moves the core to another bus, which `wrap` makes from the current bus. Call it between two calls of
    /// [`Cpu::run`]. If the new bus has the contents and timing of the old one, the move changes no byte and no cycle
    /// of the run.
    pub fn on_bus<C: Bus>(self, wrap: impl FnOnce(B) -> C) -> Cpu<C> {
        let undecoded = Op::undecoded(Cpu::<C>::decode_and_execute);
        let mut cpu = Cpu {
            memory: self.memory.on_bus(&self.config, undecoded),
            decode: DecodeTable::new(self.config.core),
            cp15_rows: self.config.core.cp15(),
            bus: wrap(self.bus),
            r: self.r,
            pc: self.pc,
            flags: self.flags,
            control: self.control,
            banks: self.banks,
            cycles: self.cycles,
            horizon: self.horizon,
            interlock: self.interlock,
            fetch: self.fetch,
            fcse: self.fcse,
            waiting: self.waiting,
            signals: self.signals,
            exit: self.exit,
            abort_chain: self.abort_chain,
            monitor: self.monitor,
            imprecise_abort: self.imprecise_abort,
            first_later: self.first_later,
            config: self.config,
            cp15: self.cp15,
            branches: self.branches,
            fills: self.fills,
            counters: self.counters,
            engine: Slot::EMPTY,
        };
        // An observer then receives the next use of each translation.
        cpu.memory.drop_translations();
        let found = cpu.find_slot();
        assert!(found.is_ok(), "the current line is in the I-cache");
        cpu
    }

    /// Checks a restored state.
    fn restored(&mut self) -> Result<(), Damaged> {
        let parts = [
            self.memory.latest(),
            self.cp15.own.latest(),
            self.fills.latest(),
        ];
        let counters = self.counters.entries().into_iter().map(|(_, count)| count);
        let mut all = [self.cycles].into_iter().chain(parts).chain(counters);
        if self.flags & !(psr::N | psr::Z | psr::C | psr::V | psr::Q) != 0 {
            return Err(Damaged("the flags have other bits"));
        }
        if all.any(|n| n >= LATEST) {
            return Err(Damaged("a clock or counter is out of range"));
        }
        if self.fills.last_line() >= self.memory.data_lines() {
            return Err(Damaged("a pending line fill names no line of the D-cache"));
        }
        self.find_slot()
    }
}

#[cfg(test)]
mod tests {
    use crate::addr::Mva;
    use crate::bus::Width;
    use crate::mmu::Kind;
    use crate::model::IXP42X;
    use crate::psr::T;
    use crate::tests::bus::{ObservedBus, TestBus};
    use crate::tests::core::{mapped, mapped_on, steps};

    /// In a damaged state, the instruction set state can be wrong. The number of an A32 slot may then be too large,
    /// because Thumb operations have their own, fewer slots.
    #[test]
    fn a_current_line_of_another_state_than_the_cores_is_refused() {
        let mut cpu = mapped();
        cpu.bus.put(0x2_0000, &[0xe1a0_0000; 2]); // mov r0, r0
        cpu.set_pc(0x2_0000);
        steps(&mut cpu, 1);
        assert_eq!(cpu.find_slot(), Ok(()));
        cpu.control ^= T;
        assert!(cpu.find_slot().is_err());
        cpu.control ^= T;
        cpu.fetch.set_thumb(true);
        assert!(cpu.find_slot().is_err());
    }

    #[test]
    fn a_line_on_its_way_that_the_cache_does_not_have_is_refused() {
        let mut cpu = mapped_on(&IXP42X, TestBus::new(1 << 20), ObservedBus);
        assert_eq!(cpu.restored(), Ok(()));
        let last = cpu.dcache().lines() as u32 - 1;
        for (line, whole) in [(last, true), (last + 1, false), (u32::MAX, false)] {
            cpu.fills.expect(line, 0);
            assert_eq!(cpu.restored().is_ok(), whole, "{line}");
        }
    }

    /// An observer receives the next use of each translation. Within the current line, the core needs no translation.
    #[test]
    fn on_another_bus_the_core_goes_on_in_its_line_and_has_no_translation_at_hand() {
        let mut cpu = mapped();
        cpu.bus.put(0x2_0000, &[0xe281_1001; 8]); // add r1, r1, #1
        cpu.set_pc(0x2_0000);
        assert!(cpu.load(0x4000, Width::Word).is_ok());
        steps(&mut cpu, 1);
        assert!(cpu.mmu().lookup(Mva(0x4000), Kind::Read).is_some());
        cpu.bus.put(0x2_0000, &[0xe281_1010; 8]); // add r1, r1, #16
        let mut observed = cpu.on_bus(ObservedBus);
        assert!(observed.mmu().lookup(Mva(0x4000), Kind::Read).is_none());
        assert!(observed.mmu().grants.read(Mva(0x4000), 3).is_none());
        steps(&mut observed, 2);
        assert_eq!(observed.register(1), 3);
    }
}
