// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assumptions of the report: every number of a board, with its source and its confidence.

use std::collections::BTreeSet;

use board::spec::Confidence;

use base::boards;
use base::distinct::distinct;
use results::render::grid::Grid;
use results::render::part::Part;
use results::render::plot::tick;
use results::runs::point::short_kernel;
use results::runs::run::Run;

const ALL: [(Confidence, &str); 4] = [
    (Confidence::Documented, "documented"),
    (Confidence::Inferred, "inferred"),
    (Confidence::Recalled, "recalled"),
    (Confidence::Estimated, "estimated"),
];

/// Lists boards, kernels and Linux versions of the runs in a few sentences. Returns an empty text without runs. Boards
/// in `recorded` that no run used are listed as boards from records.
pub fn measured_on<'a>(runs: impl Iterator<Item = &'a Run> + Clone, recorded: &[&str]) -> String {
    let boards = distinct(runs.clone().map(|run| run.point.board.as_str()));
    if boards.is_empty() {
        return String::new();
    }
    let kernels = distinct(runs.clone().map(|run| short_kernel(&run.point.kernel)));
    let version = |run: &'a Run| run.provenance.kernel_version.as_str();
    let versions: BTreeSet<&str> = runs
        .map(|run| version(run).trim_end_matches("-warmswitch"))
        .collect();
    let recorded = recorded.iter().filter(|name| !boards.contains(name));
    let described = |name: &&str| match boards::load(name) {
        Ok((spec, _)) => format!(
            "{name} ({}: {} at {:.0} MHz, caches of {} + {} KB)",
            spec.title,
            spec.core.core.name,
            spec.cpu_hz as f64 / 1e6,
            spec.core.icache.size / 1024,
            spec.core.dcache.size / 1024
        ),
        Err(_) => name.to_string(),
    };
    let recorded: Vec<String> = recorded.map(described).collect();
    let recorded = match recorded.is_empty() {
        true => String::new(),
        false => format!(" From records: {}.", recorded.join("; ")),
    };
    let boards: Vec<String> = boards.iter().map(described).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    format!(
        "Simulated boards, with estimated memory timing: {}.{recorded} Kernels: {}, of Linux {}; plain has no FCSE.",
        boards.join("; "),
        kernels.join(", "),
        versions.join(", ")
    )
}

/// Returns one part per board of the runs.
pub fn parts<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<Part> {
    let boards = distinct(runs.map(|run| (&*run.point.board, &*run.provenance.board_hash)));
    let parts = boards.into_iter().map(|(board, hash)| part(board, hash));
    parts.collect()
}

fn part(board: &str, hash: &str) -> Part {
    let spec = match boards::load(board) {
        Ok((spec, now)) if now == hash => spec,
        _ => {
            return Part {
                heading: format!("{board}: numbers unknown"),
                text: "The board's file has changed since these runs.".into(),
                folded: true,
                ..Part::default()
            };
        }
    };
    let word = |confidence| {
        let found = ALL.iter().find(|(c, _)| *c == confidence);
        found.map_or("", |(_, word)| word)
    };
    let counts = ALL.map(|(confidence, word)| {
        let all = spec.quantities.iter();
        (all.filter(|q| q.confidence == confidence).count(), word)
    });
    let counts = counts.iter().filter(|(n, _)| *n > 0);
    let counts: Vec<String> = counts.map(|(n, word)| format!("{n} {word}")).collect();
    let rows = spec.quantities.iter().map(|q| {
        vec![
            q.key.clone(),
            word(q.confidence).to_string(),
            q.source.clone(),
            tick(&q.value),
        ]
    });
    Part {
        heading: format!("{board}: {}", counts.join(", ")),
        text: format!(
            "{}: core, clocks, caches and memory. A name ends with its unit: _bus means bus clocks, \
             _cpu core cycles.",
            spec.title
        ),
        folded: true,
        tables: vec![Grid {
            texts: 3,
            headings: ["name", "confidence", "source", "value"]
                .map(String::from)
                .to_vec(),
            rows: rows.collect(),
        }],
        ..Part::default()
    }
}
