// SPDX-License-Identifier: MIT OR Apache-2.0
//! Address translation: translation-table walk, domains, permissions (ARM ARM B4, `DDI0198D 3`).
//!
//! A direct-mapped table of checked translations, the fast table, stands in front of the modelled TLB. It holds only
//! translations that the TLB holds, and changes no result and no cycle. A change of a TLB entry, the domain register or
//! a control bit drops every translation that depends on it.

use core::mem::offset_of;

use crate::addr::Mva;
use crate::config::Config;
use crate::grants::Grants;
use crate::observe::TlbSide;
use crate::tag::Tagging;
use crate::tlb::{Entry, Tlb};

/// Kind of access, for permissions and fault status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Data read.
    Read,
    /// Data write.
    Write,
    /// Instruction fetch.
    Fetch,
}

impl Kind {
    /// Flag that a page must have for this kind of access.
    #[inline(always)]
    pub(crate) fn permission(self) -> u32 {
        match self {
            Kind::Read => READ,
            Kind::Write => WRITE,
            Kind::Fetch => EXECUTE,
        }
    }
}

/// Control bits and registers that translation depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Control {
    /// SCTLR.M.
    pub on: bool,
    /// SCTLR.C.
    pub dcache_on: bool,
    /// SCTLR.I.
    pub icache_on: bool,
    /// SCTLR.S.
    pub s: bool,
    /// SCTLR.R.
    pub r: bool,
    /// Write-back pages behave as write-through (CP15 c15, cache debug control).
    pub force_write_through: bool,
    /// Field MD of the auxiliary control register: write policy of the mini data cache.
    pub mini: u8,
    /// Translation table base, aligned to 16 KB.
    pub ttb: u32,
    /// Domain access control register.
    pub dacr: u32,
}

const FAST: usize = 256;
/// Number of domain register values for which resolved translations are kept. Linux alternates between two values if
/// CONFIG_CPU_SW_DOMAIN_PAN is on.
const CONTEXTS: usize = 3;

/// The fast entries derived from a TLB entry.
#[derive(Clone, Copy, Default)]
struct Derived {
    /// One bit for each fast entry.
    slots: [u64; FAST / 64],
    /// An address that the TLB entry covers, and the mask of the bits that its addresses share.
    block: (Mva, u32),
}

/// A TLB entry that translated an access.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// TLB that holds the entry.
    pub side: TlbSide,
    /// Number of the entry in that TLB.
    pub entry: usize,
    /// Number of bytes that the entry covers.
    pub bytes: u32,
    /// Whether the entry survives an invalidate-all.
    pub locked: bool,
}

/// The memory management unit.
#[derive(Clone)]
pub struct Mmu {
    /// Keys of the fast table, or [`NO_KEY`]. They are apart, so that all can be cleared at once.
    keys: [u32; FAST],
    fast: [Resolved; FAST],
    /// For each TLB entry, the fast entries derived from it.
    derived: Box<[Derived]>,
    /// The unified TLB, or the TLB of instructions and the TLB of data.
    pub tlbs: Box<[Tlb]>,
    /// Grants of the data side.
    pub grants: Grants,
    control: Control,
    dacrs: [u32; CONTEXTS],
    next_dacr: usize,
    /// Context of the current privilege and domain register, in bits 31:20.
    context: u32,
    privileged: bool,
    descriptors: Descriptors,
    imprecise_external_aborts: bool,
    /// Bits added to the context of fetches: bit 23 if fetches have a separate TLB.
    fetches: u32,
    /// Whether watchpoints are set. If so, no translation enters the fast table.
    watching: bool,
    /// TLB and entry that the last [`Mmu::translate`] used.
    last: Option<(usize, usize)>,
    /// Counts changes that may have invalidated a translation.
    epoch: u64,
}

impl Mmu {
    /// Offsets of the epoch and of the grants.
    pub(crate) const OFFSETS: [usize; 2] = [offset_of!(Mmu, epoch), offset_of!(Mmu, grants)];

    /// Returns an MMU that is off, with empty TLBs, for privileged accesses.
    pub fn new(config: &Config) -> Mmu {
        let core = config.core;
        let entries = core.tlbs.iter().map(|tlb| tlb.entries()).sum();
        let tlbs = core.tlbs.iter().map(|tlb| Tlb::new(tlb, config.victims));
        let lines_with_several_addresses = match core.tagging {
            Tagging::Virtual => 0,
            Tagging::Physical => config.dcache.lines() as usize,
        };
        let mut mmu = Mmu {
            keys: [NO_KEY; FAST],
            fast: [Resolved::default(); FAST],
            derived: vec![Derived::default(); entries].into(),
            tlbs: tlbs.collect(),
            grants: Grants::new(lines_with_several_addresses),
            control: Control::default(),
            dacrs: [0; CONTEXTS],
            next_dacr: 0,
            context: 0,
            fetches: if core.tlbs.len() > 1 { 1 << 23 } else { 0 },
            privileged: true,
            descriptors: core.descriptors,
            imprecise_external_aborts: core.behaviour.imprecise_external_aborts,
            watching: false,
            last: None,
            epoch: 0,
        };
        mmu.forget_all();
        mmu
    }

