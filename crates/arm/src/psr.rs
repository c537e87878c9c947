// SPDX-License-Identifier: MIT OR Apache-2.0
//! Program status registers, processor modes and banked registers (ARM ARM A2.3 to A2.5).

use crate::bus::Bus;
use crate::cpu::Cpu;
use crate::isa::Version;

/// CPSR bit: negative.
pub const N: u32 = 1 << 31;
/// CPSR bit: zero.
pub const Z: u32 = 1 << 30;
/// CPSR bit: carry.
pub const C: u32 = 1 << 29;
/// CPSR bit: overflow.
pub const V: u32 = 1 << 28;
/// CPSR bit: sticky saturation flag (ARMv5TE).
pub const Q: u32 = 1 << 27;
/// CPSR bit: Jazelle state. The trivial implementation never enters this state.
pub const J: u32 = 1 << 24;
/// CPSR bits 19:16: "greater than or equal", one bit for each byte of a parallel addition or subtraction (ARMv6).
pub const GE: u32 = 0xf << 16;
/// CPSR bit: data accesses are big-endian (ARMv6). A core that sets this bit ends the run.
pub const E: u32 = 1 << 9;
/// CPSR bit: imprecise aborts disabled (ARMv6).
pub const A: u32 = 1 << 8;
/// CPSR bit: IRQ disabled.
pub const I: u32 = 1 << 7;
/// CPSR bit: FIQ disabled.
pub const F: u32 = 1 << 6;
/// CPSR bit: Thumb state.
pub const T: u32 = 1 << 5;
/// Mask of the mode bits.
pub const MODE: u32 = 0x1f;
/// Status register bits of ARMv4T. Later versions add bits.
const IMPLEMENTED: u32 = N | Z | C | V | I | F | T | MODE;

impl Version {
    /// Status register bits of this version.
    fn status_bits(self) -> u32 {
        match self {
            Version::V4 | Version::V5 => IMPLEMENTED,
            Version::V5E => IMPLEMENTED | Q,
            Version::V5J => IMPLEMENTED | Q | J,
            Version::V6 | Version::V6K => IMPLEMENTED | Q | J | GE | E | A,
        }
    }
}

impl Version {
    /// Bits beyond mode, I and F that are set at reset (A2.6.2).
    pub(crate) fn reset_bits(self) -> u32 {
        if self >= Version::V6 { A } else { 0 }
    }
}

/// Processor mode, CPSR[4:0].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// User, the only unprivileged mode.
    User = 0x10,
    /// Fast interrupt.
    Fiq = 0x11,
    /// Interrupt.
    Irq = 0x12,
    /// Supervisor.
    Supervisor = 0x13,
    /// Abort.
    Abort = 0x17,
    /// Undefined instruction.
    Undefined = 0x1b,
    /// System: privileged, with the registers of User mode.
    System = 0x1f,
}

impl Mode {
    /// Returns the mode with these five bits, if ARMv6 and earlier versions have one.
    pub const fn from_bits(bits: u32) -> Option<Mode> {
        Some(match bits & MODE {
            0x10 => Mode::User,
            0x11 => Mode::Fiq,
            0x12 => Mode::Irq,
            0x13 => Mode::Supervisor,
            0x17 => Mode::Abort,
            0x1b => Mode::Undefined,
            0x1f => Mode::System,
            _ => return None,
        })
    }

    /// Index of the register bank with r13, r14 and the SPSR; 0 is User and System.
    pub const fn bank(self) -> usize {
        match self {
            Mode::User | Mode::System => 0,
            Mode::Fiq => 1,
            Mode::Irq => 2,
            Mode::Supervisor => 3,
            Mode::Abort => 4,
            Mode::Undefined => 5,
        }
    }

    /// Whether the mode has an SPSR: all modes except User and System have one.
    pub const fn has_spsr(self) -> bool {
        self.bank() != 0
    }
}

/// Registers and SPSRs of all modes except the current one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Banks {
    /// r13 and r14 of each bank except the current one.
    r13_14: [[u32; 2]; 6],
    /// r8 to r12 of the bank that is not current. In FIQ mode, they are the registers of the other modes; in the other
    /// modes, FIQ's registers.
    r8_12: [u32; 5],
    /// SPSR of each bank; index 0 is unused.
    spsr: [u32; 6],
}

crate::state!(Banks: r13_14, r8_12, spsr);

