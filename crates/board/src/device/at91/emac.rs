// SPDX-License-Identifier: MIT OR Apache-2.0
//! EMAC: the Ethernet controller of AT91SAM9263, SAM9X60 and their relatives, which Linux calls MACB (driver macb;
//! data sheet of AT91SAM9263, chapter EMAC, from memory), and its older form in the RM9200 (the same driver, at91ether),
//! with a PHY at address 0.
//!
//! Modelled: both rings of descriptors, which the EMAC reads and writes as a bus master; filters by address, broadcast,
//! hash and promiscuous mode; receive offset and checksum removal; padding and checksums of sent frames; status
//! registers and interrupts; statistics; management frames, which take 64 periods of MDC. An interrupt status bit is set
//! only while its interrupt is enabled, as the driver's comments say. The EMAC's FIFOs hold 28 bytes, and it moves
//! bursts of at most four words. A frame to the board is written to memory while its bits arrive; a frame from the board
//! is read while its bits leave, at the moment that [`Fetch`] chooses.
//!
//! The EMAC runs at the PHY's rate and in full duplex, so NCFGR's SPD and FD have no effect, and collisions do not
//! occur. The memory always serves the FIFOs in time, so underruns and overruns come only from errors on the bus. A pause
//! frame is an ordinary frame. Accesses are by word. GEM's registers from 0x280 to 0x2ff, which the driver reads,
//! are 0. Refused: loopback, pause frames to send, jumbo frames, wake-on-LAN, and registers that the form does not have.
//!
//! The RM9200's EMAC has no transmit ring ([`direct`]), receive buffers of 1536 bytes without offset, and no checksum
//! removal. Its statistics have the same offsets.
//!
//! Values: `mac` is the address that the boot loader left in the first address register (default 0x020000000001; the
//! most significant byte is the first byte). `fetch` chooses when the EMAC fetches the data of a frame: 0 as its FIFO
//! does, 1 at once, 2 as late as the wire allows, and a larger number at moments between, with the number as the seed.
//! `rm9200` is 1 for the RM9200's form (default 0). `phy` is the PHY's identification (default 0x0181b8a0, a DM9161A). The
//! part's clock is the master clock, of which MDC is a fraction.
//!
//! Outputs: 0 = interrupt, 1 = the interrupt pin of a KSZ8081, low while it interrupts. No inputs. Frames pass through [`Device::take_frames`], [`Device::begin_frame`] and
//! [`Device::give_frame`], and [`Device::set_cable`] plugs the cable.

use super::emac_fetch::Fetch;
use super::emac_statistics::Statistics;
use crate::bus::dma::Memory;
use crate::device::parts::Params;
use crate::device::phy::Phy;
use crate::device::{Device, Unmodelled, regs};
use crate::link::{Fate, Frame, Rate, Sent};
use crate::time::Clock;
use arm::{Damaged, Width};
use direct::Direct;
use receive::Receive;
use transmit::Transmit;

const NAME: &str = "at91_emac";
/// Master clock of a SAM9263 at 200 MHz, Hz.
const USUAL_HZ: u64 = 100_000_000;
/// Identification: a MACB, with the revision of SAMA5D3's, which a public log shows. The 9263's is not known.
const MID: u32 = 0x0001_010c;
/// Identification of the DM9161A (Linux, drivers/net/phy/davicom.c).
const DM9161A: u32 = 0x0181_b8a0;
/// Most steps of one call. The bus calls again while steps are due.
const STEPS: usize = 4096;

const NCR_LOOPBACK: u32 = 1 << 1;
const NCR_RECEIVE: u32 = 1 << 2;
const NCR_TRANSMIT: u32 = 1 << 3;
const NCR_MANAGEMENT: u32 = 1 << 4;
const NCR_CLEAR_STATISTICS: u32 = 1 << 5;
const NCR_STEP_STATISTICS: u32 = 1 << 6;
const NCR_WRITE_STATISTICS: u32 = 1 << 7;
const NCR_BACK_PRESSURE: u32 = 1 << 8;
const NCR_START: u32 = 1 << 9;
const NCR_HALT: u32 = 1 << 10;
const NCR_PAUSE_FRAMES: u32 = 3 << 11;
/// Bits that read as they were written.
const NCR_KEPT: u32 = NCR_LOOPBACK
    | NCR_RECEIVE
    | NCR_TRANSMIT
    | NCR_MANAGEMENT
    | NCR_WRITE_STATISTICS
    | NCR_BACK_PRESSURE;

