// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histogram text of `cyclictest -h N`, on its output or in the file of `--histfile`. `warmswitch` exports this format,
//! too (docs/use/EXPORTS.md).

use anyhow::Result;

use super::Form;
use super::machine::Machine;
use results::figures::latencies::Latencies;
use results::figures::rt_tests::{self, Thread};

/// Histogram text of cyclictest.
pub const FORM: Form = Form {
    name: "cyclictest -h (a histogram)",
    program: "cyclictest",
    begins: |text| rt_tests::headings(text).collect(),
    read: |text, _| read(text),
};

/// Reads the latencies of all threads together.
fn read(text: &str) -> Result<Machine> {
    let mut machine = Machine::new("cyclictest".to_string());
    let threads = rt_tests::read(text)?;
    let latencies = |thread: Thread| {
        Latencies::of_bins(
            thread.us,
            thread.overflows,
            thread.max_us,
            thread.avg_us.into(),
        )
    };
    let all: Vec<Latencies> = threads.into_iter().map(latencies).collect();
    machine.add_timer("timer", &all);
    Ok(machine)
}
