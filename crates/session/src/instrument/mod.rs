// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instruments of an experiment, on pins and on the network cable: `[instruments.NAME]` of `experiment.toml`. Each
//! instrument has its own source file.

mod peer;
mod scope;

use std::collections::BTreeMap;
use std::fmt::Debug;

use anyhow::{Result, ensure};
use board::BoardBus;
use board::instrument::{Bench, Cables};
use board::link::Link;
use serde::{Deserialize, Serialize};

use crate::peer::Peer;
use crate::session::Session;
use results::runs::instrument_record::InstrumentRecord;
use results::runs::point::Point;

pub use scope::{ANSWER, STIMULUS};

/// Defines [`Setup`] from the names and tables of the instruments.
macro_rules! instruments {
    ($($name:ident: $table:ty),* $(,)?) => {
        /// All instruments of an experiment.
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Setup {
            $(
                #[serde(default, skip_serializing_if = "Option::is_none")]
                $name: Option<$table>,
            )*
        }

        impl Setup {
            /// Names of the instruments' tables.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            fn all(&self) -> Vec<(&'static str, &dyn Instrument)> {
                let mut all: Vec<(&'static str, &dyn Instrument)> = Vec::new();
                $(
                    if let Some(table) = &self.$name {
                        all.push((stringify!($name), table));
                    }
                )*
                all
            }
        }
    };
}

instruments! {
    scope: scope::ScopeTable,
    host: peer::PeerTable,
}

/// Maximum number of edges, and of frames, that an instrument keeps.
const DEPTH: usize = 1 << 22;

/// An instrument's table.
trait Instrument: Debug {
    /// Checks the values of the table.
    fn check(&self) -> Result<()>;

    /// Returns the names of the instrument's series. Returns no names if the instrument measures nothing.
    fn series(&self) -> Vec<&'static str>;

    /// Returns the axis values that distinguish the instrument's series.
    fn axes(&self) -> Vec<(&'static str, u32)> {
        Vec::new()
    }

    /// Returns the axis of the plan whose values go to the instrument instead of the guest's command line.
    fn paced_by(&self) -> Option<&'static str> {
        None
    }

    /// Connects the instrument to a board.
    fn put_on(&self, cables: &mut Cables<'_>, place: &Place<'_>) -> Result<Box<dyn AtWork>>;
}

/// Point, board clock and cycle at which an instrument is connected.
struct Place<'a> {
    point: &'a Point,
    cpu_hz: u64,
    /// Core cycle of the connection.
    begin: u64,
}

/// An instrument that is connected to a board.
trait AtWork: Peer {
    /// Adds the instrument's measurements to the record.
    fn seen(&self, state: &FinalState<'_>, seen: &mut InstrumentRecord) -> Result<()>;
}

/// Data that an instrument can read after the end of the guest.
struct FinalState<'a> {
    bench: &'a Bench,
    link: &'a Link,
    cpu_hz: u64,
}

impl Setup {
    /// Returns whether there are no instruments.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Returns the names of all series.
    pub fn series(&self) -> Vec<&'static str> {
        let all = self.all().into_iter();
        all.flat_map(|(_, table)| table.series()).collect()
    }

    /// Returns the axis values that distinguish the series.
    pub fn axes(&self) -> Vec<(&'static str, u32)> {
        let all = self.all().into_iter();
        all.flat_map(|(_, table)| table.axes()).collect()
    }

    /// Returns the axes of a plan whose values go to instruments instead of the guest's command line. Each axis has the
    /// instrument's name.
    pub fn paced_by(&self) -> Vec<(&'static str, &'static str)> {
        let all = self.all().into_iter();
        all.filter_map(|(name, table)| Some((table.paced_by()?, name)))
            .collect()
    }

    /// Returns everything that determines the instruments' work at a point, as JSON. The result is empty without
    /// instruments.
    pub fn identity(&self, point: &Point) -> Result<String> {
        if self.is_empty() {
            return Ok(String::new());
        }
        let paced = self.paced_by();
        let is_paced = |name: &str| paced.iter().any(|(axis, _)| *axis == name);
        let axes = point.axes.iter().filter(|(name, _)| is_paced(name));
        let axes: BTreeMap<&String, &u32> = axes.collect();
        Ok(serde_json::to_string(&(self, axes))?)
    }

    /// Checks the tables. Also checks that exactly one instrument measures.
    pub fn check(&self) -> Result<()> {
        let all = self.all();
        all.iter().try_for_each(|(_, table)| table.check())?;
        let measure = all.iter().filter(|(_, table)| !table.series().is_empty());
        let measure: Vec<&str> = measure.map(|(name, _)| *name).collect();
        ensure!(
            all.is_empty() || !measure.is_empty(),
            "instruments: none of them measures; add `measures` to [instruments.host], or [instruments.scope]"
        );
        ensure!(
            measure.len() < 2,
            "instruments: {} measure; only one may measure, the others are load",
            measure.join(" and ")
        );
        Ok(())
    }

    /// Connects the instruments to the board.
    pub fn put_on<B: BoardBus>(&self, session: &mut Session<B>, point: &Point) -> Result<OnBoard> {
        let place = Place {
            point,
            cpu_hz: session.cpu_hz(),
            begin: session.now(),
        };
        let mut cables = session.cables();
        let all = self.all().into_iter();
        let all = all.map(|(_, table)| table.put_on(&mut cables, &place));
        Ok(OnBoard(all.collect::<Result<_>>()?))
    }
}

/// Instruments that are connected to a board.
pub struct OnBoard(Vec<Box<dyn AtWork>>);

impl OnBoard {
    /// Returns the measurements since the connection. Returns `None` without instruments.
    pub fn seen<B: BoardBus>(&self, session: &Session<B>) -> Result<Option<InstrumentRecord>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let state = FinalState {
            bench: session.bench(),
            link: session.link(),
            cpu_hz: session.cpu_hz(),
        };
        let mut seen = InstrumentRecord::default();
        self.0.iter().try_for_each(|i| i.seen(&state, &mut seen))?;
        ensure!(
            seen.series.iter().any(|series| series.answered > 0),
            "the instruments saw no answer; the guest program must answer pulses or requests"
        );
        Ok(Some(seen))
    }
}

impl Peer for OnBoard {
    fn next_ns(&self) -> u64 {
        let next = self.0.iter().map(|instrument| instrument.next_ns());
        next.min().unwrap_or(u64::MAX)
    }

    fn act(&mut self, cables: &mut Cables<'_>) {
        self.0.iter_mut().for_each(|i| i.act(cables));
    }
}

#[cfg(test)]
mod tests;
