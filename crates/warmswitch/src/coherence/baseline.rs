// SPDX-License-Identifier: MIT OR Apache-2.0
//! Baselines (`linux/<series>/coherence-baselines.toml`). A baseline says how many reports each suppression covers when
//! a kernel runs a command.
//!
//! A repeated run gives the same counts. In another commit of a bisection, code and data have other addresses.
//! Therefore, the caches hold other lines when a bug occurs, and the counts differ. Runs with several victim seeds
//! estimate this difference. A baseline records the lowest and the highest count of those runs. It allows the highest
//! count plus the difference between the highest and the lowest count.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::Group;
use super::suppress::{SERIES, Suppression, list};
use base::paths::{shown, write_atomically};
use base::toml_file;

/// File with the recorded baselines of a series, in the folder of the series.
const FILE: &str = "coherence-baselines.toml";
/// Comment at the start of a baseline file.
const HEAD: &str = "# SPDX-License-Identifier: GPL-2.0-only
# How many reports each suppression covers, for each kernel, board, victim policy and command. Written by
# `warmswitch coherence --write-baseline` (docs/use/COHERENCE.md). Each pair is the lowest and the highest count of
# `runs` runs with different seeds. `reports` counts different reports, and `times` counts their occurrences. A run
# whose count exceeds the highest count by more than the difference between the two ends with exit code 3.
";

/// Properties of a run that select its baseline.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct Key {
    /// Kernel name with its series, like `6.12/plain`, or the path as the user gave it.
    pub kernel: String,
    /// Board name, including changed keys.
    pub board: String,
    /// Victim policy, `random` or `late`.
    pub victims: String,
    /// Command. Empty if the run only boots.
    pub command: String,
}

/// Lowest and highest counts in the runs of a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Covered {
    /// Number of different reports.
    pub reports: [u64; 2],
    /// Number of occurrences of all these reports.
    pub times: [u64; 2],
}

/// One entry of a baseline file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    kernel: String,
    board: String,
    victims: String,
    command: String,
    /// Number of runs from which the figures come.
    pub runs: usize,
    /// Figures for each suppression, by the suppression's name. A suppression that covered no reports has no entry.
    #[serde(default)]
    pub suppressed: BTreeMap<String, Covered>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    baseline: Vec<Baseline>,
}

/// Number of reports that a suppression covered in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of different reports.
    pub reports: u64,
    /// Number of occurrences of all these reports.
    pub times: u64,
}

/// Number of reports that each suppression covered in a run, by the suppression's name.
pub type Counts = BTreeMap<String, Count>;

