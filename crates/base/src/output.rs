// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output and standard error. The macros replace the macros of the standard library, which panic when the
//! reader has closed the pipe (`warmswitch list | head -1`) or the disk is full. With these macros, a failed write to
//! standard output ends the program, and a failed write to standard error is ignored.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write as _};

/// Exit code of a program whose reader closed the pipe, as shells report it.
const READER_CLOSED: i32 = 141;

/// Replaces the standard library's macro of this name.
#[macro_export]
macro_rules! print {
    ($($part:tt)*) => {
        $crate::output::write(format_args!($($part)*))
    };
}

/// Replaces the standard library's macro of this name.
#[macro_export]
macro_rules! println {
    ($($part:tt)*) => {
        $crate::output::write(format_args!("{}\n", format_args!($($part)*)))
    };
}

/// Replaces the standard library's macro of this name.
#[macro_export]
macro_rules! eprintln {
    ($($part:tt)*) => {
        $crate::output::tell(format_args!("{}\n", format_args!($($part)*)))
    };
}

/// Writes to standard error. Ignores a failure, because there is nowhere to report it.
pub fn tell(text: Arguments<'_>) {
    // One call writes the whole text, so that lines of several threads do not mix.
    let _ = std::io::stderr()
        .lock()
        .write_all(text.to_string().as_bytes());
}

/// Writes to standard output. Ends the program when the write fails.
pub fn write(text: Arguments<'_>) {
    judge(std::io::stdout().lock().write_fmt(text));
}

/// Writes a guest's output, which need not be text, to standard output. Ends the program when the write fails.
pub fn write_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    judge(out.write_all(bytes).and_then(|()| out.flush()));
}

/// Ends the program when a write to standard output failed.
pub fn judge(written: std::io::Result<()>) {
    let Err(error) = written else {
        return;
    };
    crate::terminal::restore();
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(READER_CLOSED);
    }
    eprintln!("error: cannot write the output: {error}");
    std::process::exit(2);
}
