// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device map: the owner of each page of the physical address space.

use crate::spec::PAGE;

/// Owner of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    Nothing,
    Device(u16),
    Ignored(u16),
}

/// The device map: 4096 sections of 1 MB. Sections in use are split into pages.
#[derive(Clone)]
pub(crate) struct Map {
    sections: Vec<u16>,
    pages: Vec<[Region; 256]>,
}

const EMPTY: u16 = u16::MAX;

impl Map {
    /// Makes an empty map.
    pub fn new() -> Map {
        Map {
            sections: vec![EMPTY; 4096],
            pages: Vec::new(),
        }
    }

    /// Makes `region` the owner of `size` bytes from `base`. Both are multiples of the page size.
    pub fn set(&mut self, base: u32, size: u32, region: Region) {
        for page in base / PAGE..base / PAGE + size / PAGE {
            let section = &mut self.sections[page as usize >> 8];
            if *section == EMPTY {
                *section = self.pages.len() as u16;
                self.pages.push([Region::Nothing; 256]);
            }
            self.pages[usize::from(*section)][page as usize & 255] = region;
        }
    }

    /// Returns the owner of an address.
    pub fn at(&self, pa: u32) -> Region {
        match self.sections[(pa >> 20) as usize] {
            EMPTY => Region::Nothing,
            n => self.pages[usize::from(n)][(pa >> 12) as usize & 255],
        }
    }
}
