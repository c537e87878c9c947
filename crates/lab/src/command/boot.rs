// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch boot`: a console on the simulated board.
//!
//! On a terminal, keys go to the board's first UART and Ctrl-A x leaves; the board runs as fast as
//! it can while it works and in real time while it idles and input may come. Without a terminal,
//! standard input is typed once the guest waits for it; the run ends when the guest resets the
//! board, when it was idle and quiet for a while after the last byte of input, or at the limit. A
//! board that sleeps until a key comes stands still; the time it waits counts towards the limit.

use std::io::{Read as _, Write as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use board::{Machine, Stop};
use serde_json::json;

use crate::Outcome;
use crate::base::interrupt;
use crate::base::terminal::RawMode;
use crate::rig::target::{Prepared, Target};
use crate::runs::markers;
use crate::supply::symbols::Symbols;

/// Board time between two looks at the keyboard.
const SLICE_S: f64 = 0.005;
/// The guest counts as waiting after this much board time without output or work.
const QUIET_S: f64 = 2.0;
/// A slice with less idle time than this share is work.
const IDLE: f64 = 0.9;
/// Board time after which a run that nobody watches ends.
const UNWATCHED_LIMIT_S: f64 = 300.0;
/// The console's key for commands to us: Ctrl-A.
const ESCAPE: u8 = 0x01;

/// A console on the simulated board (Ctrl-A x leaves)
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Stop after this much board time, in seconds [default: none on a terminal, else 300]
    #[arg(long, value_name = "SECONDS")]
    limit: Option<f64>,
    /// At the end, print how the run ended as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Boots.
pub fn execute(args: &Args) -> Result<Outcome> {
    if let Some(limit) = args.limit.filter(|s| !(*s > 0.0 && s.is_finite())) {
        bail!("--limit {limit}: not a number of seconds above 0");
    }
    let Prepared { machine, vmlinux } = args.target.prepare()?;
    let raw = RawMode::enter().context("cannot switch the terminal to raw mode")?;
    let default_limit_s = if raw.is_some() {
        f64::INFINITY
    } else {
        UNWATCHED_LIMIT_S
    };
    let mut console = Console {
        machine,
        shown: 0,
        last_active_s: 0.0,
        awaits_marker: args.target.has_our_root(),
        leave: false,
        limit_s: args.limit.unwrap_or(default_limit_s),
        to_the_limit: args.limit.is_some(),
        input: keyboard(),
        raw,
        escape: false,
        input_ended: false,
        held: Vec::new(),
        asleep_s: 0.0,
    };
    let ending = console.run();
    console.raw = None;
    let ending = ending?;
    if args.json {
        println!("\n{}", console.summary(&ending));
    }
    match ending {
        Ending::Left => Ok(Outcome::Done),
        Ending::Stopped(stop) => {
            let symbols = Symbols::of(vmlinux.as_deref());
            eprintln!(
                "\n{}",
                console.machine.message(&stop, |pc| symbols.name(pc))
            );
            Ok(if matches!(stop, Stop::Reset) {
                Outcome::Done
            } else {
                Outcome::No
            })
        }
    }
}

/// Bytes of standard input, read by a thread of their own; closed at the end of input.
fn keyboard() -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 1024];
        while let Ok(count @ 1..) = std::io::stdin().read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

enum Ending {
    /// The user left, or the input was done with.
    Left,
    Stopped(Stop),
}

struct Console {
    machine: Machine,
    /// How much of the console's log is on the screen.
    shown: usize,
    /// Board time of the last output or work.
    last_active_s: f64,
    /// Our root file system says when its shell is ready; no byte is typed before.
    awaits_marker: bool,
    /// The user wants to go.
    leave: bool,
    limit_s: f64,
    /// A limit was asked for: the end of the input does not end the run.
    to_the_limit: bool,
    input: Receiver<Vec<u8>>,
    /// On a terminal.
    raw: Option<RawMode>,
    /// Ctrl-A was typed.
    escape: bool,
    input_ended: bool,
    /// Input without a terminal that waits for the guest.
    held: Vec<u8>,
    /// Host time for which the board slept until a key came.
    asleep_s: f64,
}

impl Console {
    fn run(&mut self) -> Result<Ending> {
        let mut pace = Pace::new(&self.machine);
        loop {
            self.take_input();
            if interrupt::asked() || self.leave {
                return Ok(Ending::Left);
            }
            let before = (self.machine.now(), self.machine.counters().idle_cycles);
            let hz = self.machine.spec().cpu_hz as f64;
            let until = (self.machine.seconds() + SLICE_S).min(self.limit_s) * hz;
            let stop = self.machine.run_until(until.ceil() as u64);
            self.show()?;
            let idle = self.idle_share(before);
            if idle < IDLE {
                self.last_active_s = self.machine.seconds();
            }
            match stop {
                Stop::Limit if self.machine.seconds() < self.limit_s => {}
                Stop::Asleep if self.held.is_empty() => {
                    if let Some(ending) = self.sleep() {
                        return Ok(ending);
                    }
                }
                Stop::Asleep => {}
                stop => return Ok(Ending::Stopped(stop)),
            }
            // Whoever feeds a pipe slowly is waited for like somebody at a terminal.
            let may_type = self.raw.is_some() || !self.input_ended && self.held.is_empty();
            if may_type && idle >= IDLE {
                let ahead = pace.ahead(&self.machine);
                self.wait_for_key(ahead);
            }
            if self.raw.is_none() && self.type_held(stop == Stop::Asleep) {
                return Ok(Ending::Left);
            }
        }
    }

