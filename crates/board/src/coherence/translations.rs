// SPDX-License-Identifier: MIT OR Apache-2.0
//! TLB entries and the descriptors they were made from.

use super::shadow::Shadow;
use arm9::{Context, Kind, Mva, Pa, TLB_ENTRIES, TLB_LOCKDOWN, Width, mapping};

/// Lockdown entries come last.
const FIRST_LOCKED: usize = TLB_ENTRIES - TLB_LOCKDOWN;

/// A descriptor: physical address and value as read.
pub(super) type Descriptor = (u32, u32);

#[derive(Clone, Copy, Default)]
struct Entry {
    /// First and, for a page, second level.
    descriptors: [Descriptor; 2],
    levels: usize,
    /// Translation table base it was made under, and when.
    ttb: u32,
    cycle: u64,
    /// A descriptor was written since.
    changed: bool,
}

/// An access that a TLB entry allowed.
#[derive(Clone, Copy)]
pub(super) struct Use {
    pub entry: usize,
    pub mva: Mva,
    pub pa: Pa,
    pub kind: Kind,
    pub privileged: bool,
}

/// What the tables now say of an access that a TLB entry allowed.
pub(super) enum Verdict {
    /// The same, or more is allowed.
    Same,
    /// This access is allowed; some other that the entry allows is not.
    Less,
    /// It goes elsewhere, is cached otherwise or is forbidden: the descriptor that says so, with
    /// the value the entry was made from, and its newest value.
    Stale(Descriptor, u32),
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
            entries: vec![Entry::default(); TLB_ENTRIES],
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
    pub fn filled(&mut self, entry: usize, context: &Context, bytes: u32) {
        let levels = if bytes == 1 << 20 { 1 } else { 2 };
        // A walk that failed at the first level may have left its descriptor in front.
        let skip = self.walk.levels.saturating_sub(levels);
        let mut made = Entry {
            levels,
            ttb: context.ttb,
            cycle: context.cycle,
            ..Entry::default()
        };
        for level in 0..levels {
            made.descriptors[level] = self.walk.descriptors[(skip + level) & 1];
        }
        self.entries[entry % TLB_ENTRIES] = made;
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
        self.entries[entry % TLB_ENTRIES] = Entry::default();
    }

    /// All but the lockdown entries were.
    pub fn invalidated_all(&mut self) {
        self.entries[..FIRST_LOCKED].fill(Entry::default());
    }

    /// When an entry was loaded.
    pub fn filled_at(&self, entry: usize) -> u64 {
        self.entries[entry % TLB_ENTRIES].cycle
    }

    /// Checks an access that an entry allowed.
    pub fn check(&mut self, shadow: &Shadow, context: &Context, access: Use) -> Verdict {
        let Context {
            ttb, dacr, sctlr, ..
        } = *context;
        let Use {
            mva,
            kind,
            privileged,
            ..
        } = access;
        let entry = &mut self.entries[access.entry % TLB_ENTRIES];
        if !entry.changed && entry.ttb == ttb || entry.levels == 0 {
            return Verdict::Same;
        }
        let mut levels = entry.descriptors.iter();
        let then = mapping(entry.ttb, mva, |_| levels.next().map(|d| d.1));
        let mut read: [Option<Descriptor>; 2] = [None; 2];
        let now = mapping(ttb, mva, |pa| {
            let value = shadow.newest(pa, Width::Word);
            read[usize::from(read[0].is_some())] = Some((pa, value.unwrap_or(0)));
            value
        });
        if let (Some(now), Some(then)) = (now, then)
            && now.pa == access.pa.0
            && now.cb == then.cb
            && now.allows(kind, privileged, dacr, sctlr)
        {
            let keeps = |kind, privileged| {
                now.allows(kind, privileged, dacr, sctlr)
                    || !then.allows(kind, privileged, dacr, sctlr)
            };
            let all = [Kind::Read, Kind::Write];
            let same = all.iter().all(|k| keeps(*k, true) && keeps(*k, false));
            return if same { Verdict::Same } else { Verdict::Less };
        }
        entry.changed = false;
        entry.ttb = ttb;
        let made = entry.descriptors[..entry.levels].iter();
        let differs = made.zip(read).find_map(|(old, new)| {
            let (pa, value) = new?;
            (value != old.1).then_some(Verdict::Stale((pa, old.1), value))
        });
        differs.unwrap_or(Verdict::Same)
    }
}
