// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of the memory management unit is saved: not the fast table and the grants, which hold
//! nothing that the TLB and the D-cache do not.

use super::{CONTEXTS, Control, Mmu, Resolved};
use crate::state::{Damaged, Saved, State};

const NO_CONTEXT: Damaged = Damaged("the MMU has no such context");

crate::state!(Resolved: key, value);

crate::state!(Control: on, dcache_on, icache_on, s, r, force_write_through, mini, ttb, dacr);

impl State for Mmu {
    fn save(&self, to: &mut Vec<u8>) {
        let Mmu {
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
        // It counts; what is taken from it for "none" is far away.
        match self.epoch < 1 << 63 {
            true => Ok(()),
            false => Err(Damaged("the MMU has not changed so often")),
        }
    }
}
