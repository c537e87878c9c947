// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sees that a guest will say and do nothing more: its kernel said so, or the core goes round and
//! round without touching anything.

use arm::Counters;
use board::{BoardBus, Machine};

/// Board time for which a core may compute without any sign of it, in seconds. Linux takes a timer
/// interrupt 100 times a second; its decompressor takes 3 s, and writes all the time.
const STILL_S: f64 = 10.0;

/// A kernel that said its last line says nothing more for so long, in seconds of board time.
const QUIET_S: f64 = 0.5;

/// Longer than any of [`LAST_LINES`] with what stands behind it.
const LONGEST_LINE: usize = 512;

/// How a kernel's last line begins, and what it means.
const LAST_LINES: [(&str, Over); 4] = [
    ("end Kernel panic - not syncing", Over::Panic),
    ("reboot: System halted", Over::Halted),
    ("reboot: Power down", Over::PoweredDown),
    ("reboot: Power off not available", Over::PoweredDown),
];

/// How a guest came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Its kernel panicked and went into its last loop.
    Panic,
    /// It was halted.
    Halted,
    /// It turned itself off; the board has no switch for that.
    PoweredDown,
    /// The core executes instructions without an effect.
    Still,
    /// Its root file system is not whole.
    HalfUnpacked,
}

impl Over {
    /// In words.
    pub fn what(self) -> &'static str {
        match self {
            Over::Panic => "the guest's kernel panicked",
            Over::Halted => "the guest halted itself",
            Over::PoweredDown => "the guest turned the power off",
            Over::Still => {
                "the guest's core goes round and round: for 10 s of board time no interrupt came, and \
                 nothing outside its caches was touched"
            }
            Over::HalfUnpacked => {
                "the guest's kernel could not unpack its whole root file system: files are missing or cut"
            }
        }
    }
}

/// Looks at a machine from time to time.
pub struct Watchdog {
    /// How much the console had said and how long the core had waited, and since when both stay so.
    said: ((usize, u64), f64),
    /// Interrupts and the like that had come then.
    exceptions: u64,
    /// What grows while the core does anything, and since when it does not.
    signs: (u64, f64),
}

impl Watchdog {
    /// One that looks from now on.
    pub fn new<B: BoardBus>(machine: &Machine<B>) -> Watchdog {
        let now_s = machine.seconds();
        Watchdog {
            said: (said(machine), now_s),
            exceptions: machine.counters().exceptions,
            signs: (signs(machine.counters()), now_s),
        }
    }

    /// Whether the guest's end has come.
    pub fn look<B: BoardBus>(&mut self, machine: &Machine<B>) -> Option<Over> {
        let now_s = machine.seconds();
        // A kernel that has ended never waits for anything; a shell that printed its words does.
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
        // After a panic the clock goes on, else nothing does.
        let nothing = self.exceptions == machine.counters().exceptions;
        (over == Over::Panic || nothing).then_some(over)
    }
}

fn said<B: BoardBus>(machine: &Machine<B>) -> (usize, u64) {
    (machine.console_log().len(), machine.counters().idle_cycles)
}

/// What the console's last line says, if it is a whole one. Who goes on to say anything, be it a
/// prompt, has not come to the end.
fn last_line(log: &[u8]) -> Option<Over> {
    let log = &log[log.len().saturating_sub(LONGEST_LINE)..];
    let text = String::from_utf8_lossy(log);
    let text = text.strip_suffix('\n')?.trim_end();
    let line = without_time(text.lines().last()?);
    let line = line.strip_prefix("---[ ").unwrap_or(line);
    let last = LAST_LINES.iter().find(|(words, _)| line.starts_with(words));
    last.map(|(_, over)| *over)
}

/// A kernel's line without `[    1.234567] `.
fn without_time(line: &str) -> &str {
    let rest = line.strip_prefix('[').and_then(|l| l.split_once("] "));
    match rest {
        Some((time, rest)) if time.trim().parse::<f64>().is_ok() => rest,
        _ => line,
    }
}

/// Grows with all that a core does but go round in its caches.
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
