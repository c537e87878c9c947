// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C: the first one asks everything to stop at the next safe point, so that what was measured
//! is saved and the terminal is restored; the second one ends the program.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Exit code of a program ended by Ctrl-C, as shells count it.
const INTERRUPTED: i32 = 130;

/// Takes over Ctrl-C, SIGTERM and SIGHUP. To be called once.
pub fn install() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            crate::base::terminal::restore();
            std::process::exit(INTERRUPTED);
        }
        eprintln!("\nstopping; what was measured is kept (Ctrl-C again ends at once)");
    })?;
    Ok(())
}

/// Did the user ask to stop?
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}
