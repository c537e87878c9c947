// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[instruments.host]`: a host on the board's network cable that sends requests, and a probe in the cable.

use anyhow::{Result, bail, ensure};
use board::instrument::Cables;
use board::link::{Rate, Way};
use serde::{Deserialize, Serialize};

use super::{AtWork, DEPTH, FinalState, Instrument, Place};
use crate::peer::{self, LARGEST_PAYLOAD, Peer, Question, Station};
use results::runs::instrument_record::{InstrumentRecord, Series};
use results::runs::point::Point;

/// Time from the host's last request to the program's end, in ns. The last answer can arrive in this time.
const SPARE_NS: u64 = 200_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Time until the next request of a flood if no answer comes, in ns.
const FLOOD_NS: u64 = 10_000_000;
/// Axis with the host's requests per second.
const REQUEST_HZ: &str = "request_hz";

/// Table `[instruments.host]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerTable {
    /// Rate of the cable in Mbit/s, 10 or 100.
    pub mbit: u32,
    /// Requests of the host. `None` if the host only answers.
    pub asks: Option<Asks>,
    /// Largest random deviation of the time between two requests, in percent.
    #[serde(default)]
    pub jitter_percent: f64,
    /// Payload of a request, in bytes.
    #[serde(default = "payload_of_ping")]
    pub bytes: usize,
    /// Series that the probe measures. `None` if the host only makes load.
    pub measures: Option<Measures>,
}

fn payload_of_ping() -> usize {
    56
}

/// Requests of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asks {
    /// Numbered UDP packets, after the program's first packet.
    Commands,
    /// Echo requests at a rate, after the board's first frame.
    Pings,
    /// Echo requests like those of `ping -f`, after the board's first frame.
    Flood,
}

/// Series that a probe can measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measures {
    /// Time from a command's first bit to the first bit of its reply.
    Reply,
    /// Time from one packet of the program to the next.
    Period,
}

impl Measures {
    /// Returns the name of the series.
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
            "host.bytes: {}: a frame holds at most {LARGEST_PAYLOAD} bytes",
            self.bytes
        );
        ensure!(
            self.measures != Some(Measures::Period) || self.asks != Some(Asks::Commands),
            "host.measures: \"period\" is for a program that sends by itself; remove asks = \"commands\""
        );
        let replies = self.measures == Some(Measures::Reply);
        ensure!(
            !replies || self.asks == Some(Asks::Commands),
            "host.measures: \"reply\" needs asks = \"commands\""
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

/// A host that is connected to the board.
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
    fn seen(&self, state: &FinalState<'_>, seen: &mut InstrumentRecord) -> Result<()> {
        if self.host.not_sent > 0 {
            bail!(
                "{} requests did not fit on the cable: send fewer per second, or shorter ones",
                self.host.not_sent
            );
        }
        let Some(measures) = self.measures else {
            return Ok(());
        };
        let probe = state.link.probe();
        let frames = probe.map_or(&[][..], |probe| &probe.frames);
        if let Some(lost) = probe.map(|probe| probe.lost).filter(|lost| *lost > 0) {
            bail!(
                "the probe's memory holds {DEPTH} frames, and {lost} more came: measure for a shorter time"
            );
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