const NCFGR_JUMBO: u32 = 1 << 3;
const NCFGR_ALL: u32 = 1 << 4;
const NCFGR_NO_BROADCAST: u32 = 1 << 5;
const NCFGR_MULTICAST_HASH: u32 = 1 << 6;
const NCFGR_UNICAST_HASH: u32 = 1 << 7;
const NCFGR_BIG: u32 = 1 << 8;
const NCFGR_MDC: u32 = 10;
const NCFGR_OFFSET: u32 = 14;
const NCFGR_DROP_CHECKSUM: u32 = 1 << 17;
const NCFGR_IGNORE_CHECKSUM: u32 = 1 << 19;
const NCFGR_KEPT: u32 = 0x000f_fff7;

/// The MDIO pin is high between management frames, and the logic is idle.
const NSR_PIN: u32 = 1 << 1;
const NSR_IDLE: u32 = 1 << 2;

const TSR_USED: u32 = 1 << 0;
const TSR_GO: u32 = 1 << 3;
const TSR_EXHAUSTED: u32 = 1 << 4;
const TSR_COMPLETE: u32 = 1 << 5;
const TSR_UNDERRUN: u32 = 1 << 6;
const RSR_NO_BUFFER: u32 = 1 << 0;
const RSR_RECEIVED: u32 = 1 << 1;
const RSR_OVERRUN: u32 = 1 << 2;

const INT_MANAGEMENT: u32 = 1 << 0;
const INT_RECEIVED: u32 = 1 << 1;
const INT_RX_USED: u32 = 1 << 2;
const INT_TX_USED: u32 = 1 << 3;
const INT_UNDERRUN: u32 = 1 << 4;
const INT_TX_ERROR: u32 = 1 << 6;
const INT_SENT: u32 = 1 << 7;
const INT_OVERRUN: u32 = 1 << 10;
const INT_BUS_ERROR: u32 = 1 << 11;
const INT_ALL: u32 = 0x3fff;

/// The controller's state.
#[derive(Clone, Debug)]
pub(super) struct Emac {
    /// Nanoseconds, and periods of the master clock.
    clock: Clock,
    master: Clock,
    ncr: u32,
    ncfgr: u32,
    usrio: u32,
    type_id: u32,
    hash: [u32; 2],
    /// The four address registers. The flag says whether frames are compared with the address.
    addresses: [(u64, bool); 4],
    tsr: u32,
    rsr: u32,
    isr: u32,
    /// A bit that is set disables its interrupt.
    imr: u32,
    man: u32,
    /// The maintenance register when the management frame ends, and the core cycle of that end.
    man_result: u32,
    man_done: u64,
    phy: Phy,
    statistics: Statistics,
    fetch: Fetch,
    transmit: Transmit,
    direct: Direct,
    receive: Receive,
    /// Sent frames, which the bus passes to the cable at once.
    sent: Vec<Sent>,
}

arm::state!(
    Emac: ncr, ncfgr, usrio, type_id, hash, addresses, tsr, rsr, isr, imr, man, man_result, man_done, phy,
    statistics, fetch, transmit, direct, receive; clock, master, sent => check
);

impl Emac {
    /// Makes a controller in its state after the boot loader.
    pub(super) fn new(params: &Params) -> Emac {
        let mac = params.value("mac", 0x0200_0000_0001).to_be_bytes();
        let mut station = [0; 8];
        station[..6].copy_from_slice(&mac[2..]);
        let clock = Clock {
            cpu_hz: params.cpu_hz,
            hz: 1_000_000_000,
        };
        Emac {
            clock,
            master: params.clock(USUAL_HZ),
            ncr: 0,
            ncfgr: 2 << NCFGR_MDC,
            usrio: 0,
            type_id: 0,
            hash: [0; 2],
            addresses: [
                (u64::from_le_bytes(station), true),
                (0, false),
                (0, false),
                (0, false),
            ],
            tsr: 0,
            rsr: 0,
            isr: 0,
            imr: INT_ALL,
            man: 0,
            man_result: 0,
            man_done: u64::MAX,
            phy: Phy::new(params.value("phy", u64::from(DM9161A)) as u32),
            statistics: Statistics::default(),
            fetch: Fetch::new(params.value("fetch", 0)),
            transmit: Transmit::default(),
            direct: Direct::new(params.value("rm9200", 0) != 0),
            receive: Receive::default(),
            sent: Vec::new(),
        }
    }

