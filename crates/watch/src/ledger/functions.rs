// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions by address.

/// Maximum length of a function, in bytes. The last function of a kernel has no successor that ends it, so this length
/// ends it. Addresses beyond belong to no function.
const LONGEST: u32 = 0x1_0000;

/// A function of a kernel, or code without a known function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function(u32);

impl Function {
    /// User land.
    pub const USER: Function = Function(0);
    /// Kernel code without a known function, for instance in modules.
    pub const OTHER: Function = Function(1);

    /// Returns the number of a function, in the order of addresses. Returns `None` for code without a function.
    pub fn number(self) -> Option<usize> {
        self.0.checked_sub(2).map(|n| n as usize)
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Start addresses of functions, ascending.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    starts: Vec<u32>,
    kernel: u32,
}

impl Functions {
    /// Returns the functions at these start addresses, in a kernel that begins at address `kernel`.
    pub fn new(mut starts: Vec<u32>, kernel: u32) -> Functions {
        starts.sort_unstable();
        starts.dedup();
        Functions { starts, kernel }
    }

    /// Returns the number of different [`Function`]s, including user land and kernel code without a function.
    pub(super) fn count(&self) -> usize {
        self.starts.len() + 2
    }

    /// Returns the function at `pc`, with its start address and length in bytes.
    pub(super) fn at(&self, pc: u32, user: bool) -> (Function, u32, u32) {
        if user {
            let bytes = if pc < self.kernel { self.kernel } else { 0 };
            return (Function::USER, 0, bytes);
        }
        let behind = self.starts.partition_point(|start| *start <= pc);
        let next = self.starts.get(behind).copied().unwrap_or(u32::MAX);
        let Some(start) = behind.checked_sub(1).map(|n| self.starts[n]) else {
            return (Function::OTHER, pc, 0);
        };
        let bytes = (next - start).min(LONGEST);
        match pc - start < bytes {
            true => (Function(behind as u32 + 1), start, bytes),
            false => (Function::OTHER, pc, 0),
        }
    }

    /// Returns the function that contains an address.
    pub fn of(&self, pc: u32) -> Function {
        self.at(pc, pc < self.kernel).0
    }
}

/// Number of slots of [`Recent`], a power of two.
const PLACES: usize = 1 << 13;

/// A cache of [`Functions::at`]. Calls and returns reach the same addresses again and again.
#[derive(Clone)]
pub(super) struct Recent {
    places: Vec<(u32, (Function, u32, u32))>,
}

impl Recent {
    pub fn new() -> Recent {
        // No instruction has an odd address.
        let none = (1, (Function::OTHER, 0, 0));
        Recent {
            places: vec![none; PLACES],
        }
    }

    /// Returns [`Functions::at`] of an address.
    #[inline]
    pub fn at(&mut self, functions: &Functions, pc: u32, user: bool) -> (Function, u32, u32) {
        if user {
            return functions.at(pc, true);
        }
        let place = &mut self.places[(pc >> 2 ^ pc >> 15) as usize & (PLACES - 1)];
        if place.0 != pc {
            *place = (pc, functions.at(pc, false));
        }
        place.1
    }
}
