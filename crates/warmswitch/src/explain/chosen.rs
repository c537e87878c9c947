// SPDX-License-Identifier: MIT OR Apache-2.0
//! LatencyChoice latencies are looked at.

use anyhow::{Result, bail};
use board::BoardSpec;
use watch::ledger::{Ledger, Sample};

use crate::explain::account::Account;
use crate::explain::autopsy;
use crate::explain::late::Late;
use crate::explain::latency_choice::LatencyChoice;

/// The latencies of the task that is asked for, or that the command is about, and those chosen of them.
pub struct Chosen<'a> {
    pub late: Late<'a>,
    /// With their numbers.
    pub samples: Vec<(usize, &'a Sample)>,
}

impl<'a> Chosen<'a> {
    /// Of a ledger, by the names of an account of it.
    pub fn of(
        account: &'a Account<'a>,
        (ledger, spec): (&'a Ledger, &'a BoardSpec),
        (task, command): (Option<&str>, &str),
        which: LatencyChoice,
    ) -> Result<Option<Chosen<'a>>> {
        let latencies = autopsy::latencies(ledger, account, task, command)?;
        let Some(latencies) = latencies else {
            if let LatencyChoice::Number(n) = which {
                bail!("--sample {n}: no interrupt woke a task");
            }
            return Ok(None);
        };
        Ok(Some(Chosen {
            samples: latencies.which(which)?,
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
