// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table that finds an entry by its key in constant time and keeps entries in the order they came, which is the same
//! in every run.

/// Slots of an empty table, a power of two.
const SLOTS: usize = 1 << 12;
const FREE: u32 = u32::MAX;

/// Entries by a key of 64 bits.
#[derive(Clone, Debug)]
pub(super) struct Table<V> {
    /// Numbers of entries, each at or behind the place that its key hashes to.
    slots: Vec<u32>,
    entries: Vec<(u64, V)>,
}

impl<V> Table<V> {
    pub fn new() -> Table<V> {
        Table {
            slots: vec![FREE; SLOTS],
            entries: Vec::new(),
        }
    }

    #[inline]
    fn place(key: u64, slots: usize) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - slots.trailing_zeros())) as usize
    }

    /// The slot with the key, or the free one where it would be.
    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mut slot = Self::place(key, self.slots.len());
        loop {
            match self.slots[slot] {
                FREE => return slot,
                entry if self.entries[entry as usize].0 == key => return slot,
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// The number of the entry with that key, made by `new` if there is none.
    #[inline]
    pub fn number(&mut self, key: u64, new: impl FnOnce() -> V) -> usize {
        let slot = self.slot(key);
        if self.slots[slot] != FREE {
            return self.slots[slot] as usize;
        }
        self.slots[slot] = self.entries.len() as u32;
        self.entries.push((key, new()));
        if self.entries.len() * 2 > self.slots.len() {
            self.grow();
        }
        self.entries.len() - 1
    }

    #[cold]
    fn grow(&mut self) {
        self.slots = vec![FREE; self.slots.len() * 2];
        for number in 0..self.entries.len() {
            let slot = self.slot(self.entries[number].0);
            self.slots[slot] = number as u32;
        }
    }

    /// The entry of that number.
    #[inline]
    pub fn entry(&mut self, number: usize) -> &mut V {
        &mut self.entries[number].1
    }

    /// All of them, in the order they came.
    pub fn iter(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }
}
