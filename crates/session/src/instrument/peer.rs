// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[instruments.host]`: a host at the board's network cable that asks, and a probe in the cable.

use anyhow::{Result, bail, ensure};
use board::instrument::Cables;
use board::link::{Rate, Way};
use serde::{Deserialize, Serialize};

use super::{AtWork, DEPTH, FinalState, Instrument, Place};
use crate::peer::{self, LARGEST_PAYLOAD, Peer, Question, Station};
use results::runs::instrument_record::{InstrumentRecord, Series};
use results::runs::point::Point;

/// The host's last request comes so long before the program's end, so that it can be answered.
const SPARE_NS: u64 = 200_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// The next request of a flood comes after so long if the last one is not answered.
const FLOOD_NS: u64 = 10_000_000;
/// The axis with how many requests a host sends a second.
const REQUEST_HZ: &str = "request_hz";

/// `[instruments.host]`: a host at the board's network cable, and a probe in the cable.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerTable {
    /// Of the cable: 10 or 100.
    pub mbit: u32,
    /// What the host asks of the board; nothing if it only listens.
    pub asks: Option<Asks>,
    /// From one request to the next it takes at most so much more or less, of a hundred.
    #[serde(default)]
    pub jitter_percent: f64,
    /// Bytes in a request.
    #[serde(default = "of_ping")]
    pub bytes: usize,
    /// What the probe is there for; nothing if the host is but load.
    pub measures: Option<Measures>,
}

fn of_ping() -> usize {
    56
}

/// What a host asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asks {
    /// Numbered UDP packets, from the program's first packet on.
    Commands,
    /// Echo requests at a rate, from the board's first frame on.
    Pings,
    /// As `ping -f` does, from the board's first frame on.
    Flood,
}

/// What a probe looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measures {
    /// From a command's first bit to its reply's.
    Reply,
    /// From one packet of the program to the next.
    Period,
}

impl Measures {
    /// What its series is called.
    pub fn name(self) -> &'static str {
        match self {
            Measures::Reply => "reply",
            Measures::Period => "period",
        }
    }
}

impl Instrument for PeerTable {
    fn check(&self) -> Result<()> {
        self.rate()?;
        ensure!(
            (0.0..=100.0).contains(&self.jitter_percent),
            "host.jitter_percent: {} is not from 0 to 100",
            self.jitter_percent
        );
        ensure!(
            self.bytes <= LARGEST_PAYLOAD,
            "host.bytes: {}, a frame holds {LARGEST_PAYLOAD}",
            self.bytes
        );
        ensure!(
            self.measures != Some(Measures::Period) || self.asks != Some(Asks::Commands),
            "host.measures: \"period\" is of a program that sends by itself, without asks = \"commands\""
        );
        let replies = self.measures == Some(Measures::Reply);
        ensure!(
            !replies || self.asks == Some(Asks::Commands),
            "host.measures: replies to what? asks = \"commands\" is missing"
        );
        Ok(())
    }

    fn series(&self) -> Vec<&'static str> {
        self.measures.map(Measures::name).into_iter().collect()
    }

    fn paced_by(&self) -> Option<&'static str> {
        let paced = matches!(self.asks, Some(Asks::Commands | Asks::Pings));
        paced.then_some(REQUEST_HZ)
    }

    fn put_on(&self, cables: &mut Cables<'_>, place: &Place<'_>) -> Result<Box<dyn AtWork>> {
        cables.plug(Some(self.rate()?));
        if self.measures.is_some() {
            cables.tap(DEPTH);
        }
        cables.set_stop_on_frame(true);
        Ok(Box::new(Asking {
            measures: self.measures,
            host: Station::new(self.plan(place.point)),
        }))
    }
}

impl PeerTable {
    fn rate(&self) -> Result<Rate> {
        peer::rate(self.mbit)
            .ok_or_else(|| anyhow::anyhow!("host.mbit: {} is not 10 or 100", self.mbit))
    }

    fn plan(&self, point: &Point) -> Option<peer::Plan> {
        let asks = self.asks?;
        let (commands, flood) = (asks == Asks::Commands, asks == Asks::Flood);
        let interval_ns = match flood {
            true => FLOOD_NS,
            false => SECOND_NS / u64::from(point.axis(REQUEST_HZ).max(1)),
        };
        let running = u64::from(point.axis("duration_s")) * SECOND_NS;
        Some(peer::Plan {
            interval_ns,
            jitter_ns: (interval_ns as f64 * self.jitter_percent / 100.0) as u64,
            seed: point.seed,
            duration_ns: match commands {
                true => running.saturating_sub(SPARE_NS),
                false => u64::MAX / 4,
            },
            question: match commands {
                true => Question::Command,
                false => Question::Echo,
            },
            payload: self.bytes,
            flood,
        })
    }
}

/// A host that asks.
struct Asking {
    measures: Option<Measures>,
    host: Station,
}

impl Peer for Asking {
    fn next_ns(&self) -> u64 {
        self.host.next_ns()
    }

    fn act(&mut self, cables: &mut Cables<'_>) {
        self.host.act(cables);
    }
}

impl AtWork for Asking {
    fn seen(&self, beside: &FinalState<'_>, seen: &mut InstrumentRecord) -> Result<()> {
        if self.host.not_sent > 0 {
            bail!(
                "{} requests found no room in the cable: too many a second, or too long",
                self.host.not_sent
            );
        }
        let Some(measures) = self.measures else {
            return Ok(());
        };
        let probe = beside.link.probe();
        let frames = probe.map_or(&[][..], |probe| &probe.frames);
        if let Some(lost) = probe.map(|probe| probe.lost).filter(|lost| *lost > 0) {
            bail!("the probe's memory holds {DEPTH} frames, {lost} more came: measure shorter");
        }
        seen.series.push(match measures {
            Measures::Reply => {
                let trips = peer::round_trips(frames, Question::Command, Way::ToBoard);
                Series::new(measures.name(), trips.asked, trips.ns)
            }
            Measures::Period => {
                let periods = peer::periods(frames);
                Series::new(measures.name(), periods.asked, periods.ns)
            }
        });
        Ok(())
    }
}
