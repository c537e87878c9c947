// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is put beside an experiment's guest, at pins and at the network cable: `[instruments.NAME]`
//! of `experiment.toml`, a file each.

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

/// The tables there are, a line each.
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
            /// What their tables are called.
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

/// Edges and frames that the instruments keep.
const DEPTH: usize = 1 << 22;

/// An instrument as its table says it.
trait Instrument: Debug {
    /// Whether it can be built.
    fn check(&self) -> Result<()>;

    /// What its series are called; none if it measures nothing.
    fn series(&self) -> Vec<&'static str>;

    /// The values of the axes that tell its series apart.
    fn axes(&self) -> Vec<(&'static str, u32)> {
        Vec::new()
    }

    /// The axis of the plan whose values it takes, and not the guest's command line.
    fn paced_by(&self) -> Option<&'static str> {
        None
    }

    /// Puts it on a board.
    fn put_on(&self, cables: &mut Cables<'_>, place: &Place<'_>) -> Result<Box<dyn AtWork>>;
}

/// Where and when it is put on.
struct Place<'a> {
    point: &'a Point,
    cpu_hz: u64,
    begin: u64,
}

/// An instrument on a board.
trait AtWork: Peer {
    /// Adds what it saw.
    fn seen(&self, beside: &FinalState<'_>, seen: &mut InstrumentRecord) -> Result<()>;
}

/// What an instrument can look at when the guest has ended.
struct FinalState<'a> {
    bench: &'a Bench,
    link: &'a Link,
    cpu_hz: u64,
}

impl Setup {
    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// What their series are called.
    pub fn series(&self) -> Vec<&'static str> {
        let all = self.all().into_iter();
        all.flat_map(|(_, table)| table.series()).collect()
    }

    /// The values of the axes that tell their series apart.
    pub fn axes(&self) -> Vec<(&'static str, u32)> {
        let all = self.all().into_iter();
        all.flat_map(|(_, table)| table.axes()).collect()
    }

    /// The axes of a plan whose values they take, and not the guest's command line, each with the
    /// instrument's name.
    pub fn paced_by(&self) -> Vec<(&'static str, &'static str)> {
        let all = self.all().into_iter();
        all.filter_map(|(name, table)| Some((table.paced_by()?, name)))
            .collect()
    }

    /// All that decides what they do at that point, as JSON; empty without any.
    pub fn identity(&self, point: &Point) -> Result<String> {
        if self.is_empty() {
            return Ok(String::new());
        }
        let paced = self.paced_by();
        let taken = |name: &str| paced.iter().any(|(axis, _)| *axis == name);
        let axes = point.axes.iter().filter(|(name, _)| taken(name));
        let axes: BTreeMap<&String, &u32> = axes.collect();
        Ok(serde_json::to_string(&(self, axes))?)
    }

    /// Whether they can be built, and one of them will see something.
    pub fn check(&self) -> Result<()> {
        let all = self.all();
        all.iter().try_for_each(|(_, table)| table.check())?;
        let measure = all.iter().filter(|(_, table)| !table.series().is_empty());
        let measure: Vec<&str> = measure.map(|(name, _)| *name).collect();
        ensure!(
            all.is_empty() || !measure.is_empty(),
            "instruments: none of them measures: [instruments.host] does with `measures`"
        );
        ensure!(
            measure.len() < 2,
            "instruments: one of them measures, others are load; here do {}",
            measure.join(" and ")
        );
        Ok(())
    }

    /// Puts them on the board.
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

/// Instruments at work.
pub struct OnBoard(Vec<Box<dyn AtWork>>);

impl OnBoard {
    /// What they saw from then on; nothing if there are none.
    pub fn seen<B: BoardBus>(&self, session: &Session<B>) -> Result<Option<InstrumentRecord>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let beside = FinalState {
            bench: session.bench(),
            link: session.link(),
            cpu_hz: session.cpu_hz(),
        };
        let mut seen = InstrumentRecord::default();
        self.0.iter().try_for_each(|i| i.seen(&beside, &mut seen))?;
        ensure!(
            seen.series.iter().any(|series| series.answered > 0),
            "the instruments saw no answer"
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
