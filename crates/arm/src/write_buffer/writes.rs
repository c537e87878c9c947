// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times at which writes had the bus. Only an observed core keeps these times. It needs them to name the causes of its
//! waits.

use std::collections::VecDeque;

use crate::observe::Cause;

/// Number of writes kept: more than can be pending at a time.
const KEPT: usize = 16;

/// The newest writes, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Writes {
    /// Start, end and cause of each write.
    kept: VecDeque<(u64, u64, Cause)>,
    /// Cause of the victim buffer's contents.
    victim: Cause,
}

impl Writes {
    /// Returns an empty list, which takes no memory.
    pub fn none() -> Writes {
        Writes {
            kept: VecDeque::new(),
            victim: Cause::Eviction,
        }
    }

    /// Sets the cause of the line that was last moved to the victim buffer.
    pub fn victim_is_of(&mut self, cause: Cause) {
        self.victim = cause;
    }

    /// Records that a line was moved to the victim buffer. The cause is an eviction unless the caller names another
    /// cause.
    pub(super) fn evicted(&mut self) {
        self.victim = Cause::Eviction;
    }

    /// Records that a write had the bus.
    pub(super) fn note(&mut self, from: u64, to: u64, was_victim: bool) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        let cause = match was_victim {
            true => self.victim,
            false => Cause::WriteBuffer,
        };
        self.kept.push_back((from, to, cause));
    }

    /// Kept writes that ended after `cycle`, newest first.
    pub fn since(&self, cycle: u64) -> impl Iterator<Item = (u64, u64, Cause)> + use<> {
        let ended = |write: &&(u64, u64, Cause)| write.1 > cycle;
        let newest: Vec<_> = self.kept.iter().rev().take_while(ended).copied().collect();
        newest.into_iter()
    }
}
