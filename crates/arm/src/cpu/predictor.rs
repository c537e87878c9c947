// SPDX-License-Identifier: MIT OR Apache-2.0
//! The branch target buffer of XScale (IXP42X 3.3; XSC 5; `model/xscale` has the names of the manuals). It holds 128
//! branches, indexed by address bits 8:2. Each branch has two bits of history. A new entry starts as weakly taken (R:
//! recollection of the manual).

use core::mem::offset_of;

use crate::state::Damaged;

/// Number of branches in the buffer.
const ENTRIES: usize = 128;
/// History of a new entry. Histories that are at least this value predict "taken".
const WEAKLY_TAKEN: u8 = 2;
const STRONGLY_TAKEN: u8 = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
struct Branch {
    /// Address of the branch; bit 0 is set if the entry is valid.
    tag: u32,
    history: u8,
}

crate::state!(Branch: tag, history; => check);

impl Branch {
    /// Checks a restored state.
    fn check(&self) -> Result<(), Damaged> {
        match self.history <= STRONGLY_TAKEN {
            true => Ok(()),
            false => Err(Damaged("the history of a branch is out of range")),
        }
    }
}

/// The branch target buffer. On cores without a branch target buffer, it has no entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Branches {
    entries: Box<[Branch]>,
}

crate::state!(Branches: entries);

impl Branches {
    pub fn new(is: bool) -> Branches {
        let entries = if is { ENTRIES } else { 0 };
        Branches {
            entries: vec![Branch::default(); entries].into(),
        }
    }

    /// Records whether the branch at `pc` was taken. Returns whether the prediction was right.
    pub fn predict(&mut self, pc: u32, taken: bool) -> bool {
        let Some(entry) = self.entries.get_mut((pc >> 2) as usize % ENTRIES) else {
            return !taken;
        };
        if entry.tag != pc | 1 {
            if taken {
                *entry = Branch {
                    tag: pc | 1,
                    history: WEAKLY_TAKEN,
                };
            }
            return !taken;
        }
        let predicted = entry.history >= WEAKLY_TAKEN;
        entry.history = match taken {
            true => (entry.history + 1).min(STRONGLY_TAKEN),
            false => entry.history.saturating_sub(1),
        };
        predicted == taken
    }

    /// Address of the entries, for an engine.
    pub fn table(&mut self) -> *mut [u32; 2] {
        const { assert!(size_of::<Branch>() == 8 && offset_of!(Branch, history) == 4) };
        self.entries.as_mut_ptr().cast()
    }

    /// Invalidates all entries.
    pub fn forget(&mut self) {
        self.entries.fill(Branch::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_predicted_by_its_history() {
        let mut branches = Branches::new(true);
        let mut did = |taken| branches.predict(0x1000, taken);
        // A new branch, a predicted branch, the end of a loop, the loop again.
        assert_eq!(
            [true, true, true, false, true].map(&mut did),
            [false, true, true, false, true]
        );
        assert_eq!([false, false, false].map(&mut did), [false, false, true]);
    }

    #[test]
    fn branches_512_bytes_apart_share_a_place() {
        let mut branches = Branches::new(true);
        assert!(!branches.predict(0x1000, true) && branches.predict(0x1000, true));
        assert!(branches.predict(0x1200, false), "not there, not taken");
        assert!(branches.predict(0x1000, true));
        assert!(!branches.predict(0x1200, true) && !branches.predict(0x1000, true));
        branches.forget();
        assert!(!branches.predict(0x1000, true));
    }

    #[test]
    fn without_a_buffer_no_branch_is_predicted_taken() {
        let mut branches = Branches::new(false);
        assert_eq!(
            [true, true, false].map(|taken| branches.predict(0, taken)),
            [false, false, true]
        );
    }

    #[test]
    fn an_impossible_history_is_refused() {
        use crate::state::{Saved, State};
        let mut bytes = Vec::new();
        Branches::new(true).save(&mut bytes);
        let restored = |bytes: &[u8]| Branches::new(true).restore(&mut Saved::new(bytes));
        assert_eq!(restored(&bytes), Ok(()));
        for (history, good) in [(3, true), (4, false), (255, false)] {
            bytes[4] = history;
            assert_eq!(restored(&bytes).is_ok(), good, "{history}");
        }
    }
}
