// SPDX-License-Identifier: MIT OR Apache-2.0
//! Address translation: table walk, domains, permissions (ARM ARM B4, `DDI0198D 3`).
//!
//! In front of the modelled TLB stands a direct-mapped table of checked translations ("fast
//! table"). It holds only what the TLB holds and changes no result and no cycle: whenever a TLB
//! entry, the domain register, or a control bit changes, what depended on it is dropped.

use crate::addr::{Mva, Pa};
use crate::config::Victims;
use crate::grants::Grants;
use crate::model::Core;
use crate::observe::TlbSide;
use crate::tlb::{Entry, Tlb};

/// Kind of access, for permissions and fault registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Data read.
    Read,
    /// Data write.
    Write,
    /// Instruction fetch.
    Fetch,
}

/// The current privilege may read (and fetch).
pub const READ: u32 = 1 << 0;
/// The current privilege may write.
pub const WRITE: u32 = 1 << 1;
/// Bufferable (data side, after the cache enable is applied).
pub const BUFFER: u32 = 1 << 2;
/// Cacheable (data side, after the cache enable is applied).
pub const CACHE: u32 = 1 << 3;
/// Cacheable on the instruction side.
pub const ICACHE: u32 = 1 << 4;
/// Translated by a section descriptor.
const SECTION: u32 = 1 << 5;
/// The domain, which external aborts tell.
const DOMAIN_SHIFT: u32 = 6;
/// With [`Descriptors::Extended`], which have no domain to tell, in its place: lines go into the mini
/// data cache.
pub const MINI: u32 = 1 << 6;
/// The same: a store that misses fills a line.
pub const ALLOCATE: u32 = 1 << 7;
/// The same: a buffered store stays one of its own.
pub const SINGLE: u32 = 1 << 8;

/// Matches no page: bits 31:24 are never set in a context.
const NO_KEY: u32 = u32::MAX;

/// A translation whose permissions are resolved for one context.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resolved {
    /// MVA[31:12] in bits 19:0 and the context in bits 31:20, or [`NO_KEY`].
    key: u32,
    /// Physical address of the page's start in bits 31:10 (tiny pages: of where it would start),
    /// flags below.
    value: u32,
}

impl Resolved {
    /// Physical address of `mva`, which lies in this page.
    #[inline(always)]
    pub fn pa(self, mva: Mva) -> Pa {
        Pa((self.value & !0x3ff).wrapping_add(mva.0 & 0xfff))
    }

    /// Whether all of `flags` are set.
    #[inline(always)]
    pub fn has(self, flags: u32) -> bool {
        self.value & flags == flags
    }

    /// Whether all of the 4 KB around have this translation.
    pub fn holds_for_4_kb(self) -> bool {
        self.key != NO_KEY
    }

    /// The fault an external abort at this page raises, of ARM's own cores.
    fn external_abort(self) -> Fault {
        Fault::external(self.has(SECTION), (self.value >> DOMAIN_SHIFT & 15) as u8)
    }
}

/// Control register bits and registers that translation depends on.
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
    /// Write-back pages behave as write-through (CP15 c15 cache debug control).
    pub force_write_through: bool,
    /// Of the auxiliary control register MD, the mini data cache's policy.
    pub mini: u8,
    /// Translation table base, 16 KB aligned.
    pub ttb: u32,
    /// Domain access control register.
    pub dacr: u32,
}

const FAST: usize = 256;
const NOTHING: Resolved = Resolved {
    key: NO_KEY,
    value: 0,
};
/// Number of domain register values that keep their resolved entries at the same time. Linux
/// alternates between two when CONFIG_CPU_SW_DOMAIN_PAN is on.
const CONTEXTS: usize = 3;

/// A TLB entry that translated.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// In which TLB.
    pub side: TlbSide,
    /// Its number there.
    pub entry: usize,
    /// What it covers.
    pub bytes: u32,
    /// Whether it stays when all are invalidated.
    pub locked: bool,
}