    /// Returns a number that changes when a translation that the MMU returned may have become invalid.
    #[inline(always)]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether accesses are privileged.
    #[inline]
    pub fn privileged(&self) -> bool {
        self.privileged
    }

    /// Sets the privilege of the accesses that follow.
    pub fn set_privileged(&mut self, privileged: bool) {
        if privileged != self.privileged {
            self.privileged = privileged;
            self.set_context(self.context ^ 1 << 20);
        }
    }

    /// TLB entry of the last [`Mmu::translate`]. `None` if the MMU is off or the walk failed.
    pub fn last_entry(&self) -> Option<Used> {
        let (number, entry) = self.last?;
        let tlb = &self.tlbs[number];
        Some(Used {
            side: self.side(number),
            entry,
            bytes: tlb.entry(entry).size(),
            locked: tlb.is_locked(entry),
        })
    }

    /// The TLB for this kind of access.
    pub fn tlb(&mut self, kind: Kind) -> &mut Tlb {
        &mut self.tlbs[self.number(kind)]
    }

    /// The entry that translates this kind of access without a walk, if there is one.
    pub fn held(&self, mva: Mva, kind: Kind) -> Option<&Entry> {
        let tlb = &self.tlbs[self.number(kind)];
        tlb.find(mva).map(|n| tlb.entry(n))
    }

    /// Number of the TLB for this kind of access.
    #[inline(always)]
    fn number(&self, kind: Kind) -> usize {
        usize::from(self.tlbs.len() > 1 && kind != Kind::Fetch)
    }

    /// Index in `derived` of the first entry of a TLB.
    #[inline(always)]
    fn first_entry(&self, tlb: usize) -> usize {
        match tlb {
            0 => 0,
            _ => self.tlbs[0].entries(),
        }
    }

    /// Accesses that TLB number `tlb` serves.
    pub fn side(&self, tlb: usize) -> TlbSide {
        match (self.tlbs.len(), tlb) {
            (1, _) => TlbSide::Both,
            (_, 0) => TlbSide::Instruction,
            _ => TlbSide::Data,
        }
    }

    /// Numbers of the TLBs to which an operation on `side` applies.
    pub fn reached(&self, side: TlbSide) -> impl Iterator<Item = usize> + use<> {
        let all = self.tlbs.len();
        (0..all).filter(move |tlb| match side {
            TlbSide::Both => true,
            TlbSide::Instruction => *tlb == 0,
            TlbSide::Data => tlb + 1 == all,
        })
    }

    /// Fault of an external abort of an access to `page`.
    pub fn external_abort(&self, page: Resolved) -> Fault {
        match self.imprecise_external_aborts {
            false => page.external_abort(),
            true => Fault::IMPRECISE,
        }
    }

    /// Makes the next use of every translation go through [`Mmu::translate`].
    pub fn drop_translations(&mut self) {
        self.forget_all();
    }

    /// If `watching`, [`Mmu::lookup`] finds nothing, so that every access goes through `translate`.
    pub fn set_watching(&mut self, watching: bool) {
        self.watching = watching;
        self.forget_all();
    }

    /// Control bits and registers that translation depends on.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Changes the control bits and registers.
    pub fn set_control(&mut self, control: Control) {
        let only_domains = Control {
            dacr: self.control.dacr,
            ttb: self.control.ttb,
            ..control
        } == self.control;
        self.control = control;
        if !only_domains {
            self.forget_all();
        }
        let known = self.dacrs.iter().position(|d| *d == control.dacr);
        let number = known.unwrap_or_else(|| {
            self.next_dacr = (self.next_dacr + 1) % CONTEXTS;
            self.dacrs[self.next_dacr] = control.dacr;
            self.forget_all();
            self.next_dacr
        });
        self.set_context((number as u32) << 21 | u32::from(self.privileged) << 20);
    }

    fn set_context(&mut self, context: u32) {
        self.context = context;
        self.grants.set_context(context >> 20);
        self.epoch += 1;
    }

    fn forget_all(&mut self) {
        self.keys.fill(NO_KEY);
        self.derived.fill(Derived::default());
        self.grants.take_all();
        self.epoch += 1;
    }

