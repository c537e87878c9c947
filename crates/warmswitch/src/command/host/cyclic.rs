// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of `host cyclic`, which are the same as the options of cyclictest.

use super::Measure;

// As in cyclictest, `-h` is the histogram, so help has no short option.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Cyclic {
    #[command(flatten)]
    pub measure: Measure,
    /// Interval of the first thread, in us
    #[arg(short, long, value_name = "US", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(10..=1_000_000))]
    interval: u32,
    /// Increase of the interval from thread to thread, in us
    #[arg(short, long, value_name = "US", default_value_t = 500, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    distance: u32,
    /// Number of threads
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// SCHED_FIFO priority. With 0, the threads have no real-time priority
    #[arg(short, long, value_name = "P", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=99))]
    priority: u32,
    /// Lock memory
    #[arg(short, long)]
    mlockall: bool,
    /// Number of wake-ups of the first thread, instead of a duration
    #[arg(short, long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    loops: Option<u32>,
    /// Duration, in seconds [default: 10, with --quick 1]
    #[arg(short = 'D', long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    duration: Option<u32>,
    /// Keep a histogram of whole microseconds below US, instead of raw samples
    #[arg(short = 'h', long, value_name = "US", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    histogram: Option<u32>,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

impl Cyclic {
    /// Returns the options for `guest/cyclic`, which uses the same option letters.
    pub fn options(&self) -> String {
        let Cyclic {
            interval: i,
            distance: d,
            threads: t,
            priority: p,
            ..
        } = self;
        let mut options = format!("-i {i} -d {d} -t {t} -p {p}");
        if self.mlockall {
            options += " -m";
        }
        let seconds = if self.measure.quick { 1 } else { 10 };
        options += &match self.loops {
            Some(loops) => format!(" -l {loops}"),
            None => format!(" -D {}", self.duration.unwrap_or(seconds)),
        };
        for (letter, value) in [
            ("h", self.histogram),
            ("a", self.measure.common.cpu.map(|n| n as u32)),
        ] {
            options += &value.map_or(String::new(), |value| format!(" -{letter} {value}"));
        }
        options
    }
}
