// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core and the memory with which a program begins. The tests of the translator use them, too.

use super::bus::RAM;
use super::code;
use super::generate;
use super::program::Program;
use super::{arm1136, xscale};
use crate::config::{Config, Victims};
use crate::cost::CostTable;
use crate::model::{ARM920T, Core, Descriptors, Version};

/// The ARM920T with caches as small as those of the other cores, because large caches would never evict a line.
pub static SMALL_920T: Core = {
    let mut core = ARM920T;
    core.cache_bytes = (4096, 131_072);
    core
};

/// Configuration of the core for a program.
pub fn config(core: &'static Core, program: &Program) -> Config {
    let s = &program.setup;
    let cost = CostTable {
        bus_sync: s.seed & 1,
        tail_exposed_256: 128,
        walk_overhead: 1,
        lines_tested_per_op: 8,
        cp15_busy: 1,
    };
    Config {
        victim_seed: s.seed,
        victims: if s.late {
            Victims::Late
        } else {
            Victims::Random
        },
        ..Config::new(core, s.icache, s.dcache, cost).unwrap()
    }
}

/// Initial contents of memory for a program.
pub fn ram(core: &'static Core, program: &Program) -> Vec<u32> {
    let word = |pa| match pa {
        generate::TABLES_START..generate::TABLES_END => 0,
        _ => code::elsewhere(pa),
    };
    let mut ram: Vec<_> = (0..RAM).step_by(4).map(word).collect();
    let extended = core.descriptors == Descriptors::Extended;
    for (pa, words) in &program.lines {
        for (pa, word) in (*pa..).step_by(4).zip(words) {
            ram[pa as usize / 4] = match core.version {
                _ if extended => xscale::word(pa, *word),
                Version::V6 | Version::V6K => arm1136::word(pa, *word),
                _ => *word,
            };
        }
    }
    for (pa, word) in &program.tables {
        let first = generate::is_first_level(*pa);
        ram[*pa as usize / 4] = match extended {
            true => xscale::descriptor(*pa, first, *word),
            false => *word,
        };
    }
    ram
}
