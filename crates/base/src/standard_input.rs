// SPDX-License-Identifier: MIT OR Apache-2.0
//! What somebody gives on standard input.

use std::io::{IsTerminal as _, Read as _};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::fs::FileType;

/// After so long without the end of a pipe it is said what is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// As much as the largest board's RAM.
const MOST: u64 = 256 << 20;

/// All of it, if it is a file or a pipe; nothing at all of what is neither, nor a terminal.
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
        // Nobody waits when the program ends.
        let _ = sender.send(read.map(|_| bytes));
    });
    let read = match receiver.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Timeout) => {
            eprintln!(
                "note: waiting for the end of standard input (</dev/null when there is none)"
            );
            receiver.recv().ok()
        }
        read => read.ok(),
    };
    let bytes = read.transpose().context("cannot read standard input")?;
    let bytes = bytes.unwrap_or_default();
    if bytes.len() as u64 > MOST {
        bail!("standard input: more than {MOST} bytes, and no board has RAM for them");
    }
    Ok(Some(bytes))
}
