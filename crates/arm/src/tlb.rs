// SPDX-License-Identifier: MIT OR Apache-2.0
//! TLBs. One kind of TLB has sets of ways and, in addition, fully associative lockdown entries. The other kind has one
//! set and a preserve bit in each entry. Its entries are replaced round robin from a base up (`DDI0184B 2.3.14`). Tags
//! are modified virtual addresses.
//!
//! The manual does not document the index of the TLB with 32 sets. In this model, the index is MVA[16:12] for pages and
//! MVA[24:20] for sections. The ways of a set are replaced in turn (docs/understand/LIMITS.md). With [`Victims::Late`],
//! a walk fills an empty way. If there is none, it fills the way that was filled last.

use core::ops::Range;

use crate::addr::{Mva, Pa};
use crate::config::Victims;
use crate::mmu::Attributes;
use crate::state::Damaged;

/// Structure of a TLB.
#[derive(Debug, PartialEq, Eq)]
pub struct Organisation {
    sets: usize,
    ways: usize,
    lockdown: usize,
    /// Whether there is one set whose victim counter runs from a base to the last entry.
    based: bool,
    /// Whether the base also stays above the entries that an operation has locked (IXP42X 3.1.3.3).
    locks: bool,
}

/// Maximum number of entries of a TLB with a base, given by the width of its register's fields.
const BASED: usize = 64;

impl Organisation {
    /// Describes a TLB with `sets` of `ways` and with `lockdown` entries. Walks fill the sets; only lockdown fills the
    /// lockdown entries.
    ///
    /// # Panics
    ///
    /// Panics unless `sets` is a power of two, `ways` is 1 to 256, and `lockdown` is zero or a power of two up to 64.
    /// With lockdown entries there must be at least 16 sets, so that the pages of a large page are in different sets:
    /// see [`Tlb::find`].
    pub const fn new(sets: usize, ways: usize, lockdown: usize) -> Organisation {
        assert!(sets.is_power_of_two() && ways > 0 && ways <= 256);
        assert!(lockdown == 0 || lockdown.is_power_of_two() && lockdown <= 64 && sets >= 16);
        Organisation {
            sets,
            ways,
            lockdown,
            based: false,
            locks: false,
        }
    }

    /// Describes a fully associative TLB with 64 entries that are replaced round robin from a base up.
    pub const fn from_base() -> Organisation {
        Organisation {
            sets: 1,
            ways: BASED,
            lockdown: 0,
            based: true,
            locks: false,
        }
    }

    /// Describes a fully associative TLB with `entries` that are replaced round robin above the locked entries.
    pub const fn behind_locked(entries: usize) -> Organisation {
        assert!(entries <= BASED);
        Organisation {
            sets: 1,
            ways: entries,
            lockdown: 0,
            based: true,
            locks: true,
        }
    }

    /// Last entry, where a victim counter wraps.
    const fn last(&self) -> u32 {
        self.ways as u32 - 1
    }

    /// Value of the lockdown register at reset. In a TLB that locks its first entries, the counter starts at the last
    /// entry.
    const fn reset(&self) -> u32 {
        if self.locks { self.last() << 20 } else { 0 }
    }

    /// Number of entries that walks fill; lockdown entries follow them.
    const fn main(&self) -> usize {
        self.sets * self.ways
    }

    /// Number of entries.
    pub const fn entries(&self) -> usize {
        self.main() + self.lockdown
    }

    /// Mask of the victim field in the lockdown register.
    fn victim_field(&self) -> u32 {
        (self.lockdown.max(1) as u32 - 1) << 26
    }

    /// Mask of the bits in the lockdown register.
    fn register(&self) -> u32 {
        match (self.based, self.lockdown) {
            (true, _) => 0xfff0_0001,
            (false, 0) => 0,
            (false, _) => self.victim_field() | 1,
        }
    }
}

