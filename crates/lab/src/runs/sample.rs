// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest prints: raw samples between two marker lines on the console.

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::runs::seen::Seen;

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

/// What a workload prints, named in its `workload.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    LatCtx,
    Cyclictest,
    Hackbench,
    Ipc,
    /// Nothing that counts: instruments beside it measure.
    Instruments,
}

/// What a guest printed, read, or what instruments saw of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "output", rename_all = "snake_case")]
pub enum Output {
    LatCtx(LatCtx),
    Cyclictest(Histogram),
    Hackbench(Times),
    Ipc(Ipc),
    Instruments(Seen),
}

/// Latencies in whole microseconds, each with how often it was met; none is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Microseconds and count, ascending, without empty ones.
    pub us: Vec<(u32, u64)>,
    /// Latencies beyond the last bin, of which only the largest is known.
    pub overflows: u64,
    pub max_us: u32,
    /// The program's own average.
    pub avg_us: u32,
}

/// How long each run took, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub s: Vec<f64>,
}

/// The one line of `ipc`: one value per timed section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ipc {
    pub guest: String,
    pub format: u32,
    pub metric: IpcMetric,
    pub values: Vec<f64>,
}

/// What `ipc` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IpcMetric {
    /// Microseconds per round trip.
    LatFifo,
    /// MB a second.
    BwPipe,
}

impl Output {
    /// A ring's samples.
    pub fn lat_ctx(&self) -> Option<&LatCtx> {
        match self {
            Output::LatCtx(lat_ctx) => Some(lat_ctx),
            _ => None,
        }
    }
}

impl LatCtx {
    /// Hops in `sections` timed sections.
    pub fn hops(&self, sections: u64) -> u64 {
        sections * u64::from(self.rounds) * u64::from(self.tasks)
    }
}

impl Histogram {
    /// Latencies met.
    pub fn total(&self) -> u64 {
        self.overflows + self.us.iter().map(|(_, n)| n).sum::<u64>()
    }
}

/// Reads the output of a workload of that kind (its console text between the markers).
pub fn parse(kind: Kind, output: &str) -> Result<Output> {
    Ok(match kind {
        Kind::LatCtx => Output::LatCtx(parse_lat_ctx(output)?),
        Kind::Cyclictest => Output::Cyclictest(parse_cyclictest(output)?),
        Kind::Hackbench => Output::Hackbench(parse_hackbench(output)?),
        Kind::Ipc => Output::Ipc(json_line("ipc", output)?),
        Kind::Instruments => bail!("no instrument was there to measure"),
    })
}

/// `cyclictest -q -h N` with one thread.
fn parse_cyclictest(output: &str) -> Result<Histogram> {
    let mut histogram = Histogram::default();
    let (mut max, mut avg, mut total) = (None, None, None);
    for line in output.lines().map(str::trim) {
        let value = |text: &str| text.split_whitespace().next()?.parse().ok();
        if let Some(rest) = line.strip_prefix("# Total:") {
            total = value(rest);
        } else if let Some(rest) = line.strip_prefix("# Avg Latencies:") {
            avg = value(rest);
        } else if let Some(rest) = line.strip_prefix("# Max Latencies:") {
            max = value(rest);
        } else if let Some(rest) = line.strip_prefix("# Histogram Overflows:") {
            histogram.overflows = value(rest).context("damaged \"# Histogram Overflows\"")?;
        } else if let Some((us, count)) = bin(line).filter(|(_, count)| *count > 0) {
            histogram.us.push((us, count));
        }
    }
    let (Some(max), Some(avg), Some(total)) = (max, avg, total) else {
        bail!("cyclictest printed no histogram: {}", last_line(output));
    };
    (histogram.max_us, histogram.avg_us) = (max as u32, avg as u32);
    let counted = histogram.total() - histogram.overflows;
    let ascending = histogram.us.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if counted == 0 || counted != total || !ascending {
        bail!("cyclictest's histogram is damaged: {counted} latencies, it says {total}");
    }
    Ok(histogram)
}

/// A line of two numbers.
fn bin(line: &str) -> Option<(u32, u64)> {
    let (us, count) = line.split_once(char::is_whitespace)?;
    Some((us.parse().ok()?, count.trim().parse().ok()?))
}

