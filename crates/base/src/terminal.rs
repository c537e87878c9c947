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

static COLUMNS: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();

/// Width of the output, in columns, as [`ask_columns`] found it. None for a file, a pipe, and where that was not called.
pub fn columns() -> Option<usize> {
    for_tests::COLUMNS
        .get()
        .or_else(|| COLUMNS.get().copied().flatten())
}

/// Finds the width for [`columns`]: `COLUMNS`, where that is set, else the terminal's on standard output. A program
/// calls this once; tests do not, so that no result depends on the terminal that they run in.
pub fn ask_columns() {
    COLUMNS.get_or_init(asked);
}

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

/// The terminal's width in a test.
pub mod for_tests {
    thread_local! {
        /// The width, in columns; none outside a test.
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
