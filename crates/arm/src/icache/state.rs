// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saved state of the I-cache: address, state and words of each line, and the prefetch buffer. A restore looks up the
//! slots of a line's operations.

use super::{Filled, ICache, VALID};
use crate::addr::Mva;
use crate::bus::Bus;
use crate::config::Config;
use crate::isa::Op;
use crate::state::{Damaged, Saved, State};

impl<B: Bus> ICache<B> {
    /// The words of a line.
    pub(crate) fn words(&self, line: usize) -> [u32; 8] {
        let Filled { slot, thumb, .. } = self.filled[line];
        if !B::SHORTCUTS {
            self.words[line]
        } else {
            self.slot_words(slot as usize, thumb)
        }
    }

    /// Returns a core's I-cache from its saved state.
    pub fn of_saved(config: &Config, undecoded: Op<B>, saved: &[u8]) -> ICache<B> {
        let mut cache = ICache::new(config, undecoded);
        let restored = cache.restore(&mut Saved::new(saved));
        assert!(restored.is_ok(), "the same I-cache");
        cache
    }

    /// Whether a line has words to execute. The prefetch buffer has words if a sequential fetch may follow.
    fn is_filled(&self, line: usize) -> bool {
        match self.tags.get(line) {
            Some(tag) => tag & VALID != 0,
            None => self.prefetch.is_some(),
        }
    }
}

impl<B: Bus> State for ICache<B> {
    fn save(&self, to: &mut Vec<u8>) {
        self.tags.as_slice().save(to);
        self.mvas.as_slice().save(to);
        self.prefetch.save(to);
        for (line, filled) in self.filled.iter().enumerate() {
            if self.is_filled(line) {
                (filled.pa, filled.thumb).save(to);
                self.words(line).save(to);
            }
        }
        self.victim.save(to);
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        self.invalidate_all();
        let mut tags = vec![0; self.tags.len()];
        tags.as_mut_slice().restore(from)?;
        let mut mvas = self.mvas.clone();
        mvas.as_mut_slice().restore(from)?;
        self.prefetch.restore(from)?;
        tags.push(u32::from(self.prefetch.is_some()));
        for (line, tag) in tags.into_iter().enumerate() {
            if tag & VALID != 0 {
                let (pa, thumb) = from.value()?;
                let mva = mvas.get(line).copied().unwrap_or(Mva(tag));
                self.fill(line, mva, pa, &from.value()?, thumb);
            }
        }
        self.victim.restore(from)
    }
}
