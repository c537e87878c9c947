// SPDX-License-Identifier: MIT OR Apache-2.0
//! The far end of the console's serial line: the log of its output, the pending input, and the awaited text.

use crate::device::Device;
use arm::Damaged;
use std::collections::VecDeque;

/// The far end of a serial line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Console {
    /// Bytes printed since power-on.
    pub log: Vec<u8>,
    /// Position in the log at which the search begins, and the awaited text.
    watch: Option<(usize, Vec<u8>)>,
    input: VecDeque<u8>,
}

arm::state!(Console: log, watch, input; => check);

impl Console {
    /// Refuses restored state that no console can have.
    fn check(&self) -> Result<(), Damaged> {
        let within = |(from, _): &(usize, Vec<u8>)| *from <= self.log.len();
        match self.watch.as_ref().is_none_or(within) {
            true => Ok(()),
            false => Err(Damaged(
                "the console's search begins beyond the end of its log",
            )),
        }
    }

    /// Sets the awaited text, whose next occurrence [`Console::collect`] reports. `None` ends the search.
    pub fn watch(&mut self, pattern: Option<&[u8]>) {
        self.watch = pattern.map(|p| (self.log.len(), p.to_vec()));
    }

    /// Queues bytes as input of the device.
    pub fn send(&mut self, bytes: &[u8]) {
        self.input.extend(bytes);
    }

    /// Offers the pending input to the device, which takes as much as it can.
    pub fn feed(&mut self, now: u64, device: &mut dyn Device) {
        if self.input.is_empty() {
            return;
        }
        let taken = device.receive(now, self.input.as_slices().0);
        self.input.drain(..taken);
    }

    /// Moves the bytes that the device has sent to the log. Returns whether they complete the awaited text.
    pub fn collect(&mut self, device: &mut dyn Device) -> bool {
        let mut complete = false;
        for byte in device.transmitted() {
            self.log.push(byte);
            if let Some((from, pattern)) = &self.watch
                && self.log[*from..].ends_with(pattern)
            {
                self.watch = None;
                complete = true;
            }
        }
        complete
    }
}
