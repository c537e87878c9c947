// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress on standard error: bars on a terminal, plain lines elsewhere.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Interval between two plain lines of one task.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// One task with a known or unknown amount of work.
pub struct Progress {
    label: String,
    bar: Option<ProgressBar>,
    total: u64,
    done: u64,
    last_line: Instant,
}

impl Progress {
    /// Starts a task of `total` steps. A total of 0 means that the number is unknown.
    pub fn new(label: &str, total: u64) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = if total == 0 {
                ProgressBar::new_spinner()
            } else {
                ProgressBar::new(total)
            };
            let shape = if total == 0 {
                "{spinner} {prefix} {elapsed} {msg}"
            } else {
                "{prefix} [{bar:30}] {pos}/{len} {elapsed} {msg}"
            };
            if let Ok(style) = ProgressStyle::with_template(shape) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_prefix(label.to_string());
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        if bar.is_none() {
            eprintln!("{label} ...");
        }
        Progress {
            label: label.to_string(),
            bar,
            total,
            done: 0,
            last_line: Instant::now(),
        }
    }

    /// Shows that `done` steps are complete. `message` names the latest step.
    pub fn at(&mut self, done: u64, message: &str) {
        self.done = done;
        match &self.bar {
            Some(bar) => {
                bar.set_position(done);
                bar.set_message(message.to_string());
            }
            None if self.last_line.elapsed() >= PLAIN_INTERVAL => {
                self.last_line = Instant::now();
                let total = if self.total == 0 {
                    String::new()
                } else {
                    format!("/{}", self.total)
                };
                eprintln!("{}: {done}{total} {message}", self.label);
            }
            None => {}
        }
    }

    /// Counts one more step.
    pub fn step(&mut self, message: &str) {
        self.at(self.done + 1, message);
    }

    /// Prints a line that stays on the terminal.
    pub fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    /// Ends the task. `message` says how the task ended.
    pub fn finish(self, message: &str) {
        match &self.bar {
            Some(bar) => {
                bar.finish_and_clear();
                eprintln!("{}: {message}", self.label);
            }
            None => eprintln!("{}: {message}", self.label),
        }
    }
}