impl<B: Bus> Cpu<B> {
    /// The current program status register.
    pub fn cpsr(&self) -> u32 {
        self.flags | self.control
    }

    /// Writes the CPSR and switches banks with the mode. If the mode bits name no mode, the old mode stays. The J bit
    /// stays clear.
    pub fn set_cpsr(&mut self, value: u32) {
        self.write_cpsr(value);
        self.context_changed();
    }

    fn write_cpsr(&mut self, value: u32) {
        let value = value & self.config().core.version.status_bits();
        self.flags = value & (N | Z | C | V | Q);
        if let Some(mode) = Mode::from_bits(value) {
            self.switch_bank(mode);
        }
        self.control = value & (GE | E | A | I | F | T) | self.control & MODE;
        if value & E != 0 {
            self.refuse_case("big-endian data accesses (the E bit of the CPSR)");
        }
    }

    /// The current mode.
    pub fn mode(&self) -> Mode {
        Mode::from_bits(self.control).unwrap_or(Mode::System)
    }

    /// Whether the current mode is privileged: any mode except User.
    #[inline(always)]
    pub(crate) fn privileged(&self) -> bool {
        self.control & MODE != Mode::User as u32
    }

    /// SPSR of the current mode. In User and System mode, which have none, returns the CPSR.
    pub fn spsr(&self) -> u32 {
        let mode = self.mode();
        if mode.has_spsr() {
            self.banks.spsr[mode.bank()]
        } else {
            self.cpsr()
        }
    }

    /// Writes the SPSR of the current mode. Does nothing in User and System mode.
    pub fn set_spsr(&mut self, value: u32) {
        let mode = self.mode();
        if mode.has_spsr() {
            self.banks.spsr[mode.bank()] = value & self.config().core.version.status_bits();
        }
    }

    /// Copies the SPSR to the CPSR and branches in the restored state. In User and System mode, only branches.
    pub(crate) fn return_from_exception(&mut self, target: u32) {
        if self.mode().has_spsr() {
            self.write_cpsr(self.spsr());
        }
        self.branch(target);
        self.context_changed();
    }

    /// Changes the mode bits and the register bank. The caller must call `context_changed` afterwards.
    pub(crate) fn switch_bank(&mut self, mode: Mode) {
        let (old, new) = (self.mode().bank(), mode.bank());
        self.control = self.control & !MODE | mode as u32;
        if old == new {
            return;
        }
        self.banks.r13_14[old] = [self.r[13], self.r[14]];
        [self.r[13], self.r[14]] = self.banks.r13_14[new];
        if (old == Mode::Fiq.bank()) != (new == Mode::Fiq.bank()) {
            self.r[8..13].swap_with_slice(&mut self.banks.r8_12);
        }
    }

    /// Copies `value` to the CPSR and branches in its state (RFE). The J bit stays clear.
    pub(crate) fn return_to(&mut self, target: u32, value: u32) {
        self.write_cpsr(value);
        self.branch(target);
        self.context_changed();
    }

    /// r13 of `mode`, read from any mode.
    pub(crate) fn stack_pointer(&self, mode: Mode) -> u32 {
        match self.mode().bank() == mode.bank() {
            true => self.r[13],
            false => self.banks.r13_14[mode.bank()][0],
        }
    }

    /// Sets r13 of `mode`, from any mode.
    pub(crate) fn set_stack_pointer(&mut self, mode: Mode, value: u32) {
        match self.mode().bank() == mode.bank() {
            true => self.r[13] = value,
            false => self.banks.r13_14[mode.bank()][0] = value,
        }
    }

    /// Register `n` (0 to 14) of User and System mode, read from any mode.
    pub fn user_register(&self, n: usize) -> u32 {
        match (n & 15, self.mode()) {
            (n @ 8..=12, Mode::Fiq) => self.banks.r8_12[n - 8],
            (n @ (13 | 14), mode) if mode.bank() != 0 => self.banks.r13_14[0][n - 13],
            (n, _) => self.r[n],
        }
    }

    /// Sets register `n` (0 to 14) of User and System mode, from any mode.
    pub(crate) fn set_user_register(&mut self, n: usize, value: u32) {
        match (n & 15, self.mode()) {
            (n @ 8..=12, Mode::Fiq) => self.banks.r8_12[n - 8] = value,
            (n @ (13 | 14), mode) if mode.bank() != 0 => self.banks.r13_14[0][n - 13] = value,
            (n, _) => self.r[n] = value,
        }
    }
}
