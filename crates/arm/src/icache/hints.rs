// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hints: the locations of the operations of lines. A lookup checks the hints first. Hints have no effect on the model.
//!
//! The key of a line is its MVA. A matching hint is then always right, because a line that leaves takes its hint along.
//! In a physically tagged cache, lines have several MVAs, and a mapping may change while its lines stay. The key is
//! therefore the physical address, with the colour of the line's set in bits 3:2. The fetch that knows the translation
//! of its page knows the distance of the keys from the MVAs ([`ICache::key_distance`]). The lines of a page of
//! 1 KB may be in other sets than the same memory in a page of 4 KB. Its fetches then use no hints, and its lines have
//! none.

use super::{ICache, VALID};
use crate::addr::{Mva, Pa};
use crate::bus::Bus;
use crate::tag::Tagging;

/// A hint holds three fields, from bit 0 up: the key of the line, the generation, and the slot of the line's operations.
/// The low bits of the key hold the valid bit and the state, A32 or Thumb, to which the slot belongs.
pub(super) type Hint = u64;
/// Unit of the generation field.
const GENERATION: Hint = 1 << 32;
/// Unit of the slot field.
pub(super) const SLOT: Hint = 1 << 48;

/// Number of hints. The key selects the hint. Keys at a distance of this many lines share a hint.
pub(super) const HINTS: usize = 2048;

/// Bit of a hint for Thumb operations.
const THUMB: u32 = 2;
/// Position of the colour in a key.
const COLOUR_SHIFT: u32 = 2;
/// Bit that no key has.
const NO_KEY: u32 = 1 << 4;

/// Number of bits of a set's number that are in the offset of a page of 4 KB. The other bits are the colour.
const OFFSET_BITS: u32 = 7;
/// Maximum number of sets of a physically tagged cache. A key has two bits for the colour.
pub(super) const MOST_SETS: u32 = 4 << OFFSET_BITS;

impl<B: Bus> ICache<B> {
    /// Returns the distance from an MVA to its key, for all MVAs of the page of `mva`, which translates to `pa`. It is
    /// zero with virtual tags.
    #[inline(always)]
    pub fn key_distance(&self, mva: Mva, pa: Pa) -> u32 {
        match self.tagging {
            Tagging::Virtual => 0,
            Tagging::Physical => {
                let (set, of_memory) = (self.set(mva.0), self.set(pa.0));
                if (set ^ of_memory) % (1 << OFFSET_BITS) != 0 {
                    return NO_KEY;
                }
                let colour = (set >> OFFSET_BITS) as u32;
                (pa.0.wrapping_sub(mva.0)).wrapping_add(colour << COLOUR_SHIFT)
            }
        }
    }

    /// Returns the slot of the line that holds `mva`, if it has a hint. `distance` is that of [`ICache::key_distance`].
    #[inline(always)]
    pub fn hint(&self, mva: Mva, distance: u32, thumb: bool) -> Option<usize> {
        let key = (mva.0 & !31).wrapping_add(distance);
        let hint = self.hints[key as usize / 32 % HINTS];
        let want = self.hint_of(key | VALID, thumb);
        (hint ^ want)
            .is_multiple_of(SLOT)
            .then_some((hint / SLOT) as usize)
    }

    /// The hint with this key and slot 0. Bit 0 of the key is set.
    #[inline(always)]
    fn hint_of(&self, key: u32, thumb: bool) -> Hint {
        Hint::from(key | if thumb { THUMB } else { 0 }) | self.generation
    }

    /// Invalidates all hints.
    pub(super) fn forget_hints(&mut self) {
        self.generation = (self.generation + GENERATION) % SLOT;
        if self.generation == 0 {
            self.hints.fill(0);
        }
    }

    /// Remembers the slot of the line that holds `mva`. `distance` is that of [`ICache::key_distance`].
    #[inline(always)]
    pub fn give_hint(&mut self, mva: Mva, distance: u32, thumb: bool, slot: usize) {
        if distance == NO_KEY {
            return;
        }
        let key = (mva.0 & !31).wrapping_add(distance);
        let hint = self.hint_of(key | VALID, thumb) | (slot as Hint * SLOT);
        self.hints[key as usize / 32 % HINTS] = hint;
    }
}