    /// Refuses restored state that the controller cannot have.
    fn check(&self) -> Result<(), Damaged> {
        let addresses = self.addresses.iter().all(|(a, _)| *a < 1 << 48);
        let registers = self.ncr & !NCR_KEPT == 0 && self.ncfgr & !NCFGR_KEPT == 0;
        match addresses && registers {
            true => Ok(()),
            false => Err(Damaged("the Ethernet controller has no such registers")),
        }
    }

    /// Sets the status bits of interrupts that are enabled.
    fn raise(&mut self, interrupts: u32) {
        self.isr |= interrupts & !self.imr;
    }

    fn get(&mut self, offset: u32) -> Option<u32> {
        if self.direct.is_used
            && let Some(value) = self.direct_register(offset)
        {
            return Some(value);
        }
        Some(match offset {
            0x00 => self.ncr,
            0x04 => self.ncfgr,
            0x08 => match self.man_done {
                u64::MAX => NSR_PIN | NSR_IDLE,
                _ => NSR_PIN,
            },
            0x14 => self.tsr | if self.transmit.is_going() { TSR_GO } else { 0 },
            0x18 => self.receive.queue.pointer(),
            0x1c | 0xb8 | 0xc0 | 0xc4 if self.direct.is_used => return None,
            0x1c => self.transmit.queue.pointer(),
            0x20 => self.rsr,
            0x24 => std::mem::take(&mut self.isr),
            // Write-only registers, and the time that the partner asked for by pause frames.
            0x28 | 0x2c | 0x38 => 0,
            0x30 => self.imr,
            0x34 => self.man,
            0x3c..=0x8c => self.statistics.take(offset),
            0x90 | 0x94 => self.hash[(offset >> 2 & 1) as usize],
            0x98..=0xb4 => {
                let (address, _) = self.addresses[((offset - 0x98) / 8) as usize];
                (address >> (8 * ((offset - 0x98) & 4))) as u32
            }
            0xb8 => self.type_id,
            0xc0 => self.usrio,
            0xc4 => 0,
            0xfc => MID,
            0x280..=0x2ff => 0,
            _ => return None,
        })
    }

    fn set(&mut self, now: u64, offset: u32, value: u32) -> Result<(), &'static str> {
        match offset {
            0x00 => return self.set_control(now, value),
            0x04 if value & NCFGR_JUMBO != 0 => return Err("jumbo frames are not modelled"),
            0x0c if self.direct.is_used => self.direct.address = value,
            0x10 if self.direct.is_used => self.send_direct(now, value),
            0x1c | 0xb8 | 0xc0 | 0xc4 if self.direct.is_used => return Err(regs::NO_REGISTER),
            0x04 if self.direct.is_used => self.ncfgr = value & direct::CONFIGURATION,
            0x04 => self.ncfgr = value & NCFGR_KEPT,
            0x14 => self.tsr &= !value,
            0x18 => self.set_receive_queue(value),
            0x1c => self.set_transmit_queue(now, value),
            0x20 => self.rsr &= !value,
            0x28 => self.imr &= !value,
            0x2c => self.imr |= value & INT_ALL,
            0x34 => return self.set_maintenance(now, value),
            0x3c..=0x8c if self.ncr & NCR_WRITE_STATISTICS != 0 => {
                self.statistics.set(offset, value);
            }
            0x90 | 0x94 => self.hash[(offset >> 2 & 1) as usize] = value,
            0x98..=0xb4 => self.set_address(offset - 0x98, value),
            0xb8 => self.type_id = value & 0xffff,
            0xc0 => self.usrio = value & 3,
            0xc4 if value != 0 => return Err("wake-on-LAN is not modelled"),
            // Read-only registers. The driver writes GEM's register 0x44, which is a counter here.
            0x08 | 0x24 | 0x30 | 0x38..=0x8c | 0xc4 | 0xfc => {}
            _ => return Err(regs::NO_REGISTER),
        }
        Ok(())
    }

    /// Writes half of an address register. The lower half switches the comparison off, and the upper half switches it
    /// on.
    fn set_address(&mut self, at: u32, value: u32) {
        let (address, is_active) = &mut self.addresses[(at / 8) as usize];
        *is_active = at & 4 != 0;
        *address = match at & 4 {
            0 => *address & !0xffff_ffff | u64::from(value),
            _ => *address & 0xffff_ffff | u64::from(value & 0xffff) << 32,
        };
    }

    fn set_control(&mut self, now: u64, value: u32) -> Result<(), &'static str> {
        let value = match self.direct.is_used {
            true => value & direct::CONTROL,
            false => value,
        };
        if value & NCR_LOOPBACK != 0 && value & (NCR_RECEIVE | NCR_TRANSMIT) != 0 {
            return Err("loopback is not modelled");
        }
        if value & NCR_PAUSE_FRAMES != 0 {
            return Err("sending pause frames is not modelled");
        }
        self.ncr = value & NCR_KEPT;
        if value & NCR_CLEAR_STATISTICS != 0 {
            self.statistics = Statistics::default();
        }
        if value & NCR_STEP_STATISTICS != 0 {
            self.statistics.step_all();
        }
        if value & NCR_RECEIVE == 0 {
            self.receive.stop();
        }
        if value & NCR_TRANSMIT == 0 {
            self.stop_transmit(now);
        } else if value & NCR_HALT != 0 {
            self.transmit.halt();
        } else if value & NCR_START != 0 {
            self.transmit.start(now);
        }
        Ok(())
    }

    /// Sends a management frame. Its effect on the PHY is immediate, and its result is in the register at its end. No
    /// PHY drives the wire, which is then high, in a frame to another address or with another start than clause 22's.
    fn set_maintenance(&mut self, now: u64, value: u32) -> Result<(), &'static str> {
        if self.man_done != u64::MAX {
            return Err("the previous management frame is not complete");
        }
        let register = (value >> 18 & 0x1f) as usize;
        let reaches = value >> 23 & 0x1f == 0 && self.ncr & NCR_MANAGEMENT != 0;
        let data = match value >> 28 {
            0b0110 if reaches => self.phy.read(register),
            0b0101 if reaches => {
                self.phy.write(register, value as u16)?;
                value as u16
            }
            0b0101 | 0b0001 => value as u16,
            _ => 0xffff,
        };
        self.man_result = value & 0xffff_0000 | u32::from(data);
        let divisor = 8 << (self.ncfgr >> NCFGR_MDC & 3);
        self.man_done = now.saturating_add(self.master.cycles(64 * divisor));
        Ok(())
    }

    /// Ends a management frame that is due.
    fn sync(&mut self, now: u64) {
        if self.man_done <= now && self.man_done != u64::MAX {
            self.man_done = u64::MAX;
            self.man = self.man_result;
            self.raise(INT_MANAGEMENT);
        }
    }
}

