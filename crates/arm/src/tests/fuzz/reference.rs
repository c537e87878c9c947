// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expected translations, written from the manuals' text and not from the core's code. Descriptors, permissions and
//! faults follow the ARM ARM (B4); FCSE and TLB operations follow `DDI0198D` (2.3.8 to 2.3.13, 3.2 to 3.7). Where the
//! manuals leave a choice, the reference follows docs/understand/LIMITS.md. The TLB has 32 sets. MVA[16:12] selects the
//! set of a page, and MVA[24:20] the set of a section. The ways are replaced in turn, or as late victims.
//!
//! The reference is a list of entries in loading order. It is not optimised for speed.

use crate::addr::Mva;
use crate::mmu::Kind;

use super::bus::answers;

/// Place of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Way(u32, u32),
    Locked(u32),
}

/// A loaded translation.
#[derive(Clone, Copy, Debug)]
struct Entry {
    from: u32,
    bytes: u32,
    pa: u32,
    ap: u32,
    domain: u32,
    section: bool,
    place: Place,
    /// Kind of the page, for the tally.
    kind: &'static str,
}

impl Entry {
    fn covers(&self, mva: u32) -> bool {
        mva >= self.from && mva - self.from < self.bytes
    }

    /// Whether an access to `mva` compares `mva` with the tag of the entry.
    fn is_compared(&self, mva: u32) -> bool {
        let set = if self.section { mva >> 20 } else { mva >> 12 } % 32;
        matches!(self.place, Place::Way(in_set, _) if in_set == set)
            || matches!(self.place, Place::Locked(_))
    }

    fn status(&self, section: u32) -> u32 {
        let page = if self.section { 0 } else { 2 };
        section + page + (self.domain << 4)
    }
}

/// Result of a check.
pub type Checked<T = ()> = Result<T, String>;

/// CP15 registers that translation depends on, and the TLB.
#[derive(Default)]
pub struct Reference {
    pub sctlr: u32,
    pub ttb: u32,
    pub dacr: u32,
    pub pid: u32,
    lockdown: u32,
    late: bool,
    entries: Vec<Entry>,
    /// For each set, the way that was filled last.
    last: [Option<u32>; 32],
    /// MVA and first descriptor of a walk that needs a second one.
    first: Option<(u32, u32)>,
    /// MVA and fault status of a walk that failed.
    pub failed: Option<(u32, u32)>,
}

impl Reference {
    pub fn new(late: bool) -> Reference {
        Reference {
            sctlr: 0x50078,
            late,
            ..Reference::default()
        }
    }

    fn bit(&self, n: u32) -> bool {
        self.sctlr >> n & 1 != 0
    }

    pub fn mmu(&self) -> bool {
        self.bit(0)
    }

    pub fn checks_alignment(&self) -> bool {
        self.bit(1)
    }

    /// Base address of the exception vectors.
    pub fn vectors(&self) -> u32 {
        if self.bit(13) { 0xffff_0000 } else { 0 }
    }

    /// Offset that the FCSE adds to addresses below 32 MB.
    pub fn relocation(&self) -> u32 {
        if self.mmu() { self.pid } else { 0 }
    }

    fn find(&self, mva: u32) -> Option<&Entry> {
        let mut found = self.entries.iter();
        found.find(|entry| entry.covers(mva) && entry.is_compared(mva))
    }

