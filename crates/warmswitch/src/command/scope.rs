// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch scope`: boots the board, connects a pulse generator and an oscilloscope to its pins, and runs a command.
//! Then writes the recording of the oscilloscope.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use board::BoardSpec;
use board::instrument::{
    Bench, Generator, PINS, Pins, Pulses, Response, Responses, Scope, ScopeSetup, Segment, Trigger,
};
use serde_json::{Value, json};

use super::instrument_options::{self, InstrumentOptions};
use crate::Outcome;
use crate::command::examples::Help;
use crate::report::waveform::Waveform;
use base::files;
use base::paths::shown;
use base::shell;
use base::suggest::repeated;
use base::time;
use results::render::screen;
use results::runs::markers::Typed;
use results::runs::screen::COLUMNS;
use results::runs::screen::Screen;
use session::instrument::{ANSWER, STIMULUS};

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/use/INSTRUMENTS.md",
    examples: &[(
        "scope --kernel plain-latency --hz 1000 --seconds 12 --svg screen.svg -- latency-under-load 10 1 pl061@101e4000",
        "pulses into a pin, and the latency of the answers under load",
    )],
};

/// Run a command with a pulse generator and an oscilloscope on the board's pins
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    options: InstrumentOptions,
    /// Pulses per second into --pin. If several frequencies are given, each lasts --seconds
    #[arg(long, value_name = "HZ", value_delimiter = ',')]
    hz: Vec<f64>,
    /// Pin of GPIO 0 that receives the pulses
    #[arg(long, value_name = "PIN", default_value_t = STIMULUS)]
    pin: u8,
    /// Width of a pulse, in us
    #[arg(long, value_name = "US", default_value_t = 10.0, requires = "hz")]
    width_us: f64,
    /// Largest random deviation of a pulse from its time, earlier or later, in us
    #[arg(long, value_name = "US", default_value_t = 0.0, requires = "hz")]
    jitter_us: f64,
    /// Board time that each frequency lasts, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, requires = "hz")]
    seconds: f64,
    /// Pins with a probe, from the top of the screen to the bottom
    #[arg(long, value_name = "PINS", value_delimiter = ',', default_values_t = [STIMULUS, ANSWER])]
    channels: Vec<u8>,
    /// Pin whose rising edge starts the recording and each picture of the screen [default: the pin of --pin]
    #[arg(long, value_name = "PIN")]
    trigger: Option<u8>,
    /// Pin on which the board answers the pulses
    #[arg(long, value_name = "PIN", default_value_t = ANSWER)]
    answer: u8,
    /// Width of the screen, in us
    #[arg(long, value_name = "US", default_value_t = 500.0)]
    window_us: f64,
    /// Size of the scope's memory, in edges
    #[arg(long, value_name = "EDGES", default_value_t = 1 << 20)]
    depth: usize,
    /// Write the recording as VCD
    #[arg(long, value_name = "FILE")]
    vcd: Option<PathBuf>,
    /// Write the recording as FST
    #[arg(long, value_name = "FILE")]
    fst: Option<PathBuf>,
    /// Write the screen as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Command to run in the guest. The command must end by itself
    #[arg(last = true, value_name = "CMD", required = true)]
    command: Vec<String>,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    let typed = Typed::own(&(shell::typed(&args.command)? + " </dev/null"));
    let board = args.check()?;
    let mut session = args.options.boot(&board)?;
    let cpu_hz = session.cpu_hz();
    session.cables().watch(args.setup(cpu_hz))?;
    let begin = session.now();
    if !args.hz.is_empty() {
        session.cables().generate(args.pulses()?)?;
    }
    let measured = session.run(&typed, args.options.limit)?;
    let (output, status) = instrument_options::ended(&typed, &measured)?;
    let bench = session.bench();
    args.write(&bench.scopes()[0], session.now(), cpu_hz)?;
    let mut result = args.result(bench, session.now(), cpu_hz);
    result["rates"] = args.rates(bench, begin, cpu_hz);
    Ok(args.options.tell(&output, status, result))
}

impl Args {
    /// Checks the options before anything is built, and returns the board.
    fn check(&self) -> Result<BoardSpec> {
        time::seconds("seconds", self.seconds)?;
        time::seconds("width-us", self.width_us)?;
        time::seconds("window-us", self.window_us)?;
        if !(self.jitter_us >= 0.0 && self.jitter_us.is_finite()) {
            bail!("--jitter-us {}: use 0 or more", self.jitter_us);
        }
        let pins = [("pin", self.pin), ("answer", self.answer)];
        let pins = pins
            .into_iter()
            .chain(self.trigger.map(|pin| ("trigger", pin)));
        let channels = self.channels.iter().map(|pin| ("channels", *pin));
        if let Some((option, pin)) = pins.chain(channels).find(|(_, pin)| *pin >= PINS) {
            bail!(
                "--{option} {pin}: use one of the board's pins, 0 to {}",
                PINS - 1
            );
        }
        if let Some(twice) = repeated(self.channels.iter()) {
            bail!("--channels: pin {twice} is given twice; name each pin once");
        }
        if self.depth == 0 {
            bail!("--depth 0: use 1 or more");
        }
        files::check_written(&[
            ("vcd", self.vcd.as_deref()),
            ("fst", self.fst.as_deref()),
            ("svg", self.svg.as_deref()),
        ])?;
        let board = self.options.check()?;
        // The instruments themselves reject other settings that they do not support.
        Scope::new(self.setup(board.cpu_hz), 0, Pins::default())
            .with_context(|| format!("--window-us {}", self.window_us))?;
        if !self.hz.is_empty() {
            let hz: Vec<String> = self.hz.iter().map(f64::to_string).collect();
            Generator::new(self.pulses()?, 0, board.cpu_hz)
                .with_context(|| format!("--hz {}", hz.join(",")))?;
        }
        Ok(board)
    }

