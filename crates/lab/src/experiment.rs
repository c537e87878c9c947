// SPDX-License-Identifier: MIT OR Apache-2.0
//! An experiment: one folder with `experiment.toml` (what to run) and `README.md` (why).
//!
//! The file lists plans; each plan is a board and the axes to go through. The points of all plans,
//! in the file's order, are the experiment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::paths;
use crate::suggest::did_you_mean;

const KEYS: &[&str] = &[
    "format", "title", "workload", "kernels", "limit_s", "samples", "hops", "modes", "plan",
    "quick",
];
const PLAN_KEYS: &[&str] = &["board", "size_kb", "tasks", "seeds"];

/// The one format of `experiment.toml` there is.
const FORMAT: u32 = 1;
/// Guards against a slip: more points than this is not what anybody meant.
const MAX_POINTS: usize = 10_000;

/// How the tasks of a ring are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Processes: every switch changes the address space.
    Process,
    /// Threads of one process: no switch does.
    Thread,
}

impl Mode {
    /// The word used in files and by the guest.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Process => "process",
            Mode::Thread => "thread",
        }
    }
}

/// One board and the axes to go through on it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub board: String,
    /// KB that each task reads per turn.
    pub size_kb: Vec<u32>,
    /// Tasks in the ring.
    pub tasks: Vec<u32>,
    /// Start values of the random victim counter.
    #[serde(default = "one_seed")]
    pub seeds: Vec<u64>,
}

fn one_seed() -> Vec<u64> {
    vec![1]
}

/// `experiment.toml`, checked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The folder's name.
    #[serde(skip)]
    pub name: String,
    pub format: u32,
    /// One line for lists and headings.
    pub title: String,
    /// The guest program.
    pub workload: String,
    pub kernels: Vec<String>,
    /// Board seconds a point may take before it is stopped.
    pub limit_s: f64,
    /// Timed sections per point.
    pub samples: u32,
    /// Hops around the ring in one timed section, at least.
    pub hops: u32,
    pub modes: Vec<Mode>,
    pub plan: Vec<Plan>,
    /// Used instead of `plan` by `--quick`.
    #[serde(default)]
    pub quick: Vec<Plan>,
}

/// One measurement: everything about it but the versions of the parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Point {
    pub board: String,
    pub kernel: String,
    pub size_kb: u32,
    pub tasks: u32,
    pub mode: Mode,
    pub seed: u64,
}

impl Point {
    /// For progress lines.
    pub fn label(&self) -> String {
        format!(
            "{} {} {} of {}, {} KB, seed {}",
            self.board,
            self.kernel,
            self.tasks,
            self.mode.name(),
            self.size_kb,
            self.seed
        )
    }
}

impl Experiment {
    /// Loads `experiments/NAME`.
    pub fn load(name: &str) -> Result<Experiment> {
        let path = folder(name).join("experiment.toml");
        if !path.is_file() {
            bail!("no experiment \"{name}\"{}", did_you_mean(name, &names()));
        }
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", paths::shown(&path)))?;
        let mut experiment = parse(&text, &path)?;
        experiment.name = name.to_string();
        Ok(experiment)
    }

    /// The points in the file's order. `board` and `seed` replace what the file says.
    pub fn points(&self, quick: bool, board: Option<&str>, seed: Option<u64>) -> Vec<Point> {
        let plans = if quick && !self.quick.is_empty() {
            &self.quick
        } else {
            &self.plan
        };
        let mut points = Vec::new();
        for plan in plans
            .iter()
            .take(if board.is_some() { 1 } else { plans.len() })
        {
            let board = board.unwrap_or(&plan.board);
            let seeds = seed.map_or(plan.seeds.clone(), |s| vec![s]);
            for kernel in &self.kernels {
                for &size_kb in &plan.size_kb {
                    for &tasks in &plan.tasks {
                        for &mode in &self.modes {
                            points.extend(seeds.iter().map(|&seed| Point {
                                board: board.to_string(),
                                kernel: kernel.clone(),
                                size_kb,
                                tasks,
                                mode,
                                seed,
                            }));
                        }
                    }
                }
            }
        }
        points
    }

    /// What is typed on the board's console for `point`; `calls` are the workload's command lines,
    /// by mode.
    pub fn command(&self, calls: &BTreeMap<String, String>, point: &Point) -> Result<String> {
        let mode = point.mode.name();
        let Some(call) = calls.get(mode) else {
            bail!(
                "{} has no [call] named \"{mode}\" in its workload.toml",
                self.workload
            );
        };
        let rounds = self.hops.div_ceil(point.tasks).max(1);
        let words = [
            ("{size_kb}", point.size_kb),
            ("{tasks}", point.tasks),
            ("{rounds}", rounds),
            ("{samples}", self.samples),
        ];
        let line = words.iter().fold(call.clone(), |line, (word, value)| {
            line.replace(word, &value.to_string())
        });
        if line.contains('{') {
            bail!(
                "{}, [call] {mode}: a word in braces is not known: {line}",
                self.workload
            );
        }
        Ok(line)
    }
}

/// The folder of an experiment.
pub fn folder(name: &str) -> PathBuf {
    paths::root().join("experiments").join(name)
}

/// Names of all experiments.
pub fn names() -> Vec<String> {
    paths::names_in(&paths::root().join("experiments"), |path| {
        let file = path.join("experiment.toml");
        file.is_file().then(|| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        })
    })
}

