// SPDX-License-Identifier: MIT OR Apache-2.0
//! TLBs: sets of ways, and fully associative lockdown entries beside them; or one set, filled round
//! robin from a base, whose entries say themselves whether they are preserved (`DDI0184B 2.3.14`). Tags
//! are modified virtual addresses.
//!
//! Not in the manual and chosen here: with 32 sets the set is MVA[16:12] for pages and MVA[24:20] for
//! sections, the victims of a set take turns. See docs/understand/LIMITS.md. With [`Victims::Late`] an empty way
//! is filled first, and the way filled last after that.

use core::ops::Range;

use crate::addr::{Mva, Pa};
use crate::config::Victims;
use crate::state::Damaged;

/// How a TLB is built.
#[derive(Debug, PartialEq, Eq)]
pub struct Organisation {
    sets: usize,
    ways: usize,
    lockdown: usize,
    /// One set, whose victim counter goes from a base to the last entry.
    based: bool,
    /// The same, and the base is behind the entries that an operation has locked (IXP42X 3.1.3.3).
    locks: bool,
}

/// Most entries of a TLB with a base: what the fields of its register count.
const BASED: usize = 64;

impl Organisation {
    /// `sets` of `ways` that walks fill, and entries that only lockdown fills.
    ///
    /// # Panics
    /// Sets are a power of two, ways at most 256; there are no lockdown entries, or a power of two up
    /// to 64. Beside these there are 16 sets or more, so that the pages of a large page are in
    /// different sets: see [`Tlb::find`].
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

    /// Fully associative, 64 entries, replaced round robin from a base on.
    pub const fn from_base() -> Organisation {
        Organisation {
            sets: 1,
            ways: BASED,
            lockdown: 0,
            based: true,
            locks: false,
        }
    }

    /// Fully associative, `entries` of them, replaced round robin behind those locked.
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

    /// The last entry, where a victim counter ends.
    const fn last(&self) -> u32 {
        self.ways as u32 - 1
    }

    /// The lockdown register at reset: the counter is at the last entry where locked ones are the first.
    const fn reset(&self) -> u32 {
        if self.locks { self.last() << 20 } else { 0 }
    }

    /// Entries of the part that walks fill; lockdown entries follow.
    const fn main(&self) -> usize {
        self.sets * self.ways
    }

    /// All entries.
    pub const fn entries(&self) -> usize {
        self.main() + self.lockdown
    }

    /// Where the lockdown register has the victim.
    fn victim_field(&self) -> u32 {
        (self.lockdown.max(1) as u32 - 1) << 26
    }

    /// Bits that the lockdown register has.
    fn register(&self) -> u32 {
        match (self.based, self.lockdown) {
            (true, _) => 0xfff0_0001,
            (false, 0) => 0,
            (false, _) => self.victim_field() | 1,
        }
    }
}

/// One translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Entry {
    /// MVA of the first byte covered, with bit 0 set while the entry is valid.
    tag: u32,
    /// Ones where the MVA is compared; zero bits are the page offset.
    mask: u32,
    /// Physical address of the first byte covered.
    pub pa: Pa,
    /// Access permissions.
    pub ap: u8,
    /// Domain number, 0 to 15.
    pub domain: u8,
    /// C and B bits: C in bit 1, B in bit 0; XScale's X in bit 2.
    pub cb: u8,
    /// Loaded by a section descriptor: decides the fault codes.
    pub section: bool,
    /// Loaded with the preserve bit set, into a TLB with a base.
    preserved: bool,
}

crate::state!(Entry: tag, mask, pa, ap, domain, cb, section, preserved);

impl Entry {
    /// A valid entry for the `size` bytes (a power of two) around `mva`.
    pub fn new(mva: Mva, size: u32, pa: Pa, ap: u8, domain: u8, cb: u8) -> Entry {
        let mask = !(size - 1);
        let section = size == 1 << 20;
        Entry {
            tag: (mva.0 & mask) | 1,
            mask,
            pa: Pa(pa.0 & mask),
            ap,
            domain,
            cb,
            section,
            preserved: false,
        }
    }

    /// Bytes covered.
    #[inline]
    pub fn size(&self) -> u32 {
        (!self.mask).wrapping_add(1)
    }

    /// First byte covered, if it is valid.
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

/// An entry is being locked.
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
    /// Of each set the way to replace next: not the one filled last.
    victim: Box<[u8]>,
    /// CP15 c10: P in bit 0, victim from bit 26 on; with a base that is there, and the victim from bit 20 on.
    lockdown: u32,
    /// Whether an entry of less than 4 KB was ever loaded.
    divided: bool,
    /// Whether a lockdown entry was ever loaded.
    locked: bool,
}

crate::state!(Tlb: entries, victim, lockdown, divided, locked; organisation, victims => check);

impl Tlb {
    /// An empty TLB.
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

    /// What was restored may be no state of this TLB.
    fn check(&self) -> Result<(), Damaged> {
        let ways = self.organisation.ways;
        let there = self.victim.iter().all(|way| usize::from(*way) < ways);
        let based = self.organisation.based;
        let known = |entry: &Entry| {
            let attributes = entry.domain < 16 && entry.ap < 4 && entry.cb < 8;
            attributes && (based || !entry.preserved)
        };
        let last = self.organisation.last();
        let counts = [self.lockdown >> 26, self.lockdown >> 20 & 63];
        let counted = !based || counts.iter().all(|n| *n <= last);
        let whole = there && counted && self.entries.iter().all(known);
        match whole && self.lockdown & !self.organisation.register() == 0 {
            true => Ok(()),
            false => Err(Damaged("the TLB has no such entry")),
        }
    }

