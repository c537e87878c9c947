// SPDX-License-Identifier: MIT OR Apache-2.0
//! Splits the cycles of a switch into terms, from the core's counters.
//!
//! The counters run while the guest holds a pin high, which it does during the timed sections of the ring and of the
//! overhead. A term of a switch is the ring's value per hop, minus the overhead's value per hop. A term may be
//! negative, because the overhead reads all arrays from one task and may wait longer than the ring.

use serde::Serialize;

use super::LatCtx;
use crate::runs::run::{Run, Window};

/// A term: its name in files, its heading, and the cycle counters that add up to the term.
struct TermRow {
    name: &'static str,
    heading: &'static str,
    counters: &'static [&'static str],
}

/// All terms except the remainder, in the order of tables and charts.
const TERMS: [TermRow; COUNT - 1] = [
    TermRow {
        name: "direct",
        heading: "cache ops",
        counters: &["cache_op_cycles"],
    },
    TermRow {
        name: "icache_refill",
        heading: "I refill",
        counters: &["icache_fill_cycles"],
    },
    TermRow {
        name: "dcache_refill",
        heading: "D refill",
        counters: &["dcache_fill_cycles"],
    },
    TermRow {
        name: "table_walks",
        heading: "TLB walks",
        counters: &["tlb_walk_cycles"],
    },
    TermRow {
        name: "write_waits",
        heading: "write waits",
        counters: &["write_wait_cycles"],
    },
    TermRow {
        name: "uncached",
        heading: "uncached",
        counters: &["uncached_fetch_cycles", "uncached_read_cycles"],
    },
];

/// Number of terms.
pub const COUNT: usize = 7;
/// Indexes into `Terms::cycles`.
pub const DIRECT: usize = 0;
pub const ICACHE_REFILL: usize = 1;
pub const DCACHE_REFILL: usize = 2;
pub const TABLE_WALKS: usize = 3;
pub const REST: usize = COUNT - 1;

/// Returns the names of the terms in files, in order.
pub fn names() -> [&'static str; COUNT] {
    std::array::from_fn(|i| TERMS.get(i).map_or("rest", |term| term.name))
}

/// Returns the headings of the terms, in order.
pub fn headings() -> [&'static str; COUNT] {
    std::array::from_fn(|i| TERMS.get(i).map_or("the rest", |term| term.heading))
}

/// Core cycles per switch by term, and counts of events per switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Terms {
    /// All cycles of a switch.
    pub total: f64,
    /// Cycles of each term, in the order of `names`. Their sum is `total`.
    #[serde(serialize_with = "by_name")]
    pub cycles: [f64; COUNT],
    /// Instructions executed.
    pub instructions: f64,
    /// I-cache lines filled.
    pub icache_fills: f64,
    /// D-cache lines filled.
    pub dcache_fills: f64,
    /// Dirty lines written back by cache operations.
    pub cleans: f64,
    /// Table walks.
    pub walks: f64,
    /// Changes of the translation table base.
    pub ttb_writes: f64,
    /// Writes of the FCSE process id.
    pub pid_writes: f64,
}

fn by_name<S: serde::Serializer>(cycles: &[f64; COUNT], s: S) -> Result<S::Ok, S::Error> {
    s.collect_map(names().into_iter().zip(cycles))
}

impl Terms {
    /// Computes the terms of a switch. Returns `None` when the run measures no ring, or when its guest did not move a
    /// pin.
    pub fn of(run: &Run) -> Option<Terms> {
        let guest = LatCtx::of(run)?;
        let ring = per_hop(&guest, &run.ring)?;
        let overhead = per_hop(&guest, &run.overhead)?;
        Some(ring.minus(&overhead))
    }

    /// Subtracts term by term.
    pub fn minus(&self, other: &Terms) -> Terms {
        Terms {
            total: self.total - other.total,
            cycles: std::array::from_fn(|i| self.cycles[i] - other.cycles[i]),
            instructions: self.instructions - other.instructions,
            icache_fills: self.icache_fills - other.icache_fills,
            dcache_fills: self.dcache_fills - other.dcache_fills,
            cleans: self.cleans - other.cleans,
            walks: self.walks - other.walks,
            ttb_writes: self.ttb_writes - other.ttb_writes,
            pid_writes: self.pid_writes - other.pid_writes,
        }
    }

    /// Computes the mean term by term. Returns `None` without terms.
    pub fn mean(all: &[Terms]) -> Option<Terms> {
        let n = all.len() as f64;
        let mean = |get: fn(&Terms) -> f64| all.iter().map(get).sum::<f64>() / n;
        (!all.is_empty()).then(|| Terms {
            total: mean(|t| t.total),
            cycles: std::array::from_fn(|i| all.iter().map(|t| t.cycles[i]).sum::<f64>() / n),
            instructions: mean(|t| t.instructions),
            icache_fills: mean(|t| t.icache_fills),
            dcache_fills: mean(|t| t.dcache_fills),
            cleans: mean(|t| t.cleans),
            walks: mean(|t| t.walks),
            ttb_writes: mean(|t| t.ttb_writes),
            pid_writes: mean(|t| t.pid_writes),
        })
    }
}

/// Computes the terms of one hop. Returns `None` when the window has no hops.
fn per_hop(guest: &LatCtx, window: &Window) -> Option<Terms> {
    let hops = guest.hops(window.sections);
    if hops == 0 {
        return None;
    }
    let count = |name: &str| window.counters.get(name).copied().unwrap_or(0) as f64 / hops as f64;
    let total = window.cycles as f64 / hops as f64;
    let mut cycles: [f64; COUNT] = std::array::from_fn(|i| {
        TERMS.get(i).map_or(0.0, |term| {
            term.counters.iter().map(|name| count(name)).sum()
        })
    });
    cycles[REST] = total - cycles.iter().sum::<f64>();
    Some(Terms {
        total,
        cycles,
        instructions: count("instructions"),
        icache_fills: count("icache_fills"),
        dcache_fills: count("dcache_fills"),
        cleans: count("dcache_cleans"),
        walks: count("tlb_walks"),
        ttb_writes: count("ttb_writes"),
        pid_writes: count("pid_writes"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::for_tests::made_up_run;

    #[test]
    fn the_terms_add_up_to_the_switch() {
        let run = made_up_run("sam9263", "process", 4, 8, 60.0);
        let terms = Terms::of(&run).unwrap();
        assert!((terms.cycles.iter().sum::<f64>() - terms.total).abs() < 1e-6);
        assert!(terms.cycles[DIRECT] > 0.0);
    }

    #[test]
    fn a_run_whose_pins_never_moved_has_no_terms() {
        let mut run = made_up_run("sam9263", "process", 4, 8, 60.0);
        run.ring = Window::default();
        assert_eq!(Terms::of(&run), None);
    }

    #[test]
    fn every_counter_named_here_exists_in_the_core() {
        let entries = arm::Counters::default().entries();
        for name in TERMS.iter().flat_map(|t| t.counters) {
            assert!(entries.iter().any(|(n, _)| n == name), "{name}");
        }
    }
}
