// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions by address.

/// A function longer than this, in bytes, is none: what is behind the last one of a kernel has no name.
const LONGEST: u32 = 0x1_0000;

/// A function of a kernel, or where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function(u32);

impl Function {
    /// User land.
    pub const USER: Function = Function(0);
    /// The kernel, where no function is known: its modules, for example.
    pub const OTHER: Function = Function(1);

    /// Number of a function, in the order of their addresses.
    pub fn number(self) -> Option<usize> {
        self.0.checked_sub(2).map(|n| n as usize)
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where functions begin, ascending.
#[derive(Clone, Debug, Default)]
pub struct Functions {
    starts: Vec<u32>,
    kernel: u32,
}

impl Functions {
    /// Functions that begin there, of a kernel whose addresses begin at `kernel`.
    pub fn new(mut starts: Vec<u32>, kernel: u32) -> Functions {
        starts.sort_unstable();
        starts.dedup();
        Functions { starts, kernel }
    }

    /// Functions, user land and the rest.
    pub(super) fn count(&self) -> usize {
        self.starts.len() + 2
    }

    /// The function at `pc`, and the addresses from which on it is for how many bytes.
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

    /// The function that an address is in.
    pub fn of(&self, pc: u32) -> Function {
        self.at(pc, pc < self.kernel).0
    }
}

/// Places that [`Recent`] has, a power of two.
const PLACES: usize = 1 << 13;

/// What [`Functions::at`] said of the addresses that execution came to lately: calls and returns come to the same ones.
#[derive(Clone)]
pub(super) struct Recent {
    places: Vec<(u32, (Function, u32, u32))>,
}

impl Recent {
    pub fn new() -> Recent {
        // An odd address is none of an instruction.
        let none = (1, (Function::OTHER, 0, 0));
        Recent {
            places: vec![none; PLACES],
        }
    }

    /// [`Functions::at`].
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
