// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs every mutant under the checker. A mutant removes an operation from the kernel. The checker should report the
//! consequence.
//!
//! If a mutant's entry in the list names a test, this test runs until the checker makes a report of the expected kind.
//! A mutant that should survive runs the quick suite, in which the checker must make no report.

use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context as _, Result, bail};
use arm::Victims;
use board::BoardSpec;
use board::boot::Boot;
use serde_json::{Value, json};
use watch::checker::{Call, KernelFunctions, Report, ReportKind};

use super::names::Names;
use super::outside::Outside;
use super::suppress::{Suppression, distinctions};
use super::{Plan, RunEnd, check};
use base::interrupt;
use base::parallel::parallel;
use base::progress::Progress;
use results::render::grid::Grid;
use results::runs::markers::Typed;
use supply::mutant::{Expected, Kind, Mutant};

/// Limits of board time for a test and for the quick suite, in seconds. The limits exist because a mutant may hang.
const TEST_LIMIT_S: f64 = 60.0;
const SUITE_LIMIT_S: f64 = 150.0;
/// Maximum number of rounds of a test. A test ends with its first report. Many rounds may be necessary. For some
/// mutants, stale data must stay in its set longer than the other lines or entries of the set. For others, a thread
/// must write within a few instructions.
const ROUNDS: u32 = 64;
/// Longest reason in the table, in characters.
const REASON: usize = 70;

/// A boot, and the addresses of the patched instructions.
pub type Patched = (Boot, Vec<u32>);

/// Set-up shared by all mutants.
pub struct Suite<'a> {
    /// The board.
    pub board: &'a BoardSpec,
    /// Prepares the boot of a mutant.
    pub boot: &'a (dyn Fn(&Mutant) -> Result<Patched> + Sync),
    /// Kernel with symbols, for function names.
    pub vmlinux: Option<&'a Path>,
    /// [`Plan::functions`].
    pub functions: KernelFunctions,
    /// Suppressions of the known reports that the complete suite causes on the unpatched kernel.
    pub suppressions: &'a [Suppression],
    /// What is connected to the board.
    pub outside: &'a Outside,
    /// Name of the program whose tests the list names.
    pub program: &'a str,
    /// Number of mutants that run at the same time.
    pub jobs: usize,
}

/// Result of one mutant's run.
pub struct Tried {
    /// The mutant.
    pub mutant: Mutant,
    /// Victim policy of the run.
    pub victims: Victims,
    /// Number of executions of the patched instructions.
    pub reached: u64,
    /// Reports that are not suppressed, in chronological order.
    pub reports: Vec<Report>,
    /// How the run ended.
    pub ended: RunEnd,
}

/// Verdict on a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The checker made a report of the expected kind.
    Found,
    /// The checker made only reports of other kinds.
    FoundAsOther,
    /// The mutant should be reported, but the checker made no report.
    Missed,
    /// The mutant should or may survive, and the checker made no report.
    Survived,
    /// The mutant should survive, but the checker made a report.
    FoundAfterAll,
}

/// Converts the kind that a list of mutants expects to the checker's kind.
fn report_kind(kind: Kind) -> ReportKind {
    match kind {
        Kind::StaleRead => ReportKind::StaleRead,
        Kind::StaleInstruction => ReportKind::StaleInstruction,
        Kind::StaleTranslation => ReportKind::StaleTranslation,
        Kind::UnseenDescriptor => ReportKind::UnseenDescriptor,
        Kind::LostByInvalidate => ReportKind::LostByInvalidate,
        Kind::OldOverNewer => ReportKind::OldOverNewer,
        Kind::TwoDirtyAliases => ReportKind::TwoDirtyAliases,
        Kind::StaleAfterDma => ReportKind::StaleAfterDma,
        Kind::StaleDmaRead => ReportKind::StaleDmaRead,
        Kind::OutlivesPage => ReportKind::OutlivesPage,
        Kind::TouchedWhileMapped => ReportKind::TouchedWhileMapped,
        Kind::MappedTwice => ReportKind::MappedTwice,
        Kind::WrongDirection => ReportKind::WrongDirection,
        Kind::DmaAfterUnmap => ReportKind::DmaAfterUnmap,
    }
}

