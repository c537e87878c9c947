// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts that the runs of a campaign need: boards, kernels, root file systems and the workload.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow, bail};
use board::BoardSpec;
use board::boot::Boot;

use crate::campaign::experiment::{Experiment, folder};
use crate::campaign::workload;
use base::boards;
use base::suggest::did_you_mean;
use results::outputs::OutputKind;
use results::runs::point::Point;
use results::runs::run::Provenance;
use session::SIMULATOR;
use session::boot::{KernelFiles, Recipe, for_machine};
use session::cores;
use supply::image::guest::{self, Workload};
use supply::image::{Programs, RootFs, is_flat};
use supply::kernel::{self, Kernel};

/// The parts for all runs of a campaign. Each board and each kernel occurs once.
pub struct Parts {
    /// Boards by name, each with the hash of its file.
    pub specs: BTreeMap<String, (BoardSpec, String)>,
    pub kernels: BTreeMap<String, Kernel>,
    /// Names of the kernels without address spaces.
    flat: BTreeSet<String>,
    roots: BTreeMap<Programs, RootFs>,
    /// Programs that all boards run. `None` selects the programs by core and kernel.
    programs: Option<Programs>,
    pub workload: Workload,
    pub kind: &'static dyn OutputKind,
}

/// A point, its inputs, and the hash that identifies its run.
pub struct Planned {
    pub point: Point,
    pub provenance: Provenance,
    pub hash: String,
}

impl Parts {
    /// Reads the boards, and builds missing kernels and root file systems.
    pub fn prepare(e: &Experiment, points: &[Point]) -> Result<Parts> {
        let (workload, kind) = workload(e)?;
        let specs = boards_of(points)?;
        // Check the boards first, because a build takes minutes.
        for (name, (board, _)) in &specs {
            check_programs(e, name, board)?;
        }
        let pairs: BTreeSet<_> = points
            .iter()
            .map(|point| (&point.board, e.own_kernels.of(point).0))
            .collect();
        for (board, kernel) in pairs {
            kernel::check_machine(&kernel, &for_machine(&specs[board].0))
                .map_err(|error| wrong_board(e, board, &error))?;
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
                let (built, words) = e.own_kernels.of(point);
                let request = kernel::Request {
                    name: built,
                    ..kernel::Request::default()
                };
                let mut kernel = kernel::build(&request)?;
                kernel.command_line = format!("{} {words}", kernel.command_line);
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

    /// Returns the root file system for a board with this kernel.
    pub fn root_fs(&self, board: &str, kernel: &str) -> &RootFs {
        &self.roots[&self.programs_of(&self.specs[board].0, kernel)]
    }

    /// Prepares the boot of a kernel on a board.
    pub fn boot_of(&self, board: &str, kernel: &str) -> Result<Boot> {
        let recipe = Recipe {
            root: Some(self.root_fs(board, kernel).cpio.clone()),
            ..Recipe::of_built(&self.kernels[kernel])
        };
        Ok(recipe.prepare(&self.specs[board].0)?.boot())
    }

    pub fn planned(&self, e: &Experiment, point: Point) -> Result<Planned> {
        let kernel = &self.kernels[&point.built_kernel()];
        let record = &kernel.record;
        let recipe = Recipe::default();
        let pins = self.specs[&point.board].0.peripherals.pins();
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
            command: e.command(&self.workload.call, &point, &pins)?,
            cmdline: recipe.command_line(&KernelFiles::from(kernel), &self.specs[&point.board].0),
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

/// Makes the message for a board that cannot boot one of the experiment's kernels.
fn wrong_board(e: &Experiment, board: &str, error: &anyhow::Error) -> anyhow::Error {
    let name = &e.name;
    let error = error.to_string();
    let why = error.lines().next().unwrap_or_default();
    let own = format!("{name}-{board}");
    let help = match folder(&own).is_dir() {
        true => format!("`warmswitch run {own}` measures on {board}"),
        false => format!("the experiment is made for {}", e.first_board(false)),
    };
    anyhow!("{name}: board {board} cannot run one of its kernels: {why}\n  help: {help}")
}

/// Rejects a board that cannot run the experiment's programs. Also rejects programs that do not include the workload.
fn check_programs(e: &Experiment, name: &str, board: &BoardSpec) -> Result<()> {
    let own = Programs::of(board.core.core, false);
    let programs = e.programs.unwrap_or(own);
    if (programs, own) == (Programs::Armv5te, Programs::Armv4t) {
        bail!(
            "{}: programs: board {name} runs programs for ARMv4T only; remove the key to use them",
            e.name
        );
    }
    programs.check(&e.workload)
}

/// Rejects programs that need address spaces. Also rejects a workload that has no program for a flat kernel.
fn check_flat(e: &Experiment, kernel: &str) -> Result<()> {
    if e.programs
        .is_some_and(|programs| programs != Programs::Flat)
    {
        let own = Programs::Flat;
        bail!(
            "{}: programs: kernel {kernel} runs programs for {own} only; remove the key to use them",
            e.name
        );
    }
    Programs::Flat.check(&e.workload)
}

/// Returns the experiment's workload and the kind of its output.
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
            "{}: workload \"{}\" prints no figures: its workload.toml has no key `output`",
            e.name,
            e.workload
        );
    };
    match (e.instruments.is_empty(), kind.by_instruments()) {
        (true, true) => bail!(
            "{}: [instruments] is missing: instruments measure the workload {}",
            e.name,
            e.workload
        ),
        (false, false) => bail!(
            "{}: the workload {} takes no [instruments]: its `output` is not \"instruments\"",
            e.name,
            e.workload
        ),
        _ => {}
    }
    Ok((workload, kind))
}

/// Returns the boards of the points without duplicates, by name. Each comes with the hash of its file.
fn boards_of(points: &[Point]) -> Result<BTreeMap<String, (BoardSpec, String)>> {
    let mut specs: BTreeMap<String, (BoardSpec, String)> = BTreeMap::new();
    for point in points {
        let name = &point.board;
        if specs.contains_key(name) {
            continue;
        }
        let (spec, hash) = boards::load(name)?;
        session::engine::check(spec.core.core)?;
        let mut others = specs.iter();
        if let Some((other, _)) = others.find(|(_, (_, other))| *other == hash) {
            bail!("boards {other} and {name} have equal descriptions; name one of them only");
        }
        specs.insert(name.clone(), (spec, hash));
    }
    Ok(specs)
}
