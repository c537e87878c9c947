// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one loop that waits for what a board's console says. It looks at the end of fixed slices of
//! board time, so that nothing depends on the host.

use board::{BoardBus, Machine, Stop};

use crate::watchdog::{Over, Watchdog};
use base::interrupt;
use results::runs::markers::{self, Typed};

/// A boot that takes longer than this, in board seconds, has failed.
const BOOT_LIMIT_S: f64 = 60.0;
/// Looks at the console and at Ctrl-C per second of board time.
pub const SLICES_PER_S: u64 = 200;

/// Why waiting ended.
pub enum WaitEnd<E> {
    /// The board stopped, or the limit of board time was reached; and for what it waited.
    Board(Stop, String),
    /// The guest came to its end.
    Over(Over),
    /// The user asked.
    Interrupted,
    /// Who stands beside ended it.
    Handler(E),
}

/// What is to be done when the board stops within a slice.
pub enum AfterStop {
    /// It goes on.
    GoOn,
    /// It goes on, unless the slice is over: then the console is looked at first.
    Look,
    /// Nobody knows why it stopped.
    Nothing,
}

/// Who stands beside the board and acts when it stops: at edges, at frames, at a time of its own.
pub trait StopHandler<B: BoardBus> {
    /// How it ends the waiting.
    type End;

    /// The cycle at which it wants to act next.
    fn next(&self, _machine: &Machine<B>) -> u64 {
        u64::MAX
    }

    /// The board has stopped.
    fn stopped(&mut self, machine: &mut Machine<B>, stop: &Stop) -> Result<AfterStop, Self::End>;
}

/// A board and its console, for waiting on what it prints.
pub struct Console<'a, B: BoardBus, W> {
    /// The board.
    pub machine: &'a mut Machine<B>,
    /// Acts when the board stops; see [`StopHandler`].
    pub beside: W,
    /// Core cycle that ends every wait, even one with a later limit.
    pub stop_at: u64,
}

impl<B: BoardBus, W: StopHandler<B>> Console<'_, B, W> {
    /// Runs until the console's log has `text` behind byte `from`; gives the place behind it.
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
            let then = self.beside.stopped(self.machine, &stop);
            match (then.map_err(WaitEnd::Handler)?, stop) {
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

    /// From power-on to the shell's first prompt, which follows the marker. A kernel that could not unpack all of its
    /// root file system goes on without the rest: that is the end, prompt or none.
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

    /// Types a command and waits for its end; gives where its part of the log begins and the marker
    /// of its end is.
    pub fn run(&mut self, typed: &Typed, limit_s: f64) -> Result<(usize, usize), WaitEnd<W::End>> {
        let start = self.machine.console_log().len();
        self.machine.send(format!("{}\n", typed.line).as_bytes());
        let end = self.until(start, &typed.end, limit_s)?;
        Ok((start, end))
    }
}

/// The core cycle `seconds` after cycle `now`; the last there is when that is too far away.
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