/// The memory management unit.
#[derive(Clone)]
pub struct Mmu {
    fast: [Resolved; FAST],
    /// Which fast entries were made from each TLB entry.
    derived: Box<[[u64; FAST / 64]]>,
    /// The TLB itself, or that of instructions and that of data.
    pub tlbs: Box<[Tlb]>,
    /// What the data side need not ask for again.
    pub grants: Grants,
    control: Control,
    dacrs: [u32; CONTEXTS],
    next_dacr: usize,
    /// Context of the current privilege and domain register, in bits 31:20.
    context: u32,
    privileged: bool,
    descriptors: Descriptors,
    imprecise_external_aborts: bool,
    /// Added to it for fetches: bit 23 where they have a TLB of their own.
    fetches: u32,
    /// A debugger looks at every access: nothing goes into the fast table.
    watching: bool,
    /// TLB and entry that the last [`Mmu::translate`] used.
    last: Option<(usize, usize)>,
    /// Changes whenever a translation that was valid may no longer be.
    epoch: u64,
}

impl Mmu {
    /// Off, with an empty TLB, privileged.
    pub fn new(core: &Core, victims: Victims) -> Mmu {
        let entries = core.tlbs.iter().map(|tlb| tlb.entries()).sum();
        let tlbs = core.tlbs.iter().map(|tlb| Tlb::new(tlb, victims));
        let mut mmu = Mmu {
            fast: [NOTHING; FAST],
            derived: vec![[0; FAST / 64]; entries].into(),
            tlbs: tlbs.collect(),
            grants: Grants::new(),
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

    /// A number that stays the same as long as every translation handed out is still good.
    #[inline(always)]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether accesses are made with privilege.
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

    /// TLB entry the last [`Mmu::translate`] used; none with the MMU off or when the walk failed.
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

    /// The TLB that an access of this kind goes by.
    pub fn tlb(&mut self, kind: Kind) -> &mut Tlb {
        &mut self.tlbs[self.number(kind)]
    }

    /// The entry that translates an access of this kind without a walk, if there is one.
    pub fn held(&self, mva: Mva, kind: Kind) -> Option<&Entry> {
        let tlb = &self.tlbs[self.number(kind)];
        tlb.find(mva).map(|n| tlb.entry(n))
    }

    /// Its number.
    #[inline(always)]
    fn number(&self, kind: Kind) -> usize {
        usize::from(self.tlbs.len() > 1 && kind != Kind::Fetch)
    }

    /// Number of its first entry in `derived`.
    #[inline(always)]
    fn first_entry(&self, tlb: usize) -> usize {
        match tlb {
            0 => 0,
            _ => self.tlbs[0].entries(),
        }
    }

    /// Which accesses TLB number `tlb` is for.
    pub fn side(&self, tlb: usize) -> TlbSide {
        match (self.tlbs.len(), tlb) {
            (1, _) => TlbSide::Both,
            (_, 0) => TlbSide::Instruction,
            _ => TlbSide::Data,
        }
    }

    /// Numbers of the TLBs that an operation on `side` reaches.
    pub fn reached(&self, side: TlbSide) -> impl Iterator<Item = usize> + use<> {
        let all = self.tlbs.len();
        (0..all).filter(move |tlb| match side {
            TlbSide::Both => true,
            TlbSide::Instruction => *tlb == 0,
            TlbSide::Data => tlb + 1 == all,
        })
    }

    /// The fault an external abort of an access by `page` raises.
    pub fn external_abort(&self, page: Resolved) -> Fault {
        match self.imprecise_external_aborts {
            false => page.external_abort(),
            true => Fault::IMPRECISE,
        }
    }

    /// Makes the next use of every translation come to [`Mmu::translate`].
    pub fn drop_translations(&mut self) {
        self.forget_all();
    }

    /// With true, [`Mmu::lookup`] finds nothing, so that every access comes to `translate`.
    pub fn set_watching(&mut self, watching: bool) {
        self.watching = watching;
        self.forget_all();
    }

    /// The registers that translation depends on.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Changes the control inputs.
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
        self.fast.fill(NOTHING);
        self.derived.fill([0; FAST / 64]);
        self.grants.take_all();
        self.epoch += 1;
    }

    /// Drops what was derived from TLB entry `n`.
    fn forget(&mut self, n: usize) {
        self.epoch += 1;
        if self.derived[n] == [0; FAST / 64] {
            return;
        }
        self.grants.take_all();
        for (word, bits) in self.derived[n].iter_mut().enumerate() {
            let mut left = core::mem::take(bits);
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                self.fast[(word * 64 + bit) % FAST] = NOTHING;
                left &= left - 1;
            }
        }
    }

