// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports that are known, each with its reason: `linux/<series>/coherence-suppressions.toml`.

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use arm9::Kind;
use board::coherence::{Access, Report, Wrong};
use serde::Deserialize;

use super::names::Names;
use crate::base::paths::{root, shown};
use crate::base::suggest::did_you_mean;
use crate::base::toml_file;
use crate::supply::kernel;

/// One entry: all that it says must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suppression {
    /// Kinds of report, by [`Wrong::name`].
    pub wrong: Vec<String>,
    /// Functions that used the data (a line that makes room is written back by chance: not by these), without suffixes of the compiler; `user` for user land. Here
    /// and below `f < g` is `f`, or its caller `g` where the compiler put `f` into it.
    #[serde(default)]
    pub access: Vec<String>,
    /// Only of instructions that were fetched.
    #[serde(default)]
    pub fetched: bool,
    /// Functions of which one called the one that used the data, directly or not.
    #[serde(default)]
    pub used_in: Vec<String>,
    /// Functions that wrote the newest value.
    #[serde(default)]
    pub writer: Vec<String>,
    /// Functions of which one called the writer, directly or not.
    #[serde(default)]
    pub called_by: Vec<String>,
    /// The same, of those that have not returned when the data is used.
    #[serde(default)]
    pub running: Vec<String>,
    /// Only where the system call that used the data had begun before the newest was written: it may see either.
    #[serde(default)]
    pub overlapping: bool,
    /// Only where a read-only page was used that is cached, of memory that was written past the cache.
    #[serde(default)]
    pub private_view: bool,
    /// Series of patches that mends it: reported of kernels that have it.
    #[serde(default)]
    pub mended_by: Option<String>,
    /// Why this is not reported.
    pub reason: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    suppression: Vec<Suppression>,
}

fn is_fetch(access: Access) -> bool {
    matches!(
        access,
        Access::Fetch { .. } | Access::Translation(Kind::Fetch)
    )
}

impl Suppression {
    /// Does it cover the report?
    pub fn covers(&self, report: &Report, names: &Names) -> bool {
        let is = |wanted: &[String], pc| {
            wanted.is_empty() || wanted.iter().any(|name| names.is_in(pc, name))
        };
        let among = |wanted: &[String], callers: &[u32]| {
            let is_in = |name: &String| callers.iter().any(|pc| names.is_in(*pc, name));
            wanted.is_empty() || wanted.iter().any(is_in)
        };
        // Whose access happens to evict a line says nothing: the first who did stands for all.
        let asks_who = self.fetched || !self.access.is_empty() || !self.used_in.is_empty();
        let by_chance = report.access == Access::WriteBack { victim: true };
        !(asks_who && by_chance)
            && among(&self.called_by, &report.trace.written)
            && among(&self.running, &report.trace.running)
            && (!self.overlapping || report.trace.circumstances.overlapping)
            && (!self.private_view || report.trace.circumstances.private_view)
            && self.wrong.iter().any(|w| w == report.wrong.name())
            && is(&self.access, report.context.pc)
            && among(&self.used_in, &report.trace.used)
            && (!self.fetched || is_fetch(report.access))
            && is(&self.writer, report.writer.pc)
    }

    /// For notes: what it is about.
    pub fn label(&self) -> String {
        let side = |word, names: &[String]| match names {
            [] => String::new(),
            names => format!(", {word} {}", names.join("/")),
        };
        format!(
            "{}{}{}{}{}{}{}{}",
            self.wrong.join("/"),
            side(
                if self.fetched {
                    "fetched by"
                } else {
                    "used by"
                },
                &self.access
            ),
            side("in", &self.used_in),
            side("written by", &self.writer),
            side("called by", &self.called_by),
            side("during", &self.running),
            if self.overlapping {
                ", at the same time"
            } else {
                ""
            },
            if self.private_view {
                ", seen privately"
            } else {
                ""
            }
        )
    }
}

/// The functions that entries ask for among callers.
pub fn callers(all: &[Suppression], names: &Names) -> Vec<Range<u32>> {
    let asked_for = all
        .iter()
        .flat_map(|s| [&s.used_in, &s.called_by, &s.running]);
    asked_for
        .flatten()
        .flat_map(|name| names.ranges(name))
        .collect()
}

/// The series whose lists are used for a kernel whose name does not say.
pub const SERIES: &str = "6.12";

