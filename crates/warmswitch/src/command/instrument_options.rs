// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of `scope` and `net`, and the output of their results. Both verbs run a command in a booted guest with
//! instruments connected to the board.

use anyhow::Result;
use board::BoardSpec;
use serde_json::{Value, json};

use crate::Outcome;
use base::time;
use results::render::object;
use results::runs::markers::{self, Typed};
use session::session::{Measured, Session};
use session::target::Target;

/// Default of `--limit`, in seconds of board time.
const LIMIT_S: f64 = 300.0;

/// Options for the board, the seed and the limit.
#[derive(clap::Args)]
pub struct InstrumentOptions {
    #[command(flatten)]
    pub target: Target,
    /// Seed of all random choices, which are cache victims and a generator's jitter and phase
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Limit of board time for the command, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT_S)]
    pub limit: f64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl InstrumentOptions {
    /// Checks the options before anything is built, and returns the board.
    pub fn check(&self) -> Result<BoardSpec> {
        time::seconds("limit", self.limit)?;
        self.target.check()
    }

    /// Boots the board without a snapshot, so that the instruments see everything from power-on.
    pub fn boot(&self, board: &BoardSpec) -> Result<Session> {
        let boot = self.target.prepare(board)?.boot();
        Session::boot(board, self.seed, &boot)
    }

    /// Prints the command's output and status together with `result`, which is a JSON object.
    pub fn tell(&self, output: &str, status: i32, mut result: Value) -> Outcome {
        result["status"] = status.into();
        if self.json {
            result["output"] = output.into();
            println!("{result}");
        } else {
            print!("{output}");
            let tables = result.as_object().map(object::tables);
            for table in tables.into_iter().flatten() {
                println!("{table}");
            }
        }
        if status == 0 {
            Outcome::Done
        } else {
            Outcome::No
        }
    }
}

/// Returns the command's output and status. Fails if the guest could not run the command.
pub fn ended(typed: &Typed, measured: &Measured) -> Result<(String, i32)> {
    let (output, status) = typed.ended(&measured.console)?;
    let output = String::from_utf8_lossy(&output).into_owned();
    markers::check_that_it_ran(status, &output)?;
    Ok((output, status))
}

/// Summarises times. `us` converts a time to microseconds. Returns null if there are no times.
pub fn spread(mut times: Vec<u64>, us: impl Fn(u64) -> f64) -> Value {
    times.sort_unstable();
    let (Some(min), Some(max)) = (times.first(), times.last()) else {
        return Value::Null;
    };
    json!({
        "count": times.len(),
        "min": us(*min),
        "avg": us(times.iter().sum()) / times.len() as f64,
        "median": us(times[times.len() / 2]),
        "max": us(*max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spread_in_microseconds_and_none_have_no_spread() {
        let us = |ns: u64| ns as f64 / 1e3;
        let expected = json!({"count": 3, "min": 1.0, "avg": 3.0, "median": 2.0, "max": 6.0});
        assert_eq!(spread(vec![6000, 1000, 2000], us), expected);
        assert_eq!(spread(Vec::new(), us), Value::Null);
    }
}