    fn setup(&self, cpu_hz: u64) -> ScopeSetup {
        ScopeSetup {
            channels: self.channels.clone(),
            trigger: Some(Trigger {
                pin: self.trigger.unwrap_or(self.pin),
                rising: true,
            }),
            depth: self.depth,
            window: (self.window_us * 1e-6 * cpu_hz as f64) as u64,
            columns: COLUMNS,
        }
    }

    fn pulses(&self) -> Result<Pulses> {
        let ns = |us: f64| (us * 1e3) as u64;
        let mut segments = Vec::new();
        for hz in &self.hz {
            if !(*hz > 0.0 && *hz < 1e12) {
                bail!("--hz {hz}: use a frequency above 0 and below 1e12");
            }
            segments.push(Segment {
                millihertz: (hz * 1e3).round() as u64,
                ns: (self.seconds * 1e9) as u64,
            });
        }
        Ok(Pulses {
            pin: self.pin,
            segments,
            width_ns: ns(self.width_us),
            jitter_ns: ns(self.jitter_us),
            random_phase: true,
            seed: self.options.seed,
        })
    }

    fn write(&self, scope: &Scope, end: u64, cpu_hz: u64) -> Result<()> {
        let waveform = Waveform {
            capture: scope.capture(),
            channels: &self.channels,
            cpu_hz,
            end,
        };
        let cannot = |path: &Path| format!("cannot write {}", shown(path));
        if let Some(path) = &self.vcd {
            let file = File::create(path).with_context(|| cannot(path))?;
            waveform
                .vcd(BufWriter::new(file))
                .with_context(|| cannot(path))?;
        }
        if let Some(path) = &self.fst {
            std::fs::write(path, waveform.fst()?).with_context(|| cannot(path))?;
        }
        if let (Some(path), Some(screen)) = (&self.svg, scope.screen()) {
            let names: Vec<String> = self
                .channels
                .iter()
                .map(|pin| format!("pin {pin}"))
                .collect();
            let title = format!(
                "{}, {}: {}",
                self.options.target.board(),
                self.options.target.kernel()?,
                shell::shown(&self.command)
            );
            let svg = screen::svg(&Screen::of(screen, cpu_hz), &names, &title)?;
            std::fs::write(path, svg).with_context(|| cannot(path))?;
        }
        Ok(())
    }

    fn responses(&self, bench: &Bench) -> Responses {
        Responses::new(&bench.scopes()[0].capture().edges, self.pin, self.answer)
    }

    fn result(&self, bench: &Bench, end: u64, cpu_hz: u64) -> Value {
        let scope = &bench.scopes()[0];
        let capture = scope.capture();
        let responses = self.responses(bench);
        json!({
            "pulses_sent": bench.generators().first().map(|g| g.sent()),
            "pulses_over": bench.generators().first().map(|g| g.done()),
            "edges": capture.edges.len(),
            "edges_lost": capture.lost,
            "triggers": scope.screen().map(|s| s.triggers()),
            "triggers_ignored": scope.screen().map(|s| s.ignored()),
            "pulses_judged": responses.each.len(),
            "unanswered": responses.unanswered(),
            "served": summary(responses.served(), cpu_hz),
            "end_s": end as f64 / cpu_hz as f64,
        })
    }

    /// Summarises the served pulses at each frequency.
    fn rates(&self, bench: &Bench, begin: u64, cpu_hz: u64) -> Value {
        let responses = self.responses(bench);
        let served = responses.served();
        let length = (self.seconds * cpu_hz as f64) as u64;
        let rate = |(n, hz): (u64, &f64)| {
            let within = begin + n * length..begin + (n + 1) * length;
            let pulses = served.iter().filter(|r| within.contains(&r.at)).copied();
            let mut result = summary(&pulses.collect::<Vec<_>>(), cpu_hz);
            result["hz"] = (*hz).into();
            result
        };
        (0..).zip(&self.hz).map(rate).collect()
    }
}

/// Summarises the latencies of pulses. Counts the pulses without an answer.
fn summary(pulses: &[Response], cpu_hz: u64) -> Value {
    let us = |cycles: u64| cycles as f64 * 1e6 / cpu_hz as f64;
    let spread = |latencies: Vec<u64>| instrument_options::spread(latencies, us);
    json!({
        "pulses": pulses.len(),
        "without_first": pulses.iter().filter(|r| r.first.is_none()).count(),
        "without_second": pulses.iter().filter(|r| r.second.is_none()).count(),
        "first_us": spread(pulses.iter().filter_map(|r| r.first).collect()),
        "second_us": spread(pulses.iter().filter_map(|r| r.second).collect()),
    })
}