    /// Drops the translations derived from TLB entry `n`.
    fn forget(&mut self, n: usize) {
        self.epoch += 1;
        let Derived { slots, block } = self.derived[n];
        if slots == [0; FAST / 64] {
            return;
        }
        self.derived[n] = Derived::default();
        self.grants.take_block(block.0, block.1);
        for (word, mut left) in slots.into_iter().enumerate() {
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                self.keys[(word * 64 + bit) % FAST] = NO_KEY;
                left &= left - 1;
            }
        }
    }

    /// Invalidates all entries of a TLB except locked ones.
    pub fn invalidate_tlb(&mut self, tlb: usize) {
        self.tlbs[tlb].invalidate_all();
        self.forget_all();
    }

    /// Invalidates the first entry of a TLB, from number `from` on, that covers `mva`. Returns its number.
    pub fn invalidate_tlb_entry(&mut self, tlb: usize, mva: Mva, from: usize) -> Option<usize> {
        let entry = self.tlbs[tlb].invalidate(mva, from)?;
        self.forget(self.first_entry(tlb) + entry);
        Some(entry)
    }

    /// Context of this kind of access in the fast table. If there are two TLBs, fetches have separate translations.
    #[inline(always)]
    fn context_of(&self, kind: Kind) -> u32 {
        self.context | if kind == Kind::Fetch { self.fetches } else { 0 }
    }

    #[inline(always)]
    fn slot(mva: Mva, context: u32) -> usize {
        let page = mva.0 >> 12;
        ((page ^ page >> 8 ^ context >> 14) as usize) % FAST
    }

    /// Returns the resolved translation of `mva` from the fast table. The caller checks permissions.
    #[inline(always)]
    pub fn lookup(&self, mva: Mva, kind: Kind) -> Option<Resolved> {
        let context = self.context_of(kind);
        let slot = Self::slot(mva, context);
        (self.keys[slot] == mva.0 >> 12 | context).then_some(self.fast[slot])
    }

    /// Translates `mva` through the TLB, walks the tables if it misses, and checks permissions.
    pub fn translate(
        &mut self,
        mva: Mva,
        kind: Kind,
        privileged: bool,
        memory: &mut impl DescriptorRead,
    ) -> Result<Resolved, Fault> {
        self.last = None;
        if !self.control.on {
            return Ok(self.identity(mva, kind, privileged));
        }
        let tlb = self.number(kind);
        let first = self.first_entry(tlb);
        let n = match self.tlbs[tlb].find(mva) {
            Some(n) => n,
            None => {
                let entry = walk(self.descriptors, self.control.ttb, mva, memory)?;
                let n = self.tlbs[tlb].insert(mva, entry);
                self.forget(first + n);
                n
            }
        };
        let entry = self.tlbs[tlb].entry(n);
        self.last = Some((tlb, n));
        let mut resolved = self.resolve(entry, mva, privileged)?;
        let context = self.context_of(kind);
        if entry.size() >= 4096 && !self.tlbs[tlb].divides(mva) {
            resolved.key = mva.0 >> 12 | context;
        }
        if !resolved.has(kind.permission()) {
            // A fault is not kept in the fast table, so that an observer sees the first allowed use.
            let status = if entry.section { 0b1101 } else { 0b1111 };
            return Err(Fault {
                status,
                domain: entry.attributes.domain,
            });
        }
        let keep = privileged == self.privileged && !self.watching;
        if keep && resolved.holds_for_4_kb() {
            let slot = Self::slot(mva, context);
            (self.keys[slot], self.fast[slot]) = (resolved.key, resolved);
            let derived = &mut self.derived[first + n];
            derived.slots[slot / 64] |= 1 << (slot % 64);
            derived.block = (mva, !(entry.size() - 1));
        }
        Ok(resolved)
    }

    fn identity(&mut self, mva: Mva, kind: Kind, privileged: bool) -> Resolved {
        let icache = if self.control.icache_on { ICACHE } else { 0 };
        let context = self.context_of(kind);
        let resolved = Resolved {
            key: mva.0 >> 12 | context,
            base: mva.0 & !0xfff,
            flags: READ | WRITE | EXECUTE | icache | SECTION,
        };
        if privileged == self.privileged && !self.watching {
            let slot = Self::slot(mva, context);
            (self.keys[slot], self.fast[slot]) = (resolved.key, resolved);
        }
        resolved
    }

    /// Resolves permissions and attributes. The result has no key yet.
    #[inline(always)]
    fn resolve(&self, entry: &Entry, mva: Mva, privileged: bool) -> Result<Resolved, Fault> {
        let c = &self.control;
        let attributes = &entry.attributes;
        let mut flags = match c.dacr >> (u32::from(attributes.domain) * 2) & 3 {
            0b01 => attributes.permissions(c.s, c.r, privileged),
            0b11 => READ | WRITE | EXECUTE,
            _ => {
                let status = if entry.section { 0b1001 } else { 0b1011 };
                return Err(Fault {
                    status,
                    domain: attributes.domain,
                });
            }
        };
        flags |= c.attributes(self.descriptors, attributes);
        if entry.section {
            flags |= SECTION;
        }
        flags |= u32::from(attributes.domain) << DOMAIN_SHIFT;
        Ok(Resolved {
            key: NO_KEY,
            base: entry.translate(mva).0.wrapping_sub(mva.0 & 0xfff),
            flags,
        })
    }
}

mod attributes;
mod fault;
mod resolved;
mod state;
mod walk;

pub use attributes::Attributes;
pub use fault::Fault;
pub use resolved::{
    ALLOCATE, BUFFER, CACHE, DEVICE, EXECUTE, ICACHE, MINI, READ, Resolved, SINGLE, WRITE,
};
use resolved::{DOMAIN_SHIFT, NO_KEY, SECTION};
pub use walk::{DescriptorRead, Descriptors, Mapping, mapping, walk};

#[cfg(test)]
mod tests;
