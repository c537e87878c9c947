// SPDX-License-Identifier: MIT OR Apache-2.0
//! LCDC, the LCD controller of SAM926x, as a reader of memory. Facts: Linux 6.12 drivers/video/fbdev/atmel_lcdfb.c and
//! include/video/atmel_lcdc.h.
//!
//! While the DMA is enabled and the power is on, the controller reads the frame buffer in bursts of BRSTLN + 1 words,
//! frame after frame. The bursts are spread evenly over the time of a frame, which follows from the pixel clock, the
//! size of the display and its porches. A frame begins at the address that DMABADDR1 has at that moment. EOFI is set at
//! the end of each frame, and MERI at a burst outside RAM, which also ends the DMA until it is enabled again.
//!
//! Nothing is drawn. The FIFO never underflows: a burst that the bus delays comes later. LINCNT reads 0, the guard time
//! is 0, and LNI and LSTLNI are never set. Two-dimensional addressing and dual scan are refused. All other registers are
//! plain storage.
//!
//! Outputs: 0 = interrupt. No inputs. Clock: the master clock at 99,959,589 Hz, unless the machine file gives another rate.

use crate::bus::dma::{Memory, Purpose};
use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::{Damaged, Width};

const PART: &str = "at91_lcdc";
const BYTES: usize = 0x1000;

const DMABADDR1: u32 = 0x00;
const DMAFRMCFG: u32 = 0x18;
const DMACON: u32 = 0x1c;
const LCDCON1: u32 = 0x800;
const LCDCON2: u32 = 0x804;
const TIM1: u32 = 0x808;
const TIM2: u32 = 0x80c;
const LCDFRMCFG: u32 = 0x810;
const PWRCON: u32 = 0x83c;
const IER: u32 = 0x848;
const IDR: u32 = 0x84c;
const IMR: u32 = 0x850;
const ISR: u32 = 0x854;
const ICR: u32 = 0x858;

/// Bits of DMACON.
const ENABLED: u32 = 1 << 0;
const RESET: u32 = 1 << 1;
const BUSY: u32 = 1 << 2;
const TWO_DIMENSIONS: u32 = 1 << 4;
/// Bit of PWRCON.
const POWER: u32 = 1 << 0;
/// Bits of LCDCON1 and LCDCON2.
const BYPASS: u32 = 1 << 0;
const DUAL_SCAN: u32 = 1 << 2;
/// Bits of the interrupt registers.
const END_OF_FRAME: u32 = 1 << 2;
const MEMORY_ERROR: u32 = 1 << 6;

/// A frame that is being read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Frame {
    /// Whether a frame is being read. Otherwise, the other values mean nothing.
    is_read: bool,
    /// Physical address of its first word.
    base: u32,
    /// Number of words that were read.
    words: u32,
    /// Core cycle at which the next burst is due.
    due: u64,
}

arm::state!(Frame: is_read, base, words, due);

/// The controller's state.
#[derive(Clone, Debug)]
pub(crate) struct Lcdc {
    clock: Clock,
    registers: Vec<u32>,
    mask: u32,
    status: u32,
    frame: Frame,
}

arm::state!(Lcdc: registers, mask, status, frame; clock => check);

impl Lcdc {
    /// Makes a controller in its reset state. `clock` is the master clock.
    pub(crate) fn new(clock: Clock) -> Self {
        Lcdc {
            clock,
            registers: vec![0; BYTES / 4],
            mask: 0,
            status: 0,
            frame: Frame::default(),
        }
    }

    fn check(&self) -> Result<(), Damaged> {
        crate::time::check([self.frame.due])?;
        match self.registers.len() == BYTES / 4 {
            true => Ok(()),
            false => Err(Damaged("a unit's storage has another size")),
        }
    }

    fn register(&self, offset: u32) -> u32 {
        self.registers[offset as usize / 4]
    }

    fn field(&self, offset: u32, shift: u32, mask: u32) -> u64 {
        u64::from(self.register(offset) >> shift & mask)
    }

    /// Returns the number of words of a frame.
    fn frame_words(&self) -> u32 {
        self.register(DMAFRMCFG) & 0x7f_ffff
    }

    fn burst_words(&self) -> u32 {
        (self.register(DMAFRMCFG) >> 24 & 0x7f) + 1
    }

