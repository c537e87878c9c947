// SPDX-License-Identifier: MIT OR Apache-2.0
//! LDM and STM (ARM ARM A5.4).
//!
//! The plain forms without r15 are frequent, so each combination of direction and write-back has its own copy of the
//! code. The forms with ^ and the forms that load r15 share a slow copy.

use super::load_store::{fails_late, pending_load, stored_pc};
use super::{ALWAYS, Exec, Op, bit, rn};
use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::model::Core;
use crate::observe::Cause;

rows! {
    ("STM", V4, "cccc100PU0W0nnnnrrrrrrrrrrrrrrrr", store, "stm{A}{c} {n}{W}, {L}");
    ("LDM", V4, "cccc100PU0W1nnnnrrrrrrrrrrrrrrrr", load, "ldm{A}{c} {n}{W}, {L}");
    ("STM user", V4, "cccc100PU1W0nnnnrrrrrrrrrrrrrrrr", store_user, "stm{A}{c} {n}{W}, {L} ^");
    ("LDM user", V4, "cccc100PU1W1nnnn0rrrrrrrrrrrrrrr", load_user, "ldm{A}{c} {n}{W}, {L} ^");
    ("LDM return", V4, "cccc100PU1W1nnnn1rrrrrrrrrrrrrrr", load, "ldm{A}{c} {n}{W}, {L} ^");
}

/// Bytes by which an empty list moves the base, as on the ARM9E.
const EMPTY_LIST_BYTES: u32 = 64;

#[inline]
fn list(insn: u32) -> u32 {
    insn & 0xffff
}

fn cycles(insn: u32, core: &Core) -> u8 {
    (list(insn).count_ones() as u8).max(core.timing.block_minimum) + core.timing.block_extra
}

fn is_base_in_list(insn: u32) -> bool {
    bit(insn, rn(insn) as u32)
}

pub(super) fn load<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let exec: Exec<B> = if list(insn) == 0 {
        execute_empty
    } else if bit(insn, 15) && fails_late(insn, core) {
        let op = Op::new(execute_load_pc_if, insn, 1 << rn(insn), cycles(insn, core));
        return op.with_cond(ALWAYS);
    } else if bit(insn, 15) {
        execute_load_pc
    } else {
        let write_back = bit(insn, 21) && !is_base_kept(insn);
        match (bit(insn, 24), bit(insn, 23), write_back) {
            (false, false, false) => execute_load::<B, false, false, false>,
            (false, false, true) => execute_load::<B, false, false, true>,
            (false, true, false) => execute_load::<B, false, true, false>,
            (false, true, true) => execute_load::<B, false, true, true>,
            (true, false, false) => execute_load::<B, true, false, false>,
            (true, false, true) => execute_load::<B, true, false, true>,
            (true, true, false) => execute_load::<B, true, true, false>,
            (true, true, true) => execute_load::<B, true, true, true>,
        }
    };
    Op::new(exec, insn, 1 << rn(insn), cycles(insn, core))
}

/// Whether a loaded base overrides the write-back. It does if the base is the last of several registers.
fn is_base_kept(insn: u32) -> bool {
    let after_base = list(insn) >> rn(insn);
    is_base_in_list(insn) && after_base == 1 && list(insn).count_ones() > 1
}

pub(super) fn store<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let exec: Exec<B> = if list(insn) == 0 {
        execute_empty
    } else {
        match (bit(insn, 24), bit(insn, 23)) {
            (false, false) => execute_store::<B, false, false>,
            (false, true) => execute_store::<B, false, true>,
            (true, false) => execute_store::<B, true, false>,
            (true, true) => execute_store::<B, true, true>,
        }
    };
    Op::new(exec, insn, store_uses(insn), cycles(insn, core))
}

/// Registers that a store waits for at issue: the base and the first stored register. Later registers never stall it.
fn store_uses(insn: u32) -> u32 {
    let first = list(insn) & list(insn).wrapping_neg();
    1 << rn(insn) | first
}

fn load_user<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let exec = if list(insn) == 0 {
        execute_empty
    } else {
        execute_load_user
    };
    Op::new(exec, insn, 1 << rn(insn), cycles(insn, core))
}

fn store_user<B: Bus>(insn: u32, core: &Core) -> Op<B> {
    let exec = if list(insn) == 0 {
        execute_empty
    } else {
        execute_store_user
    };
    Op::new(exec, insn, store_uses(insn), cycles(insn, core))
}

