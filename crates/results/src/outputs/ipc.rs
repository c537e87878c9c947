// SPDX-License-Identifier: MIT OR Apache-2.0
//! Our `ipc` guest: latency of a FIFO or bandwidth of a pipe, measured as lmbench does.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::{OutputKind, json_line};
use crate::figures::measure::{Measures, Samples};
use crate::runs::run::Run;

/// Output kind of `ipc`.
pub struct Ipc;

impl Measures for Ipc {
    fn metrics(&self) -> Vec<&'static str> {
        vec!["lat_fifo", "bw_pipe"]
    }

    fn repeats(&self) -> bool {
        true
    }

    fn samples(&self, run: &Run) -> Vec<Samples> {
        let Ok(line) = read(&run.output) else {
            return Vec::new();
        };
        let (metric, unit) = match line.metric {
            Metric::LatFifo => ("lat_fifo", "us"),
            Metric::BwPipe => ("bw_pipe", "MB/s"),
        };
        vec![(metric, unit, line.values)]
    }
}

impl OutputKind for Ipc {
    fn name(&self) -> &'static str {
        "ipc"
    }

    fn json(&self, run: &Run) -> Result<serde_json::Value> {
        Ok(serde_json::to_value(read(&run.output)?)?)
    }
}

/// The guest's JSON line, with one value per timed section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    guest: String,
    format: u32,
    metric: Metric,
    values: Vec<f64>,
}

/// Measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Metric {
    /// Microseconds per round trip.
    LatFifo,
    /// MB per second.
    BwPipe,
}

fn read(output: &str) -> Result<Line> {
    json_line("ipc", output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_its_values_are() {
        let text = "{\"guest\":\"ipc\",\"format\":1,\"metric\":\"bw_pipe\",\"values\":[7.5]}";
        let line = read(text).unwrap();
        assert_eq!((line.metric, &*line.values), (Metric::BwPipe, &[7.5][..]));
        assert!(read(&text.replace("bw_pipe", "bw_pip")).is_err());
        let newer = read(&text.replace(":1", ":2")).unwrap_err();
        assert!(newer.to_string().contains("prints format 2"), "{newer}");
    }
}
