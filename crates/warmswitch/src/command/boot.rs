// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch boot`: opens a console on the simulated board.
//!
//! On a terminal, keys go to the board's first UART. Ctrl-A x ends the program. The board runs as fast as it can while
//! it works. It runs in real time while it idles and input may arrive.
//!
//! Without a terminal, standard input is typed when the guest shows a prompt. The run ends when the guest shows a
//! prompt again and no input is left ([`prompt`]). Output to a file or pipe has no escape sequences.
//!
//! The run also ends when the guest resets the board, panics or halts, and when the limit is reached. While the board
//! sleeps and waits for a key, board time stands still. The host time of this wait counts against the limit.
//!
//! With `--sd`, a memory card is in the board's slot. Its file is written after the run, if at all ([`CardFile`]).
//!
//! With `--forward`, the board runs in real time while it idles, and packets wake a sleeping board ([`Network`]).

mod prompt;

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::{Duration, Instant};

use anstream::adapter::StripBytes;
use anyhow::{Context as _, Result};
use board::{BoardSpec, Machine, Stop};
use serde_json::json;

use crate::Outcome;
use crate::command::examples::Help;
use base::interrupt;
use base::output::write_bytes;
use base::terminal::RawMode;
use base::time;
use results::runs::markers;
use session::boot::Recipe;
use session::card::{self, CardFile};
use session::network::{self, Network};
use session::pace::Pace;
use session::peer::Peer as _;
use session::target::Target;
use session::watchdog::{Over, Watchdog};
use supply::symbols::Symbols;

/// Board time between two checks for input, in seconds.
const SLICE_S: f64 = 0.005;
/// Board time in seconds. A guest that neither works nor prints for this time counts as waiting.
const QUIET_S: f64 = 2.0;
/// Quiet board time after which input is typed even if no prompt is shown, in seconds.
const LONG_QUIET_S: f64 = 10.0;
/// A slice of board time counts as work if less than this share of the slice is idle.
const IDLE: f64 = 0.9;
/// Default of `--limit` if there is no terminal, in seconds of board time.
const UNWATCHED_LIMIT_S: f64 = 300.0;
/// Ctrl-A. The key after Ctrl-A is a command to this program.
const ESCAPE: u8 = 0x01;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/use/GUESTS.md",
    examples: &[
        ("boot", "a shell on the board; Ctrl-A x leaves"),
        (
            "boot --board omap1610 --kernel fcse-guaranteed",
            "on another board, with FCSE",
        ),
        (
            "boot --board sam9263-ek --sd card.img --sd-keep",
            "a memory card with the content of a file, which gets what the guest writes",
        ),
        (
            "boot --forward 2222:22 --add-package dropbear-bin",
            "port 2222 of the host leads to the guest's ssh server",
        ),
    ],
};

/// Open a console on the simulated board (Ctrl-A x leaves)
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Kernel command line, instead of warmswitch's own
    #[arg(last = true, value_name = "CMDLINE")]
    cmdline: Vec<String>,
    /// Limit of board time, in seconds [default: none on a terminal, 300 otherwise]
    #[arg(long, value_name = "SECONDS")]
    limit: Option<f64>,
    /// At the end, print one line of JSON with the reason of the end, hashes and counters
    #[arg(long, conflicts_with = "forward")]
    json: bool,
    #[command(flatten)]
    card: card::Options,
    #[command(flatten)]
    network: network::Options,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    if let Some(limit) = args.limit {
        time::seconds("limit", limit)?;
    }
    let network = args.network.open()?;
    let board = args.target.check()?;
    let card = args.card.open(&board)?;
    let started = power_on(&args.target, board, &args.cmdline, card.as_ref())?;
    let (mut machine, vmlinux) = (started.machine, started.vmlinux);
    if let Some(network) = &network {
        network.plug(&mut machine.cables());
    }
    let raw = RawMode::enter().context("cannot switch the terminal to raw mode")?;
    let default_limit_s = if raw.is_some() {
        f64::INFINITY
    } else {
        UNWATCHED_LIMIT_S
    };
    let mut console = Console {
        machine,
        card,
        network,
        shown: 0,
        last_active_s: 0.0,
        awaits_marker: args.target.has_our_root() && !started.has_root_on_card,
        typed: false,
        leave: false,
        limit_s: args.limit.unwrap_or(default_limit_s),
        input: keyboard(),
        raw,
        escape: false,
        input_ended: false,
        held: Vec::new(),
        asleep_s: 0.0,
        prompt: None,
        strip: (!std::io::stdout().is_terminal()).then(StripBytes::new),
    };
    let ending = console.run();
    console.raw = None;
    console.finish(&ending?, vmlinux.as_deref(), args.json)
}

