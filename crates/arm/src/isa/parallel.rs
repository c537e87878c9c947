// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parallel additions and subtractions of ARMv6 (ARM ARM A3.5.1, A4.1). Each of six prefixes has each of six operations.

use super::{Exec, Op, rd, rm, rn};
use crate::bus::Bus;
use crate::cpu::{Cpu, Interlock};
use crate::model::Core;
use crate::psr::GE;

rows! {
    ("SADD16", V6, "cccc01100001nnnndddd11110001mmmm", parallel, "sadd16{c} {d}, {n}, {m}");
    ("SADDSUBX", V6, "cccc01100001nnnndddd11110011mmmm", parallel, "sasx{c} {d}, {n}, {m}");
    ("SSUBADDX", V6, "cccc01100001nnnndddd11110101mmmm", parallel, "ssax{c} {d}, {n}, {m}");
    ("SSUB16", V6, "cccc01100001nnnndddd11110111mmmm", parallel, "ssub16{c} {d}, {n}, {m}");
    ("SADD8", V6, "cccc01100001nnnndddd11111001mmmm", parallel, "sadd8{c} {d}, {n}, {m}");
    ("SSUB8", V6, "cccc01100001nnnndddd11111111mmmm", parallel, "ssub8{c} {d}, {n}, {m}");
    ("QADD16", V6, "cccc01100010nnnndddd11110001mmmm", parallel, "qadd16{c} {d}, {n}, {m}");
    ("QADDSUBX", V6, "cccc01100010nnnndddd11110011mmmm", parallel, "qasx{c} {d}, {n}, {m}");
    ("QSUBADDX", V6, "cccc01100010nnnndddd11110101mmmm", parallel, "qsax{c} {d}, {n}, {m}");
    ("QSUB16", V6, "cccc01100010nnnndddd11110111mmmm", parallel, "qsub16{c} {d}, {n}, {m}");
    ("QADD8", V6, "cccc01100010nnnndddd11111001mmmm", parallel, "qadd8{c} {d}, {n}, {m}");
    ("QSUB8", V6, "cccc01100010nnnndddd11111111mmmm", parallel, "qsub8{c} {d}, {n}, {m}");
    ("SHADD16", V6, "cccc01100011nnnndddd11110001mmmm", parallel, "shadd16{c} {d}, {n}, {m}");
    ("SHADDSUBX", V6, "cccc01100011nnnndddd11110011mmmm", parallel, "shasx{c} {d}, {n}, {m}");
    ("SHSUBADDX", V6, "cccc01100011nnnndddd11110101mmmm", parallel, "shsax{c} {d}, {n}, {m}");
    ("SHSUB16", V6, "cccc01100011nnnndddd11110111mmmm", parallel, "shsub16{c} {d}, {n}, {m}");
    ("SHADD8", V6, "cccc01100011nnnndddd11111001mmmm", parallel, "shadd8{c} {d}, {n}, {m}");
    ("SHSUB8", V6, "cccc01100011nnnndddd11111111mmmm", parallel, "shsub8{c} {d}, {n}, {m}");
    ("UADD16", V6, "cccc01100101nnnndddd11110001mmmm", parallel, "uadd16{c} {d}, {n}, {m}");
    ("UADDSUBX", V6, "cccc01100101nnnndddd11110011mmmm", parallel, "uasx{c} {d}, {n}, {m}");
    ("USUBADDX", V6, "cccc01100101nnnndddd11110101mmmm", parallel, "usax{c} {d}, {n}, {m}");
    ("USUB16", V6, "cccc01100101nnnndddd11110111mmmm", parallel, "usub16{c} {d}, {n}, {m}");
    ("UADD8", V6, "cccc01100101nnnndddd11111001mmmm", parallel, "uadd8{c} {d}, {n}, {m}");
    ("USUB8", V6, "cccc01100101nnnndddd11111111mmmm", parallel, "usub8{c} {d}, {n}, {m}");
    ("UQADD16", V6, "cccc01100110nnnndddd11110001mmmm", parallel, "uqadd16{c} {d}, {n}, {m}");
    ("UQADDSUBX", V6, "cccc01100110nnnndddd11110011mmmm", parallel, "uqasx{c} {d}, {n}, {m}");
    ("UQSUBADDX", V6, "cccc01100110nnnndddd11110101mmmm", parallel, "uqsax{c} {d}, {n}, {m}");
    ("UQSUB16", V6, "cccc01100110nnnndddd11110111mmmm", parallel, "uqsub16{c} {d}, {n}, {m}");
    ("UQADD8", V6, "cccc01100110nnnndddd11111001mmmm", parallel, "uqadd8{c} {d}, {n}, {m}");
    ("UQSUB8", V6, "cccc01100110nnnndddd11111111mmmm", parallel, "uqsub8{c} {d}, {n}, {m}");
    ("UHADD16", V6, "cccc01100111nnnndddd11110001mmmm", parallel, "uhadd16{c} {d}, {n}, {m}");
    ("UHADDSUBX", V6, "cccc01100111nnnndddd11110011mmmm", parallel, "uhasx{c} {d}, {n}, {m}");
    ("UHSUBADDX", V6, "cccc01100111nnnndddd11110101mmmm", parallel, "uhsax{c} {d}, {n}, {m}");
    ("UHSUB16", V6, "cccc01100111nnnndddd11110111mmmm", parallel, "uhsub16{c} {d}, {n}, {m}");
    ("UHADD8", V6, "cccc01100111nnnndddd11111001mmmm", parallel, "uhadd8{c} {d}, {n}, {m}");
    ("UHSUB8", V6, "cccc01100111nnnndddd11111111mmmm", parallel, "uhsub8{c} {d}, {n}, {m}");
}

