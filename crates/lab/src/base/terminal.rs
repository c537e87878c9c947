// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's terminal in raw mode while a console is shown on it, restored whatever happens.

use std::io;
use std::sync::Mutex;

use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

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
