// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model's TLB. It keeps each entry's descriptors. At each use, it compares the entry with the tables.

use super::model::Model;
use super::tables::{Page, Read, follow};
use super::words::{Finding, Place};
use arm::{Context, Kind, TlbSide};

/// A TLB, and the number of an entry in it.
pub type Number = (TlbSide, usize);

#[derive(Clone)]
pub struct Entry {
    pub made_from: Read,
    ttb: u32,
    reported: Reported,
    /// A locked entry survives an invalidate of all entries.
    pub locked: bool,
}

/// Reports of an entry under one table base.
#[derive(Clone, Default)]
struct Reported {
    ttb: u32,
    /// The walk that loaded the entry read an old descriptor. The report of this walk covers all uses of the entry.
    by_walk: bool,
    /// Users that got a report: instruction, PID, kind of access, and the descriptor that differs.
    to: Vec<(u32, u32, Kind, u32)>,
    /// Descriptors read in checks.
    read: Vec<u32>,
}

impl Entry {
    /// Allows new reports after a write to a descriptor of the entry.
    pub fn written(&mut self, at: u32) {
        let made_from = self.made_from.iter().map(|(at, _)| at);
        if made_from.chain(&self.reported.read).any(|a| *a == at) {
            self.reported.by_walk = false;
            self.reported.to.clear();
        }
    }
}

impl Model {
    /// Checks an access through the TLB. The core sends [`Event::TlbUse`](arm::Event::TlbUse) only for some accesses.
    pub fn translated(&mut self, context: &Context, mva: u32, pa: u32, kind: Kind) {
        if context.sctlr & 1 == 0 {
            return;
        }
        match self.used.get(&(mva >> 12)) {
            Some(entry) if self.tlb.contains_key(entry) => {
                let privileged = context.mode != 0x10;
                self.used_entry(context, *entry, (mva, pa), kind, privileged);
            }
            _ => self.contradict(format!("no entry translated {mva:#x}")),
        }
    }

    pub fn used_entry(
        &mut self,
        context: &Context,
        number: Number,
        (mva, pa): (u32, u32),
        kind: Kind,
        privileged: bool,
    ) {
        let Some(entry) = self.tlb.get(&number) else {
            return self.contradict(format!("entry {number:?} is used but was never loaded"));
        };
        if entry.reported.by_walk && entry.reported.ttb == context.ttb {
            return;
        }
        let (now, read) = follow(context.ttb, mva, |at| self.newest(at));
        let then = made_as(entry, mva);
        let allowed = |page: &Page| page.allows(kind, privileged, context.dacr, context.sctlr);
        let same = now.is_some_and(|now| {
            now.pa == pa && then.is_some_and(|then| then.cb == now.cb) && allowed(&now)
        });
        let differs = entry.made_from.iter().zip(&read).find(|(a, b)| a.1 != b.1);
        let differs = differs.map(|(old, new)| (new.0, old.1, new.1));
        let differs = differs.filter(|_| !same);
        let instruction = self.instruction;
        let Some(entry) = self.tlb.get_mut(&number) else {
            return;
        };
        if entry.reported.ttb != context.ttb {
            entry.reported = Reported {
                ttb: context.ttb,
                ..Reported::default()
            };
        }
        entry.reported.read.extend(read.iter().map(|(at, _)| at));
        let Some((at, got, newest)) = differs else {
            return;
        };
        let user = (instruction, context.pid, kind, at);
        if entry.reported.to.contains(&user) {
            return;
        }
        entry.reported.to.push(user);
        let Some(word) = self.word(at) else {
            return;
        };
        let author = word.last().author;
        self.findings.push(Finding {
            kind: "stale-translation",
            mva,
            pa: at,
            width: 4,
            got,
            newest,
            author,
            place: Place::Memory,
            led_to: Some(pa),
            filled_from: None,
        });
    }

    pub fn tlb_filled(&mut self, ttb: u32, number: Number, locked: bool) {
        let made_from = core::mem::take(&mut self.walked);
        let old = |(at, value): &(u32, u32)| self.newest(*at).is_some_and(|new| new != *value);
        // An old descriptor gets its report at the walk that read the descriptor.
        let reported = Reported {
            ttb,
            by_walk: made_from.iter().any(old),
            ..Reported::default()
        };
        self.tlb.insert(
            number,
            Entry {
                made_from,
                ttb,
                reported,
                locked,
            },
        );
        self.used.retain(|_, entry| *entry != number);
    }

    pub fn is_cacheable(&self, mva: u32) -> bool {
        let entry = self.used.get(&(mva >> 12)).and_then(|n| self.tlb.get(n));
        entry
            .and_then(|entry| made_as(entry, mva))
            .is_some_and(|page| page.cb & 2 != 0)
    }
}

/// Returns how an entry maps an address.
fn made_as(entry: &Entry, mva: u32) -> Option<Page> {
    let mut levels = entry.made_from.iter();
    follow(entry.ttb, mva, |_| levels.next().map(|d| d.1)).0
}
