// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults, in the encoding of the fault status registers.

/// Reason for which a translation or an access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// FSR[3:0], and FSR[10] in bit 4.
    pub status: u8,
    /// Domain, FSR[7:4]; zero where the manual calls it invalid.
    pub domain: u8,
}

impl Fault {
    /// Unaligned access while SCTLR.A is set.
    pub const ALIGNMENT: Fault = Fault {
        status: 0b0001,
        domain: 0,
    };

    /// No translation for an operation on an I-cache line by address (`DDI0211` 6.10).
    pub const ICACHE_MAINTENANCE: Fault = Fault {
        status: 0b0100,
        domain: 0,
    };

    /// External abort on XScale, other than on a table walk (IXP42X 3.8.3.4.4).
    pub const IMPRECISE: Fault = Fault {
        status: 0b1_0110,
        domain: 0,
    };

    /// XScale could not lock a line or a translation (IXP42X 3.8.3.4.4).
    pub const LOCK: Fault = Fault {
        status: 0b1_0100,
        domain: 0,
    };

    /// Returns the external abort of a line fill or an uncached read.
    pub fn external(section: bool, domain: u8) -> Fault {
        Fault {
            status: if section { 0b1000 } else { 0b1010 },
            domain,
        }
    }

    /// Whether only a permission was missing.
    pub fn is_of_permission(self) -> bool {
        matches!(self.status, 0b1101 | 0b1111)
    }

    /// Whether a fault status means an external abort ([`Fault::external`]).
    pub fn is_external(fsr: u32) -> bool {
        fsr & 0b1101 == 0b1000
    }

    /// Returns the status of an aborted fetch for the single fault status register of [`Descriptors::Extended`]. This
    /// status only says whether the fault is an external abort (IXP42X 3.8.3.4.3).
    pub fn of_fetch(self) -> Fault {
        let external = self == Fault::IMPRECISE;
        Fault {
            status: if external { self.status } else { 0b1_0000 },
            domain: 0,
        }
    }

    /// Value of the fault status register.
    pub fn fsr(self) -> u32 {
        let status = u32::from(self.status);
        u32::from(self.domain) << 4 | (status & 16) << 6 | status & 15
    }
}
