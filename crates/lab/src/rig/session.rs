// SPDX-License-Identifier: MIT OR Apache-2.0
//! A booted board whose shell takes commands, as a cable to its console and its pins would do it.

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};
use arm9::{Counters, Victims};
use board::boot::{Blob, Boot, LinuxBoot};
use board::bus::SystemBus;
use board::coherence::{Checker, Report};
use board::instrument::{Bench, Cables};
use board::link::Link;
use board::{BoardBus, BoardSpec, Machine, Observed, Stop};

use crate::base::interrupt;
use crate::base::suggest::did_you_mean;
use crate::rig::instrument::host::{Nobody, Outside};
use crate::rig::snapshot::{self, Snapshots};
use crate::runs::markers;
use crate::runs::run::Window;
use crate::supply::kernel::Kernel;

/// What the kernel is told when nobody says otherwise.
pub const CMDLINE: &str = "console=ttyAMA0,115200 quiet loglevel=4";

/// A panic resets the board at once instead of letting it spin.
pub const RESET_ON_PANIC: &str = "panic=-1";

/// A command line of these parts, of which any may be empty.
pub fn command_line(parts: &[&str]) -> String {
    let words: Vec<&str> = parts
        .iter()
        .flat_map(|part| part.split_whitespace())
        .collect();
    words.join(" ")
}

/// A boot that takes longer than this, in board seconds, has failed.
const BOOT_LIMIT_S: f64 = 60.0;
/// Looks at the console and at Ctrl-C per second of board time.
const SLICES_PER_S: u64 = 200;
/// Pins that the guest moves around its timed sections: the ring's, the overhead's.
const PINS: usize = 2;

/// A machine at its shell's prompt.
#[derive(Clone)]
pub struct Session<B: BoardBus = SystemBus> {
    machine: Machine<B>,
}

/// With the coherence checker looking on.
pub type Checked = Session<Observed<Checker>>;

/// What one guest program left behind.
pub struct Measured {
    /// What the console said since the command was typed.
    pub console: Vec<u8>,
    /// Sums over the sections while pin 0 and pin 1 were high.
    pub windows: [Window; PINS],
    /// From the first byte typed to the end.
    pub whole: Window,
}

/// The way of choosing victims of that name.
pub fn victims(name: &str) -> Result<Victims> {
    match Victims::ALL.iter().find(|(n, _)| *n == name) {
        Some((_, victims)) => Ok(*victims),
        None => {
            let names = Victims::ALL.map(|(n, _)| n);
            bail!(
                "--victims {name}: no such way of choosing them{}",
                did_you_mean(name, &names)
            )
        }
    }
}

/// A kernel of ours with a root file system.
pub fn linux(kernel: &Kernel, root_fs: &Path) -> Result<Boot> {
    Ok(Boot::Linux(LinuxBoot {
        kernel: Blob::read(&kernel.image)?,
        dtb: Blob::read(&kernel.dtb)?,
        initrd: Some(initrd(root_fs, kernel.modules.as_deref())?),
        command_line: command_line(&[&kernel.command_line, CMDLINE]),
        overrides: Vec::new(),
    }))
}

/// A root file system and, unpacked behind it, a kernel's modules.
pub fn initrd(root_fs: &Path, modules: Option<&Path>) -> Result<Blob> {
    let mut blob = Blob::read(root_fs)?;
    if let Some(modules) = modules {
        // Archives begin at multiples of four.
        blob.bytes.resize(blob.bytes.len().next_multiple_of(4), 0);
        blob.bytes.extend(Blob::read(modules)?.bytes);
    }
    Ok(blob)
}

/// Why a guest came to no result, and all that its console had said by then.
#[derive(Debug)]
pub struct Failure {
    pub message: String,
    pub console: Vec<u8>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Session {
    /// Boots to the first prompt; `seed` starts the caches' random choice of victims.
    pub fn boot(board: &BoardSpec, seed: u64, boot: &Boot) -> Result<Session> {
        Session::at_prompt(Machine::new(seeded(board, seed), boot)?)
    }

    /// The same, from a snapshot if there is one; else one is made. What is to be said of them goes
    /// to `note`.
    pub fn booted(
        snapshots: &Snapshots,
        board: &BoardSpec,
        seed: u64,
        boot: &Boot,
        note: &dyn Fn(&str),
    ) -> Result<Session> {
        let spec = seeded(board, seed);
        let Some(name) = snapshot::name(&spec, boot) else {
            return Session::boot(board, seed, boot);
        };
        if let Some(machine) = snapshots.find(&name, &spec, note) {
            return Ok(Session { machine });
        }
        let session = Session::boot(board, seed, boot)?;
        snapshots.keep(&name, &session.machine, note);
        Ok(session)
    }
}

impl Checked {
    /// The same under the coherence checker, which changes nothing.
    pub fn boot_checked(board: &BoardSpec, seed: u64, boot: &Boot) -> Result<Checked> {
        Session::at_prompt(Machine::checked(seeded(board, seed), boot)?)
    }

    /// One report a cause, in the order they were met, each with how often it was met.
    pub fn reports(&self) -> Vec<(Report, u64)> {
        let reports = self.machine.observer().reports();
        reports.map(|(r, count)| (r.clone(), count)).collect()
    }
}

fn seeded(board: &BoardSpec, seed: u64) -> BoardSpec {
    let mut board = board.clone();
    board.core.victim_seed = (seed ^ (seed >> 32)) as u32;
    board
}

impl<B: BoardBus> Session<B> {
    fn at_prompt(machine: Machine<B>) -> Result<Session<B>> {
        let mut session = Session { machine };
        let ready = session.quietly(0, markers::READY, BOOT_LIMIT_S)?;
        // The prompt follows the marker.
        session.quietly(ready, "# ", BOOT_LIMIT_S)?;
        Ok(session)
    }

