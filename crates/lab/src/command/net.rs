// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch net`: boot, put a host at the board's network cable and a probe into it, run a command,
//! write down what the probe stamped.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use board::link::{Link, Rate, Tally, Way};
use board::spec;
use serde_json::json;

use crate::instrument::capture;
use crate::instrument::host::{BOARD, HOST, Host, Plan, Question, round_trips};
use crate::kernel;
use crate::paths::shown;
use crate::session::Session;
use crate::{Outcome, image, sample, session};

/// Board seconds that a command may take when nobody says.
const LIMIT_S: f64 = 300.0;
/// Of `ping -f`, when no answer comes.
const FLOOD_HZ: f64 = 100.0;

/// A host at the board's network cable, and a probe in it, beside a command
#[derive(clap::Args)]
pub struct Args {
    /// Name of a board, or a path to a board file
    #[arg(long, value_name = "BOARD", default_value = spec::DEFAULT_BOARD)]
    board: String,
    /// Name of a kernel
    #[arg(long, value_name = "KERNEL", default_value = "plain")]
    kernel: String,
    /// Start of the caches' random choice of victims
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Rate of the cable in Mbit/s: 10 or 100
    #[arg(long, value_name = "MBIT", default_value_t = 100)]
    mbit: u32,
    /// The host pings the board so many times a second, from the board's first frame on
    #[arg(long, value_name = "HZ")]
    ping_hz: Option<f64>,
    /// The host sends its next ping when the last one is answered, or after 10 ms
    #[arg(long, conflicts_with = "ping_hz")]
    flood: bool,
    /// The host's questions are UDP packets to port 7000, which a program answers, instead of pings
    #[arg(long)]
    udp: bool,
    /// For how long
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    ping_seconds: f64,
    /// Bytes in each of these pings
    #[arg(long, value_name = "BYTES", default_value_t = 56)]
    ping_bytes: usize,
    /// Frames that the probe's memory holds
    #[arg(long, value_name = "FRAMES", default_value_t = 1 << 20)]
    depth: usize,
    /// Write what the probe stamped as pcapng
    #[arg(long, value_name = "FILE")]
    pcapng: Option<PathBuf>,
    /// Board time the command may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT_S)]
    limit: f64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// What to run in the guest when its network is up; the host is 10.0.0.1, the board 10.0.0.2
    #[arg(last = true, value_name = "CMD", required = true)]
    command: Vec<String>,
}

/// Measures.
pub fn execute(args: &Args) -> Result<Outcome> {
    if !(args.limit > 0.0 && args.limit.is_finite()) {
        bail!("--limit {}: not a number of seconds above 0", args.limit);
    }
    let rate = match args.mbit {
        10 => Rate::Ten,
        100 => Rate::Hundred,
        other => bail!("--mbit {other}: 10 or 100"),
    };
    let mut host = Host::new(args.plan()?);
    let (spec, _) = session::load_board(&args.board)?;
    let kernel = kernel::build(&kernel::Request {
        name: args.kernel.clone(),
        ..kernel::Request::default()
    })?;
    let boot = session::linux(&kernel, &image::root_fs()?.cpio)?;
    let mut session = Session::boot(&spec, args.seed, &boot)?;
    let mut cables = session.cables();
    cables.plug(Some(rate));
    cables.tap(args.depth);
    cables.set_stop_on_frame(true);
    let measured = session.run_guest_beside(&args.guest(), args.limit, &mut host)?;
    let text = String::from_utf8_lossy(&measured.console).into_owned();
    let (output, status) = sample::between_markers(&text)?;
    let link = session.link();
    if let (Some(path), Some(probe)) = (&args.pcapng, link.probe()) {
        let cannot = || format!("cannot write {}", shown(path));
        let file = File::create(path).with_context(cannot)?;
        capture::pcapng(probe, BufWriter::new(file)).with_context(cannot)?;
    }
    let result = result(&host, link, output, status);
    if args.json {
        println!("{result}");
    } else {
        println!("{output}");
        for (key, value) in result.as_object().into_iter().flatten() {
            if key != "output" {
                println!("{key}: {value}");
            }
        }
    }
    Ok(if status == 0 {
        Outcome::Done
    } else {
        Outcome::No
    })
}

impl Args {
    fn plan(&self) -> Result<Option<Plan>> {
        let hz = match self.ping_hz {
            Some(hz) => hz,
            None if self.flood => FLOOD_HZ,
            None => return Ok(None),
        };
        if !(hz > 0.0 && hz <= 1e6) {
            bail!("--ping-hz {hz}: above 0 and at most a million");
        }
        if self.ping_bytes > 1472 {
            bail!("--ping-bytes {}: a frame holds 1472", self.ping_bytes);
        }
        Ok(Some(Plan {
            interval_ns: (1e9 / hz) as u64,
            duration_ns: (self.ping_seconds * 1e9) as u64,
            payload: self.ping_bytes,
            question: if self.udp {
                Question::Command
            } else {
                Question::Echo
            },
            flood: self.flood,
        }))
    }

    /// The command behind what brings the network up, quoted for the guest's shell.
    fn guest(&self) -> String {
        let command = format!(
            "ip addr add {BOARD}/24 dev eth0 && ip link set eth0 up && ping -c 1 {HOST} && {}",
            self.command.join(" ")
        );
        format!("sh -c '{}'", command.replace('\'', r"'\''"))
    }
}

fn result(host: &Host, link: &Link, output: &str, status: i32) -> serde_json::Value {
    let tally = |t: Tally| {
        json!({
            "taken": t.taken, "filtered": t.filtered, "no_room": t.no_room, "no_link": t.no_link,
        })
    };
    let probe = link.probe();
    let frames = probe.map_or(&[][..], |probe| &probe.frames);
    json!({
        "output": output,
        "status": status,
        "to_board": tally(link.to_board()),
        "from_board": tally(link.from_board()),
        "on_the_way": link.waiting(),
        "frames_stamped": frames.len(),
        "frames_lost": probe.map(|probe| probe.lost),
        "host_requests": host.requests,
        "host_not_sent": host.not_sent,
        "host_answers": host.answers,
        "board_answers_us": summary(round_trips(frames, Question::Echo, Way::ToBoard)),
        "program_answers_us": summary(round_trips(frames, Question::Command, Way::ToBoard)),
        "host_answers_us": summary(round_trips(frames, Question::Echo, Way::FromBoard)),
    })
}

fn summary(mut ns: Vec<u64>) -> serde_json::Value {
    ns.sort_unstable();
    let (Some(min), Some(max)) = (ns.first(), ns.last()) else {
        return serde_json::Value::Null;
    };
    let us = |ns: u64| ns as f64 / 1e3;
    let sum: u64 = ns.iter().sum();
    let mean = us(sum) / ns.len() as f64;
    let squares: f64 = ns.iter().map(|ns| (us(*ns) - mean).powi(2)).sum();
    json!({
        "count": ns.len(),
        "min": us(*min),
        "avg": mean,
        "sd": (squares / (ns.len().max(2) - 1) as f64).sqrt(),
        "median": us(ns[ns.len() / 2]),
        "max": us(*max),
    })
}