/// Reads the text of an `experiment.toml`; `path` is for messages only.
fn parse(text: &str, path: &Path) -> Result<Experiment> {
    let file = paths::shown(path);
    let table: toml::Table = text
        .parse()
        .with_context(|| format!("{file} is not TOML"))?;
    known_keys(&table, KEYS, &file, "")?;
    for list in ["plan", "quick"] {
        for plan in table
            .get(list)
            .and_then(toml::Value::as_array)
            .into_iter()
            .flatten()
        {
            if let Some(plan) = plan.as_table() {
                known_keys(plan, PLAN_KEYS, &file, &format!("{list}."))?;
            }
        }
    }
    let experiment: Experiment =
        toml::from_str(text).with_context(|| format!("{file} does not describe an experiment"))?;
    check(&experiment).with_context(|| file)?;
    Ok(experiment)
}

fn known_keys(table: &toml::Table, known: &[&str], file: &str, prefix: &str) -> Result<()> {
    match table.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => bail!(
            "{file}: unknown key \"{prefix}{key}\"{}",
            did_you_mean(key, known)
        ),
        None => Ok(()),
    }
}

fn check(e: &Experiment) -> Result<()> {
    if e.format != FORMAT {
        bail!(
            "format: {} is not known, this program reads {FORMAT}",
            e.format
        );
    }
    if e.plan.is_empty() || e.kernels.is_empty() || e.modes.is_empty() {
        bail!("plan, kernels and modes must not be empty");
    }
    if !(e.limit_s > 0.0 && e.limit_s <= 86_400.0) {
        bail!(
            "limit_s: {} is not between 0 and 86400 seconds of board time",
            e.limit_s
        );
    }
    if !(1..=64).contains(&e.samples) || !(1..=1_000_000).contains(&e.hops) {
        bail!("samples must be from 1 to 64, hops from 1 to 1000000");
    }
    for plan in e.plan.iter().chain(&e.quick) {
        if plan.size_kb.is_empty() || plan.tasks.is_empty() || plan.seeds.is_empty() {
            bail!(
                "plan for {}: size_kb, tasks and seeds must not be empty",
                plan.board
            );
        }
        if let Some(tasks) = plan.tasks.iter().find(|t| !(2..=64).contains(*t)) {
            bail!(
                "plan for {}: tasks: {tasks} is not from 2 to 64",
                plan.board
            );
        }
        if let Some(kb) = plan.size_kb.iter().find(|kb| **kb > 1024) {
            bail!("plan for {}: size_kb: {kb} is over 1024", plan.board);
        }
    }
    let points = e.points(false, None, None).len();
    if points > MAX_POINTS {
        bail!("{points} points; more than {MAX_POINTS} is refused");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        format = 1
        title = "t"
        workload = "lat_ctx"
        kernels = ["6.12/plain"]
        limit_s = 60.0
        samples = 11
        hops = 100
        modes = ["process", "thread"]
        [[plan]]
        board = "sam9263"
        size_kb = [0, 4]
        tasks = [2, 16]
        [[quick]]
        board = "sam9263"
        size_kb = [0]
        tasks = [2]
    "#;

    fn parsed(text: &str) -> Result<Experiment> {
        parse(text, Path::new("e/experiment.toml"))
    }

    #[test]
    fn the_points_are_the_product_of_the_axes_in_the_files_order() {
        let e = parsed(GOOD).unwrap();
        let points = e.points(false, None, None);
        assert_eq!(points.len(), 8);
        assert_eq!(
            (points[0].size_kb, points[0].tasks, points[0].mode),
            (0, 2, Mode::Process)
        );
        assert_eq!(
            (points[7].size_kb, points[7].tasks, points[7].mode),
            (4, 16, Mode::Thread)
        );
        assert_eq!(e.points(true, Some("s3c24a0"), Some(7)).len(), 2);
        assert_eq!(e.points(true, Some("s3c24a0"), Some(7))[0].board, "s3c24a0");
    }

    #[test]
    fn a_ring_gets_at_least_the_hops_asked_for() {
        let e = parsed(GOOD).unwrap();
        let points = e.points(false, None, None);
        let line = "x -s {size_kb} -n {rounds} -r {samples} {tasks}".to_string();
        let calls: BTreeMap<String, String> = [
            ("process".to_string(), line.clone()),
            ("thread".to_string(), line + " {what}"),
        ]
        .into();
        assert_eq!(
            e.command(&calls, &points[0]).unwrap(),
            "x -s 0 -n 50 -r 11 2"
        );
        let error = e.command(&calls, &points[7]).unwrap_err().to_string();
        assert!(
            error.contains("-n 7") && error.contains("{what}"),
            "{error}"
        );
        assert!(e.command(&BTreeMap::new(), &points[0]).is_err());
    }

    #[test]
    fn an_unknown_key_is_named_with_its_file_and_the_nearest_key() {
        let text = GOOD.replacen("size_kb", "size_kB", 1);
        let error = format!("{:#}", parsed(&text).unwrap_err());
        assert!(error.contains("e/experiment.toml"), "{error}");
        assert!(
            error.contains("\"plan.size_kB\"; did you mean \"size_kb\"?"),
            "{error}"
        );
    }

    #[test]
    fn absurd_values_are_refused() {
        for (from, to) in [
            ("limit_s = 60.0", "limit_s = -1.0"),
            ("tasks = [2, 16]", "tasks = [1]"),
            ("samples = 11", "samples = 0"),
            ("format = 1", "format = 2"),
            ("size_kb = [0, 4]", "size_kb = [9999]"),
            ("size_kb = [0, 4]", "size_kb = []"),
        ] {
            assert!(parsed(&GOOD.replacen(from, to, 1)).is_err(), "{to}");
        }
    }
}
