// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest prints: raw samples between two marker lines on the console.

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

/// Printed by `run-guest` before the program starts.
pub const BEGIN: &str = "@@begin";
/// Printed by `run-guest` with the exit status after the program ended.
pub const END: &str = "@@end ";
/// Printed by the first process before the first prompt.
pub const READY: &str = "@@ready";

/// The one line of `lat_ctx`. Times are nanoseconds per hop, one value per timed section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatCtx {
    pub guest: String,
    pub format: u32,
    pub mode: String,
    pub tasks: u32,
    pub size_kb: u32,
    /// Times around the ring per timed section.
    pub rounds: u32,
    /// The same work without a switch.
    pub overhead_ns: Vec<f64>,
    /// A hop around the ring.
    pub hop_ns: Vec<f64>,
    /// A hop less the median overhead: the switch.
    pub switch_ns: Vec<f64>,
}

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

/// The samples in the output of `lat_ctx` (its console text between the markers).
pub fn parse_lat_ctx(output: &str) -> Result<LatCtx> {
    let line = output
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("{\"guest\":\"lat_ctx\""))
        .with_context(|| format!("lat_ctx printed no result: {}", last_line(output)))?;
    let result: LatCtx = serde_json::from_str(line).context("lat_ctx's line is damaged")?;
    if result.format != 1 {
        bail!(
            "lat_ctx prints format {}, this program reads 1",
            result.format
        );
    }
    if result.switch_ns.is_empty() || result.switch_ns.len() != result.hop_ns.len() {
        bail!(
            "lat_ctx's line holds {} switch samples",
            result.switch_ns.len()
        );
    }
    Ok(result)
}

fn last_line(text: &str) -> &str {
    text.trim()
        .lines()
        .last()
        .unwrap_or("nothing at all")
        .trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "{\"guest\":\"lat_ctx\",\"format\":1,\"mode\":\"process\",\"tasks\":2,\
        \"size_kb\":0,\"rounds\":10,\"overhead_ns\":[100.0,101.5],\"hop_ns\":[600.0,601.0],\
        \"switch_ns\":[500.0,501.0]}";

    #[test]
    fn the_output_stands_between_the_markers_whatever_the_terminal_echoes() {
        let console = format!("# run-guest x\r\n@@begin\r\n{LINE}\r\n\r\n@@end 0\r\n# ");
        let (output, status) = between_markers(&console).unwrap();
        assert_eq!(status, 0);
        assert_eq!(parse_lat_ctx(output).unwrap().switch_ns, [500.0, 501.0]);
    }

    #[test]
    fn a_failed_guest_is_reported_with_its_last_words() {
        let console = "@@begin\r\nlat_ctx: the overhead is not stable\r\n\r\n@@end 3\r\n";
        let (output, status) = between_markers(console).unwrap();
        assert_eq!(status, 3);
        let error = parse_lat_ctx(output).unwrap_err().to_string();
        assert!(error.contains("the overhead is not stable"), "{error}");
    }

    #[test]
    fn a_damaged_or_cut_line_is_an_error_and_no_result() {
        assert!(parse_lat_ctx(&LINE[..60]).is_err());
        assert!(parse_lat_ctx(&LINE.replace("[500.0,501.0]", "[]")).is_err());
        assert!(between_markers("nothing").is_err());
        assert!(between_markers("@@begin\nx\n@@end q\n").is_err());
    }
}
