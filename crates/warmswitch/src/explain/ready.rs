// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds a stored run by the beginning of its name, and checks that its inputs have not changed.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use board::BoardSpec;
use board::boot::Boot;

use crate::campaign::experiment::Experiment;
use crate::campaign::parts::{Parts, Planned};
use base::suggest::did_you_mean;
use results::runs::run::{Provenance, Run};
use results::runs::store;

/// Loads the stored run whose name begins with `name`.
pub fn stored(name: &str) -> Result<Run> {
    let names = store::names();
    let matches: Vec<&String> = names.iter().filter(|n| n.starts_with(name)).collect();
    let hash = match matches[..] {
        _ if names.is_empty() => {
            bail!("{name}: no run is stored yet; `warmswitch run EXPERIMENT` stores runs")
        }
        [] if names.len() > 20 => {
            bail!("{name}: no run is known by this name; `warmswitch list runs` lists them")
        }
        [] => bail!(
            "{name}: no run is known by this name{}",
            did_you_mean(name, &names)
        ),
        [hash] => hash,
        _ => bail!(
            "{name}: {} runs begin with these characters; give more of them",
            matches.len()
        ),
    };
    let run = store::load(hash)?;
    run.with_context(|| {
        format!("{hash}: stored by another version of warmswitch; run its experiment again")
    })
}

/// Returns the names of the inputs of a run that have changed.
fn changed(was: &Provenance, is: &Provenance) -> Vec<&'static str> {
    let inputs = [
        ("the board's file", &was.board_hash, &is.board_hash),
        ("the kernel", &was.kernel_hash, &is.kernel_hash),
        ("the root file system", &was.root_fs_hash, &is.root_fs_hash),
        ("the simulator", &was.simulator, &is.simulator),
        ("the guest's command", &was.command, &is.command),
        ("the kernel's command line", &was.cmdline, &is.cmdline),
        ("the instruments", &was.instruments, &is.instruments),
    ];
    let differs = inputs.into_iter().filter(|(_, was, is)| was != is);
    differs.map(|(name, ..)| name).collect()
}

/// A stored run that can be repeated, because its inputs have not changed.
pub struct Ready {
    pub run: Run,
    pub spec: BoardSpec,
    pub boot: Boot,
    pub vmlinux: PathBuf,
    pub experiment: Experiment,
    pub planned: Planned,
    pub kind: &'static str,
}

/// Loads the experiment of a run. If `folder` is given, loads the user's own experiment in this folder. Otherwise,
/// loads an experiment of this project.
fn experiment_of(run: &Run, folder: Option<&str>) -> Result<Experiment> {
    let Some(folder) = folder else {
        return Experiment::load(&run.experiment).map_err(|error| {
            anyhow!(
                "run {}: {error:#}\n  help: if the experiment is in a folder of your own, add --experiment FOLDER",
                run.hash
            )
        });
    };
    let experiment = Experiment::load(folder).context("--experiment")?;
    ensure!(
        experiment.name == run.experiment,
        "--experiment {folder}: run {} is of experiment {}, not of {}",
        run.hash,
        run.experiment,
        experiment.name
    );
    Ok(experiment)
}

/// Prepares a run for repetition. `folder` is the folder of the user's own experiment. Rejects the run if its inputs
/// have changed.
pub fn ready(run: Run, folder: Option<&str>) -> Result<Ready> {
    let experiment = experiment_of(&run, folder)?;
    let points = [run.point.clone()];
    let parts = Parts::prepare(&experiment, &points)?;
    let planned = parts.planned(&experiment, run.point.clone())?;
    let changed = changed(&run.provenance, &planned.provenance);
    ensure!(
        planned.hash == run.hash,
        "run {} cannot be repeated: {} changed since; run the experiment again",
        run.hash,
        changed.join(" and ")
    );
    let kernel = run.point.built_kernel();
    let built = &parts.kernels[&kernel];
    let spec = parts.specs[&run.point.board].0.clone();
    Ok(Ready {
        boot: parts.boot_of(&run.point.board, &kernel)?,
        spec,
        vmlinux: built.vmlinux.clone(),
        kind: parts.kind.name(),
        run,
        experiment,
        planned,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::runs::for_tests::made_up_run;

    #[test]
    fn a_run_of_a_users_own_folder_needs_the_folder() {
        let folder = std::env::temp_dir().join(format!("warmswitch-ready-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let source = base::paths::root().join("experiments/switch-cost/experiment.toml");
        std::fs::copy(source, folder.join("experiment.toml")).unwrap();
        let folder_text = folder.to_str().unwrap();
        let own = Experiment::load(folder_text).unwrap();
        let mut run = made_up_run("sam9263", "process", 0, 2, 1.0);
        run.experiment.clone_from(&own.name);
        let error = |run: &Run, folder| format!("{:#}", experiment_of(run, folder).err().unwrap());
        assert!(error(&run, None).contains("add --experiment FOLDER"));
        let name = experiment_of(&run, Some(folder_text)).unwrap().name;
        assert_eq!(name, own.name);
        run.experiment = "switch-cost".into();
        let other = error(&run, Some(folder_text));
        assert!(
            other.contains("is of experiment switch-cost, not of"),
            "{other}"
        );
        assert_eq!(experiment_of(&run, None).unwrap().name, "switch-cost");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_changed_since_a_run_is_named() {
        let was = Provenance::default();
        assert!(changed(&was, &was).is_empty());
        let is = Provenance {
            kernel_hash: "x".into(),
            simulator: "y".into(),
            ..Provenance::default()
        };
        assert_eq!(changed(&was, &is), ["the kernel", "the simulator"]);
    }
}
