// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contents of the buffers, for inspection and restoring.

use super::{ADDRESSES, Biu, Pending};
use crate::memory::look::WaitingWrite;

impl Biu {
    /// Latest time in the unit's state.
    pub(crate) fn latest(&self) -> u64 {
        let ready = self.queue.iter().map(|entry| entry.ready);
        let ready = ready.chain(self.victim.iter().map(|victim| victim.ready));
        ready.fold(self.free_at, u64::max)
    }

    /// Pending writes, in the order in which they go out. The victim buffer goes first.
    pub fn waiting(&self) -> Vec<WaitingWrite> {
        let victim = self.victim.iter().map(|victim| {
            let (from, to) = match victim.halves {
                1 => (0, 4),
                2 => (4, 8),
                _ => (0, 8),
            };
            WaitingWrite {
                pa: victim.pa.plus(4 * from as u32),
                bytes: 4 * (to - from) as u32,
                words: victim.data[from..to].to_vec(),
                victim: true,
            }
        });
        let stores = (0..self.len).map(|n| {
            let entry: &Pending = &self.queue[(self.head + n) % ADDRESSES];
            let (pa, bytes) = (entry.pa, entry.span().1);
            WaitingWrite {
                pa,
                bytes,
                words: entry.data[..entry.data_words()].to_vec(),
                victim: false,
            }
        });
        victim.chain(stores).collect()
    }
}
