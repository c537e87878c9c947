// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output. The two macros stand in for those of the standard library, which panic when
//! nobody reads any more (`warmswitch list | head -1`) or the disk is full.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write as _};

/// Exit code of a program whose reader went away, as shells count it.
const NOBODY_READS: i32 = 141;

macro_rules! print {
    ($($part:tt)*) => {
        $crate::base::output::write(format_args!($($part)*))
    };
}

macro_rules! println {
    ($($part:tt)*) => {
        $crate::base::output::write(format_args!("{}\n", format_args!($($part)*)))
    };
}

/// Writes, or ends the program.
pub fn write(text: Arguments<'_>) {
    judge(std::io::stdout().lock().write_fmt(text));
}

/// Ends the program when something was not written.
pub fn judge(written: std::io::Result<()>) {
    let Err(error) = written else {
        return;
    };
    crate::base::terminal::restore();
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(NOBODY_READS);
    }
    eprintln!("error: cannot write the output: {error}");
    std::process::exit(2);
}
