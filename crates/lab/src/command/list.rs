// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch list`: what there is.

use anyhow::Result;
use clap::ValueEnum;
use serde_json::json;

use crate::experiment::{self, Experiment};
use crate::{Outcome, paths, store};

/// List boards, kernels, workloads, experiments or runs
#[derive(clap::Args)]
pub struct Args {
    /// What to list; everything but the runs when not given
    what: Option<What>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Boards,
    Kernels,
    Workloads,
    Experiments,
    Runs,
}

impl What {
    fn heading(self) -> &'static str {
        match self {
            What::Boards => "boards",
            What::Kernels => "kernels",
            What::Workloads => "workloads",
            What::Experiments => "experiments",
            What::Runs => "runs",
        }
    }

    /// Names, each with one line about it.
    fn entries(self) -> Result<Vec<(String, String)>> {
        let root = paths::root();
        Ok(match self {
            What::Boards => undescribed(paths::names_in(&root.join("boards"), toml_stem)),
            What::Kernels => undescribed(kernels()),
            What::Workloads => undescribed(paths::names_in(&root.join("guest"), |path| {
                let name = path.file_name()?.to_string_lossy().into_owned();
                path.join(format!("{name}.c")).is_file().then_some(name)
            })),
            What::Experiments => experiment::names()
                .into_iter()
                .map(|name| Ok((name.clone(), Experiment::load(&name)?.title)))
                .collect::<Result<_>>()?,
            What::Runs => {
                let mut entries = Vec::new();
                for name in store::names() {
                    if let Some(run) = store::load(&name)? {
                        let experiment = &run.experiment;
                        entries.push((name, format!("{experiment}: {}", run.point.label())));
                    }
                }
                entries
            }
        })
    }
}

fn undescribed(names: Vec<String>) -> Vec<(String, String)> {
    names.into_iter().map(|name| (name, String::new())).collect()
}

fn toml_stem(path: &std::path::Path) -> Option<String> {
    let is_toml = path.extension().is_some_and(|e| e == "toml");
    is_toml.then(|| path.file_stem().unwrap_or_default().to_string_lossy().into_owned())
}

/// `VERSION/plain` for every version; a folder of patches is a kernel of its own.
fn kernels() -> Vec<String> {
    let linux = paths::root().join("linux");
    let directory =
        |p: &std::path::Path| p.is_dir().then(|| p.file_name()?.to_str().map(str::to_string))?;
    let versions = paths::names_in(&linux, directory);
    let mut names = Vec::new();
    for version in versions {
        names.push(format!("{version}/plain"));
        let patches = linux.join(&version).join("patches");
        names.extend(paths::names_in(&patches, directory).iter().map(|s| format!("{version}/{s}")));
    }
    names
}

/// Lists.
pub fn execute(args: &Args) -> Result<Outcome> {
    let all = [What::Boards, What::Kernels, What::Workloads, What::Experiments];
    let whats = args.what.map_or(all.to_vec(), |what| vec![what]);
    let mut document = serde_json::Map::new();
    for what in whats {
        let entries = what.entries()?;
        if args.json {
            let list: Vec<_> =
                entries.iter().map(|(name, about)| json!({"name": name, "about": about})).collect();
            document.insert(what.heading().into(), list.into());
            continue;
        }
        println!("{}", what.heading());
        for (name, about) in entries {
            println!("{}", format!("  {name:<24} {about}").trim_end());
        }
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&document)?);
    }
    Ok(Outcome::Done)
}
