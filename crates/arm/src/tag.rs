// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tags of caches, and the comparison of the tags of a set. A tag has the address of the line in bits 31:5 and the valid
//! bit in bit 0.

use crate::addr::{Mva, Pa};

/// Address that the tags of a core's caches hold. The MVA selects the set in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagging {
    /// Tags hold MVAs. A lookup needs no translation, and different MVAs of a physical address have different lines.
    Virtual,
    /// Tags hold physical addresses. Different MVAs of a physical address have the same line if they select the same
    /// set. They always do if a way has at most 4 KB.
    Physical,
}

impl Tagging {
    /// Returns the address that a lookup of `mva` compares. With virtual tags, `pa` has no effect.
    #[inline(always)]
    pub fn compared(self, mva: Mva, pa: Pa) -> u32 {
        match self {
            Tagging::Virtual => mva.0,
            Tagging::Physical => pa.0,
        }
    }
}

/// Stands for the physical address in a lookup of virtual tags, if the address was not translated.
pub const UNTRANSLATED: Pa = Pa(0);

/// The bits of a tag that are compared.
const COMPARED: u32 = !31 | 1;

/// Returns the way whose tag holds `address`. At most one way holds it. The search does not stop at a match, because the
/// host could not predict the branch that stops it.
#[inline(always)]
pub fn way_of(ways: &[u32], address: u32) -> Option<usize> {
    let want = (address & !31) | 1;
    let matches = |tag: u32| tag & COMPARED == want;
    if let [a, b, c, d] = *ways {
        let found = [a, b, c, d].map(|tag| u32::from(matches(tag)));
        let mask = found[0] | found[1] << 1 | found[2] << 2 | found[3] << 3;
        return (mask != 0).then_some(mask.trailing_zeros() as usize);
    }
    ways.iter().position(|tag| matches(*tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_ways_is_searched() {
        for ways in 1..=8u32 {
            // The dirty bits do not matter.
            let tags: Vec<u32> = (0..ways).map(|n| 32 * (10 + n) + 2 * (n % 4) + 1).collect();
            for n in 0..ways {
                assert_eq!(way_of(&tags, 32 * (10 + n) + 4), Some(n as usize));
            }
            assert_eq!(way_of(&tags, 32 * 9), None);
            assert_eq!(way_of(&vec![32 * 9; ways as usize], 32 * 9), None);
        }
    }
}
