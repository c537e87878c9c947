// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is connected to a checked board from outside: a memory card, and a peer on the network cable.
//!
//! Neither depends on the host's time, so equal inputs give equal runs. A run without the checker connects the same.

use anyhow::{Result, bail};
use board::device::card::Content;
use board::link::Rate;
use board::{BoardBus, Machine, Stop};
use session::console::{AfterStop, StopHandler};
use session::echo::Echo;
use session::peer::Peer;

/// What is connected to the board.
#[derive(Clone, Default)]
pub struct Outside {
    /// Content of the memory card in the board's slot.
    pub card: Option<Content>,
    /// Whether the cable leads to a peer that sends UDP packets back.
    pub echo: bool,
}

impl Outside {
    /// Connects card and cable to a board that has not run.
    ///
    /// # Errors
    /// Fails when the board has no slot for the card.
    pub fn connect<B: BoardBus>(&self, machine: &mut Machine<B>) -> Result<()> {
        let mut cables = machine.cables();
        if let Some(content) = &self.card {
            cables.insert_card(content)?;
        }
        if self.echo {
            cables.plug(Some(Rate::Hundred));
            cables.set_stop_on_frame(true);
        }
        Ok(())
    }

    /// Fails when another program changed the card's file during the run.
    ///
    /// # Errors
    /// Fails with the reason.
    pub fn check_card(&self) -> Result<()> {
        match self.card.as_ref().and_then(Content::lost) {
            Some(lost) => bail!("--sd: {lost}"),
            None => Ok(()),
        }
    }
}

/// A handler of the board's stops, with the peer at the other end of the cable.
pub struct Beside<W>(pub W);

impl<B: BoardBus, W: StopHandler<B>> StopHandler<B> for Beside<W> {
    type End = W::End;

    fn next(&self, machine: &Machine<B>) -> u64 {
        self.0.next(machine)
    }

    fn stopped(&mut self, machine: &mut Machine<B>, stop: &Stop) -> Result<AfterStop, W::End> {
        // The board stops at frames only if the peer is connected.
        if *stop == Stop::Frame {
            Echo.act(&mut machine.cables());
            return Ok(AfterStop::GoOn);
        }
        self.0.stopped(machine, stop)
    }
}
