// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's terminal: its width; and raw mode while a console is shown on it, restored whatever happens.

use std::io;
use std::sync::Mutex;

use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

/// Narrower than that nothing is made to fit.
const NARROWEST: usize = 60;

/// The settings to go back to while raw mode is on.
static SAVED: Mutex<Option<Termios>> = Mutex::new(None);

/// Raw mode for as long as this value lives.
pub struct RawMode(());

impl RawMode {
    /// Switches standard input to raw mode; `None` when it is not a terminal.
    pub fn enter() -> io::Result<Option<RawMode>> {
        let stdin = io::stdin();
        if !isatty(&stdin) {
            return Ok(None);
        }
        let settings = tcgetattr(&stdin)?;
        let mut raw = settings.clone();
        raw.make_raw();
        *saved() = Some(settings);
        install_panic_hook();
        tcsetattr(&stdin, OptionalActions::Now, &raw)?;
        Ok(Some(RawMode(())))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        restore();
    }
}

/// Puts the terminal back as it was; does nothing when it was not changed.
pub fn restore() {
    if let Some(settings) = saved().take() {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &settings);
    }
}

/// Columns that output has room in: `COLUMNS`, where that is set, else those of the terminal on standard output; none
/// when that is a file or a pipe.
pub fn columns() -> Option<usize> {
    #[cfg(test)]
    return for_tests::COLUMNS.get();
    #[cfg(not(test))]
    {
        static COLUMNS: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
        *COLUMNS.get_or_init(asked)
    }
}

#[cfg_attr(test, expect(dead_code, reason = "tests say how wide they want it"))]
fn asked() -> Option<usize> {
    let given = std::env::var("COLUMNS").ok();
    let given = given.and_then(|columns| columns.trim().parse().ok());
    let of_terminal = || {
        let size = tcgetwinsize(io::stdout()).ok()?;
        Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
    };
    let columns: Option<usize> = given.or_else(of_terminal);
    columns.map(|columns| columns.max(NARROWEST))
}

fn saved() -> std::sync::MutexGuard<'static, Option<Termios>> {
    SAVED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A panic's message is printed on a terminal that was restored before.
fn install_panic_hook() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}

/// What a test takes the terminal's width for.
#[cfg(test)]
pub mod for_tests {
    thread_local! {
        pub static COLUMNS: std::cell::Cell<Option<usize>> = const { std::cell::Cell::new(None) };
    }

    /// Does something on a terminal that is so wide.
    pub fn with_columns<T>(columns: usize, what: impl FnOnce() -> T) -> T {
        COLUMNS.set(Some(columns));
        let done = what();
        COLUMNS.set(None);
        done
    }
}
