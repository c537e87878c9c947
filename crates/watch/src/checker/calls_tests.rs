// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the call tree with hand-written instruction sequences.

use super::*;

const SP: u32 = 0xc100_1f00;

fn bl(from: u32, to: u32) -> u32 {
    0xeb00_0000 | (to.wrapping_sub(from + 8) >> 2) & 0xff_ffff
}

/// Executes `word` at `pc` with a stack pointer, and returns the callers.
fn at(calls: &mut Calls, pc: u32, sp: u32, word: u32) -> Vec<u32> {
    with_lr(calls, pc, sp, 0, word)
}

fn with_lr(calls: &mut Calls, pc: u32, sp: u32, lr: u32, word: u32) -> Vec<u32> {
    let mut registers = [0; 16];
    registers[14] = lr;
    registers[0] = pc;
    registers[13] = sp;
    let context = Context {
        cycle: calls.ring.len() as u64,
        pc,
        mode: if pc < 0x8000_0000 { 0x10 } else { 0x13 },
        ..Context::default()
    };
    calls.fetched(&context, Width::Word, word, &registers);
    calls.callers(calls.now(&context))
}

/// Returns the callers of a write on the first stack that have not returned.
fn running(calls: &Calls, node: Node, cycle: u64) -> Vec<u32> {
    running_on(calls, SP, node, cycle)
}

fn running_on(calls: &Calls, sp: u32, node: Node, cycle: u64) -> Vec<u32> {
    calls.running(&Writer {
        node,
        cycle,
        stack: stack(sp >> STACK),
        ..Writer::default()
    })
}

const F: u32 = 0xc000_1000;
const G: u32 = 0xc000_2000;
const H: u32 = 0xc000_3000;

/// F calls G, which calls H.
fn in_h() -> Calls {
    let mut calls = Calls::new();
    assert_eq!(at(&mut calls, F, SP, bl(F, G)), [0; 0]);
    assert_eq!(at(&mut calls, G, SP, 0), [F]);
    // BLX of a register.
    assert_eq!(at(&mut calls, G + 4, SP - 8, 0xe12f_ff33), [F]);
    assert_eq!(at(&mut calls, H, SP - 8, 0), [G + 4, F]);
    calls
}

#[test]
fn callers_are_known_from_calls_to_returns() {
    let mut calls = in_h();
    assert_eq!(at(&mut calls, G + 8, SP - 8, 0), [F]);
    assert_eq!(at(&mut calls, F + 4, SP, 0), [0; 0]);
}

#[test]
fn a_branch_is_no_call_and_no_return() {
    let mut calls = in_h();
    assert_eq!(at(&mut calls, H + 0x40, SP - 16, 0), [G + 4, F]);
    // A tail call: another function returns.
    assert_eq!(at(&mut calls, F + 0x800, SP - 8, 0), [G + 4, F]);
    assert_eq!(at(&mut calls, G + 8, SP - 8, 0), [F]);
    // A conditional call that is not taken.
    assert_eq!(
        at(&mut calls, G + 12, SP - 8, bl(G + 12, H) & !0xe000_0000),
        [F]
    );
    assert_eq!(at(&mut calls, G + 16, SP - 8, 0), [F]);
}

#[test]
fn a_jump_with_the_address_behind_it_in_lr_is_a_call() {
    // BX r3, MOV pc, r3, and LDR pc, [r3]: calls on ARMv4T.
    for jump in [0xe12f_ff13, 0xe1a0_f003, 0xe593_f000] {
        for (lr, callers) in [(G + 12, &[G + 8, F][..]), (F + 4, &[F]), (G + 8, &[F])] {
            let mut calls = Calls::new();
            at(&mut calls, F, SP, bl(F, G));
            at(&mut calls, G, SP, 0);
            with_lr(&mut calls, G + 8, SP - 8, lr, jump);
            let found = with_lr(&mut calls, H, SP - 8, lr, 0);
            assert_eq!(found, callers, "{jump:08x} with LR {lr:08x}");
        }
    }
    // An instruction of a fault handler's return, LDM with PC, is no call.
    let mut calls = Calls::new();
    with_lr(&mut calls, G, SP, G + 4, 0xe8bd_8010);
    assert_eq!(with_lr(&mut calls, H, SP, G + 4, 0), [0; 0]);
}

#[test]
fn user_land_has_no_callers_and_the_next_kernel_entry_begins_a_new_tree() {
    let mut calls = in_h();
    assert_eq!(
        at(&mut calls, 0x1_0000, 0x7fff_0000, bl(0x1_0000, F)),
        [0; 0]
    );
    assert_eq!(at(&mut calls, 0xffff_0008, SP + 0x80, 0), [0; 0]);
    assert_eq!(at(&mut calls, F, SP, 0), [0; 0]);
}

#[test]
fn every_stack_has_its_own_calls() {
    let mut calls = in_h();
    let other = SP + (1 << STACK);
    assert_eq!(at(&mut calls, F, other, bl(F, H)), [0; 0]);
    assert_eq!(at(&mut calls, H, other, 0), [F]);
    assert_eq!(at(&mut calls, H + 0x20, SP - 8, 0), [G + 4, F]);
}