/// A machine before its first instruction, with all images in memory.
pub struct Started {
    pub machine: Machine,
    /// Path of the kernel's vmlinux.
    pub vmlinux: Option<PathBuf>,
    /// Whether the root file system is on the memory card.
    pub has_root_on_card: bool,
}

/// Starts the checked board.
pub fn power_on(
    target: &Target,
    board: BoardSpec,
    cmdline: &[String],
    card: Option<&CardFile>,
) -> Result<Started> {
    let words = Some(cmdline.join(" ")).filter(|words| !words.is_empty());
    let prepared = Recipe {
        words,
        has_card: card.is_some(),
        ..target.recipe()?
    }
    .prepare(&board)?;
    let mut machine = session::engine::equip(Machine::new(board, &prepared.boot())?);
    if let Some(card) = card {
        machine.cables().insert_card(card.content())?;
    }
    Ok(Started {
        machine,
        vmlinux: prepared.files.vmlinux,
        has_root_on_card: prepared.linux.initrd.is_none(),
    })
}

/// Reads standard input on a separate thread. The channel closes at the end of input.
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
    /// The user left, or all input was typed and the guest shows a prompt again.
    Left,
    /// The guest ended: it halted, panicked or hung.
    Over(Over),
    Stopped(Stop),
}

struct Console {
    machine: Machine,
    /// The memory card's file, if the user gave one.
    card: Option<CardFile>,
    /// The host's network, if the user asks for it.
    network: Option<Network>,
    /// Number of bytes of the console log that were printed.
    shown: usize,
    /// Board time of the last output or work, in seconds.
    last_active_s: f64,
    /// Whether our root file system has not yet printed that its shell is ready. Until then, input is typed only if the
    /// guest sleeps.
    awaits_marker: bool,
    /// Whether anything was typed. After that, console output may come from a typed command.
    typed: bool,
    /// Whether the user typed Ctrl-A x.
    leave: bool,
    limit_s: f64,
    input: Receiver<Vec<u8>>,
    /// Raw mode of the terminal. `None` if there is no terminal.
    raw: Option<RawMode>,
    /// Whether the last key was Ctrl-A.
    escape: bool,
    input_ended: bool,
    /// Input that waits for the guest's prompt, if there is no terminal.
    held: Vec<u8>,
    /// Host time that passed while the sleeping board waited for a key, in seconds.
    asleep_s: f64,
    /// Last characters of the prompt at which the input was typed (see [`prompt::of`]).
    prompt: Option<String>,
    /// Removes escape sequences. `None` if standard output is a terminal.
    strip: Option<StripBytes>,
}

