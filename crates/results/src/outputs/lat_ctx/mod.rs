// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lat_ctx`: context switches in a ring of tasks, measured by the guest's clock and by the core's
//! counters.

mod attribution;
mod compare;
mod parts;
mod plot;
mod tables;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{OutputKind, ReportInput, json_line};
use crate::figures::measure::{Measures, Samples};
use crate::figures::published::Papers;
use crate::figures::warnings::Warnings;
use crate::render::grid;
use crate::render::part::Part;
use crate::runs::run::Run;

use compare::compare;

/// Output kind of `lat_ctx`.
pub struct Rings;

impl Measures for Rings {
    fn metrics(&self) -> Vec<&'static str> {
        vec!["switch"]
    }

    fn repeats(&self) -> bool {
        true
    }

    fn samples(&self, run: &Run) -> Vec<Samples> {
        let Some(guest) = LatCtx::of(run) else {
            return Vec::new();
        };
        let us = guest.switch_ns.iter().map(|ns| ns / 1e3).collect();
        vec![("switch", "us", us)]
    }
}

impl OutputKind for Rings {
    fn name(&self) -> &'static str {
        "lat_ctx"
    }

    fn json(&self, run: &Run) -> Result<Value> {
        Ok(serde_json::to_value(read(&run.output)?)?)
    }

    fn text(&self, input: &ReportInput) -> String {
        let comparison = compare(input.runs, &input.papers.envelope);
        if comparison.rows.is_empty() {
            return format!("{}\n\n", grid::figures(input.measured));
        }
        tables::text(&comparison)
    }

    fn parts(&self, input: &ReportInput) -> Result<Vec<Part>> {
        let envelope = &input.papers.envelope;
        parts::parts(input.experiment, &compare(input.runs, envelope), envelope)
    }

    fn document(&self, input: &ReportInput) -> Result<Vec<(&'static str, Value)>> {
        let comparison = compare(input.runs, &input.papers.envelope);
        Ok(vec![
            ("rows", json!(comparison.rows)),
            ("against", json!(comparison.against)),
            ("envelope", json!(comparison.envelope)),
        ])
    }

    fn warnings(&self, runs: &[Run], papers: &Papers) -> Warnings {
        compare(runs, &papers.envelope).warnings
    }
}

/// The guest's JSON line. Times are in nanoseconds per hop, with one value per timed section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct LatCtx {
    guest: String,
    format: u32,
    mode: String,
    tasks: u32,
    size_kb: u32,
    /// Number of rounds per timed section.
    rounds: u32,
    /// Time of a hop's work without the switch.
    overhead_ns: Vec<f64>,
    /// Time of a hop in the ring.
    hop_ns: Vec<f64>,
    /// Time of a switch: a hop minus the median overhead.
    switch_ns: Vec<f64>,
}

impl LatCtx {
    /// Reads the output of a run.
    fn of(run: &Run) -> Option<LatCtx> {
        read(&run.output).ok()
    }

    /// Number of hops in `sections` timed sections.
    fn hops(&self, sections: u64) -> u64 {
        sections * u64::from(self.rounds) * u64::from(self.tasks)
    }
}

fn read(output: &str) -> Result<LatCtx> {
    let result: LatCtx = json_line("lat_ctx", output)?;
    if result.switch_ns.is_empty() || result.switch_ns.len() != result.hop_ns.len() {
        bail!(
            "the result line of lat_ctx has {} switch samples and {} hop samples",
            result.switch_ns.len(),
            result.hop_ns.len()
        );
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::for_tests::made_up_runs;

    #[test]
    fn a_failed_guest_is_reported_with_its_last_words() {
        let error = read("lat_ctx: the overhead is not stable\r\n").unwrap_err();
        assert!(
            error.to_string().contains("the overhead is not stable"),
            "{error}"
        );
    }

    #[test]
    fn a_damaged_or_cut_line_is_an_error_and_no_result() {
        let line = made_up_runs().remove(0).output;
        assert_eq!(read(&line).unwrap().switch_ns.len(), 11);
        assert!(read(&line[..60]).is_err());
        let switches = line.find("\"switch_ns\":[").unwrap();
        let end = switches + line[switches..].find(']').unwrap();
        let empty = line[..switches].to_string() + "\"switch_ns\":[" + &line[end..];
        assert!(
            read(&empty)
                .unwrap_err()
                .to_string()
                .contains("0 switch samples")
        );
    }
}