#[test]
fn functions_run_until_they_return_even_while_another_stack_is_in_use() {
    let mut calls = in_h();
    // The node of G: the parent of H's node.
    let in_g = calls.nodes[calls.frames.last().unwrap().node as usize].0;
    let other = SP + (1 << STACK);
    let in_h = calls.frames.last().unwrap().node;
    assert_eq!(running(&calls, in_h, u64::MAX), [G + 4, F]);
    at(&mut calls, F + 0x80, other, 0);
    at(&mut calls, 0x1_0000, other, 0);
    assert_eq!(running(&calls, in_h, u64::MAX), [G + 4, F]);
    at(&mut calls, G + 8, SP - 8, 0);
    at(&mut calls, F + 4, SP, 0);
    assert_eq!(running(&calls, in_h, u64::MAX), [0; 0]);
    assert_eq!(running(&calls, in_g, u64::MAX), [0; 0]);
}

/// F calls G twice. The write belongs to the first call.
#[test]
fn a_later_call_of_the_same_function_is_not_the_one_that_wrote() {
    let mut calls = in_h();
    let in_h = calls.frames.last().unwrap().node;
    let written = calls.ring.len() as u64 - 1;
    at(&mut calls, G + 8, SP - 8, 0);
    at(&mut calls, F + 4, SP, 0);
    at(&mut calls, F, SP, bl(F, G));
    at(&mut calls, G, SP, 0);
    at(&mut calls, G + 4, SP - 8, 0xe12f_ff33);
    at(&mut calls, H, SP - 8, 0);
    assert_eq!(running(&calls, in_h, written), [0; 0]);
    assert_eq!(running(&calls, in_h, calls.ring.len() as u64), [G + 4, F]);
}

/// One call of G calls H twice.
#[test]
fn a_caller_that_calls_again_has_not_returned() {
    let mut calls = in_h();
    let in_h = calls.frames.last().unwrap().node;
    let written = calls.ring.len() as u64 - 1;
    at(&mut calls, G + 8, SP - 8, 0);
    at(&mut calls, G + 4, SP - 8, 0xe12f_ff33);
    at(&mut calls, H, SP - 8, 0);
    assert_eq!(running(&calls, in_h, written), [G + 4, F]);
}

#[test]
fn instructions_are_counted() {
    let mut calls = Calls::new();
    calls.set_counted(&[F, H]);
    for pc in [F, G, H, F + 0x100, F] {
        at(&mut calls, pc, SP, 0);
    }
    assert_eq!(calls.count(), 3);
}

#[test]
fn the_next_calls_by_the_callers_of_a_write_are_known() {
    let mut calls = in_h();
    let in_h = calls.frames.last().unwrap().node;
    let written = calls.ring.len() as u64;
    at(&mut calls, G + 8, SP - 8, bl(G + 8, F + 0x100));
    at(&mut calls, F + 0x100, SP - 8, bl(F + 0x100, H));
    at(&mut calls, H, SP - 16, 0);
    let next = calls.next(written - 1, in_h, 9);
    let places: Vec<_> = next.iter().map(|c| (c.from, c.to)).collect();
    assert_eq!(places, [(G + 8, F + 0x100)]);
}

#[test]
fn arguments_name_a_page_or_a_range() {
    assert!(concerns(&[0, 0, 0, 0xb600_1000], 0xb600_1ffc));
    assert!(concerns(&[9, 0xb600_0000, 0xb600_3000, 0], 0xb600_1ffc));
    assert!(concerns(&[0xb600_0000, 0x2000, 0, 0], 0xb600_1ffc));
    assert!(!concerns(&[0xb600_0000, 0x1000, 0, 0], 0xb600_1ffc));
    assert!(!concerns(&[0, 0xc000_0000, 0, 0], 0xb600_1ffc));
    let calls = in_h();
    assert_eq!(calls.given(0, &[Mva(G + 0x20)], 9)[0].to, G);
}

#[test]
fn a_new_address_space_is_known_with_its_writer() {
    for (ttb, asid) in [(0x4000, 0), (0, 5)] {
        let mut calls = in_h();
        let context = Context {
            cycle: 77,
            pc: H + 4,
            ttb,
            asid,
            mode: 0x13,
            ..Context::default()
        };
        let mut registers = [0; 16];
        registers[13] = SP - 8;
        calls.fetched(&context, Width::Word, 0, &registers);
        let switch = calls.switch_since(76).unwrap();
        assert_eq!((switch.pc, switch.callers), (H, vec![G + 4, F]));
        assert_eq!(calls.switch_since(77), None);
    }
}

/// Another task called these functions before the write, on its own stack, and has not returned.
#[test]
fn functions_of_another_task_do_not_count_as_running() {
    let mut calls = in_h();
    let other = SP + (1 << STACK);
    at(&mut calls, F, other, bl(F, G));
    at(&mut calls, G, other, 0);
    at(&mut calls, G + 4, other - 8, 0xe12f_ff33);
    assert_eq!(at(&mut calls, H, other - 8, 0), [G + 4, F]);
    let writer = calls.frames.last().unwrap().node;
    let written = calls.ring.len() as u64;
    // H returns to G, then G returns to F. The writer in H has therefore returned.
    at(&mut calls, G + 8, other - 8, 0);
    at(&mut calls, F + 4, other, 0);
    assert_eq!(running_on(&calls, other, writer, written), [0; 0]);
    assert_eq!(running(&calls, writer, written), [G + 4, F]);
}