    /// Returns the time from one burst to the next, in core cycles. The bus needs at least a clock for each word.
    fn burst_cycles(&self) -> u64 {
        let pixel = match self.register(LCDCON1) & BYPASS {
            0 => 2 * (self.field(LCDCON1, 12, 0x1ff) + 1),
            _ => 1,
        };
        let porches = |register, fields: [(u32, u32); 3]| -> u64 {
            let widths = fields.map(|(shift, mask)| self.field(register, shift, mask));
            widths.iter().sum()
        };
        let line = self.field(LCDFRMCFG, 21, 0x7ff) + 4;
        let line = line + porches(TIM2, [(0, 0xff), (8, 0x3f), (21, 0x7ff)]);
        let lines = self.field(LCDFRMCFG, 0, 0x7ff) + 2;
        let lines = lines + porches(TIM1, [(0, 0xff), (8, 0xff), (16, 0x3f)]);
        let words = u64::from(self.burst_words());
        let ticks = pixel * line * lines * words / u64::from(self.frame_words().max(1));
        self.clock.cycles(ticks.max(words))
    }

    fn is_on(&self) -> bool {
        self.register(DMACON) & ENABLED != 0
            && self.register(PWRCON) & POWER != 0
            && self.frame_words() > 0
    }

    /// Begins or ends the reading of frames, after a write to a register.
    fn update(&mut self, now: u64) {
        if !self.is_on() {
            self.frame.is_read = false;
        } else if !self.frame.is_read {
            self.begin(now);
        }
    }

    fn begin(&mut self, due: u64) {
        self.frame = Frame {
            is_read: true,
            base: self.register(DMABADDR1) & !3,
            words: 0,
            due,
        };
    }

    fn burst(&mut self, memory: &mut Memory<'_>) {
        let Frame {
            base, words, due, ..
        } = self.frame;
        let left = self.frame_words().saturating_sub(words);
        let count = self.burst_words().min(left);
        let mut bytes = [0; 4 * 128];
        let to = &mut bytes[..count as usize * 4];
        memory.set_purpose(Purpose::Data);
        let end = match memory.read(base.wrapping_add(words * 4), to) {
            Ok(end) => end,
            Err(_) => {
                self.status |= MEMORY_ERROR;
                self.registers[DMACON as usize / 4] &= !ENABLED;
                self.frame.is_read = false;
                return;
            }
        };
        let next = end.max(due + self.burst_cycles());
        self.frame.words = words + count;
        self.frame.due = next;
        if self.frame.words >= self.frame_words() {
            self.status |= END_OF_FRAME;
            self.begin(next);
        }
    }

    fn set(&mut self, now: u64, register: u32, value: u32) -> Result<(), &'static str> {
        match register {
            DMACON if value & TWO_DIMENSIONS != 0 => {
                return Err("two-dimensional addressing is not modelled");
            }
            LCDCON2 if value & DUAL_SCAN != 0 => return Err("dual scan is not modelled"),
            IER => self.mask |= value,
            IDR => self.mask &= !value,
            IMR | ISR => {} // read-only
            ICR => self.status &= !value,
            DMACON if value & RESET != 0 => {
                self.registers[DMACON as usize / 4] = value & !(RESET | BUSY);
                self.frame.is_read = false;
            }
            _ => self.registers[register as usize / 4] = value,
        }
        self.update(now);
        Ok(())
    }

    fn get(&self, register: u32) -> u32 {
        match register {
            DMACON if self.frame.is_read => self.register(DMACON) | BUSY,
            // Without a guard time, the power is on or off at once. The chip has its busy bit here.
            PWRCON => self.register(PWRCON) & 0xff,
            IMR => self.mask,
            ISR => self.status,
            _ => self.register(register),
        }
    }
}

impl Device for Lcdc {
    fn part(&self) -> &'static str {
        PART
    }

    fn read(&mut self, _: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        regs::apb_read(PART, None, offset, width, |register| {
            (register < BYTES as u32).then(|| self.get(register))
        })
    }

    fn write(&mut self, now: u64, offset: u32, _: Width, value: u32) -> Result<(), Unmodelled> {
        regs::apb_write(PART, None, offset, value, |register, value| {
            match register < BYTES as u32 {
                true => self.set(now, register, value),
                false => Err(regs::NO_REGISTER),
            }
        })
    }

    fn deadline(&self) -> u64 {
        match self.frame.is_read {
            true => self.frame.due,
            false => u64::MAX,
        }
    }

    fn transfer(&mut self, now: u64, memory: &mut Memory<'_>) {
        if self.frame.is_read && self.frame.due <= now {
            self.burst(memory);
        }
    }

    fn outputs(&self) -> u32 {
        u32::from(self.status & self.mask != 0)
    }
}

#[cfg(test)]
#[path = "lcdc_tests.rs"]
mod tests;
