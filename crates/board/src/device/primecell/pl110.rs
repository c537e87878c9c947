// SPDX-License-Identifier: MIT OR Apache-2.0
//! PL110 colour LCD controller (DDI 0161) in the Versatile variant. The control register is at 0x18, and the interrupt
//! mask is at 0x1c (DUI 0224, 4.6). In the PL110's manual, the two addresses are exchanged.
//!
//! Modelled: the registers, the palette, and the end of each frame, which raises two interrupts. A frame lasts as long
//! as the timing registers say, counted in CLCDCLK. Not modelled: drawing, the memory bandwidth that reading the
//! picture takes, and the programmable oscillator of CLCDCLK, whose rate is fixed. While the controller is enabled, a
//! note says that the bandwidth is not modelled.
//!
//! Outputs: 0 = CLCDINTR. No inputs. Clock: CLCDCLK at 25 MHz, unless the machine file gives another rate.

use crate::device::{Device, Unmodelled, regs};
use crate::time::Clock;
use arm::{Damaged, Width};

const PERIPHID: u32 = 0x0004_1110;
const ENABLE: u32 = 1 << 0;
/// Interrupts at the end of a frame: LNBU (next base update) and VCOMP (vertical compare).
const FRAME: u32 = 1 << 2 | 1 << 3;
/// Bit of TIM2: bypasses the divider of the pixel clock.
const BYPASS: u32 = 1 << 26;

/// The controller's state.
#[derive(Clone, Debug)]
pub(crate) struct Pl110 {
    /// Registers TIM0 to TIM3, UPBASE, LPBASE.
    held: [u32; 6],
    control: u32,
    mask: u32,
    palette: [u32; 128],
    /// Raised interrupts that are not cleared.
    raised: u32,
    /// Tick of CLCDCLK at which the frame began.
    began: u64,
    /// First core cycle after the frame; `u64::MAX` when no frame is shown.
    ends_at: u64,
    clock: Clock,
}

arm::state!(Pl110: held, control, mask, palette, raised, began; clock, ends_at => restored);

impl Pl110 {
    /// Makes a disabled controller.
    pub(crate) fn new(clock: Clock) -> Self {
        Pl110 {
            held: [0; 6],
            control: 0,
            mask: 0,
            palette: [0; 128],
            raised: 0,
            began: 0,
            ends_at: u64::MAX,
            clock,
        }
    }

    /// Returns the ticks of CLCDCLK in a frame (DDI 0161, 3.2.2 to 3.2.4).
    fn frame(&self) -> u64 {
        let field =
            |reg: usize, at: u32, bits: u32| u64::from(self.held[reg] >> at & ((1 << bits) - 1));
        let line =
            16 * (field(0, 2, 6) + 1) + field(0, 8, 8) + field(0, 16, 8) + field(0, 24, 8) + 3;
        let lines = field(1, 0, 10) + 1 + field(1, 10, 6) + 1 + field(1, 16, 8) + field(1, 24, 8);
        let divisor = match self.held[2] & BYPASS {
            0 => (field(2, 27, 5) << 5 | field(2, 0, 5)) + 2,
            _ => 1,
        };
        line * lines * divisor
    }

    /// Begins a frame at tick `at`, if the controller is enabled.
    fn begin(&mut self, at: u64) {
        self.began = at;
        self.ends_at = match self.control & ENABLE {
            0 => u64::MAX,
            _ => self.clock.cycles(at.saturating_add(self.frame())),
        };
    }

    fn restored(&mut self) -> Result<(), Damaged> {
        self.begin(self.began);
        Ok(())
    }

    /// Accounts for all frames that have ended by `now`.
    fn sync(&mut self, now: u64) {
        if now >= self.ends_at {
            self.raised |= FRAME;
            let (passed, frame) = (self.clock.ticks(now) - self.began, self.frame());
            self.begin(self.began + passed / frame * frame);
        }
    }

    fn get(&self, reg: u32) -> Option<u32> {
        Some(match reg {
            0x000..=0x014 => self.held[(reg / 4) as usize],
            0x018 => self.control,
            0x01c => self.mask,
            0x020 => self.raised,
            0x024 => self.raised & self.mask,
            0x028 => 0, // write-only
            0x02c => self.held[4],
            0x030 => self.held[5],
            0x200..=0x3fc => self.palette[((reg - 0x200) / 4) as usize],
            _ => return None,
        })
    }

