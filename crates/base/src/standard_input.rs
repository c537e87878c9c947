// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads standard input.

use std::io::{IsTerminal as _, Read as _};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::fs::FileType;

/// Time after which a note says that the program waits for the end of its input.
const PATIENCE: Duration = Duration::from_secs(3);

/// Largest input, in bytes: the RAM of the largest board.
const MOST: u64 = 256 << 20;

/// Reads all of standard input if it is a file, a pipe or a socket. Returns `None` for a terminal, and no bytes for
/// other devices.
pub fn given() -> Result<Option<Vec<u8>>> {
    if std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let mode = rustix::fs::fstat(std::io::stdin()).map(|stat| stat.st_mode);
    let kind = mode.map_or(FileType::Unknown, FileType::from_raw_mode);
    if !matches!(
        kind,
        FileType::RegularFile | FileType::Fifo | FileType::Socket
    ) {
        return Ok(Some(Vec::new()));
    }
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = std::io::stdin().take(MOST + 1).read_to_end(&mut bytes);
        // Sending fails only when the program has ended. The bytes are then not needed.
        let _ = sender.send(read.map(|_| bytes));
    });
    let read = match receiver.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Timeout) => {
            eprintln!(
                "note: waiting for the end of standard input (add </dev/null if there is none)"
            );
            receiver.recv().ok()
        }
        read => read.ok(),
    };
    let bytes = read.transpose().context("cannot read standard input")?;
    let bytes = bytes.unwrap_or_default();
    if bytes.len() as u64 > MOST {
        bail!("standard input: more than {MOST} bytes, the RAM of the largest board");
    }
    Ok(Some(bytes))
}
