// SPDX-License-Identifier: MIT OR Apache-2.0
//! The saved state of the bus: RAM, devices, levels, console and edges. The map, the wires and the costs of accesses
//! follow from the board and are not saved.

use super::{Edge, Slot, SystemBus};
use crate::stop::Stop;
use arm::{Damaged, Saved, State};

arm::state!(Edge: cycle, pin, level);

impl State for Slot {
    fn save(&self, to: &mut Vec<u8>) {
        self.outputs.save(to);
        self.device.save(to);
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        self.outputs.restore(from)?;
        self.device.restore(from)
    }
}

/// Pending reasons to stop after which a machine can continue.
const PENDING: [Option<Stop>; 4] = [
    None,
    Some(Stop::ConsoleMatched),
    Some(Stop::Edge),
    Some(Stop::Observer),
];

impl SystemBus {
    /// Returns whether a snapshot can hold the machine. The machine must not have instruments, a host or added parts.
    /// If a reason to stop is pending, the machine must be able to continue after the stop.
    pub(crate) fn can_be_saved(&self) -> bool {
        let is_bare = self.bench.is_bare() && self.link.is_bare() && !self.attached;
        PENDING.contains(&self.stop) && is_bare
    }
}

impl State for SystemBus {
    fn save(&self, to: &mut Vec<u8>) {
        let SystemBus {
            ram,
            ram_base: _,
            map: _,
            slots,
            deadlines,
            next,
            wires,
            signals,
            ignored,
            ignored_read_cycles: _,
            ignored_write_cycles: _,
            unowned,
            stop,
            unmapped_aborts,
            console_index: _,
            console,
            network: _,
            probes: _,
            interrupts: _,
            raised: _,
            transfers: _,
            attached: _,
            edges,
            stop_on_edge,
            bench,
            link,
        } = self;
        ram.save(to);
        slots.as_slice().save(to);
        deadlines.as_slice().save(to);
        (*next, *signals).save(to);
        wires.save(to);
        ignored.as_slice().save(to);
        unowned.save(to);
        let pending = PENDING.iter().position(|pending| pending == stop);
        pending.unwrap_or(PENDING.len()).save(to);
        console.save(to);
        edges.save(to);
        (*unmapped_aborts, *stop_on_edge).save(to);
        bench.save(to);
        link.save(to);
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        self.ram.restore(from)?;
        self.slots.as_mut_slice().restore(from)?;
        self.deadlines.as_mut_slice().restore(from)?;
        (self.next, self.signals) = from.value()?;
        self.wires.restore(from)?;
        self.ignored.as_mut_slice().restore(from)?;
        self.unowned.restore(from)?;
        let pending = PENDING.into_iter().nth(from.value()?);
        self.stop = pending.ok_or(Damaged("the machine cannot continue"))?;
        self.console.restore(from)?;
        self.edges.restore(from)?;
        (self.unmapped_aborts, self.stop_on_edge) = from.value()?;
        self.bench.restore(from)?;
        self.link.restore(from)
    }
}