    /// Kind of the page of an address.
    pub fn page(&self, mva: u32) -> &'static str {
        match self.find(mva) {
            _ if !self.mmu() => "no page: MMU off",
            Some(entry) => entry.kind,
            None => "no page",
        }
    }

    /// Fault status of an access through an entry, if the access is not allowed.
    fn refused(&self, entry: &Entry, kind: Kind, privileged: bool) -> Option<u32> {
        let write = kind == Kind::Write;
        let (s, r) = (self.bit(8), self.bit(9));
        let allowed = match (entry.ap, privileged) {
            (0, _) if s == r => false,
            (0, true) => !write,
            (0, false) => r && !write,
            (1, privileged) => privileged,
            (2, privileged) => privileged || !write,
            _ => true,
        };
        match self.dacr >> (2 * entry.domain) & 3 {
            3 => None,
            1 => (!allowed).then(|| entry.status(0xd)),
            _ => Some(entry.status(0x9)),
        }
    }

    /// Checks a walk's read of a descriptor.
    pub fn walked(&mut self, mva: Mva, at: u32, value: u32) -> Checked {
        let mva = mva.0;
        if let Some(entry) = self.find(mva) {
            return Err(format!("a walk for {mva:#x}, which {entry:x?} covers"));
        }
        let (wanted, first) = match self.first.take() {
            None => (self.ttb + (mva >> 20) * 4, None),
            Some((walked, first)) if walked == mva && first & 3 == 1 => {
                ((first & !0x3ff) + (mva >> 12 & 0xff) * 4, Some(first))
            }
            Some((walked, first)) if walked == mva => {
                ((first & !0xfff) + (mva >> 10 & 0x3ff) * 4, Some(first))
            }
            Some((walked, _)) => return Err(format!("no second descriptor for {walked:#x}")),
        };
        if at != wanted {
            return Err(format!(
                "descriptor for {mva:#x} at {at:#x}, not {wanted:#x}"
            ));
        }
        let domain = first.unwrap_or(value) >> 5 & 15;
        match (first, value & 3) {
            (None, _) if !answers(at) => self.failed = Some((mva, 0xc)),
            (None, 0) => self.failed = Some((mva, 0x5)),
            (None, 2) => self.load(mva, 1 << 20, value, (value >> 10 & 3, domain), "section"),
            (None, _) => self.first = Some((mva, value)),
            (Some(_), _) if !answers(at) => self.failed = Some((mva, 0xe | domain << 4)),
            (Some(_), 1) => self.load_page(mva, 1 << 16, value, domain),
            (Some(_), 2) => self.load_page(mva, 1 << 12, value, domain),
            (Some(first), 3) if first & 3 == 3 => {
                self.load(mva, 1 << 10, value, (value >> 4 & 3, domain), "tiny page");
            }
            _ => self.failed = Some((mva, 0x7 | domain << 4)),
        }
        Ok(())
    }

    /// Loads a page with permissions for each quarter. If the permissions differ, loads only the quarter with `mva`.
    fn load_page(&mut self, mva: u32, bytes: u32, descriptor: u32, domain: u32) {
        let permissions = [4, 6, 8, 10].map(|bit| descriptor >> bit & 3);
        let quarter = mva % bytes / (bytes / 4);
        let ap = permissions[quarter as usize];
        let (whole, part) = match bytes {
            0x1000 => ("small page", "quarter of a small page"),
            _ => ("large page", "quarter of a large page"),
        };
        if permissions.iter().all(|other| *other == ap) {
            self.load(mva, bytes, descriptor, (ap, domain), whole);
        } else {
            let pa = descriptor & !(bytes - 1) | (quarter * (bytes / 4));
            self.load(mva, bytes / 4, pa, (ap, domain), part);
        }
    }

    fn load(
        &mut self,
        mva: u32,
        bytes: u32,
        pa: u32,
        (ap, domain): (u32, u32),
        kind: &'static str,
    ) {
        let section = bytes == 1 << 20;
        let place = if self.lockdown & 1 != 0 {
            let victim = self.lockdown >> 26 & 7;
            self.lockdown = 1 | ((victim + 1) % 8) << 26;
            Place::Locked(victim)
        } else {
            let set = if section { mva >> 20 } else { mva >> 12 } % 32;
            let way = self.way(set);
            self.last[set as usize] = Some(way);
            Place::Way(set, way)
        };
        self.entries.retain(|entry| entry.place != place);
        let from = mva & !(bytes - 1);
        let pa = pa & !(bytes - 1);
        let entry = Entry {
            from,
            bytes,
            pa,
            ap,
            domain,
            section,
            place,
            kind,
        };
        self.entries.push(entry);
    }

    /// Way of a set that the next walk fills.
    fn way(&self, set: u32) -> u32 {
        let last = self.last[set as usize];
        let is_empty = |way: &u32| {
            !self
                .entries
                .iter()
                .any(|e| e.place == Place::Way(set, *way))
        };
        match (0..2).find(is_empty) {
            Some(way) if self.late => way,
            _ if self.late => last.unwrap_or(0),
            _ => last.map_or(0, |way| 1 - way),
        }
    }

    /// Checks that the last loaded entry covers `bytes`.
    pub fn loaded(&self, mva: Mva, bytes: u32) -> Checked {
        match self.entries.last() {
            Some(entry) if entry.covers(mva.0) && entry.bytes == bytes => Ok(()),
            entry => Err(format!(
                "{bytes:#x} bytes loaded for {mva:?}, not {entry:x?}"
            )),
        }
    }

    /// Checks the use of a translation: there must be an entry that allows the access.
    pub fn used(&self, mva: Mva, pa: u32, kind: Kind, privileged: bool) -> Checked {
        let mva = mva.0;
        let Some(entry) = self.find(mva) else {
            return Err(format!("{mva:#x} is translated, and no entry is for it"));
        };
        let wanted = entry.pa + (mva - entry.from);
        if pa != wanted {
            return Err(format!(
                "{mva:#x} is {wanted:#x} by {entry:x?}, not {pa:#x}"
            ));
        }
        match self.refused(entry, kind, privileged) {
            None => Ok(()),
            Some(status) => Err(format!(
                "{kind:?} of {mva:#x}, privileged {privileged}, was allowed and is to fault \
                 ({status:#x}) by {entry:x?}"
            )),
        }
    }

    /// Checks an abort with this fault status.
    pub fn aborted(&self, mva: u32, status: u32, kinds: &[Kind], privileged: &[bool]) -> Checked {
        if let Some(failed) = self.failed {
            return match failed == (mva, status) {
                true => Ok(()),
                false => Err(format!("abort {:x?}, not {failed:x?}", (mva, status))),
            };
        }
        let Some(entry) = self.find(mva).filter(|_| self.mmu()) else {
            return Err(format!("{mva:#x} aborted with {status:#x} for no reason"));
        };
        let refused = |kind| {
            privileged
                .iter()
                .map(move |p| self.refused(entry, kind, *p))
        };
        if kinds
            .iter()
            .flat_map(|kind| refused(*kind))
            .any(|s| s == Some(status))
        {
            return Ok(());
        }
        Err(format!("{mva:#x} aborted with {status:#x}, by {entry:x?}"))
    }

    /// Checks an external abort of an access that was translated to `pa`.
    pub fn aborted_outside(&self, mva: u32, pa: u32, status: u32) -> Checked {
        let wanted = match self.find(mva) {
            Some(entry) if self.mmu() => entry.status(0x8),
            _ => 0x8,
        };
        match (answers(pa), status == wanted) {
            (false, true) => Ok(()),
            _ => Err(format!(
                "external abort {status:#x} at {mva:#x}, {pa:#x}, not {wanted:#x}"
            )),
        }
    }

    /// Applies a write of CP15. Returns whether it refills the pipeline.
    pub fn written(&mut self, [crn, crm, opc2]: [u32; 3], value: u32) -> bool {
        match (crn, crm, opc2) {
            (1, 0, 0) => {
                let switched = (self.sctlr ^ value) & 1 != 0;
                self.sctlr = 0x50078 | value & 0xf307;
                return switched;
            }
            (2, 0, 0) => self.ttb = value & !0x3fff,
            (3, 0, 0) => self.dacr = value,
            (8, 5..=7, 0) => {
                let stays = |entry: &Entry| matches!(entry.place, Place::Locked(_));
                self.entries.retain(stays);
            }
            (8, 5..=7, 1) => self.entries.retain(|entry| !entry.covers(value)),
            (10, 0, 0) => self.lockdown = value & 0x1c00_0001,
            (13, 0, 0) => self.pid = value & 0xfe00_0000,
            _ => {}
        }
        false
    }

    /// Checks that no walk is unfinished between two instructions.
    pub fn between(&mut self) -> Checked {
        self.failed = None;
        match self.first.take() {
            None => Ok(()),
            Some((mva, _)) => Err(format!("a walk for {mva:#x} was not finished")),
        }
    }
}