fn parallel<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let plain = matches!(insn >> 20 & 3, 1);
    let exec: Exec<B> = if bit_7_of_bytes(insn) {
        execute::<B, 8>
    } else {
        execute::<B, 16>
    };
    let uses = 1 << rm(insn) | 1 << rn(insn);
    // Saturating and halving results take the path of QADD (R).
    let cycles = match plain {
        true => core.timing.simple,
        false => core.timing.saturating,
    };
    Op::new(exec, insn, uses, cycles)
}

/// Whether the operation is ADD8 or SUB8.
fn bit_7_of_bytes(insn: u32) -> bool {
    matches!(insn >> 5 & 7, 4 | 7)
}

/// Adds or subtracts lanes of `BITS` bits.
fn execute<B: Bus, const BITS: u32>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let (n, m) = (cpu.r[rn(insn)], cpu.r[rm(insn)]);
    let (unsigned, how, what) = (insn >> 22 & 1 != 0, insn >> 20 & 3, insn >> 5 & 7);
    let (mut result, mut ge) = (0, 0);
    for lane in 0..32 / BITS {
        // ADDSUBX adds the upper lane and subtracts the lower one, SUBADDX the other way round. Both exchange the
        // half-words of Rm.
        let (other, subtract) = match what {
            0 | 4 => (lane, false),
            1 => (1 - lane, lane == 0),
            2 => (1 - lane, lane == 1),
            _ => (lane, true),
        };
        let n = field::<BITS>(n, lane, unsigned);
        let m = field::<BITS>(m, other, unsigned);
        let exact = if subtract { n - m } else { n + m };
        let is_ge = match unsigned && !subtract {
            true => exact >> BITS != 0,
            false => exact >= 0,
        };
        let all = (1 << (BITS / 8)) - 1;
        ge |= (u32::from(is_ge) * all) << (lane * BITS / 8);
        let value = match how {
            1 => exact,
            2 => saturated::<BITS>(exact, unsigned),
            _ => exact >> 1,
        };
        result |= (value as u32 & (u32::MAX >> (32 - BITS))) << (lane * BITS);
    }
    cpu.r[rd(insn)] = result;
    match how {
        1 => cpu.control = cpu.control & !GE | ge << 16,
        _ => cpu.pend(Interlock::after_saturation(rd(insn))),
    }
}

/// A lane of `word`.
fn field<const BITS: u32>(word: u32, lane: u32, unsigned: bool) -> i32 {
    let at_top = word << (32 - BITS - lane * BITS);
    match unsigned {
        true => (at_top >> (32 - BITS)) as i32,
        false => at_top as i32 >> (32 - BITS),
    }
}

fn saturated<const BITS: u32>(value: i32, unsigned: bool) -> i32 {
    match unsigned {
        true => value.clamp(0, (1 << BITS) - 1),
        false => value.clamp(-1 << (BITS - 1), (1 << (BITS - 1)) - 1),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::core::after_on_v6;

    /// r0 and the GE bits after `insn` with these values in r1 and r2.
    fn run(insn: u32, n: u32, m: u32) -> (u32, u32) {
        let cpu = after_on_v6(insn, &[0, n, m]);
        (cpu.r[0], cpu.control >> 16 & 15)
    }

    #[test]
    fn plain_forms_wrap_and_set_ge() {
        // sadd8 r0, r1, r2: GE says that the exact sum is not negative.
        assert_eq!(
            run(0xe611_0f92, 0x7f01_ff80, 0x01ff_0080),
            (0x8000_ff00, 0b1100)
        );
        // uadd8: GE is the carry.
        assert_eq!(
            run(0xe651_0f92, 0xff01_8080, 0x0101_807f),
            (0x0002_00ff, 0b1010)
        );
        // usub8: GE says that nothing was borrowed.
        assert_eq!(
            run(0xe651_0ff2, 0x0102_0305, 0x0201_0304),
            (0xff01_0001, 0b0111)
        );
        // ssub16: two bits for each half-word.
        assert_eq!(
            run(0xe611_0f72, 0x8000_0005, 0x0001_0005),
            (0x7fff_0000, 0b0011)
        );
    }

    #[test]
    fn exchanging_forms_cross_the_halves_of_the_second_operand() {
        // saddsubx r0, r1, r2: upper + lower, lower - upper.
        assert_eq!(
            run(0xe611_0f32, 0x0010_0020, 0x0001_0002),
            (0x0012_001f, 0b1111)
        );
        // ssubaddx: upper - lower, lower + upper.
        assert_eq!(
            run(0xe611_0f52, 0x0001_0020, 0x0001_0002),
            (0xffff_0021, 0b0011)
        );
    }

    #[test]
    fn saturating_and_halving_forms_leave_ge_alone() {
        assert_eq!(run(0xe621_0f12, 0x7fff_8000, 0x0001_ffff), (0x7fff_8000, 0)); // qadd16
        assert_eq!(run(0xe661_0ff2, 0x0001_ff10, 0x0102_0100), (0x0000_fe10, 0)); // uqsub8
        assert_eq!(run(0xe661_0f92, 0xff01_8010, 0x0101_8001), (0xff02_ff11, 0)); // uqadd8
        assert_eq!(run(0xe631_0f12, 0x7fff_8000, 0x7fff_8001), (0x7fff_8000, 0)); // shadd16
        assert_eq!(run(0xe671_0f92, 0xff00_0001, 0xff01_0002), (0xff00_0001, 0)); // uhadd8
        assert_eq!(run(0xe671_0f72, 0x0001_0004, 0x0002_0001), (0xffff_0001, 0)); // uhsub16
    }
}
