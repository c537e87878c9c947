// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saves only those pages of RAM that are not all zero.

use super::Sdram;
use crate::time;
use arm::{Damaged, Saved, State};

/// Words in a page.
const PAGE: usize = 1024;

fn is_zero(page: &[u32]) -> bool {
    page.iter().fold(0, |all, word| all | word) == 0
}

impl State for Sdram {
    fn save(&self, to: &mut Vec<u8>) {
        for page in self.words().chunks(PAGE) {
            let saved = !is_zero(page);
            saved.save(to);
            if saved {
                to.extend(page.iter().flat_map(|word| word.to_le_bytes()));
            }
        }
        self.open_row.save(to);
        (self.next_refresh, self.refresh_until).save(to);
        self.held_until.save(to);
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        for page in self.words_mut().chunks_mut(PAGE) {
            if from.value()? {
                let bytes = from.take(page.len() * 4)?.chunks_exact(4);
                for (word, b) in page.iter_mut().zip(bytes) {
                    *word = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
                }
            } else if !is_zero(page) {
                page.fill(0);
            }
        }
        self.open_row.restore(from)?;
        (self.next_refresh, self.refresh_until) = from.value()?;
        self.held_until = from.value()?;
        time::check([self.held_until])?;
        self.blocked_until = self.refresh_until.max(self.held_until);
        Ok(())
    }
}