/// A TLB entry: one translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Entry {
    /// MVA of the first byte covered; bit 0 is set while the entry is valid.
    tag: u32,
    /// Mask of the MVA bits that are compared; the other bits are the page offset.
    mask: u32,
    /// Physical address of the first byte covered.
    pub pa: Pa,
    /// Permissions, domain and memory attributes.
    pub attributes: Attributes,
    /// Whether a section descriptor loaded the entry. The fault codes depend on this.
    pub section: bool,
    /// Whether the preserve bit was set when the entry was loaded, in a TLB with a base.
    preserved: bool,
}

crate::state!(Entry: tag, mask, pa, attributes, section, preserved);

impl Entry {
    /// Returns a valid entry for the `size` bytes (a power of two) around `mva`.
    pub fn new(mva: Mva, size: u32, pa: Pa, attributes: Attributes) -> Entry {
        let mask = !(size - 1);
        let section = size == 1 << 20;
        Entry {
            tag: (mva.0 & mask) | 1,
            mask,
            pa: Pa(pa.0 & mask),
            attributes,
            section,
            preserved: false,
        }
    }

    /// Number of bytes covered.
    #[inline]
    pub fn size(&self) -> u32 {
        (!self.mask).wrapping_add(1)
    }

    /// MVA of the first byte covered, if the entry is valid.
    pub fn mva(&self) -> Option<Mva> {
        (self.tag & 1 != 0).then_some(Mva(self.tag & self.mask))
    }

    /// Physical address of `mva`, which the entry must cover.
    pub fn translate(&self, mva: Mva) -> Pa {
        Pa(self.pa.0 | (mva.0 & !self.mask))
    }

    #[inline(always)]
    fn matches(&self, mva: Mva) -> bool {
        (mva.0 & self.mask) | 1 == self.tag
    }
}

/// State of a lock operation between [`Tlb::begin_lock`] and [`Tlb::end_lock`].
#[derive(Clone, Copy, Debug)]
pub struct Lock {
    base: u32,
    last: u32,
}

/// A translation lookaside buffer.
#[derive(Clone)]
pub struct Tlb {
    organisation: &'static Organisation,
    entries: Box<[Entry]>,
    victims: Victims,
    /// For each set, the way to replace next.
    victim: Box<[u8]>,
    /// CP15 c10: P in bit 0. Without a base, the victim is in bits 31:26. With a base, the base is in bits 31:26 and
    /// the victim in bits 25:20.
    lockdown: u32,
    /// Whether an entry of less than 4 KB was ever loaded.
    divided: bool,
    /// Whether a lockdown entry was ever loaded.
    locked: bool,
}

crate::state!(Tlb: entries, victim, lockdown, divided, locked; organisation, victims => check);

impl Tlb {
    /// Returns an empty TLB.
    pub fn new(organisation: &'static Organisation, victims: Victims) -> Tlb {
        Tlb {
            organisation,
            victims,
            entries: vec![Entry::default(); organisation.entries()].into(),
            victim: vec![0; organisation.sets].into(),
            lockdown: organisation.reset(),
            divided: false,
            locked: false,
        }
    }

    /// Checks a restored state.
    fn check(&self) -> Result<(), Damaged> {
        let ways = self.organisation.ways;
        let there = self.victim.iter().all(|way| usize::from(*way) < ways);
        let based = self.organisation.based;
        let known = |entry: &Entry| entry.attributes.are_known() && (based || !entry.preserved);
        let last = self.organisation.last();
        let counts = [self.lockdown >> 26, self.lockdown >> 20 & 63];
        let counted = !based || counts.iter().all(|n| *n <= last);
        let whole = there && counted && self.entries.iter().all(known);
        match whole && self.lockdown & !self.organisation.register() == 0 {
            true => Ok(()),
            false => Err(Damaged("a TLB entry or victim counter is invalid")),
        }
    }

    /// Set numbers of `mva`: as a page, as a section.
    #[inline(always)]
    fn sets(&self, mva: Mva) -> [usize; 2] {
        let last = self.organisation.sets - 1;
        [(mva.0 >> 12) as usize & last, (mva.0 >> 20) as usize & last]
    }

