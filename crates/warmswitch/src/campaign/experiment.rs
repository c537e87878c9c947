// SPDX-License-Identifier: MIT OR Apache-2.0
//! An experiment is a folder. Its file `experiment.toml` says what to run, and its `README.md` says why.
//!
//! `experiment.toml` lists plans. A plan names a board and lists the values of axes. Each combination of axis values is
//! a point. The experiment consists of the points of all plans, in the order of the file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::campaign::own_kernel::OwnKernels;
use crate::campaign::plan::{PLAN_KEYS, Plan};
use crate::campaign::workload;
use base::suggest::did_you_mean;
use base::toml_file;
use base::{boards, paths};
use results::figures::claim::{Claim, PublishedComparison};
use results::figures::headline::Headline;
use results::figures::selector::Selectable;
use results::runs::point::{Point, short_kernel};
use session::instrument::Setup;
use supply::image::{Programs, guest};
use supply::kernel;

/// Supported format of `experiment.toml`.
const FORMAT: u32 = 1;
/// Maximum number of points in an experiment. A larger number means a mistake in the axes.
const MAX_POINTS: usize = 10_000;

/// Checked content of `experiment.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The folder's name.
    #[serde(skip)]
    pub name: String,
    /// The experiment's name, or the path to the user's own folder, as the user typed it.
    #[serde(skip)]
    pub named: String,
    pub format: u32,
    /// One-line title, for lists and headings.
    pub title: String,
    /// Guest program.
    pub workload: String,
    /// Programs that all boards run. `None` selects the programs for each board's core.
    #[serde(default)]
    pub programs: Option<Programs>,
    pub kernels: Vec<String>,
    /// Kernels that only this experiment has, by name.
    #[serde(default, rename = "kernel")]
    pub own_kernels: OwnKernels,
    /// Limit of board time for a point, in seconds.
    pub limit_s: f64,
    /// Number of timed sections per point.
    #[serde(default = "one")]
    pub samples: u32,
    /// Minimum number of hops around a ring in one timed section.
    #[serde(default = "one")]
    pub hops: u32,
    /// Names of the workload's command lines.
    pub modes: Vec<String>,
    pub plan: Vec<Plan>,
    /// Plans that `--quick` runs instead of the plans in `plan`.
    #[serde(default)]
    pub quick: Vec<Plan>,
    /// Modes that are not run, each with the reason.
    #[serde(default)]
    pub not_applicable: Vec<NotApplicable>,
    /// Statements that the result must confirm.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
    /// Figures at the top of the report.
    #[serde(default, rename = "headline")]
    pub headlines: Vec<Headline>,
    /// Published figures that the report compares with the result.
    #[serde(default)]
    pub beside: Vec<PublishedComparison>,
    /// Instruments on the board.
    #[serde(default)]
    pub instruments: Setup,
}

/// Modes that a kernel cannot run, with the reason.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotApplicable {
    kernel: String,
    modes: Vec<String>,
    reason: String,
}

impl NotApplicable {
    /// Rejects a kernel or mode that the experiment does not have.
    fn check(&self, e: &Experiment) -> Result<()> {
        if !e.kernels.contains(&self.kernel) {
            let hint = did_you_mean(&self.kernel, &e.kernels);
            bail!(
                "not_applicable: the experiment has no kernel \"{}\"{hint}",
                self.kernel
            );
        }
        let unknown = self.modes.iter().find(|mode| !e.modes.contains(mode));
        if let Some(mode) = unknown {
            let hint = did_you_mean(mode, &e.modes);
            bail!("not_applicable: the experiment has no mode \"{mode}\"{hint}");
        }
        Ok(())
    }
}

impl fmt::Display for NotApplicable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let modes = self.modes.join(", ");
        write!(
            f,
            "{}, {modes}: {}",
            short_kernel(&self.kernel),
            self.reason
        )
    }
}

fn one() -> u32 {
    1
}

