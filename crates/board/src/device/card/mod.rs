// SPDX-License-Identifier: MIT OR Apache-2.0
//! A SD memory card (SD Physical Layer Simplified Specification, version 2.00): high capacity, 1 or 4 data lines, 3.3 V.
//!
//! A controller of any family has a [`Slot`], sends commands to the card, and moves the card's data blocks. The
//! controller has the clock, so it also has the times of the bus. The card tells how long it is busy.
//!
//! Modelled: identification, selection, the registers CID, CSD, SCR, OCR and SD status, function switch (high speed),
//! reads and writes of one or many blocks, erasing, and the card status with its errors. The commands of SDIO and MMC,
//! voltage switch, passwords, write protection and the SPI mode get no answer, as on a card that does not know them.
//! Times of access, programming and erasing are estimates.
//!
//! The content comes from an [`Image`], such as a file, or is empty. The model never writes the image. It reads all of
//! the image before the run, keeps hashes, and reads parts again when the guest does. If the image changes during the
//! run, the card fails ([`Card::trouble`]). What the guest writes is state of the machine, in pages of 4096 bytes, up
//! to 2 GiB. A snapshot holds these pages and the hash of the content.

mod commands;
mod content;
mod image;
mod layout;
mod registers;

pub use content::{CardError, Content};
pub use image::Image;

use arm::{Damaged, Saved, State};
use commands::Protocol;
use content::Storage;

/// Bytes in a block.
pub(crate) const BLOCK: usize = 512;

/// Time from the end of a read command to the first data, in ns. An estimate.
pub(crate) const ACCESS_NS: u64 = 100_000;

/// What a card answers to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub response: Response,
    /// Whether data follow the response.
    pub data: Flow,
    /// Time that the card holds its data line low after the response, in ns.
    pub busy_ns: u64,
}

/// A response on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Response {
    /// The card does not answer. The controller waits until its time is over.
    None,
    /// 48 bits. Some responses have no checksum (R3).
    Short { value: u32, checked: bool },
    /// 136 bits: CID or CSD. The first word has bits 127 to 96.
    Long([u32; 4]),
}

/// Direction of the data that follow a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Flow {
    /// No data.
    #[default]
    None,
    /// From the card.
    ToHost,
    /// To the card.
    FromHost,
}

arm::state!(enum Flow: None, ToHost, FromHost);

/// A card in a slot.
#[derive(Clone, Debug)]
pub struct Card {
    storage: Storage,
    protocol: Protocol,
}

impl Card {
    /// Makes a card that has just got power.
    fn new(content: &Content) -> Card {
        Card {
            storage: Storage::new(content),
            protocol: Protocol::default(),
        }
    }

    /// Returns the capacity in bytes.
    pub fn bytes(&self) -> u64 {
        self.storage.bytes()
    }

    /// Reads the card's present content. Bytes beyond the card's end read as zero, as do bytes that cannot be read
    /// ([`Card::trouble`]).
    pub fn read(&self, offset: u64, bytes: &mut [u8]) {
        self.storage.read(offset, bytes);
    }

    /// Returns what the guest wrote and erased: pages of 4096 bytes with their offsets, in ascending order. All other
    /// bytes are as in the content that was inserted.
    pub fn written(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.storage.written()
    }

    /// Returns why the card has failed: the image cannot be read or has changed, or the guest wrote too much. The
    /// subject of the text is the image. The guest gets errors from such a card, so the run should end.
    pub fn trouble(&self) -> Option<String> {
        self.storage.trouble()
    }

    /// Carries out a command.
    pub(crate) fn command(&mut self, index: u8, argument: u32) -> Answer {
        self.protocol.command(&mut self.storage, index, argument)
    }

    /// Returns the next block of a read, without its checksum. Returns `None` when the card has nothing to send.
    pub(crate) fn send_block(&mut self) -> Option<Vec<u8>> {
        self.protocol.send_block(&self.storage)
    }

    /// Takes a block of a write. Returns the time that the card is busy then, in ns, or `None` when the card does not
    /// accept the block.
    pub(crate) fn receive_block(&mut self, bytes: &[u8]) -> Option<u64> {
        self.protocol.receive_block(&mut self.storage, bytes)
    }

    /// Returns whether the card uses four data lines.
    pub(crate) fn is_wide(&self) -> bool {
        self.protocol.is_wide()
    }
}

/// A slot, which has a card or is empty.
#[derive(Clone, Debug, Default)]
pub struct Slot(Option<Card>);

impl Slot {
    /// Returns the card.
    pub fn card(&self) -> Option<&Card> {
        self.0.as_ref()
    }

    /// Returns the card, for its controller.
    pub(crate) fn card_mut(&mut self) -> Option<&mut Card> {
        self.0.as_mut()
    }

    /// Puts a card with this content into the slot. A card that was in the slot is gone. Without content, the slot is
    /// empty.
    pub fn insert(&mut self, content: Option<&Content>) {
        self.0 = content.map(Card::new);
    }
}

impl State for Slot {
    fn save(&self, to: &mut Vec<u8>) {
        self.0.is_some().save(to);
        if let Some(card) = &self.0 {
            card.storage.save(to);
            card.protocol.save(to);
        }
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Result<(), Damaged> {
        let inserted = self.0.take();
        if from.value()? {
            let mut card = Card {
                storage: Storage::restored(inserted.map(|card| card.storage), from)?,
                protocol: Protocol::default(),
            };
            card.protocol.restore(from)?;
            self.0 = Some(card);
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
