// SPDX-License-Identifier: MIT OR Apache-2.0
//! A booted board whose shell takes commands, as a cable to its console and its pins would do it.

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
use watch::checker::{Apart, Checker, Report};
use watch::ledger::Ledger;

use crate::console::{self, AfterStop, Console, WaitEnd};
use crate::peer::{NoPeer, Peer};
use crate::snapshot::{self, Snapshots};
use results::runs::markers::{self, Typed};
use results::runs::run::Window;

/// Pins that the guest moves around its timed sections: the ring's, the overhead's.
const PINS: usize = 2;

/// A machine at its shell's prompt.
#[derive(Clone)]
pub struct Session<B: BoardBus = SystemBus> {
    machine: Machine<B>,
    keeper: Option<Keeper<B>>,
}

/// What is done with a board when it is looked at.
type Keep<B> = dyn Fn(&Machine<B>) + Send + Sync;

/// Somebody who looks at a board every so many cycles while a command runs.
struct Keeper<B: BoardBus> {
    every: u64,
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

/// The error of a guest that gave no result.
#[derive(Debug)]
pub struct Failure {
    /// Error message.
    pub message: String,
    /// Everything that the console printed until then.
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

    /// The machine of that name from among `snapshots`, at whatever cycle it was kept, if it is there.
    pub fn kept(
        snapshots: &Snapshots,
        name: &str,
        (board, seed, boot): (&BoardSpec, u64, &Boot),
        note: &dyn Fn(&str),
    ) -> Result<Option<Session>> {
        let spec = boot.on(seeded(board, seed))?;
        Ok(snapshots.find(name, &spec, note).map(Session::of))
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
    /// The board, at its prompt.
    pub fn into_machine(self) -> Machine {
        self.machine
    }

    /// The same board, looked at from now on by what `observer` makes.
    pub fn observed_by<O: Observer>(
        self,
        observer: impl FnOnce(&Machine) -> O,
    ) -> Session<Observed<O>> {
        let observer = observer(&self.machine);
        Session::of(self.machine.observed_by(observer))
    }
}

impl<O: Observer> Session<Observed<O>> {
    /// The same with this observer, from the first instruction on.
    pub fn boot_observed(
        board: &BoardSpec,
        seed: u64,
        boot: &Boot,
        observer: O,
    ) -> Result<Session<Observed<O>>> {
        let machine = Machine::observed(seeded(board, seed), boot, |_| observer)?;
        Session::at_prompt(machine)
    }

    /// Who looks on.
    pub fn observer(&self) -> &O {
        self.machine.observer()
    }

    /// Who looks on.
    pub fn observer_mut(&mut self) -> &mut O {
        self.machine.observer_mut()
    }
}

impl Session<Observed<Ledger>> {
    /// What its cycles went for.
    pub fn ledger(&self) -> &Ledger {
        self.machine.observer()
    }

    /// Keeps what happens in so many of each task's worst latencies, and in its latency `wanted`.
    pub fn keep_latencies(&mut self, (worst, wanted): (usize, Option<usize>)) {
        self.machine.observer_mut().set_kept(worst, wanted);
    }

    /// Keeps what happens in the latency that begins at this cycle.
    pub fn keep_latency_from(&mut self, rise: u64) {
        self.machine.observer_mut().set_kept_from(rise);
    }

    /// Reads the names of the tasks that there are now.
    pub fn name_tasks(&mut self) {
        watch::ledger::name_tasks(&mut self.machine);
    }
}

impl Checked {
    /// The same under the coherence checker, which changes nothing and tells reports `apart` by calls of these
    /// functions of the kernel.
    pub fn boot_checked(
        board: &BoardSpec,
        seed: u64,
        boot: &Boot,
        apart: &Apart,
    ) -> Result<Checked> {
        let mut machine = Checker::machine(seeded(board, seed), boot)?;
        machine.observer_mut().tell_apart(apart.clone());
        Session::at_prompt(machine)
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
    fn of(machine: Machine<B>) -> Session<B> {
        Session {
            machine,
            keeper: None,
        }
    }

    /// Has `keep` look at the board every so many cycles while commands run.
    pub fn set_keeper(&mut self, every: u64, keep: impl Fn(&Machine<B>) + Send + Sync + 'static) {
        // Between two looks at the console, which are to stay where they are.
        let half_slice = self.cpu_hz() / (2 * console::SLICES_PER_S);
        self.keeper = Some(Keeper {
            every,
            next: (self.now() / every + 1) * every + half_slice,
            keep: Arc::new(keep),
        });
    }

    fn at_prompt(machine: Machine<B>) -> Result<Session<B>> {
        let mut session = Session::of(machine);
        let ended = session.console(Attached::nobody()).boot();
        ended.map_err(|ended| session.gone(ended))?;
        Ok(session)
    }

    /// The board itself, for claims about its state.
    /// The machine, to be changed by a test.
    pub fn machine_mut(&mut self) -> &mut Machine<B> {
        &mut self.machine
    }

    fn console<'a>(&'a mut self, beside: Attached<'a, B>) -> Console<'a, B, Attached<'a, B>> {
        Console {
            machine: &mut self.machine,
            beside,
            stop_at: u64::MAX,
        }
    }

