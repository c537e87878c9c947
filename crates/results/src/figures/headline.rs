// SPDX-License-Identifier: MIT OR Apache-2.0
//! Headlines: the few figures of an experiment that a reader sees first. A headline shows the kernels side by side.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::figures::figure::{self, Measured, digits, thousands};
use crate::figures::published::{Figure, Published};
use crate::figures::selector::Selector;
use crate::figures::sides;
use crate::runs::point::short_kernel;
use base::distinct::distinct;
use base::suggest::did_you_mean;

/// `[[headline]]`: one figure for each kernel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headline {
    /// Name of the figure in reports: "a context switch, 2 processes".
    pub text: String,
    /// Selects one figure for each kernel on each board.
    pub of: Selector,
    /// Published figures for the kernels, if a paper has them.
    pub paper: Option<OfPaper>,
}

/// Published figures for the kernels.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OfPaper {
    /// Id of the published figures, with `*` in place of the kernel's name.
    Pattern(String),
    /// Ids of the published figures, one for each kernel in the experiment's order.
    Each(Vec<String>),
}

impl OfPaper {
    /// Returns the id of a kernel's published figure.
    fn id(&self, number: usize, kernel: &str) -> Option<String> {
        match self {
            OfPaper::Pattern(pattern) => Some(pattern.replace('*', short_kernel(kernel))),
            OfPaper::Each(ids) => ids.get(number).cloned(),
        }
    }
}

/// A headline with its figures.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Text of the headline.
    pub text: String,
    /// One figure for each measured kernel. All figures are from one board. The experiment's first kernel comes first.
    pub figures: Vec<Measured>,
    /// Ratios between the kernels in a paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<Paper>,
}

/// Comparison of kernels in a paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paper {
    /// Key of the paper, place in it and board: "fcse2009, Table 2, on ixp425".
    pub source: String,
    /// Title of the paper.
    pub title: String,
    /// Board that the paper measured on.
    pub board: String,
    /// Each kernel except the first, with the ratio of its published figure to the first kernel's published figure.
    pub ratios: Vec<(String, f64)>,
}

impl Headline {
    /// Makes a line for each board on which the first of `kernels` was measured.
    pub fn lines(
        &self,
        kernels: &[String],
        measured: &[Measured],
        published: &Published,
    ) -> Result<Vec<Line>> {
        let mut lines = Vec::new();
        let paper = self.papers(kernels, published)?;
        for board in figure::boards(measured.iter().filter(|m| self.of.takes(m))) {
            let line = self.line(board, kernels, measured)?;
            lines.extend(line.map(|line| Line {
                paper: paper.clone(),
                ..line
            }));
        }
        Ok(lines)
    }

    /// Returns the paper's ratios: the figure of each kernel except the first, divided by the first kernel's figure.
    fn papers(&self, kernels: &[String], published: &Published) -> Result<Option<Paper>> {
        let Some(paper) = &self.paper else {
            return Ok(None);
        };
        let published_of = |number: usize, kernel: &String| {
            let figure = published.figure(&paper.id(number, kernel)?);
            figure.and_then(|figure| Some((kernel.clone(), figure, figure.value?)))
        };
        let mut found = Vec::new();
        for (number, kernel) in kernels.iter().enumerate() {
            let figure = published_of(number, kernel);
            // With a pattern, only the first kernel must have a published figure.
            let required = number == 0 || matches!(paper, OfPaper::Each(ids) if number < ids.len());
            if required && figure.is_none() {
                let ids: Vec<&String> = published.figures.iter().map(|f: &Figure| &f.id).collect();
                let id = paper.id(number, kernel).unwrap_or_default();
                bail!(
                    "headline \"{}\": paper: no published figure \"{id}\" with a value{}",
                    self.text,
                    did_you_mean(&id, &ids)
                );
            }
            found.extend(figure);
        }
        let Some(((_, first, base), rest)) = found.split_first() else {
            return Ok(None);
        };
        let ratios = rest
            .iter()
            .map(|(kernel, _, value)| (kernel.clone(), value / base));
        Ok(Some(Paper {
            source: format!("{}, {}, on {}", first.source, first.place, first.board),
            title: published.title(first).to_string(),
            board: first.board.clone(),
            ratios: ratios.collect(),
        }))
    }

