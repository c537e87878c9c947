// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch net`: boots the board, connects a host and a probe to its network cable, and runs a command. Then writes
//! the frames that the probe stamped.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use board::link::{Link, Tally, Way};
use serde_json::{Value, json};

use super::instrument_options::{self, InstrumentOptions};
use crate::Outcome;
use crate::command::examples::Help;
use crate::report::capture;
use base::files;
use base::paths::shown;
use base::shell;
use base::time;
use results::runs::markers::Typed;
use session::network::{self, Network};
use session::peer::{LARGEST_PAYLOAD, Peer, Plan, Question, Station, periods, rate, round_trips};

/// Rate of `--flood` when no answer comes; `ping -f` uses the same rate.
const FLOOD_HZ: f64 = 100.0;
/// Default of `--ping-seconds`.
const SECONDS: f64 = 1.0;
/// Default of `--ping-bytes`; `ping` uses the same default.
const BYTES: usize = 56;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/use/INSTRUMENTS.md",
    examples: &[
        (
            "net --flood -- sleep 2",
            "a host pings the board, and a probe stamps the frames",
        ),
        (
            "net --pcapng frames.pcapng -- udp_period 2 10.0.0.1 1000",
            "a program sends a packet every millisecond; the file has the probe's time stamps",
        ),
    ],
};

/// Run a command with a host and a probe on the board's network cable
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    options: InstrumentOptions,
    /// Rate of the cable, in Mbit/s: 10 or 100
    #[arg(long, value_name = "MBIT", default_value_t = 100)]
    mbit: u32,
    /// Pings per second from the host, after the board's first frame
    #[arg(long, value_name = "HZ", conflicts_with = "forward")]
    ping_hz: Option<f64>,
    /// Send the host's next ping when the last ping is answered, or after 10 ms
    #[arg(long, conflicts_with_all = ["ping_hz", "forward"])]
    flood: bool,
    /// Send UDP packets to port 7000 instead of pings. A program on the board answers them
    #[arg(long)]
    udp: bool,
    /// Time for which the host sends, in seconds [default: 1]
    #[arg(long, value_name = "SECONDS")]
    ping_seconds: Option<f64>,
    /// Payload of a ping or packet, in bytes [default: 56]
    #[arg(long, value_name = "BYTES")]
    ping_bytes: Option<usize>,
    #[command(flatten)]
    network: network::Options,
    /// Size of the probe's memory, in frames
    #[arg(long, value_name = "FRAMES", default_value_t = 1 << 20)]
    depth: usize,
    /// Write the frames with the probe's time stamps as pcapng
    #[arg(long, value_name = "FILE")]
    pcapng: Option<PathBuf>,
    /// Command to run in the guest when its network is up. The host is 10.0.0.1, and the board is 10.0.0.2
    #[arg(last = true, value_name = "CMD", required = true)]
    command: Vec<String>,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    let Some(rate) = rate(args.mbit) else {
        bail!("--mbit {}: use 10 or 100", args.mbit);
    };
    let command = shell::typed(&args.command)?;
    let typed = Typed::own(&format!("network-up {command} </dev/null"));
    let mut host = Station::new(args.plan()?);
    let mut network = args.network.open()?;
    if args.depth == 0 {
        bail!("--depth 0: use 1 or more");
    }
    files::check_written(&[("pcapng", args.pcapng.as_deref())])?;
    let board = args.options.check()?;
    let mut session = args.options.boot(&board)?;
    let mut cables = session.cables();
    cables.plug(Some(rate));
    cables.tap(args.depth);
    cables.set_stop_on_frame(true);
    let peer: &mut dyn Peer = match &mut network {
        Some(network) => {
            network.plug(&mut session.cables());
            network
        }
        None => &mut host,
    };
    let measured = session.run_beside(&typed, args.options.limit, peer)?;
    for note in network.as_ref().map(Network::notes).into_iter().flatten() {
        eprintln!("note: {note}");
    }
    let (output, status) = instrument_options::ended(&typed, &measured)?;
    let link = session.link();
    if let (Some(path), Some(probe)) = (&args.pcapng, link.probe()) {
        let cannot = || format!("cannot write {}", shown(path));
        let file = File::create(path).with_context(cannot)?;
        capture::pcapng(probe, BufWriter::new(file)).with_context(cannot)?;
    }
    Ok(args.options.tell(&output, status, result(&host, link)))
}

impl Args {
    /// Returns whether the user gave options for the host's pings.
    fn asks_how(&self) -> bool {
        self.ping_seconds.is_some() || self.ping_bytes.is_some()
    }

    fn plan(&self) -> Result<Option<Plan>> {
        let hz = match self.ping_hz {
            Some(hz) => hz,
            None if self.flood => FLOOD_HZ,
            None if self.udp => bail!("--udp: the rate is missing; add --ping-hz or --flood"),
            None if self.asks_how() => {
                bail!("--ping-seconds, --ping-bytes: the rate is missing; add --ping-hz or --flood")
            }
            None => return Ok(None),
        };
        time::seconds("ping-seconds", self.ping_seconds.unwrap_or(SECONDS))?;
        if !(hz > 0.0 && hz <= 1e6) {
            bail!("--ping-hz {hz}: use a rate above 0 and at most 1000000");
        }
        let bytes = self.ping_bytes.unwrap_or(BYTES);
        if bytes > LARGEST_PAYLOAD {
            bail!("--ping-bytes {bytes}: a frame holds at most {LARGEST_PAYLOAD}");
        }
        Ok(Some(Plan {
            interval_ns: (1e9 / hz) as u64,
            jitter_ns: 0,
            seed: self.options.seed,
            duration_ns: (self.ping_seconds.unwrap_or(SECONDS) * 1e9) as u64,
            payload: bytes,
            question: if self.udp {
                Question::Command
            } else {
                Question::Echo
            },
            flood: self.flood,
        }))
    }
}

fn result(host: &Station, link: &Link) -> Value {
    let tally = |t: Tally| {
        json!({
            "taken": t.taken, "filtered": t.filtered, "no_room": t.no_room, "no_link": t.no_link,
        })
    };
    let probe = link.probe();
    let frames = probe.map_or(&[][..], |probe| &probe.frames);
    json!({
        "to_board": tally(link.to_board()),
        "from_board": tally(link.from_board()),
        "on_the_way": link.waiting(),
        "frames_stamped": frames.len(),
        "frames_lost": probe.map(|probe| probe.lost),
        "host_requests": host.requests,
        "host_not_sent": host.not_sent,
        "host_answers": host.answers,
        "board_answers_us": summary(round_trips(frames, Question::Echo, Way::ToBoard).ns),
        "program_answers_us": summary(round_trips(frames, Question::Command, Way::ToBoard).ns),
        "host_answers_us": summary(round_trips(frames, Question::Echo, Way::FromBoard).ns),
        "program_periods_us": summary(periods(frames).ns),
    })
}

/// Summarises round trips. The summary includes the standard deviation, which the papers print.
fn summary(ns: Vec<u64>) -> Value {
    let us = |ns: u64| ns as f64 / 1e3;
    let each: Vec<f64> = ns.iter().map(|ns| us(*ns)).collect();
    let mut spread = instrument_options::spread(ns, us);
    if let Some(mean) = spread["avg"].as_f64() {
        let squares: f64 = each.iter().map(|us| (us - mean).powi(2)).sum();
        spread["sd"] = (squares / (each.len().max(2) - 1) as f64).sqrt().into();
    }
    spread
}
