// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ARM926EJ-S main TLB: unified, 32 sets of 2 ways, and 8 fully associative lockdown entries
//! (`DDI0198D 3.7`). Tags are modified virtual addresses.
//!
//! Not in the manual and chosen here: the set is MVA[16:12] for pages and MVA[24:20] for sections,
//! the victim alternates per set. See docs/LIMITS.md. With [`Victims::Late`] an empty way is filled
//! first, and the way filled last after that.

use crate::addr::Mva;
use crate::config::Victims;

/// Sets of the two-way part.
const SETS: usize = 32;
/// Entries of the two-way part; lockdown entries follow.
const MAIN: usize = SETS * 2;
/// Number of lockdown entries.
pub const LOCKDOWN: usize = 8;
/// All entries.
pub const ENTRIES: usize = MAIN + LOCKDOWN;

/// One translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Entry {
    /// MVA of the first byte covered, with bit 0 set while the entry is valid.
    tag: u32,
    /// Ones where the MVA is compared; zero bits are the page offset.
    mask: u32,
    /// Physical address of the first byte covered.
    pub pa: u32,
    /// Access permissions.
    pub ap: u8,
    /// Domain number, 0 to 15.
    pub domain: u8,
    /// C and B bits: C in bit 1, B in bit 0.
    pub cb: u8,
    /// Loaded by a section descriptor: decides the fault codes.
    pub section: bool,
}

crate::state!(Entry: tag, mask, pa, ap, domain, cb, section);

impl Entry {
    /// A valid entry for the `size` bytes (a power of two) around `mva`.
    pub fn new(mva: Mva, size: u32, pa: u32, ap: u8, domain: u8, cb: u8) -> Entry {
        let mask = !(size - 1);
        let section = size == 1 << 20;
        Entry {
            tag: (mva.0 & mask) | 1,
            mask,
            pa: pa & mask,
            ap,
            domain,
            cb,
            section,
        }
    }

    /// Bytes covered.
    #[inline]
    pub fn size(&self) -> u32 {
        (!self.mask).wrapping_add(1)
    }

    /// Physical address of `mva`, which the entry must cover.
    pub fn translate(&self, mva: Mva) -> u32 {
        self.pa | (mva.0 & !self.mask)
    }

    fn matches(&self, mva: Mva) -> bool {
        (mva.0 & self.mask) | 1 == self.tag
    }
}

/// The translation lookaside buffer.
#[derive(Clone)]
pub struct Tlb {
    entries: [Entry; ENTRIES],
    victims: Victims,
    /// Next way to replace, one bit per set: not the one filled last.
    victim: u32,
    /// CP15 c10: P in bit 0, victim in bits 28:26.
    lockdown: u32,
    /// Whether an entry of less than 4 KB was ever loaded.
    divided: bool,
}

crate::state!(Tlb: entries, victim, lockdown, divided; victims);

impl Tlb {
    /// An empty TLB.
    pub fn new(victims: Victims) -> Tlb {
        Tlb {
            victims,
            entries: [Entry::default(); ENTRIES],
            victim: 0,
            lockdown: 0,
            divided: false,
        }
    }

    fn sets(mva: Mva) -> [usize; 2] {
        [(mva.0 >> 12) as usize % SETS, (mva.0 >> 20) as usize % SETS]
    }

    /// The entry that covers `mva`, and its number. If there are more, the one that was there first:
    /// a walk loads none where there is one, so that it is the smallest, but for a lockdown entry
    /// loaded for another address of a large page, which that address's set did not have.
    #[inline]
    pub fn find(&self, mva: Mva) -> Option<(usize, Entry)> {
        let [page, section] = Self::sets(mva);
        let (page, section) = (page * 2, section * 2);
        let main = [
            (page, false),
            (page + 1, false),
            (section, true),
            (section + 1, true),
        ]
        .into_iter()
        .filter(|(n, section)| self.entries[*n].section == *section)
        .map(|(n, _)| n);
        main.chain(MAIN..ENTRIES)
            .filter(|n| self.entries[*n].matches(mva))
            .min_by_key(|n| {
                let size = self.entries[*n].size();
                (size >= 4096, size == 1 << 20, *n >= MAIN, size)
            })
            .map(|n| (n, self.entries[n]))
    }

    /// Whether some of the 4 KB around `mva` have an entry of less.
    pub fn divides(&self, mva: Mva) -> bool {
        let page = Self::sets(mva)[0];
        let within = |entry: &Entry| {
            entry.tag & 1 != 0 && entry.size() < 4096 && (entry.tag ^ mva.0) >> 12 == 0
        };
        self.divided
            && (self.entries[page * 2..page * 2 + 2].iter())
                .chain(&self.entries[MAIN..])
                .any(within)
    }

    /// Loads an entry for `mva` and returns its number, which may have held another one.
    pub fn insert(&mut self, mva: Mva, entry: Entry) -> usize {
        let n = if self.lockdown & 1 != 0 {
            let victim = self.lockdown >> 26 & 7;
            self.lockdown = (self.lockdown & !(7 << 26)) | ((victim + 1) & 7) << 26;
            MAIN + victim as usize
        } else {
            let [page, section] = Self::sets(mva);
            let set = if entry.section { section } else { page };
            let way = match self.victims {
                Victims::Random => self.victim >> set & 1,
                Victims::Late => self.latest(set),
            };
            self.victim = self.victim & !(1 << set) | (way ^ 1) << set;
            set * 2 + way as usize
        };
        self.entries[n] = entry;
        self.divided |= entry.size() < 4096;
        n
    }

