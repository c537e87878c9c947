// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures from the papers and the envelope, read from `published/`. They stand beside what was
//! measured and never enter it.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use base::suggest::did_you_mean;
use base::toml_file;
use base::{boards, paths};

/// The one format of the files that there is.
const FORMAT: u32 = 1;

/// One figure of a paper. Some exist as a plot only and have no value.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
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
    /// What ran beside it.
    #[serde(default)]
    pub load: String,
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
#[serde(deny_unknown_fields)]
pub struct Source {
    pub title: String,
    // For readers of the file.
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
        let (file, published): (String, Published) = read("published.toml")?;
        known_format(&file, published.format)?;
        for figure in &published.figures {
            if !published.source.contains_key(&figure.source) {
                let sources: Vec<&String> = published.source.keys().collect();
                let (id, source) = (&figure.id, &figure.source);
                let hint = did_you_mean(source, &sources);
                bail!("{file}: {id}: source: no [source.{source}]{hint}");
            }
        }
        Ok(published)
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
#[serde(deny_unknown_fields)]
pub struct BoardEnvelope {
    pub name: String,
    pub total_us: Range,
    pub direct_us: Range,
    pub refill_us: Range,
}

/// `published/envelope.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    format: u32,
    pub source: String,
    /// I and D lines assumed to be filled again per switch.
    pub assumed_lines: Range,
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
                        "{file}: {name}: [typical, low, high] is wanted, not [{typical}, {low}, {high}]"
                    );
                }
            }
        }
        Ok(envelope)
    }

    /// The envelope of a board.
    pub fn board(&self, name: &str) -> Option<&BoardEnvelope> {
        self.boards.iter().find(|board| board.name == name)
    }
}

/// The file's name and what is in it.
fn read<T: serde::de::DeserializeOwned>(name: &str) -> Result<(String, T)> {
    let path = paths::root().join("published").join(name);
    Ok((paths::shown(&path), toml_file::read(&path)?))
}

fn known_format(file: &str, format: u32) -> Result<()> {
    if format != FORMAT {
        bail!("{file}: format: {format} is not known, this program reads {FORMAT}");
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