/// The list of a kernel by its name, `6.12/plain` or `plain`; none for a kernel given by path.
pub fn of_kernel(name: &str) -> Result<Vec<Suppression>> {
    let series = match name.split_once('/') {
        Some((series, variant)) if !variant.contains('/') && series != "." => series,
        _ if name.contains('/') => return Ok(Vec::new()),
        _ => SERIES,
    };
    let path = list(series, "coherence-suppressions.toml");
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let mut all = load(&path)?;
    let is_mended = |by: &String| kernel::has_series(name, by);
    all.retain(|s| !s.mended_by.as_ref().is_some_and(is_mended));
    Ok(all)
}

/// A list beside the kernels of a series.
pub fn list(series: &str, file: &str) -> PathBuf {
    root().join("linux").join(series).join(file)
}

/// All entries of a file.
pub fn load(path: &Path) -> Result<Vec<Suppression>> {
    let list: List = toml_file::read(path)?;
    let names: Vec<&str> = Wrong::ALL.iter().map(|w| w.name()).collect();
    for (n, entry) in list.suppression.iter().enumerate() {
        let place = format!("{}: suppression {}", shown(path), n + 1);
        if let Some(bad) = entry.wrong.iter().find(|w| !names.contains(&w.as_str())) {
            bail!(
                "{place}: wrong: no kind \"{bad}\"{}",
                did_you_mean(bad, &names)
            );
        }
        if entry.wrong.is_empty() {
            bail!("{place}: wrong: at least one kind is needed");
        }
        if entry.access.is_empty() && entry.writer.is_empty() {
            bail!("{place}: one of access and writer is needed");
        }
        if entry.reason.trim().is_empty() {
            bail!("{place}: reason: it is empty");
        }
    }
    Ok(list.suppression)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_a_series_mends_is_reported_of_kernels_that_have_it() {
        let mended = |name: &str| {
            let all = of_kernel(name).unwrap();
            all.iter().filter(|s| s.mended_by.is_some()).count()
        };
        let all = ["plain-xscale", "6.12/plain-multi", "fcse-guaranteed"].map(mended);
        assert_eq!(all, [5, 5, 1]);
        assert_eq!(
            ["6.12/fcse-xscale", "fcse-multi-best-effort"].map(mended),
            [0; 2]
        );
    }

    use crate::coherence::tests::report;

    fn loaded(text: &str) -> Result<Vec<Suppression>> {
        let name = format!(
            "warmswitch-suppressions-{}-{:?}.toml",
            std::process::id(),
            std::thread::current().id()
        );
        let path = std::env::temp_dir().join(name);
        fs::write(&path, text).unwrap();
        let list = load(&path);
        fs::remove_file(&path).unwrap();
        list
    }

    const GOOD: &str = "[[suppression]]\nwrong=['stale-read']\naccess=['reader']\n\
                        writer=['user']\nreason='r'\n";

    #[test]
    fn an_entry_covers_only_reports_of_its_kind_and_functions() {
        let names = Names::by_hand(&[(0xc000_1000, "reader"), (0xc000_2000, "other")]);
        let entry = loaded(GOOD).unwrap().remove(0);
        let mut found = report();
        assert!(entry.covers(&found, &names));
        found.context.pc = 0xc000_2000;
        assert!(!entry.covers(&found, &names), "another reader");
        found = report();
        found.writer.pc = 0xc000_2000;
        assert!(!entry.covers(&found, &names), "another writer");
        found = report();
        found.wrong = Wrong::OldOverNewer;
        assert!(!entry.covers(&found, &names), "another kind");
        assert_eq!(entry.label(), "stale-read, used by reader, written by user");
    }

    #[test]
    fn an_entry_that_asks_who_used_the_data_covers_no_victim() {
        let names = Names::by_hand(&[(0xc000_1000, "reader")]);
        let mut found = report();
        found.access = Access::WriteBack { victim: true };
        assert!(!loaded(GOOD).unwrap().remove(0).covers(&found, &names));
        let anybody = GOOD.replace("access=['reader']", "");
        assert!(loaded(&anybody).unwrap().remove(0).covers(&found, &names));
    }

    #[test]
    fn an_entry_may_ask_for_a_fetch() {
        let names = Names::by_hand(&[(0xc000_1000, "reader")]);
        let text = GOOD.replace("writer=", "fetched=true\nwriter=");
        let entry = loaded(&text).unwrap().remove(0);
        let mut found = report();
        assert!(!entry.covers(&found, &names), "a load");
        found.access = Access::Translation(Kind::Fetch);
        assert!(entry.covers(&found, &names));
        assert_eq!(
            entry.label(),
            "stale-read, fetched by reader, written by user"
        );
    }

    #[test]
    fn a_fetch_and_a_load_of_one_instruction_are_two_causes() {
        let mut found = report();
        let mut by = |kind| {
            found.wrong = Wrong::StaleTranslation;
            found.access = Access::Translation(kind);
            found.cause()
        };
        assert_ne!(by(Kind::Fetch), by(Kind::Read));
        assert_eq!(by(Kind::Write), by(Kind::Read));
    }

    #[test]
    fn an_entry_may_ask_for_a_caller_of_the_writer_that_has_not_returned() {
        let names = Names::by_hand(&[(0xc000_1000, "copy_mm"), (0xc000_2000, "sys_clone")]);
        let text = GOOD.replace("access=['reader']", "running=['copy_mm']");
        let entry = loaded(&text).unwrap().remove(0);
        let mut found = report();
        assert!(!entry.covers(&found, &names));
        found.trace.written = vec![0xc000_1008, 0xc000_2010];
        found.trace.running = vec![0xc000_2010];
        assert!(!entry.covers(&found, &names), "it has returned");
        found.trace.running = vec![0xc000_1008, 0xc000_2010];
        assert!(entry.covers(&found, &names));
        assert_eq!(entry.label(), "stale-read, written by user, during copy_mm");
    }

    #[test]
    fn an_entry_may_ask_for_a_call_that_is_older_than_the_data() {
        let names = Names::by_hand(&[(0xc000_1000, "reader")]);
        let text = GOOD.replace("writer=", "overlapping=true\nwriter=");
        let entry = loaded(&text).unwrap().remove(0);
        let mut found = report();
        assert!(!entry.covers(&found, &names));
        found.trace.circumstances.overlapping = true;
        assert!(entry.covers(&found, &names));
        assert_eq!(
            entry.label(),
            "stale-read, used by reader, written by user, at the same time"
        );
    }

    #[test]
    fn an_entry_may_ask_for_a_caller_of_what_used_the_data() {
        let names = Names::by_hand(&[(0xc000_1000, "fault"), (0xc000_2000, "copy_mm")]);
        let text = GOOD.replace("access=['reader']", "access=[]\nused_in=['fault']");
        let entry = loaded(&text).unwrap().remove(0);
        let mut found = report();
        found.trace.used = vec![0xc000_2010];
        assert!(!entry.covers(&found, &names), "another caller");
        found.trace.used = vec![0xc000_2010, 0xc000_1008];
        assert!(entry.covers(&found, &names));
        assert_eq!(entry.label(), "stale-read, in fault, written by user");
    }

    #[test]
    fn an_entry_may_ask_for_a_caller_of_the_writer() {
        let names = Names::by_hand(&[(0xc000_1000, "fallocate"), (0xc000_2000, "fault")]);
        let text = GOOD.replace("access=['reader']", "called_by=['fallocate']");
        let entry = loaded(&text).unwrap().remove(0);
        let mut found = report();
        found.trace.written = vec![0xc000_2010];
        assert!(!entry.covers(&found, &names), "another caller");
        found.trace.written = vec![0xc000_1008, 0xc000_2010];
        assert!(entry.covers(&found, &names));
        let label = "stale-read, written by user, called by fallocate";
        assert_eq!(entry.label(), label);
    }

    #[test]
    fn a_bad_entry_is_named_by_file_key_and_nearest_name() {
        for (from, to, part) in [
            ("stale-read", "stale-raed", "did you mean \"stale-read\"?"),
            ("access=", "acess=", "acess"),
            (
                "access=['reader']\nwriter=['user']\n",
                "",
                "access and writer",
            ),
            ("reason='r'", "reason=' '", "reason: it is empty"),
            ("reason='r'\n", "", "reason"),
            ("['stale-read']", "[]", "at least one kind"),
        ] {
            let error = format!("{:#}", loaded(&GOOD.replace(from, to)).unwrap_err());
            assert!(
                error.contains("warmswitch-suppressions") && error.contains(part),
                "{error}"
            );
        }
    }

    #[test]
    fn the_list_of_this_tree_is_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../linux/6.12/coherence-suppressions.toml");
        load(&path).unwrap();
    }
}
