// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watchdog: detects that a guest will do nothing more. Either the guest's kernel has printed that it ended, or the
//! core is stuck in a loop inside its caches.

use arm::Counters;
use board::{BoardBus, Machine};

/// Longest board time in which a working core shows no sign of activity, in seconds. Linux takes a timer interrupt 100
/// times per second. Linux's decompressor takes 3 s, and writes to memory all the time.
const STILL_S: f64 = 10.0;

/// A line counts as a kernel's last line if nothing follows it for this board time, in seconds.
const QUIET_S: f64 = 0.5;

/// Longer than every line that begins with one of [`LAST_LINES`], in bytes.
const LONGEST_LINE: usize = 512;

/// Beginnings of a kernel's last line, and their meanings.
const LAST_LINES: [(&str, Over); 4] = [
    ("end Kernel panic - not syncing", Over::Panic),
    ("reboot: System halted", Over::Halted),
    ("reboot: Power down", Over::PoweredDown),
    ("reboot: Power off not available", Over::PoweredDown),
];

/// How a guest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The kernel panicked and is in its final loop.
    Panic,
    /// The guest halted.
    Halted,
    /// The guest powered down, but the board has no power switch.
    PoweredDown,
    /// The core executes instructions that have no effect.
    Still,
    /// The root file system is incomplete.
    HalfUnpacked,
}

impl Over {
    /// Describes the end.
    pub fn what(self) -> &'static str {
        match self {
            Over::Panic => "the guest's kernel panicked",
            Over::Halted => "the guest halted itself",
            Over::PoweredDown => "the guest turned the power off",
            Over::Still => {
                "the guest's core is stuck in a loop: for 10 s of board time, no interrupt came and \
                 nothing outside its caches was accessed"
            }
            Over::HalfUnpacked => {
                "the guest's kernel could not unpack its whole root file system: files are missing or cut"
            }
        }
    }
}

/// Checks a machine from time to time.
pub struct Watchdog {
    /// Length of the console's log, number of cycles spent waiting for interrupts, and board time at which one of these
    /// two last changed.
    said: ((usize, u64), f64),
    /// Number of exceptions at the last change of `said`.
    exceptions: u64,
    /// Sum of the counters that show activity, and the board time of its last change.
    signs: (u64, f64),
}

impl Watchdog {
    /// Starts to watch a machine.
    pub fn new<B: BoardBus>(machine: &Machine<B>) -> Watchdog {
        let now_s = machine.seconds();
        Watchdog {
            said: (said(machine), now_s),
            exceptions: machine.counters().exceptions,
            signs: (signs(machine.counters()), now_s),
        }
    }

    /// Returns how the guest ended, if it has ended.
    pub fn look<B: BoardBus>(&mut self, machine: &Machine<B>) -> Option<Over> {
        let now_s = machine.seconds();
        // A shell that prints these lines waits for interrupts afterwards. A kernel that has ended does not.
        if self.said.0 != said(machine) {
            self.said = (said(machine), now_s);
            self.exceptions = machine.counters().exceptions;
        }
        let signs = signs(machine.counters());
        if self.signs.0 != signs {
            self.signs = (signs, now_s);
        }
        if now_s - self.signs.1 >= STILL_S {
            return Some(Over::Still);
        }
        let quiet = now_s - self.said.1 >= QUIET_S;
        let over = quiet.then(|| last_line(machine.console_log())).flatten()?;
        // After a panic, timer interrupts still occur. After a halt or power-down, no exception occurs.
        let is_silent = self.exceptions == machine.counters().exceptions;
        (over == Over::Panic || is_silent).then_some(over)
    }
}

fn said<B: BoardBus>(machine: &Machine<B>) -> (usize, u64) {
    (machine.console_log().len(), machine.counters().idle_cycles)
}

/// Returns the meaning of the console's last line, if the line is complete. If any output follows, even a prompt, the
/// guest has not ended.
fn last_line(log: &[u8]) -> Option<Over> {
    let log = &log[log.len().saturating_sub(LONGEST_LINE)..];
    let text = String::from_utf8_lossy(log);
    let text = text.strip_suffix('\n')?.trim_end();
    let line = without_time(text.lines().last()?);
    let line = line.strip_prefix("---[ ").unwrap_or(line);
    let last = LAST_LINES.iter().find(|(words, _)| line.starts_with(words));
    last.map(|(_, over)| *over)
}

/// Removes the time stamp `[    1.234567] ` from a line of the kernel.
fn without_time(line: &str) -> &str {
    let rest = line.strip_prefix('[').and_then(|l| l.split_once("] "));
    match rest {
        Some((time, rest)) if time.trim().parse::<f64>().is_ok() => rest,
        _ => line,
    }
}

/// Sums the counters that grow unless the core loops inside its caches.
fn signs(counters: &Counters) -> u64 {
    let c = counters;
    c.exceptions
        + c.idle_cycles
        + c.icache_fills
        + c.uncached_fetches
        + c.dcache_fills
        + c.uncached_reads
        + c.buffered_stores
        + c.dcache_cleans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(log: &str) -> Option<Over> {
        last_line(log.as_bytes())
    }

    #[test]
    fn a_kernels_last_line_is_known_with_its_time_and_without() {
        let panic = "x\r\n[    1.25] ---[ end Kernel panic - not syncing: VFS: x ]---\r\n";
        assert_eq!(over(panic), Some(Over::Panic));
        assert_eq!(over("reboot: System halted\r\n"), Some(Over::Halted));
        let off = "a\r\n[   12.000001] reboot: Power down\r\n";
        assert_eq!(over(off), Some(Over::PoweredDown));
    }

    #[test]
    fn what_a_command_says_of_such_lines_is_no_end() {
        assert_eq!(over("# echo reboot: Power down\r\n"), None);
        assert_eq!(over("reboot: Power down"), None, "not a whole line");
        assert_eq!(over("reboot: Power down\r\n# "), None, "it goes on");
        assert_eq!(over("Kernel panic - not syncing: x\r\n"), None);
        assert_eq!(over(""), None);
    }
}
