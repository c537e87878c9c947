// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of a card: what was inserted, which never changes, and what the guest wrote over it.

use super::{BLOCK, layout};
use arm::{Damaged, Saved, State};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Bytes in a page, the unit of copy on write.
const PAGE: usize = 4096;

/// The capacity is a multiple of this many bytes (CSD version 2.0).
const UNIT: u64 = 512 << 10;

/// Largest capacity of a high-capacity card.
const LARGEST: u64 = 32 << 30;

/// Bytes that are read from a file at a time.
const CHUNK: usize = 256 * PAGE;

/// Reason why a content cannot be a card's. The text is written for users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CardError(pub String);

#[derive(Debug)]
struct Base {
    bytes: u64,
    /// Hash of all bytes; `None` for an empty card.
    hash: Option<[u8; 32]>,
    /// The pages that are not all zero.
    pages: BTreeMap<u32, Box<[u8]>>,
}

/// What is on a card when it is inserted. Copies share the memory.
#[derive(Clone, Debug)]
pub struct Content(Arc<Base>);

impl Content {
    /// Makes the content of an empty card: all bytes are zero.
    ///
    /// # Errors
    /// Fails when no card has this capacity.
    pub fn empty(bytes: u64) -> Result<Content, CardError> {
        check(bytes)?;
        Ok(Content(Arc::new(Base {
            bytes,
            hash: None,
            pages: BTreeMap::new(),
        })))
    }

    /// Reads the content from a file. The model keeps the content in memory and does not use the file again.
    ///
    /// # Errors
    /// Fails when the file cannot be read, when no card has the file's size, or when the file ends before a partition
    /// or file system in it does. The text names the file.
    pub fn from_file(path: &Path) -> Result<Content, CardError> {
        let told = |why: String| CardError(format!("{}: {why}", path.display()));
        let file = File::open(path).map_err(|e| told(e.to_string()))?;
        let about = file.metadata().map_err(|e| told(e.to_string()))?;
        if !about.is_file() {
            return Err(told("it is not a file".to_owned()));
        }
        Content::from_reader(file, about.len()).map_err(|e| told(e.0))
    }

    /// Reads the content, which has `bytes` bytes.
    ///
    /// # Errors
    /// Fails as [`Content::from_file`] does. The text names no file.
    pub fn from_reader(mut from: impl Read, bytes: u64) -> Result<Content, CardError> {
        check(bytes)?;
        let mut hasher = blake3::Hasher::new();
        let mut pages = BTreeMap::new();
        let mut chunk = vec![0; CHUNK];
        let mut at = 0;
        while at < bytes {
            let part = &mut chunk[..usize::try_from(bytes - at).map_or(CHUNK, |n| n.min(CHUNK))];
            from.read_exact(part)
                .map_err(|e| CardError(format!("reading it at byte {at}: {e}")))?;
            if at == 0 {
                layout::check(part, bytes)?;
            }
            hasher.update(part);
            for (page, number) in part.chunks(PAGE).zip((at / PAGE as u64) as u32..) {
                if page.iter().any(|byte| *byte != 0) {
                    pages.insert(number, page.into());
                }
            }
            at += part.len() as u64;
        }
        let hash = Some(*hasher.finalize().as_bytes());
        Ok(Content(Arc::new(Base { bytes, hash, pages })))
    }

    /// Returns the capacity in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Returns the hash of the content, or `None` for an empty card.
    pub fn hash(&self) -> Option<[u8; 32]> {
        self.0.hash
    }
}

/// Refuses a capacity that no card has.
fn check(bytes: u64) -> Result<(), CardError> {
    if (UNIT..=LARGEST).contains(&bytes) && bytes.is_multiple_of(UNIT) {
        return Ok(());
    }
    let fitting = bytes.div_ceil(UNIT).clamp(1, LARGEST / UNIT) * (UNIT >> 10);
    Err(CardError(format!(
        "a card cannot have {bytes} bytes: the capacity is a multiple of 512 KiB, up to 32 GiB. \
         Make it {fitting} KiB with `truncate -s {fitting}K`"
    )))
}

/// The bytes of a card in a slot.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    base: Arc<Base>,
    /// Pages that the guest wrote or erased.
    written: BTreeMap<u32, Arc<[u8]>>,
}

impl Storage {
    pub fn new(content: &Content) -> Storage {
        Storage {
            base: Arc::clone(&content.0),
            written: BTreeMap::new(),
        }
    }

    pub fn bytes(&self) -> u64 {
        self.base.bytes
    }

    pub fn blocks(&self) -> u32 {
        (self.base.bytes / BLOCK as u64) as u32
    }

