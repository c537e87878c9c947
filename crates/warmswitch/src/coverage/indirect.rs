// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds calls through tables of function pointers (`processor`, `cpu_cache`) in a kernel for several cores.
//!
//! The search goes backwards from a jump to the instructions that loaded the jump's register: `ldr rB, =table`, `ldr
//! rN, [rB, #slot]`, `bx rN`. It follows the order of addresses, not the control flow. If the compiler keeps a pointer
//! across a branch, the search takes the nearest load.

/// The link register. A jump to it is a return.
const LINK: u32 = 14;
const PC: u32 = 15;
/// Registers that a call may change: r0 to r3, r12, r14.
const CHANGED: u32 = 0x500f;

/// Decodes `ldr rD, [rN, #offset]`. Returns D, N and the offset.
fn load(word: u32) -> Option<(u32, u32, u32)> {
    let is = word & 0x0ff0_0000 == 0x0590_0000;
    is.then_some((word >> 12 & 15, word >> 16 & 15, word & 0xfff))
}

/// Returns the register that an instruction jumps to. Returns `None` for a return.
fn jump(word: u32) -> Option<u32> {
    let by_exchange = matches!(word & 0x0fff_fff0, 0x012f_ff10 | 0x012f_ff30);
    let is = by_exchange || word & 0x0fff_fff0 == 0x01a0_f000;
    (is && word & 15 != LINK).then_some(word & 15)
}

/// Returns whether an instruction changes a register. Covers the instructions that compilers generate.
fn changes(word: u32, register: u32) -> bool {
    let (to, loads) = (word >> 12 & 15, word >> 20 & 1 == 1);
    let compares = word >> 23 & 3 == 2 && loads;
    match word >> 25 & 7 {
        _ if jump(word).is_some() => CHANGED >> register & 1 == 1,
        0 | 1 => !compares && to == register,
        2 | 3 => loads && to == register,
        4 => loads && word >> register & 1 == 1,
        5 => word >> 24 & 1 == 1 && CHANGED >> register & 1 == 1,
        _ => loads && to == register,
    }
}

/// Returns the address of the last instruction before `at` that changed the register.
fn source(word: &impl Fn(u32) -> Option<u32>, start: u32, at: u32, register: u32) -> Option<u32> {
    let mut back = (start..at).step_by(4).rev();
    back.find(|at| word(*at).is_some_and(|word| changes(word, register)))
}

/// Returns the table's address and the slot's offset if the instruction at `at` calls through a table. `start` is the
/// start of the function that contains the instruction.
pub fn slot(word: &impl Fn(u32) -> Option<u32>, start: u32, at: u32) -> Option<(u32, u32)> {
    let this = word(at)?;
    let loaded_at = match load(this) {
        Some((PC, ..)) => at,
        _ => source(word, start, at, jump(this)?)?,
    };
    let (_, base, offset) = load(word(loaded_at)?)?;
    let based_at = source(word, start, loaded_at, base)?;
    match load(word(based_at)?)? {
        (_, PC, literal) => Some((word(based_at + 8 + literal)?, offset)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_through_a_table_is_found_by_where_its_register_comes_from() {
        let words = [
            0xe59f_3018, // ldr r3, [pc, #24]
            0xe351_0000, // cmp r1, #0
            0xe593_301c, // ldr r3, [r3, #28]
            0xe1a0_e00f, // mov lr, pc
            0xe12f_ff13, // bx r3
            0xe12f_ff13, // bx r3: changed by the call
            0xe59f_4004, // ldr r4, [pc, #4]
            0xe594_f004, // ldr pc, [r4, #4]
            0xc03e_c904,
            0xc03e_c8c8,
        ];
        let word = |at: u32| words.get(at as usize / 4).copied();
        let found = (0..32).step_by(4).map(|at| slot(&word, 0, at));
        let mut expected = [None; 8];
        expected[4] = Some((0xc03e_c904, 28));
        expected[7] = Some((0xc03e_c8c8, 4));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_return_is_no_call() {
        let word = |at: u32| [0xe59f_e000, 0xe12f_ff1e].get(at as usize / 4).copied();
        assert_eq!(slot(&word, 0, 4), None);
    }
}