    /// Numbers of the sets of `mva`: as a page, as a section.
    #[inline(always)]
    fn sets(&self, mva: Mva) -> [usize; 2] {
        let last = self.organisation.sets - 1;
        [(mva.0 >> 12) as usize & last, (mva.0 >> 20) as usize & last]
    }

    /// The entries of a set, by their numbers.
    #[inline(always)]
    fn ways(&self, set: usize) -> Range<usize> {
        let ways = self.organisation.ways;
        set * ways..(set + 1) * ways
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Whether entry `n` stays when all are invalidated.
    pub fn is_locked(&self, n: usize) -> bool {
        n >= self.organisation.main() || self.entries[n].preserved
    }

    /// The number of the entry that covers `mva`. If there are more, the one that was there first:
    /// a walk loads none where there is one, so that it is the smallest, but for a lockdown entry
    /// loaded for another address of a large page, which that address's set did not have.
    #[inline]
    pub fn find(&self, mva: Mva) -> Option<usize> {
        let [page, section] = self.sets(mva);
        let mut found = self.first_of(self.ways(page), mva, |_| true, None);
        // Sections are in their own set alone, and come after pages.
        if found.is_none() && section != page {
            found = self.first_of(self.ways(section), mva, |entry| entry.section, found);
        }
        if self.locked {
            let lockdown = self.organisation.main()..self.entries.len();
            found = self.first_of(lockdown, mva, |_| true, found);
        }
        found
    }

    /// An entry by its number.
    #[inline]
    pub fn entry(&self, n: usize) -> &Entry {
        &self.entries[n]
    }

    /// Of the entries in `range` that cover `mva`, and of `found`, the one that was there first.
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

    /// Of two entries that cover the same the one that was there first; few programs make two.
    #[cold]
    #[inline(never)]
    fn older(&self, one: usize, other: usize) -> usize {
        if self.rank(one) <= self.rank(other) {
            one
        } else {
            other
        }
    }

    /// Of two entries that cover the same the lower one was there first.
    fn rank(&self, n: usize) -> (bool, bool, bool, u32) {
        let size = self.entries[n].size();
        let lockdown = n >= self.organisation.main();
        (size >= 4096, size == 1 << 20, lockdown, size)
    }

    /// Whether some of the 4 KB around `mva` have an entry of less.
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

    /// Loads an entry for `mva` and returns its number, which may have held another one.
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

    /// Of a set an empty entry, else the one filled last.
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

    /// The entry to replace; the counter goes on, behind the last entry from the base.
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
            // Below the base, and with what is to be locked, it goes where software says.
            _ => victim,
        };
        let next = if n == last { base } else { n + 1 };
        self.lockdown = self.lockdown & !(63 << 20) | next << 20;
        n as usize
    }

    /// Invalidates everything but the lockdown entries (`DDI0198D 2.3.9`) and preserved ones.
    pub fn invalidate_all(&mut self) {
        let main = &mut self.entries[..self.organisation.main()];
        if self.organisation.based {
            let gone = main.iter_mut().filter(|entry| !entry.preserved);
            gone.for_each(|entry| *entry = Entry::default());
        } else {
            main.fill(Entry::default());
        }
    }

    /// Invalidates the first entry from number `from` on that covers `mva`, and says which. Lockdown
    /// entries may (`DDI0198D 2.3.11`), and copies of a large page, one in each set that a walk put
    /// it in.
    pub fn invalidate(&mut self, mva: Mva, from: usize) -> Option<usize> {
        let found = self.entries[from..].iter().position(|e| e.matches(mva))?;
        self.entries[from + found] = Entry::default();
        Some(from + found)
    }

    /// The next entry loaded is to be locked: the first behind those that are, and not the last one of all.
    /// Behind it the counter is at the last one (IXP42X 3.1.3.3, 3.1.3.4).
    pub fn begin_lock(&mut self) -> Lock {
        let base = self.lockdown >> 26;
        let locks = base < self.organisation.last();
        self.lockdown = base << 26 | base << 20 | u32::from(locks);
        Lock {
            base,
            last: self.organisation.last(),
        }
    }

    /// What [`Tlb::begin_lock`] began is done, and an entry was `loaded` or not.
    pub fn end_lock(&mut self, lock: Lock, loaded: bool) {
        let base = if loaded { lock.base + 1 } else { lock.base };
        self.lockdown = base.min(lock.last) << 26 | lock.last << 20;
    }

    /// No entry is locked any more. They stay.
    pub fn unlock(&mut self) {
        self.entries
            .iter_mut()
            .for_each(|entry| entry.preserved = false);
        self.lockdown = self.organisation.reset();
    }

    /// CP15 c10,c0,0.
    pub fn lockdown_register(&self) -> u32 {
        self.lockdown
    }

    /// CP15 c10,c0,0.
    pub fn set_lockdown_register(&mut self, value: u32) {
        self.lockdown = value & self.organisation.register();
    }
}

#[cfg(test)]
mod tests;
