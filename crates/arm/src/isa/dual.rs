// SPDX-License-Identifier: MIT OR Apache-2.0
//! Multiplications of ARMv6 that use two half-words at a time, or only the upper word of the product (ARM ARM A3.5.4,
//! A3.5.5).

use super::multiply::{pair, set_pair};
use super::saturating::set_q_on_overflow;
use super::{Op, bit, rd, rm, rn, rs};
use crate::bus::Bus;
use crate::cpu::{Cpu, Interlock};
use crate::model::Core;

rows! {
    ("SMUAD", V6, "cccc01110000dddd1111ssss00x1mmmm", dual::<B, false>, "smuad{e}{c} {d}, {m}, {s}");
    ("SMUSD", V6, "cccc01110000dddd1111ssss01x1mmmm", dual::<B, false>, "smusd{e}{c} {d}, {m}, {s}");
    ("SMLAD", V6, "cccc01110000ddddnnnnssss00x1mmmm", dual::<B, true>,
        "smlad{e}{c} {d}, {m}, {s}, {n}");
    ("SMLSD", V6, "cccc01110000ddddnnnnssss01x1mmmm", dual::<B, true>,
        "smlsd{e}{c} {d}, {m}, {s}, {n}");
    ("SMLALD", V6, "cccc01110100hhhhllllssss00x1mmmm", dual_long, "smlald{e}{c} {l}, {h}, {m}, {s}");
    ("SMLSLD", V6, "cccc01110100hhhhllllssss01x1mmmm", dual_long, "smlsld{e}{c} {l}, {h}, {m}, {s}");
    ("SMMUL", V6, "cccc01110101dddd1111ssss00x1mmmm", upper::<B, false>, "smmul{q}{c} {d}, {m}, {s}");
    ("SMMLA", V6, "cccc01110101ddddnnnnssss00x1mmmm", upper::<B, true>,
        "smmla{q}{c} {d}, {m}, {s}, {n}");
    ("SMMLS", V6, "cccc01110101ddddnnnnssss11x1mmmm", upper::<B, true>,
        "smmls{q}{c} {d}, {m}, {s}, {n}");
}

// Rd (or RdHi) has the place of Rn in other classes. The accumulator (or RdLo) has the place of Rd.

fn uses(insn: u32, accumulate: bool) -> u32 {
    1 << rm(insn) | 1 << rs(insn) | u32::from(accumulate) << rd(insn)
}

/// The two products of half-words. Bit 5 exchanges the halves of Rs. Bit 6 negates the second product.
fn products<B: Bus>(cpu: &Cpu<B>, insn: u32) -> [i64; 2] {
    let (m, s) = (cpu.r[rm(insn)], cpu.r[rs(insn)]);
    let s = if bit(insn, 5) { s.rotate_right(16) } else { s };
    let half = |word: u32, shift: u32| i64::from((word >> shift) as i16);
    let [low, high] = [0, 16].map(|shift| half(m, shift) * half(s, shift));
    [low, if bit(insn, 6) { -high } else { high }]
}

fn dual<B: Bus, const ACCUMULATE: bool>(insn: u32, core: &Core) -> Op<B> {
    let exec = execute_dual::<B, ACCUMULATE>;
    Op::new(
        exec,
        insn,
        uses(insn, ACCUMULATE),
        core.timing.multiply_half,
    )
}

fn execute_dual<B: Bus, const ACCUMULATE: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let [low, high] = products(cpu, insn);
    let mut result = low + high;
    if ACCUMULATE {
        result += i64::from(cpu.r[rd(insn)] as i32);
    }
    // The sum of two products can also overflow, if all four half-words are 0x8000.
    set_q_on_overflow(cpu, result);
    cpu.r[rn(insn)] = result as u32;
    cpu.pend(Interlock::after_product(1 << rn(insn)));
}

fn dual_long<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let uses = uses(insn, true) | 1 << rn(insn);
    Op::new(
        execute_dual_long,
        insn,
        uses,
        core.timing.multiply_half_long,
    )
}

