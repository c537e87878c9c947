// SPDX-License-Identifier: MIT OR Apache-2.0
//! What charging costs the host: the same command on two boards, one of which is looked at, in turns.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::explain::setup::Charged;
use base::time::cpu_s;
use results::runs::markers::Typed;
use session::session::Session;

/// Turns per second of board time.
const TURNS_PER_S: u64 = 200;

/// CPU seconds of the host.
pub struct Cost {
    pub with_s: f64,
    pub without_s: f64,
}

impl Cost {
    /// How many times slower it is.
    pub fn ratio(&self) -> f64 {
        self.with_s / self.without_s
    }

    /// In JSON.
    pub fn json(&self) -> Value {
        json!({ "with_s": self.with_s, "without_s": self.without_s, "ratio": self.ratio() })
    }

    /// In a sentence.
    pub fn text(&self) -> String {
        format!(
            "Charging takes {:.2} times the time: {:.2} s of CPU against {:.2} s without, in turns of {} ms of the board.",
            self.ratio(),
            self.with_s,
            self.without_s,
            1000 / TURNS_PER_S
        )
    }
}

/// Runs a command on both, which stand at the same cycle, up to cycle `to`.
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
        let begun = cpu_s();
        plain.run_to(until);
        let between = cpu_s();
        charged.run_to(until);
        cost.without_s += between - begun;
        cost.with_s += cpu_s() - between;
        ensure!(
            (plain.now(), plain.counters()) == (charged.now(), charged.counters()),
            "a board that is looked at is at cycle {}, another at {}",
            charged.now(),
            plain.now()
        );
    }
    Ok(cost)
}
