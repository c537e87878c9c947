// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is read first: a few figures of each experiment, kernel beside kernel.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::base::distinct::distinct;
use crate::base::suggest::did_you_mean;
use crate::figures::figure::{self, Measured, digits};
use crate::figures::published::{Figure, Published};
use crate::figures::which::Which;
use crate::runs::point::short_kernel;

/// `[[headline]]`: one figure of each kernel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headline {
    pub text: String,
    pub of: Which,
    /// What a paper says of it: the name of a published figure with `*` for the kernel.
    pub paper: Option<String>,
}

/// A headline with its figures.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    pub text: String,
    /// One of each kernel that was measured, that of the first kernel first.
    pub figures: Vec<Measured>,
    /// The same in a paper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paper: Option<Paper>,
}

/// How kernels of a paper compare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paper {
    /// "fcse2009, Table 2, on ixp425".
    pub source: String,
    /// Each kernel's figure to the first one's.
    pub ratios: Vec<(String, f64)>,
}

impl Headline {
    /// A line for each board; none for one on which the first of `kernels` was not measured.
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

    /// The ratios of a paper to its figure of the first kernel.
    fn papers(&self, kernels: &[String], published: &Published) -> Result<Option<Paper>> {
        let Some(pattern) = &self.paper else {
            return Ok(None);
        };
        let of = |kernel: &String| {
            let figure = published.figure(&pattern.replace('*', short_kernel(kernel)));
            figure.and_then(|figure| Some((figure, figure.value?)))
        };
        let Some((first, base)) = kernels.first().and_then(of) else {
            let ids: Vec<&String> = published.figures.iter().map(|f: &Figure| &f.id).collect();
            bail!(
                "headline \"{}\": paper: no published figure \"{pattern}\" of the first kernel{}",
                self.text,
                did_you_mean(pattern, &ids)
            );
        };
        let rest = kernels.iter().skip(1);
        let ratios = rest.filter_map(|kernel| Some((kernel.clone(), of(kernel)?.1 / base)));
        Ok(Some(Paper {
            source: format!("{}, {}, on {}", first.source, first.place, first.board),
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
                    "headline \"{}\": means {} {} as well as {} {}",
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
    /// The text and the board.
    pub fn what(&self) -> String {
        let board = self.figures.first().map_or("", |m| &m.place.board);
        format!("{} ({board})", self.text)
    }

    /// A paper's ratios, and where they are from.
    pub fn of_paper(&self) -> String {
        let Some(paper) = &self.paper else {
            return "-".to_string();
        };
        let ratios = paper.ratios.iter().map(|(_, ratio)| format!("{ratio:.2}"));
        let ratios = ratios.collect::<Vec<_>>().join(" and ");
        format!("{ratios} ({})", paper.source)
    }

    /// The figure of a kernel; with its ratio to the first one's unless it is that.
    pub fn cell(&self, kernel: &str) -> String {
        let found = self.figures.iter().find(|m| m.place.kernel == kernel);
        match (found, self.figures.first()) {
            (Some(m), Some(first)) if first.place.kernel != kernel => {
                let ratio = m.value / first.value;
                format!("{} {} ({ratio:.2})", digits(m.value), m.unit)
            }
            (Some(m), _) => format!("{} {}", digits(m.value), m.unit),
            (None, _) => "-".to_string(),
        }
    }
}

/// Units of which less is better.
const TIMES: [&str; 4] = ["ns", "us", "ms", "s"];

/// What was found, in one sentence: the first line that has two kernels, and is of a time.
pub fn sentence(lines: &[&Line]) -> Option<String> {
    let mut pairs = lines.iter().filter_map(|line| match &line.figures[..] {
        [first, second, ..] if TIMES.contains(&first.unit) => Some((line, first, second)),
        _ => None,
    });
    let (line, first, second) = pairs.next()?;
    let (old, new) = (digits(first.value), digits(second.value));
    let mut text = line.text.clone();
    if let Some(letter) = text.get_mut(..1) {
        letter.make_ascii_uppercase();
    }
    let (base, kernel) = (
        short_kernel(&first.place.kernel),
        short_kernel(&second.place.kernel),
    );
    let effect = match second.value / first.value {
        ratio if ratio < 1.0 => format!("{:.1} times faster", 1.0 / ratio),
        ratio => format!("{ratio:.1} times as much"),
    };
    Some(format!(
        "{text}: {new} {unit} instead of {old}, {effect} ({kernel} against {base}, on {board}).",
        unit = second.unit,
        board = second.place.board
    ))
}

/// All kernels of the lines, in the order in which they come.
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
            "A switch: 42.0 us instead of 140, 3.3 times faster (fcse against plain, on sam9263)."
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
                .contains("means process switch as well as thread switch")
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
        headline.paper = Some("fcse2009.cyclictest.*.avg".into());
        let lines = headline.lines(&kernels, &measured, &published).unwrap();
        let paper = lines[0].paper.as_ref().unwrap();
        assert_eq!(paper.source, "fcse2009, Table 2, on ixp425");
        assert_eq!(paper.ratios, [(kernels[1].clone(), 94.0 / 194.0)]);
        headline.paper = Some("fcse2009.cyclictst.*.avg".into());
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
