// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports that are known, each with its reason: `linux/<series>/coherence-suppressions.toml`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use arm::Kind;
use serde::Deserialize;
use watch::checker::{Access, Apart, Bits, Given, Newest, Report, Wrong};

use super::names::Names;
use base::paths::{root, shown};
use base::suggest::did_you_mean;
use base::toml_file;
use supply::kernel;

/// One entry: all that it says must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suppression {
    /// Unique in its file: how baselines and mutants call it.
    pub name: String,
    /// Kinds of report, by [`Wrong::name`].
    pub wrong: Vec<String>,
    /// Functions that used the data (a line that makes room is written back by chance: not by these), without suffixes of
    /// the compiler; `user` for user land. Here and below `f < g` is `f`, or its caller `g` where the compiler put `f` into
    /// it.
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
    /// Only where the newest was there when the old data was used.
    #[serde(default)]
    pub newest: Option<Place>,
    /// Only where the line or TLB entry that was used had been filled before the newest was written, or behind it.
    #[serde(default)]
    pub filled: Option<Filled>,
    /// Only where the line that was used was dirty already when the newest was written.
    #[serde(default)]
    pub dirty_before: bool,
    /// Only where user land may just read the page that was used.
    #[serde(default)]
    pub read_only: bool,
    /// Only where the writer's address still leads to the data, for user land to write; false: only where it leads
    /// elsewhere or nowhere.
    #[serde(default)]
    pub writer_maps: Option<bool>,
    /// Only where the line that was used is of other memory, which its address led to before.
    #[serde(default)]
    pub remapped: bool,
    /// Only where the newest descriptor differs from the one that was used in its permissions alone.
    #[serde(default)]
    pub permissions_only: bool,
    /// Functions of which the writer's callers called one next.
    #[serde(default)]
    pub then_called: Vec<String>,
    /// Callers of the writer of which one had been called before the line was filled, and the line before the write.
    #[serde(default)]
    pub filled_in: Vec<String>,
    /// Functions of which one was called with an address of the data since the line or TLB entry was filled; `f(r2 & 4)`
    /// only where one of these bits was in that argument.
    #[serde(default)]
    pub called_since_fill: Vec<String>,
    /// The same, of which none was called.
    #[serde(default)]
    pub not_called_since_fill: Vec<String>,
    /// Functions of which none was called since the newest was written.
    #[serde(default)]
    pub not_called_since: Vec<String>,
    /// Functions that another task had been switched away from inside, one of them, when the newest was written.
    #[serde(default)]
    pub suspended_in: Vec<String>,
    /// Why no mutant of the same functions is to be reported beside it, where there is none.
    #[serde(default)]
    pub no_mutant: Option<String>,
    /// Series of patches that mends it: reported of kernels that have it.
    #[serde(default)]
    pub mended_by: Option<String>,
    /// Why this is not reported.
    pub reason: String,
}

/// Where the newest value was when older data was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Still in the dirty line that it was stored to.
    Dirty,
    /// In memory, or on its way there.
    Memory,
}

