// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is on a card before the run. The bytes stay in their file. The model reads all bytes once and keeps a hash of
//! each chunk. During the run, it reads chunks again and compares their hashes, so the guest reads what was there
//! before the run, or the card fails.

use super::content::CardError;
use super::layout;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Bytes in a chunk, the unit of reading. A capacity is a multiple of it.
pub(super) const CHUNK: usize = 64 << 10;

/// Number of chunks that stay in memory.
const RECENT: usize = 64;

/// The bytes of a card, in a file or in memory.
pub trait Image: Debug + Send + Sync {
    /// Returns the number of bytes.
    fn bytes(&self) -> u64;

    /// Reads bytes from offset `at` on.
    ///
    /// # Errors
    /// Fails when the bytes cannot be read or are beyond the end.
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Returns the offset of the next byte that may not be zero, from `at` on.
    fn next_data(&self, at: u64) -> u64 {
        at
    }
}

impl Image for Vec<u8> {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(at).ok().and_then(|at| self.get(at..));
        let from = from.and_then(|rest| rest.get(..bytes.len()));
        bytes.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// The content cannot be read any more. [`Base::lost`] says why.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost;

/// A content with the hashes of its chunks.
#[derive(Debug)]
pub(super) struct Base {
    pub bytes: u64,
    /// Hash of all bytes; `None` for an empty card.
    pub hash: Option<[u8; 32]>,
    /// Hashes of the chunks that are not all zero.
    chunks: BTreeMap<u32, [u8; 32]>,
    image: Option<Box<dyn Image>>,
    /// Chunks that were read last. They are equal to those in the image, so no result depends on them.
    recent: Mutex<VecDeque<(u32, Arc<[u8]>)>>,
    lost: OnceLock<String>,
}

impl Base {
    /// Returns a content whose bytes are all zero.
    pub fn empty(bytes: u64) -> Base {
        Base {
            bytes,
            hash: None,
            chunks: BTreeMap::new(),
            image: None,
            recent: Mutex::default(),
            lost: OnceLock::new(),
        }
    }

    /// Reads all bytes of an image, whose size a card can have.
    pub fn of(image: Box<dyn Image>) -> Result<Base, CardError> {
        let bytes = image.bytes();
        let mut base = Base::empty(bytes);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&bytes.to_le_bytes());
        let mut chunk = vec![0; CHUNK];
        let mut at = 0;
        loop {
            let data = image.next_data(at).max(at);
            at = data - data % CHUNK as u64;
            if at >= bytes {
                break;
            }
            image
                .read(at, &mut chunk)
                .map_err(|e| CardError(format!("reading it at byte {at}: {e}")))?;
            if at == 0 {
                layout::check(&chunk, bytes)?;
            }
            if chunk.iter().any(|byte| *byte != 0) {
                let number = (at / CHUNK as u64) as u32;
                let hash = blake3::hash(&chunk);
                hasher.update(&number.to_le_bytes());
                hasher.update(hash.as_bytes());
                base.chunks.insert(number, *hash.as_bytes());
            }
            at += CHUNK as u64;
        }
        base.hash = Some(*hasher.finalize().as_bytes());
        base.image = Some(image);
        Ok(base)
    }

    /// Returns whether a chunk has a byte that is not zero.
    pub fn has(&self, chunk: u32) -> bool {
        self.chunks.contains_key(&chunk)
    }

    /// Returns the numbers of the chunks in a range that are not all zero.
    pub fn used(&self, chunks: std::ops::RangeInclusive<u32>) -> impl Iterator<Item = u32> {
        self.chunks.range(chunks).map(|(number, _)| *number)
    }

    /// Returns a chunk. `None` is a chunk of zeros.
    pub fn chunk(&self, number: u32) -> Result<Option<Arc<[u8]>>, Lost> {
        let (Some(hash), Some(image)) = (self.chunks.get(&number), &self.image) else {
            return Ok(None);
        };
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, chunk)) = recent.iter().find(|(n, _)| *n == number) {
            return Ok(Some(Arc::clone(chunk)));
        }
        let at = u64::from(number) * CHUNK as u64;
        let mut bytes = vec![0; CHUNK];
        if let Err(error) = image.read(at, &mut bytes) {
            return Err(self.lose(format!("cannot be read at byte {at}: {error}")));
        }
        if blake3::hash(&bytes).as_bytes() != hash {
            let end = at + CHUNK as u64 - 1;
            return Err(self.lose(format!(
                "was changed by another program during the run, between bytes {at} and {end}"
            )));
        }
        let chunk: Arc<[u8]> = bytes.into();
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back((number, Arc::clone(&chunk)));
        Ok(Some(chunk))
    }

    fn lose(&self, why: String) -> Lost {
        self.lost.get_or_init(|| why);
        Lost
    }

    /// Returns why the content cannot be read any more. The subject of the text is the content's file.
    pub fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }
}
