// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's terminal: its width, and raw mode while the terminal shows a console. The terminal's settings are
//! restored when the program ends, even after a panic.

use std::io;
use std::sync::Mutex;

use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

/// Smallest width that output is fitted to, in columns.
const NARROWEST: usize = 60;

/// Settings to restore. `None` unless raw mode is on.
static SAVED: Mutex<Option<Termios>> = Mutex::new(None);

/// Raw mode, on as long as this value lives.
pub struct RawMode(());

impl RawMode {
    /// Switches standard input to raw mode. Returns `None` when standard input is not a terminal.
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

/// Restores the terminal's settings. Does nothing when the settings were not changed.
pub fn restore() {
    if let Some(settings) = saved().take() {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &settings);
    }
}

static COLUMNS: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();

/// Returns the width of the output, in columns, as [`ask_columns`] found it. Returns `None` for a file or a pipe, and
/// before [`ask_columns`] is called.
pub fn columns() -> Option<usize> {
    for_tests::COLUMNS
        .get()
        .or_else(|| COLUMNS.get().copied().flatten())
}

/// Finds the width for [`columns`]. The width is the variable `COLUMNS` if that is set, otherwise the width of the
/// terminal on standard output. A program calls this function once. Tests do not call it, so that their results do not
/// depend on a terminal.
pub fn ask_columns() {
    COLUMNS.get_or_init(find_columns);
}

fn find_columns() -> Option<usize> {
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

/// Makes a panic restore the terminal before it prints its message.
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

/// Terminal width for tests.
pub mod for_tests {
    thread_local! {
        /// The width, in columns. `None` outside a test.
        pub static COLUMNS: std::cell::Cell<Option<usize>> = const { std::cell::Cell::new(None) };
    }

    /// Calls `what` with the width of the output set to this number of columns.
    pub fn with_columns<T>(columns: usize, what: impl FnOnce() -> T) -> T {
        COLUMNS.set(Some(columns));
        let done = what();
        COLUMNS.set(None);
        done
    }
}
