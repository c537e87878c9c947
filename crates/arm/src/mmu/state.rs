// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saved state of the memory management unit. The fast table and the grants are not saved, because the TLB and the
//! D-cache hold the same translations and lines.

use super::{CONTEXTS, Control, Mmu, Resolved};
use crate::state::{Damaged, Saved, State};

const NO_CONTEXT: Damaged = Damaged("the context of the MMU is invalid");

crate::state!(Resolved: key, base, flags);

crate::state!(Control: on, dcache_on, icache_on, s, r, force_write_through, mini, ttb, dacr);

impl State for Mmu {
    fn save(&self, to: &mut Vec<u8>) {
        let Mmu {
            keys: _,
            fast: _,
            derived: _,
            tlbs,
            grants: _,
            control,
            dacrs,
            next_dacr,
            context,
            fetches: _,
            privileged,
            descriptors: _,
            imprecise_external_aborts: _,
            watching: _,
            last: _,
            epoch,
        } = self;
        let parts: [&dyn State; 7] = [tlbs, control, dacrs, next_dacr, context, privileged, epoch];
        parts.iter().for_each(|part| part.save(to));
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        self.forget_all();
        self.tlbs.restore(from)?;
        self.control.restore(from)?;
        self.dacrs.restore(from)?;
        self.next_dacr.restore(from)?;
        if self.next_dacr >= CONTEXTS {
            return Err(NO_CONTEXT);
        }
        let context: u32 = from.value()?;
        self.privileged.restore(from)?;
        let number = (context >> 21) as usize;
        if number >= CONTEXTS || context & 0xf_ffff != 0 {
            return Err(NO_CONTEXT);
        }
        self.set_context(context);
        self.epoch.restore(from)?;
        // The epoch counts up from zero and must stay far below the values that stand for "none".
        match self.epoch < 1 << 63 {
            true => Ok(()),
            false => Err(Damaged("the epoch of the MMU is out of range")),
        }
    }
}