/// Lowest address and new base of a transfer of `count` words.
#[inline(always)]
fn range(base: u32, count: u32, pre: bool, up: bool) -> (u32, u32) {
    let bytes = 4 * count;
    match (pre, up) {
        (false, true) => (base, base.wrapping_add(bytes)),
        (true, true) => (base.wrapping_add(4), base.wrapping_add(bytes)),
        (false, false) => (
            base.wrapping_sub(bytes).wrapping_add(4),
            base.wrapping_sub(bytes),
        ),
        (true, false) => (base.wrapping_sub(bytes), base.wrapping_sub(bytes)),
    }
}

/// Numbers of the registers in `list`, lowest first.
#[inline(always)]
pub(crate) fn registers(mut list: u32) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let register = list.trailing_zeros() as usize;
        let some = (list != 0).then_some(register & 15);
        list &= list.wrapping_sub(1);
        some
    })
}

impl<B: Bus> Cpu<B> {
    /// Stores the registers of `list` into a D-cache line, from word `first` on.
    #[inline(always)]
    fn store_registers(&mut self, line: usize, first: usize, list: u32) {
        let words = self.memory.words_to_write(line, first, list.count_ones());
        for (word, register) in words.iter_mut().zip(registers(list)) {
            *word = self.r[register];
        }
    }
}

/// Marks the last loaded word as pending. A single word arrives during the instruction's second cycle.
#[inline(always)]
fn pend_last<B: Bus>(cpu: &mut Cpu<B>, list: u32) {
    if !list.is_power_of_two() {
        cpu.pend(pending_load(31 - list.leading_zeros() as usize, false));
    }
}

fn execute_load<B: Bus, const PRE: bool, const UP: bool, const WRITE_BACK: bool>(
    cpu: &mut Cpu<B>,
    op: Op<B>,
) {
    let list = list(op.insn());
    let count = list.count_ones();
    let (start, end) = range(cpu.r[rn(op.insn())], count, PRE, UP);
    let Some((line, first)) = cpu.granted_line(start, count) else {
        return execute_load_slowly::<B, PRE, UP, WRITE_BACK>(cpu, op);
    };
    for (register, word) in registers(list).zip(&line[first..]) {
        cpu.r[register] = *word;
    }
    if WRITE_BACK {
        cpu.r[rn(op.insn())] = end;
    }
    pend_last(cpu, list);
}

/// Executes the load by the slow path, from the start.
#[inline(never)]
fn execute_load_slowly<B: Bus, const PRE: bool, const UP: bool, const WRITE_BACK: bool>(
    cpu: &mut Cpu<B>,
    op: Op<B>,
) {
    let list = list(op.insn());
    let count = list.count_ones();
    let (start, end) = range(cpu.r[rn(op.insn())], count, PRE, UP);
    let mut words = [0; 16];
    if cpu
        .load_multiple(start, &mut words[..count as usize])
        .is_err()
    {
        return;
    }
    for (register, word) in registers(list).zip(words) {
        cpu.r[register] = word;
    }
    if WRITE_BACK {
        cpu.r[rn(op.insn())] = end;
    }
    pend_last(cpu, list);
}

/// Executes [`execute_load_pc`] on a core where a failed condition takes time. Checks the condition itself.
fn execute_load_pc_if<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    if cpu.passes(op.insn() >> 28) {
        execute_load_pc(cpu, op);
    } else {
        cpu.spend(Cause::Instruction, 1);
    }
}

/// Loads a list that contains r15. Branches and may change the state; with ^, returns from an exception.
fn execute_load_pc<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let count = list(insn).count_ones();
    let (start, end) = range(cpu.r[rn(insn)], count, bit(insn, 24), bit(insn, 23));
    let others = registers(list(insn) & 0x7fff);
    let target = match cpu.granted_line(start, count) {
        Some((line, first)) => {
            for (register, word) in others.zip(&line[first..]) {
                cpu.r[register] = *word;
            }
            line[(first + count as usize - 1) % 8]
        }
        None => {
            let mut words = [0; 16];
            let words = &mut words[..count as usize];
            if cpu.load_multiple(start, words).is_err() {
                return;
            }
            for (register, word) in others.zip(&*words) {
                cpu.r[register] = *word;
            }
            words[count as usize - 1]
        }
    };
    if bit(insn, 21) {
        cpu.r[rn(insn)] = end;
    }
    if bit(insn, 22) {
        cpu.return_from_exception(target);
    } else {
        cpu.branch_loaded(target);
    }
    let (to_pc, least) = (cpu.timing().load_to_pc, cpu.timing().block_to_pc_minimum);
    let more = (u64::from(count) + to_pc).max(least) - op.cycles();
    cpu.spend(Cause::Branch, more.min(to_pc));
    cpu.spend(Cause::Instruction, more - more.min(to_pc));
}

