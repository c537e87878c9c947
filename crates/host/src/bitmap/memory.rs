// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of the algorithms: bitmaps, and the count of touched cache lines.

use std::collections::BTreeSet;
use std::ops::Range;

/// Number of ports of an x86 machine.
pub const PORTS: usize = 65536;
/// Size of a bitmap in bytes.
pub const BYTES: usize = PORTS / 8;
/// Size of a cache line in bytes, on every x86 processor since 2001.
const LINE_BYTES: usize = 64;

/// An area of memory with its own cache lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    /// Base, owner, sequence number and length of the bitmap in the TSS.
    TssHead,
    /// The bitmap of the TSS.
    TssBitmap,
    /// The fields for the bitmap in a task's structure.
    Task(usize),
    /// The bitmap with this number. Its length and sequence number follow its bits, at offset `BYTES`.
    Bitmap(usize),
}

/// Receives every access to memory that a kernel would make.
pub trait Lines {
    /// Notes that these bytes are read or written.
    fn touch(&mut self, area: Area, bytes: Range<usize>);
}

/// Counts nothing, for measurements of time.
#[derive(Default)]
pub struct Uncounted;

impl Lines for Uncounted {
    #[inline(always)]
    fn touch(&mut self, _area: Area, _bytes: Range<usize>) {}
}

/// The different lines touched since the last call of [`Counted::take`].
#[derive(Default)]
pub struct Counted(BTreeSet<(Area, usize)>);

impl Lines for Counted {
    fn touch(&mut self, area: Area, bytes: Range<usize>) {
        if !bytes.is_empty() {
            let lines = bytes.start / LINE_BYTES..=(bytes.end - 1) / LINE_BYTES;
            self.0.extend(lines.map(|line| (area, line)));
        }
    }
}

impl Counted {
    /// Returns the number of touched lines and starts again at 0.
    pub fn take(&mut self) -> usize {
        std::mem::take(&mut self.0).len()
    }
}

/// An I/O permission bitmap. A set bit forbids its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap(Box<[u8; BYTES]>);

impl Default for Bitmap {
    fn default() -> Bitmap {
        Bitmap::new()
    }
}

impl Bitmap {
    /// Makes a bitmap that forbids every port.
    pub fn new() -> Bitmap {
        Bitmap(Box::new([0xff; BYTES]))
    }

    /// Permits or forbids ports.
    pub fn set(&mut self, ports: Range<usize>, permit: bool) {
        // Whole bytes are set at once. The bits before and after them are set one by one.
        let whole = ports.start.div_ceil(8)..ports.end / 8;
        if whole.start >= whole.end {
            ports.for_each(|port| self.set_bit(port, permit));
            return;
        }
        (ports.start..whole.start * 8).for_each(|port| self.set_bit(port, permit));
        (whole.end * 8..ports.end).for_each(|port| self.set_bit(port, permit));
        self.0[whole].fill(if permit { 0 } else { 0xff });
    }

    fn set_bit(&mut self, port: usize, permit: bool) {
        let bit = 1 << (port % 8);
        match permit {
            true => self.0[port / 8] &= !bit,
            false => self.0[port / 8] |= bit,
        }
    }

    /// Returns whether the port is permitted.
    pub fn permits(&self, port: usize) -> bool {
        self.0[port / 8] & 1 << (port % 8) == 0
    }

    /// Returns the number of bytes up to the last byte that permits a port. The number is rounded up to words of 8
    /// bytes, because kernels copy such words.
    pub fn used(&self) -> usize {
        const NONE: [u8; BYTES] = [0xff; BYTES];
        let (mut from, mut to) = (0, BYTES / 8);
        // No word from `to` on permits a port.
        while from < to {
            let middle = (from + to) / 2;
            if self.0[middle * 8..] == NONE[middle * 8..] {
                to = middle;
            } else {
                from = middle + 1;
            }
        }
        to * 8
    }

    /// Copies the first bytes of another bitmap.
    pub fn copy(&mut self, from: &Bitmap, bytes: usize) {
        self.0[..bytes].copy_from_slice(&from.0[..bytes]);
    }

    /// Forbids all ports of these bytes.
    pub fn forbid(&mut self, bytes: Range<usize>) {
        self.0[bytes].fill(0xff);
    }
}
