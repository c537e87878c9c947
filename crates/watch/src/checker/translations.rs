// SPDX-License-Identifier: MIT OR Apache-2.0
//! TLB entries, and the descriptors from which they were made.

use super::causes::Among;
use super::circumstances::Difference;
use super::report::Access;
use super::shadow::Shadow;
use super::{Checker, diagnosis};
use arm::{
    AddressSpace, Context, Event, Kind, Mapping, Mva, Pa, Reaction, TlbSide, Width, mapping,
};
use std::collections::BTreeSet;

/// A descriptor: physical address and value as read.
pub(super) type Descriptor = (u32, u32);

/// A loaded TLB entry for a page.
#[derive(Clone, Copy)]
pub(super) struct Loaded {
    pub number: Number,
    /// MVA that the entry was loaded for, and physical address of its page.
    pub mva: u32,
    pub pa: u32,
    /// Core cycle of the fill.
    pub cycle: u64,
}

#[derive(Clone, Default)]
struct Entry {
    /// MVA that the entry was loaded for.
    mva: u32,
    /// Descriptor of the first level and, for a page, of the second level.
    descriptors: [Descriptor; 2],
    levels: usize,
    /// Address space of the last check, and the addresses of all descriptors read in checks in this address space.
    /// Another address space may lead to other descriptors with equal contents.
    checked: (AddressSpace, Vec<u32>),
    /// Users that got a report in the address space in `checked`.
    reported_to: BTreeSet<User>,
    /// Address space and core cycle of the fill.
    space: AddressSpace,
    cycle: u64,
    /// Whether every use of the entry needs a check. Either a descriptor was written after the fill, or the entry was
    /// used in another address space.
    changed: bool,
    /// A locked entry survives an invalidate of all entries.
    locked: bool,
}

/// The user of a stale entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct User {
    /// Virtual address of the instruction, and its process's PID.
    pub pc: u32,
    pub pid: u32,
    /// Kind of access.
    pub kind: Kind,
    /// Callers and circumstances, as a hash.
    pub among: Among,
    /// Physical address of the descriptor that differs.
    pub descriptor: u32,
}

/// A TLB, and the number of an entry in it.
pub(super) type Number = (TlbSide, usize);

/// An entry that a walk loaded.
#[derive(Clone, Copy)]
struct Filled {
    number: Number,
    mva: u32,
    bytes: u32,
    locked: bool,
}

/// An access that a TLB entry allowed.
#[derive(Clone, Copy)]
pub(super) struct Use {
    pub entry: Number,
    pub mva: Mva,
    pub pa: Pa,
    pub kind: Kind,
    pub privileged: bool,
}

/// Result of comparing the present tables with an access that a TLB entry allowed.
pub(super) enum Verdict {
    /// The tables allow everything that the entry allows.
    Same,
    /// The tables allow this access, but not every access that the entry allows.
    Less,
    /// According to the tables, the access goes to another address, has other cache bits, or is forbidden. The fields
    /// are the first descriptor that differs, as it was when the entry was made, and its newest value.
    Stale(Descriptor, u32),
}

/// The state of the TLBs.
#[derive(Clone)]
pub(super) struct Translations {
    /// Entries of each TLB, up to the highest number ever loaded.
    entries: [Vec<Entry>; 3],
    /// The last two descriptors that any walk read, including walks that failed.
    walk: [Descriptor; 2],
}

impl Translations {
    pub fn new() -> Translations {
        Translations {
            entries: [const { Vec::new() }; 3],
            walk: [Descriptor::default(); 2],
        }
    }

    /// Records that a walk read a descriptor. [`Translations::filled`] follows if the walk succeeds.
    pub fn walked(&mut self, pa: u32, value: u32) {
        self.walk = [self.walk[1], (pa, value)];
    }

    fn entry(&mut self, (side, entry): Number) -> &mut Entry {
        let entries = &mut self.entries[side as usize];
        if entry >= entries.len() {
            entries.resize_with(entry + 1, Entry::default);
        }
        &mut entries[entry]
    }

