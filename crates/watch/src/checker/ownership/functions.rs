// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of Linux's DMA interface, and the calls of them that have not returned.

use super::Direction;

/// A function of Linux's DMA interface through which the checker follows buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaCall {
    /// `dma_map_page_attrs(dev, page, offset, size, dir, attrs)`, which returns the buffer's address.
    MapPage,
    /// `dma_unmap_page_attrs(dev, address, size, dir, ...)`.
    UnmapPage,
    /// `dma_map_sg_attrs(dev, scatterlist, entries, dir, attrs)`, which returns a positive number.
    MapSg,
    /// `dma_unmap_sg_attrs(dev, scatterlist, entries, dir, ...)`.
    UnmapSg,
    /// `dma_sync_single_for_cpu(dev, address, size, ...)`.
    SyncForCpu,
    /// `dma_sync_single_for_device(dev, address, size, ...)`.
    SyncForDevice,
    /// `dma_sync_sg_for_cpu(dev, scatterlist, entries, ...)`.
    SyncSgForCpu,
    /// `dma_sync_sg_for_device(dev, scatterlist, entries, ...)`.
    SyncSgForDevice,
    /// `dma_alloc_attrs(dev, size, handle, ...)`, which writes the buffer's address to `*handle`.
    Alloc,
    /// `dma_free_attrs(dev, size, virtual address, address, ...)`.
    Free,
}

impl DmaCall {
    /// All functions.
    pub const ALL: [DmaCall; 10] = [
        DmaCall::MapPage,
        DmaCall::UnmapPage,
        DmaCall::MapSg,
        DmaCall::UnmapSg,
        DmaCall::SyncForCpu,
        DmaCall::SyncForDevice,
        DmaCall::SyncSgForCpu,
        DmaCall::SyncSgForDevice,
        DmaCall::Alloc,
        DmaCall::Free,
    ];
}

/// Entries of the functions, in the order of [`DmaCall::ALL`]. `None` for a function that the kernel lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmaFunctions(pub [Option<u32>; DmaCall::ALL.len()]);

/// Maximum number of unfinished calls. If there are more, a new call replaces the oldest.
pub(super) const UNFINISHED: usize = 32;
/// Attribute of a mapping whose driver does the maintenance itself (Linux, DMA_ATTR_SKIP_CPU_SYNC).
const SKIP_CPU_SYNC: u32 = 1 << 5;
/// Number of bits in [`Entries::filter`].
const FILTER: usize = 1 << 12;

/// A call whose result is needed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unfinished {
    pub call: DmaCall,
    /// Return address, and stack pointer at the return.
    pub back: u32,
    pub sp: u32,
    pub arguments: [u32; 4],
    pub direction: Direction,
    /// Whether the driver does the maintenance itself.
    pub skips_sync: bool,
}

impl Unfinished {
    /// Returns the call that begins with these registers and words on the stack. Returns `None` if the direction is
    /// invalid.
    pub fn new(call: DmaCall, registers: &[u32; 16], stack: [u32; 2]) -> Option<Unfinished> {
        let (direction, attributes) = match call {
            DmaCall::MapPage => (stack[0], stack[1]),
            DmaCall::MapSg => (registers[3], stack[0]),
            _ => (0, 0),
        };
        Some(Unfinished {
            call,
            back: registers[14],
            sp: registers[13],
            arguments: [registers[0], registers[1], registers[2], registers[3]],
            direction: Direction::of(direction)?,
            skips_sync: attributes & SKIP_CPU_SYNC != 0,
        })
    }
}

/// The functions of a kernel, and the unfinished calls.
#[derive(Clone)]
pub(super) struct Entries {
    known: Option<DmaFunctions>,
    /// From all tasks and interrupts.
    unfinished: Vec<Unfinished>,
    /// Bloom filter of the addresses at which a call begins or ends.
    filter: [u64; FILTER / 64],
}

impl Default for Entries {
    fn default() -> Entries {
        Entries {
            known: None,
            unfinished: Vec::new(),
            filter: [0; FILTER / 64],
        }
    }
}

/// Returns the index and the bit of an address in [`Entries::filter`].
#[inline(always)]
fn bit(pc: u32) -> (usize, u64) {
    let n = (pc >> 2) as usize % FILTER;
    (n / 64, 1 << (n % 64))
}

impl Entries {
    pub fn follow(&mut self, known: DmaFunctions) {
        self.known = Some(known);
        self.find_filter();
    }

    pub fn are_known(&self) -> bool {
        self.known.is_some()
    }

    /// Returns whether a call may begin or end here.
    #[inline(always)]
    pub fn may_be_at(&self, pc: u32) -> bool {
        let (index, bit) = bit(pc);
        self.filter[index] & bit != 0
    }

    /// Returns the function that begins here.
    pub fn at(&self, pc: u32) -> Option<DmaCall> {
        let entries = self.known?.0;
        let at = entries.iter().position(|entry| *entry == Some(pc))?;
        DmaCall::ALL.get(at).copied()
    }

    pub fn begins(&mut self, call: Unfinished) {
        // An earlier call with this stack pointer is over.
        self.unfinished.retain(|other| other.sp != call.sp);
        if self.unfinished.len() == UNFINISHED {
            self.unfinished.remove(0);
        }
        self.unfinished.push(call);
        self.find_filter();
    }

    /// Ends the call that returns here, and returns it.
    pub fn ends(&mut self, pc: u32, sp: u32) -> Option<Unfinished> {
        let is = |call: &Unfinished| (call.back, call.sp) == (pc, sp);
        let at = self.unfinished.iter().rposition(is)?;
        let call = self.unfinished.remove(at);
        self.find_filter();
        Some(call)
    }

    fn find_filter(&mut self) {
        self.filter = [0; FILTER / 64];
        let known = self.known.iter().flat_map(|known| known.0).flatten();
        let returns = self.unfinished.iter().map(|call| call.back);
        for pc in known.chain(returns) {
            let (index, bit) = bit(pc);
            self.filter[index] |= bit;
        }
    }

    #[cfg(test)]
    pub fn unfinished(&self) -> usize {
        self.unfinished.len()
    }
}
