// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records: the results of a campaign, committed in `records/`. A record shows whether another machine, or another
//! version of the simulator, gets equal results.
//!
//! `NAME.toml` maps the hash of each run's inputs to the hash of its result. `NAME.csv` has the figures computed from
//! the runs. Both files are pure functions of the runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::runs::run::{Provenance, Run};
use base::paths;
use base::toml_file;

/// Inputs and results of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Name of the experiment.
    pub experiment: String,
    /// Whether the campaign ran the experiment's quick form.
    pub quick: bool,
    /// Number of `runs`, to detect lost lines.
    pub count: usize,
    /// Hash of the simulator's sources.
    pub simulator: String,
    /// Hash of the root file system.
    pub root_fs: String,
    /// Hash of each board's file, by the board's name.
    pub boards: BTreeMap<String, String>,
    /// Release and hash of each kernel, by its name.
    pub kernels: BTreeMap<String, String>,
    /// Each run, by the hash of all its inputs except the simulator.
    pub runs: BTreeMap<String, Entry>,
}

/// One run of a record.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Hash of the run's figures and console output.
    pub result: String,
    /// Label of a point, for readers. Points with equal inputs share a run.
    pub point: String,
}

/// Comparison of stored runs with a record.
#[derive(Debug, Default, PartialEq)]
pub struct Compared {
    /// Number of recorded runs that are stored here with an equal result.
    pub same: usize,
    /// Points whose run has the recorded inputs (except the simulator), but another result.
    pub different: Vec<String>,
    /// Number of recorded runs without a stored run of equal inputs.
    pub not_here: usize,
    /// Inputs, except the simulator, that differ from the record.
    pub inputs: Vec<String>,
    /// Hashes of the recorded simulator and of this simulator, if they differ.
    pub simulators: Option<(String, String)>,
}

/// Returns the hash of all inputs of a run except the simulator.
pub fn inputs(run: &Run) -> String {
    let provenance = Provenance {
        simulator: String::new(),
        ..run.provenance.clone()
    };
    provenance.run_hash(&run.point)
}

fn release(p: &Provenance) -> String {
    format!("{} {}", p.kernel_version, p.kernel_hash)
}

impl Record {
    /// Makes the record of a campaign's runs. `result` returns the hash of a run's result.
    pub fn of(
        experiment: &str,
        quick: bool,
        runs: &[Run],
        result: impl Fn(&Run) -> Result<String>,
    ) -> Result<Record> {
        let mut record = Record {
            experiment: experiment.to_string(),
            quick,
            ..Record::default()
        };
        for run in runs {
            let p = &run.provenance;
            let (board, kernel) = (run.point.board.clone(), run.point.built_kernel());
            record.simulator.clone_from(&p.simulator);
            record.root_fs.clone_from(&p.root_fs_hash);
            record.boards.insert(board, p.board_hash.clone());
            record.kernels.insert(kernel, release(p));
            let entry = Entry {
                result: result(run)?,
                point: run.point.label(),
            };
            record.runs.insert(inputs(run), entry);
        }
        record.count = record.runs.len();
        Ok(record)
    }

