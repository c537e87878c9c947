// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the code of many lines for every kind of host. Only the code for this host can be executed.

use std::sync::Arc;

use arm::engine::Set;
use arm::model::{ARM920T, ARM926EJS, Core, IXP42X};
use arm::{Config, Cpu};

// The tests of whole programs use the rest.
#[allow(dead_code)]
#[path = "../tests/program/mod.rs"]
mod program;

use crate::memory::CodeMemory;
use crate::plan::{Plan, plan};
use crate::{a64, x64};
use program::hot::{Mix, program};
use program::{COST, Ram, Random, thumb};

/// Code of a store knows neither the exclusive monitor nor unaligned accesses, so lines of ARMv6 stay with the
/// interpreter.
#[test]
fn the_translator_does_not_know_armv6() {
    for core in arm::model::EVERY {
        assert_eq!(crate::knows(core), core.version < arm::model::Version::V6);
    }
}

/// Plans of random lines.
fn plans(core: &'static Core) -> Vec<Plan> {
    let size = core.cache_bytes.0;
    let cpu = Cpu::new(
        Config::new(core, size, size, COST).unwrap(),
        Ram::new(1, false),
    );
    let mut plans = Vec::new();
    for n in 0..16 {
        let mix = Mix {
            late: n & 1 != 0,
            rare: n & 2 != 0,
            pages: n & 4 != 0,
            thumb: n & 8 != 0,
        };
        let (words, set) = match mix.thumb {
            true => (thumb::program(&mut Random(n), 1500, mix), Set::Thumb),
            false => (program(&mut Random(n), 1500, mix), Set::A32),
        };
        let lines = words.as_chunks::<8>().0;
        let plan = |words: &[u32; 8]| plan(&cpu.line_of(*words, set)).expect("a plan");
        plans.extend(lines.iter().map(plan));
    }
    plans
}

#[test]
fn every_host_has_code_for_every_line() {
    let layout = Cpu::<Ram>::LAYOUT;
    let memories = [(); 2].map(|()| Arc::new(CodeMemory::new().unwrap()));
    let x64 = x64::Maker::new(Arc::clone(&memories[0]), &layout).unwrap();
    let a64 = a64::Maker::new(Arc::clone(&memories[1]), &layout).unwrap();
    for core in [&ARM926EJS, &ARM920T, &IXP42X] {
        let plans = plans(core);
        assert!(plans.len() > 1000, "{}", plans.len());
        for plan in &plans {
            assert!(x64.make(plan).is_some() && a64.make(plan).is_some());
        }
        let bytes = memories.each_ref().map(|memory| memory.used());
        println!("{}: {} lines, {bytes:?} bytes", core.name, plans.len());
    }
}
