// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two boards in lockstep, one with the interpreter and one with the translator. After every step, the states of both
//! must be the same.
//!
//! After each step, the driver compares everything but the RAM: registers, CP15, TLBs, caches with their data, counters,
//! cycles and devices. It compares the contents of the RAM every million cycles or every step, whichever is longer.
//!
//! `LOCKSTEP_STEP=CYCLES` sets the step. `cargo xtask lockstep` sets small ones.

use std::time::Instant;

use arm::State as _;
use board::link::Rate;
use board::memory::Sdram;
use board::{BoardSpec, Machine, Stop};
use session::peer::{NoPeer, Peer, Plan, Station};

/// Cycles of a step, unless the environment sets another number. A prime number, so that the comparisons do not fall on
/// the same places of a loop.
const STEP: u64 = 20_000_003;
/// Least number of cycles between two comparisons of the RAM.
const RAM_STEP: u64 = 1_000_000;
/// Seconds of board time in which an awaited text must be printed.
const LIMIT_S: u64 = 240;

/// A board, and the station at the other end of its network cable.
struct Side {
    machine: Machine,
    peer: Box<dyn Peer>,
    state: Vec<u8>,
}

/// Two boards in lockstep.
pub struct Lockstep {
    spec: BoardSpec,
    interpreted: Side,
    translated: Side,
    step: u64,
    /// Cycle up to which both boards ran.
    now: u64,
    /// Cycle from which the next comparison includes the RAM.
    ram_at: u64,
    comparisons: [u64; 2],
    start: Instant,
}

/// Gives a machine the translator.
fn translate(machine: &mut Machine) {
    let core = machine.spec().core.core;
    let translator = ::engine::translator(core).expect("a translator");
    assert!(machine.cpu_mut().set_engine(Some(translator)));
}

impl Side {
    fn new(machine: Machine) -> Side {
        Side {
            machine,
            peer: Box::new(NoPeer),
            state: Vec::new(),
        }
    }

    /// Runs up to a cycle. Meanwhile, the station acts when a frame arrives and at the times that it chooses.
    fn run(&mut self, cycle: u64) -> Stop {
        loop {
            let due = self.machine.link().cycle(self.peer.next_ns());
            let stop = self.machine.run_until(cycle.min(due));
            match stop {
                Stop::Frame => self.peer.act(&mut self.machine.cables()),
                Stop::Limit if self.machine.now() >= due => {
                    self.peer.act(&mut self.machine.cables());
                }
                _ => return stop,
            }
        }
    }

    /// Saves everything but the RAM, which an empty one replaces for that time.
    fn save(&mut self, spec: &BoardSpec) {
        let empty = Sdram::new(0, &spec.sdram, spec.cpu_hz, spec.bus_hz);
        let cpu = self.machine.cpu_mut();
        let ram = std::mem::replace(cpu.bus.ram_mut(), empty);
        self.state.clear();
        cpu.save(&mut self.state);
        *cpu.bus.ram_mut() = ram;
    }

    /// Describes the registers and counters.
    fn describe(&self) -> String {
        let cpu = self.machine.cpu();
        let registers: Vec<_> = (0..16).map(|n| format!("{:x}", cpu.register(n))).collect();
        format!(
            "cycles {} pc {:x} cpsr {:x} registers {registers:?}\n{:?}",
            cpu.cycles(),
            cpu.pc(),
            cpu.cpsr(),
            cpu.counters.entries()
        )
    }
}

impl Lockstep {
    /// Makes two boards from a board before its first instruction. The translated board gets the translator.
    pub fn new(spec: BoardSpec, machine: Machine) -> Lockstep {
        let step = std::env::var("LOCKSTEP_STEP").map_or(STEP, |text| {
            text.parse().expect("LOCKSTEP_STEP is a number of cycles")
        });
        let mut translated = machine.clone();
        translate(&mut translated);
        Lockstep {
            spec,
            interpreted: Side::new(machine),
            translated: Side::new(translated),
            step,
            now: 0,
            ram_at: 0,
            comparisons: [0; 2],
            start: Instant::now(),
        }
    }

