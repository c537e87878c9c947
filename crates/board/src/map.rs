// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device map: the owner of each part of the physical address space.
//!
//! Chips pack several units into a page, at steps of 16 bytes. Such a page is split into granules of 16 bytes. Other
//! pages have a single owner.

use crate::spec::GRANULE;

const PAGE: u32 = 4096;

/// Owner of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    Nothing,
    Device(u16),
    Ignored(u16),
}

/// Owner of a page.
#[derive(Clone, Copy)]
enum Page {
    Whole(Region),
    /// Index of the page's granules in [`Map::split`].
    Split(u16),
}

/// The device map: 4096 sections of 1 MB. Sections in use are split into pages.
#[derive(Clone)]
pub(crate) struct Map {
    sections: Vec<u16>,
    pages: Vec<[Page; 256]>,
    split: Vec<[Region; (PAGE / GRANULE) as usize]>,
}

const EMPTY: u16 = u16::MAX;

impl Map {
    /// Makes an empty map.
    pub fn new() -> Map {
        Map {
            sections: vec![EMPTY; 4096],
            pages: Vec::new(),
            split: Vec::new(),
        }
    }

    /// Makes `region` the owner of `size` bytes from `base`. Both are multiples of [`GRANULE`], and the range ends
    /// within 4 GB.
    pub fn set(&mut self, base: u32, size: u32, region: Region) {
        let end = u64::from(base) + u64::from(size);
        let mut at = u64::from(base);
        while at < end {
            let page = (at >> 12) as u32;
            let page_end = (u64::from(page) + 1) << 12;
            let upto = end.min(page_end);
            if upto - at == u64::from(PAGE) {
                *self.page(page) = Page::Whole(region);
            } else {
                let first = (at as u32 % PAGE / GRANULE) as usize;
                let count = ((upto - at) / u64::from(GRANULE)) as usize;
                self.granules(page)[first..first + count].fill(region);
            }
            at = upto;
        }
    }

    fn page(&mut self, page: u32) -> &mut Page {
        let section = &mut self.sections[page as usize >> 8];
        if *section == EMPTY {
            *section = self.pages.len() as u16;
            self.pages.push([Page::Whole(Region::Nothing); 256]);
        }
        &mut self.pages[usize::from(*section)][page as usize & 255]
    }

    /// Returns the granules of a page, which is split if it is not yet.
    fn granules(&mut self, page: u32) -> &mut [Region] {
        let next = self.split.len();
        let found = self.page(page);
        let index = match *found {
            Page::Split(index) => usize::from(index),
            Page::Whole(region) => {
                *found = Page::Split(next as u16);
                self.split.push([region; (PAGE / GRANULE) as usize]);
                next
            }
        };
        &mut self.split[index]
    }

    /// Returns the owner of an address.
    pub fn at(&self, pa: u32) -> Region {
        match self.sections[(pa >> 20) as usize] {
            EMPTY => Region::Nothing,
            n => match self.pages[usize::from(n)][(pa >> 12) as usize & 255] {
                Page::Whole(region) => region,
                Page::Split(n) => self.split[usize::from(n)][(pa % PAGE / GRANULE) as usize],
            },
        }
    }

    /// Returns whether no address of a page has an owner.
    pub fn is_free(&self, page: u32) -> bool {
        let page = page * PAGE;
        let granules = (page..=page + (PAGE - 1)).step_by(GRANULE as usize);
        granules
            .into_iter()
            .all(|pa| self.at(pa) == Region::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_one_owner_or_is_split_into_granules() {
        let mut map = Map::new();
        map.set(0xffff_e000, 0x1000, Region::Device(1));
        map.set(0xffff_fd00, 0x10, Region::Device(2));
        map.set(0xffff_fd10, 0x10, Region::Device(3));
        map.set(0xffff_fff0, 0x10, Region::Ignored(4));
        for (pa, owner) in [
            (0xffff_dfff, Region::Nothing),
            (0xffff_e000, Region::Device(1)),
            (0xffff_efff, Region::Device(1)),
            (0xffff_fcff, Region::Nothing),
            (0xffff_fd0f, Region::Device(2)),
            (0xffff_fd10, Region::Device(3)),
            (0xffff_fd20, Region::Nothing),
            (0xffff_ffff, Region::Ignored(4)),
        ] {
            assert_eq!(map.at(pa), owner, "{pa:#x}");
        }
        assert!(map.is_free(0xf_fffd) && !map.is_free(0xf_fffe) && !map.is_free(0xf_ffff));
    }

    #[test]
    fn a_region_may_begin_and_end_inside_pages() {
        let mut map = Map::new();
        map.set(0x0030_0ff0, 0x1020, Region::Device(7));
        let owned = |pa| map.at(pa) == Region::Device(7);
        assert!(!owned(0x0030_0fef) && owned(0x0030_0ff0) && owned(0x0030_1fff));
        assert!(owned(0x0030_200f) && !owned(0x0030_2010));
    }

    #[test]
    fn a_whole_page_replaces_its_granules() {
        let mut map = Map::new();
        map.set(0x1010, 0x10, Region::Device(1));
        map.set(0x1000, 0x1000, Region::Device(2));
        assert_eq!(map.at(0x1014), Region::Device(2));
    }
}
