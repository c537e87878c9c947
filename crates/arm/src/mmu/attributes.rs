// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attributes of pages: permissions, domain, and memory attributes (cacheable, bufferable, and XScale's extensions).

use super::{
    ALLOCATE, BUFFER, CACHE, Control, DEVICE, Descriptors, EXECUTE, ICACHE, MINI, READ, SINGLE,
    WRITE,
};

/// Attributes of a page, from its descriptors. Each format of the descriptors has some of them; the others are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Access permissions: AP in bits 1:0, ARMv6's APX in bit 2.
    pub ap: u8,
    /// Domain number, 0 to 15.
    pub domain: u8,
    /// C in bit 1, B in bit 0, XScale's X in bit 2.
    pub cb: u8,
    /// Whether the page is Device or Strongly Ordered memory (ARMv6).
    pub device: bool,
    /// Whether clients of the domain must not fetch (ARMv6's XN).
    pub xn: bool,
    /// ASID whose accesses the page serves (ARMv6's nG). `None` for a global page. All pages are global on a core
    /// without ASIDs.
    pub asid: Option<u8>,
}

crate::state!(Attributes: ap, domain, cb, device, xn, asid);

impl Attributes {
    /// Whether the fields have values that descriptors can have.
    pub fn are_known(&self) -> bool {
        self.domain < 16 && self.ap < 8 && self.cb < 8
    }

    /// Accesses that APX, AP, S, R and XN allow to clients of the domain (ARM ARM B4.3, table B4-1).
    #[inline(always)]
    pub fn permissions(&self, s: bool, r: bool, privileged: bool) -> u32 {
        let flags = permissions(self.ap, s, r, privileged);
        match flags & READ != 0 && !self.xn {
            true => flags | EXECUTE,
            false => flags,
        }
    }
}

impl Control {
    /// Flags of the caches and the write buffer, from C, B and X and the control registers.
    #[inline(always)]
    pub fn attributes(&self, descriptors: Descriptors, page: &Attributes) -> u32 {
        let mut flags = if page.device { DEVICE } else { 0 };
        let cacheable = page.cb & 2 != 0;
        if cacheable && self.icache_on {
            flags |= ICACHE;
        }
        if cacheable && self.dcache_on {
            flags |= CACHE;
            if page.cb & 1 != 0 && !self.force_write_through {
                flags |= BUFFER;
            }
        } else if !cacheable && page.cb & 1 != 0 {
            flags |= BUFFER;
        }
        if descriptors == Descriptors::Extended {
            flags |= self.extension(page.cb);
        }
        flags
    }

    /// Flags that the X bit adds (IXP42X 3.1.1.2, p. 46). X alone is reserved and adds none.
    fn extension(&self, xcb: u8) -> u32 {
        match (xcb, self.mini) {
            (0b101, _) => SINGLE,
            (0b110 | 0b111, _) if !self.dcache_on => 0,
            (0b110, 0) => MINI | BUFFER,
            (0b110, 1) => MINI | BUFFER | ALLOCATE,
            (0b110, _) => MINI,
            (0b111, _) => ALLOCATE,
            _ => 0,
        }
    }
}

/// Reads and writes that APX, AP, S and R allow.
#[inline]
fn permissions(ap: u8, s: bool, r: bool, privileged: bool) -> u32 {
    match (ap & 7, privileged) {
        (0, true) if s != r => READ,
        (0, false) if r && !s => READ,
        (0, _) => 0,
        (1, true) => READ | WRITE,
        (1, false) => 0,
        (2, true) => READ | WRITE,
        (2, false) => READ,
        (3, _) => READ | WRITE,
        // With APX. The value 4 is reserved, and gives no access here.
        (5, true) => READ,
        (6 | 7, _) => READ,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apx_takes_writes_away_and_xn_takes_fetches_away() {
        let (all, none) = (READ | WRITE | EXECUTE, 0);
        let look = READ | EXECUTE;
        // Privileged accesses, and those of User mode.
        let expected = [
            [none, none],
            [all, none],
            [all, look],
            [all, all],
            [none, none],
            [look, none],
            [look, look],
            [look, look],
        ];
        for (ap, expected) in (0..).zip(expected) {
            for xn in [false, true] {
                let page = Attributes {
                    ap,
                    xn,
                    ..Attributes::default()
                };
                let found = [true, false].map(|p| page.permissions(false, false, p));
                let kept = if xn { !EXECUTE } else { !0 };
                assert_eq!(found, expected.map(|flags| flags & kept), "{ap} {xn}");
            }
        }
    }

    #[test]
    fn only_device_memory_has_the_flag_of_device_memory() {
        let control = Control::default();
        for device in [false, true] {
            let page = Attributes {
                device,
                ..Attributes::default()
            };
            let flags = control.attributes(Descriptors::Arm, &page);
            assert_eq!(flags & DEVICE != 0, device);
        }
    }
}