    /// Connects a station that sends the requests of a plan to each board.
    pub fn connect(&mut self, rate: Rate, plan: Plan) {
        for side in [&mut self.interpreted, &mut self.translated] {
            side.machine.cables().plug(Some(rate));
            side.machine.cables().set_stop_on_frame(true);
            side.peer = Box::new(Station::new(Some(plan)));
        }
    }

    /// From this call on, each board continues from the state of the other one. The translated board has a clone's code.
    pub fn exchange(&mut self) {
        self.compare(true);
        let saved = self.translated.machine.snapshot();
        let saved = saved.expect("the machine runs, and nothing is connected");
        let restored = Machine::restored(self.spec.clone(), &saved);
        self.interpreted.machine = restored.expect("the same board");
        self.translated.machine = self.translated.machine.clone();
    }

    /// Runs one step, and compares the boards.
    fn step(&mut self) {
        self.now += self.step;
        let stops = [&mut self.interpreted, &mut self.translated].map(|side| side.run(self.now));
        assert_eq!(stops, [Stop::Limit, Stop::Limit], "cycle {}", self.now);
        let with_ram = self.now >= self.ram_at;
        self.compare(with_ram);
        if with_ram {
            self.ram_at = self.now + RAM_STEP;
        }
    }

    fn compare(&mut self, with_ram: bool) {
        self.comparisons[0] += 1;
        self.interpreted.save(&self.spec);
        self.translated.save(&self.spec);
        if self.interpreted.state != self.translated.state {
            self.differ("state");
        }
        if with_ram {
            self.comparisons[1] += 1;
            let [one, other] = [&self.interpreted, &self.translated]
                .map(|side| side.machine.cpu().bus.ram().words());
            if one != other {
                self.differ("RAM");
            }
        }
    }

    fn differ(&self, what: &str) -> ! {
        let (one, other) = (&self.interpreted, &self.translated);
        let bytes = one.state.iter().zip(&other.state);
        let at: Vec<_> = bytes.enumerate().filter(|(_, (a, b))| a != b).collect();
        panic!(
            "{what} differs between cycle {} and {}, first bytes {:x?}\ninterpreter: {}\ntranslator:  {}",
            self.now.saturating_sub(self.step),
            self.now,
            &at[..at.len().min(16)],
            one.describe(),
            other.describe()
        );
    }

    /// Steps up to a cycle.
    pub fn until_cycle(&mut self, cycle: u64) {
        while self.now < cycle {
            self.step();
        }
    }

    /// Steps until the consoles have printed a text after byte `from`. Returns the position after the text.
    pub fn until(&mut self, from: usize, text: &str) -> usize {
        let end = self.now + LIMIT_S * self.spec.cpu_hz;
        let mut looked = from;
        loop {
            let log = self.translated.machine.console_log();
            // Most steps print nothing.
            if log.len() > looked {
                let mut windows = log[from..].windows(text.len());
                if let Some(at) = windows.position(|bytes| bytes == text.as_bytes()) {
                    return from + at + text.len();
                }
                looked = log.len();
            }
            assert!(self.now < end, "no {text:?} in {LIMIT_S} s of board time");
            self.step();
        }
    }

    /// Types a line on both consoles. Returns the position in the log before the line.
    pub fn type_line(&mut self, line: &str) -> usize {
        for side in [&mut self.interpreted, &mut self.translated] {
            side.machine.send(format!("{line}\n").as_bytes());
        }
        self.translated.machine.console_log().len()
    }

    /// The output of both consoles from a byte on.
    pub fn console(&self, from: usize) -> &[u8] {
        &self.translated.machine.console_log()[from..]
    }

    /// Compares the boards for the last time, with the RAM, and prints what was compared.
    pub fn end(mut self, name: &str) {
        self.compare(true);
        println!(
            "{name}, step {}: {} instructions, {} cycles, {} comparisons, {} of them with RAM, {:.0} s",
            self.step,
            self.translated.machine.counters().instructions,
            self.translated.machine.now(),
            self.comparisons[0],
            self.comparisons[1],
            self.start.elapsed().as_secs_f64()
        );
    }
}