    /// Numbers of the entries of a set.
    #[inline(always)]
    fn ways(&self, set: usize) -> Range<usize> {
        let ways = self.organisation.ways;
        set * ways..(set + 1) * ways
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Whether entry `n` survives an invalidate-all.
    pub fn is_locked(&self, n: usize) -> bool {
        n >= self.organisation.main() || self.entries[n].preserved
    }

    /// Returns the number of the entry that covers `mva`. If several entries cover `mva`, returns the one that was
    /// loaded first. A walk loads no entry for an address that an entry covers, so the first entry is the smallest.
    /// There is one exception: a lockdown entry may have been loaded for another address of a large page, because the
    /// set of that address did not hold the page.
    #[inline]
    pub fn find(&self, mva: Mva) -> Option<usize> {
        let [page, section] = self.sets(mva);
        let mut found = self.first_of(self.ways(page), mva, |_| true, None);
        // A section is only in its own set. This set is checked after the page's set.
        if found.is_none() && section != page {
            found = self.first_of(self.ways(section), mva, |entry| entry.section, found);
        }
        if self.locked {
            let lockdown = self.organisation.main()..self.entries.len();
            found = self.first_of(lockdown, mva, |_| true, found);
        }
        found
    }

    /// The entry with number `n`.
    #[inline]
    pub fn entry(&self, n: usize) -> &Entry {
        &self.entries[n]
    }

    /// Among `found` and the entries in `range` that cover `mva`, returns the entry that was loaded first.
    #[inline(always)]
    fn first_of(
        &self,
        range: Range<usize>,
        mva: Mva,
        may: fn(&Entry) -> bool,
        mut found: Option<usize>,
    ) -> Option<usize> {
        for (n, entry) in range.clone().zip(&self.entries[range]) {
            if entry.matches(mva) && may(entry) {
                found = Some(match found {
                    Some(other) => self.older(other, n),
                    None => n,
                });
            }
        }
        found
    }

    /// Of two entries that cover the same address, returns the entry that was loaded first. Few programs have two such
    /// entries.
    #[cold]
    #[inline(never)]
    fn older(&self, one: usize, other: usize) -> usize {
        if self.rank(one) <= self.rank(other) {
            one
        } else {
            other
        }
    }

    /// Age of an entry among those that cover the same address. The entry that was loaded first has the lowest rank.
    fn rank(&self, n: usize) -> (bool, bool, bool, u32) {
        let size = self.entries[n].size();
        let lockdown = n >= self.organisation.main();
        (size >= 4096, size == 1 << 20, lockdown, size)
    }

    /// Whether an entry of less than 4 KB covers part of the 4 KB page around `mva`.
    #[inline]
    pub fn divides(&self, mva: Mva) -> bool {
        self.divided && self.has_part_of(mva)
    }

    fn has_part_of(&self, mva: Mva) -> bool {
        let [page, _] = self.sets(mva);
        let within = |entry: &Entry| {
            entry.tag & 1 != 0 && entry.size() < 4096 && (entry.tag ^ mva.0) >> 12 == 0
        };
        (self.entries[self.ways(page)].iter())
            .chain(&self.entries[self.organisation.main()..])
            .any(within)
    }

    /// Loads an entry for `mva`, in place of another entry if necessary. Returns its number.
    pub fn insert(&mut self, mva: Mva, mut entry: Entry) -> usize {
        let field = self.organisation.victim_field();
        let n = if self.organisation.based {
            entry.preserved = self.lockdown & 1 != 0;
            self.victim_from_base()
        } else if self.lockdown & 1 != 0 {
            let victim = self.lockdown & field;
            self.lockdown = self.lockdown & !field | victim.wrapping_add(1 << 26) & field;
            self.locked = true;
            self.organisation.main() + (victim >> 26) as usize
        } else {
            let [page, section] = self.sets(mva);
            let set = if entry.section { section } else { page };
            let Range { start: first, end } = self.ways(set);
            let n = match self.victims {
                Victims::Random => first + usize::from(self.victim[set]),
                Victims::Late => self.latest(set),
            };
            let next = if n + 1 == end { first } else { n + 1 };
            self.victim[set] = (next - first) as u8;
            n
        };
        self.entries[n] = entry;
        self.divided |= entry.size() < 4096;
        n
    }

    /// Returns an empty entry of a set or, if there is none, the entry that was filled last.
    #[inline(never)]
    fn latest(&self, set: usize) -> usize {
        let Range { start, end } = self.ways(set);
        let empty = (start..end).find(|n| self.entries[*n].tag == 0);
        let filled_last = match usize::from(self.victim[set]) {
            0 => end - 1,
            next => start + next - 1,
        };
        empty.unwrap_or(filled_last)
    }

    /// Returns the entry to replace, and moves the counter, which wraps from the last entry to the base.
    #[inline(never)]
    fn victim_from_base(&mut self) -> usize {
        let (base, victim) = (self.lockdown >> 26, self.lockdown >> 20 & 63);
        let last = self.organisation.last();
        let n = match self.victims {
            Victims::Late if victim >= base && self.lockdown & 1 == 0 => {
                let mut from_base = (base..=last).map(|n| (n, self.entries[n as usize].tag));
                let empty = from_base.find(|(_, tag)| *tag == 0).map(|(n, _)| n);
                let filled_last = if victim == base { last } else { victim - 1 };
                empty.unwrap_or(filled_last)
            }
            // If the counter is below the base, or the entry is to be locked, software has set the counter. The entry
            // at the counter is then replaced.
            _ => victim,
        };
        let next = if n == last { base } else { n + 1 };
        self.lockdown = self.lockdown & !(63 << 20) | next << 20;
        n as usize
    }

    /// Invalidates all entries except lockdown entries (`DDI0198D 2.3.9`) and preserved ones.
    pub fn invalidate_all(&mut self) {
        let main = &mut self.entries[..self.organisation.main()];
        if self.organisation.based {
            let gone = main.iter_mut().filter(|entry| !entry.preserved);
            gone.for_each(|entry| *entry = Entry::default());
        } else {
            main.fill(Entry::default());
        }
    }

    /// Invalidates the first entry, from number `from` on, that covers `mva`. Returns its number. Several entries may
    /// cover `mva`: lockdown entries (`DDI0198D 2.3.11`) and copies of a large page. Each set into which a walk has
    /// loaded the large page has a copy.
    pub fn invalidate(&mut self, mva: Mva, from: usize) -> Option<usize> {
        let found = self.entries[from..].iter().position(|e| e.matches(mva))?;
        self.entries[from + found] = Entry::default();
        Some(from + found)
    }

    /// Begins to lock the next entry that is loaded. The entry is the first one above those that are already locked.
    /// The last entry of the TLB is never locked. [`Tlb::end_lock`] then leaves the counter at the last entry (IXP42X
    /// 3.1.3.3, 3.1.3.4).
    pub fn begin_lock(&mut self) -> Lock {
        let base = self.lockdown >> 26;
        let locks = base < self.organisation.last();
        self.lockdown = base << 26 | base << 20 | u32::from(locks);
        Lock {
            base,
            last: self.organisation.last(),
        }
    }

    /// Ends the lock operation. `loaded` says whether an entry was loaded.
    pub fn end_lock(&mut self, lock: Lock, loaded: bool) {
        let base = if loaded { lock.base + 1 } else { lock.base };
        self.lockdown = base.min(lock.last) << 26 | lock.last << 20;
    }

    /// Unlocks all entries. They stay valid.
    pub fn unlock(&mut self) {
        self.entries
            .iter_mut()
            .for_each(|entry| entry.preserved = false);
        self.lockdown = self.organisation.reset();
    }

    /// The TLB lockdown register (CP15 c10,c0,0).
    pub fn lockdown_register(&self) -> u32 {
        self.lockdown
    }

    /// Writes the TLB lockdown register (CP15 c10,c0,0).
    pub fn set_lockdown_register(&mut self, value: u32) {
        self.lockdown = value & self.organisation.register();
    }
}

#[cfg(test)]
mod tests;
