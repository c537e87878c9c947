// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the kernel functions that free and allocate pages. Describes data of a page that remains in a cache or TLB.

use std::path::Path;

use watch::checker::{Kept, PageFunctions};

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

/// Returns the page functions of a kernel. The board's RAM begins at `ram_base`. Returns `None` if the kernel lacks a
/// symbol.
pub fn functions(
    symbols: &Symbols,
    vmlinux: Option<&Path>,
    ram_base: u32,
) -> Option<PageFunctions> {
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