    fn set(&mut self, now: u64, reg: u32, value: u32) -> Result<(), &'static str> {
        match reg {
            0x000..=0x008 => {
                self.held[(reg / 4) as usize] = value;
                self.begin(self.clock.ticks(now));
            }
            0x00c..=0x014 => self.held[(reg / 4) as usize] = value,
            0x018 => {
                let turned = (self.control ^ value) & ENABLE != 0;
                self.control = value & 0x1_ffff;
                if turned {
                    self.begin(self.clock.ticks(now));
                }
            }
            0x01c => self.mask = value & 0x1e,
            0x028 => self.raised &= !value,
            0x020..=0x030 => {} // read-only
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }
}

impl Device for Pl110 {
    fn note(&self) -> Option<&'static str> {
        let on = self.control & ENABLE != 0;
        on.then_some(
            "the LCD is on: the model draws nothing and, unlike a real LCD, takes no memory bandwidth",
        )
    }

    fn part(&self) -> &'static str {
        "pl110"
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        self.sync(now);
        regs::apb_read("pl110", Some(PERIPHID), offset, width, |reg| self.get(reg))
    }

    fn write(&mut self, now: u64, offset: u32, width: Width, value: u32) -> Result<(), Unmodelled> {
        self.sync(now);
        // The palette is memory on AHB and has byte lanes.
        if (0x200..0x400).contains(&offset) {
            let word = &mut self.palette[((offset - 0x200) / 4) as usize];
            *word = regs::merge(*word, offset, width, value);
            return Ok(());
        }
        regs::apb_write("pl110", Some(PERIPHID), offset, value, |reg, v| {
            self.set(now, reg, v)
        })
    }

    /// Returns the end of the frame, if its interrupt is enabled and not raised. The next access accounts for the other
    /// frame ends.
    fn deadline(&self) -> u64 {
        if self.mask & FRAME & !self.raised == 0 {
            u64::MAX
        } else {
            self.ends_at
        }
    }

    fn tick(&mut self, now: u64) {
        self.sync(now);
    }

    fn outputs(&self) -> u32 {
        u32::from(self.raised & self.mask != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lcd() -> Pl110 {
        Pl110::new(Clock {
            cpu_hz: 250_000_000,
            hz: 25_000_000,
        })
    }

    #[test]
    fn each_frame_ends_with_an_interrupt() {
        let mut l = lcd();
        // VGA as Linux sets it up: 800 by 525 pixels.
        for (reg, value) in [(0, 0x2f_0f_5f_9c), (4, 0x20_0b_05_df), (8, BYPASS)] {
            l.write(0, reg, Width::Word, value).unwrap();
        }
        let frame = 10 * l.frame();
        assert_eq!(l.frame(), (640 + 96 + 16 + 48) * (480 + 2 + 11 + 32));
        l.write(1000, 0x18, Width::Word, ENABLE).unwrap();
        assert_eq!(l.deadline(), u64::MAX, "the interrupt is masked");
        l.write(1000, 0x1c, Width::Word, 4).unwrap();
        assert_eq!(l.deadline(), 1000 + frame);
        l.tick(l.deadline());
        assert_eq!((l.outputs(), l.deadline()), (1, u64::MAX));
        assert_eq!(l.read(frame + 2000, 0x24, Width::Word), Ok(4));
        assert_eq!(l.read(frame + 2000, 0x20, Width::Word), Ok(FRAME));
        l.write(frame + 2000, 0x28, Width::Word, 4).unwrap();
        assert_eq!((l.outputs(), l.deadline()), (0, 1000 + 2 * frame));
        // Frames that end without an access to the controller raise one interrupt.
        l.tick(1005 + 9 * frame);
        l.write(1005 + 9 * frame, 0x28, Width::Word, 4).unwrap();
        assert_eq!((l.outputs(), l.deadline()), (0, 1000 + 10 * frame));
        l.write(2000 + 9 * frame, 0x18, Width::Word, 0).unwrap();
        assert_eq!(l.deadline(), u64::MAX);
    }

    #[test]
    fn the_palette_has_byte_lanes() {
        let mut l = lcd();
        l.write(0, 0x200, Width::Word, 0x4433_2211).unwrap();
        l.write(0, 0x202, Width::Half, 0xbbaa).unwrap();
        assert_eq!(l.read(0, 0x200, Width::Word), Ok(0xbbaa_2211));
    }

    #[test]
    fn an_enabled_controller_has_a_note() {
        let mut l = lcd();
        l.write(0, 0x1c, Width::Word, 4).unwrap();
        assert_eq!(l.note(), None);
        l.write(0, 0x18, Width::Word, 0x821).unwrap();
        assert!(l.note().is_some_and(|note| note.contains("draws nothing")));
        assert_eq!(l.read(0, 0x18, Width::Word), Ok(0x821));
    }
}
