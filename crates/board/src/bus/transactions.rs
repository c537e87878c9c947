// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core's transactions: RAM answers directly, and all other addresses go through the map.

use super::SystemBus;
use super::dma::Memory;
use arm::{BurstTime, Bus, BusError, Pa, Signals, Width};

impl Bus for SystemBus {
    #[inline]
    fn read(&mut self, now: u64, pa: Pa, width: Width) -> Result<(u32, u32), BusError> {
        let offset = pa.0.wrapping_sub(self.ram_base);
        if offset < self.ram.bytes() {
            return Ok(self.ram.read(now, offset, width));
        }
        self.read_device(now, pa.0, width)
    }

    #[inline]
    fn write(&mut self, now: u64, pa: Pa, width: Width, value: u32) -> Result<u32, BusError> {
        let offset = pa.0.wrapping_sub(self.ram_base);
        if offset < self.ram.bytes() {
            return Ok(self.ram.write(now, offset, width, value));
        }
        self.write_device(now, pa.0, width, value)
    }

    #[inline]
    fn read_line(&mut self, now: u64, pa: Pa, line: &mut [u32; 8]) -> Result<BurstTime, BusError> {
        let offset = pa.0.wrapping_sub(self.ram_base);
        if offset < self.ram.bytes() {
            return Ok(self.ram.read_line(now, offset, line));
        }
        Err(self.line_elsewhere(pa.0))
    }

    fn read_words(&mut self, now: u64, pa: Pa, words: &mut [u32]) -> Result<BurstTime, BusError> {
        let offset = pa.0.wrapping_sub(self.ram_base);
        let bytes = 4 * words.len() as u32;
        if offset < self.ram.bytes() && bytes <= self.ram.bytes() - offset {
            return Ok(self.ram.read_words(now, offset, words));
        }
        // The burst is read word by word, because a device gets single words, and a burst may cross the end of RAM.
        let mut time = BurstTime::default();
        for (i, word) in words.iter_mut().enumerate() {
            let at = pa.plus(4 * i as u32);
            let (value, cycles) = self.read(now + u64::from(time.last), at, Width::Word)?;
            *word = value;
            time.last += cycles;
            if i == 0 {
                time.first = cycles;
            }
        }
        Ok(time)
    }

    #[inline]
    fn write_words(&mut self, now: u64, pa: Pa, words: &[u32]) -> Result<u32, BusError> {
        let offset = pa.0.wrapping_sub(self.ram_base);
        let behind = self.ram.bytes().saturating_sub(offset);
        if words.len() * 4 <= behind as usize {
            return Ok(self.ram.write_words(now, offset, words));
        }
        self.write_each(now, pa, words)
    }

    fn advance(&mut self, now: u64) -> Signals {
        self.transfers.clear();
        if now < self.next {
            // Nothing is due, and the core has sampled the signals.
            return self.signals;
        }
        self.wires.sampled = true;
        self.run_bench(now);
        if self.deadlines.iter().any(|&d| d <= now) {
            for i in 0..self.slots.len() {
                if self.deadlines[i] <= now {
                    let device = self.slots[i].device.as_mut();
                    device.tick(now);
                    let transfers = &mut self.transfers;
                    let base = self.ram_base;
                    let memory = &mut Memory::new(&mut self.ram, base, now, i, transfers);
                    device.transfer(now, memory);
                    if let Some(access) = device.begin_access() {
                        self.access(now, i, access);
                    }
                    self.settle(now, i);
                }
            }
        }
        self.wires.sampled = true;
        self.find_next();
        self.signals
    }

    #[inline]
    fn next_event(&self) -> u64 {
        self.next
    }

    fn peek(&self, pa: Pa) -> Option<u8> {
        self.ram.peek(pa.0.wrapping_sub(self.ram_base))
    }

    fn poke(&mut self, pa: Pa, value: u8) -> bool {
        self.ram.poke(pa.0.wrapping_sub(self.ram_base), value)
    }
}

impl SystemBus {
    /// Writes a burst that is not entirely in RAM. Each word goes to the owner of its address. A device gets the words
    /// one by one, as the bridge passes them on.
    #[cold]
    fn write_each(&mut self, now: u64, pa: Pa, words: &[u32]) -> Result<u32, BusError> {
        let mut cycles = 0;
        for (i, &word) in words.iter().enumerate() {
            let at = Pa(pa.0.wrapping_add(4 * i as u32));
            cycles += self.write(now + u64::from(cycles), at, Width::Word, word)?;
        }
        Ok(cycles)
    }
}
