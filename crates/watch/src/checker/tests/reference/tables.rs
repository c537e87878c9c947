// SPDX-License-Identifier: MIT OR Apache-2.0
//! A second implementation of the table walk (ARM ARM B4.7). The checker itself uses the core's implementation.

use arm::Kind;

/// The tables' mapping of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub pa: u32,
    /// C in bit 1, B in bit 0.
    pub cb: u32,
    ap: u32,
    domain: u32,
}

/// Descriptors read by a walk: address and value.
pub type Read = Vec<(u32, u32)>;

/// Walks the tables at `ttb`. Returns no page if the walk faults or leaves memory.
pub fn follow(
    ttb: u32,
    mva: u32,
    mut word: impl FnMut(u32) -> Option<u32>,
) -> (Option<Page>, Read) {
    let mut read = Read::new();
    let mut get = |at: u32| {
        let value = word(at);
        read.push((at, value.unwrap_or(0)));
        value
    };
    let page = descend(ttb, mva, &mut get);
    (page, read)
}

fn descend(ttb: u32, mva: u32, get: &mut impl FnMut(u32) -> Option<u32>) -> Option<Page> {
    let first = get((ttb & 0xffff_c000) + 4 * (mva >> 20))?;
    let domain = first >> 5 & 0xf;
    let fine = first & 3 == 3;
    let at = match first & 3 {
        1 => (first & 0xffff_fc00) + 4 * (mva >> 12 & 0xff),
        3 => (first & 0xffff_f000) + 4 * (mva >> 10 & 0x3ff),
        2 => {
            let (pa, ap, cb) = (join(first, mva, 20), first >> 10 & 3, first >> 2 & 3);
            return Some(Page { pa, cb, ap, domain });
        }
        _ => return None,
    };
    let second = get(at)?;
    // Log2 of the page's size, and the accessed quarter of the page. Each quarter has its own permissions.
    let (bits, quarter) = match second & 3 {
        1 => (16, mva >> 14 & 3),
        2 => (12, mva >> 10 & 3),
        3 if fine => (10, 0),
        _ => return None,
    };
    Some(Page {
        pa: join(second, mva, bits),
        cb: second >> 2 & 3,
        ap: second >> (4 + 2 * quarter) & 3,
        domain,
    })
}

/// Joins the upper bits of one number with the lower `bits` bits of the other.
fn join(upper: u32, lower: u32, bits: u32) -> u32 {
    upper >> bits << bits | lower & ((1 << bits) - 1)
}

impl Page {
    /// Returns whether an access is allowed (ARM ARM B4.3).
    pub fn allows(&self, kind: Kind, privileged: bool, dacr: u32, sctlr: u32) -> bool {
        let write = kind == Kind::Write;
        let (system, rom) = (sctlr & 0x100 != 0, sctlr & 0x200 != 0);
        match dacr >> (2 * self.domain) & 3 {
            3 => true,
            1 => match self.ap {
                0 => !write && (privileged && system != rom || rom && !system),
                1 => privileged,
                2 => privileged || !write,
                _ => true,
            },
            _ => false,
        }
    }
}
