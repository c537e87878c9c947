// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of tasks, read from the guest's memory through the core's caches.

use super::{Ledger, TaskId};
use arm::{Cpu, Mva};
use board::Observed;
use board::machine::Machine;

/// Size of a task's name, in bytes (Linux include/linux/sched.h, TASK_COMM_LEN).
const NAME: u32 = 16;

/// Reads a task's name. The name has one address in all processes, because FCSE relocates no kernel addresses.
pub(super) fn name(cpu: &mut Cpu<Observed<Ledger>>, task: TaskId) {
    let ledger = &cpu.bus.observer;
    let Some(offset) = ledger.hooks.name_offset else {
        return;
    };
    let address = ledger.tasks[task as usize].address.wrapping_add(offset);
    let bytes = (0..NAME).map_while(|n| cpu.debug_read(Mva(address.wrapping_add(n))));
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    let text = String::from_utf8_lossy(&bytes);
    let shown = text.chars().map(|c| if c.is_control() { '?' } else { c });
    cpu.bus.observer.tasks[task as usize].name = shown.collect();
}

/// Reads the names of the tasks that have not ended.
pub fn name_tasks(machine: &mut Machine<Observed<Ledger>>) {
    for task in 0..machine.observer().tasks.len() {
        if !machine.observer().tasks[task].ended {
            name(machine.cpu_mut(), task as TaskId);
        }
    }
}