    /// An empty way, else the one filled last.
    fn latest(&self, set: usize) -> u32 {
        let empty = (0..2).find(|way| self.entries[set * 2 + way].tag == 0);
        empty.map_or(self.victim >> set & 1 ^ 1, |way| way as u32)
    }

    /// Invalidates everything but the lockdown entries (`DDI0198D 2.3.9`).
    pub fn invalidate_all(&mut self) {
        self.entries[..MAIN].fill(Entry::default());
    }

    /// Invalidates the entries that cover `mva`, wherever they are: lockdown entries (`DDI0198D
    /// 2.3.11`), and the copies of a large page, one in each set that a walk put it in. Calls
    /// `gone` with the number of each.
    pub fn invalidate(&mut self, mva: Mva, mut gone: impl FnMut(usize)) {
        for (n, entry) in self.entries.iter_mut().enumerate() {
            if entry.matches(mva) {
                *entry = Entry::default();
                gone(n);
            }
        }
    }

    /// CP15 c10,c0,0.
    pub fn lockdown_register(&self) -> u32 {
        self.lockdown
    }

    /// CP15 c10,c0,0.
    pub fn set_lockdown_register(&mut self, value: u32) {
        self.lockdown = value & (7 << 26 | 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(mva: u32, pa: u32) -> Entry {
        Entry::new(Mva(mva), 4096, pa, 3, 0, 3)
    }

    #[test]
    fn a_third_page_of_a_set_evicts_the_first() {
        let mut tlb = Tlb::new(Victims::Random);
        for n in 0..3u32 {
            tlb.insert(Mva(n << 17), small(n << 17, n << 12));
        }
        assert!(tlb.find(Mva(0)).is_none());
        assert_eq!(tlb.find(Mva(1 << 17)).unwrap().1.pa, 0x1000);
        assert_eq!(tlb.find(Mva(2 << 17)).unwrap().1.pa, 0x2000);
    }

    #[test]
    fn late_fills_an_empty_way_then_goes_on_in_the_one_filled_last() {
        let mut tlb = Tlb::new(Victims::Late);
        let mut insert = |n: u32| tlb.insert(Mva(n << 17), small(n << 17, n << 12));
        assert_eq!([0, 1, 2, 3].map(&mut insert), [0, 1, 1, 1]);
        tlb.invalidate(Mva(0), |_| ());
        let mut insert = |n: u32| tlb.insert(Mva(n << 17), small(n << 17, n << 12));
        assert_eq!([4, 5].map(&mut insert), [0, 0]);
        assert!(tlb.find(Mva(3 << 17)).is_some());
    }

    #[test]
    fn invalidate_all_keeps_lockdown_entries_and_invalidate_by_mva_removes_them() {
        let mut tlb = Tlb::new(Victims::Random);
        tlb.set_lockdown_register(1 | 2 << 26);
        tlb.insert(Mva(0x5000), small(0x5000, 0x9000));
        assert_eq!(tlb.lockdown_register(), 1 | 3 << 26);
        tlb.set_lockdown_register(0);
        tlb.insert(Mva(0x6000), small(0x6000, 0xa000));
        tlb.invalidate_all();
        assert!(tlb.find(Mva(0x6000)).is_none());
        assert!(tlb.find(Mva(0x5123)).is_some());
        let mut gone = Vec::new();
        tlb.invalidate(Mva(0x5fff), |n| gone.push(n));
        assert_eq!(gone, [MAIN + 2]);
        assert!(tlb.find(Mva(0x5123)).is_none());
    }

    #[test]
    fn a_large_page_stays_before_a_quarter_locked_later() {
        let mut tlb = Tlb::new(Victims::Random);
        let entry = |mva, size, pa| Entry::new(Mva(mva), size, pa, 3, 0, 3);
        tlb.insert(Mva(0x1_3000), entry(0x1_3000, 1 << 16, 0x8_0000));
        tlb.set_lockdown_register(1);
        tlb.insert(Mva(0x1_2000), entry(0x1_2000, 1 << 14, 0x4_0000));
        let pa = |mva| {
            tlb.find(Mva(mva))
                .map(|(_, entry)| entry.translate(Mva(mva)))
        };
        assert_eq!(pa(0x1_3818), Some(0x8_3818));
        assert_eq!(pa(0x1_2818), Some(0x4_2818));
    }

    #[test]
    fn invalidate_by_mva_removes_every_copy_of_a_large_page() {
        let mut tlb = Tlb::new(Victims::Random);
        let large = |mva| Entry::new(Mva(mva), 1 << 16, 0x8_0000, 3, 0, 3);
        for mva in [0x1_0000, 0x1_5000] {
            tlb.insert(Mva(mva), large(mva));
        }
        let mut gone = Vec::new();
        tlb.invalidate(Mva(0x1_f000), |n| gone.push(n));
        assert_eq!(gone, [32, 42]);
        assert!(
            [0x1_0000, 0x1_5000]
                .iter()
                .all(|mva| tlb.find(Mva(*mva)).is_none())
        );
    }
}
