// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of a card: what was inserted, which never changes, and what the guest wrote over it.

use super::BLOCK;
use super::image::{Base, CHUNK, Image, Lost};
use arm::{Damaged, Saved, State};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes in a page, the unit of copy on write.
const PAGE: usize = 4096;
const PAGES_IN_CHUNK: u32 = (CHUNK / PAGE) as u32;
const BLOCKS_IN_PAGE: u32 = (PAGE / BLOCK) as u32;

static ZEROS: [u8; PAGE] = [0; PAGE];

/// The capacity is a multiple of this many bytes (CSD version 2.0).
const UNIT: u64 = 512 << 10;

/// Largest capacity of a high-capacity card.
const LARGEST: u64 = 32 << 30;

/// Number of written pages that a card keeps in memory.
const MOST_PAGES: usize = (2 << 30) / PAGE;

/// Reason why a content cannot be a card's. The text is written for users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CardError(pub String);

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
        Ok(Content(Arc::new(Base::empty(bytes))))
    }

    /// Makes the content of an image. Reads the whole image once, and parts of it again during the run.
    ///
    /// # Errors
    /// Fails when the image cannot be read, when no card has its size, or when it ends before a partition or file
    /// system in it does. The text names no file.
    pub fn of(image: impl Image + 'static) -> Result<Content, CardError> {
        check(image.bytes())?;
        Ok(Content(Arc::new(Base::of(Box::new(image))?)))
    }

    /// Returns the capacity in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Returns the hash of the content, or `None` for an empty card. It is a hash of the hashes of the content's parts.
    pub fn hash(&self) -> Option<[u8; 32]> {
        self.0.hash
    }

    /// Returns why the image cannot be read any more. The subject of the text is the image.
    pub fn lost(&self) -> Option<&str> {
        self.0.lost()
    }
}

/// Refuses a capacity that no card has.
fn check(bytes: u64) -> Result<(), CardError> {
    if (UNIT..=LARGEST).contains(&bytes) && bytes.is_multiple_of(UNIT) {
        return Ok(());
    }
    let what = format!(
        "a card cannot have {bytes} bytes: the capacity is a multiple of 512 KiB, up to 32 GiB"
    );
    // To cut an image off would lose its end.
    if bytes > LARGEST {
        return Err(CardError(format!("{what}. Use a smaller image")));
    }
    let fitting = bytes.div_ceil(UNIT).max(1) * (UNIT >> 10);
    Err(CardError(format!(
        "{what}. Make it {fitting} KiB with `truncate -s {fitting}K`"
    )))
}

/// Reason why a block is neither read nor written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is beyond the card's end.
    Beyond,
    /// The card has failed. [`Storage::trouble`] says why.
    Failed,
}

impl From<Lost> for Refused {
    fn from(_: Lost) -> Refused {
        Refused::Failed
    }
}

/// A page that the guest wrote or erased. `None` is a page of zeros, which takes no memory.
type Page = Option<Arc<[u8]>>;

/// The bytes of a card in a slot.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    base: Arc<Base>,
    written: BTreeMap<u32, Page>,
    /// Number of written pages that take memory.
    held: usize,
    /// Whether a write was refused because [`MOST_PAGES`] take memory.
    full: bool,
}

impl Storage {
    pub fn new(content: &Content) -> Storage {
        Storage {
            base: Arc::clone(&content.0),
            written: BTreeMap::new(),
            held: 0,
            full: false,
        }
    }

    pub fn bytes(&self) -> u64 {
        self.base.bytes
    }

    pub fn blocks(&self) -> u32 {
        (self.base.bytes / BLOCK as u64) as u32
    }

    /// Copies bytes of one page. `within` and the length lie in the page.
    fn read_page(&self, page: u32, within: usize, bytes: &mut [u8]) -> Result<(), Lost> {
        let length = bytes.len();
        match self.written.get(&page) {
            Some(Some(page)) => bytes.copy_from_slice(&page[within..within + length]),
            Some(None) => bytes.fill(0),
            None => match self.base.chunk(page / PAGES_IN_CHUNK)? {
                Some(chunk) => {
                    let at = (page % PAGES_IN_CHUNK) as usize * PAGE + within;
                    bytes.copy_from_slice(&chunk[at..at + length]);
                }
                None => bytes.fill(0),
            },
        }
        Ok(())
    }

    pub fn read(&self, offset: u64, bytes: &mut [u8]) {
        let mut rest = bytes;
        let mut at = offset;
        while !rest.is_empty() {
            let within = (at % PAGE as u64) as usize;
            let (part, behind) = rest.split_at_mut(rest.len().min(PAGE - within));
            let page = u32::try_from(at / PAGE as u64).ok();
            let done = page.map(|page| self.read_page(page, within, part));
            if !matches!(done, Some(Ok(()))) {
                part.fill(0);
            }
            at = at.saturating_add(part.len() as u64);
            rest = behind;
        }
    }

