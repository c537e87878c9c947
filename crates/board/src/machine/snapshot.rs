// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine as bytes, and from bytes.

use super::{Machine, SetupError};
use crate::bus::SystemBus;
use crate::observed::BoardBus;
use crate::spec::BoardSpec;
use arm::{Cpu, Damaged, Saved, State};

/// Why there is no machine for a snapshot.
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
    /// The machine's whole state, from which [`Machine::restored`] makes one that goes on with the
    /// same bytes and cycles. Watchpoints and who looks on are not in it. `None` for a
    /// machine that does not go on, or has instruments connected.
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
    /// The machine that `snapshot` was taken of, whose board was this.
    ///
    /// # Errors
    /// When the bytes are no snapshot of this board, as far as that can be told from them: bytes
    /// that may have been damaged are to be checked by a hash before.
    pub fn restored(spec: BoardSpec, snapshot: &[u8]) -> Result<Machine, RestoreError> {
        let (of, snapshot) = snapshot.split_at_checked(32).unwrap_or_default();
        if of != spec.identity().as_bytes() {
            return Err(RestoreError::Damaged("another board's"));
        }
        let bus = SystemBus::new(&spec).map_err(SetupError::Part)?;
        let mut from = Saved::new(snapshot);
        let mut machine = Machine::powered(Cpu::new(spec.core.clone(), bus), spec);
        machine.console_taken = from.value()?;
        machine.cpu.restore(&mut from)?;
        from.end()?;
        if machine.console_taken > machine.console_log().len() {
            return Err(RestoreError::Damaged("the console has not printed as much"));
        }
        Ok(machine)
    }
}