impl Device for Emac {
    fn part(&self) -> &'static str {
        NAME
    }

    fn read(&mut self, now: u64, offset: u32, width: Width) -> Result<u32, Unmodelled> {
        self.sync(now);
        let is_word = width == Width::Word && offset.is_multiple_of(4);
        let value = is_word.then(|| self.get(offset)).flatten();
        value.ok_or_else(|| regs::bad_read(NAME, offset, width))
    }

    fn write(&mut self, now: u64, offset: u32, width: Width, value: u32) -> Result<(), Unmodelled> {
        self.sync(now);
        let result = match width == Width::Word && offset.is_multiple_of(4) {
            true => self.set(now, offset, value),
            false => Err("the controller has registers of 32 bits"),
        };
        result.map_err(|why| regs::bad_write(NAME, offset, value, why))
    }

    fn deadline(&self) -> u64 {
        let steps = self.transmit.due().min(self.receive.due());
        steps.min(self.man_done)
    }

    fn tick(&mut self, now: u64) {
        self.sync(now);
    }

    fn transfer(&mut self, now: u64, memory: &mut Memory<'_>) {
        for _ in 0..STEPS {
            let (sends, receives) = (self.transmit.due(), self.receive.due());
            if sends.min(receives) > now {
                break;
            }
            match receives <= sends {
                true => self.receive_step(memory),
                false => self.transmit_step(memory),
            }
        }
    }

    fn outputs(&self) -> u32 {
        u32::from(self.isr & !self.imr != 0) | u32::from(self.phy.interrupt_pin()) << 1
    }

    fn take_frames(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    fn takes_beginnings(&self) -> bool {
        true
    }

    fn begin_frame(&mut self, _: u64, frame: &Frame) {
        self.begin_receive(frame);
    }

    fn give_frame(&mut self, _: u64, _: &[u8], _: bool) -> Fate {
        self.receive.fate()
    }

    fn set_cable(&mut self, _: u64, rate: Option<Rate>) {
        self.phy.set_cable(rate);
        self.receive.stop();
    }
}

#[path = "emac_direct.rs"]
mod direct;
#[path = "emac_receive.rs"]
mod receive;
#[path = "emac_transmit.rs"]
mod transmit;

#[cfg(test)]
#[path = "emac_tests.rs"]
mod tests;