/// Loads registers of User mode. The base register belongs to the current mode.
fn execute_load_user<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let count = list(insn).count_ones();
    let (start, end) = range(cpu.r[rn(insn)], count, bit(insn, 24), bit(insn, 23));
    let mut words = [0; 16];
    if cpu
        .load_multiple(start, &mut words[..count as usize])
        .is_err()
    {
        return;
    }
    for (register, word) in registers(list(insn)).zip(words) {
        cpu.set_user_register(register, word);
    }
    if bit(insn, 21) {
        cpu.r[rn(insn)] = end;
    }
    pend_last(cpu, list(insn));
}

fn execute_store<B: Bus, const PRE: bool, const UP: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let list = list(op.insn());
    let count = list.count_ones();
    let (start, end) = range(cpu.r[rn(op.insn())], count, PRE, UP);
    let granted = cpu.granted_line_for_write(start, count);
    let Some((line, first)) = granted.filter(|_| !bit(list, 15)) else {
        return execute_store_slowly::<B, PRE, UP>(cpu, op);
    };
    cpu.store_registers(line, first, list);
    if bit(op.insn(), 21) {
        cpu.r[rn(op.insn())] = end;
    }
}

/// Executes the store by the slow path, from the start.
#[inline(never)]
fn execute_store_slowly<B: Bus, const PRE: bool, const UP: bool>(cpu: &mut Cpu<B>, op: Op<B>) {
    let list = list(op.insn());
    let count = list.count_ones();
    let (start, end) = range(cpu.r[rn(op.insn())], count, PRE, UP);
    let mut words = [0; 16];
    for (word, register) in words.iter_mut().zip(registers(list)) {
        *word = cpu.r[register];
    }
    if bit(list, 15) {
        words[count as usize - 1] = stored_pc(cpu);
    }
    if cpu.store_multiple(start, &words[..count as usize]).is_ok() && bit(op.insn(), 21) {
        cpu.r[rn(op.insn())] = end;
    }
}

/// Stores registers of User mode. The base register belongs to the current mode.
fn execute_store_user<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    let insn = op.insn();
    let count = list(insn).count_ones();
    let (start, end) = range(cpu.r[rn(insn)], count, bit(insn, 24), bit(insn, 23));
    let mut words = [0; 16];
    for (word, register) in words.iter_mut().zip(registers(list(insn))) {
        *word = match register {
            15 => stored_pc(cpu),
            _ => cpu.user_register(register),
        };
    }
    if cpu.store_multiple(start, &words[..count as usize]).is_ok() && bit(insn, 21) {
        cpu.r[rn(insn)] = end;
    }
}

