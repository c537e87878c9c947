// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hash table. Keys and values are side by side, so a lookup usually touches one cache line of the host. The order of
//! iteration is the same in every run.

/// Slots of an empty table, a power of two.
const SLOTS: usize = 1 << 12;
/// Key of a free slot. No value has this key.
const FREE: u64 = u64::MAX;

/// Values by a 64-bit key other than [`FREE`].
#[derive(Clone, Debug)]
pub(super) struct Table<V> {
    /// Open addressing. Each value is in the slot that its key hashes to, or in a slot after it.
    slots: Vec<(u64, V)>,
    used: usize,
}

impl<V: Copy + Default> Table<V> {
    pub fn new() -> Table<V> {
        Table {
            slots: vec![(FREE, V::default()); SLOTS],
            used: 0,
        }
    }

    #[inline]
    fn place(key: u64, slots: usize) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - slots.trailing_zeros())) as usize
    }

    /// Returns the slot with the key, or the free slot for it.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mut slot = Self::place(key, self.slots.len());
        loop {
            match self.slots[slot].0 {
                FREE => return slot,
                found if found == key => return slot,
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// Returns the value of a key. The value of a new key is the default.
    #[inline]
    pub fn at(&mut self, key: u64) -> &mut V {
        let mut slot = self.slot(key);
        if self.slots[slot].0 == FREE {
            self.used += 1;
            if self.used * 2 > self.slots.len() {
                self.grow();
                slot = self.slot(key);
            }
            self.slots[slot].0 = key;
        }
        &mut self.slots[slot].1
    }

    #[cold]
    fn grow(&mut self) {
        let slots = vec![(FREE, V::default()); self.slots.len() * 2];
        let old = core::mem::replace(&mut self.slots, slots);
        for (key, value) in old.into_iter().filter(|(key, _)| *key != FREE) {
            let slot = self.slot(key);
            self.slots[slot] = (key, value);
        }
    }

    /// Returns all keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &V)> {
        let used = self.slots.iter().filter(|(key, _)| *key != FREE);
        used.map(|(key, value)| (*key, value))
    }
}
