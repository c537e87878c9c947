// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the speed of the simulator, in host CPU time, on fixed work: a boot to the shell, a CPU-bound guest, and
//! rings of tasks that switch. If QEMU is installed, QEMU does the same work for comparison.
//!
//! Host time is the CPU time of the simulating process, because other load on the machine affects CPU time less than
//! wall-clock time. The best of several repetitions counts. The measurement of work after the boot excludes the boot.
//! For this, the simulator forks the booted machine. QEMU's CPU time is read when the guest's console shows the
//! beginning and the end of the work. The speeds of both simulators use the guest instructions that our simulator
//! counted, because QEMU has a different number of timer interrupts in equal work.

pub mod against;
pub mod cores;
pub mod qemu;

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use arm::Counters;
use board::boot::Boot;
use board::{BoardSpec, spec};
use serde::Serialize;

use base::boards;
use base::progress::Progress;
use base::time::cpu_s;
use results::runs::markers;
use session::boot::{KernelFiles, Prepared, Recipe};
use session::session::Session;
use supply::kernel::{self, Request};

/// A fixed piece of work for the guest.
pub struct BenchWork {
    /// Name in the table.
    pub name: &'static str,
    /// Commands that are typed at the prompt one after the other; empty for the boot.
    pub commands: &'static [&'static str],
    /// Million instructions per second that QEMU with its stock cache plugin reached on the machine
    /// of the first measurements (2 cores, 2026).
    pub stock_plugin_mips: f64,
}

/// Target speed, as a multiple of QEMU's speed with the stock cache plugin.
pub const AIM: f64 = 3.0;

/// All pieces of work. The boot is the first.
pub const WORKS: &[BenchWork] = &[
    BenchWork {
        name: "boot to the shell",
        commands: &[],
        stock_plugin_mips: 36.0,
    },
    BenchWork {
        name: "CPU-bound guest",
        commands: &["cpu_bound 200"],
        stock_plugin_mips: 45.0,
    },
    BenchWork {
        name: "switch rings of 2, 4, 8",
        commands: &[
            "lat_ctx -P -s 0 -n 1000 -r 3 -l 1000 2",
            "lat_ctx -P -s 0 -n 500 -r 3 -l 1000 4",
            "lat_ctx -P -s 0 -n 250 -r 3 -l 1000 8",
        ],
        stock_plugin_mips: 20.0,
    },
];

/// Limit of board time for a command, in seconds.
const LIMIT_S: f64 = 120.0;

/// The guest of the simulator and of QEMU.
pub struct Guest {
    /// The kernel is a zImage, so that both simulators unpack it.
    pub prepared: Prepared,
    /// The board.
    pub board: BoardSpec,
}

impl Guest {
    /// Returns the plain kernel and our root file system for the default board. Builds them if they are missing.
    pub fn new() -> Result<Guest> {
        let built = kernel::build(&Request {
            name: "plain".into(),
            ..Request::default()
        })?;
        let (board, _) = boards::load(spec::DEFAULT_BOARD)?;
        let recipe = Recipe {
            files: Some(KernelFiles {
                image: built.zimage.clone(),
                ..KernelFiles::from(&built)
            }),
            ..Recipe::default()
        };
        Ok(Guest {
            prepared: recipe.prepare(&board)?,
            board,
        })
    }
}

/// Result of one piece of work on our simulator.
#[derive(Clone, Debug, Serialize)]
pub struct Ours {
    /// Executed guest instructions.
    pub instructions: u64,
    /// Board time in which the core worked instead of waiting for an interrupt, in seconds.
    pub busy_board_s: f64,
    /// Board time, in seconds.
    pub board_s: f64,
    /// Host CPU time, in seconds.
    pub cpu_s: f64,
    /// Counters of the core.
    pub counters: BTreeMap<&'static str, u64>,
}

impl Ours {
    /// Returns million guest instructions per second of host CPU time.
    pub fn mips(&self) -> f64 {
        self.instructions as f64 / self.cpu_s / 1e6
    }

    /// Returns seconds of busy board time per second of host CPU time.
    pub fn speed(&self) -> f64 {
        self.busy_board_s / self.cpu_s
    }
}

struct Start {
    cpu_s: f64,
    cycles: u64,
    counters: Counters,
}

impl Start {
    fn of(session: &Session) -> Start {
        Start {
            cpu_s: cpu_s(),
            cycles: session.now(),
            counters: *session.counters(),
        }
    }

    fn end(self, session: &Session) -> Ours {
        let counters = session.counters().since(&self.counters);
        let cycles = session.now() - self.cycles;
        let hz = session.cpu_hz() as f64;
        Ours {
            instructions: counters.instructions,
            busy_board_s: (cycles - counters.idle_cycles) as f64 / hz,
            board_s: cycles as f64 / hz,
            cpu_s: cpu_s() - self.cpu_s,
            counters: counters.entries().into_iter().collect(),
        }
    }
}

/// Runs all pieces of work on our simulator, and returns the best of `repeat` runs of each piece.
pub fn ours(guest: &Guest, repeat: u32) -> Result<Vec<Ours>> {
    let mut progress = Progress::new("simulator", u64::from(repeat) * WORKS.len() as u64);
    let ours = works(&guest.board, &guest.prepared.boot(), repeat, &mut progress)?;
    progress.finish("done");
    Ok(ours)
}

/// Runs all pieces of work on a board, and returns the best of `repeat` runs of each piece.
fn works(
    board: &BoardSpec,
    boot: &Boot,
    repeat: u32,
    progress: &mut Progress,
) -> Result<Vec<Ours>> {
    let mut best: Vec<Option<Ours>> = vec![None; WORKS.len()];
    for _ in 0..repeat {
        let start_s = cpu_s();
        let booted = Session::boot(board, 1, boot)?;
        let start = Start {
            cpu_s: start_s,
            cycles: 0,
            counters: Counters::default(),
        };
        keep(&mut best[0], start.end(&booted));
        progress.step(WORKS[0].name);
        for (work, best) in WORKS.iter().zip(&mut best).skip(1) {
            let mut session = booted.clone();
            let start = Start::of(&session);
            for command in work.commands {
                let measured = session.run_guest(command, LIMIT_S)?;
                let console = String::from_utf8_lossy(&measured.console);
                let (text, status) = markers::between_markers(&console)?;
                if status != 0 {
                    bail!("{command}: exit code {status}: {}", text.trim());
                }
            }
            keep(best, start.end(&session));
            progress.step(work.name);
        }
    }
    Ok(best.into_iter().flatten().collect())
}

fn keep(best: &mut Option<Ours>, new: Ours) {
    if best.as_ref().is_none_or(|old| new.cpu_s < old.cpu_s) {
        *best = Some(new);
    }
}