/// The `Time:` lines of one `hackbench` or several.
fn parse_hackbench(output: &str) -> Result<Times> {
    let times = output
        .lines()
        .filter_map(|l| l.trim().strip_prefix("Time:"));
    let s: Result<Vec<f64>, _> = times.map(|time| time.trim().parse()).collect();
    let s = s.context("hackbench's time is damaged")?;
    if s.is_empty() || !s.iter().all(|s| *s > 0.0) {
        bail!("hackbench printed no time: {}", last_line(output));
    }
    Ok(Times { s })
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
fn parse_lat_ctx(output: &str) -> Result<LatCtx> {
    let result: LatCtx = json_line("lat_ctx", output)?;
    if result.switch_ns.is_empty() || result.switch_ns.len() != result.hop_ns.len() {
        bail!(
            "lat_ctx's line holds {} switch samples",
            result.switch_ns.len()
        );
    }
    Ok(result)
}

/// The line of JSON that one of our guests prints, format 1.
fn json_line<T: serde::de::DeserializeOwned>(guest: &str, output: &str) -> Result<T> {
    let start = format!("{{\"guest\":\"{guest}\"");
    let line = output
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with(&start))
        .with_context(|| format!("{guest} printed no result: {}", last_line(output)))?;
    let damaged = || format!("{guest}'s line is damaged");
    let value: serde_json::Value = serde_json::from_str(line).with_context(damaged)?;
    if value["format"] != 1 {
        bail!(
            "{guest} prints format {}, this program reads 1",
            value["format"]
        );
    }
    serde_json::from_value(value).with_context(damaged)
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

    const CYCLICTEST: &str = "# /dev/cpu_dma_latency set to 0us\r\n# Histogram\r\n000000 000000\r\n\
        000001 000007\r\n000002 000003\r\n# Total: 000000010\r\n# Min Latencies: 00001\r\n\
        # Avg Latencies: 00021\r\n# Max Latencies: 00199\r\n# Histogram Overflows: 00001\r\n\
        # Histogram Overflow at cycle number:\r\n# Thread 0: 00004\r\n";

    #[test]
    fn every_latency_of_cyclictest_is_kept_also_those_beyond_the_histogram() {
        let h = parse_cyclictest(CYCLICTEST).unwrap();
        assert_eq!(h.us, [(1, 7), (2, 3)]);
        assert_eq!(
            (h.overflows, h.max_us, h.avg_us, h.total()),
            (1, 199, 21, 11)
        );
        let cut = CYCLICTEST.replace("000002 000003\r\n", "");
        assert!(parse_cyclictest(&cut).is_err());
        assert!(parse_cyclictest("T: 0").is_err());
    }

    #[test]
    fn a_line_of_ipc_says_what_its_values_are() {
        let line = "{\"guest\":\"ipc\",\"format\":1,\"metric\":\"bw_pipe\",\"values\":[7.5]}";
        let Output::Ipc(ipc) = parse(Kind::Ipc, line).unwrap() else {
            panic!("not ipc's");
        };
        assert_eq!((ipc.metric, &*ipc.values), (IpcMetric::BwPipe, &[7.5][..]));
        assert!(parse(Kind::Ipc, &line.replace("bw_pipe", "bw_pip")).is_err());
        let newer = parse(Kind::Ipc, &line.replace(":1", ":2")).unwrap_err();
        assert!(newer.to_string().contains("prints format 2"), "{newer}");
    }

    #[test]
    fn every_run_of_hackbench_is_read() {
        let text = "Running in process mode\r\nTime: 2.5\r\nRunning\r\nTime: 3.25\r\n";
        assert_eq!(parse_hackbench(text).unwrap().s, [2.5, 3.25]);
        assert!(parse_hackbench("fork(): Cannot allocate memory").is_err());
        assert!(parse_hackbench("Time: 0.0.1").is_err());
    }

    #[test]
    fn a_damaged_or_cut_line_is_an_error_and_no_result() {
        assert!(parse_lat_ctx(&LINE[..60]).is_err());
        assert!(parse_lat_ctx(&LINE.replace("[500.0,501.0]", "[]")).is_err());
        assert!(between_markers("nothing").is_err());
        assert!(between_markers("@@begin\nx\n@@end q\n").is_err());
    }
}