/// Counts the reports that each suppression covered in a run.
pub fn counts(groups: &[Group], suppressions: &[Suppression]) -> Counts {
    let mut counts = Counts::new();
    for group in groups {
        if let Some(entry) = group.suppression.and_then(|n| suppressions.get(n)) {
            let count = counts.entry(entry.name.clone()).or_default();
            count.reports += 1;
            count.times += group.count;
        }
    }
    counts
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// Returns the TOML line `name = value`, with quotes around a name that is not a bare key.
fn line(name: &str, value: &str) -> String {
    let any = toml::Table::from_iter([(name.to_string(), toml::Value::from(0))]).to_string();
    let key = any.trim_end().strip_suffix(" = 0");
    format!("{} = {value}", key.expect("a table of one number"))
}

fn allowed([fewest, most]: [u64; 2]) -> u64 {
    most + (most - fewest.min(most))
}

impl Baseline {
    /// Makes a baseline from the counts of one or more runs.
    pub fn of(key: Key, runs: &[Counts]) -> Baseline {
        let names = runs.iter().flat_map(|run| run.keys());
        let covered = |name: &String| {
            let range = |field: &dyn Fn(&Count) -> u64| {
                let each = runs.iter().map(|run| run.get(name).map_or(0, field));
                let (fewest, most) = (each.clone().min(), each.max());
                [fewest.unwrap_or(0), most.unwrap_or(0)]
            };
            Covered {
                reports: range(&|count| count.reports),
                times: range(&|count| count.times),
            }
        };
        let Key {
            kernel,
            board,
            victims,
            command,
        } = key;
        Baseline {
            kernel,
            board,
            victims,
            command,
            runs: runs.len(),
            suppressed: names.map(|name| (name.clone(), covered(name))).collect(),
        }
    }

    /// Returns the key of the runs that are compared with this baseline.
    pub fn key(&self) -> Key {
        Key {
            kernel: self.kernel.clone(),
            board: self.board.clone(),
            victims: self.victims.clone(),
            command: self.command.clone(),
        }
    }

    /// Returns how many reports and occurrences a suppression may cover.
    pub fn allows(&self, name: &str) -> Count {
        let covered = self.suppressed.get(name);
        covered.map_or(Count::default(), |covered| Count {
            reports: allowed(covered.reports),
            times: allowed(covered.times),
        })
    }

    /// Returns whether a suppression covered more than [`Baseline::allows`] permits.
    pub fn is_exceeded(&self, name: &str, count: Count) -> bool {
        let most = self.allows(name);
        count.reports > most.reports || count.times > most.times
    }

    fn text(&self) -> String {
        let mut text = format!(
            "\n[[baseline]]\nkernel = {}\nboard = {}\nvictims = {}\ncommand = {}\nruns = {}\n",
            quoted(&self.kernel),
            quoted(&self.board),
            quoted(&self.victims),
            quoted(&self.command),
            self.runs
        );
        if !self.suppressed.is_empty() {
            text.push_str("[baseline.suppressed]\n");
        }
        for (name, Covered { reports, times }) in &self.suppressed {
            let value = format!("{{ reports = {reports:?}, times = {times:?} }}");
            let _ = writeln!(text, "{}", line(name, &value));
        }
        text
    }
}

/// Returns the path of the recorded baselines for a kernel name.
pub fn of_kernel(name: &str) -> PathBuf {
    let series = name.split_once('/').map_or(SERIES, |(series, _)| series);
    list(series, FILE)
}

/// Reads and checks all baselines in a file.
pub fn load(path: &Path) -> Result<Vec<Baseline>> {
    let list: List = toml_file::read(path)?;
    for (n, entry) in list.baseline.iter().enumerate() {
        let place = format!("{}: baseline {}", shown(path), n + 1);
        if list.baseline[..n].iter().any(|e| e.key() == entry.key()) {
            bail!(
                "{place}: an earlier baseline has the same kernel, board, victims and command; remove one"
            );
        }
        let all = entry.suppressed.iter();
        let mut ranges = all.flat_map(|(name, c)| [(name, c.reports), (name, c.times)]);
        if let Some((name, [fewest, most])) = ranges.find(|(_, [fewest, most])| fewest > most) {
            bail!(
                "{place}: suppressed.{name}: [{fewest}, {most}]: the smaller number must come first"
            );
        }
    }
    Ok(list.baseline)
}

/// Writes a baseline to a file. Replaces an older baseline with the same key.
pub fn write(path: &Path, new: Baseline) -> Result<()> {
    let mut all = match path.exists() {
        true => load(path)?,
        false => Vec::new(),
    };
    all.retain(|entry| entry.key() != new.key());
    all.push(new);
    all.sort_by_key(Baseline::key);
    let text: String = all.iter().map(Baseline::text).collect();
    write_atomically(path, (HEAD.to_string() + &text).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(command: &str) -> Key {
        Key {
            kernel: "6.12/plain".into(),
            board: "sam9263".into(),
            victims: "random".into(),
            command: command.into(),
        }
    }

    fn counts(all: &[(&str, u64, u64)]) -> Counts {
        let count = |reports, times| Count { reports, times };
        let all = all.iter();
        all.map(|(name, reports, times)| (name.to_string(), count(*reports, *times)))
            .collect()
    }

    #[test]
    fn as_much_is_allowed_above_the_most_as_runs_differ_and_nothing_for_an_entry_that_covered_nothing()
     {
        let runs = [
            counts(&[("a", 1, 10), ("b", 2, 7)]),
            counts(&[("a", 1, 14)]),
            counts(&[("a", 1, 12)]),
        ];
        let baseline = Baseline::of(key("true"), &runs);
        for (name, reports, times, exceeded) in [
            ("a", 1, 18, false),
            ("a", 1, 19, true),
            ("a", 2, 1, true),
            ("b", 4, 14, false),
            ("b", 4, 15, true),
            ("c", 0, 0, false),
            ("c", 1, 1, true),
        ] {
            let count = Count { reports, times };
            assert_eq!(
                baseline.is_exceeded(name, count),
                exceeded,
                "{name} {count:?}"
            );
        }
        let one = Baseline::of(key("true"), &runs[..1]);
        assert!(
            one.is_exceeded(
                "a",
                Count {
                    reports: 1,
                    times: 11
                }
            ),
            "one run allows itself"
        );
    }

    #[test]
    fn what_is_written_is_read_again_and_replaces_what_was_there_for_the_same() {
        let path =
            std::env::temp_dir().join(format!("warmswitch-baselines-{}.toml", std::process::id()));
        let quoted = "sh -c 'echo \"a b\"'";
        for (command, times) in [(quoted, 3), ("", 4), (quoted, 5)] {
            let new = Baseline::of(key(command), &[counts(&[("a", 1, times)])]);
            write(&path, new).unwrap();
        }
        let all = load(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let read: Vec<_> = all.iter().map(|e| (e.key(), e.allows("a").times)).collect();
        assert_eq!(read, [(key(""), 4), (key(quoted), 5)]);
    }

    #[test]
    fn a_bad_file_is_named_with_what_is_wrong() {
        let path = std::env::temp_dir().join(format!(
            "warmswitch-bad-baselines-{}.toml",
            std::process::id()
        ));
        let one = "[[baseline]]\nkernel='k'\nboard='b'\nvictims='random'\ncommand='c'\nruns=1\n";
        let turned = "[baseline.suppressed]\na={ reports=[1,1], times=[2,1] }\n";
        for (text, part) in [
            (one.replace("runs", "rusn"), "did you mean \"runs\""),
            (one.repeat(2), "an earlier baseline"),
            (one.to_string() + turned, "suppressed.a: [2, 1]"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = format!("{:#}", load(&path).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_recorded_ones_name_suppressions_that_there_are() {
        let path = of_kernel("6.12/plain");
        let known =
            super::super::suppress::load(&list(SERIES, "coherence-suppressions.toml")).unwrap();
        for entry in load(&path).unwrap() {
            for name in entry.suppressed.keys() {
                assert!(
                    known.iter().any(|s| s.name == *name),
                    "{}: {name}",
                    entry.kernel
                );
            }
        }
    }

    /// Users may choose any names for the suppressions in their own lists.
    #[test]
    fn what_was_recorded_is_read_again_whatever_a_suppression_is_called() {
        for name in ["my bug", "a.b", "x = 1", "7", "'a' \"b\"", "\\"] {
            let path = std::env::temp_dir().join(format!(
                "warmswitch-named-baselines-{}.toml",
                std::process::id()
            ));
            let _ = std::fs::remove_file(&path);
            let runs = [counts(&[(name, 1, 4)])];
            write(&path, Baseline::of(key("true"), &runs)).unwrap();
            let read = load(&path).map(|all| all[0].allows(name).times);
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            assert_eq!(read.map_err(|e| format!("{e:#}")), Ok(4), "{name}: {text}");
        }
    }
}
