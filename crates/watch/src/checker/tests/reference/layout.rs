// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory layout of the programs: translation tables at the start, instructions, and data that can be executed.

use super::program::INSTRUCTIONS;
use std::sync::{Arc, OnceLock};

/// Bytes of RAM, from address 0.
pub const RAM: u32 = 0x4_0000;
/// Two first-level tables.
pub const TABLES: [u32; 2] = [0x4000, 0x8000];
/// Two coarse tables and a fine table.
pub const COARSE: [u32; 2] = [0xc000, 0xc400];
pub const FINE: u32 = 0xd000;
/// Address of the instructions in [`INSTRUCTIONS`].
pub const CODE: u32 = 0x1_0000;
/// Address of the data pages, and their number.
pub const DATA: u32 = 0x2_0000;
pub const PAGES: u32 = 4;

/// Five mappings of all RAM: uncached, bufferable, write-through, and two that are write-back.
pub const SECTIONS: [(u32, u32); 5] = [
    (0x4000_0000, 0),
    (0x5000_0000, 1),
    (0x6000_0000, 2),
    (0x7000_0000, 3),
    (0x8000_0000, 3),
];
/// Virtual address of the code. Only the code uses these addresses.
pub const CODE_VA: u32 = 0xc000_0000 + CODE;
/// MVAs of pages that programs remap. The first three belong to FCSE processes.
pub const WINDOWS: [u32; 5] = [0, 0x0200_0000, 0x0400_0000, 0x9000_0000, 0x9100_0000];
/// Control register with MMU and caches on, without the bits that the core always sets.
pub const CONTROL: u32 = 0x1005;

/// Returns a word that is harmless as code. As A32 code, it moves a constant to r2 or r3. As Thumb code, its halves are
/// a move or an addition of a constant to r0, and a branch.
pub fn data_word(n: u32) -> u32 {
    0xe3a0_2000 | (n & 0x100) << 12 | (n & 0x200) << 3 | n & 0xff
}

/// Returns the descriptor of a section that maps the first megabyte.
pub fn section(ap: u32, domain: u32, cb: u32) -> u32 {
    ap << 10 | domain << 5 | 0x10 | cb << 2 | 2
}

/// Returns the first-level descriptor of a window.
pub fn first_level(window: usize, domain: u32) -> u32 {
    match window {
        4 => FINE | domain << 5 | 0x13,
        n => COARSE[n & 1] | domain << 5 | 0x11,
    }
}

/// Returns the descriptor of a small page of data.
pub fn small(page: u32, ap: u32, cb: u32) -> u32 {
    (DATA + 0x1000 * page) | (ap * 0x550) | cb << 2 | 2
}

/// Returns the descriptor of a tiny page of data.
pub fn tiny(quarter: u32, ap: u32, cb: u32) -> u32 {
    (DATA + 0x400 * quarter) | ap << 4 | cb << 2 | 3
}

/// Returns the contents of RAM at the start.
pub fn ram() -> Arc<Vec<u32>> {
    static WORDS: OnceLock<Arc<Vec<u32>>> = OnceLock::new();
    WORDS.get_or_init(|| Arc::new(make())).clone()
}

fn make() -> Vec<u32> {
    let mut words = vec![0; RAM as usize / 4];
    for table in TABLES {
        let mut first = |va: u32, descriptor| {
            words[(table / 4 + (va >> 20)) as usize] = descriptor;
        };
        for (va, cb) in SECTIONS {
            first(va, section(3, 0, cb));
        }
        first(CODE_VA, section(3, 0, 3));
        for (n, va) in WINDOWS.into_iter().enumerate() {
            first(va, first_level(n, u32::from(n > 2)));
        }
    }
    let index = DATA >> 12;
    for (n, table) in COARSE.into_iter().enumerate() {
        for page in 0..PAGES {
            let at = table / 4 + index + page;
            words[at as usize] = small((page + n as u32) % PAGES, 3, 3);
        }
    }
    for quarter in 0..4 * PAGES {
        let at = FINE / 4 + 4 * index + quarter;
        words[at as usize] = tiny(quarter, 3, 3);
    }
    for (n, (_, instruction)) in INSTRUCTIONS.into_iter().enumerate() {
        words[CODE as usize / 4 + n] = instruction;
    }
    for n in 0..PAGES * 0x400 {
        words[(DATA / 4 + n) as usize] = data_word(n % 7);
    }
    words
}
