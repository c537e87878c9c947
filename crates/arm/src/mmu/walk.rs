// SPDX-License-Identifier: MIT OR Apache-2.0
//! The translation tables, and the walk through them (ARM ARM B4.7, `DDI0198D 3.2`).

use super::{Attributes, EXECUTE, Fault, Kind, READ, WRITE};
use crate::addr::{Mva, Pa};
use crate::tlb::Entry;

/// Reads descriptors for the walk, one word at a time, and accounts for the time.
pub trait DescriptorRead {
    /// Reads the descriptor at a physical address. `None` is an external abort.
    fn descriptor(&mut self, pa: Pa) -> Option<u32>;
}

/// Format of the descriptors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Descriptors {
    /// The format of ARM's own cores.
    #[default]
    Arm,
    /// XScale's format: an X bit in TEX in addition to C and B, and extended small pages (IXP42X 3.8.3.2). The fault
    /// status has one more bit, and fetches and data accesses share one fault status register.
    Extended,
}

impl Descriptors {
    /// C and B, and X, the lowest bit of TEX. TEX starts at bit `tex`.
    fn attributes(self, descriptor: u32, tex: u32) -> u8 {
        let x = match self {
            Descriptors::Arm => 0,
            Descriptors::Extended => descriptor >> tex & 1,
        };
        (x << 2 | descriptor >> 2 & 3) as u8
    }
}

/// Bit number of TEX in descriptors of sections and large pages.
const TEX: u32 = 12;
/// Bit number of TEX in descriptors of tiny pages and extended small pages.
const TEX_SMALL: u32 = 6;

/// Walks the tables (`DDI0198D 3.2`): reads one descriptor for a section, two for a page.
pub fn walk(
    descriptors: Descriptors,
    ttb: u32,
    mva: Mva,
    memory: &mut impl DescriptorRead,
) -> Result<Entry, Fault> {
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
            let attributes = Attributes {
                ap: (first >> 10 & 3) as u8,
                domain,
                cb: descriptors.attributes(first, TEX),
                ..Attributes::default()
            };
            return Ok(Entry::new(mva, 1 << 20, Pa(first), attributes));
        }
        1 => (first & 0xffff_fc00) | (mva.0 >> 12 & 0xff) << 2,
        _ => (first & 0xffff_f000) | (mva.0 >> 10 & 0x3ff) << 2,
    };
    let second = memory.descriptor(Pa(second_at)).ok_or(Fault {
        status: 0b1110,
        domain,
    })?;
    match second & 3 {
        1 => {
            let cb = descriptors.attributes(second, TEX);
            Ok(page(mva, 1 << 16, second, domain, cb))
        }
        2 => Ok(page(mva, 1 << 12, second, domain, (second >> 2 & 3) as u8)),
        // On ARM's own cores a tiny page in a coarse table is UNPREDICTABLE; here it faults.
        3 if first & 3 == 3 || descriptors == Descriptors::Extended => {
            let attributes = Attributes {
                ap: (second >> 4 & 3) as u8,
                domain,
                cb: descriptors.attributes(second, TEX_SMALL),
                ..Attributes::default()
            };
            let size = if first & 3 == 3 { 1 << 10 } else { 1 << 12 };
            Ok(Entry::new(mva, size, Pa(second), attributes))
        }
        _ => Err(Fault {
            status: 0b0111,
            domain,
        }),
    }
}

/// Returns the entry for a large or small page. If all quarters have equal permissions, the entry covers the whole
/// page. Otherwise, it covers the quarter that holds `mva` (`DDI0198D 2.3.11`).
#[inline(always)]
fn page(mva: Mva, size: u32, descriptor: u32, domain: u8, cb: u8) -> Entry {
    let quarters = (descriptor >> 4) as u8;
    let ap = quarters >> (mva.0 / (size / 4) % 4 * 2) & 3;
    let same = quarters == ap * 0b0101_0101;
    let covered = if same { size } else { size / 4 };
    let pa = Pa(descriptor & !(size - 1) | mva.0 & (size - 1));
    let attributes = Attributes {
        ap,
        domain,
        cb,
        ..Attributes::default()
    };
    Entry::new(mva, covered, pa, attributes)
}

/// Translation of an address, as the tables have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Physical address.
    pub pa: Pa,
    /// Permissions, domain and memory attributes.
    pub attributes: Attributes,
    /// Number of bytes around the address with this mapping.
    pub bytes: u32,
}

impl Mapping {
    /// Whether the domain access control register and the control register allow the access.
    pub fn allows(&self, kind: Kind, privileged: bool, dacr: u32, sctlr: u32) -> bool {
        let allowed = match dacr >> (u32::from(self.attributes.domain) * 2) & 3 {
            0b01 => {
                let [s, r] = [8, 9].map(|bit| sctlr >> bit & 1 != 0);
                self.attributes.permissions(s, r, privileged)
            }
            0b11 => READ | WRITE | EXECUTE,
            _ => 0,
        };
        allowed & kind.permission() != 0
    }
}

/// Reads the tables at `ttb`. Takes no time, does not use the TLB and has no side effects. `read` returns the word at a
/// physical address. Returns `None` if nothing is mapped.
pub fn mapping(
    descriptors: Descriptors,
    ttb: u32,
    mva: Mva,
    read: impl FnMut(Pa) -> Option<u32>,
) -> Option<Mapping> {
    struct Reader<F>(F);
    impl<F: FnMut(Pa) -> Option<u32>> DescriptorRead for Reader<F> {
        fn descriptor(&mut self, pa: Pa) -> Option<u32> {
            self.0(pa)
        }
    }
    let entry = walk(descriptors, ttb, mva, &mut Reader(read)).ok()?;
    Some(Mapping {
        pa: entry.translate(mva),
        attributes: entry.attributes,
        bytes: entry.size(),
    })
}
