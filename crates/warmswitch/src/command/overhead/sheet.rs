// SPDX-License-Identifier: MIT OR Apache-2.0
//! How what was measured is shown: means over boards beside the paper's figures, and verdicts.

use anyhow::Result;
use serde_json::{Value, json};

use crate::explain::overhead::{self, Charges, DOINGS, Lost, Verdict};
use results::figures::published::Published;
use results::render::grid::{self, Grid};

/// Interruptions of a task in the paper, over which its figures are sums.
const PAPERS: u32 = 49;

/// A figure of one board: what it is, microseconds, the paper's.
pub type Row = (String, f64, Option<f64>);

/// What figures are shown by.
pub struct Sheet {
    cpu_hz: u64,
    published: Published,
}

/// What was interrupted, and how often.
pub struct Interrupted<'a> {
    pub work: &'a str,
    /// By what, as the paper's figures are named.
    pub by: &'a str,
    pub times: u32,
}

impl Sheet {
    pub fn new(cpu_hz: u64) -> Result<Sheet> {
        let published = Published::load()?;
        Ok(Sheet { cpu_hz, published })
    }

    /// A figure of the paper.
    pub fn published(&self, id: &str) -> Option<f64> {
        self.published.figure(&format!("david2007.{id}"))?.value
    }

    /// The paper's figure of an interruption, where a task is interrupted as often as there: a sweep works on other data, too.
    pub fn interruption(&self, by: &str, work: &str, times: u32) -> Option<f64> {
        if times != PAPERS {
            return None;
        }
        let all = self.published(&format!("indirect{PAPERS}.{by}.{work}"))?;
        Some(all / f64::from(PAPERS))
    }

    pub fn us(&self, cycles: f64, of: u32) -> f64 {
        1e6 * cycles / self.cpu_hz as f64 / f64::from(of)
    }

    /// What a task lost in user land, and by whose doing it missed something.
    pub fn lost(&self, of: &Interrupted<'_>, exact: &Charges, task: usize) -> Vec<Row> {
        let Interrupted { work, by, times } = *of;
        let us = |cycles: i64| self.us(cycles as f64, times);
        let published = self.interruption(by, work, times);
        let name = format!("exact: {work} in user land, an interruption");
        let mut rows = vec![(name, us(exact.user[task]), published)];
        for (doing, missed) in DOINGS.into_iter().zip(exact.missed[task]) {
            rows.push((format!("  missed, {doing}"), us(missed), None));
        }
        rows
    }

    /// Whether what a task lost by whose doing comes to what it lost by differencing two runs.
    pub fn claim(&self, of: &Interrupted<'_>, lost: &Lost) -> String {
        let us = |cycles: f64| self.us(cycles, of.times);
        let said = match lost.verdict() {
            Verdict::Agree => "HOLDS, agree within 5 %",
            Verdict::Explained => "HOLDS, the difference has names",
            Verdict::Fails => "FAILS",
        };
        grid::wrapped(&format!(
            "{said}: {} lost {:.2} us an interruption by differencing, {:.2} us by the doing of others; \
             its own replacements {:+.2}, instructions to hand over {:+.2}, without a name {:+.2}",
            of.work,
            us(lost.difference),
            us(lost.by_others),
            us(lost.by_itself),
            us(lost.issued),
            us(lost.unnamed())
        ))
    }
}

/// Whether the formula's answer is the exact one, us.
pub fn formula_holds(what: &str, [formula, exact]: [f64; 2]) -> String {
    let said = match overhead::agree(formula, exact) {
        true => "HOLDS",
        false => "FAILS",
    };
    grid::wrapped(&format!(
        "{said}: the formula's direct and indirect cost of {what}, {formula:.2} us, are the exact sum, \
         {exact:.2} us, within 5 %"
    ))
}

/// The same rows over all boards: mean, least, most, the paper's.
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

/// As text, under this heading.
pub fn table(heading: &str, each: &[Vec<Row>]) -> String {
    let shown = |us: f64| format!("{us:.2}");
    let rows = over_seeds(each)
        .into_iter()
        .map(|(name, [mean, least, most], published)| {
            let published = published.map(shown).unwrap_or_default();
            vec![name, shown(mean), shown(least), shown(most), published]
        });
    let headings = [heading, "mean", "least", "most", "paper of 2007"];
    let grid = Grid {
        texts: 1,
        headings: headings.map(String::from).into(),
        rows: rows.collect(),
    };
    grid.to_string()
}

/// As JSON.
pub fn rows_json(each: &[Vec<Row>]) -> Vec<Value> {
    let row = |(name, [mean, least, most], published): (String, [f64; 3], Option<f64>)| json!({"what": name.trim(), "us": mean, "least_us": least, "most_us": most, "published_us": published});
    over_seeds(each).into_iter().map(row).collect()
}

/// The mean of pairs of figures.
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
