// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions that only XScale has. Coprocessor 0 adds products to a 40-bit accumulator (IXP42X 3.8.3.1). Until the
//! coprocessor access register grants access, its instructions are undefined in every mode. For accumulators other than
//! acc0, they are always undefined. MCR and MRC access coprocessor 14.

use crate::bus::Bus;
use crate::cpu::cp15::CP14;
use crate::cpu::{Cpu, Interlock};
use crate::isa::coprocessor::{execute_mcr, execute_mrc};
use crate::isa::multiply::magnitude;
use crate::isa::{Exec, Op, bit, rd, rm, rn};
use crate::model::Core;
use crate::observe::Cause;

rows! {
    ("MIA", V5E, "cccc111000100000ssss00000001mmmm", mia, "mia{c} acc0, {m}, {s}");
    ("MIAPH", V5E, "cccc111000101000ssss00000001mmmm", product::<B, PACKED>,
        "miaph{c} acc0, {m}, {s}");
    ("MIAxy", V5E, "cccc1110001011xyssss00000001mmmm", product::<B, HALVES>,
        "mia{x}{y}{c} acc0, {m}, {s}");
    ("MAR", V5E, "cccc11000100hhhhllll000000000000", mar, "mar{c} acc0, {l}, {h}");
    ("MRA", V5E, "cccc11000101hhhhllll000000000000", mra, "mra{c} {l}, {h}, acc0");
    ("MCR", V5E, "cccc1110ooo0nnnndddd1110xxx1mmmm", mcr14,
        "mcr{c} p14, {o}, {d}, c{N}, c{K}, {X}");
    ("MRC", V5E, "cccc1110ooo1nnnndddd1110xxx1mmmm", mrc14,
        "mrc{c} p14, {o}, {d}, c{N}, c{K}, {X}");
}

const WHOLE: u32 = 0;
const PACKED: u32 = 1;
const HALVES: u32 = 2;

// Rs is in bits 15:12, the place of Rd in other instructions.

fn mia<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    product::<B, WHOLE>(insn, core)
}

fn product<B: Bus, const WHAT: u32>(insn: u32, core: &Core) -> Op<B> {
    let exec: Exec<B> = execute_product::<B, WHAT>;
    Op::new(
        exec,
        insn,
        1 << rm(insn) | 1 << rd(insn),
        core.timing.simple,
    )
}

fn half(value: u32, upper: bool) -> i64 {
    i64::from((if upper { value >> 16 } else { value }) as i16)
}

fn execute_product<B: Bus, const WHAT: u32>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    if !cpu.cp15.xscale().may_accumulate() {
        return cpu.refuse(op);
    }
    let (m, s) = (cpu.r[rm(insn)], cpu.r[rd(insn)]);
    let product = match WHAT {
        WHOLE => i64::from(m as i32).wrapping_mul(i64::from(s as i32)),
        PACKED => half(m, false) * half(s, false) + half(m, true) * half(s, true),
        _ => half(m, bit(insn, 17)) * half(s, bit(insn, 16)),
    };
    cpu.cp15.xscale_mut().accumulate(product);
    // On silicon, the next multiplication waits for the multiplier. Here, this instruction takes longer instead.
    let more = match WHAT {
        WHOLE => magnitude(s) - 1,
        PACKED => 1,
        _ => 0,
    };
    cpu.spend(Cause::Instruction, more);
}

fn mar<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    Op::new(
        execute_mar,
        insn,
        1 << rn(insn) | 1 << rd(insn),
        core.timing.double,
    )
}

fn execute_mar<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    if !cpu.cp15.xscale().may_accumulate() {
        return cpu.refuse(op);
    }
    let value = [cpu.r[rd(op.insn())], cpu.r[rn(op.insn())]];
    cpu.cp15.xscale_mut().set_accumulator(value);
}

fn mra<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    Op::new(execute_mra, insn, 0, core.timing.simple)
}

fn execute_mra<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    if !cpu.cp15.xscale().may_accumulate() {
        return cpu.refuse(op);
    }
    let (low, high) = (rd(op.insn()), rn(op.insn()));
    [cpu.r[low], cpu.r[high]] = cpu.cp15.xscale().accumulator();
    // The high word is available one cycle later.
    cpu.pend(Interlock::after(1 << low | 1 << high | 1 << (high + 16)));
}

fn mcr14<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    Op::new(
        execute_mcr::<B, CP14>,
        insn,
        1 << rd(insn),
        core.timing.coprocessor,
    )
}

fn mrc14<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    Op::new(
        execute_mrc::<B, CP14>,
        insn,
        0,
        core.timing.coprocessor_read,
    )
}

#[cfg(test)]
mod tests {
    use crate::cpu::Cpu;
    use crate::model::IXP42X;
    use crate::tests::bus::TestBus;
    use crate::tests::core::{HERE, arm, on};