/// Returns all combinations that take one value from each axis.
fn product(axes: &BTreeMap<String, Vec<u32>>) -> Vec<BTreeMap<String, u32>> {
    axes.iter()
        .fold(vec![BTreeMap::new()], |combinations, (name, values)| {
            let with_value = |combination: &BTreeMap<String, u32>, value: u32| {
                let mut combination = combination.clone();
                combination.insert(name.clone(), value);
                combination
            };
            let with_values = |combination: &BTreeMap<String, u32>| -> Vec<_> {
                let values = values.iter();
                values
                    .map(|value| with_value(combination, *value))
                    .collect()
            };
            combinations.iter().flat_map(with_values).collect()
        })
}

impl Experiment {
    /// Returns the names and values that a selector may use. They come from the plans and the instruments.
    pub fn known(&self) -> Selectable {
        let workloads = guest::all().unwrap_or_default();
        let output = workloads
            .get(&self.workload)
            .and_then(|w| workload::output(w).ok()?);
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_string).collect();
        let mut known = Selectable {
            kernels: self.kernels.clone(),
            modes: self.modes.clone(),
            series: owned(self.instruments.series()),
            metrics: owned(output.map_or(Vec::new(), |kind| kind.metrics())),
            ..Selectable::default()
        };
        for plan in self.plan.iter().chain(&self.quick) {
            if !known.boards.contains(&plan.board) {
                known.boards.push(plan.board.clone());
            }
            for (name, values) in &plan.axes {
                known.axes.entry(name.clone()).or_default().extend(values);
            }
        }
        for (name, value) in self.instruments.axes() {
            known
                .axes
                .entry(name.to_string())
                .or_default()
                .insert(value);
        }
        known
    }

    /// Loads `experiments/NAME`, or the user's own folder if the name is a path.
    pub fn load(name: &str) -> Result<Experiment> {
        Ok(Experiment {
            named: name.to_string(),
            ..Experiment::find(name)?
        })
    }

    fn find(name: &str) -> Result<Experiment> {
        if name.contains('/') || name == "." {
            return Experiment::load_own(Path::new(name));
        }
        let path = folder(name).join("experiment.toml");
        if !path.is_file() {
            bail!(
                "no experiment \"{name}\"{}",
                did_you_mean(name, &paths::experiments())
            );
        }
        Experiment::read(name, &path)
    }

    /// Loads the experiment in a user's own folder. The experiment's results are stored under the folder's name and a
    /// hash of its path, so that equal names do not collide.
    fn load_own(folder: &Path) -> Result<Experiment> {
        let shown = paths::shown(folder);
        let whole = folder
            .canonicalize()
            .with_context(|| format!("no experiment {shown}"))?;
        let path = whole.join("experiment.toml");
        if !path.is_file() {
            bail!("no experiment {shown}: the folder has no experiment.toml");
        }
        let name = whole.file_name().and_then(|name| name.to_str());
        let name =
            name.with_context(|| format!("{shown}: the folder's name is not UTF-8; rename it"))?;
        let project = paths::root().join("experiments");
        if whole.parent() == project.canonicalize().ok().as_deref() {
            return Experiment::read(name, &path);
        }
        let number = blake3::hash(whole.as_os_str().as_encoded_bytes()).to_hex();
        Experiment::read(&format!("{name}-{}", &number[..8]), &path)
    }

    fn read(name: &str, path: &Path) -> Result<Experiment> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", paths::shown(path)))?;
        let mut experiment = parse(&text, path)?;
        experiment.name = name.to_string();
        experiment
            .check_parts()
            .with_context(|| paths::shown(path))?;
        Ok(experiment)
    }

    /// Rejects boards, kernels, a workload, modes and axes that do not exist.
    fn check_parts(&self) -> Result<()> {
        let workloads = guest::all()?;
        let Some(workload) = workloads.get(&self.workload) else {
            let names: Vec<&String> = workloads.keys().collect();
            let hint = did_you_mean(&self.workload, &names);
            bail!("no workload \"{}\"{hint}", self.workload);
        };
        self.own_kernels.check(&self.kernels)?;
        for kernel in &self.kernels {
            kernel::check_name(self.own_kernels.base(kernel))?;
        }
        for claim in self.claims.iter().filter(|claim| claim.paired) {
            self.own_kernels.check_pair(claim)?;
        }
        for plan in self.plan.iter().chain(&self.quick) {
            boards::check_name(&plan.board)?;
        }
        for quick in [false, true] {
            for point in self.points(quick, &[], None) {
                // Every board has a port with pins. The check needs none in particular.
                self.command(&workload.call, &point, "")?;
            }
        }
        Ok(())
    }

    /// Returns the points in the order of the file. If `boards` is not empty, each of these boards runs the first plan,
    /// and the other plans are left out. `seeds` replaces the seeds of the file.
    pub fn points(&self, quick: bool, boards: &[String], seeds: Option<&[u64]>) -> Vec<Point> {
        let plans = self.plans(quick);
        let plans_on_boards: Vec<(&Plan, &str)> = if boards.is_empty() {
            plans.iter().map(|plan| (plan, &*plan.board)).collect()
        } else {
            let first = plans.iter().take(1);
            first
                .flat_map(|plan| boards.iter().map(move |board| (plan, &**board)))
                .collect()
        };
        let mut points = Vec::new();
        for (plan, board) in plans_on_boards {
            let seeds = seeds.unwrap_or(&plan.seeds);
            let choices = product(&plan.axes);
            for kernel in plan.kernels.as_ref().unwrap_or(&self.kernels) {
                for axes in &choices {
                    for mode in self.modes_of(kernel) {
                        let point = |seed, layout| Point {
                            board: board.to_string(),
                            kernel: kernel.clone(),
                            mode: mode.clone(),
                            axes: axes.clone(),
                            seed,
                            layout,
                        };
                        for &layout in &plan.layouts {
                            points.extend(seeds.iter().map(|&seed| point(seed, layout)));
                        }
                    }
                }
            }
        }
        points
    }

    fn modes_of(&self, kernel: &str) -> impl Iterator<Item = &String> {
        let excluded = move |mode: &&String| {
            let mut entries = self.not_applicable.iter();
            entries.any(|entry| entry.kernel == kernel && entry.modes.contains(mode))
        };
        self.modes.iter().filter(move |mode| !excluded(mode))
    }

    /// Returns the board of the first plan.
    pub fn first_board(&self, quick: bool) -> &str {
        self.plans(quick).first().map_or("", |plan| &plan.board)
    }

    fn plans(&self, quick: bool) -> &[Plan] {
        if quick && !self.quick.is_empty() {
            &self.quick
        } else {
            &self.plan
        }
    }

    /// Returns the command line that is typed on the board's console for `point`. `calls` maps each mode to the
    /// workload's command line. `pins` is the port whose pins instruments see ([`board::Peripherals::pins`]).
    pub fn command(
        &self,
        calls: &BTreeMap<String, String>,
        point: &Point,
        pins: &str,
    ) -> Result<String> {
        let mode = &point.mode;
        let Some(call) = calls.get(mode) else {
            let names: Vec<&String> = calls.keys().collect();
            bail!(
                "workload {}: workload.toml has no [call] named \"{mode}\"{}",
                self.workload,
                did_you_mean(mode, &names)
            );
        };
        let rounds = self.hops.div_ceil(point.axis("tasks").max(1)).max(1);
        let mut words = vec![
            ("{rounds}".to_string(), rounds),
            ("{samples}".to_string(), self.samples),
        ];
        let axes = point.axes.iter();
        words.extend(axes.map(|(name, value)| (format!("{{{name}}}"), *value)));
        let paced = self.instruments.paced_by();
        if let Some((name, _)) = point.axes.iter().find(|(name, _)| {
            let word = format!("{{{name}}}");
            let taken = paced.iter().any(|(axis, _)| axis == name);
            !calls.values().any(|call| call.contains(&word)) && !taken
        }) {
            let mut known: Vec<&str> = calls.values().flat_map(|call| words_of(call)).collect();
            known.extend(paced.iter().map(|(axis, _)| axis));
            known.sort_unstable();
            known.dedup();
            bail!(
                "{}: unknown axis \"plan.{name}\": no [call] of the workload {} has the word {{{name}}}{}",
                self.name,
                self.workload,
                did_you_mean(name, &known)
            );
        }
        let line = words.iter().fold(call.clone(), |line, (word, value)| {
            line.replace(word, &value.to_string())
        });
        let line = line.replace("{pins}", pins);
        if line.contains('{') {
            bail!(
                "workload {}, [call] {mode}: no axis for a word in braces: {line}",
                self.workload
            );
        }
        Ok(line)
    }
}

