// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures from the papers and the envelope, read from `published/`. They stand beside what was
//! measured and never enter it.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::paths;
use crate::toml_file;

/// One figure of a paper. Some exist as a plot only and have no value.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Figure {
    pub id: String,
    pub source: String,
    #[serde(rename = "where")]
    pub place: String,
    #[serde(default)]
    pub board: String,
    #[serde(default)]
    pub variant: String,
    #[serde(default)]
    pub command: String,
    #[serde(default)]
    pub metric: String,
    #[serde(default)]
    pub stat: String,
    pub value: Option<f64>,
    #[serde(default)]
    pub unit: String,
    pub kind: String,
    #[serde(rename = "use")]
    pub purpose: String,
    #[serde(default)]
    pub note: String,
}

impl Figure {
    /// "scheduling latency, max, plain".
    pub fn what(&self) -> String {
        let parts = [&self.metric, &self.stat, &self.variant];
        let said: Vec<&str> = parts
            .iter()
            .map(|part| part.as_str())
            .filter(|part| !part.is_empty())
            .collect();
        said.join(", ")
    }

    /// The value with its unit.
    pub fn shown(&self) -> String {
        match self.value {
            Some(value) => format!("{value} {}", self.unit),
            None => "plot only".to_string(),
        }
    }
}

/// A paper.
#[derive(Clone, Debug, Deserialize)]
pub struct Source {
    pub title: String,
}

/// `published/published.toml`.
#[derive(Clone, Debug, Deserialize)]
pub struct Published {
    pub source: BTreeMap<String, Source>,
    #[serde(rename = "m")]
    pub figures: Vec<Figure>,
}

/// All that stands beside what was measured.
pub struct Papers {
    pub published: Published,
    pub envelope: Envelope,
}

impl Papers {
    /// Reads them.
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
        read("published.toml")
    }

    /// The figure with that id.
    pub fn figure(&self, id: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.id == id)
    }

    /// The title of the paper a figure is from.
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
    pub typical: f64,
    pub low: f64,
    pub high: f64,
}

impl From<[f64; 3]> for Range {
    fn from([typical, low, high]: [f64; 3]) -> Range {
        Range { typical, low, high }
    }
}

/// The envelope of one board.
#[derive(Clone, Debug, Deserialize)]
pub struct BoardEnvelope {
    pub name: String,
    pub total_us: Range,
    pub direct_us: Range,
    pub refill_us: Range,
}

/// `published/envelope.toml`.
#[derive(Clone, Debug, Deserialize)]
pub struct Envelope {
    pub source: String,
    /// I and D lines assumed to be filled again per switch.
    pub assumed_lines: Range,
    #[serde(rename = "board")]
    pub boards: Vec<BoardEnvelope>,
}

impl Envelope {
    /// Reads the envelope.
    pub fn load() -> Result<Envelope> {
        read("envelope.toml")
    }

    /// The envelope of a board.
    pub fn board(&self, name: &str) -> Option<&BoardEnvelope> {
        self.boards.iter().find(|board| board.name == name)
    }
}

fn read<T: serde::de::DeserializeOwned>(name: &str) -> Result<T> {
    let path = paths::root().join("published").join(name);
    toml_file::read(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_files_are_read_and_every_figure_names_a_known_paper() {
        let published = Published::load().unwrap();
        assert!(published.figures.len() > 50);
        for figure in &published.figures {
            assert!(
                published.source.contains_key(&figure.source),
                "{}",
                figure.id
            );
        }
        let envelope = Envelope::load().unwrap();
        for board in &envelope.boards {
            let t = &board.total_us;
            assert!(t.low < t.typical && t.typical < t.high, "{}", board.name);
            let sum = board.direct_us.typical + board.refill_us.typical;
            assert!((sum - t.typical).abs() < 0.5, "{}", board.name);
        }
    }
}