    fn line(&self, board: &str, kernels: &[String], measured: &[Measured]) -> Result<Option<Line>> {
        let mut figures = Vec::new();
        for kernel in kernels {
            let of_kernel = |m: &&Measured| {
                m.place.board == board && m.place.kernel == *kernel && self.of.takes(m)
            };
            let found: Vec<&Measured> = measured.iter().filter(of_kernel).collect();
            if let [one, other, ..] = found.as_slice() {
                bail!(
                    "headline \"{}\": its selector matches both {} {} and {} {}: add keys to `of`",
                    self.text,
                    one.place.what(),
                    one.metric,
                    other.place.what(),
                    other.metric
                );
            }
            figures.extend(found.into_iter().cloned());
        }
        let first = figures.first().map(|m: &Measured| &m.place.kernel);
        let line = (first.is_some() && first == kernels.first()).then(|| Line {
            text: self.text.clone(),
            figures,
            paper: None,
        });
        Ok(line)
    }
}

impl Line {
    /// Returns the text and the board.
    pub fn what(&self) -> String {
        let board = self.figures.first().map_or("", |m| &m.place.board);
        format!("{} ({board})", self.with_samples())
    }

    fn pair(&self) -> Option<PairOf<'_>> {
        match &self.figures[..] {
            [old, new, ..] if TIMES.contains(&new.unit) => Some(PairOf {
                line: self,
                old,
                new,
            }),
            _ => None,
        }
    }

    /// Returns the text. For a minimum or maximum, adds the number of samples.
    fn with_samples(&self) -> String {
        let extremes = (self.figures.iter()).filter(|m| ["min", WORST].contains(&m.metric));
        let samples = distinct(extremes.filter_map(|m| m.samples));
        match (samples.as_slice(), samples.iter().min()) {
            ([all], _) => format!("{} of {}", self.text, thousands(*all)),
            (_, Some(least)) => format!("{} of at least {}", self.text, thousands(*least)),
            (_, None) => self.text.clone(),
        }
    }

    /// Returns the paper's ratios and their source.
    pub fn of_paper(&self) -> String {
        let Some(paper) = &self.paper else {
            return "-".to_string();
        };
        let ratios = paper.ratios.iter().map(|(_, ratio)| format!("{ratio:.2}"));
        let ratios = ratios.collect::<Vec<_>>().join(" and ");
        format!("{ratios} ({})", paper.source)
    }

    /// Returns the figure of a kernel.
    pub fn figure(&self, kernel: &str) -> Option<&Measured> {
        self.figures.iter().find(|m| m.place.kernel == kernel)
    }

    /// Returns the ratio of a kernel's figure to the first kernel's figure.
    pub fn ratio(&self, kernel: &str) -> Option<f64> {
        let first = self.figures.first().filter(|m| m.value > 0.0)?;
        sides::ratio(self.figure(kernel)?, first)
    }

    /// Formats a kernel's figure and its ratio to the first kernel's figure. A maximum has its range over runs instead
    /// of a ratio.
    pub fn cell(&self, kernel: &str) -> String {
        let Some(m) = self.figure(kernel) else {
            return "-".to_string();
        };
        if m.metric == WORST {
            return format!("{} {}", figure::figure(m), m.unit);
        }
        let figure = format!("{}{} {}", digits(m.value), m.mark(), m.unit);
        let is_first = self.figures.first() == Some(m);
        match self.ratio(kernel).filter(|_| !is_first) {
            Some(ratio) => format!("{figure} ({ratio:.2})"),
            None => figure,
        }
    }
}

/// Metric without a ratio. With few runs, chance decides in which kernel's samples the scheduler's tick falls.
const WORST: &str = "max";
/// Units in which less is better.
const TIMES: [&str; 4] = ["ns", "us", "ms", "s"];

