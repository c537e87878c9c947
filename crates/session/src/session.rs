// SPDX-License-Identifier: MIT OR Apache-2.0
//! A booted board at its shell prompt. Commands go over the board's console. Instruments are connected to the board's
//! pins and network cable.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use arm::Counters;
use board::boot::Boot;
use board::bus::SystemBus;
use board::instrument::{Bench, Cables};
use board::link::Link;
use board::{BoardBus, BoardSpec, Machine, Observed, Observer, Stop};
use watch::checker::{Checker, Distinctions, Report};
use watch::ledger::Ledger;

use crate::console::{self, AfterStop, Console, WaitEnd};
use crate::engine;
use crate::peer::{NoPeer, Peer};
use crate::snapshot::{self, Snapshots};
use results::runs::markers::{self, Typed};
use results::runs::run::Window;

/// Pins that the guest raises during its timed sections: pin 0 for the ring, pin 1 for the overhead.
const PINS: usize = 2;

/// A machine at its shell's prompt.
#[derive(Clone)]
pub struct Session<B: BoardBus = SystemBus> {
    machine: Machine<B>,
    keeper: Option<Keeper<B>>,
}

/// Callback of a keeper.
type Keep<B> = dyn Fn(&Machine<B>) + Send + Sync;

/// Calls back at regular intervals while a command runs.
struct Keeper<B: BoardBus> {
    /// Cycles between two calls.
    every: u64,
    /// Cycle of the next call.
    next: u64,
    keep: Arc<Keep<B>>,
}

impl<B: BoardBus> Clone for Keeper<B> {
    fn clone(&self) -> Keeper<B> {
        Keeper {
            keep: self.keep.clone(),
            ..*self
        }
    }
}

/// A session under the coherence checker.
pub type Checked = Session<Observed<Checker>>;

/// Result of one guest program.
pub struct Measured {
    /// Console output since the command was typed.
    pub console: Vec<u8>,
    /// For each of pins 0 and 1: sums over the sections in which the pin was high.
    pub windows: [Window; PINS],
    /// Sums from the first typed byte to the end.
    pub whole: Window,
}

/// The error of a guest that gave no result.
#[derive(Debug)]
pub struct Failure {
    /// Error message.
    pub message: String,
    /// Everything that the console printed before the error.
    pub console: Vec<u8>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl Session {
    /// Boots to the first prompt. `seed` starts the random sequence of cache victims.
    pub fn boot(board: &BoardSpec, seed: u64, boot: &Boot) -> Result<Session> {
        Session::at_prompt(engine::equip(Machine::new(seeded(board, seed), boot)?))
    }

    /// Restores the machine `name`, if it has a snapshot. The machine may be at any cycle.
    pub fn kept(
        snapshots: &Snapshots,
        name: &str,
        (board, seed, boot): (&BoardSpec, u64, &Boot),
        note: &dyn Fn(&str),
    ) -> Result<Option<Session>> {
        let spec = boot.on(seeded(board, seed))?;
        Ok(snapshots.find(name, &spec, note).map(Session::of))
    }

    /// Returns a board at its first prompt, from a snapshot if there is one. Otherwise boots and makes the snapshot.
    /// Notes on snapshots go to `note`.
    pub fn booted(
        snapshots: &Snapshots,
        board: &BoardSpec,
        seed: u64,
        boot: &Boot,
        note: &dyn Fn(&str),
    ) -> Result<Session> {
        let spec = boot.on(seeded(board, seed))?;
        let Some(name) = snapshot::name(&spec, boot) else {
            return Session::boot(board, seed, boot);
        };
        if let Some(machine) = snapshots.find(&name, &spec, note) {
            return Ok(Session::of(machine));
        }
        let session = Session::boot(board, seed, boot)?;
        snapshots.keep(&name, &session.machine, note);
        Ok(session)
    }
}

impl Session {
    /// Returns the board, at its prompt.
    pub fn into_machine(self) -> Machine {
        self.machine
    }

    /// Returns the session with an observer, which sees only later events.
    pub fn observed_by<O: Observer>(
        self,
        observer: impl FnOnce(&Machine) -> O,
    ) -> Session<Observed<O>> {
        let observer = observer(&self.machine);
        Session::of(self.machine.observed_by(observer))
    }
}

impl<O: Observer> Session<Observed<O>> {
    /// Boots to the first prompt with an observer from the first instruction on.
    pub fn boot_observed(
        board: &BoardSpec,
        seed: u64,
        boot: &Boot,
        observer: O,
    ) -> Result<Session<Observed<O>>> {
        let machine = Machine::observed(seeded(board, seed), boot, |_| observer)?;
        Session::at_prompt(machine)
    }

    /// Returns the observer.
    pub fn observer(&self) -> &O {
        self.machine.observer()
    }

    /// Returns the observer.
    pub fn observer_mut(&mut self) -> &mut O {
        self.machine.observer_mut()
    }
}

impl Session<Observed<Ledger>> {
    /// Returns the ledger of the cycles.
    pub fn ledger(&self) -> &Ledger {
        self.machine.observer()
    }

