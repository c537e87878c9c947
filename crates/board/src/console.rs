// SPDX-License-Identifier: MIT OR Apache-2.0
//! The far end of the console's serial line: what was printed, what is on its way in, and the text
//! that somebody waits for.

use crate::device::Device;
use arm::Damaged;
use std::collections::VecDeque;

/// The far end of a serial line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Console {
    /// Everything printed since power-on.
    pub log: Vec<u8>,
    /// Waited for, from this position of the log on.
    watch: Option<(usize, Vec<u8>)>,
    input: VecDeque<u8>,
}

arm::state!(Console: log, watch, input; => check);

impl Console {
    /// What was restored may be no far end of a line.
    fn check(&self) -> Result<(), Damaged> {
        let within = |(from, _): &(usize, Vec<u8>)| *from <= self.log.len();
        match self.watch.as_ref().is_none_or(within) {
            true => Ok(()),
            false => Err(Damaged("the console has not printed as much")),
        }
    }

    /// From now on [`Console::collect`] tells when the device has just printed these bytes.
    pub fn watch(&mut self, pattern: Option<&[u8]>) {
        self.watch = pattern.map(|p| (self.log.len(), p.to_vec()));
    }

    /// Puts bytes on the line.
    pub fn send(&mut self, bytes: &[u8]) {
        self.input.extend(bytes);
    }

    /// Offers the device what is on the line; it takes what it can.
    pub fn feed(&mut self, now: u64, device: &mut dyn Device) {
        if self.input.is_empty() {
            return;
        }
        let taken = device.receive(now, self.input.as_slices().0);
        self.input.drain(..taken);
    }

    /// Takes what the device has sent. True when that completes what is waited for.
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