/// Summarises the lines in one or two sentences. The first sentence gives the first line that has times of two kernels.
/// If a later line has a maximum, the second sentence gives this line, because averages hide the worst case.
pub fn sentence(lines: &[&Line]) -> Option<String> {
    let pairs: Vec<PairOf> = lines.iter().filter_map(|line| line.pair()).collect();
    let first = pairs.first()?;
    let (base, kernel) = (
        short_kernel(&first.old.place.kernel),
        short_kernel(&first.new.place.kernel),
    );
    let against = format!("{kernel} against {base}, on {}", first.new.place.board);
    let mut text = format!("{} ({against}).", first.effect());
    if let Some(worst) = pairs[1..].iter().find(|pair| pair.new.metric == WORST) {
        let _ = write!(text, " {}.", worst.effect());
    }
    Some(text)
}

/// Times of two kernels in one line.
struct PairOf<'a> {
    line: &'a Line,
    old: &'a Measured,
    new: &'a Measured,
}

impl PairOf<'_> {
    /// Returns "A context switch: 3.6 times faster, 38.5 us instead of 137".
    fn effect(&self) -> String {
        let mut text = self.line.with_samples();
        if let Some(letter) = text.get_mut(..1) {
            letter.make_ascii_uppercase();
        }
        if self.new.metric == WORST {
            let [old, new] = [self.old, self.new].map(figure::figure);
            return format!(
                "{text}: {new} {} against {old} (in brackets: range over runs)",
                self.new.unit
            );
        }
        let effect = match self.new.value / self.old.value {
            ratio if ratio <= 0.9 => format!("{:.1} times faster", 1.0 / ratio),
            ratio if ratio < 1.1 => "nearly the same".to_string(),
            ratio => format!("{ratio:.1} times as much"),
        };
        let (old, new) = (digits(self.old.value), digits(self.new.value));
        format!("{text}: {effect}, {new} {} instead of {old}", self.new.unit)
    }
}

/// Compares the effect in a paper with the simulated effect, in one sentence. Uses the first line that has published
/// figures. Adds the simulated figure on the paper's own board, if there is one.
pub fn of_paper(lines: &[&Line]) -> Option<String> {
    let effect = |line: &&Line| {
        let (kernel, theirs) = line.paper.as_ref()?.ratios.first()?;
        let board = &line.figures.first()?.place.board;
        let here = format!("{:.2} on {board}", line.ratio(kernel)?);
        Some((here, short_kernel(kernel).to_string(), *theirs))
    };
    let line = lines.iter().find(|line| effect(line).is_some())?;
    let paper = line.paper.as_ref()?;
    let (mut here, kernel, theirs) = effect(line)?;
    let there = lines.iter().find(|other| {
        let is_there = |m: &Measured| m.place.board == paper.board;
        let of_paper = other
            .paper
            .as_ref()
            .is_some_and(|p| p.source == paper.source);
        of_paper && other.text == line.text && other.figures.first().is_some_and(is_there)
    });
    if let Some((there, ..)) = there.and_then(effect).filter(|(there, ..)| *there != here) {
        here = format!("{there}, {here}");
    }
    Some(format!(
        "{} ({}; measured, not simulated): {}, with {kernel}: {theirs:.2} times the value without FCSE. \
         Simulated here: {here}.",
        paper.title, paper.source, line.text
    ))
}

/// Returns the boards of the lines, in order of first occurrence.
pub fn boards<'a>(lines: &[&'a Line]) -> Vec<&'a str> {
    figure::boards(lines.iter().flat_map(|line| &line.figures))
}