    /// For each task, records the events of the `worst` longest latencies and of latency number `wanted`.
    pub fn keep_latencies(&mut self, (worst, wanted): (usize, Option<usize>)) {
        self.machine.observer_mut().set_kept(worst, wanted);
    }

    /// Records the events of the latency that begins at this cycle.
    pub fn keep_latency_from(&mut self, rise: u64) {
        self.machine.observer_mut().set_kept_from(rise);
    }

    /// Reads the names of the tasks that exist now.
    pub fn name_tasks(&mut self) {
        watch::ledger::name_tasks(&mut self.machine);
    }
}

impl Checked {
    /// Boots to the first prompt under the coherence checker. If two occurrences of a cause differ in a call of a
    /// function in `distinctions`, they become separate reports.
    pub fn boot_checked(
        board: &BoardSpec,
        seed: u64,
        boot: &Boot,
        distinctions: &Distinctions,
    ) -> Result<Checked> {
        let mut machine = Checker::machine(seeded(board, seed), boot)?;
        machine.observer_mut().tell_apart(distinctions.clone());
        Session::at_prompt(machine)
    }

    /// Returns one report per cause with its number of occurrences, in order of time.
    pub fn reports(&self) -> Vec<(Report, u64)> {
        let reports = self.machine.observer().reports();
        reports.map(|(r, count)| (r.clone(), count)).collect()
    }
}

/// Returns the board with the seed of its cache victims.
pub(crate) fn seeded(board: &BoardSpec, seed: u64) -> BoardSpec {
    let mut board = board.clone();
    board.core.victim_seed = (seed ^ (seed >> 32)) as u32;
    board
}

impl<B: BoardBus> Session<B> {
    fn of(machine: Machine<B>) -> Session<B> {
        Session {
            machine,
            keeper: None,
        }
    }

    /// Calls `keep` every `every` cycles while commands run.
    pub fn set_keeper(&mut self, every: u64, keep: impl Fn(&Machine<B>) + Send + Sync + 'static) {
        // Stays half a slice away from the console checks, so that these checks keep their cycles.
        let half_slice = self.cpu_hz() / (2 * console::SLICES_PER_S);
        self.keeper = Some(Keeper {
            every,
            next: (self.now() / every + 1) * every + half_slice,
            keep: Arc::new(keep),
        });
    }

    /// Waits for the first prompt of a machine before its first instruction.
    pub(crate) fn at_prompt(machine: Machine<B>) -> Result<Session<B>> {
        let mut session = Session::of(machine);
        let ended = session.console(Attached::nothing()).boot();
        ended.map_err(|ended| session.wait_error(ended))?;
        Ok(session)
    }

    /// Returns the machine, for a test that changes it.
    pub fn machine_mut(&mut self) -> &mut Machine<B> {
        &mut self.machine
    }

    fn console<'a>(&'a mut self, handler: Attached<'a, B>) -> Console<'a, B, Attached<'a, B>> {
        Console {
            machine: &mut self.machine,
            beside: handler,
            stop_at: u64::MAX,
        }
    }

    /// Converts the end of a wait to an error.
    fn wait_error(&self, ended: WaitEnd<Infallible>) -> anyhow::Error {
        match ended {
            WaitEnd::Board(stop, awaited) => {
                let message = self.machine.message(&stop, |_| None);
                self.failure(format!(
                    "waiting for {awaited:?}: {message}{}",
                    self.last_words()
                ))
            }
            WaitEnd::Over(over) => self.failure(format!("{}{}", over.what(), self.last_words())),
            WaitEnd::Interrupted => anyhow!("stopped"),
            WaitEnd::Handler(never) => match never {},
        }
    }

    /// Types `run-guest COMMAND`, waits for its end, and takes the counters at the pins' edges.
    pub fn run_guest(&mut self, command: &str, limit_s: f64) -> Result<Measured> {
        self.run_guest_beside(command, limit_s, &mut NoPeer)
    }

    /// Runs a guest program with a peer on the board's cables.
    pub fn run_guest_beside(
        &mut self,
        command: &str,
        limit_s: f64,
        peer: &mut dyn Peer,
    ) -> Result<Measured> {
        self.run_beside(&Typed::by_run_guest(command), limit_s, peer)
    }

    /// Types a user's command and waits for its end.
    pub fn run(&mut self, typed: &Typed, limit_s: f64) -> Result<Measured> {
        self.run_beside(typed, limit_s, &mut NoPeer)
    }

