// SPDX-License-Identifier: MIT OR Apache-2.0
//! TLB entries and the descriptors they were made from.

use super::shadow::Shadow;
use arm9::{Context, Kind, Mva, Pa, Width, mapping};

/// More entries than any core of the family has.
const ENTRIES: usize = 128;
/// The User mode's CPSR bits.
const USER: u32 = 0x10;

/// A descriptor: physical address and value as read.
pub(super) type Descriptor = (u32, u32);

#[derive(Clone, Copy, Default)]
struct Entry {
    /// First and, for a page, second level.
    descriptors: [Descriptor; 2],
    levels: usize,
    /// A descriptor was written since.
    changed: bool,
}

/// What is known of the TLB.
#[derive(Clone)]
pub(super) struct Translations {
    entries: Vec<Entry>,
    walk: Entry,
}

impl Translations {
    pub fn new() -> Translations {
        Translations {
            entries: vec![Entry::default(); ENTRIES],
            walk: Entry::default(),
        }
    }

    /// A walk read a descriptor; [`Translations::filled`] follows if it came to something.
    pub fn walked(&mut self, pa: u32, value: u32) {
        if self.walk.levels == 2 {
            self.walk = Entry::default();
        }
        self.walk.descriptors[self.walk.levels] = (pa, value);
        self.walk.levels += 1;
    }

    /// The walk loaded an entry.
    pub fn filled(&mut self, entry: usize, _mva: Mva, bytes: u32) {
        let levels = if bytes == 1 << 20 { 1 } else { 2 };
        // A walk that failed at the first level may have left its descriptor in front.
        let skip = self.walk.levels.saturating_sub(levels);
        let mut made = Entry {
            levels,
            ..Entry::default()
        };
        for level in 0..levels {
            made.descriptors[level] = self.walk.descriptors[(skip + level) & 1];
        }
        self.entries[entry % ENTRIES] = made;
        self.walk = Entry::default();
    }

    /// A word that a walk has read was written. True when an entry was made from it.
    pub fn written(&mut self, pa: u32) -> bool {
        let word = pa & !3;
        let mut any = false;
        for entry in &mut self.entries {
            if entry.descriptors[..entry.levels]
                .iter()
                .any(|d| d.0 == word)
            {
                entry.changed = true;
                any = true;
            }
        }
        any
    }

    pub fn invalidated(&mut self, entry: usize) {
        self.entries[entry % ENTRIES] = Entry::default();
    }

    pub fn invalidated_all(&mut self) {
        self.entries.fill(Entry::default());
    }

    /// Checks an entry used for an access it allowed. Returns the descriptor that changed, as it
    /// was read and as it is now, when the tables now say something else or forbid the access.
    pub fn check(
        &mut self,
        shadow: &Shadow,
        context: &Context,
        entry: usize,
        mva: Mva,
        pa: Pa,
        kind: Kind,
    ) -> Option<(Descriptor, u32)> {
        let entry = &mut self.entries[entry % ENTRIES];
        if !entry.changed {
            return None;
        }
        let newest = |pa| shadow.newest(pa, Width::Word);
        let now = mapping(context.ttb, mva, newest);
        let fine =
            now.is_some_and(|m| m.pa == pa.0 && permits(m.ap, kind, context.mode & 0x1f == USER));
        if fine {
            return None;
        }
        entry.changed = false;
        let levels = &entry.descriptors[..entry.levels];
        levels
            .iter()
            .find_map(|d| newest(d.0).filter(|n| *n != d.1).map(|n| (*d, n)))
    }
}

/// Whether permission bits allow the access. Privileged reads are allowed wherever Linux's S and R
/// bits (1, 0) allow them, which is everywhere.
fn permits(ap: u8, kind: Kind, user: bool) -> bool {
    match (kind, user) {
        (Kind::Write, true) => ap == 3,
        (Kind::Write, false) => ap >= 1,
        (_, true) => ap >= 2,
        (_, false) => true,
    }
}
