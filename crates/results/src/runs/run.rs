// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs: the measurement of one point.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use arm::Counters;
use serde::{Deserialize, Serialize};

use crate::runs::instrument_record::InstrumentRecord;
use crate::runs::point::Point;

/// Format of `run.json`.
const FORMAT: u32 = 3;

/// Sums over the timed sections of one kind. A section is the time during which a pin is high.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Number of sections.
    pub sections: u64,
    /// Core cycles of all sections.
    pub cycles: u64,
    /// The core's counters over all sections, by name.
    pub counters: BTreeMap<String, u64>,
}

impl Window {
    /// Adds a section.
    pub fn add(&mut self, cycles: u64, counters: &Counters) {
        self.sections += 1;
        self.cycles += cycles;
        let sums: &mut BTreeMap<String, u64> = &mut self.counters;
        for (name, value) in counters.entries() {
            *sums.entry(name.to_string()).or_default() += value;
        }
    }
}

/// Inputs of a run. All inputs except `kernel_version` and `warmswitch` are part of the run's hash.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Hash of the board's file.
    pub board_hash: String,
    /// Release of the kernel, as `uname -r` prints it.
    pub kernel_version: String,
    /// Hash of all inputs of the kernel's build.
    pub kernel_hash: String,
    /// Hash of the root file system, guests included.
    pub root_fs_hash: String,
    /// Hash of the simulator's sources.
    pub simulator: String,
    /// Command line typed on the console.
    pub command: String,
    /// The kernel's command line.
    pub cmdline: String,
    /// Instruments outside the guest, as JSON. Empty without instruments.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instruments: String,
    /// Version of this program.
    pub warmswitch: String,
}

/// One measured point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Format of `run.json`: [`Run::FORMAT`].
    pub format: u32,
    /// Hash that names the run: [`Provenance::run_hash`].
    pub hash: String,
    /// Name of the experiment.
    pub experiment: String,
    /// The measured point.
    pub point: Point,
    /// Core clock of the board, in hertz.
    pub cpu_hz: u64,
    /// Kind of the output, as `workload.toml` names it.
    pub kind: String,
    /// The guest's output. It is stored with the console output, not in `run.json`.
    #[serde(skip)]
    pub output: String,
    /// What instruments recorded. `None` without instruments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<InstrumentRecord>,
    /// Sums over the sections of pin 0: the measured work.
    pub ring: Window,
    /// Sums over the sections of pin 1: the work without the measured effect.
    pub overhead: Window,
    /// Sums from the command's first byte on the console to the command's end.
    pub whole: Window,
    /// Core cycles from power-on to the end of the point.
    pub end_cycle: u64,
    /// What executed the guest's instructions. It changes no result, and is no part of the run's hash.
    #[serde(default)]
    pub engine: String,
    /// Inputs of the run.
    pub provenance: Provenance,
}

impl Run {
    /// Format of `run.json`.
    pub const FORMAT: u32 = FORMAT;

    /// Fails if `other`, a run with equal inputs, has other counts.
    pub fn same_figures(&self, other: &Run) -> Result<()> {
        let windows = |run: &Run| [run.ring.clone(), run.overhead.clone(), run.whole.clone()];
        let figures = |run: &Run| (run.end_cycle, windows(run));
        if figures(self) != figures(other) {
            bail!(
                "run {} did not repeat its stored result: end cycle {} then, {} now; the counters may differ, too",
                self.hash,
                other.end_cycle,
                self.end_cycle
            );
        }
        Ok(())
    }
}

impl Provenance {
    /// Returns the hash that names the run of `point`. It is the hash of everything that can change the run's result.
    pub fn run_hash(&self, point: &Point) -> String {
        let mut hasher = blake3::Hasher::new();
        let fields = [
            "run 3",
            &self.board_hash,
            &self.kernel_hash,
            &self.root_fs_hash,
            &self.simulator,
            &self.command,
            &self.cmdline,
            &self.instruments,
            &point.board,
            &point.seed.to_string(),
        ];
        for field in fields {
            hasher.update(&(field.len() as u64).to_le_bytes());
            hasher.update(field.as_bytes());
        }
        hasher.finalize().to_hex()[..32].to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point() -> Point {
        Point {
            board: "sam9263".into(),
            kernel: "6.12/plain".into(),
            mode: "process".into(),
            axes: [("tasks".to_string(), 2)].into(),
            seed: 1,
            layout: 0,
        }
    }

    #[test]
    fn the_name_of_a_run_changes_with_every_input() {
        let base = Provenance::default();
        let mut names = vec![base.run_hash(&point())];
        for change in [
            |p: &mut Provenance| p.board_hash = "x".into(),
            |p: &mut Provenance| p.kernel_hash = "x".into(),
            |p: &mut Provenance| p.root_fs_hash = "x".into(),
            |p: &mut Provenance| p.simulator = "x".into(),
            |p: &mut Provenance| p.command = "x".into(),
            |p: &mut Provenance| p.cmdline = "x".into(),
            |p: &mut Provenance| p.instruments = "x".into(),
        ] {
            let mut changed = base.clone();
            change(&mut changed);
            names.push(changed.run_hash(&point()));
        }
        names.push(base.run_hash(&Point { seed: 2, ..point() }));
        let mut unique = names.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), names.len());
    }

    #[test]
    fn a_version_string_alone_does_not_rename_a_run() {
        let newer = Provenance {
            warmswitch: "9".into(),
            ..Provenance::default()
        };
        assert_eq!(
            newer.run_hash(&point()),
            Provenance::default().run_hash(&point())
        );
    }
}