/// Returns the words that stand in braces in a command line.
fn words_of(call: &str) -> impl Iterator<Item = &str> {
    call.split('{')
        .skip(1)
        .filter_map(|part| part.split('}').next())
}

/// Returns the folder of an experiment in this project.
pub fn folder(name: &str) -> PathBuf {
    paths::root().join("experiments").join(name)
}

/// Parses and checks the text of an `experiment.toml`. Only messages use `path`.
fn parse(text: &str, path: &Path) -> Result<Experiment> {
    let table: toml::Table = toml_file::parse(text, path)?;
    for list in ["plan", "quick"] {
        let plans = table.get(list).and_then(toml::Value::as_array);
        for plan in plans.into_iter().flatten() {
            // serde treats every unknown key as an axis. If the key's value is not a list, the key is more likely a
            // misspelling.
            let entries = plan.as_table().into_iter().flatten();
            let scalars = entries.filter(|(_, value)| !value.is_array());
            let scalars: toml::Table = scalars.map(|(k, v)| (k.clone(), v.clone())).collect();
            let unknown = |key: &&String| !PLAN_KEYS.contains(&key.as_str());
            if let Some(key) = scalars.keys().find(unknown) {
                bail!(
                    "{}: {list}.{key}: unknown key, or an axis that is not a list of numbers{}",
                    paths::shown(path),
                    did_you_mean(key, PLAN_KEYS)
                );
            }
        }
    }
    if let Some(name) = Setup::NAMES.iter().find(|name| table.contains_key(**name)) {
        bail!(
            "{}: [{name}] is an instrument; write [instruments.{name}]",
            paths::shown(path)
        );
    }
    let experiment: Experiment = toml_file::parse(text, path)?;
    check(&experiment).with_context(|| paths::shown(path))?;
    Ok(experiment)
}

