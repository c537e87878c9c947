// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the host time that charging costs. Two boards alternately run parts of the same command. Only one of the
//! boards has a ledger.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::explain::setup::Charged;
use base::time::cpu_s;
use results::runs::markers::Typed;
use session::session::Session;

/// Number of turns per second of board time.
const TURNS_PER_S: u64 = 200;

/// Host CPU time with and without charging, in seconds.
pub struct Cost {
    pub with_s: f64,
    pub without_s: f64,
}

impl Cost {
    /// Returns the factor by which charging slows the simulator.
    pub fn ratio(&self) -> f64 {
        self.with_s / self.without_s
    }

    /// Renders the cost as JSON.
    pub fn json(&self) -> Value {
        json!({ "with_s": self.with_s, "without_s": self.without_s, "ratio": self.ratio() })
    }

    /// Renders the cost as a sentence.
    pub fn text(&self) -> String {
        format!(
            "With charging, the simulator takes {:.2} times as long: {:.2} s of host CPU time instead of {:.2} s, \
             in turns of {} ms of board time.",
            self.ratio(),
            self.with_s,
            self.without_s,
            1000 / TURNS_PER_S
        )
    }
}

/// Runs a command on both boards up to cycle `to`. Both boards must be at the same cycle.
pub fn of((mut charged, mut plain): (Charged, Session), typed: &Typed, to: u64) -> Result<Cost> {
    let turn = plain.cpu_hz() / TURNS_PER_S;
    plain.type_in(typed);
    charged.type_in(typed);
    let mut cost = Cost {
        with_s: 0.0,
        without_s: 0.0,
    };
    let mut until = plain.now();
    while until < to {
        until = (until + turn).min(to);
        let before_plain = cpu_s();
        plain.run_to(until);
        let before_charged = cpu_s();
        charged.run_to(until);
        cost.without_s += before_charged - before_plain;
        cost.with_s += cpu_s() - before_charged;
        ensure!(
            (plain.now(), plain.counters()) == (charged.now(), charged.counters()),
            "charging changed the run: the observed board is at cycle {}, the other one at {}",
            charged.now(),
            plain.now()
        );
    }
    Ok(cost)
}
