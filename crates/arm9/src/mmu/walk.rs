// SPDX-License-Identifier: MIT OR Apache-2.0
//! The translation tables, and the walk through them (ARM ARM B4.7, `DDI0198D 3.2`).

use super::{Fault, Kind, READ, WRITE, permissions};
use crate::addr::{Mva, Pa};
use crate::tlb::Entry;

/// What the walker needs from the bus: one word, with the time it takes accounted for.
pub trait DescriptorRead {
    /// Reads the descriptor at a physical address; `None` is an external abort.
    fn descriptor(&mut self, pa: Pa) -> Option<u32>;
}

/// Walks the tables (`DDI0198D 3.2`): one descriptor read for a section, two for a page.
pub fn walk(ttb: u32, mva: Mva, memory: &mut impl DescriptorRead) -> Result<Entry, Fault> {
    let first_at = Pa((ttb & 0xffff_c000) | (mva.0 >> 20) << 2);
    let first = memory.descriptor(first_at).ok_or(Fault {
        status: 0b1100,
        domain: 0,
    })?;
    let domain = (first >> 5 & 15) as u8;
    let second_at = match first & 3 {
        0 => {
            return Err(Fault {
                status: 0b0101,
                domain: 0,
            });
        }
        2 => {
            let ap = (first >> 10 & 3) as u8;
            let cb = (first >> 2 & 3) as u8;
            return Ok(Entry::new(mva, 1 << 20, Pa(first), ap, domain, cb));
        }
        1 => (first & 0xffff_fc00) | (mva.0 >> 12 & 0xff) << 2,
        _ => (first & 0xffff_f000) | (mva.0 >> 10 & 0x3ff) << 2,
    };
    let second = memory.descriptor(Pa(second_at)).ok_or(Fault {
        status: 0b1110,
        domain,
    })?;
    match second & 3 {
        1 => Ok(page(mva, 1 << 16, second, domain)),
        2 => Ok(page(mva, 1 << 12, second, domain)),
        // A tiny page in a coarse table is UNPREDICTABLE; it faults here.
        3 if first & 3 == 3 => {
            let (ap, cb) = ((second >> 4 & 3) as u8, (second >> 2 & 3) as u8);
            Ok(Entry::new(mva, 1 << 10, Pa(second), ap, domain, cb))
        }
        _ => Err(Fault {
            status: 0b0111,
            domain,
        }),
    }
}

/// The entry for a large or small page: for all of it if the permissions of its quarters are the
/// same, else for the quarter that holds `mva` (`DDI0198D 2.3.11`).
fn page(mva: Mva, size: u32, descriptor: u32, domain: u8) -> Entry {
    let quarters = [4, 6, 8, 10].map(|bit| (descriptor >> bit & 3) as u8);
    let ap = quarters[(mva.0 / (size / 4)) as usize & 3];
    let covered = if quarters == [ap; 4] { size } else { size / 4 };
    let pa = Pa(descriptor & !(size - 1) | mva.0 & (size - 1));
    Entry::new(mva, covered, pa, ap, domain, (descriptor >> 2 & 3) as u8)
}

/// What the translation tables say of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Physical address.
    pub pa: Pa,
    /// Access permission bits.
    pub ap: u8,
    /// Domain.
    pub domain: u8,
    /// C in bit 1, B in bit 0.
    pub cb: u8,
    /// How much around it has the same mapping, bytes.
    pub bytes: u32,
}

impl Mapping {
    /// Whether the access is allowed under the given domain access control and control register.
    pub fn allows(&self, kind: Kind, privileged: bool, dacr: u32, sctlr: u32) -> bool {
        let allowed = match dacr >> (u32::from(self.domain) * 2) & 3 {
            0b01 => {
                let [s, r] = [8, 9].map(|bit| sctlr >> bit & 1 != 0);
                permissions(self.ap, s, r, privileged)
            }
            0b11 => READ | WRITE,
            _ => 0,
        };
        let wanted = if kind == Kind::Write { WRITE } else { READ };
        allowed & wanted != 0
    }
}

/// Reads the tables at `ttb` through `read`, which gives the word at a physical address, without
/// time, TLB or side effects. `None` where nothing is mapped.
pub fn mapping(ttb: u32, mva: Mva, read: impl FnMut(Pa) -> Option<u32>) -> Option<Mapping> {
    struct Reader<F>(F);
    impl<F: FnMut(Pa) -> Option<u32>> DescriptorRead for Reader<F> {
        fn descriptor(&mut self, pa: Pa) -> Option<u32> {
            self.0(pa)
        }
    }
    let entry = walk(ttb, mva, &mut Reader(read)).ok()?;
    Some(Mapping {
        pa: entry.translate(mva),
        ap: entry.ap,
        domain: entry.domain,
        cb: entry.cb,
        bytes: entry.size(),
    })
}