    /// Handles an event that loads, removes or unlocks entries.
    pub fn moved(&mut self, shadow: &mut Shadow, context: &Context, event: Event<'_>) {
        match event {
            Event::TlbFill {
                side,
                entry,
                bytes,
                locked,
                mva,
            } => {
                let filled = Filled {
                    number: (side, entry),
                    mva: mva.0,
                    bytes,
                    locked,
                };
                self.filled(context, filled);
                for at in self.alike(filled) {
                    shadow.watch(at);
                }
            }
            Event::TlbInvalidate { side, entry } => self.invalidated((side, entry)),
            Event::TlbInvalidateAll { side } => self.invalidated_all(side),
            Event::TlbUnlock { side } => self.unlocked(side),
            _ => {}
        }
    }

    /// Records an entry that a walk loaded.
    fn filled(&mut self, context: &Context, filled: Filled) {
        let (levels, descriptors) = match filled.bytes {
            0x10_0000 => (1, [self.walk[1], Descriptor::default()]),
            _ => (2, self.walk),
        };
        *self.entry(filled.number) = Entry {
            mva: filled.mva,
            descriptors,
            levels,
            checked: (context.space(), Vec::new()),
            reported_to: BTreeSet::new(),
            space: context.space(),
            cycle: context.cycle,
            changed: false,
            locked: filled.locked,
        };
    }

    /// If a page has several second-level descriptors, returns all their addresses. The descriptors must be equal,
    /// because one entry covers the whole page. A write to one of these descriptors counts as a write to the descriptor
    /// that the walk read.
    fn alike(&mut self, filled: Filled) -> Vec<u32> {
        let entry = self.entry(filled.number);
        let [(_, first), (at, _)] = entry.descriptors;
        let each = if first & 3 == 3 { 1024 } else { 4096 };
        let bytes = 4 * (filled.bytes / each);
        if entry.levels < 2 || bytes <= 4 {
            return Vec::new();
        }
        let from = at & !(bytes - 1);
        entry.checked.1 = (from..from + bytes).step_by(4).collect();
        entry.checked.1.clone()
    }

    /// Records a write to a word that a walk has read. Returns true if an entry depends on the word.
    pub fn written(&mut self, pa: u32) -> bool {
        let word = pa & !3;
        let mut any = false;
        for entry in self.entries.iter_mut().flatten() {
            let made = &entry.descriptors[..entry.levels];
            let checked = entry.checked.1.contains(&word);
            if checked || made.iter().any(|d| d.0 == word) {
                entry.changed = true;
                entry.reported_to.clear();
                any = true;
            }
        }
        any
    }

    fn invalidated(&mut self, entry: Number) {
        *self.entry(entry) = Entry::default();
    }

    /// Removes all entries of a TLB except locked ones.
    fn invalidated_all(&mut self, side: TlbSide) {
        let entries = self.entries[side as usize].iter_mut();
        entries
            .filter(|entry| !entry.locked)
            .for_each(|entry| *entry = Entry::default());
    }

    /// Unlocks all entries of a TLB.
    fn unlocked(&mut self, side: TlbSide) {
        let entries = self.entries[side as usize].iter_mut();
        entries.for_each(|entry| entry.locked = false);
    }