    fn page(&self, number: u32) -> Option<&[u8]> {
        match self.written.get(&number) {
            Some(page) => Some(page),
            None => self.base.pages.get(&number).map(|page| &**page),
        }
    }

    pub fn read(&self, offset: u64, bytes: &mut [u8]) {
        let mut rest = bytes;
        let mut at = offset;
        while !rest.is_empty() {
            let within = (at % PAGE as u64) as usize;
            let (part, behind) = rest.split_at_mut(rest.len().min(PAGE - within));
            let page = u32::try_from(at / PAGE as u64).ok();
            match page.and_then(|page| self.page(page)) {
                Some(page) => part.copy_from_slice(&page[within..within + part.len()]),
                None => part.fill(0),
            }
            at = at.saturating_add(part.len() as u64);
            rest = behind;
        }
    }

    /// Returns a block. Returns `None` beyond the card's end.
    pub fn block(&self, number: u32) -> Option<Vec<u8>> {
        let mut bytes = vec![0; BLOCK];
        (number < self.blocks()).then(|| {
            self.read(u64::from(number) * BLOCK as u64, &mut bytes);
            bytes
        })
    }

    /// Writes a block of [`BLOCK`] bytes. Returns false beyond the card's end.
    pub fn write_block(&mut self, number: u32, bytes: &[u8]) -> bool {
        if number >= self.blocks() || bytes.len() != BLOCK {
            return false;
        }
        let in_page = (PAGE / BLOCK) as u32;
        let page = number / in_page;
        let base = &self.base.pages;
        let page = self.written.entry(page).or_insert_with(|| {
            let base = base.get(&page).map(|page| Arc::from(&**page));
            base.unwrap_or_else(|| Arc::from([0; PAGE].as_slice()))
        });
        let within = (number % in_page) as usize * BLOCK;
        Arc::make_mut(page)[within..within + BLOCK].copy_from_slice(bytes);
        true
    }

    /// Sets the blocks from `first` to `last` to zero. Both are on the card.
    pub fn erase(&mut self, first: u32, last: u32) {
        let in_page = (PAGE / BLOCK) as u32;
        let ends = |page: u32| (page * in_page, page * in_page + in_page - 1);
        let pages = first / in_page..=last / in_page;
        // Only pages that are not zero already need an entry.
        let base = self.base.pages.range(pages.clone()).map(|(n, _)| *n);
        let mut used: Vec<u32> = base.collect();
        used.extend(self.written.range(pages).map(|(n, _)| *n));
        used.sort_unstable();
        used.dedup();
        let zero: Arc<[u8]> = Arc::from([0; PAGE].as_slice());
        for page in used {
            let (begin, end) = ends(page);
            if first <= begin && end <= last {
                match self.base.pages.contains_key(&page) {
                    true => self.written.insert(page, Arc::clone(&zero)),
                    false => self.written.remove(&page),
                };
                continue;
            }
            for block in begin.max(first)..=end.min(last) {
                self.write_block(block, &[0; BLOCK]);
            }
        }
    }

    pub fn written(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let pages = self.written.iter();
        pages.map(|(n, page)| (u64::from(*n) * PAGE as u64, &**page))
    }

    pub fn save(&self, to: &mut Vec<u8>) {
        self.base.bytes.save(to);
        self.base.hash.map(Vec::from).save(to);
        self.written.len().save(to);
        for (number, page) in &self.written {
            number.save(to);
            to.extend_from_slice(page);
        }
    }

    /// Restores a card. `inserted` is the card in the slot. It must have the content that the saved card had, unless
    /// that was empty.
    pub fn restored(inserted: Option<Storage>, from: &mut Saved<'_>) -> Result<Storage, Damaged> {
        let bytes = from.value()?;
        let hash: Option<Vec<u8>> = from.value()?;
        let base = match (hash, inserted) {
            (None, _) => {
                let empty = Content::empty(bytes);
                empty
                    .map_err(|_| Damaged("a card has a capacity that no card has"))?
                    .0
            }
            (Some(hash), Some(card))
                if card.base.hash.is_some_and(|other| other[..] == hash[..])
                    && card.base.bytes == bytes =>
            {
                card.base
            }
            _ => return Err(Damaged("the card that it had in its slot is missing")),
        };
        let mut written = BTreeMap::new();
        for _ in 0..from.value::<usize>()? {
            let number: u32 = from.value()?;
            if u64::from(number) >= base.bytes / PAGE as u64 {
                return Err(Damaged("a card's page is beyond its end"));
            }
            written.insert(number, Arc::from(from.take(PAGE)?));
        }
        Ok(Storage { base, written })
    }
}