impl Suite<'_> {
    /// Runs all mutants. Returns the results in the order of the list.
    pub fn run(&self, list: &[Mutant]) -> Result<Vec<Tried>> {
        let progress = Mutex::new(Progress::new("mutants", list.len() as u64));
        let tried = parallel(list, self.jobs, |mutant| {
            if interrupt::asked() {
                bail!("stopped");
            }
            let tried = self.one(mutant).with_context(|| mutant.name.clone())?;
            if let Ok(mut progress) = progress.lock() {
                progress.note(&tried.line());
                progress.step(&mutant.name);
            }
            Ok(tried)
        })?;
        if let Ok(progress) = progress.into_inner() {
            progress.finish("all mutants have run");
        }
        Ok(tried)
    }

    fn one(&self, mutant: &Mutant) -> Result<Tried> {
        let victims = self.board.core.victims;
        let expected = mutant.expected(victims);
        let survives = matches!(expected, Expected::Nothing(_) | Expected::Chance(_));
        // A single test causes no report on the unpatched kernel. It runs without suppressions, because a suppression
        // could hide the mutant. Exception: the test of a mutant with `beside` causes a known report and needs the
        // suppression of this report. This suppression must not hide the mutant.
        let (command, suppressions, limit_s) = match expected {
            Expected::Test(test) => {
                let command = format!("{} --only {test} --rounds {ROUNDS}", self.program);
                let list = mutant
                    .beside
                    .as_ref()
                    .map_or(&[][..], |_| self.suppressions);
                (command, list, TEST_LIMIT_S)
            }
            _ => {
                let command = format!("{} --quick", self.program);
                (command, self.suppressions, SUITE_LIMIT_S)
            }
        };
        // Each thread loads its own names, because `Names` keeps a cache of lines.
        let names = Names::of(self.vmlinux.filter(|_| !suppressions.is_empty()));
        let suppressed = |report: &Report| suppressions.iter().any(|s| s.covers(report, &names));
        let ends = |report: &Report| {
            !suppressed(report) && (survives || report.kind == report_kind(mutant.expect))
        };
        let (boot, patched) = (self.boot)(mutant)?;
        let findings = check(
            self.board,
            &boot,
            &Plan {
                command: Some(&Typed::by_run_guest(&command)),
                counted: &patched,
                distinctions: distinctions(suppressions, &names),
                functions: self.functions,
                limit_s,
                outside: self.outside,
                ends: &ends,
            },
        )?;
        let reports = findings.reports.into_iter().map(|(report, _)| report);
        Ok(Tried {
            mutant: mutant.clone(),
            victims,
            reached: findings.counted,
            reports: reports.filter(|r| !suppressed(r)).collect(),
            ended: findings.ended,
        })
    }
}

impl Tried {
    /// Compares the reports with the expectation.
    pub fn verdict(&self) -> Verdict {
        let expected = report_kind(self.mutant.expect);
        match self.mutant.expected(self.victims) {
            Expected::Nothing(_) | Expected::Chance(_) if self.reports.is_empty() => {
                Verdict::Survived
            }
            Expected::Nothing(_) => Verdict::FoundAfterAll,
            _ if self.reports.is_empty() => Verdict::Missed,
            _ if self.reports.iter().any(|r| r.kind == expected) => Verdict::Found,
            _ => Verdict::FoundAsOther,
        }
    }

    /// Returns whether the run agrees with the list of mutants.
    pub fn is_as_said(&self, names: &Names) -> bool {
        let named = || self.named(names).is_some() || self.mutant.unnamed.is_some();
        match self.verdict() {
            Verdict::Missed | Verdict::FoundAfterAll => false,
            // An unfinished run proves nothing. Exception: if chance decides whether the mutant is reported, an
            // unfinished run is accepted too.
            Verdict::Survived => {
                self.mutant.chance.is_some() || matches!(self.ended, RunEnd::Finished(_))
            }
            Verdict::Found | Verdict::FoundAsOther => named(),
        }
    }