    /// Returns the loaded entries for pages.
    pub fn all(&self) -> impl Iterator<Item = Loaded> + use<'_> {
        let sides = [TlbSide::Both, TlbSide::Instruction, TlbSide::Data];
        let entries_of = |side: TlbSide| self.entries[side as usize].iter().enumerate();
        let all = sides
            .into_iter()
            .flat_map(move |side| entries_of(side).map(move |(n, e)| ((side, n), e)));
        let pages = all.filter(|(_, entry)| entry.levels == 2);
        pages.map(|(number, entry)| Loaded {
            number,
            mva: entry.mva,
            pa: entry.descriptors[1].1 & !0xfff,
            cycle: entry.cycle,
        })
    }

    /// Returns the core cycle in which an entry was loaded.
    pub fn filled_at(&mut self, entry: Number) -> u64 {
        self.entry(entry).cycle
    }

    /// Returns whether the user of a stale entry needs a report, and records that the user has had a report.
    pub fn needs_report(&mut self, entry: Number, user: User) -> bool {
        self.entry(entry).reported_to.insert(user)
    }

    /// Checks an access that an entry allowed.
    pub fn check(&mut self, shadow: &mut Shadow, context: &Context, access: Use) -> Verdict {
        let Context {
            dacr,
            sctlr,
            descriptors,
            ..
        } = *context;
        let space = context.space();
        let Use {
            mva,
            kind,
            privileged,
            ..
        } = access;
        let entry = self.entry(access.entry);
        if !entry.changed && entry.space == space || entry.levels == 0 {
            return Verdict::Same;
        }
        let mut levels = entry.descriptors.iter();
        let table = entry.space.table();
        let then = mapping(descriptors, table, mva, |_| levels.next().map(|d| d.1));
        let Some((now, read)) = newest(shadow, context, mva) else {
            return Verdict::Same;
        };
        if entry.checked.0 != space {
            entry.checked = (space, Vec::new());
            entry.reported_to.clear();
        }
        for (pa, _) in read.into_iter().flatten() {
            if !entry.checked.1.contains(&pa) {
                entry.checked.1.push(pa);
                shadow.watch(pa);
            }
        }
        if let (Some(now), Some(then)) = (now, then)
            && now.pa == access.pa
            && now.attributes.cb == then.attributes.cb
            && now.allows(kind, privileged, dacr, sctlr)
        {
            // The entry may still be right in its other address space. Therefore, every later use is checked, and a
            // stale use is reported again.
            entry.changed |= entry.space != space;
            return match gives_less(&now, &then, dacr, sctlr) {
                false => Verdict::Same,
                true => Verdict::Less,
            };
        }
        entry.changed = true;
        let made = entry.descriptors[..entry.levels].iter();
        let differs = made.zip(read).find_map(|(old, new)| {
            let (pa, value) = new?;
            (value != old.1).then_some(Verdict::Stale((pa, old.1), value))
        });
        differs.unwrap_or(Verdict::Same)
    }
}

impl Checker {
    /// Checks the use of an entry, and reports it if the entry is stale.
    pub(super) fn use_translation(&mut self, context: &Context, access: Use) -> Reaction {
        let verdict = self.translations.check(&mut self.shadow, context, access);
        let (descriptor, newest) = match verdict {
            Verdict::Same => return Reaction::Continue,
            // The core must send the next use too, because that access may be forbidden.
            Verdict::Less => return Reaction::DropTranslations,
            Verdict::Stale(descriptor, newest) => (descriptor, newest),
        };
        let Use { mva, pa, kind, .. } = access;
        let writer = self.shadow.writer(descriptor.0);
        let filled = self.translations.filled_at(access.entry);
        let access_kind = Access::Translation(kind);
        let met = Difference {
            context,
            access: access_kind,
            mva,
            pa: Pa(descriptor.0),
            writer: &writer,
            filled: Some(filled),
            values: [descriptor.1, newest],
        };
        let among = self.among(&met);
        let user = User {
            pc: context.pc,
            pid: context.pid,
            kind,
            among,
            descriptor: descriptor.0,
        };
        if !self.translations.needs_report(access.entry, user) || self.is_well_known(&met, among) {
            // The core must send the next use too, because it may come from another user.
            return Reaction::DropTranslations;
        }
        let found = diagnosis::Found {
            context: *context,
            access: access_kind,
            mva,
            pa: Pa(descriptor.0),
            width: Width::Word,
            got: descriptor.1,
            newest,
            writer,
        };
        let report = diagnosis::stale_translation(&self.history, found, pa, filled);
        match self.report(report) {
            Reaction::Continue => Reaction::DropTranslations,
            other => other,
        }
    }
}

/// Returns the mapping of an address in the present tables, and the descriptors read. Returns `None` if a descriptor is
/// outside RAM.
fn newest(
    shadow: &Shadow,
    context: &Context,
    mva: Mva,
) -> Option<(Option<Mapping>, [Option<Descriptor>; 2])> {
    let mut read: [Option<Descriptor>; 2] = [None; 2];
    let mut is_known = true;
    let now = mapping(context.descriptors, context.ttb, mva, |Pa(pa)| {
        let value = shadow.newest(pa, Width::Word);
        is_known &= value.is_some();
        read[usize::from(read[0].is_some())] = Some((pa, value.unwrap_or(0)));
        value
    });
    is_known.then_some((now, read))
}