/// When the line or the TLB entry that was used was filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filled {
    /// Before the newest was written.
    Before,
    /// Behind that.
    After,
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
            && self.fits_state(report)
            && self.fits_order(report, names)
            && self.wrong.iter().any(|w| w == report.wrong.name())
            && is(&self.access, report.context.pc)
            && among(&self.used_in, &report.trace.used)
            && (!self.fetched || is_fetch(report.access))
            && is(&self.writer, report.writer.pc)
    }

    /// The state of the lines and mappings.
    fn fits_state(&self, report: &Report) -> bool {
        let met = &report.trace.circumstances;
        let is_there = |place| match place {
            Place::Dirty => matches!(report.place, Newest::Dirty(_)),
            Place::Memory => matches!(report.place, Newest::Memory | Newest::Buffer),
        };
        let maps = |is| match is {
            true => met.writer_maps,
            false => !met.writer_leads,
        };
        self.newest.is_none_or(is_there)
            && (!self.dirty_before || met.dirty_before)
            && (!self.read_only || met.read_only)
            && self.writer_maps.is_none_or(maps)
            && (!self.remapped || report.filled_from.is_some())
            && (!self.permissions_only || met.permissions_only)
    }

    /// The order of events.
    fn fits_order(&self, report: &Report, names: &Names) -> bool {
        let met = &report.trace.circumstances;
        let is_any = |wanted: &[String], called: &[u32]| {
            let is = |name: &String| called.iter().any(|pc| names.is_in(*pc, name));
            wanted.iter().any(is)
        };
        let asks = |wanted: &[String], called| wanted.is_empty() || is_any(wanted, called);
        let filled = |when| met.filled_before == Some(when == Filled::Before);
        let is_known = self.not_called_since.is_empty() || met.between.is_whole;
        let given = |name: &String| {
            let (name, bits) = with_bits(name);
            let called = met.between.called_since_fill.iter();
            called
                .filter(|(_, of)| *of == bits)
                .any(|(pc, _)| names.is_in(*pc, name))
        };
        let called = &self.called_since_fill;
        let not_called = &self.not_called_since_fill;
        self.filled.is_none_or(filled)
            && asks(&self.then_called, &met.between.then_called)
            && asks(&self.filled_in, &met.between.filled_in)
            && (called.is_empty() || called.iter().any(given))
            && (not_called.is_empty() || met.between.is_whole_since_fill)
            && !not_called.iter().any(given)
            && asks(&self.suspended_in, &met.between.suspended_in)
            && is_known
            && !is_any(&self.not_called_since, &met.between.called_since)
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

/// `f(r2 & 4)`: the function, and the bits of the argument, of which one is asked for.
fn with_bits(text: &str) -> (&str, Option<Bits>) {
    let Some((name, rest)) = text.split_once('(') else {
        return (text, None);
    };
    (name.trim(), bits(rest))
}

/// Of `r2 & 4)`.
fn bits(text: &str) -> Option<Bits> {
    let (register, mask) = text.trim().strip_suffix(')')?.split_once('&')?;
    let register = register.trim().strip_prefix('r')?.parse().ok()?;
    let mask = mask.trim().parse().ok()?;
    (register < 4).then_some(Bits { register, mask })
}

/// The functions that entries ask for with what they are given.
fn given(all: &[Suppression], names: &Names) -> Vec<Given> {
    let asked_for = all
        .iter()
        .flat_map(|s| [&s.called_since_fill, &s.not_called_since_fill]);
    let of = |text: &String| {
        let (name, bits) = with_bits(text);
        let functions = names.ranges(name).into_iter();
        functions.map(move |function| Given { function, bits })
    };
    asked_for.flatten().flat_map(of).collect()
}

/// The functions that entries ask for.
pub fn apart(all: &[Suppression], names: &Names) -> Apart {
    let ranges = |of: &dyn Fn(&Suppression) -> Vec<String>| {
        let asked_for = all.iter().flat_map(of);
        asked_for.flat_map(|name| names.ranges(&name)).collect()
    };
    Apart {
        callers: ranges(&|s| [&s.used_in[..], &s.called_by, &s.running].concat()),
        then_called: ranges(&|s| s.then_called.clone()),
        filled_in: ranges(&|s| s.filled_in.clone()),
        called_since_fill: given(all, names),
        called_since: ranges(&|s| s.not_called_since.clone()),
        suspended_in: ranges(&|s| s.suspended_in.clone()),
    }
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
    let path = kernel::file_of(series, "coherence-suppressions.toml");
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
        if entry.name.trim().is_empty() {
            bail!("{place}: name: it is empty");
        }
        if entry.name.contains(char::is_control) {
            bail!(
                "{place}: name: {:?} is more than a line of text",
                entry.name
            );
        }
        if list.suppression[..n].iter().any(|e| e.name == entry.name) {
            bail!("{place}: name: there are two \"{}\"", entry.name);
        }
        if entry.wrong.is_empty() {
            bail!("{place}: wrong: at least one kind is needed");
        }
        if entry.access.is_empty() && entry.writer.is_empty() {
            bail!("{place}: one of access and writer is needed");
        }
        let given = [&entry.called_since_fill, &entry.not_called_since_fill];
        let is_bad = |text: &&String| text.contains('(') && with_bits(text).1.is_none();
        if let Some(bad) = given.into_iter().flatten().find(is_bad) {
            bail!(
                "{place}: \"{bad}\": bits of an argument are asked for as in \"f(r2 & 4)\", r0 to r3"
            );
        }
        if entry.reason.trim().is_empty() {
            bail!("{place}: reason: it is empty");
        }
    }
    Ok(list.suppression)
}

#[cfg(test)]
#[path = "suppress_tests.rs"]
mod tests;
