// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loop that waits for text on a board's console. The loop checks the console at the end of fixed slices of board
//! time, so nothing depends on the host's speed.

use board::{BoardBus, Machine, Stop};

use crate::watchdog::{Over, Watchdog};
use base::interrupt;
use results::runs::markers::{self, Typed};

/// Limit for each step of a boot, in seconds of board time.
const BOOT_LIMIT_S: f64 = 60.0;
/// Slices per second of board time. At the end of each slice, the loop checks the console and Ctrl-C.
pub const SLICES_PER_S: u64 = 200;

/// Reason why a wait ended.
pub enum WaitEnd<E> {
    /// The board stopped, or the wait reached its limit of board time. The second field is the awaited text.
    Board(Stop, String),
    /// The guest ended.
    Over(Over),
    /// The user pressed Ctrl-C.
    Interrupted,
    /// The stop handler ended the wait.
    Handler(E),
}

/// Action of the loop after a stop within a slice.
pub enum AfterStop {
    /// The board runs on.
    GoOn,
    /// The board runs on. If the stop was at the end of a slice, the loop checks the console first.
    Look,
    /// The handler did not expect this stop, so the loop decides.
    Nothing,
}

/// Acts when the board stops. A board stops at edges, at frames, and at cycles that the handler chooses.
pub trait StopHandler<B: BoardBus> {
    /// Reason why the handler ends the wait.
    type End;

    /// Returns the cycle at which the handler wants to act next.
    fn next(&self, _machine: &Machine<B>) -> u64 {
        u64::MAX
    }

    /// Acts after a stop of the board.
    fn stopped(&mut self, machine: &mut Machine<B>, stop: &Stop) -> Result<AfterStop, Self::End>;
}

/// A board and its console, to wait for text.
pub struct Console<'a, B: BoardBus, W> {
    /// The board.
    pub machine: &'a mut Machine<B>,
    /// Handler of the board's stops.
    pub beside: W,
    /// Core cycle that ends every wait, even a wait with a later limit.
    pub stop_at: u64,
}

impl<B: BoardBus, W: StopHandler<B>> Console<'_, B, W> {
    /// Runs until the console prints `text` after byte `from` of its log. Returns the position after the text.
    pub fn until(
        &mut self,
        from: usize,
        text: &str,
        limit_s: f64,
    ) -> Result<usize, WaitEnd<W::End>> {
        let hz = self.machine.spec().cpu_hz;
        let slice = hz / SLICES_PER_S;
        let end = cycle_after(self.machine.now(), limit_s, hz).min(self.stop_at);
        let mut watchdog = Watchdog::new(self.machine);
        loop {
            let slice_end = ((self.machine.now() / slice + 1) * slice).min(end);
            let next = self.beside.next(self.machine);
            let stop = self.machine.run_until(slice_end.min(next));
            let after = self.beside.stopped(self.machine, &stop);
            match (after.map_err(WaitEnd::Handler)?, stop) {
                (AfterStop::GoOn, _) => continue,
                (AfterStop::Look, _) if self.machine.now() < slice_end => continue,
                (AfterStop::Look, _) => {}
                (AfterStop::Nothing, Stop::Limit) if self.machine.now() < end => {}
                (AfterStop::Nothing, stop) => return Err(WaitEnd::Board(stop, text.to_string())),
            }
            if self.machine.now() >= end {
                return Err(WaitEnd::Board(Stop::Limit, text.to_string()));
            }
            let log = &self.machine.console_log()[from..];
            if let Some(at) = log.windows(text.len()).position(|w| w == text.as_bytes()) {
                return Ok(from + at + text.len());
            }
            if let Some(over) = watchdog.look(self.machine) {
                return Err(WaitEnd::Over(over));
            }
            if interrupt::asked() {
                return Err(WaitEnd::Interrupted);
            }
        }
    }

    /// Boots from power-on to the shell's first prompt, which follows the marker. If a kernel cannot unpack its
    /// complete root file system, it continues with a part of the root file system. Such a boot is an error, even if
    /// the prompt appears.
    pub fn boot(&mut self) -> Result<(), WaitEnd<W::End>> {
        let booted = self.boot_to_prompt();
        let stopped = matches!(booted, Err(WaitEnd::Interrupted | WaitEnd::Handler(_)));
        if !stopped && markers::is_half_unpacked(self.machine.console_log()) {
            return Err(WaitEnd::Over(Over::HalfUnpacked));
        }
        booted
    }

    fn boot_to_prompt(&mut self) -> Result<(), WaitEnd<W::End>> {
        let ready = self.until(0, markers::READY, BOOT_LIMIT_S)?;
        self.until(ready, "# ", BOOT_LIMIT_S)?;
        Ok(())
    }

    /// Types a command and waits for its end. Returns the position in the log at which the command was typed, and the
    /// position after the end marker.
    pub fn run(&mut self, typed: &Typed, limit_s: f64) -> Result<(usize, usize), WaitEnd<W::End>> {
        let start = self.machine.console_log().len();
        self.machine.send(format!("{}\n", typed.line).as_bytes());
        let end = self.until(start, &typed.end, limit_s)?;
        Ok((start, end))
    }
}

/// Returns the core cycle `seconds` after cycle `now`. If that is too far away, returns the largest cycle.
fn cycle_after(now: u64, seconds: f64, hz: u64) -> u64 {
    now.saturating_add((seconds * hz as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_beyond_all_time_lies_in_the_future() {
        assert_eq!(cycle_after(5, 2.0, 100), 205);
        assert_eq!(cycle_after(5, 1e300, 180_000_000), u64::MAX);
    }
}