    /// Types `run-guest COMMAND` and waits for its end, taking the counters at the pins' edges.
    pub fn run_guest(&mut self, command: &str, limit_s: f64) -> Result<Measured> {
        self.run_guest_beside(command, limit_s, &mut Nobody)
    }

    /// The same with somebody at the board's cables.
    pub fn run_guest_beside(
        &mut self,
        command: &str,
        limit_s: f64,
        outside: &mut dyn Outside,
    ) -> Result<Measured> {
        let start = self.machine.console_log().len();
        let (from, counters) = (self.now(), *self.counters());
        let mut pins = Pins::new(&self.machine);
        self.machine.set_stop_on_edge(true);
        self.machine
            .send(format!("run-guest {command}\n").as_bytes());
        let end = self.until(start, markers::END, limit_s, outside, &mut |machine| {
            pins.edge(machine)
        })?;
        self.quietly(end, "\n", limit_s)?;
        self.machine.set_stop_on_edge(false);
        let console = self.machine.console_log()[start..].to_vec();
        let mut whole = Window::default();
        whole.add(self.now() - from, &self.counters().since(&counters));
        Ok(Measured {
            console,
            whole,
            windows: pins.windows,
        })
    }

    fn quietly(&mut self, from: usize, text: &str, limit_s: f64) -> Result<usize> {
        self.until(from, text, limit_s, &mut Nobody, &mut |_| {})
    }

    /// Runs until the console's log has `text` behind byte `from`; gives the place behind it. Looks
    /// at the end of fixed slices of board time, so that nothing depends on the host.
    fn until(
        &mut self,
        from: usize,
        text: &str,
        limit_s: f64,
        outside: &mut dyn Outside,
        on_edge: &mut dyn FnMut(&Machine<B>),
    ) -> Result<usize> {
        let slice = self.cpu_hz() / SLICES_PER_S;
        let end = cycle_after(self.now(), limit_s, self.cpu_hz());
        loop {
            let slice_end = (self.now() / slice + 1) * slice;
            let acts = self.machine.link().cycle(outside.next_ns());
            match self.machine.run_until(slice_end.min(end).min(acts)) {
                Stop::Edge => {
                    on_edge(&self.machine);
                    continue;
                }
                Stop::Frame => {
                    outside.act(&mut self.machine.cables());
                    continue;
                }
                Stop::Limit if self.now() >= acts => {
                    outside.act(&mut self.machine.cables());
                    continue;
                }
                Stop::Limit if self.now() < end => {}
                stop => {
                    let message = self.machine.message(&stop, |_| None);
                    let last = self.last_words();
                    return Err(self.failure(format!("waiting for {text:?}: {message}{last}")));
                }
            }
            let log = &self.machine.console_log()[from..];
            if let Some(at) = log.windows(text.len()).position(|w| w == text.as_bytes()) {
                return Ok(from + at + text.len());
            }
            if interrupt::asked() {
                bail!("stopped");
            }
        }
    }

    /// The end of the console's text, for messages.
    fn last_words(&self) -> String {
        let text = String::from_utf8_lossy(self.machine.console_log());
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let last = &lines[lines.len().saturating_sub(5)..];
        if last.is_empty() {
            return "\n  the console said nothing".into();
        }
        format!("\n  the console's last lines:\n    {}", last.join("\n    "))
    }

    /// The error that ends a point here.
    pub fn failure(&self, message: String) -> anyhow::Error {
        let console = self.machine.console_log().to_vec();
        Failure { message, console }.into()
    }

    /// The board's cables, to put instruments on them.
    pub fn cables(&mut self) -> Cables<'_> {
        self.machine.cables()
    }

    /// The board's network cable.
    pub fn link(&self) -> &Link {
        self.machine.link()
    }

    /// The instruments.
    pub fn bench(&self) -> &Bench {
        self.machine.bench()
    }

    /// Board time since power-on.
    pub fn seconds(&self) -> f64 {
        self.machine.seconds()
    }

    /// Core cycles since power-on.
    pub fn now(&self) -> u64 {
        self.machine.now()
    }

    /// The core's counters since power-on.
    pub fn counters(&self) -> &Counters {
        self.machine.counters()
    }

    /// Core clock.
    pub fn cpu_hz(&self) -> u64 {
        self.machine.spec().cpu_hz
    }
}

/// The core cycle `seconds` after cycle `now`; the last there is when that is too far away.
fn cycle_after(now: u64, seconds: f64, hz: u64) -> u64 {
    now.saturating_add((seconds * hz as f64) as u64)
}

/// Adds up cycles and counters while a pin is high.
struct Pins {
    seen: usize,
    high_since: [Option<(u64, Counters)>; PINS],
    windows: [Window; PINS],
}

impl Pins {
    /// Edges that `machine` has seen already do not count.
    fn new<B: BoardBus>(machine: &Machine<B>) -> Pins {
        let seen = machine.edges().len();
        Pins {
            seen,
            high_since: [None; PINS],
            windows: Default::default(),
        }
    }

    /// Takes the edges that are new in `machine`, which stopped at the last of them.
    fn edge<B: BoardBus>(&mut self, machine: &Machine<B>) {
        let edges = machine.edges();
        let counters = *machine.counters();
        for edge in &edges[self.seen..] {
            let pin = usize::from(edge.pin);
            if pin >= PINS {
                continue;
            }
            if edge.level {
                self.high_since[pin] = Some((edge.cycle, counters));
            } else if let Some((start, before)) = self.high_since[pin].take() {
                self.windows[pin].add(edge.cycle - start, &counters.since(&before));
            }
        }
        self.seen = edges.len();
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