    /// Returns the report to show. It is the first report of the expected kind. If no report has this kind, it is the
    /// first of all reports.
    fn report(&self) -> Option<&Report> {
        let expected = report_kind(self.mutant.expect);
        let mut reports = self.reports.iter();
        reports
            .find(|r| r.kind == expected)
            .or(self.reports.first())
    }

    /// Returns the role of the broken function in the first report that contains this function. Returns `None` if no
    /// report contains it.
    fn named(&self, names: &Names) -> Option<&'static str> {
        let is = |pc: u32| self.mutant.functions().any(|name| names.is_in(pc, name));
        let mut reports = self.reports.iter();
        reports.find_map(|report| named(report, &is))
    }

    /// Returns the function that last stored to a register of the report's device. It is a function of the device's
    /// driver.
    fn driver(&self, names: &Names) -> Option<String> {
        let bell = self.report()?.trace.device.as_ref()?.bell.as_ref()?;
        Some(names.function(bell.pc))
    }

    /// Returns the reported kinds without duplicates.
    fn kinds(&self) -> Vec<&'static str> {
        let mut kinds: Vec<&str> = self.reports.iter().map(|r| r.kind.name()).collect();
        let mut seen = Vec::new();
        kinds.retain(|k| {
            let new = !seen.contains(k);
            seen.push(*k);
            new
        });
        kinds
    }

    /// Returns the list's reason why the mutant should or may survive.
    fn why_it_survives(&self) -> Option<&str> {
        match self.mutant.expected(self.victims) {
            Expected::Nothing(reason) | Expected::Chance(reason) => Some(reason),
            _ => None,
        }
    }

    /// Returns the result as one line, which is printed before the table is complete.
    fn line(&self) -> String {
        let reached = self.reached;
        let (name, verdict) = (&self.mutant.name, self.verdict().words());
        format!("{name}: {verdict}; the patched code was executed {reached} times")
    }

    fn ended_words(&self) -> String {
        match &self.ended {
            RunEnd::Finished(Some(0)) => "the test passed".to_string(),
            RunEnd::Finished(Some(status)) => format!("the test ended with {status}"),
            RunEnd::Finished(None) | RunEnd::Report => String::new(),
            RunEnd::BootLimit => "the boot hung".to_string(),
            RunEnd::Limit => "the test hung".to_string(),
            RunEnd::Interrupted => "interrupted".to_string(),
            RunEnd::Stopped(what) => what.lines().next().unwrap_or("").to_string(),
        }
    }
}

impl Verdict {
    fn words(self) -> &'static str {
        match self {
            Verdict::Found => "reported",
            Verdict::FoundAsOther => "reported as another kind",
            Verdict::Missed => "MISSED",
            Verdict::Survived => "survives",
            Verdict::FoundAfterAll => "reported unexpectedly",
        }
    }
}

/// Returns the role that a function has in a report. `is` decides whether an address belongs to the function.
fn named(report: &Report, is: &dyn Fn(u32) -> bool) -> Option<&'static str> {
    let trace = &report.trace;
    let by = |pc: u32, callers: &[u32]| is(pc) || callers.iter().any(|pc| is(*pc));
    let called = |calls: &[Call]| calls.iter().any(|c| is(c.from) || is(c.to));
    let switched = trace.switched.as_ref();
    let freed = report.page.as_ref().and_then(|page| page.freed.as_ref());
    let freed = freed.is_some_and(|freed| by(freed.pc, &freed.callers));
    let bell = trace
        .device
        .as_ref()
        .and_then(|device| device.bell.as_ref());
    let started = bell.is_some_and(|bell| by(bell.pc, &bell.callers));
    let places = [
        ("writer", by(report.writer.pc, &trace.written)),
        ("user", by(report.context.pc, &trace.used)),
        (
            "mapping",
            trace.mapped.iter().any(|m| {
                let before = m.before.as_ref();
                by(m.writer.pc, &m.callers) || before.is_some_and(|(w, c)| by(w.pc, c))
            }),
        ),
        ("device's start", started),
        ("freed page", freed),
        ("switch", switched.is_some_and(|s| by(s.pc, &s.callers))),
        ("called next", called(&trace.next)),
        ("given address", called(&trace.given)),
        ("history", report.since.iter().any(|e| is(e.pc))),
    ];
    places
        .into_iter()
        .find_map(|(role, found)| found.then_some(role))
}