/// Returns the kernels of the lines, in order of first occurrence.
pub fn kernels<'a>(lines: &[&'a Line]) -> Vec<&'a str> {
    let figures = lines.iter().flat_map(|line| &line.figures);
    distinct(figures.map(|m| m.place.kernel.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::point::Place;

    fn figure(kernel: &str, mode: &str, value: f64) -> Measured {
        Measured::switch(
            Place {
                board: "sam9263".into(),
                kernel: kernel.into(),
                mode: mode.into(),
                series: String::new(),
                axes: Default::default(),
            },
            value,
        )
    }

    fn headline(of: &str) -> Headline {
        toml::from_str(&format!("text = \"a switch\"\nof = {of}")).unwrap()
    }

    #[test]
    fn kernels_stand_side_by_side_with_their_ratio_to_the_first() {
        let kernels = ["plain".to_string(), "fcse".into(), "other".into()];
        let measured = [
            figure("plain", "process", 140.0),
            figure("fcse", "process", 42.0),
            figure("plain", "thread", 50.0),
        ];
        let published = Published::load().unwrap();
        let lines = headline("{ mode = \"process\" }").lines(&kernels, &measured, &published);
        let line = &lines.unwrap()[0];
        let said = sentence(&[line]).unwrap();
        assert_eq!(
            said,
            "A switch: 3.3 times faster, 42.0 us instead of 140 (fcse against plain, on sam9263)."
        );
        let mut worst = line.clone();
        worst.figures.iter_mut().for_each(|m| m.metric = "max");
        worst.figures[1].low = 30.0;
        let both = sentence(&[line, &worst]).unwrap();
        assert_eq!(
            both,
            format!(
                "{said} A switch: 42.0 (30.0..42.0) us against 140 (in brackets: range over runs)."
            )
        );
        let mut bandwidth = line.clone();
        bandwidth.figures.iter_mut().for_each(|m| m.unit = "MB/s");
        assert_eq!(sentence(&[&bandwidth]), None, "more is better");
        assert_eq!(sentence(&[&bandwidth, line]), Some(said));
        assert_eq!(line.what(), "a switch (sam9263)");
        assert_eq!(line.cell("plain"), "140 us");
        assert_eq!(line.cell("fcse"), "42.0 us (0.30)");
        assert_eq!(line.cell("other"), "-");
        let of = headline("{ board = \"s3c24a0\" }").lines(&kernels, &measured, &published);
        assert!(of.unwrap().is_empty());
        let error = headline("{}")
            .lines(&kernels, &measured, &published)
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("matches both process switch and thread switch")
        );
    }

    #[test]
    fn the_effect_of_a_paper_stands_beside_ours() {
        let kernels = ["6.12/plain".to_string(), "6.12/fcse-guaranteed".into()];
        let measured = [
            figure("6.12/plain", "load", 172.0),
            figure("6.12/fcse-guaranteed", "load", 138.0),
        ];
        let published = Published::load().unwrap();
        let mut headline = headline("{}");
        headline.paper = Some(OfPaper::Pattern("fcse2009.cyclictest.*.avg".into()));
        let lines = headline.lines(&kernels, &measured, &published).unwrap();
        let paper = lines[0].paper.as_ref().unwrap();
        assert_eq!(paper.source, "fcse2009, Table 2, on ixp425");
        let said = of_paper(&[&lines[0]]).unwrap();
        assert!(
            said.ends_with(
                "fcse-guaranteed: 0.48 times the value without FCSE. Simulated here: 0.80 on sam9263."
            ),
            "{said}"
        );
        let mut there = lines[0].clone();
        there
            .figures
            .iter_mut()
            .for_each(|m| m.place.board = "ixp425".into());
        there.figures[1].value = 86.0;
        let said = of_paper(&[&lines[0], &there]).unwrap();
        assert!(
            said.ends_with("here: 0.50 on ixp425, 0.80 on sam9263."),
            "{said}"
        );
        assert_eq!(paper.ratios, [(kernels[1].clone(), 94.0 / 194.0)]);
        let each = ["plain", "fcse-guarranteed"].map(|k| format!("fcse2009.cyclictest.{k}.avg"));
        headline.paper = Some(OfPaper::Each(each.to_vec()));
        let error = headline.lines(&kernels, &measured, &published).unwrap_err();
        assert!(error.to_string().contains("fcse-guaranteed"), "{error}");
        headline.paper = Some(OfPaper::Pattern("fcse2009.cyclictst.*.avg".into()));
        let error = headline.lines(&kernels, &measured, &published).unwrap_err();
        assert!(error.to_string().contains("did you mean"), "{error}");
    }

    #[test]
    fn every_board_has_a_line_of_its_own() {
        let kernels = ["plain".to_string()];
        let one = figure("plain", "process", 140.0);
        let mut other = figure("plain", "process", 70.0);
        other.place.board = "sam9263+sdram.banks=8".into();
        let published = Published::load().unwrap();
        let lines = headline("{}")
            .lines(&kernels, &[one, other], &published)
            .unwrap();
        let what: Vec<String> = lines.iter().map(Line::what).collect();
        assert_eq!(
            what,
            ["a switch (sam9263)", "a switch (sam9263+sdram.banks=8)"]
        );
    }
}
