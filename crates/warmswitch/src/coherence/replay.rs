// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeats a run without the checker, up to the instruction of a report.

use std::str::FromStr;

use anyhow::{Result, bail};
use board::boot::Boot;
use board::{BoardBus, BoardSpec, Machine};

use results::runs::markers::Typed;

use super::outside::Outside;
use super::{Judge, RunEnd, session};

/// Number of core cycles before the report at which the machine begins to execute one instruction at a time. No single
/// instruction takes this long.
const BEFORE: u64 = 20_000;

/// End of the error message for a place that does not belong to the run.
const OTHER_RUN: &str = "it is another run; board, kernel, root file system, command and version must be \
                         those of the report";

/// Option of `coherence` in a report's replay command.
const GDB: &str = "--gdb";

/// An instruction that a run executed. A report's replay command writes it as `PC@CYCLE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Address of the instruction.
    pub pc: u32,
    /// Core cycle in which it was executed.
    pub cycle: u64,
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<At, String> {
        if let Some(file) = text.strip_prefix('@') {
            let report = std::fs::read_to_string(file);
            let report = report.map_err(|error| format!("{file}: cannot read it: {error}"))?;
            return At::of_report(&report).ok_or(format!(
                "{file}: has no report of `coherence` with a replay"
            ));
        }
        let parts = text.split_once('@').and_then(|(pc, cycle)| {
            let pc = u32::from_str_radix(pc.strip_prefix("0x")?, 16).ok()?;
            Some(At {
                pc,
                cycle: cycle.parse().ok()?,
            })
        });
        parts.ok_or(
            "not PC@CYCLE as in a report's replay, like 0xc0001008@2000000, and not @FILE with a report"
                .to_string(),
        )
    }
}

/// Runs the board with this command, up to the instruction at `at`.
pub fn machine_at(
    board: &BoardSpec,
    boot: &Boot,
    command: Option<&Typed>,
    outside: &Outside,
    at: At,
) -> Result<Machine> {
    let mut machine = Machine::new(board.clone(), boot)?;
    outside.connect(&mut machine)?;
    let (no_judge, stop_at) = (Judge(|_: &Machine| Ok(())), at.near());
    let ended = session(&mut machine, no_judge, stop_at, command, f64::INFINITY);
    at.check_that_it_came_near(ended.err(), machine.now())?;
    at.stand_before(machine)
}

impl At {
    /// Finds the first replay command in the output of `coherence`. The output may be text or JSON.
    fn of_report(report: &str) -> Option<At> {
        let words: Vec<&str> = report.split_whitespace().collect();
        let places = words
            .windows(2)
            .filter(|pair| pair[0] == GDB && !pair[1].starts_with('@'));
        places.into_iter().find_map(|pair| pair[1].parse().ok())
    }

    /// Returns a cycle shortly before the instruction. The run stops there, and continues one instruction at a time.
    pub fn near(self) -> u64 {
        self.cycle.saturating_sub(BEFORE)
    }

    /// Rejects a run that ended before [`At::near`].
    pub fn check_that_it_came_near(self, ended: Option<RunEnd>, now: u64) -> Result<()> {
        match ended {
            Some(RunEnd::Limit | RunEnd::BootLimit) if now >= self.near() => Ok(()),
            Some(RunEnd::Interrupted) => bail!("stopped"),
            _ => bail!(
                "the run ended in cycle {now}, before the report's cycle {}: {OTHER_RUN}",
                self.cycle
            ),
        }
    }

    /// Runs the machine up to the instruction.
    pub fn stand_before(self, mut machine: Machine) -> Result<Machine> {
        let at = self;
        let Some(start) = start_of(machine.clone(), at) else {
            bail!(
                "{:#010x} was not executed in cycle {}: {OTHER_RUN}",
                at.pc,
                at.cycle
            );
        };
        machine.run_until(start);
        Ok(machine)
    }
}

/// Returns the cycle in which the instruction begins.
fn start_of<B: BoardBus>(mut machine: Machine<B>, at: At) -> Option<u64> {
    let mut start = None;
    while machine.now() <= at.cycle {
        let now = machine.now();
        if machine.cpu().pc() == at.pc {
            start = Some(now);
        }
        machine.run_until(now + 1);
        if machine.now() == now {
            break;
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_pc_and_a_cycle() {
        let at = At {
            pc: 0xc000_1008,
            cycle: 2_000_000,
        };
        assert_eq!("0xc0001008@2000000".parse(), Ok(at));
        let report = "error[stale-read]\n  replay: warmswitch coherence --gdb 0xc0001008@2000000 -- a\n  \
                      replay: warmswitch coherence --gdb 0x10@3 -- a\n";
        assert_eq!(At::of_report(report), Some(at));
        let json = "{ \"replay\": \"warmswitch coherence --gdb 0xc0001008@2000000 -- a\" }";
        assert_eq!(At::of_report(json), Some(at));
        assert_eq!(At::of_report("0 reports; --gdb @report"), None);
        let error = "@/nosuch/report".parse::<At>().unwrap_err();
        assert!(
            error.starts_with("/nosuch/report: cannot read it"),
            "{error}"
        );
        for bad in [
            "",
            "0xc0001008",
            "2000000",
            "c0001008@2",
            "0x1@",
            "0x1@-1",
            "0x1@2@3",
        ] {
            assert!(bad.parse::<At>().is_err(), "{bad}");
        }
    }
}
