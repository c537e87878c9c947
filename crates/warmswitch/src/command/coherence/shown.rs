// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of a checked run: text, JSON, TAP and the exit code.

use anyhow::{Result, bail};
use serde_json::json;

use super::{Args, LIMIT_S};
use crate::Outcome;
use crate::coherence::baseline::{self, Baseline, Counts};
use crate::coherence::render::Style;
use crate::coherence::suppress::Suppression;
use crate::coherence::{Cost, Findings, Group, RunEnd};
use base::{colour, shell};
use results::runs::markers;
use watch::checker::REPORTS;

/// A result, with everything that its output needs.
pub struct Shown<'a> {
    /// Options of the command line.
    pub args: &'a Args,
    /// Reports and end of the run.
    pub findings: &'a Findings,
    /// Cost of checking, with `--cost`.
    pub cost: Option<Cost>,
    /// Groups of equal reports.
    pub groups: Vec<Group>,
    /// Suppressions that groups refer to.
    pub suppressions: &'a [Suppression],
    /// Baseline for this kernel, board and command, if it is recorded.
    pub baseline: Option<&'a Baseline>,
    /// Names, clock and replay command.
    pub style: Style<'a>,
}

impl Shown<'_> {
    /// Returns the command's output. If the run ended early, returns the output up to that moment.
    fn output(&self) -> String {
        String::from_utf8_lossy(&self.findings.said).into_owned()
    }

    fn reported(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|g| g.suppression.is_none())
    }

    /// Prints the result in the chosen format.
    pub fn print(&self) -> Result<()> {
        if self.args.json {
            println!("{}", serde_json::to_string_pretty(&self.json())?);
        } else if self.args.tap {
            print!("{}", self.tap());
        } else {
            colour::print(&self.text());
        }
        Ok(())
    }

    fn text(&self) -> String {
        let mut text = self.output();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        for group in self.reported() {
            text.push_str(&self.style.group(group));
        }
        for (n, entry) in self.suppressions.iter().enumerate() {
            let count: u64 = self.suppressed(n).map(|g| g.count).sum();
            if count > 0 {
                let (name, label, reason) = (&entry.name, entry.label(), &entry.reason);
                let allowed = self.baseline.map_or(String::new(), |baseline| {
                    let most = baseline.allows(name).times;
                    format!(" of {most} that the baseline allows")
                });
                text.push_str(&format!(
                    "suppressed {count} times{allowed}: {name} ({label}): {reason}\n"
                ));
            } else if self.args.keep_going && !self.args.command.is_empty() {
                let (name, label) = (&entry.name, entry.label());
                text.push_str(&format!("note: suppression not used: {name} ({label})\n"));
            }
        }
        if let Some(mutant) = &self.args.mutant {
            let count = self.findings.counted;
            text.push_str(&format!("{mutant} was reached {count} times\n"));
        }
        if self.findings.reports.len() == REPORTS {
            text.push_str(&format!(
                "the run ended early: the checker keeps at most {REPORTS} causes\n"
            ));
        }
        for more in self.exceeded() {
            text.push_str(&format!("{more}\n"));
        }
        let count = self.reported().count();
        if count == 0 && self.judged().is_err() {
            return text;
        }
        let (seconds, instructions) = (self.findings.seconds, self.findings.instructions);
        text.push_str(&format!(
            "{count} report{}; {seconds:.3} s of board time, {} million instructions checked\n",
            if count == 1 { "" } else { "s" },
            instructions / 1_000_000
        ));
        if let Some(Cost { on_s, off_s }) = self.cost {
            let ratio = on_s / off_s;
            text.push_str(&format!(
                "{on_s:.2} s of this machine's processor time; {off_s:.2} s for the same cycles without \
                 the checker: {ratio:.2} times\n"
            ));
        }
        text
    }

    fn suppressed(&self, entry: usize) -> impl Iterator<Item = &Group> {
        self.groups
            .iter()
            .filter(move |g| g.suppression == Some(entry))
    }

    /// Counts the reports that each suppression covered.
    fn counts(&self) -> Counts {
        baseline::counts(&self.groups, self.suppressions)
    }

    /// Returns one line for each suppression that covered more reports than the baseline allows.
    fn exceeded(&self) -> Vec<String> {
        let Some(baseline) = self.baseline else {
            return Vec::new();
        };
        let counts = self.counts();
        let more = counts
            .iter()
            .filter(|(name, count)| baseline.is_exceeded(name, **count));
        more.map(|(name, count)| {
            let most = baseline.allows(name);
            format!(
                "{name}: {} reports were suppressed, {} times; the baseline allows {}, {} times. This suppression may \
                 hide another bug: --suppressions /dev/null shows all reports",
                count.reports, count.times, most.reports, most.times
            )
        })
        .collect()
    }

    /// Returns whether the run is compared with a baseline.
    fn is_compared(&self) -> bool {
        !self.args.chaos.is_asked() && !self.args.write_baseline
    }

    /// Returns whether reports were suppressed although no baseline gives their expected number.
    fn lacks_baseline(&self) -> bool {
        self.baseline.is_none() && !self.counts().is_empty()
    }

    fn json(&self) -> serde_json::Value {
        let reports: Vec<_> = self
            .reported()
            .map(|g| self.style.json(&g.first, g.count))
            .collect();
        let suppressed: Vec<_> = self
            .suppressions
            .iter()
            .enumerate()
            .map(|(n, entry)| {
                let count: u64 = self.suppressed(n).map(|g| g.count).sum();
                let most = self
                    .baseline
                    .map(|baseline| baseline.allows(&entry.name).times);
                json!({
                    "name": entry.name,
                    "what": entry.label(),
                    "reason": entry.reason,
                    "count": count,
                    "allowed": most,
                })
            })
            .collect();
        json!({
            "board": self.args.target.board(),
            "kernel": self.args.target.kernel().ok(),
            "victims": self.args.target.victims,
            "mutant": self.args.mutant,
            "reached": self.findings.counted,
            "command": shell::shown(&self.args.command),
            "ended": self.findings.ended.word(),
            "status": self.findings.ended.status(),
            "output": self.output(),
            "cycles": self.findings.cycles,
            "seconds": self.findings.seconds,
            "instructions": self.findings.instructions,
            "processor_s": self.cost.map(|c| json!({ "on": c.on_s, "off": c.off_s })),
            "reports": reports,
            "suppressed": suppressed,
            "baseline": self.baseline.is_some(),
            "exceeded": self.exceeded(),
        })
    }

    fn tap(&self) -> String {
        let mut text = "TAP version 14\n".to_string();
        for line in self.output().lines() {
            text.push_str(&format!("# {line}\n"));
        }
        let mut number = 0;
        for group in self.reported() {
            number += 1;
            let wrong = group.first.kind.name();
            let names = self.style.names;
            text.push_str(&format!(
                "not ok {number} - {wrong}: used by {}, written by {}\n",
                names.user_of(&group.first),
                names.writer_of(&group.first)
            ));
            for line in self.style.text(&group.first, group.count).lines() {
                text.push_str(&format!("# {line}\n"));
            }
        }
        for more in self.exceeded() {
            number += 1;
            text.push_str(&format!("not ok {number} - {more}\n"));
        }
        if let (0, Err(error)) = (number, self.judged()) {
            let error = error.to_string();
            text.push_str(&format!(
                "Bail out! {}\n",
                error.lines().next().unwrap_or("")
            ));
            return text;
        }
        if number == 0 {
            number = 1;
            text.push_str("ok 1 - no stale data was used\n");
        }
        if let Some(status) = self.failed() {
            text.push_str(&format!("# the command ended with {status}\n"));
        }
        text.push_str(&format!("1..{number}\n"));
        text
    }

    /// Returns the exit code. Prints notes on details that the exit code does not show.
    pub fn outcome(&self) -> Result<Outcome> {
        if self.findings.ended == RunEnd::Interrupted && self.args.bisect {
            eprintln!("error: stopped");
            return Ok(Outcome::Abort);
        }
        let is_exceeded = self.is_compared() && !self.exceeded().is_empty();
        let outcome = match self.judged() {
            Ok(outcome) => outcome,
            Err(error) if !is_exceeded || self.findings.ended == RunEnd::Interrupted => {
                return Err(error);
            }
            // An exceeded baseline determines the exit code, no matter how the command ended.
            Err(error) => {
                eprintln!("note: {error:#}");
                Outcome::Done
            }
        };
        if self.findings.ended == RunEnd::Limit {
            let limit_s = self.args.limit.unwrap_or(LIMIT_S);
            eprintln!("note: --limit ended the command after {limit_s} s of board time");
        }
        if let (Outcome::Done, Some(status)) = (&outcome, self.failed()) {
            eprintln!("note: the command ended with {status}");
        }
        match outcome {
            Outcome::Done => self.against_baseline(),
            other => Ok(other),
        }
    }

    /// Returns the exit code of a run without a report. The number of suppressed reports determines it.
    fn against_baseline(&self) -> Result<Outcome> {
        let args = self.args;
        if !self.is_compared() {
            return Ok(Outcome::Done);
        }
        if self.lacks_baseline() {
            let what = "no baseline for this kernel, board and command, so the number of suppressed \
                        reports was not checked";
            if args.bisect {
                bail!("{what}; record one at a good commit with --baseline FILE --write-baseline");
            }
            eprintln!("note: {what}; --write-baseline records one");
        }
        Ok(match self.exceeded().is_empty() {
            true => Outcome::Done,
            false if args.bisect => Outcome::No,
            false => Outcome::More,
        })
    }

    /// Returns the outcome that the run proves, or an error if the run proves nothing.
    fn judged(&self) -> Result<Outcome> {
        if self.reported().next().is_some() {
            return Ok(Outcome::No);
        }
        match &self.findings.ended {
            RunEnd::Limit if self.args.bisect => {
                bail!(
                    "--limit ended the command early, so a run without a report proves nothing; set a longer limit"
                )
            }
            RunEnd::Limit if self.args.limit.is_some() => Ok(Outcome::Done),
            RunEnd::Finished(status) => {
                let status = status.unwrap_or(0);
                markers::check_that_it_ran(status, &self.output())?;
                if self.args.bisect && status != 0 {
                    bail!(
                        "the command ended with {status}, so a run without a report proves nothing"
                    );
                }
                if self.args.write_baseline && status != 0 {
                    bail!("--write-baseline: the command ended with {status}; nothing is recorded");
                }
                Ok(Outcome::Done)
            }
            RunEnd::Report => bail!(
                "suppressions cover all {REPORTS} causes that the checker can keep; it reports no further cause"
            ),
            RunEnd::Limit => bail!(
                "the command ran longer than {LIMIT_S} s of board time; set a longer limit with --limit{}",
                markers::last_words(&self.findings.console)
            ),
            RunEnd::BootLimit => bail!(
                "the guest did not boot{}",
                markers::last_words(&self.findings.console)
            ),
            RunEnd::Interrupted => bail!("stopped"),
            RunEnd::Stopped(what) => bail!("{what}{}", markers::last_words(&self.findings.console)),
        }
    }

    /// Returns the command's status if it is not 0.
    fn failed(&self) -> Option<i32> {
        self.findings.ended.status().filter(|status| *status != 0)
    }
}
