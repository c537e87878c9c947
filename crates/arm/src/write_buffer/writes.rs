// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which writes had the bus, and when: kept for an observed core alone, to say what it waited for.

use std::collections::VecDeque;

use crate::observe::Cause;

/// Writes kept: more than can wait at a time.
const KEPT: usize = 16;

/// The newest writes, the oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Writes {
    /// From when to when, and as what.
    kept: VecDeque<(u64, u64, Cause)>,
    /// Why the line in the victim buffer is there.
    victim: Cause,
}

impl Writes {
    /// None yet, which takes no memory.
    pub fn none() -> Writes {
        Writes {
            kept: VecDeque::new(),
            victim: Cause::Eviction,
        }
    }

    /// The line that was put into the victim buffer last is there for this reason.
    pub fn victim_is_of(&mut self, cause: Cause) {
        self.victim = cause;
    }

    /// A line was put into the victim buffer: to make room, when nobody says otherwise.
    pub(super) fn evicted(&mut self) {
        self.victim = Cause::Eviction;
    }

    /// A write had the bus.
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

    /// Those that ended after `cycle`, the newest first, the oldest that is kept at most.
    pub fn since(&self, cycle: u64) -> impl Iterator<Item = (u64, u64, Cause)> + use<> {
        let ended = |write: &&(u64, u64, Cause)| write.1 > cycle;
        let newest: Vec<_> = self.kept.iter().rev().take_while(ended).copied().collect();
        newest.into_iter()
    }
}