    /// The share of idle cycles since `before` (cycle, idle cycles).
    fn idle_share(&self, before: (u64, u64)) -> f64 {
        let cycles = self.machine.now() - before.0;
        let idle = self.machine.counters().idle_cycles - before.1;
        if cycles == 0 {
            1.0
        } else {
            idle as f64 / cycles as f64
        }
    }

    /// Waits for a key that wakes the board; the ending when none can come, or none came in time.
    fn sleep(&mut self) -> Option<Ending> {
        if self.raw.is_none() && self.input_ended {
            let done = !self.awaits_marker && !self.to_the_limit;
            return Some(if done {
                Ending::Left
            } else {
                Ending::Stopped(Stop::Asleep)
            });
        }
        let left_s = self.limit_s - self.machine.seconds() - self.asleep_s;
        if left_s <= 0.0 {
            return Some(Ending::Stopped(Stop::Asleep));
        }
        let start = Instant::now();
        self.wait_for_key(Duration::from_secs_f64(left_s.min(1.0)));
        self.asleep_s += start.elapsed().as_secs_f64();
        None
    }

    /// Without a terminal: types the input once the guest waits; true when all is done.
    fn type_held(&mut self, asleep: bool) -> bool {
        let now = self.machine.seconds();
        let waits = asleep || now - self.last_active_s >= QUIET_S;
        let marker = markers::READY.as_bytes();
        if self.awaits_marker
            && self
                .machine
                .console_log()
                .windows(marker.len())
                .any(|w| w == marker)
        {
            self.awaits_marker = false;
        }
        // Nothing but input goes on with a guest that sleeps, ready or not.
        if !self.held.is_empty() && (asleep || waits && !self.awaits_marker) {
            let held = std::mem::take(&mut self.held);
            self.machine.send(&held);
            self.last_active_s = now;
            return false;
        }
        waits && !self.awaits_marker && self.input_ended && !self.to_the_limit
    }

    /// Moves what was typed to the machine.
    fn take_input(&mut self) {
        loop {
            match self.input.try_recv() {
                Ok(bytes) => self.typed(&bytes),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.input_ended = true;
                    return;
                }
            }
        }
    }

    /// Sleeps until a key is typed, at most `time`.
    fn wait_for_key(&mut self, time: Duration) {
        match self.input.recv_timeout(time) {
            Ok(bytes) => self.typed(&bytes),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                self.input_ended = true;
                std::thread::sleep(time.min(Duration::from_millis(20)));
            }
        }
    }

    /// Takes typed bytes: Ctrl-A x leaves, Ctrl-A twice sends one.
    fn typed(&mut self, bytes: &[u8]) {
        if self.raw.is_none() {
            self.held.extend(bytes);
            return;
        }
        for &byte in bytes {
            match (self.escape, byte) {
                (true, b'x' | b'X') => self.leave = true,
                (false, ESCAPE) => self.escape = true,
                _ => {
                    self.escape = false;
                    self.machine.send(&[byte]);
                }
            }
        }
    }

    /// How the run ended, and what tells one run from another.
    fn summary(&self, ending: &Ending) -> serde_json::Value {
        let stop = match ending {
            Ending::Left => "left".to_string(),
            Ending::Stopped(stop) => stop.what(),
        };
        let counters: serde_json::Map<String, serde_json::Value> = self
            .machine
            .counters()
            .entries()
            .into_iter()
            .map(|(name, value)| (name.to_string(), value.into()))
            .collect();
        json!({
            "stop": stop,
            "cycle": self.machine.now(),
            "seconds": self.machine.seconds(),
            "console_blake3": blake3::hash(self.machine.console_log()).to_hex().as_str(),
            "memory_blake3": self.machine.memory_hash().to_hex().as_str(),
            "counters": counters,
        })
    }

    /// Prints what is new on the console.
    fn show(&mut self) -> Result<()> {
        let log = self.machine.console_log();
        if log.len() > self.shown {
            let mut out = std::io::stdout().lock();
            out.write_all(&log[self.shown..])
                .and_then(|()| out.flush())?;
            self.shown = log.len();
            self.last_active_s = self.machine.seconds();
        }
        Ok(())
    }
}

/// Keeps an idle board from running ahead of the wall clock.
struct Pace {
    host: Instant,
    board_s: f64,
}

impl Pace {
    fn new(machine: &Machine) -> Pace {
        Pace {
            host: Instant::now(),
            board_s: machine.seconds(),
        }
    }

    /// How far the board is ahead; when it is behind, the two are taken to be even.
    fn ahead(&mut self, machine: &Machine) -> Duration {
        let board = machine.seconds() - self.board_s;
        let host = self.host.elapsed().as_secs_f64();
        if board <= host {
            *self = Pace::new(machine);
            return Duration::ZERO;
        }
        Duration::from_secs_f64((board - host).min(1.0))
    }
}
