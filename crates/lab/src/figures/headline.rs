// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is read first: a few figures of each experiment, kernel beside kernel.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::figures::figure::{self, Measured, digits};
use crate::figures::which::Which;

/// `[[headline]]`: one figure of each kernel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headline {
    pub text: String,
    pub of: Which,
}

/// A headline with its figures.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    pub text: String,
    /// One of each kernel that was measured, that of the first kernel first.
    pub figures: Vec<Measured>,
}

impl Headline {
    /// A line for each board; none for one on which the first of `kernels` was not measured.
    pub fn lines(&self, kernels: &[String], measured: &[Measured]) -> Result<Vec<Line>> {
        let mut lines = Vec::new();
        for board in figure::boards(measured.iter().filter(|m| self.of.takes(m))) {
            lines.extend(self.line(board, kernels, measured)?);
        }
        Ok(lines)
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

/// All kernels of the lines, in the order in which they come.
pub fn kernels<'a>(lines: &[&'a Line]) -> Vec<&'a str> {
    let mut kernels: Vec<&str> = Vec::new();
    for m in lines.iter().flat_map(|line| &line.figures) {
        if !kernels.contains(&m.place.kernel.as_str()) {
            kernels.push(&m.place.kernel);
        }
    }
    kernels
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
        let lines = headline("{ mode = \"process\" }").lines(&kernels, &measured);
        let line = &lines.unwrap()[0];
        assert_eq!(line.what(), "a switch (sam9263)");
        assert_eq!(line.cell("plain"), "140 us");
        assert_eq!(line.cell("fcse"), "42.0 us (0.30)");
        assert_eq!(line.cell("other"), "-");
        let of = headline("{ board = \"s3c24a0\" }").lines(&kernels, &measured);
        assert!(of.unwrap().is_empty());
        let error = headline("{}").lines(&kernels, &measured).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("means process switch as well as thread switch")
        );
    }

    #[test]
    fn every_board_has_a_line_of_its_own() {
        let kernels = ["plain".to_string()];
        let one = figure("plain", "process", 140.0);
        let mut other = figure("plain", "process", 70.0);
        other.place.board = "sam9263+sdram.banks=8".into();
        let lines = headline("{}").lines(&kernels, &[one, other]).unwrap();
        let what: Vec<String> = lines.iter().map(Line::what).collect();
        assert_eq!(
            what,
            ["a switch (sam9263)", "a switch (sam9263+sdram.banks=8)"]
        );
    }
}
