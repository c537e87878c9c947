// SPDX-License-Identifier: MIT OR Apache-2.0
//! The three kinds of address. Only [`crate::fcse`] makes an [`Mva`] from a [`Va`], and only the MMU makes a
//! [`Pa`] from an [`Mva`].

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u32);

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, concat!(stringify!($name), "({:#010x})"), self.0)
            }
        }

        impl crate::State for $name {
            fn save(&self, to: &mut Vec<u8>) {
                self.0.save(to);
            }

            fn restore(&mut self, from: &mut crate::Saved<'_>) -> Result<(), crate::Damaged> {
                self.0.restore(from)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{:#010x}", self.0)
            }
        }
    };
}

address! {
    /// Virtual address, as an instruction issues it.
    Va
}
address! {
    /// Modified virtual address, the tag of caches and TLBs (`DDI0198D 2.3.13`).
    Mva
}
address! {
    /// Physical address, as the bus carries it.
    Pa
}

impl Pa {
    /// Address of the first byte of the line that holds this address.
    #[inline(always)]
    pub const fn line(self) -> Pa {
        Pa(self.0 & !31)
    }

    /// This address plus `bytes`.
    #[inline(always)]
    pub const fn plus(self, bytes: u32) -> Pa {
        Pa(self.0.wrapping_add(bytes))
    }
}