    /// Types a command and waits for its end, with a peer on the board's cables.
    pub fn run_beside(
        &mut self,
        typed: &Typed,
        limit_s: f64,
        peer: &mut dyn Peer,
    ) -> Result<Measured> {
        let (from, counters) = (self.now(), *self.counters());
        let mut pins = Pins::new(&self.machine);
        self.machine.set_stop_on_edge(true);
        let attached = Attached {
            pins: Some(&mut pins),
            peer: Some(peer),
            keeper: self.keeper.take(),
        };
        let ended = self.console(attached).run(typed, limit_s);
        let (start, end) = ended.map_err(|ended| self.wait_error(ended))?;
        let ended = self.console(Attached::nothing()).until(end, "\n", limit_s);
        ended.map_err(|ended| self.wait_error(ended))?;
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

    /// Types a command without waiting for its end.
    pub fn type_in(&mut self, typed: &Typed) {
        self.machine.send(format!("{}\n", typed.line).as_bytes());
    }

    /// Runs up to a cycle.
    pub fn run_to(&mut self, cycle: u64) -> Stop {
        self.machine.run_until(cycle)
    }

    /// Returns the last lines of the console, for messages.
    fn last_words(&self) -> String {
        markers::last_words(self.machine.console_log())
    }

    /// Returns an error with the console's text.
    pub fn failure(&self, message: String) -> anyhow::Error {
        let console = self.machine.console_log().to_vec();
        Failure { message, console }.into()
    }

    /// Returns the board's cables, to connect instruments.
    pub fn cables(&mut self) -> Cables<'_> {
        self.machine.cables()
    }

    /// Returns the board's network cable.
    pub fn link(&self) -> &Link {
        self.machine.link()
    }

    /// Returns the instruments.
    pub fn bench(&self) -> &Bench {
        self.machine.bench()
    }

    /// Returns notes on hardware that the guest uses and the board models only in part.
    pub fn notes(&self) -> Vec<String> {
        self.machine.notes()
    }

    /// Returns the board time since power-on, in seconds.
    pub fn seconds(&self) -> f64 {
        self.machine.seconds()
    }

    /// Name of the machine's engine.
    pub fn engine(&self) -> &'static str {
        engine::name(&self.machine)
    }

    /// Returns the core cycles since power-on.
    pub fn now(&self) -> u64 {
        self.machine.now()
    }

    /// Returns the core's counters since power-on.
    pub fn counters(&self) -> &Counters {
        self.machine.counters()
    }

    /// Returns the core clock, in Hz.
    pub fn cpu_hz(&self) -> u64 {
        self.machine.spec().cpu_hz
    }
}

/// Handler of a session's stops. It takes the pins' edges, and lets the peer and the keeper act.
struct Attached<'a, B: BoardBus> {
    pins: Option<&'a mut Pins>,
    peer: Option<&'a mut dyn Peer>,
    keeper: Option<Keeper<B>>,
}

impl<'a, B: BoardBus> Attached<'a, B> {
    fn nothing() -> Attached<'a, B> {
        Attached {
            pins: None,
            peer: None,
            keeper: None,
        }
    }

    fn act(&mut self, machine: &mut Machine<B>) {
        if let Some(peer) = &mut self.peer {
            peer.act(&mut machine.cables());
        }
    }

    /// Lets the peer act while the board sleeps. Returns whether the peer may wake the board.
    fn may_wake(&mut self, machine: &mut Machine<B>) -> bool {
        let peer = self.peer.as_mut();
        peer.is_some_and(|peer| peer.act_asleep(&mut machine.cables()))
    }
}

impl<B: BoardBus> console::StopHandler<B> for Attached<'_, B> {
    type End = Infallible;

    fn next(&self, machine: &Machine<B>) -> u64 {
        let next_ns = self.peer.as_ref().map_or(u64::MAX, |peer| peer.next_ns());
        let keeper = self.keeper.as_ref().map_or(u64::MAX, |keeper| keeper.next);
        machine.link().cycle(next_ns).min(keeper)
    }

    fn stopped(&mut self, machine: &mut Machine<B>, stop: &Stop) -> Result<AfterStop, Infallible> {
        if let Some(keeper) = self.keeper.as_mut()
            && *stop == Stop::Limit
            && machine.now() >= keeper.next
        {
            (keeper.keep)(machine);
            keeper.next += keeper.every;
            return Ok(AfterStop::Look);
        }
        let due = self.next(machine);
        match stop {
            Stop::Edge => {
                if let Some(pins) = &mut self.pins {
                    pins.edge(machine);
                }
            }
            Stop::Frame => self.act(machine),
            Stop::Limit if machine.now() >= due => self.act(machine),
            Stop::Asleep if self.may_wake(machine) => {}
            _ => return Ok(AfterStop::Nothing),
        }
        Ok(AfterStop::GoOn)
    }
}

/// Sums cycles and counters while a pin is high.
struct Pins {
    /// Number of edges already taken.
    seen: usize,
    high_since: [Option<(u64, Counters)>; PINS],
    windows: [Window; PINS],
}

impl Pins {
    /// Starts with no pin high; earlier edges do not count.
    fn new<B: BoardBus>(machine: &Machine<B>) -> Pins {
        let seen = machine.edges().len();
        Pins {
            seen,
            high_since: [None; PINS],
            windows: Default::default(),
        }
    }

    /// Takes the new edges. `machine` has stopped at the last edge.
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

#[cfg(all(test, feature = "every-kernel"))]
#[path = "dma_tests.rs"]
mod dma_tests;
