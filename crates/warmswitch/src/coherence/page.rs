// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages that are freed and given: the kernel's functions for it, and what is left of them, in words.

use std::path::Path;

use watch::checker::{Kept, PageFunctions};

use supply::symbols::Symbols;
use supply::variables;

/// Linux mm/page_alloc.c: called with pages that are freed, and returning those that are given.
const FREED: &str = "free_unref_page_commit";
const FREED_SOME: &str = "free_one_page";
const GIVEN: &str = "get_page_from_freelist";
/// Where the first page's is (`CONFIG_FLATMEM`).
const MAP: &str = "mem_map";
/// Addresses of a kernel begin at a multiple of this.
const PAGE_OFFSET: u32 = 0xf000_0000;

/// What a kernel has of these, on a board whose RAM begins there; nothing when it does not have all.
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

/// What is left, before its address.
pub fn left(kept: Kept) -> &'static str {
    match kept {
        Kept::DirtyLine => "a dirty D-cache line is left at",
        Kept::Instructions => "an I-cache line is left at",
        Kept::Translation => "a TLB entry is left of",
    }
}