/// Headings of the table of mutants.
const HEADINGS: [&str; 9] = [
    "mutant",
    "expected",
    "reported",
    "used by",
    "written by",
    "named as",
    "driver",
    "reached",
    "verdict",
];

/// Returns a table with one row per mutant, and a summary line.
pub fn table(tried: &[Tried], names: &Names) -> String {
    let mut table = Grid::new(HEADINGS.len(), HEADINGS);
    for t in tried {
        table.add_row(row(t, names));
    }
    format!("{table}\n{}", summary(tried, names))
}

fn row(t: &Tried, names: &Names) -> [String; 9] {
    let (access, writer) = t
        .report()
        .map_or_else(Default::default, |r| (names.user_of(r), names.writer_of(r)));
    let verdict = match t.verdict() {
        Verdict::Survived => {
            let reason = t.why_it_survives().unwrap_or_default();
            match t.ended_words().as_str() {
                "the test passed" => format!("survives: {}", shortened(reason)),
                ended => format!("survives, but {ended}: {}", shortened(reason)),
            }
        }
        Verdict::Missed => format!("MISSED: {}", t.ended_words()),
        other => other.words().to_string(),
    };
    let named = t.report().map(|_| t.named(names).unwrap_or("NOT"));
    [
        t.mutant.name.clone(),
        report_kind(t.mutant.expect).name().to_string(),
        t.kinds().join(", "),
        access,
        writer,
        named.unwrap_or_default().to_string(),
        t.driver(names).unwrap_or_default(),
        t.reached.to_string(),
        verdict,
    ]
}

fn summary(tried: &[Tried], names: &Names) -> String {
    let count = |v: Verdict| tried.iter().filter(|t| t.verdict() == v).count();
    let reported = tried.iter().filter(|t| t.report().is_some()).count();
    let named = tried.iter().filter(|t| t.named(names).is_some()).count();
    let drivers = tried.iter().filter(|t| t.driver(names).is_some()).count();
    let drivers = match drivers {
        0 => String::new(),
        _ => format!(", and a function of the device's driver of {drivers}"),
    };
    format!(
        "{} mutants: {} reported, {} reported as another kind, {} missed; {} survive as expected, {} reported \
         unexpectedly; reports name the broken function of {named} of {reported} mutants{drivers}",
        tried.len(),
        count(Verdict::Found),
        count(Verdict::FoundAsOther),
        count(Verdict::Missed),
        count(Verdict::Survived),
        count(Verdict::FoundAfterAll)
    )
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(REASON) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_string(),
    }
}

/// Returns the results as JSON, one object per mutant.
pub fn json(tried: &[Tried], names: &Names) -> Value {
    tried
        .iter()
        .map(|t| {
            json!({
                "mutant": t.mutant.name,
                "function": t.mutant.function,
                "test": t.mutant.test,
                "expected": report_kind(t.mutant.expect).name(),
                "reported": t.kinds(),
                "used_by": t.report().map(|r| names.user_of(r)),
                "written_by": t.report().map(|r| names.writer_of(r)),
                "named_as": t.named(names),
                "driver": t.driver(names),
                "unnamed": t.mutant.unnamed,
                "reached": t.reached,
                "cycle": t.report().map(|r| r.context.cycle),
                "needed": t.report().map(Report::needed),
                "verdict": t.verdict().words(),
                "survives": t.why_it_survives(),
                "ended": t.ended_words(),
            })
        })
        .collect()
}

#[cfg(test)]
#[path = "mutants_tests.rs"]
mod tests;
