// SPDX-License-Identifier: MIT OR Apache-2.0
//! Differences between cores and chips, as data.

use crate::cost::CostTable;
use crate::model::Core;

/// Size of one cache. All cores of this family have lines of 32 bytes.
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

/// Replacement policy of the caches and the TLB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Victims {
    /// The core's own policy. For the caches, SCTLR.RR selects between pseudo-random and round robin.
    #[default]
    Random,
    /// No silicon has this policy. Lines and entries stay as long as possible, so that software meets stale data.
    Late,
}

impl Victims {
    /// Every policy with its name.
    pub const ALL: [(&'static str, Victims); 2] =
        [("random", Victims::Random), ("late", Victims::Late)];

    /// Name of the policy.
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
    /// The core.
    pub core: &'static Core,
    /// Geometry of the instruction cache.
    pub icache: CacheGeometry,
    /// Geometry of the data cache.
    pub dcache: CacheGeometry,
    /// Instruction and memory-system costs, in core cycles.
    pub cost: CostTable,
    /// Start state of the pseudo-random victim counter. Zero selects the reset value.
    pub victim_seed: u32,
    /// Replacement policy.
    pub victims: Victims,
}

impl Config {
    /// Returns a core with caches of these sizes, in bytes.
    ///
    /// # Errors
    ///
    /// Fails if the core cannot have a cache of this size.
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