impl Console {
    fn run(&mut self) -> Result<Ending> {
        let mut pace = Pace::new(self.machine.seconds());
        let mut watchdog = Watchdog::new(&self.machine);
        loop {
            self.take_input();
            if interrupt::asked() || self.leave {
                return Ok(Ending::Left);
            }
            let before = (self.machine.now(), self.machine.counters().idle_cycles);
            let hz = self.machine.spec().cpu_hz as f64;
            let until = (self.machine.seconds() + SLICE_S).min(self.limit_s) * hz;
            let stop = self.run_until(until.ceil() as u64);
            self.show();
            if let Some(card) = &self.card {
                card.check(self.machine.card())?;
            }
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
            if let Some(over) = watchdog.look(&self.machine) {
                return Ok(Ending::Over(over));
            }
            if !self.typed && markers::is_half_unpacked(self.machine.console_log()) {
                return Ok(Ending::Over(Over::HalfUnpacked));
            }
            // The writer of an open pipe may be as slow as a user at a terminal, so the board waits for both.
            let may_type = self.raw.is_some() || !self.input_ended && self.held.is_empty();
            if may_type && idle >= IDLE {
                let ahead = pace.ahead(self.machine.seconds());
                self.wait_for_key(ahead);
            }
            if self.raw.is_none() && self.type_held(stop == Stop::Asleep) {
                return Ok(Ending::Left);
            }
        }
    }

    fn run_until(&mut self, cycle: u64) -> Stop {
        match &mut self.network {
            Some(network) => network.run_until(&mut self.machine, cycle),
            None => self.machine.run_until(cycle),
        }
    }

    /// Returns the share of idle cycles since an earlier moment. `before` holds the cycle and the number of idle cycles
    /// at that moment.
    fn idle_share(&self, before: (u64, u64)) -> f64 {
        let cycles = self.machine.now() - before.0;
        let idle = self.machine.counters().idle_cycles - before.1;
        if cycles == 0 {
            1.0
        } else {
            idle as f64 / cycles as f64
        }
    }

