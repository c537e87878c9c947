// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the kernel versions. Finds the series of patches that apply to each source, and the features that each
//! source has.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Result;
use serde::Deserialize;

use super::patch::Patch;
use super::source::{self, Source};
use super::spec::{self, Chosen, Spec};
use crate::cache;
use base::{paths, toml_file};

/// A version of the kernel.
pub struct Version {
    /// `6.12`
    pub name: String,
    /// The version from which this version takes fragments and series, if there is one.
    pub from: Option<String>,
    /// Source package with its version.
    pub source: String,
    /// The version of the package that the project was tested with.
    pub tested: String,
    /// Number of variants in the version's file.
    pub variants: usize,
    /// For each list of series (`pins, fcse`), whether it applies.
    pub series: BTreeMap<String, Applies>,
    /// For each [`Feature`], the first probe that the source does not match. `None` if the source has the feature.
    pub lacks: Vec<Option<Probe>>,
}

/// `linux/features.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Features {
    feature: Vec<Feature>,
}

/// A feature that a version may have or lack.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feature {
    /// Name, for tables.
    pub name: String,
    /// The feature's entry in Table 1 of the PREEMPT_RT paper.
    pub paper: Option<String>,
    /// Texts of the source. A version has the feature if its source has all these texts.
    probes: Vec<Probe>,
}

/// A text that a file of the source may contain.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// Path from the top of the source.
    pub file: String,
    /// Exact text.
    pub text: String,
}

impl Probe {
    fn is_in(&self, tree: &Path) -> bool {
        fs::read_to_string(tree.join(&self.file)).is_ok_and(|text| text.contains(&self.text))
    }
}

/// Reads the list of features.
pub fn features() -> Result<Vec<Feature>> {
    let file: Features = toml_file::read(&paths::root().join("linux/features.toml"))?;
    Ok(file.feature)
}

/// Result of applying several series in order.
pub enum Applies {
    /// All patches apply. The fields are the number of patches, and the number of patches with a fix-up.
    All(usize, usize),
    /// The first patch that does not apply, `fcse/0003-…`.
    Not(String),
}

/// Examines all versions. Fetches and unpacks the sources that the cache does not have.
pub fn all(features: &[Feature]) -> Result<Vec<Version>> {
    let linux = paths::root().join("linux");
    let known = spec::versions(&linux)?;
    let mut lists: Vec<Vec<String>> = Vec::new();
    for (_, spec) in &known {
        for variant in spec.variant.values() {
            if !variant.patches.is_empty() && !lists.contains(&variant.patches) {
                lists.push(variant.patches.clone());
            }
        }
    }
    known
        .into_iter()
        .map(|(name, spec)| version(&linux, &name, spec, &lists, features))
        .collect()
}

fn version(
    linux: &Path,
    name: &str,
    spec: Spec,
    lists: &[Vec<String>],
    features: &[Feature],
) -> Result<Version> {
    let bare = Chosen {
        patches: Vec::new(),
        ..spec::choose(linux, &format!("{name}/plain"))?
    };
    let source = Source::find(&bare, None, false)?;
    let log = cache::dir()?.join("log");
    fs::create_dir_all(&log)?;
    let log = log.join(format!("versions-{name}.log"));
    let tree = source.tree(&bare, &log)?;
    let mut series = BTreeMap::new();
    for list in lists {
        let patches = spec::patches(&bare.folders, list, "patches")?;
        let applies = applies(&patches, &tree.dir, &log)?;
        series.insert(list.join(", "), applies);
    }
    Ok(Version {
        name: name.to_string(),
        from: spec.from,
        source: source.shown(),
        tested: spec.source.tested,
        variants: spec.variant.len(),
        series,
        lacks: features
            .iter()
            .map(|feature| lacks(feature, &tree.dir))
            .collect(),
    })
}

fn lacks(feature: &Feature, tree: &Path) -> Option<Probe> {
    feature
        .probes
        .iter()
        .find(|probe| !probe.is_in(tree))
        .cloned()
}

/// Tries to apply patches to a copy of the files that they change.
fn applies(patches: &[Patch], tree: &Path, log: &Path) -> Result<Applies> {
    let copy = cache::dir()?
        .join("build")
        .join(format!("versions-{}", std::process::id()));
    let _ = fs::remove_dir_all(&copy);
    fs::create_dir_all(&copy)?;
    for file in source::touched(patches)? {
        let (from, to) = (tree.join(&file), copy.join(&file));
        if from.is_file() {
            fs::create_dir_all(to.parent().unwrap_or(&copy))?;
            fs::copy(from, to)?;
        }
    }
    let not = patches.iter().find(|patch| {
        let one = std::slice::from_ref(*patch);
        source::apply(one, &copy, log).is_err()
    });
    let _ = fs::remove_dir_all(&copy);
    Ok(match not {
        Some(patch) => Applies::Not(patch.in_series()),
        None => {
            let fixed = patches.iter().filter(|patch| patch.fixup.is_some());
            Applies::All(patches.len(), fixed.count())
        }
    })
}
