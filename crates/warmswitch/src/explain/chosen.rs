// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects the latencies to explain.

use anyhow::{Result, bail};
use board::BoardSpec;
use watch::ledger::{Ledger, Sample};

use crate::explain::account::Account;
use crate::explain::autopsy;
use crate::explain::late::Late;
use crate::explain::latency_choice::LatencyChoice;

/// The latencies of a task, and the chosen latencies among them.
pub struct Chosen<'a> {
    pub late: Late<'a>,
    /// Chosen latencies with their numbers.
    pub samples: Vec<(usize, &'a Sample)>,
}

impl<'a> Chosen<'a> {
    /// Selects latencies of the named task. Without a name, selects latencies of the command's task. Returns `None` if
    /// there are no latencies.
    pub fn of(
        account: &'a Account<'a>,
        (ledger, spec): (&'a Ledger, &'a BoardSpec),
        (task, command): (Option<&str>, &str),
        choice: LatencyChoice,
    ) -> Result<Option<Chosen<'a>>> {
        let latencies = autopsy::latencies(ledger, account, task, command)?;
        let Some(latencies) = latencies else {
            if let LatencyChoice::Number(n) = choice {
                bail!("--sample {n}: there are no latencies: no interrupt woke a task");
            }
            return Ok(None);
        };
        Ok(Some(Chosen {
            samples: latencies.which(choice)?,
            late: Late {
                task: account.task(latencies.task).to_string(),
                all: latencies.cycles(),
                populations: latencies.populations(account),
                account,
                spec,
            },
        }))
    }
}
