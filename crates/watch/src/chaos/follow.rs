// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows an interrupt. Finds the interrupted instruction, and the next entry into the kernel by a process other than
//! the one that the interrupt woke.

use super::{Chaos, FAULT, USER};
use arm::{AddressSpace, Context};

/// Exception vectors of Linux.
const SWI: u32 = 0xffff_0008;
const PREFETCH_ABORT: u32 = 0xffff_000c;
const DATA_ABORT: u32 = 0xffff_0010;
const IRQ: u32 = 0xffff_0018;

/// Progress of the last interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Followed {
    No,
    /// The interrupt was raised.
    Asked,
    /// The interrupt came in the kernel, at this address.
    Taken(u32),
    /// The interrupt came in the kernel and woke a task. The fields are the interrupted address, and the address space
    /// of the woken task.
    Woken(u32, AddressSpace),
}

impl<O> Chaos<O> {
    /// Follows the last interrupt.
    #[inline]
    pub(super) fn follow(&mut self, context: &Context, registers: &[u32; 16]) {
        let is_user = context.mode & 0x1f == USER;
        let (before, _, mode) = self.last;
        match self.followed {
            Followed::No => {}
            Followed::Asked if context.pc == IRQ => {
                self.followed = match mode & 0x1f {
                    USER => Followed::No,
                    _ => Followed::Taken(before),
                };
            }
            Followed::Taken(pc) if is_user => {
                self.followed = Followed::Woken(pc, context.space());
                if let (0, Some((_, task, _))) = (self.own[1], self.places.preemption) {
                    self.own[1] = task;
                }
            }
            Followed::Woken(pc, woken) if mode & 0x1f == USER && context.space() != woken => {
                let what = match context.pc {
                    SWI => registers[7],
                    PREFETCH_ABORT | DATA_ABORT => FAULT,
                    _ => return,
                };
                self.met.insert((pc, what));
                self.followed = Followed::No;
            }
            _ => {}
        }
    }
}