fn execute_empty<B: Bus>(cpu: &mut Cpu<B>, op: Op<B>) {
    if bit(op.insn(), 21) {
        let base = cpu.r[rn(op.insn())];
        cpu.r[rn(op.insn())] = if bit(op.insn(), 23) {
            base.wrapping_add(EMPTY_LIST_BYTES)
        } else {
            base.wrapping_sub(EMPTY_LIST_BYTES)
        };
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::Cpu;
    use crate::psr::{Mode, T};
    use crate::tests::bus::TestBus;
    use crate::tests::core::{HERE, arm, machine};

    /// Returns a core with words 1, 2, 3... at 0x100; r8 points into them.
    fn with_words() -> Cpu<TestBus> {
        let mut cpu = machine();
        cpu.bus.put(0x100, &[1, 2, 3, 4, 5, 6, 7, 8]);
        cpu.r[8] = 0x110;
        cpu
    }

    #[test]
    fn the_four_modes_cover_their_words() {
        let load = |insn| {
            let mut cpu = with_words();
            arm(&mut cpu, insn);
            (cpu.r[0], cpu.r[1], cpu.r[8])
        };
        assert_eq!(load(0xe8b8_0003), (5, 6, 0x118)); // ldmia r8!, {r0, r1}
        assert_eq!(load(0xe9b8_0003), (6, 7, 0x118)); // ldmib
        assert_eq!(load(0xe838_0003), (4, 5, 0x108)); // ldmda
        assert_eq!(load(0xe938_0003), (3, 4, 0x108)); // ldmdb
        assert_eq!(load(0xe898_0003), (5, 6, 0x110)); // ldmia r8, {r0, r1}
    }

    #[test]
    fn a_base_in_the_load_list_is_written_back_unless_it_is_the_last_of_several() {
        let base = |insn| {
            let mut cpu = with_words();
            arm(&mut cpu, insn);
            cpu.r[8]
        };
        assert_eq!(base(0xe8b8_0300), 0x118); // ldmia r8!, {r8, r9}
        assert_eq!(base(0xe8b8_0180), 6); // ldmia r8!, {r7, r8}
        assert_eq!(base(0xe8b8_0100), 0x114); // ldmia r8!, {r8}
        assert_eq!(base(0xe898_0100), 5); // ldmia r8, {r8}
    }

    #[test]
    fn stores_write_the_old_base_and_the_pc_plus_12() {
        let mut cpu = with_words();
        cpu.r[7] = 77;
        arm(&mut cpu, 0xe928_8180); // stmdb r8!, {r7, r8, pc}
        assert_eq!(
            [0x104, 0x108, 0x10c].map(|at| cpu.bus.word(at)),
            [77, 0x110, HERE + 12]
        );
        assert_eq!(cpu.r[8], 0x104);
    }

    #[test]
    fn an_empty_list_moves_only_the_base() {
        let mut cpu = with_words();
        arm(&mut cpu, 0xe8b8_0000);
        assert_eq!((cpu.r[8], cpu.pc), (0x150, HERE + 4));
        assert!(cpu.bus.log.is_empty());
    }

    #[test]
    fn loading_the_pc_changes_state_and_costs_four_more() {
        let mut cpu = with_words();
        cpu.bus.put(0x114, &[0x2001]);
        cpu.bus.single = 0;
        arm(&mut cpu, 0xe8b8_8001); // ldmia r8!, {r0, pc}
        assert_eq!((cpu.r[0], cpu.pc, cpu.control & T), (5, 0x2000, T));
    }

    #[test]
    fn the_user_bank_is_reached_from_other_modes() {
        let mut cpu = with_words();
        arm(&mut cpu, 0xe8d8_6000); // ldmia r8, {sp, lr}^
        assert_eq!([13, 14].map(|n| cpu.user_register(n)), [5, 6]);
        assert_eq!((cpu.r[13], cpu.r[14]), (0, 0));
        cpu.r[0] = 0x120;
        arm(&mut cpu, 0xe8c0_6000); // stmia r0, {sp, lr}^
        assert_eq!((cpu.bus.word(0x120), cpu.bus.word(0x124)), (5, 6));
    }

    #[test]
    fn the_user_bank_of_fiq_mode_includes_r8_to_r12() {
        let mut cpu = with_words();
        cpu.r[9] = 99;
        cpu.set_cpsr(Mode::Fiq as u32);
        cpu.r[9] = 11;
        cpu.r[0] = 0x120;
        arm(&mut cpu, 0xe8c0_0200); // stmia r0, {r9}^
        assert_eq!(cpu.bus.word(0x120), 99);
    }

    #[test]
    fn ldm_with_pc_and_caret_returns_from_the_exception() {
        let mut cpu = with_words();
        cpu.set_spsr(0x8000_0010);
        cpu.set_user_register(13, 0xbeef);
        arm(&mut cpu, 0xe8f8_8003); // ldmia r8!, {r0, r1, pc}^
        assert_eq!((cpu.r[0], cpu.r[1], cpu.pc, cpu.r[8]), (5, 6, 4, 0x11c));
        assert_eq!((cpu.cpsr(), cpu.r[13]), (0x8000_0010, 0xbeef));
    }

    #[test]
    fn a_fault_in_the_middle_leaves_base_and_list_alone() {
        let mut cpu = machine();
        cpu.r[8] = 0xfff8;
        arm(&mut cpu, 0xe8b8_001f); // ldmia r8!, {r0-r4} across the end of memory
        assert_eq!((cpu.r[0], cpu.r[8], cpu.pc), (0, 0xfff8, 0x10));
    }
}
