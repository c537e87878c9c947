// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the Thumb instructions.

use crate::psr::{C, N, T, Z};
use crate::tests::core::{HERE, machine, thumb, thumb_at};

#[test]
fn a_call_is_two_halves_and_returns_to_thumb() {
    let mut cpu = machine();
    thumb(&mut cpu, 0xf000); // bl .+4+0x10, first half
    assert_eq!(cpu.r[14], HERE + 4);
    thumb_at(&mut cpu, HERE + 2, 0xf808);
    assert_eq!((cpu.pc, cpu.r[14]), (HERE + 4 + 0x10, (HERE + 4) | 1));
    assert_eq!(cpu.control & T, T);
}

#[test]
fn calls_reach_backwards() {
    let mut cpu = machine();
    thumb(&mut cpu, 0xf7ff);
    thumb_at(&mut cpu, HERE + 2, 0xfffe); // bl .
    assert_eq!(cpu.pc, HERE);
}

#[test]
fn blx_leaves_thumb_at_a_word() {
    let mut cpu = machine();
    thumb_at(&mut cpu, HERE + 2, 0xf000);
    thumb_at(&mut cpu, HERE + 4, 0xe808); // blx
    assert_eq!((cpu.pc, cpu.control & T), (HERE + 4 + 0x10, 0));
    assert_eq!(cpu.r[14], (HERE + 6) | 1);
    cpu.r[3] = 0x2000;
    thumb(&mut cpu, 0x4798); // blx r3
    assert_eq!(
        (cpu.pc, cpu.control & T, cpu.r[14]),
        (0x2000, 0, (HERE + 2) | 1)
    );
}

#[test]
fn pc_operands_are_rounded_to_a_word() {
    let mut cpu = machine();
    cpu.bus.put(HERE + 8, &[42]);
    thumb_at(&mut cpu, HERE + 2, 0x4801); // ldr r0, [pc, #4]
    assert_eq!(cpu.r[0], 42);
    thumb_at(&mut cpu, HERE + 2, 0xa101); // add r1, pc, #4
    assert_eq!(cpu.r[1], HERE + 8);
}

#[test]
fn arithmetic_sets_flags_and_moves_of_high_registers_do_not() {
    let mut cpu = machine();
    cpu.r[1] = 5;
    cpu.r[2] = 5;
    thumb(&mut cpu, 0x1a88); // subs r0, r1, r2
    assert_eq!((cpu.r[0], cpu.flags), (0, Z | C));
    thumb(&mut cpu, 0x3801); // subs r0, #1
    assert_eq!((cpu.r[0], cpu.flags), (0xffff_ffff, N));
    thumb(&mut cpu, 0x4680); // mov r8, r0
    assert_eq!((cpu.r[8], cpu.flags), (0xffff_ffff, N));
    thumb(&mut cpu, 0x4488); // add r8, r1
    assert_eq!((cpu.r[8], cpu.flags), (4, N));
    thumb(&mut cpu, 0x4588); // cmp r8, r1
    assert_eq!(cpu.flags, N);
    thumb(&mut cpu, 0x4240); // negs r0, r0
    assert_eq!(cpu.r[0], 1);
    thumb(&mut cpu, 0x0849); // lsrs r1, r1, #1
    assert_eq!((cpu.r[1], cpu.flags), (2, C));
    thumb(&mut cpu, 0x4351); // muls r1, r2
    assert_eq!(cpu.r[1], 10);
    thumb(&mut cpu, 0x4091); // lsls r1, r2
    assert_eq!(cpu.r[1], 320);
}

#[test]
fn memory_forms_scale_their_constants() {
    let mut cpu = machine();
    cpu.r[1] = 0x100;
    cpu.r[0] = 0x8182_8384;
    thumb(&mut cpu, 0x6048); // str r0, [r1, #4]
    thumb(&mut cpu, 0x6848 + 2); // ldr r2, [r1, #4]
    assert_eq!(cpu.r[2], 0x8182_8384);
    thumb(&mut cpu, 0x88cb); // ldrh r3, [r1, #6]
    assert_eq!(cpu.r[3], 0x8182);
    thumb(&mut cpu, 0x794b); // ldrb r3, [r1, #5]
    assert_eq!(cpu.r[3], 0x83);
    cpu.r[4] = 6;
    thumb(&mut cpu, 0x5f0b); // ldrsh r3, [r1, r4]
    assert_eq!(cpu.r[3], 0xffff_8182);
    cpu.r[13] = 0x80;
    thumb(&mut cpu, 0x9b21); // ldr r3, [sp, #132]
    assert_eq!(cpu.r[3], 0x8182_8384);
    thumb(&mut cpu, 0xab21); // add r3, sp, #132
    assert_eq!(cpu.r[3], 0x104);
    thumb(&mut cpu, 0xb082); // sub sp, #8
    assert_eq!(cpu.r[13], 0x78);
}

#[test]
fn push_and_pop_interwork() {
    let mut cpu = machine();
    cpu.r[13] = 0x200;
    cpu.r[14] = 0x2000;
    cpu.r[4] = 44;
    thumb(&mut cpu, 0xb510); // push {r4, lr}
    assert_eq!(
        (cpu.r[13], cpu.bus.word(0x1f8), cpu.bus.word(0x1fc)),
        (0x1f8, 44, 0x2000)
    );
    thumb(&mut cpu, 0xbd20); // pop {r5, pc}
    assert_eq!(
        (cpu.r[5], cpu.r[13], cpu.pc, cpu.control & T),
        (44, 0x200, 0x2000, 0)
    );
}

#[test]
fn a_loaded_base_is_not_written_back() {
    let mut cpu = machine();
    cpu.bus.put(0x100, &[1, 2]);
    cpu.r[0] = 0x100;
    thumb(&mut cpu, 0xc803); // ldmia r0, {r0, r1}
    assert_eq!((cpu.r[0], cpu.r[1]), (1, 2));
    cpu.r[0] = 0x100;
    thumb(&mut cpu, 0xc806); // ldmia r0!, {r1, r2}
    assert_eq!((cpu.r[0], cpu.r[2]), (0x108, 2));
    thumb(&mut cpu, 0xc002); // stmia r0!, {r1}
    assert_eq!((cpu.r[0], cpu.bus.word(0x108)), (0x10c, 1));
}

#[test]
fn short_branches_carry_their_condition_in_the_operation() {
    let mut cpu = machine();
    let op = cpu.decoder().thumb(0xd1fe); // bne .
    assert_eq!(op.cond(), 1);
    thumb(&mut cpu, 0xd1fe);
    assert_eq!(cpu.pc, HERE);
    thumb(&mut cpu, 0xe002); // b .+8
    assert_eq!(cpu.pc, HERE + 8);
    thumb(&mut cpu, 0xde00); // udf
    assert_eq!((cpu.pc, cpu.r[14]), (4, HERE + 2));
}
