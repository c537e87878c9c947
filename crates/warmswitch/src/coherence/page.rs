// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the kernel functions that move pages and DMA buffers. Describes data of a page that remains in a cache or TLB.

use std::path::Path;

use watch::checker::{DmaCall, DmaFunctions, Kept, KernelFunctions, PageFunctions};

use supply::symbols::Symbols;
use supply::variables;

/// Functions in Linux' mm/page_alloc.c. The first two receive the pages to free. The last returns allocated pages.
const FREED: &str = "free_unref_page_commit";
const FREED_SOME: &str = "free_one_page";
const GIVEN: &str = "get_page_from_freelist";
/// Variable with the address of the first `struct page` (`CONFIG_FLATMEM`).
const MAP: &str = "mem_map";
/// Mask for the start of the kernel's addresses (`CONFIG_PAGE_OFFSET`).
const PAGE_OFFSET: u32 = 0xf000_0000;

/// Returns the functions of a kernel that the checker follows. The board's RAM begins at `ram_base`.
pub fn functions(symbols: &Symbols, vmlinux: Option<&Path>, ram_base: u32) -> KernelFunctions {
    KernelFunctions {
        pages: of_pages(symbols, vmlinux, ram_base),
        buffers: of_buffers(symbols),
    }
}

/// Returns the names of a function of Linux's DMA interface. The first that the kernel has is followed, because it is
/// called by the others.
fn names(call: DmaCall) -> &'static [&'static str] {
    match call {
        DmaCall::MapPage => &["dma_map_page_attrs"],
        DmaCall::UnmapPage => &["dma_unmap_page_attrs"],
        DmaCall::MapSg => &["__dma_map_sg_attrs", "dma_map_sg_attrs"],
        DmaCall::UnmapSg => &["dma_unmap_sg_attrs"],
        DmaCall::SyncForCpu => &["__dma_sync_single_for_cpu", "dma_sync_single_for_cpu"],
        DmaCall::SyncForDevice => &["__dma_sync_single_for_device", "dma_sync_single_for_device"],
        DmaCall::SyncSgForCpu => &["__dma_sync_sg_for_cpu", "dma_sync_sg_for_cpu"],
        DmaCall::SyncSgForDevice => &["__dma_sync_sg_for_device", "dma_sync_sg_for_device"],
        DmaCall::Alloc => &["dma_alloc_attrs"],
        DmaCall::Free => &["dma_free_attrs"],
    }
}

/// Returns the functions that give buffers to devices. Returns `None` if the kernel lacks one. A kernel without all
/// functions would give wrong reports.
fn of_buffers(symbols: &Symbols) -> Option<DmaFunctions> {
    let entries =
        DmaCall::ALL.map(|call| names(call).iter().find_map(|name| symbols.address(name)));
    entries
        .iter()
        .all(Option::is_some)
        .then_some(DmaFunctions(entries))
}

/// Returns the functions that free and allocate pages. Returns `None` if the kernel lacks a symbol.
fn of_pages(symbols: &Symbols, vmlinux: Option<&Path>, ram_base: u32) -> Option<PageFunctions> {
    let map = variables::of(vmlinux?, MAP)?.address;
    let offset = symbols.first()? & PAGE_OFFSET;
    Some(PageFunctions {
        freed: symbols.address(FREED)?,
        freed_some: symbols.address(FREED_SOME)?,
        given: symbols.address(GIVEN)?,
        map: map.wrapping_sub(offset).wrapping_add(ram_base),
        kernel: symbols.kernel(),
    })
}

/// Describes the data of a page that remains in a cache or TLB. The caller appends the address.
pub fn left(kept: Kept) -> &'static str {
    match kept {
        Kept::DirtyLine => "a dirty D-cache line is left at",
        Kept::Instructions => "an I-cache line is left at",
        Kept::Translation => "a TLB entry is left for",
    }
}