    /// Invalidates all entries of a TLB but the lockdown ones.
    pub fn invalidate_tlb(&mut self, tlb: usize) {
        self.tlbs[tlb].invalidate_all();
        self.forget_all();
    }

    /// Invalidates the first entry of a TLB, from number `from` on, that covers `mva`; says which.
    pub fn invalidate_tlb_entry(&mut self, tlb: usize, mva: Mva, from: usize) -> Option<usize> {
        let entry = self.tlbs[tlb].invalidate(mva, from)?;
        self.forget(self.first_entry(tlb) + entry);
        Some(entry)
    }

    /// Context of an access of this kind in `derived`: with two TLBs fetches have translations of
    /// their own.
    #[inline(always)]
    fn context_of(&self, kind: Kind) -> u32 {
        self.context | if kind == Kind::Fetch { self.fetches } else { 0 }
    }

    #[inline(always)]
    fn slot(mva: Mva, context: u32) -> usize {
        let page = mva.0 >> 12;
        ((page ^ page >> 8 ^ context >> 14) as usize) % FAST
    }

    /// The resolved translation of `mva` if it is at hand; says nothing about permissions.
    #[inline(always)]
    pub fn lookup(&self, mva: Mva, kind: Kind) -> Option<Resolved> {
        let context = self.context_of(kind);
        let entry = self.fast[Self::slot(mva, context)];
        (entry.key == mva.0 >> 12 | context).then_some(entry)
    }

    /// Translates `mva` through the TLB, walking the tables if it misses, and checks it.
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
        let wanted = if kind == Kind::Write { WRITE } else { READ };
        if !resolved.has(wanted) {
            // Not at hand for what is allowed: an observer is told of the first use that is.
            let status = if entry.section { 0b1101 } else { 0b1111 };
            return Err(Fault {
                status,
                domain: entry.domain,
            });
        }
        let keep = privileged == self.privileged && !self.watching;
        if keep && resolved.holds_for_4_kb() {
            let slot = Self::slot(mva, context);
            self.fast[slot] = resolved;
            self.derived[first + n][slot / 64] |= 1 << (slot % 64);
        }
        Ok(resolved)
    }

    fn identity(&mut self, mva: Mva, kind: Kind, privileged: bool) -> Resolved {
        let icache = if self.control.icache_on { ICACHE } else { 0 };
        let context = self.context_of(kind);
        let resolved = Resolved {
            key: mva.0 >> 12 | context,
            value: (mva.0 & !0xfff) | READ | WRITE | icache | SECTION,
        };
        if privileged == self.privileged && !self.watching {
            self.fast[Self::slot(mva, context)] = resolved;
        }
        resolved
    }

    /// Without a key yet.
    #[inline(always)]
    fn resolve(&self, entry: &Entry, mva: Mva, privileged: bool) -> Result<Resolved, Fault> {
        let c = &self.control;
        let mut value = match c.dacr >> (u32::from(entry.domain) * 2) & 3 {
            0b01 => permissions(entry.ap, c.s, c.r, privileged),
            0b11 => READ | WRITE,
            _ => {
                let status = if entry.section { 0b1001 } else { 0b1011 };
                return Err(Fault {
                    status,
                    domain: entry.domain,
                });
            }
        };
        value |= c.attributes(self.descriptors, entry);
        if entry.section {
            value |= SECTION;
        }
        if self.descriptors == Descriptors::Arm {
            value |= u32::from(entry.domain) << DOMAIN_SHIFT;
        }
        value |= entry.translate(mva).0.wrapping_sub(mva.0 & 0xfff) & !0x3ff;
        Ok(Resolved { key: NO_KEY, value })
    }
}

/// What AP, S and R allow (ARM ARM B4.3, table B4-1).
#[inline]
fn permissions(ap: u8, s: bool, r: bool, privileged: bool) -> u32 {
    match (ap & 3, privileged) {
        (0, true) if s != r => READ,
        (0, false) if r && !s => READ,
        (0, _) => 0,
        (1, true) => READ | WRITE,
        (1, false) => 0,
        (2, true) => READ | WRITE,
        (2, false) => READ,
        _ => READ | WRITE,
    }
}

mod attributes;
mod fault;
mod state;
mod walk;

pub use fault::Fault;
pub use walk::{DescriptorRead, Descriptors, Mapping, mapping, walk};

#[cfg(test)]
mod tests;
