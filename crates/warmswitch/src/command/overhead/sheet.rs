// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of the results. The tables show means over the boards, the paper's figures, and verdicts.

use anyhow::Result;
use serde_json::{Value, json};

use crate::explain::overhead::{self, Charges, DOINGS, Lost, Verdict};
use results::figures::published::Published;
use results::render::grid::{self, Grid};

/// Number of interruptions of a task in the paper. The paper's figures are sums over these interruptions.
const PAPERS: u32 = 49;

/// A figure of one board: its name, its value in microseconds, and the paper's figure.
pub type Row = (String, f64, Option<f64>);

/// Clock and published figures, which are needed to show the results.
pub struct Sheet {
    cpu_hz: u64,
    published: Published,
}

/// A task that was interrupted.
pub struct Interrupted<'a> {
    pub work: &'a str,
    /// Kind of interruption, `switch` or `irq`, as in the names of the paper's figures.
    pub by: &'a str,
    pub times: u32,
}

impl Sheet {
    pub fn new(cpu_hz: u64) -> Result<Sheet> {
        let published = Published::load()?;
        Ok(Sheet { cpu_hz, published })
    }

    /// Returns a figure of the paper.
    pub fn published(&self, id: &str) -> Option<f64> {
        self.published.figure(&format!("david2007.{id}"))?.value
    }

    /// Returns the paper's figure for one interruption. Returns `None` if the task is not interrupted as often as in
    /// the paper. In a sweep, the counts and the data differ from the paper.
    pub fn interruption(&self, by: &str, work: &str, times: u32) -> Option<f64> {
        if times != PAPERS {
            return None;
        }
        let sum = self.published(&format!("indirect{PAPERS}.{by}.{work}"))?;
        Some(sum / f64::from(PAPERS))
    }

    /// Converts the cycles of `count` events to microseconds per event.
    pub fn us(&self, cycles: f64, count: u32) -> f64 {
        1e6 * cycles / self.cpu_hz as f64 / f64::from(count)
    }

    /// Returns rows with the time that a task lost in user land, and with the time of its misses for each cause.
    pub fn lost(&self, interrupted: &Interrupted<'_>, exact: &Charges, task: usize) -> Vec<Row> {
        let Interrupted { work, by, times } = *interrupted;
        let us = |cycles: i64| self.us(cycles as f64, times);
        let published = self.interruption(by, work, times);
        let name = format!("exact: {work} in user land, per interruption");
        let mut rows = vec![(name, us(exact.user[task]), published)];
        for (doing, missed) in DOINGS.into_iter().zip(exact.missed[task]) {
            rows.push((format!("  missed, {doing}"), us(missed), None));
        }
        rows
    }

    /// Compares two figures of a task's loss. One is the difference between two runs. The other is the cost of the
    /// misses that others caused.
    pub fn claim(&self, interrupted: &Interrupted<'_>, lost: &Lost) -> String {
        let us = |cycles: f64| self.us(cycles, interrupted.times);
        let verdict = match lost.verdict() {
            Verdict::Agree => "HOLDS, the figures agree within 5 %",
            Verdict::Explained => "HOLDS, the difference is explained",
            Verdict::Fails => "FAILS",
        };
        grid::wrapped(&format!(
            "{verdict}: {} lost {:.2} us per interruption by the difference of two runs, and {:.2} us by misses that \
             others caused. Misses that it caused itself: {:+.2} us, instructions of the hand-over: {:+.2} us, \
             unexplained: {:+.2} us",
            interrupted.work,
            us(lost.difference),
            us(lost.by_others),
            us(lost.by_itself),
            us(lost.issued),
            us(lost.unnamed())
        ))
    }
}

/// Compares the formula's cost with the exact cost, both in us.
pub fn formula_holds(what: &str, [formula, exact]: [f64; 2]) -> String {
    let verdict = match overhead::agree(formula, exact) {
        true => "HOLDS",
        false => "FAILS",
    };
    grid::wrapped(&format!(
        "{verdict}: the formula's direct and indirect cost of {what}, {formula:.2} us, equals the exact sum, \
         {exact:.2} us, within 5 %"
    ))
}

/// Combines the rows of several boards. For each row, returns the name, the mean, minimum and maximum over the boards,
/// and the paper's figure.
pub fn over_seeds(each: &[Vec<Row>]) -> Vec<(String, [f64; 3], Option<f64>)> {
    let row = |n: usize| {
        let values: Vec<f64> = each.iter().map(|rows| rows[n].1).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (name, _, published) = each[0][n].clone();
        (name, [mean, least, most], published)
    };
    (0..each.first().map_or(0, Vec::len)).map(row).collect()
}

/// Combines the rows of several boards, and returns a table under this heading.
pub fn table(heading: &str, each: &[Vec<Row>]) -> String {
    let shown = |us: f64| format!("{us:.2}");
    let rows = over_seeds(each)
        .into_iter()
        .map(|(name, [mean, least, most], published)| {
            let published = published.map(shown).unwrap_or_default();
            vec![name, shown(mean), shown(least), shown(most), published]
        });
    let headings = [heading, "mean", "min", "max", "paper of 2007"];
    let grid = Grid {
        texts: 1,
        headings: headings.map(String::from).into(),
        rows: rows.collect(),
    };
    grid.to_string()
}

/// Combines the rows of several boards, and returns them as JSON.
pub fn rows_json(each: &[Vec<Row>]) -> Vec<Value> {
    let row = |(name, [mean, least, most], published): (String, [f64; 3], Option<f64>)| {
        json!({
            "what": name.trim(),
            "us": mean,
            "least_us": least,
            "most_us": most,
            "published_us": published,
        })
    };
    over_seeds(each).into_iter().map(row).collect()
}

/// Returns the means of pairs of figures.
pub fn mean(pairs: impl ExactSizeIterator<Item = [f64; 2]>) -> [f64; 2] {
    let count = pairs.len() as f64;
    let sum = pairs.fold([0.0; 2], |sum, pair| [0, 1].map(|n| sum[n] + pair[n]));
    sum.map(|us| us / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_of_the_paper_stands_beside_as_many_interruptions_only() {
        let sheet = Sheet::new(192_000_000).unwrap();
        let us = |times| sheet.interruption("switch", "sort", times);
        assert_eq!(us(PAPERS).map(|us| (us * 49.0).round()), Some(2500.0));
        assert_eq!(us(9), None);
        assert!(sheet.interruption("irq", "crc", PAPERS).is_some());
    }
}
