// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands around a guest's words on the console.

use anyhow::{Context as _, Result};

/// Printed by `run-guest` before the program starts.
pub const BEGIN: &str = "@@begin";
/// Printed by `run-guest` with the exit status after the program ended.
pub const END: &str = "@@end ";
/// Printed by the first process before the first prompt.
pub const READY: &str = "@@ready";

/// What stands between the markers, and the exit status.
pub fn between_markers(console: &str) -> Result<(&str, i32)> {
    let start = console
        .rfind(BEGIN)
        .context("the program was not started: no @@begin")?;
    let body = &console[start + BEGIN.len()..];
    let end = body
        .rfind(END)
        .context("the program did not end: no @@end")?;
    let status = body[end + END.len()..]
        .split_whitespace()
        .next()
        .unwrap_or("");
    let status = status
        .parse()
        .with_context(|| format!("@@end {status}: not an exit status"))?;
    Ok((body[..end].trim(), status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_stands_between_the_markers_whatever_the_terminal_echoes() {
        let console = "# run-guest x\r\n@@begin\r\nline\r\n\r\n@@end 3\r\n# ";
        assert_eq!(between_markers(console).unwrap(), ("line", 3));
    }

    #[test]
    fn a_console_without_markers_is_an_error() {
        assert!(between_markers("nothing").is_err());
        assert!(between_markers("@@begin\nx\n@@end q\n").is_err());
    }
}
