// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output and standard error. The macros stand in for those of the standard library, which panic when
//! the reader has gone away (`warmswitch list | head -1`) or the disk is full. A result that cannot be written ends
//! the program; a message that cannot be written is dropped.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write as _};

/// Exit code of a program whose reader went away, as shells count it.
const NOBODY_READS: i32 = 141;

/// Stands in for the macro of the standard library of this name.
#[macro_export]
macro_rules! print {
    ($($part:tt)*) => {
        $crate::output::write(format_args!($($part)*))
    };
}

/// Stands in for the macro of the standard library of this name.
#[macro_export]
macro_rules! println {
    ($($part:tt)*) => {
        $crate::output::write(format_args!("{}\n", format_args!($($part)*)))
    };
}

/// Stands in for the macro of the standard library of this name.
#[macro_export]
macro_rules! eprintln {
    ($($part:tt)*) => {
        $crate::output::tell(format_args!("{}\n", format_args!($($part)*)))
    };
}

/// Writes to standard error. What cannot be written has nowhere to be complained of.
pub fn tell(text: Arguments<'_>) {
    // One call for the whole text: lines of several threads do not mix.
    let _ = std::io::stderr()
        .lock()
        .write_all(text.to_string().as_bytes());
}

/// Writes, or ends the program.
pub fn write(text: Arguments<'_>) {
    judge(std::io::stdout().lock().write_fmt(text));
}

/// Writes what a guest printed, which need not be text, or ends the program.
pub fn write_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    judge(out.write_all(bytes).and_then(|()| out.flush()));
}

/// Ends the program when something was not written.
pub fn judge(written: std::io::Result<()>) {
    let Err(error) = written else {
        return;
    };
    crate::terminal::restore();
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(NOBODY_READS);
    }
    eprintln!("error: cannot write the output: {error}");
    std::process::exit(2);
}