/// Returns whether the mapping `now` allows less than `then`, or covers a smaller page.
fn gives_less(now: &Mapping, then: &Mapping, dacr: u32, sctlr: u32) -> bool {
    let lost = |kind, privileged| {
        then.allows(kind, privileged, dacr, sctlr) && !now.allows(kind, privileged, dacr, sctlr)
    };
    let all = [Kind::Read, Kind::Write, Kind::Fetch];
    // The core requests a translation once for each 4 KB, so only a page that is smaller than 4 KB counts as smaller.
    let pieces = now.bytes < then.bytes.min(4096);
    pieces || all.iter().any(|k| lost(*k, true) || lost(*k, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(bytes: u32) -> Filled {
        Filled {
            number: (TlbSide::Both, 3),
            mva: 0,
            bytes,
            locked: false,
        }
    }

    #[test]
    fn each_tlb_has_its_own_entries_and_locked_ones_stay() {
        let (mut translations, context) = (Translations::new(), Context::default());
        let mut load = |side, entry, locked, at| {
            let number = (side, entry);
            translations.walked(at, 1);
            let filled = Filled {
                number,
                locked,
                ..filled(1 << 20)
            };
            translations.filled(&context, filled);
        };
        load(TlbSide::Instruction, 3, false, 0x4000);
        load(TlbSide::Data, 3, false, 0x5000);
        load(TlbSide::Data, 70, true, 0x6000);
        translations.invalidated_all(TlbSide::Data);
        assert!(translations.written(0x4000) && translations.written(0x6000));
        assert!(!translations.written(0x5000));
        translations.invalidated((TlbSide::Data, 70));
        translations.invalidated((TlbSide::Data, 700));
        assert!(!translations.written(0x6000));
    }

    /// After the unlock, an entry of XScale's TLB must be removable again.
    #[test]
    fn an_unlocked_entry_is_removed_by_an_invalidate_of_all() {
        let (mut shadow, context) = (Shadow::new(vec![0; 0x4000], 0), Context::default());
        let sides = [TlbSide::Instruction, TlbSide::Data];
        for unlocked in sides {
            let mut translations = Translations::new();
            for side in sides {
                let fill = Event::TlbFill {
                    side,
                    entry: 0,
                    mva: Mva(0),
                    bytes: 4096,
                    locked: true,
                };
                translations.walked(0x4000, 1);
                translations.walked(0x8000, 1);
                translations.moved(&mut shadow, &context, fill);
            }
            let unlock = Event::TlbUnlock { side: unlocked };
            translations.moved(&mut shadow, &context, unlock);
            assert_eq!(translations.all().count(), 2, "unlocking removes no entry");
            for side in sides {
                let all = Event::TlbInvalidateAll { side };
                translations.moved(&mut shadow, &context, all);
            }
            let left: Vec<TlbSide> = translations.all().map(|entry| entry.number.0).collect();
            let locked = sides.into_iter().filter(|side| *side != unlocked);
            assert_eq!(left, Vec::from_iter(locked));
        }
    }

    #[test]
    fn an_entry_is_made_from_the_last_descriptors_even_after_failed_walks() {
        let (first, second) = (0x4000, 0x8000);
        for failed in [
            &[][..],
            &[0x5000],
            &[0x5000, 0x9000],
            &[0x5000, 0x5000, 0x5000],
        ] {
            let mut translations = Translations::new();
            for at in failed.iter().chain(&[first, second]) {
                translations.walked(*at, 1);
            }
            translations.filled(&Context::default(), filled(4096));
            assert!(translations.written(first) && translations.written(second));
            assert!(!translations.written(0x5000) && !translations.written(0x9000));
            translations.walked(first, 2);
            translations.filled(&Context::default(), filled(1 << 20));
            assert!(translations.written(first) && !translations.written(second));
        }
    }
}
