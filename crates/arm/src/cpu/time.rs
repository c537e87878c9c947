// SPDX-License-Identifier: MIT OR Apache-2.0
//! Passage of time. Time passes only here, and always for a [`Cause`]. An observer's sum of cycles over all causes
//! therefore equals the core's clock.

use super::Cpu;
use crate::bus::Bus;
use crate::isa::Op;
use crate::observe::Cause;

/// CP15 registers (CRn) of cache and TLB operations.
const MAINTENANCE: [u32; 2] = [7, 8];

impl<B: Bus> Cpu<B> {
    /// Lets time pass.
    #[inline(always)]
    pub(crate) fn spend(&mut self, cause: Cause, cycles: u64) {
        self.cycles += cycles;
        if B::OBSERVED {
            self.bus.spent(cause, cycles as i64);
        }
    }

    /// Lets time pass until `cycle`, all of it for one cause.
    #[inline(always)]
    pub(crate) fn spend_until(&mut self, cause: Cause, cycle: u64) {
        self.spend(cause, cycle - self.cycles);
    }

    /// Waits for the bus until `cycle`. While a write has the bus, the wait is charged to the cause of that write.
    #[inline(always)]
    pub(crate) fn wait_until(&mut self, cause: Cause, cycle: u64) {
        if B::OBSERVED {
            let mut rest = (cycle - self.cycles) as i64;
            for (from, to, writer) in self.memory.writes_since(self.cycles) {
                let within = to.min(cycle).saturating_sub(from.max(self.cycles)) as i64;
                self.bus.spent(writer, within);
                rest -= within;
            }
            self.bus.spent(cause, rest);
        }
        self.cycles = cycle;
    }

    /// Refunds `cycles` that the current instruction was charged.
    #[inline(always)]
    pub(crate) fn save(&mut self, cycles: u64) {
        self.cycles -= cycles;
        if B::OBSERVED {
            self.bus.spent(Cause::Instruction, -(cycles as i64));
        }
    }

    /// Charges the cycles of the current instruction, except one, to [`Cause::Branch`]. The instruction is a branch
    /// that refills the pipeline.
    #[inline(always)]
    pub(crate) fn refilled(&mut self, op: Op<B>) {
        if B::OBSERVED {
            let cycles = op.cycles() as i64 - 1;
            self.bus.spent(Cause::Instruction, -cycles);
            self.bus.spent(Cause::Branch, cycles);
        }
    }

    /// Charges the cycles of an MCR or MRC beyond its issue. `crn` is the CP15 register that it accesses.
    pub(super) fn spend_on_cp15(&mut self, crn: u32) {
        let cause = match MAINTENANCE.contains(&crn) {
            true => Cause::Maintenance,
            false => Cause::Instruction,
        };
        self.spend(cause, u64::from(self.config.cost.cp15_busy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr::Mva;
    use crate::mmu::Kind;
    use crate::model::ARM926EJS;
    use crate::psr::Z;
    use crate::tests::bus::{ObservedBus, TestBus};
    use crate::tests::core::{mapped_on, steps};

    /// Returns the causes and cycles of the last instruction of `code`. r1 points to a cacheable page, r2 to a buffered
    /// page, and r3 to a page that is neither. The condition EQ passes.
    fn spent(code: &[u32]) -> Vec<(Cause, i64)> {
        let mut ram = TestBus::new(1 << 20);
        ram.put(0x2_0000, code);
        let mut cpu = mapped_on(&ARM926EJS, ram, ObservedBus);
        cpu.config.cost.cp15_busy = 3;
        cpu.set_pc(0x2_0000);
        cpu.flags = Z;
        cpu.r[..4].copy_from_slice(&[0x4000, 0x3_0000, 0x40_0000, 0x30_0000]);
        for at in &cpu.r[1..4].to_vec() {
            assert!(cpu.translate(Mva(*at), Kind::Read, true).is_ok());
        }
        assert_eq!(cpu.prefetch_icache_line(Mva(0x2_0000)), Ok(()));
        steps(&mut cpu, code.len() - 1);
        let before = cpu.bus.0.spent;
        steps(&mut cpu, 1);
        let all = Cause::ALL
            .into_iter()
            .zip(cpu.bus.0.spent.iter().zip(before));
        let one = |(cause, (after, before)): (Cause, (&i64, i64))| (cause, after - before);
        all.map(one).filter(|(_, cycles)| *cycles != 0).collect()
    }

    const CLEAN: u32 = 0xee07_1f3a; // mcr p15, 0, r1, c7, c10, 1
    const LOAD_PAST: u32 = 0xe593_5000; // ldr r5, [r3]

    #[test]
    fn a_jump_is_charged_one_issue_cycle_and_the_pipeline_refill() {
        let branch = [(Cause::Instruction, 1), (Cause::Branch, 2)];
        assert_eq!(spent(&[0xea00_0000]), branch);
        assert_eq!(spent(&[0x0a00_0000]), branch);
        assert_eq!(spent(&[0x1a00_0000]), [(Cause::Instruction, 1)]);
    }

    #[test]
    fn caches_and_tlbs_are_maintained_and_other_registers_are_written() {
        let maintenance = [(Cause::Instruction, 1), (Cause::Maintenance, 3)];
        assert_eq!(spent(&[0xee07_0f9a]), maintenance); // c7, c10, 4
        assert_eq!(spent(&[0xee08_0f36]), maintenance); // c8, c6, 1
        assert_eq!(spent(&[0xee02_0f10]), [(Cause::Instruction, 4)]); // c2
    }

    #[test]
    fn a_wait_for_a_write_is_charged_to_the_cause_of_the_write() {
        // First str r4, [r2], which writes one word. Then the clean of a dirty line, which writes four words.
        let single = [
            (Cause::Instruction, 1),
            (Cause::WriteBuffer, 3),
            (Cause::Uncached, 4),
        ];
        assert_eq!(spent(&[0xe582_4000, LOAD_PAST]), single);
        let dirty = [0xe591_5000, 0xe581_4000, CLEAN, LOAD_PAST];
        let cleaned = [
            (Cause::Instruction, 1),
            (Cause::Maintenance, 15),
            (Cause::Uncached, 4),
        ];
        assert_eq!(spent(&dirty), cleaned);
    }
}
