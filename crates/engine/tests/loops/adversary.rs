// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that end with an access that takes longer than the margin of the horizon. What is pending then must be the same.

use super::*;

/// Runs a loop of these words to each of many limits. r0 points to uncached memory.
fn ends_everywhere(core: &'static Core, words: &[u32]) {
    let mut random = Random(1);
    let mut code = words.to_vec();
    code.push(0xea00_0000 | -(words.len() as i32 + 2) as u32 & 0xff_ffff);
    let size = core.cache_bytes.0;
    let cost = CostTable {
        bus_sync: 200,
        ..COST
    };
    let config = Config::new(core, size, size, cost).unwrap();
    let mut one = Cpu::new(config, Ram::with(&code, &mut random));
    crate::program::start(&mut one);
    let mut other = one.clone();
    assert!(one.set_engine(Some(engine::translator_for(core, 1).unwrap())));
    for cpu in [&mut one, &mut other] {
        cpu.set_cpsr(0xd3);
        cpu.set_register(0, 0x22_0000);
        cpu.set_pc(0x1_0000);
        cpu.run(6000);
    }
    assert!(saved(&one) == saved(&other), "warm-up");
    let wrong: Vec<u64> = (6001..8000)
        .filter(|limit| {
            let (mut a, mut b) = (one.clone(), other.clone());
            a.run(*limit);
            b.run(*limit);
            saved(&a) != saved(&b)
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} limits differ: {:?}",
        wrong.len(),
        &wrong[..wrong.len().min(8)]
    );
}

/// The plan says that nothing is pending after the load, because the next instruction does not use the result.
#[test]
fn a_conditional_load_ends_the_run() {
    for core in [&ARM920T, &ARM926EJS] {
        ends_everywhere(core, &[0xe150_0000, 0x0590_8000, 0xe3a0_9001, NOP, NOP]);
    }
}

#[test]
fn a_conditional_block_load_ends_the_run() {
    for core in [&ARM920T, &ARM926EJS] {
        ends_everywhere(core, &[0xe150_0000, 0x0890_0300, 0xe3a0_a001, NOP, NOP]);
    }
}

/// The plan has the result of a byte before the load, but the branch passes over the byte.
#[test]
fn a_load_behind_a_branch_ends_the_run() {
    for core in [&ARM920T, &ARM926EJS] {
        ends_everywhere(
            core,
            &[NOP, 0xea00_0000, 0xe5d0_8000, 0xe590_b000, 0xe3a0_9001, NOP],
        );
    }
}
