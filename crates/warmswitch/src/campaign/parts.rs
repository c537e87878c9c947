// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a campaign's runs are made of.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use board::BoardSpec;

use crate::campaign::experiment::Experiment;
use crate::campaign::workload;
use base::boards;
use base::suggest::did_you_mean;
use results::outputs::OutputKind;
use results::runs::point::Point;
use results::runs::run::Provenance;
use session::SIMULATOR;
use session::boot::{CMDLINE, KernelFiles};
use session::cores;
use supply::image::guest::{self, Workload};
use supply::image::{Programs, RootFs, is_flat};
use supply::kernel::{self, Kernel};

/// What the runs are made of: each board and kernel once.
pub struct Parts {
    pub specs: BTreeMap<String, (BoardSpec, String)>,
    pub kernels: BTreeMap<String, Kernel>,
    /// Those without address spaces.
    flat: BTreeSet<String>,
    roots: BTreeMap<Programs, RootFs>,
    /// On every board.
    programs: Option<Programs>,
    pub workload: Workload,
    pub kind: &'static dyn OutputKind,
}

/// One point and the name of its run.
pub struct Planned {
    pub point: Point,
    pub provenance: Provenance,
    pub hash: String,
}

impl Parts {
    /// Reads the boards, builds the kernels and the root file systems that are missing.
    pub fn prepare(e: &Experiment, points: &[Point]) -> Result<Parts> {
        let (workload, kind) = workload(e)?;
        let specs = boards_of(points)?;
        // Before anything is built.
        for (name, (board, _)) in &specs {
            check_programs(e, name, board)?;
        }
        let mut parts = Parts {
            specs,
            kernels: BTreeMap::new(),
            flat: BTreeSet::new(),
            roots: BTreeMap::new(),
            programs: e.programs,
            kind,
            workload,
        };
        let mut checked = BTreeSet::new();
        for point in points {
            let (board, name) = (&point.board, point.built_kernel());
            if !parts.kernels.contains_key(&name) {
                let request = kernel::Request {
                    name: name.clone(),
                    ..kernel::Request::default()
                };
                let kernel = kernel::build(&request)?;
                if is_flat(&kernel.vmlinux) {
                    check_flat(e, &name)?;
                    parts.flat.insert(name.clone());
                }
                parts.kernels.insert(name.clone(), kernel);
            }
            if checked.insert((board, name.clone())) {
                let core = parts.specs[board].0.core.core;
                cores::check(Some(&parts.kernels[&name].vmlinux), core)?;
            }
            parts.add_root_fs(parts.programs_of(&parts.specs[board].0, &name))?;
        }
        Ok(parts)
    }

    fn programs_of(&self, board: &BoardSpec, kernel: &str) -> Programs {
        let own = Programs::of(board.core.core, self.flat.contains(kernel));
        self.programs.unwrap_or(own)
    }

    fn add_root_fs(&mut self, programs: Programs) -> Result<()> {
        if let Entry::Vacant(place) = self.roots.entry(programs) {
            place.insert(programs.root_fs()?);
        }
        Ok(())
    }

    /// The root file system of a board with a kernel.
    pub fn root_fs(&self, board: &str, kernel: &str) -> &RootFs {
        &self.roots[&self.programs_of(&self.specs[board].0, kernel)]
    }

    pub fn planned(&self, e: &Experiment, point: Point) -> Result<Planned> {
        let kernel = &self.kernels[&point.built_kernel()];
        let record = &kernel.record;
        let provenance = Provenance {
            board_hash: self.specs[&point.board].1.clone(),
            kernel_version: record.release.clone(),
            kernel_hash: record.hash.clone(),
            root_fs_hash: self
                .root_fs(&point.board, &point.built_kernel())
                .record
                .hash
                .clone(),
            simulator: SIMULATOR.to_string(),
            command: e.command(&self.workload.call, &point)?,
            cmdline: KernelFiles::from(kernel).command_line(&[CMDLINE]),
            instruments: e.instruments.identity(&point)?,
            warmswitch: env!("CARGO_PKG_VERSION").to_string(),
        };
        Ok(Planned {
            hash: provenance.run_hash(&point),
            point,
            provenance,
        })
    }
}

/// Says no when a board cannot run the experiment's programs, or has none for its workload.
fn check_programs(e: &Experiment, name: &str, board: &BoardSpec) -> Result<()> {
    let own = Programs::of(board.core.core, false);
    let programs = e.programs.unwrap_or(own);
    if (programs, own) == (Programs::Armv5te, Programs::Armv4t) {
        bail!("{}: programs: {name} runs those for ARMv4T only", e.name);
    }
    programs.check(&e.workload)
}

/// The same of a kernel without address spaces, whatever the board.
fn check_flat(e: &Experiment, kernel: &str) -> Result<()> {
    if e.programs
        .is_some_and(|programs| programs != Programs::Flat)
    {
        let own = Programs::Flat;
        bail!("{}: programs: {kernel} runs those for {own} only", e.name);
    }
    Programs::Flat.check(&e.workload)
}

/// The experiment's workload, and the kind of its output.
fn workload(e: &Experiment) -> Result<(Workload, &'static dyn OutputKind)> {
    let mut workloads = guest::all()?;
    let Some(workload) = workloads.remove(&e.workload) else {
        let names: Vec<&String> = workloads.keys().collect();
        bail!(
            "no workload \"{}\"{}",
            e.workload,
            did_you_mean(&e.workload, &names)
        );
    };
    let Some(kind) = workload::output(&workload)? else {
        bail!(
            "{}: workload \"{}\" prints no figures: it has no `output`",
            e.name,
            e.workload
        );
    };
    if e.instruments.is_empty() == kind.by_instruments() {
        bail!(
            "{}: [instruments] are wanted by a workload whose `output` is \"instruments\", and by no \
             other; that of {} is not so",
            e.name,
            e.workload
        );
    }
    Ok((workload, kind))
}

/// Each board once, by name, with its hash.
fn boards_of(points: &[Point]) -> Result<BTreeMap<String, (BoardSpec, String)>> {
    let mut specs: BTreeMap<String, (BoardSpec, String)> = BTreeMap::new();
    for point in points {
        let name = &point.board;
        if specs.contains_key(name) {
            continue;
        }
        let (spec, hash) = boards::load(name)?;
        let mut others = specs.iter();
        if let Some((other, _)) = others.find(|(_, (_, other))| *other == hash) {
            bail!("boards {other} and {name} are one and the same");
        }
        specs.insert(name.clone(), (spec, hash));
    }
    Ok(specs)
}
