// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `scope` and `net` share: a command in a booted guest with instruments beside it, and how its
//! result is told.

use anyhow::Result;
use board::BoardSpec;
use serde_json::{Value, json};

use crate::Outcome;
use base::time;
use results::render::object;
use results::runs::markers::{self, Typed};
use session::session::{Measured, Session};
use session::target::Target;

/// Board seconds that a command may take when nobody says.
const LIMIT_S: f64 = 300.0;

/// Where a command runs, and for how long.
#[derive(clap::Args)]
pub struct InstrumentOptions {
    #[command(flatten)]
    pub target: Target,
    /// Start of all that is random: the caches' choice of victims and, of a generator, jitter and phase
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Board time the command may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT_S)]
    pub limit: f64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl InstrumentOptions {
    /// Refuses what can be refused before anything is built; gives the board.
    pub fn check(&self) -> Result<BoardSpec> {
        time::seconds("limit", self.limit)?;
        self.target.check()
    }

    /// Boots a board that was checked, without a snapshot: instruments are to see all from power-on.
    pub fn boot(&self, board: &BoardSpec) -> Result<Session> {
        let boot = self.target.prepare(board)?.boot();
        Session::boot(board, self.seed, &boot)
    }

    /// Prints what the command printed and how it ended, with `result`, an object.
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

/// What the command printed and its status; an error when the guest could not run it.
pub fn ended(typed: &Typed, measured: &Measured) -> Result<(String, i32)> {
    let (said, status) = typed.ended(&measured.console)?;
    let said = String::from_utf8_lossy(&said).into_owned();
    markers::check_that_it_ran(status, &said)?;
    Ok((said, status))
}

/// How times are spread, in microseconds by `us`; null when there are none.
pub fn spread(mut each: Vec<u64>, us: impl Fn(u64) -> f64) -> Value {
    each.sort_unstable();
    let (Some(min), Some(max)) = (each.first(), each.last()) else {
        return Value::Null;
    };
    json!({
        "count": each.len(),
        "min": us(*min),
        "avg": us(each.iter().sum()) / each.len() as f64,
        "median": us(each[each.len() / 2]),
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
