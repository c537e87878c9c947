// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARM926EJ-S (`DDI0198D`): ARMv5TEJ, Harvard caches of 4 ways, unified TLB, no branch predictor.
//!
//! The TLB organisation is in `tlb.rs`, CP15 in `cp15.rs`, issue cycles in `isa/timing.rs`; what a
//! chip's integrator chooses (cache sizes) or its memory decides (costs) comes from the board.

use crate::config::{CacheGeometry, Config, Victims};
use crate::cost::CostTable;

/// Main id register of revision r0p5, as SAM9 boot logs show it.
pub const MIDR: u32 = 0x4106_9265;
/// Associativity of both caches (`DDI0198D 4.1`).
pub const WAYS: u32 = 4;

/// The core with caches of the given sizes in bytes.
pub fn config(
    icache_bytes: u32,
    dcache_bytes: u32,
    cost: CostTable,
    victim_seed: u32,
) -> Result<Config, String> {
    let icache = CacheGeometry {
        size: icache_bytes,
        ways: WAYS,
    };
    let dcache = CacheGeometry {
        size: dcache_bytes,
        ways: WAYS,
    };
    icache
        .check()
        .map_err(|e| format!("instruction cache: {e}"))?;
    dcache.check().map_err(|e| format!("data cache: {e}"))?;
    Ok(Config {
        midr: MIDR,
        icache,
        dcache,
        cost,
        victim_seed,
        victims: Victims::Random,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cp15::cache_type;

    fn ctr(icache: u32, dcache: u32) -> u32 {
        cache_type(
            CacheGeometry {
                size: icache,
                ways: WAYS,
            },
            CacheGeometry {
                size: dcache,
                ways: WAYS,
            },
        )
    }

    #[test]
    fn cache_type_follows_the_documented_fields() {
        assert_eq!(ctr(16384, 16384), 0x1d15_2152);
        assert_eq!(ctr(16384, 8192), 0x1d11_2152);
        assert_eq!(ctr(32768, 32768), 0x1d19_2192);
    }

    #[test]
    fn absurd_cache_sizes_are_refused() {
        let cost = CostTable {
            bus_sync: 0,
            tail_exposed_256: 0,
            walk_overhead: 0,
            lines_tested_per_op: 8,
            cp15_busy: 1,
        };
        for bytes in [0, 1, 2048, 12_000, 262_144, u32::MAX] {
            assert!(
                config(bytes, 16384, cost, 0)
                    .unwrap_err()
                    .contains("instruction cache")
            );
        }
        assert!(config(131_072, 4096, cost, 0).is_ok());
    }
}