fn check(e: &Experiment) -> Result<()> {
    if e.format != FORMAT {
        bail!(
            "format: {} is unknown; this program reads format {FORMAT}",
            e.format
        );
    }
    if e.plan.is_empty() || e.kernels.is_empty() || e.modes.is_empty() {
        bail!("plan, kernels and modes must not be empty");
    }
    if !(e.limit_s > 0.0 && e.limit_s <= 86_400.0) {
        bail!(
            "limit_s: {} is out of range; more than 0 and up to 86400 seconds of board time are allowed",
            e.limit_s
        );
    }
    if !(1..=64).contains(&e.samples) || !(1..=1_000_000).contains(&e.hops) {
        bail!("samples must be from 1 to 64, hops from 1 to 1000000");
    }
    for plan in e.plan.iter().chain(&e.quick) {
        plan.check(&e.kernels, &e.instruments)
            .with_context(|| format!("plan for {}", plan.board))?;
    }
    e.instruments.check()?;
    for entry in &e.not_applicable {
        entry.check(e)?;
    }
    let known = e.known();
    for claim in &e.claims {
        claim.check(&known)?;
    }
    for headline in &e.headlines {
        headline
            .of
            .check(&known)
            .with_context(|| format!("headline \"{}\"", headline.text))?;
    }
    for beside in &e.beside {
        let selector = beside.measured.as_ref();
        selector
            .map_or(Ok(()), |selector| selector.check(&known))
            .with_context(|| format!("beside \"{}\"", beside.published))?;
    }
    let points = e.points(false, &[], None).len();
    if points > MAX_POINTS {
        bail!("the plans have {points} points; at most {MAX_POINTS} are allowed");
    }
    Ok(())
}

#[cfg(test)]
#[path = "experiment_tests.rs"]
mod tests;