    /// Waits for a key or a packet that wakes the board. Returns the ending if none can arrive, or if none arrives
    /// before the limit.
    fn sleep(&mut self) -> Option<Ending> {
        if self.raw.is_none() && self.input_ended && self.network.is_none() {
            let at_prompt = !self.awaits_marker && self.asks();
            return Some(if at_prompt {
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
        match &mut self.network {
            Some(network) => {
                network.act_asleep(&mut self.machine.cables());
            }
            None => self.wait_for_key(Duration::from_secs_f64(left_s.min(1.0))),
        }
        self.asleep_s += start.elapsed().as_secs_f64();
        None
    }

    /// Types the held input when the guest waits for input. Returns true when all input was typed and the guest shows a
    /// prompt again.
    fn type_held(&mut self, asleep: bool) -> bool {
        let now = self.machine.seconds();
        let quiet_s = now - self.last_active_s;
        let log = self.machine.console_log();
        let marker = markers::READY.as_bytes();
        if self.awaits_marker && log.windows(marker.len()).any(|w| w == marker) {
            self.awaits_marker = false;
        }
        let asks = (asleep || quiet_s >= QUIET_S) && self.asks();
        // Only input wakes a sleeping guest, whether or not its shell is ready. A guest that is awake may have printed
        // something after its prompt, so a long silence counts as a prompt, too.
        let types = asleep || !self.awaits_marker && (asks || quiet_s >= LONG_QUIET_S);
        if types && !self.held.is_empty() {
            self.prompt = prompt::of(self.machine.console_log());
            let mut held = std::mem::take(&mut self.held);
            // The last line of a file may lack its newline.
            if self.input_ended && held.last().is_some_and(|byte| *byte >= b' ') {
                held.push(b'\n');
            }
            self.machine.send(&held);
            self.typed = true;
            self.last_active_s = now;
            return false;
        }
        asks && self.held.is_empty() && !self.awaits_marker && self.input_ended
    }

    /// Returns whether the guest shows a prompt. After input was typed, only a prompt that ends like the first prompt
    /// counts.
    fn asks(&self) -> bool {
        let shown = prompt::of(self.machine.console_log());
        shown.is_some() && (self.prompt.is_none() || self.prompt == shown)
    }

    /// Takes all input that has arrived.
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

    /// Waits for input, for at most `timeout`.
    fn wait_for_key(&mut self, timeout: Duration) {
        match self.input.recv_timeout(timeout) {
            Ok(bytes) => self.typed(&bytes),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                self.input_ended = true;
                std::thread::sleep(timeout.min(Duration::from_millis(20)));
            }
        }
    }

    /// Handles input. Without a terminal, keeps the input until the guest waits for it. On a terminal, Ctrl-A x leaves,
    /// and Ctrl-A Ctrl-A sends one Ctrl-A.
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
                    self.typed = true;
                }
            }
        }
    }

    /// Prints the notes, the summary and how the run ended, and keeps the card. Returns the outcome.
    fn finish(&self, ending: &Ending, vmlinux: Option<&Path>, json: bool) -> Result<Outcome> {
        let network = self.network.as_ref().map(Network::notes);
        let notes = self.machine.notes().into_iter();
        for note in notes.chain(network.into_iter().flatten()) {
            eprintln!("note: {note}");
        }
        if json {
            println!("\n{}", self.summary(ending));
        }
        let outcome = self.tell(ending, vmlinux);
        if let Some(card) = &self.card {
            let note = card.end(self.machine.card(), matches!(outcome, Outcome::Done))?;
            note.iter().for_each(|note| eprintln!("note: {note}"));
        }
        Ok(outcome)
    }

    fn has_panicked(&self) -> bool {
        let console = String::from_utf8_lossy(self.machine.console_log());
        console.contains("Kernel panic - not syncing: ")
    }

    /// Prints how the run ended. Returns the outcome.
    fn tell(&self, ending: &Ending, vmlinux: Option<&Path>) -> Outcome {
        match ending {
            Ending::Left => Outcome::Done,
            Ending::Over(over) => {
                eprintln!("\n{}", over.what());
                match over {
                    Over::Halted | Over::PoweredDown => Outcome::Done,
                    Over::Panic | Over::Still | Over::HalfUnpacked => Outcome::No,
                }
            }
            Ending::Stopped(stop) => {
                let symbols = Symbols::of(vmlinux);
                eprintln!("\n{}", self.machine.message(stop, |pc| symbols.name(pc)));
                match stop {
                    // A kernel with panic= resets the board after a panic.
                    Stop::Reset if self.has_panicked() => {
                        eprintln!("{}", Over::Panic.what());
                        Outcome::No
                    }
                    Stop::Reset => Outcome::Done,
                    _ => Outcome::No,
                }
            }
        }
    }

    /// Returns a JSON object that says how the run ended. It has hashes and counters for a comparison of two runs.
    fn summary(&self, ending: &Ending) -> serde_json::Value {
        let stop = match ending {
            Ending::Left => "left".to_string(),
            Ending::Over(over) => over.what().to_string(),
            Ending::Stopped(stop) => stop.what(),
        };
        let counters: serde_json::Map<String, serde_json::Value> = self
            .machine
            .counters()
            .entries()
            .into_iter()
            .map(|(name, value)| (name.to_string(), value.into()))
            .collect();
        let mut summary = json!({
            "stop": stop,
            "cycle": self.machine.now(),
            "seconds": self.machine.seconds(),
            "console_blake3": blake3::hash(self.machine.console_log()).to_hex().as_str(),
            "memory_blake3": self.machine.memory_hash().to_hex().as_str(),
            "counters": counters,
        });
        if let Some(hash) = self.card.as_ref().and_then(|card| card.content().hash()) {
            summary["card_blake3"] = blake3::Hash::from(hash).to_hex().as_str().into();
        }
        summary
    }

    /// Prints new console output.
    fn show(&mut self) {
        let log = self.machine.console_log();
        if log.len() > self.shown {
            match &mut self.strip {
                None => write_bytes(&log[self.shown..]),
                Some(strip) => {
                    let pieces: Vec<&[u8]> = strip.strip_next(&log[self.shown..]).collect();
                    write_bytes(&pieces.concat());
                }
            }
            self.shown = log.len();
            self.last_active_s = self.machine.seconds();
        }
    }
}
