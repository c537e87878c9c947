// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renders the tables of an experiment for the terminal. The tables depend only on the experiment's material.

use std::fmt::Write as _;

use crate::report::material::Material;
use base::distinct::distinct;
use base::paths;
use results::figures::claim::{self, Pair, Verdict};
use results::figures::figure::{Measured, figure};
use results::figures::headline::{self, Line};
use results::figures::published::Published;
use results::figures::versus::{self, Versus};
use results::render::boards;
use results::render::grid::{Grid, wrapped};
use results::runs::campaign::Failed;
use results::runs::point::short_kernel;

/// Maximum length of a table of boards on the terminal, in lines.
const SCREEN: usize = 64;

/// Renders everything that `compare` prints about an experiment.
pub fn render(material: &Material) -> String {
    let results = &material.results;
    let mut text = material.kind.text(&material.told());
    text.push_str(&verdicts(&results.verdicts));
    if let Some(caption) = versus::caption(&results.versus) {
        let _ = writeln!(text, "{}{}\n", wrapped(&caption), versus(&results.versus));
    }
    text.push_str(&boards_text(&boards::side_by_side(&results.measured)));
    text.push_str(&published(&results.beside, &material.papers.published));
    for entry in &material.experiment.not_applicable {
        text.push_str(&wrapped(&format!("not applicable: {entry}")));
    }
    for warning in &results.warnings {
        text.push_str(&wrapped(&format!("warning: {warning}")));
    }
    text
}

/// Returns the table of headlines. It has the figures of all kernels, and their ratios to the first kernel's figures.
pub fn headlines(lines: &[&Line]) -> Grid {
    let kernels = headline::kernels(lines);
    let has_papers = lines.iter().any(|line| line.paper.is_some());
    let row = |line: &&Line| {
        let cells = kernels.iter().map(|k| line.cell(k));
        let paper = has_papers.then(|| line.of_paper());
        let cells = [line.what()].into_iter().chain(cells);
        cells.chain(paper).collect()
    };
    let mut headings = headings("effect of FCSE", &kernels);
    headings.extend(has_papers.then(|| "the paper's ratios".to_string()));
    Grid {
        texts: 1,
        headings,
        rows: lines.iter().map(row).collect(),
    }
}

/// Returns a table with a line per metric. Each kernel except the first has a column.
pub fn versus(all: &[Versus]) -> Grid {
    let metrics = distinct(all.iter().map(|v| v.metric));
    let kernels = distinct(all.iter().map(|v| v.place.kernel.as_str()));
    let row = |metric: &&str| {
        let cells = kernels.iter().map(|k| versus::judged(all, metric, k));
        [metric.to_string()].into_iter().chain(cells).collect()
    };
    Grid {
        texts: 1,
        headings: headings("metric", &kernels),
        rows: metrics.iter().map(row).collect(),
    }
}

fn headings(first: &str, kernels: &[&str]) -> Vec<String> {
    let kernels = kernels.iter().map(|k| short_kernel(k));
    [first]
        .into_iter()
        .chain(kernels)
        .map(String::from)
        .collect()
}

/// Renders the tables that compare boards, unless they are too long for a terminal.
fn boards_text(grids: &[Grid]) -> String {
    let rows: usize = grids.iter().map(|grid| grid.rows.len()).sum();
    match rows {
        0 => String::new(),
        1..=SCREEN => {
            let grids: Vec<String> = grids.iter().map(Grid::to_string).collect();
            format!("{}{}\n\n", wrapped(boards::CAPTION), grids.join("\n"))
        }
        more => format!("The report compares the boards, in a table of {more} lines.\n\n"),
    }
}

/// Renders the verdicts on the claims.
pub fn verdicts(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    for v in verdicts {
        let (word, reason) = (v.word(), v.reason());
        text.push_str(&wrapped(&format!(
            "{word}: {} ({}). {reason}.",
            v.text, v.source
        )));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Lists the points without a result. Each has the reason and the path of its console log.
pub fn failed_text(failed: &[Failed]) -> String {
    let line = |f: &Failed| {
        let console = paths::shown(&paths::out().join(&f.console));
        format!(
            "FAILED: {}: {}\n    console: {console}\n",
            f.point.label(),
            f.reason
        )
    };
    failed.iter().map(line).collect()
}

/// Renders the table of published and measured figures.
pub fn published(beside: &[Pair], published: &Published) -> String {
    if beside.is_empty() {
        return String::new();
    }
    let headings = [
        "published figure, not fitted to",
        "paper",
        "its board",
        "here",
        "board\nhere",
        "here /\npaper",
    ];
    let mut table = Grid::new(1, headings);
    for pair in beside {
        let ratio = |m: &Measured| Some(format!("{:.2}", m.value / pair.figure.value?));
        table.add_row([
            pair.figure.what(),
            pair.figure.shown(),
            pair.figure.board.clone(),
            pair.each(|m| Some(format!("{} {}", figure(m), m.unit))),
            pair.each(|m| Some(m.place.board.replace('+', "\n+"))),
            pair.each(ratio),
        ]);
    }
    let notes = beside.iter().map(|pair| pair.figure);
    let notes = notes.filter(|f| !f.note.is_empty());
    let notes = notes.map(|f| wrapped(&format!("{} ({}): {}.", f.what(), f.place, f.note)));
    let sources = claim::papers(beside, published)
        .into_iter()
        .map(|title| wrapped(&format!("From: {title}.")));
    format!(
        "{table}\n{}{}\n",
        notes.collect::<String>(),
        sources.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::material::with_made_up;
    use base::terminal::for_tests::with_columns;
    use results::figures::figure::thousands;
    use results::runs::point::Place;

    #[test]
    fn the_table_shows_the_difference_the_envelope_the_claims_and_where_a_figure_is_from() {
        let text = with_made_up(render);
        for part in [
            "sam9263 (180 MHz)",
            "68.00",
            "12240",
            "envelope 64 (34 to 101) us: inside",
            "160.64 us",
            "lat_fifo, mean, linux",
            "lmbench reports lat_fifo per round",
            "open:",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
    }

    /// `GOLDEN=write cargo test` rewrites the golden files.
    #[test]
    fn tables_fit_80_100_and_120_columns() {
        for columns in [80, 100, 120] {
            let text = with_columns(columns, || with_made_up(render));
            let text = format!("SPDX-License-Identifier: MIT OR Apache-2.0\n{text}");
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(columns), "{text}");
            let golden = paths::root().join(format!(
                "crates/warmswitch/src/report/golden/switch-cost-{columns}.txt"
            ));
            if std::env::var("GOLDEN").is_ok_and(|golden| golden == "write") {
                std::fs::write(&golden, &text).unwrap();
            }
            assert_eq!(
                text,
                std::fs::read_to_string(&golden).unwrap(),
                "{golden:?}"
            );
        }
    }

    #[test]
    fn figures_have_the_digits_that_tell_something() {
        let mut m = Measured {
            place: Place::default(),
            metric: "max",
            unit: "us",
            value: 194.2,
            low: 194.1,
            high: 194.3,
            seeds: vec![194.2],
            repetitions: Vec::new(),
            uneven: false,
            samples: None,
        };
        assert_eq!(figure(&m), "194");
        (m.value, m.low, m.high) = (3.259, 3.0, 4.0);
        assert_eq!(figure(&m), "3.26 (3.00..4.00)");
        let counts = [7, 1_000, 1_234_567].map(thousands);
        assert_eq!(counts, ["7", "1,000", "1,234,567"]);
    }
}