    /// The error that waiting ended with.
    fn gone(&self, ended: WaitEnd<Infallible>) -> anyhow::Error {
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

    /// Types `run-guest COMMAND` and waits for its end, taking the counters at the pins' edges.
    pub fn run_guest(&mut self, command: &str, limit_s: f64) -> Result<Measured> {
        self.run_guest_beside(command, limit_s, &mut NoPeer)
    }

    /// The same with somebody at the board's cables.
    pub fn run_guest_beside(
        &mut self,
        command: &str,
        limit_s: f64,
        outside: &mut dyn Peer,
    ) -> Result<Measured> {
        self.run_beside(&Typed::by_run_guest(command), limit_s, outside)
    }

    /// Types a user's command.
    pub fn run(&mut self, typed: &Typed, limit_s: f64) -> Result<Measured> {
        self.run_beside(typed, limit_s, &mut NoPeer)
    }

    /// The same with somebody at the board's cables.
    pub fn run_beside(
        &mut self,
        typed: &Typed,
        limit_s: f64,
        outside: &mut dyn Peer,
    ) -> Result<Measured> {
        let (from, counters) = (self.now(), *self.counters());
        let mut pins = Pins::new(&self.machine);
        self.machine.set_stop_on_edge(true);
        let beside = Attached {
            pins: Some(&mut pins),
            outside: Some(outside),
            keeper: self.keeper.take(),
        };
        let ended = self.console(beside).run(typed, limit_s);
        let (start, end) = ended.map_err(|ended| self.gone(ended))?;
        let ended = self.console(Attached::nobody()).until(end, "\n", limit_s);
        ended.map_err(|ended| self.gone(ended))?;
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

    /// Types a command and does not wait for it.
    pub fn type_in(&mut self, typed: &Typed) {
        self.machine.send(format!("{}\n", typed.line).as_bytes());
    }

    /// Runs up to a cycle.
    pub fn run_to(&mut self, cycle: u64) -> Stop {
        self.machine.run_until(cycle)
    }

    /// The end of the console's text, for messages.
    fn last_words(&self) -> String {
        markers::last_words(self.machine.console_log())
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

    /// What the guest uses that is not modelled as it should be.
    pub fn notes(&self) -> Vec<String> {
        self.machine.notes()
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

/// Who stands beside a session: the pins' edges, and somebody at the board's cables.
struct Attached<'a, B: BoardBus> {
    pins: Option<&'a mut Pins>,
    outside: Option<&'a mut dyn Peer>,
    keeper: Option<Keeper<B>>,
}

impl<'a, B: BoardBus> Attached<'a, B> {
    fn nobody() -> Attached<'a, B> {
        Attached {
            pins: None,
            outside: None,
            keeper: None,
        }
    }

    fn act(&mut self, machine: &mut Machine<B>) {
        if let Some(outside) = &mut self.outside {
            outside.act(&mut machine.cables());
        }
    }
}

impl<B: BoardBus> console::StopHandler<B> for Attached<'_, B> {
    type End = Infallible;

    fn next(&self, machine: &Machine<B>) -> u64 {
        let next_ns = self.outside.as_ref().map_or(u64::MAX, |o| o.next_ns());
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
            _ => return Ok(AfterStop::Nothing),
        }
        Ok(AfterStop::GoOn)
    }
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

#[cfg(all(test, feature = "every-kernel"))]
#[path = "dma_tests.rs"]
mod dma_tests;