    /// Returns a core that may use coprocessor 0, with r0 to r2 set.
    fn granted(registers: [u32; 3]) -> Cpu<TestBus> {
        let mut cpu = on(&IXP42X, TestBus::new(0x1_0000));
        cpu.r[0] = 1;
        arm(&mut cpu, 0xee0f_0f11); // mcr p15, 0, r0, c15, c1, 0
        cpu.r[..3].copy_from_slice(&registers);
        cpu
    }

    fn accumulator(cpu: &mut Cpu<TestBus>) -> (u32, u32) {
        arm(cpu, 0xec54_3000); // mra r3, r4, acc0
        (cpu.r[3], cpu.r[4])
    }

    #[test]
    fn products_add_up_in_forty_bits() {
        let mut cpu = granted([0x7fff_ffff, 0x10, 0]);
        for total in [(0xffff_fff0, 7), (0xffff_ffe0, 0xf)] {
            arm(&mut cpu, 0xee20_1010); // mia acc0, r0, r1
            assert_eq!(accumulator(&mut cpu), total);
        }
        let mut cpu = granted([0xffff_ffff, 5, 0]);
        arm(&mut cpu, 0xee20_1010);
        assert_eq!(accumulator(&mut cpu), (0xffff_fffb, 0xffff_ffff), "-5");
    }

    #[test]
    fn halves_are_signed_and_chosen_by_x_and_y() {
        let values = [0x0003_fffe, 0xffff_0005, 0]; // 3, -2; -1, 5
        let low = |insn| {
            let mut cpu = granted(values);
            arm(&mut cpu, insn);
            accumulator(&mut cpu).0 as i32
        };
        assert_eq!(low(0xee28_1010), -3 - 10); // miaph acc0, r0, r1
        assert_eq!(low(0xee2c_1010), -10); // miabb
        assert_eq!(low(0xee2d_1010), 2); // miabt
        assert_eq!(low(0xee2e_1010), 15); // miatb
        assert_eq!(low(0xee2f_1010), -3); // miatt
    }

    #[test]
    fn mar_takes_eight_bits_of_the_high_word_and_mra_gives_their_sign() {
        for (high, read) in [(0x100, 0), (0x17f, 0x7f), (0x80, 0xffff_ff80)] {
            let mut cpu = granted([0x1234_5678, high, 0]);
            arm(&mut cpu, 0xec41_0000); // mar acc0, r0, r1
            assert_eq!(accumulator(&mut cpu), (0x1234_5678, read));
        }
    }

    #[test]
    fn it_is_undefined_until_granted_in_every_mode() {
        for (access, mode, undefined) in [(0, 0xd3, true), (1, 0x10, false), (0, 0x10, true)] {
            let mut cpu = granted([0; 3]);
            cpu.r[0] = access;
            arm(&mut cpu, 0xee0f_0f11);
            for insn in [0xee20_1010, 0xec41_0000, 0xec54_3000] {
                cpu.set_cpsr(mode);
                arm(&mut cpu, insn);
                assert_eq!(cpu.pc == 4, undefined, "{insn:#x}");
            }
        }
    }

    /// Compares with wider arithmetic, because QEMU 7.2 cannot run these instructions.
    #[test]
    fn a_million_random_products_add_up() {
        let mut random = 1_u64;
        let mut next = || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let word = (random >> 32) as u32;
            [0, 1, u32::MAX, 1 << 31, 0x8000, word, word, word][random as usize >> 20 & 7]
        };
        let mut cpu = granted([0; 3]);
        let half = |value: u32, upper: u32| i128::from((value >> (16 * upper)) as i16);
        let mut sum = 0_i128;
        for n in 0..1_000_000 {
            let (m, s) = (next(), next());
            (cpu.r[0], cpu.r[1]) = (m, s);
            let (x, y) = (n >> 3 & 1, n >> 4 & 1);
            let insn = match n % 3 {
                0 => 0xee20_1010,
                1 => 0xee28_1010,
                _ => 0xee2c_1010 | x << 17 | y << 16,
            };
            sum += match n % 3 {
                0 => i128::from(m as i32) * i128::from(s as i32),
                1 => half(m, 0) * half(s, 0) + half(m, 1) * half(s, 1),
                _ => half(m, x) * half(s, y),
            };
            let op = cpu.decoder().arm(insn);
            (op.exec)(&mut cpu, op);
            let wanted = (sum << 88 >> 88) as i64;
            assert_eq!(
                cpu.cp15.xscale().accumulator(),
                [wanted as u32, (wanted >> 32) as u32],
                "{insn:#x} of {m:#x}, {s:#x}"
            );
        }
    }

    #[test]
    fn other_accumulators_are_undefined() {
        let mut cpu = granted([0; 3]);
        for insn in [0xee20_1030, 0xec54_3001] {
            arm(&mut cpu, insn);
            assert_eq!((cpu.pc, cpu.r[14]), (4, HERE + 4), "{insn:#x}");
        }
    }
}