fn execute_dual_long<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let [low, high] = products(cpu, insn);
    let sum = pair(cpu, insn).wrapping_add((low + high) as u64);
    set_pair(cpu, insn, sum);
    cpu.pend(Interlock::after_product(1 << rn(insn) | 1 << rd(insn)));
}

/// Products of which only the upper word is used. Bit 5 rounds, bit 6 subtracts.
fn upper<B: Bus, const ACCUMULATE: bool>(insn: u32, core: &Core) -> Op<B> {
    let exec = execute_upper::<B, ACCUMULATE>;
    Op::new(exec, insn, uses(insn, ACCUMULATE), core.timing.multiply)
}

fn execute_upper<B: Bus, const ACCUMULATE: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let product = i64::from(cpu.r[rm(insn)] as i32) * i64::from(cpu.r[rs(insn)] as i32);
    let added = match ACCUMULATE {
        true => (u64::from(cpu.r[rd(insn)]) << 32) as i64,
        false => 0,
    };
    let sum = match bit(insn, 6) {
        true => added.wrapping_sub(product),
        false => added.wrapping_add(product),
    };
    let rounded = sum.wrapping_add(i64::from(bit(insn, 5)) << 31);
    cpu.r[rn(insn)] = (rounded >> 32) as u32;
    cpu.pend(Interlock::after_product(1 << rn(insn)));
}

#[cfg(test)]
mod tests {
    use crate::psr::Q;
    use crate::tests::core::after_on_v6;

    #[test]
    fn two_products_are_added_or_subtracted() {
        let values = [0, 0x0003_0002, 0x0005_0007, 100];
        let result = |insn| after_on_v6(insn, &values).r[0] as i32;
        assert_eq!(result(0xe700_f211), 14 + 15); // smuad r0, r1, r2
        assert_eq!(result(0xe700_f231), 10 + 21); // smuadx
        assert_eq!(result(0xe700_f251), 14 - 15); // smusd
        assert_eq!(result(0xe700_3211), 129); // smlad r0, r1, r2, r3
        assert_eq!(result(0xe700_3271), 100 + 10 - 21); // smlsdx
    }

    #[test]
    fn a_sum_that_overflows_sets_q_and_wraps() {
        let least = 0x8000_8000;
        let cpu = after_on_v6(0xe700_f211, &[0, least, least]); // smuad
        assert_eq!((cpu.r[0], cpu.flags), (0x8000_0000, Q));
        let cpu = after_on_v6(0xe700_3211, &[0, least, least, 0xffff_ffff]); // smlad
        assert_eq!((cpu.r[0], cpu.flags), (0x7fff_ffff, 0));
    }

    #[test]
    fn long_sums_carry_into_the_upper_word() {
        let cpu = after_on_v6(0xe741_0312, &[0xffff_ffff, 0, 0x0001_0001, 0x0001_0001]);
        assert_eq!((cpu.r[0], cpu.r[1]), (1, 1)); // smlald r0, r1, r2, r3
        let cpu = after_on_v6(0xe741_0352, &[0, 0, 0x0001_0001, 0x0002_0001]);
        assert_eq!((cpu.r[0], cpu.r[1]), (0xffff_ffff, 0xffff_ffff)); // smlsld
    }

    #[test]
    fn upper_words_may_be_rounded() {
        let values = [0, 0x4000_0000, 6, 10];
        assert_eq!(after_on_v6(0xe750_f211, &values).r[0], 1); // smmul r0, r1, r2
        assert_eq!(after_on_v6(0xe750_f231, &values).r[0], 2); // smmulr
        assert_eq!(after_on_v6(0xe750_3211, &values).r[0], 11); // smmla
        assert_eq!(after_on_v6(0xe750_32d1, &values).r[0], 8); // smmls
        assert_eq!(after_on_v6(0xe750_32f1, &values).r[0], 9); // smmlsr
    }
}
