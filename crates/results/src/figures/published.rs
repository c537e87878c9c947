// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures from the papers, and the back-of-envelope estimate. Both are read from `published/` and compared with
//! measured figures. They never change a measured figure.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use base::suggest::did_you_mean;
use base::toml_file;
use base::{boards, paths};

/// Format of the files.
const FORMAT: u32 = 1;

/// One figure of a paper. Some figures exist only as a plot and have no value.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Name by which experiments refer to the figure: "fcse2009.cyclictest.plain.min".
    pub id: String,
    /// Key of the paper in [`Published::source`].
    pub source: String,
    /// Place in the paper: "Table 2".
    #[serde(rename = "where")]
    pub place: String,
    /// Board or machine of the measurement. Empty when the paper does not name it.
    #[serde(default)]
    pub board: String,
    /// Kernel or condition of the measurement: "plain". Empty when the paper does not name it.
    #[serde(default)]
    pub variant: String,
    /// Command line of the measuring program. Empty when the paper does not give it.
    #[serde(default)]
    pub command: String,
    /// Measured quantity: "scheduling latency".
    #[serde(default)]
    pub metric: String,
    /// Statistic of the metric: "min", "avg", "stddev".
    #[serde(default)]
    pub stat: String,
    /// Value in `unit`. `None` when the paper has only a plot.
    pub value: Option<f64>,
    /// Unit of the value: "us".
    #[serde(default)]
    pub unit: String,
    /// How the paper states the value: "table", "prose" or "figure" (a plot).
    pub kind: String,
    /// Purpose of the figure here: "target", "bound" or "context".
    #[serde(rename = "use")]
    pub purpose: String,
    /// Remark for readers; may be empty.
    #[serde(default)]
    pub note: String,
    /// Load that ran alongside the measuring program. Empty when the paper does not name it.
    #[serde(default)]
    pub load: String,
}

impl Figure {
    /// Returns metric, statistic and variant: "scheduling latency, max, plain".
    pub fn what(&self) -> String {
        let parts = [&self.metric, &self.stat, &self.variant];
        let given: Vec<&str> = parts
            .iter()
            .map(|part| part.as_str())
            .filter(|part| !part.is_empty())
            .collect();
        given.join(", ")
    }

    /// Returns the value with its unit.
    pub fn shown(&self) -> String {
        match self.value {
            Some(value) => format!("{value} {}", self.unit),
            None => "plot only".to_string(),
        }
    }
}

/// A paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Title, with authors, place and year as far as they are known.
    pub title: String,
    // The following keys are for readers of the file. The program does not use them.
    #[serde(rename = "file")]
    _file: String,
    #[serde(rename = "board")]
    _board: String,
    #[serde(rename = "kernel")]
    _kernel: String,
    #[serde(rename = "cpu_hz")]
    _cpu_hz: Option<u64>,
    #[serde(rename = "clock_resolution_us")]
    _clock_resolution_us: Option<f64>,
}

/// `published/published.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    format: u32,
    /// Papers by key. [`Figure::source`] names a key.
    pub source: BTreeMap<String, Source>,
    /// All published figures, in the order of the file.
    #[serde(rename = "m")]
    pub figures: Vec<Figure>,
}

/// All published data that measured figures are compared with.
pub struct Papers {
    /// Figures of `published/published.toml`.
    pub published: Published,
    /// Estimates of `published/envelope.toml`.
    pub envelope: Envelope,
}

impl Papers {
    /// Reads both files.
    pub fn load() -> Result<Papers> {
        Ok(Papers {
            published: Published::load()?,
            envelope: Envelope::load()?,
        })
    }
}

impl Published {
    /// Reads the figures.
    pub fn load() -> Result<Published> {
        let (file, published): (String, Published) = read("published.toml")?;
        known_format(&file, published.format)?;
        for figure in &published.figures {
            if !published.source.contains_key(&figure.source) {
                let sources: Vec<&String> = published.source.keys().collect();
                let (id, source) = (&figure.id, &figure.source);
                let hint = did_you_mean(source, &sources);
                bail!("{file}: {id}: source: there is no [source.{source}]{hint}");
            }
        }
        Ok(published)
    }

    /// Returns the figure with this id.
    pub fn figure(&self, id: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.id == id)
    }

    /// Returns the title of the paper that a figure comes from.
    pub fn title<'a>(&'a self, figure: &'a Figure) -> &'a str {
        self.source
            .get(&figure.source)
            .map_or(figure.source.as_str(), |s| &s.title)
    }
}

/// Typical, low and high value.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
#[serde(from = "[f64; 3]")]
pub struct Range {
    /// Typical value, between `low` and `high`.
    pub typical: f64,
    /// Lowest plausible value.
    pub low: f64,
    /// Highest plausible value.
    pub high: f64,
}

impl From<[f64; 3]> for Range {
    fn from([typical, low, high]: [f64; 3]) -> Range {
        Range { typical, low, high }
    }
}

/// The back-of-envelope estimate for one board.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardEnvelope {
    /// Name of the board.
    pub name: String,
    /// Cost of a change of the address space, in microseconds.
    pub total_us: Range,
    /// Part of the cost that cache operations take, in microseconds.
    pub direct_us: Range,
    /// Part of the cost that refilling the caches takes, in microseconds.
    pub refill_us: Range,
}

/// `published/envelope.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    format: u32,
    /// Where the estimates come from, in words.
    pub source: String,
    /// Cache lines (I and D) that a full refill is assumed to fill.
    pub assumed_lines: Range,
    /// Back-of-envelope estimate for each board.
    #[serde(rename = "board")]
    pub boards: Vec<BoardEnvelope>,
}

impl Envelope {
    /// Reads the envelope.
    pub fn load() -> Result<Envelope> {
        let (file, envelope): (String, Envelope) = read("envelope.toml")?;
        known_format(&file, envelope.format)?;
        for board in &envelope.boards {
            let name = board.name.as_str();
            boards::check_name(name).with_context(|| file.clone())?;
            for range in [&board.total_us, &board.direct_us, &board.refill_us] {
                let Range { typical, low, high } = range;
                if !(low <= typical && typical <= high) {
                    bail!(
                        "{file}: {name}: [{typical}, {low}, {high}] is out of order: \
                         write [typical, low, high]"
                    );
                }
            }
        }
        Ok(envelope)
    }

    /// Returns the envelope of a board.
    pub fn board(&self, name: &str) -> Option<&BoardEnvelope> {
        self.boards.iter().find(|board| board.name == name)
    }
}

/// Reads a file in `published/`. Also returns the file's name, for messages.
fn read<T: serde::de::DeserializeOwned>(name: &str) -> Result<(String, T)> {
    let path = paths::root().join("published").join(name);
    Ok((paths::shown(&path), toml_file::read(&path)?))
}

fn known_format(file: &str, format: u32) -> Result<()> {
    if format != FORMAT {
        bail!("{file}: format {format} is unknown: this program reads format {FORMAT}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_files_are_read_and_every_figure_names_a_known_paper() {
        let published = Published::load().unwrap();
        assert!(published.figures.len() > 50);
        let envelope = Envelope::load().unwrap();
        for board in &envelope.boards {
            let t = &board.total_us;
            assert!(t.low < t.typical && t.typical < t.high, "{}", board.name);
            let sum = board.direct_us.typical + board.refill_us.typical;
            assert!((sum - t.typical).abs() < 0.5, "{}", board.name);
        }
    }
}