    /// Returns a block.
    pub fn block(&self, number: u32) -> Result<Vec<u8>, Refused> {
        if number >= self.blocks() {
            return Err(Refused::Beyond);
        }
        let mut bytes = vec![0; BLOCK];
        let within = (number % BLOCKS_IN_PAGE) as usize * BLOCK;
        self.read_page(number / BLOCKS_IN_PAGE, within, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns a page to write to.
    fn page_mut(&mut self, number: u32) -> Result<&mut Arc<[u8]>, Refused> {
        if !matches!(self.written.get(&number), Some(Some(_))) {
            if self.held >= MOST_PAGES {
                self.full = true;
                return Err(Refused::Failed);
            }
            let mut bytes = [0; PAGE];
            self.read_page(number, 0, &mut bytes)?;
            self.put(number, Some(Arc::from(bytes.as_slice())));
        }
        let page = self.written.get_mut(&number).and_then(Option::as_mut);
        page.ok_or(Refused::Failed)
    }

    /// Replaces a page, and counts the pages that take memory.
    fn put(&mut self, number: u32, page: Page) {
        self.held += usize::from(page.is_some());
        self.forget_one(number);
        self.written.insert(number, page);
    }

    fn forget_one(&mut self, number: u32) {
        if let Some(Some(_)) = self.written.remove(&number) {
            self.held -= 1;
        }
    }

    /// Writes a block of [`BLOCK`] bytes.
    pub fn write_block(&mut self, number: u32, bytes: &[u8]) -> Result<(), Refused> {
        if number >= self.blocks() || bytes.len() != BLOCK {
            return Err(Refused::Beyond);
        }
        let page = self.page_mut(number / BLOCKS_IN_PAGE)?;
        let within = (number % BLOCKS_IN_PAGE) as usize * BLOCK;
        Arc::make_mut(page)[within..within + BLOCK].copy_from_slice(bytes);
        Ok(())
    }

    /// Sets the blocks from `first` to `last` to zero. Both are on the card.
    pub fn erase(&mut self, first: u32, last: u32) -> Result<(), Refused> {
        let pages = first / BLOCKS_IN_PAGE..=last / BLOCKS_IN_PAGE;
        // Only pages that are not zero already need an entry.
        let chunks = pages.start() / PAGES_IN_CHUNK..=pages.end() / PAGES_IN_CHUNK;
        let of_chunk = |chunk: u32| chunk * PAGES_IN_CHUNK..(chunk + 1) * PAGES_IN_CHUNK;
        let base = self.base.used(chunks).flat_map(of_chunk);
        let mut used: Vec<u32> = base.filter(|page| pages.contains(page)).collect();
        used.extend(self.written.range(pages).map(|(n, _)| *n));
        used.sort_unstable();
        used.dedup();
        for page in used {
            let begin = page * BLOCKS_IN_PAGE;
            let end = begin + BLOCKS_IN_PAGE - 1;
            if first <= begin && end <= last {
                match self.base.has(page / PAGES_IN_CHUNK) {
                    true => self.put(page, None),
                    false => self.forget_one(page),
                }
                continue;
            }
            for block in begin.max(first)..=end.min(last) {
                self.write_block(block, &[0; BLOCK])?;
            }
        }
        Ok(())
    }

    pub fn written(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let pages = self.written.iter();
        pages.map(|(n, page)| {
            let bytes = page.as_deref().unwrap_or(&ZEROS);
            (u64::from(*n) * PAGE as u64, bytes)
        })
    }

    /// Returns why the card has failed. The subject of the text is the card's file.
    pub fn trouble(&self) -> Option<String> {
        if let Some(lost) = self.base.lost() {
            return Some(lost.to_owned());
        }
        let most = (MOST_PAGES * PAGE) >> 30;
        self.full.then(|| {
            format!(
                "is not changed: the guest wrote more than the {most} GiB that a run keeps in memory"
            )
        })
    }

    pub fn save(&self, to: &mut Vec<u8>) {
        self.base.bytes.save(to);
        self.base.hash.map(Vec::from).save(to);
        self.full.save(to);
        self.written.len().save(to);
        for (number, page) in &self.written {
            number.save(to);
            page.is_some().save(to);
            to.extend_from_slice(page.as_deref().unwrap_or_default());
        }
    }

    /// Restores a card. `inserted` is the card in the slot. It must have the content that the saved card had, unless
    /// that was empty.
    pub fn restored(inserted: Option<Storage>, from: &mut Saved<'_>) -> Result<Storage, Damaged> {
        let bytes = from.value()?;
        let hash: Option<Vec<u8>> = from.value()?;
        let content = match (hash, inserted) {
            (None, _) => {
                let empty = Content::empty(bytes);
                empty.map_err(|_| Damaged("a card has a capacity that no card has"))?
            }
            (Some(hash), Some(card))
                if card.base.hash.is_some_and(|other| other[..] == hash[..])
                    && card.base.bytes == bytes =>
            {
                Content(card.base)
            }
            _ => return Err(Damaged("the card that it had in its slot is missing")),
        };
        let mut storage = Storage::new(&content);
        storage.full = from.value()?;
        for _ in 0..from.value::<usize>()? {
            let number: u32 = from.value()?;
            if u64::from(number) >= bytes / PAGE as u64 {
                return Err(Damaged("a card's page is beyond its end"));
            }
            let page = match from.value()? {
                true => Some(Arc::from(from.take(PAGE)?)),
                false => None,
            };
            storage.put(number, page);
        }
        Ok(storage)
    }
}