    /// Compares the record with the stored runs in `here`, which are runs of this program's simulator. The key of a run
    /// is the hash of its inputs except the simulator. `result` returns the hash of a run's result.
    pub fn compare(
        &self,
        here: &BTreeMap<String, &Run>,
        result: impl Fn(&Run) -> Result<String>,
    ) -> Result<Compared> {
        let mut compared = Compared::default();
        for (inputs, recorded) in &self.runs {
            match here.get(inputs) {
                None => compared.not_here += 1,
                Some(run) if result(run)? == recorded.result => compared.same += 1,
                Some(run) => {
                    let run = &run.hash;
                    compared
                        .different
                        .push(format!("{} (run {run})", recorded.point));
                }
            }
        }
        let mut of_this: Vec<&Run> = here.values().copied().collect();
        of_this.retain(|run| run.experiment == self.experiment);
        let mut lines = Vec::new();
        let mut differs = |what: &str, recorded: &str, here: &str| {
            let line = format!("{what}: {recorded} recorded, {here} here");
            if recorded != here && !lines.contains(&line) {
                lines.push(line);
            }
        };
        // Different inputs explain missing runs. If no recorded run is missing, there is nothing to explain.
        let relevant = if compared.not_here > 0 {
            &of_this[..]
        } else {
            &[]
        };
        for run in relevant {
            let (point, p) = (&run.point, &run.provenance);
            differs("root file system", &self.root_fs, &p.root_fs_hash);
            if let Some(recorded) = self.boards.get(&point.board) {
                differs(&point.board, recorded, &p.board_hash);
            }
            if let Some(recorded) = self.kernels.get(&point.built_kernel()) {
                differs(&point.built_kernel(), recorded, &release(p));
            }
        }
        compared.inputs = lines;
        let simulator = of_this.first().map(|run| run.provenance.simulator.clone());
        let other = simulator.filter(|simulator| *simulator != self.simulator);
        compared.simulators = other.map(|other| (self.simulator.clone(), other));
        Ok(compared)
    }

    /// Returns the text of the file.
    pub fn text(&self) -> String {
        let Record {
            experiment, quick, ..
        } = self;
        let form = if *quick { " --quick" } else { "" };
        let mut text = format!(
            "# SPDX-License-Identifier: MIT OR Apache-2.0\n\
             # Written by `warmswitch records --write {experiment}{form}`: what the runs of \
             `warmswitch run {experiment}{form}` came to.\n\
             experiment = {experiment:?}\nquick = {quick}\ncount = {}\n\
             simulator = {:?}\nroot_fs = {:?}\n",
            self.count, self.simulator, self.root_fs
        );
        for (heading, map) in [("boards", &self.boards), ("kernels", &self.kernels)] {
            let _ = write!(text, "\n[{heading}]\n");
            for (name, hash) in map {
                let _ = writeln!(text, "{name:?} = {hash:?}");
            }
        }
        text += "\n[runs]\n";
        let mut runs: Vec<_> = self.runs.iter().collect();
        runs.sort_by_key(|(inputs, entry)| (&entry.point, *inputs));
        for (inputs, Entry { result, point }) in runs {
            let _ = writeln!(
                text,
                "{inputs:?} = {{ result = {result:?}, point = {point:?} }}"
            );
        }
        text
    }

    /// Reads the committed record of a full or quick campaign, and its figures as CSV. Returns `None` when there is no
    /// record.
    pub fn load(experiment: &str, quick: bool) -> Result<Option<(Record, String)>> {
        let path = path(experiment, quick, "toml");
        if !path.is_file() {
            return Ok(None);
        }
        let record: Record = toml_file::read(&path)?;
        if (record.experiment.as_str(), record.quick) != (experiment, quick) {
            let shown = paths::shown(&path);
            bail!("{shown} is the record of another campaign: restore it with `git checkout`");
        }
        if record.count == 0 || record.count != record.runs.len() {
            let (shown, has, count) = (paths::shown(&path), record.runs.len(), record.count);
            bail!("{shown} has {has} of {count} runs: restore it with `git checkout`");
        }
        let path = self::path(experiment, quick, "csv");
        let figures = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", paths::shown(&path)))?;
        Ok(Some((record, figures)))
    }

    /// Writes the record and its figures. Returns the paths.
    pub fn save(&self, figures: &str) -> Result<[PathBuf; 2]> {
        let path = |ending| path(&self.experiment, self.quick, ending);
        paths::write_atomically(&path("toml"), self.text().as_bytes())?;
        paths::write_atomically(&path("csv"), figures.as_bytes())?;
        Ok([path("toml"), path("csv")])
    }
}

fn path(experiment: &str, quick: bool, ending: &str) -> PathBuf {
    let form = if quick { ".quick" } else { "" };
    let name = format!("{experiment}{form}.{ending}");
    paths::root().join("records").join(name)
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
