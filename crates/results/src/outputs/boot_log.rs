// SPDX-License-Identifier: MIT OR Apache-2.0
//! Speeds in the kernel's boot log (Linux crypto/xor.c, lib/raid6/algos.c).

use anyhow::{Result, bail};
use serde::Serialize;

use super::{OutputKind, last_line};
use crate::figures::measure::{Measures, Samples};
use crate::runs::run::Run;

/// Output kind of speeds in the boot log.
pub struct BootLog;

impl Measures for BootLog {
    fn metrics(&self) -> Vec<&'static str> {
        vec!["speed"]
    }

    fn repeats(&self) -> bool {
        true
    }

    fn samples(&self, run: &Run) -> Vec<Samples> {
        let speed = |speed: Speed| ("speed", "MB/s", vec![speed.mb_per_s]);
        read(&run.output).map(speed).into_iter().collect()
    }
}

impl OutputKind for BootLog {
    fn name(&self) -> &'static str {
        "boot_log"
    }

    fn json(&self, run: &Run) -> Result<serde_json::Value> {
        Ok(serde_json::to_value(read(&run.output)?)?)
    }
}

/// Speed in MB/s. Linux counts 10^6 bytes as 1 MB for xor, and 2^20 bytes for raid6.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Speed {
    mb_per_s: f64,
}

/// Reads the number before `MB/s` or `MB/sec`.
fn read(output: &str) -> Result<Speed> {
    let mut found = output.lines().filter_map(|line| {
        let (before, _) = line.split_once(" MB/s")?;
        before.split_whitespace().last()?.parse().ok()
    });
    match (found.next(), found.next()) {
        (Some(mb_per_s), None) if mb_per_s > 0.0 => Ok(Speed { mb_per_s }),
        _ => bail!(
            "expected exactly one line with a speed in MB/s; last line: {}",
            last_line(output)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_of_one_line_is_read() {
        for line in [
            "   arm4regs        :   903 MB/sec\r\n",
            "raid6: int32x4  gen()   903 MB/s\r\n",
        ] {
            assert_eq!(read(line).unwrap().mb_per_s, 903.0);
            assert!(read(&line.repeat(2)).is_err());
            assert!(read(&line.replace("903", "0")).is_err());
        }
        assert!(read("").is_err());
    }
}
