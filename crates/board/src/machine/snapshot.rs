// SPDX-License-Identifier: MIT OR Apache-2.0
//! Snapshots: saves a machine as bytes, and restores it.

use super::{Machine, SetupError};
use crate::bus::SystemBus;
use crate::device::card::Content;
use crate::observed::BoardBus;
use crate::spec::BoardSpec;
use arm::{Cpu, Damaged, Saved, State};

/// Reason why a snapshot cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The board cannot be made.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The bytes are not a snapshot of this board.
    #[error("not a state of this board: {0}")]
    Damaged(&'static str),
}

impl From<Damaged> for RestoreError {
    fn from(damaged: Damaged) -> RestoreError {
        RestoreError::Damaged(damaged.0)
    }
}

impl<B: BoardBus + State> Machine<B> {
    /// Returns the machine's complete state. From this state, [`Machine::restored`] makes a machine that continues with
    /// the same bytes and cycles. Watchpoints and the observer are not saved. Returns `None` for a machine that cannot
    /// continue or has instruments connected.
    pub fn snapshot(&self) -> Option<Vec<u8>> {
        let Machine {
            cpu,
            spec,
            console_taken,
            ended,
        } = self;
        if ended.is_some() || !cpu.bus.system().can_be_saved() {
            return None;
        }
        let mut bytes = spec.identity().as_bytes().to_vec();
        console_taken.save(&mut bytes);
        cpu.save(&mut bytes);
        Some(bytes)
    }
}

impl Machine {
    /// Restores a machine from a snapshot that was taken on the board `spec`.
    ///
    /// # Errors Fails when the bytes show that they are not a snapshot of this board. If the bytes may be damaged,
    /// check them with a hash first.
    pub fn restored(spec: BoardSpec, snapshot: &[u8]) -> Result<Machine, RestoreError> {
        Machine::restored_with_card(spec, snapshot, None)
    }

    /// Restores a machine that had a memory card in its slot. A snapshot has only what the guest wrote to the card, so
    /// the card's content before the first write must be given, unless the card was empty then.
    ///
    /// # Errors
    /// Fails as [`Machine::restored`] does, and when the card had another content.
    pub fn restored_with_card(
        spec: BoardSpec,
        snapshot: &[u8],
        card: Option<&Content>,
    ) -> Result<Machine, RestoreError> {
        let (board, snapshot) = snapshot.split_at_checked(32).unwrap_or_default();
        if board != spec.identity().as_bytes() {
            return Err(RestoreError::Damaged("it is of another board"));
        }
        let mut bus = SystemBus::new(&spec).map_err(SetupError::Part)?;
        if card.is_some() {
            let inserted = bus.insert_card(0, card);
            inserted.map_err(|e| SetupError::Part(e.0))?;
        }
        let mut from = Saved::new(snapshot);
        let mut machine = Machine::powered(Cpu::new(spec.core.clone(), bus), spec);
        machine.console_taken = from.value()?;
        machine.cpu.restore(&mut from)?;
        from.end()?;
        if machine.console_taken > machine.console_log().len() {
            return Err(RestoreError::Damaged(
                "more of the console's output was taken than it printed",
            ));
        }
        Ok(machine)
    }
}
