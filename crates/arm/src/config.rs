// SPDX-License-Identifier: MIT OR Apache-2.0
//! What distinguishes one core or chip from another, as data.

use crate::cost::CostTable;
use crate::model::Core;

/// Size of one cache. Lines are 32 bytes on every core of this family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheGeometry {
    /// Total size in bytes: a power of two.
    pub size: u32,
    /// Associativity: a power of two.
    pub ways: u32,
}

impl CacheGeometry {
    /// Number of lines.
    pub const fn lines(self) -> u32 {
        self.size / 32
    }

    /// Number of sets.
    pub const fn sets(self) -> u32 {
        self.lines() / self.ways
    }
}

/// Who makes room in a set of a cache or the TLB that is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Victims {
    /// As the core does it: caches pseudo-random or round robin by SCTLR.RR.
    #[default]
    Random,
    /// Not silicon: lines and entries stay as long as they can, so that stale ones are met.
    Late,
}

impl Victims {
    /// Every policy, by name.
    pub const ALL: [(&'static str, Victims); 2] =
        [("random", Victims::Random), ("late", Victims::Late)];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Victims::Random => "random",
            Victims::Late => "late",
        }
    }
}

/// A core as a chip integrates it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which.
    pub core: &'static Core,
    /// Instruction cache.
    pub icache: CacheGeometry,
    /// Data cache.
    pub dcache: CacheGeometry,
    /// Instruction and memory-system costs, core cycles.
    pub cost: CostTable,
    /// Start state of the pseudo-random victim counter. Zero stands for the reset value.
    pub victim_seed: u32,
    /// Who makes room.
    pub victims: Victims,
}

impl Config {
    /// A core with caches of these sizes in bytes.
    ///
    /// # Errors
    /// When there is no such cache.
    pub fn new(
        core: &'static Core,
        icache: u32,
        dcache: u32,
        cost: CostTable,
    ) -> Result<Config, String> {
        let cache = |what: &str, size| {
            let cache = core.cache(size);
            cache.map_err(|error| format!("{what}: {error}"))
        };
        Ok(Config {
            core,
            icache: cache("instruction cache", icache)?,
            dcache: cache("data cache", dcache)?,
            cost,
            victim_seed: 0,
            victims: Victims::Random,
        })
    }
}
