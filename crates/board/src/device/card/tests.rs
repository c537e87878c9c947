// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the card: identification and data as Linux's driver does them, wrong commands, damaged images, and state.

use super::*;
use std::io;
use std::sync::{Arc, Mutex};

/// Size of the cards of the tests.
pub(crate) const BYTES: u64 = 1 << 20;

/// Returns the byte of the test image at `at`.
pub(crate) fn byte(at: u64) -> u8 {
    (at / 512 * 31 + at % 251 + 1) as u8
}

/// Returns an image without a partition table or file system.
pub(crate) fn content() -> Content {
    let image: Vec<u8> = (0..BYTES).map(byte).collect();
    Content::of(image).unwrap()
}

fn value(answer: &Answer) -> u32 {
    match answer.response {
        Response::Short { value, .. } => value,
        other => panic!("{other:x?}"),
    }
}

/// Identifies and selects a card, as Linux does.
pub(crate) fn selected(card: &mut Card) {
    for (silent, argument) in [(52, 0x8000_0c00), (0, 0), (5, 0), (0, 0)] {
        assert_eq!(card.command(silent, argument).response, Response::None);
    }
    assert_eq!(value(&card.command(8, 0x1aa)), 0x1aa);
    let conditions = |card: &mut Card, argument| {
        assert_eq!(value(&card.command(55, 0)) & 0x20, 0x20);
        value(&card.command(41, argument))
    };
    assert_eq!(conditions(card, 0), 0x00ff_8000);
    assert_eq!(conditions(card, 0x4030_0000) >> 31, 0);
    assert_eq!(conditions(card, 0x4030_0000) >> 30, 3);
    assert!(matches!(card.command(2, 0).response, Response::Long(_)));
    assert_eq!(value(&card.command(3, 0)) >> 16, 1);
    assert!(matches!(
        card.command(9, 1 << 16).response,
        Response::Long(_)
    ));
    assert_eq!(value(&card.command(7, 1 << 16)) >> 9 & 0xf, 3);
    assert_eq!(value(&card.command(13, 1 << 16)), 4 << 9 | 1 << 8);
}

fn card() -> Card {
    let mut card = Card::new(&content());
    selected(&mut card);
    card
}

#[test]
fn registers_have_the_fields_that_linux_decodes() {
    let mut card = card();
    let bits = |words: [u32; 4], from: u32, count: u32| {
        let at = |bit: u32| words[3 - (bit / 32) as usize] >> (bit % 32) & 1;
        (from..from + count)
            .rev()
            .fold(0, |v, bit| v << 1 | at(bit))
    };
    let csd = registers::csd(BYTES);
    assert_eq!(bits(csd, 126, 2), 1);
    assert_eq!((u64::from(bits(csd, 48, 22)) + 1) << 19, BYTES);
    assert_eq!(bits(csd, 84, 12), 0x535);
    assert_eq!(
        (bits(csd, 80, 4), bits(csd, 22, 4), bits(csd, 46, 1)),
        (9, 9, 1)
    );
    assert_eq!((bits(csd, 96, 8), bits(csd, 13, 1)), (0x32, 0));
    assert_eq!(bits(registers::csd(32 << 30), 48, 22), 0xffff);
    // The example of the specification's chapter on checksums: CMD0 with argument 0 has the checksum 0x4a.
    assert_eq!(registers::crc7(&[0x40, 0, 0, 0, 0]), 0x4a);
    card.command(55, 1 << 16);
    assert_eq!(card.command(51, 0).data, Flow::ToHost);
    assert_eq!(card.send_block(), Some(vec![2, 5, 0, 0, 0, 0, 0, 0]));
    assert_eq!(card.send_block(), None);
}

#[test]
fn four_lines_and_high_speed_are_switched_on() {
    let mut card = card();
    assert!(!card.is_wide());
    card.command(55, 1 << 16);
    card.command(6, 2);
    assert!(card.is_wide());
    card.command(55, 1 << 16);
    card.command(13, 0);
    assert_eq!(card.send_block().unwrap()[0] >> 6, 2);
    for (argument, result) in [
        (0x00ff_fff1u32, 1),
        (0x80ff_fff1, 1),
        (0x00ff_ffff, 1),
        (0x80ff_fff3, 0xf),
    ] {
        assert_eq!(card.command(6, argument).data, Flow::ToHost);
        let status = card.send_block().unwrap();
        assert_eq!(
            (status.len(), status[13] & 2, status[16] & 0xf),
            (64, 2, result)
        );
    }
}

#[test]
fn blocks_are_read_and_written() {
    let mut card = card();
    assert_eq!(card.command(17, 3).data, Flow::ToHost);
    let expected: Vec<u8> = (1536..2048).map(byte).collect();
    assert_eq!(card.send_block(), Some(expected));
    assert_eq!(card.send_block(), None);
    assert_eq!(card.command(25, 5).data, Flow::FromHost);
    for n in 0..3 {
        assert!(card.receive_block(&[n; 512]).is_some());
    }
    assert!(card.command(12, 0).busy_ns > 0);
    assert_eq!(card.command(18, 4).data, Flow::ToHost);
    let first: Vec<u8> = (0..5).map(|_| card.send_block().unwrap()[0]).collect();
    assert_eq!(first, [byte(2048), 0, 1, 2, byte(4096)]);
    card.command(12, 0);
    let pages: Vec<u64> = card.written().map(|(at, _)| at).collect();
    assert_eq!(pages, [0]);
    card.command(55, 1 << 16);
    card.command(22, 0);
    assert_eq!(card.send_block(), Some(vec![0, 0, 0, 3]));
}

#[test]
fn the_end_of_the_card_is_an_error_and_no_more() {
    let mut card = card();
    let last = (BYTES / 512) as u32 - 1;
    let answer = card.command(17, last + 1);
    assert_eq!((answer.data, value(&answer) >> 31), (Flow::None, 1));
    card.command(18, last);
    assert!(card.send_block().is_some());
    assert_eq!((card.send_block(), card.send_block()), (None, None));
    assert_eq!(value(&card.command(12, 0)) >> 31, 1);
    card.command(25, last);
    assert!(card.receive_block(&[1; 512]).is_some());
    assert!(card.receive_block(&[1; 512]).is_none());
    assert_eq!(value(&card.command(12, 0)) >> 31, 1);
    card.command(24, 0);
    assert!(card.receive_block(&[1; 511]).is_none());
    assert_eq!(value(&card.command(13, 1 << 16)), 4 << 9 | 1 << 8);
}

#[test]
fn blocks_are_erased() {
    let mut card = card();
    for (index, argument) in [(32, 3), (33, 40)] {
        assert_eq!(value(&card.command(index, argument)) >> 27, 0);
    }
    assert!(card.command(38, 0).busy_ns > 0);
    let mut bytes = vec![0; BYTES as usize];
    card.read(0, &mut bytes);
    for (at, is) in (0..BYTES).zip(bytes) {
        let erased = (3 * 512..41 * 512).contains(&at);
        assert_eq!(is, if erased { 0 } else { byte(at) }, "{at}");
    }
    // Without a range, and with a range that ends before it begins.
    assert_eq!(value(&card.command(38, 0)) >> 28 & 1, 1);
    for (index, argument) in [(32, 9), (33, 8)] {
        card.command(index, argument);
    }
    assert_eq!(value(&card.command(38, 0)) >> 27 & 1, 1);
    assert_eq!(value(&card.command(32, u32::MAX)) >> 31, 1);
}

#[test]
fn a_command_that_the_card_does_not_know_gets_no_answer_and_is_told_later() {
    let mut card = card();
    for index in [1, 5, 11, 23, 41, 42, 52, 63] {
        assert_eq!(card.command(index, 0).response, Response::None);
        assert_eq!(value(&card.command(13, 1 << 16)) >> 22 & 1, 1, "{index}");
        assert_eq!(value(&card.command(13, 1 << 16)) >> 22 & 1, 0);
    }
    // For another card.
    assert_eq!(card.command(13, 2 << 16).response, Response::None);
    assert_eq!(value(&card.command(13, 1 << 16)) >> 22 & 1, 0);
    // A host that does not ask for high capacity never sees the card ready.
    let mut card = Card::new(&content());
    card.command(8, 0x1aa);
    for _ in 0..5 {
        card.command(55, 0);
        assert_eq!(value(&card.command(41, 0x0030_0000)) >> 31, 0);
    }
}

#[test]
fn no_sequence_of_commands_panics() {
    let mut card = Card::new(&content());
    let mut random = 1u64;
    for n in 0..50_000u32 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(n.into());
        let argument = match random >> 60 {
            0..6 => 1 << 16,
            6..10 => (random >> 20) as u32 % 2100,
            10..13 => 0x4030_01aa,
            _ => (random >> 20) as u32,
        };
        let usual = [0, 55, 41, 8, 2, 3, 7, 17, 18, 24, 25, 12, 32, 33, 38, 6];
        let index = match random >> 58 & 3 {
            0 => (random >> 52 & 63) as u8,
            _ => usual[(random >> 52 & 15) as usize],
        };
        card.command(index, argument);
        card.send_block();
        card.receive_block(&[n as u8; 512]);
    }
    assert_eq!(card.bytes(), BYTES);
}

#[test]
fn odd_sizes_are_refused_with_the_nearest_good_one() {
    for (bytes, near) in [
        (0, "512K"),
        (1, "512K"),
        (BYTES + 512, "1536K"),
        ((32 << 30) + 1, "Use a smaller image"),
        (u64::MAX, "Use a smaller image"),
    ] {
        let e = Content::empty(bytes).unwrap_err();
        assert!(e.0.contains(near), "{e}");
        let file = Shared::new(Vec::new(), bytes);
        assert_eq!(Content::of(file).unwrap_err(), e);
    }
    // The source ends before its size.
    let e = Content::of(Shared::new(vec![1; 100], BYTES)).unwrap_err();
    assert!(e.0.contains("at byte 0"), "{e}");
}

#[test]
fn images_that_were_cut_off_are_refused() {
    let with = |patches: &[(usize, &[u8])]| {
        let mut image = vec![0; BYTES as usize];
        for (at, bytes) in patches {
            image[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        Content::of(image).map(|_| ())
    };
    let partition = |from: u32, count: u32| {
        let mut entry = [0; 16];
        entry[4] = 0x83;
        entry[8..12].copy_from_slice(&from.to_le_bytes());
        entry[12..].copy_from_slice(&count.to_le_bytes());
        with(&[(462, &entry), (510, &[0x55, 0xaa])])
    };
    assert_eq!(partition(8, 2040), Ok(()));
    assert!(partition(8, 2041).unwrap_err().0.contains("cut off"));
    assert!(partition(u32::MAX, u32::MAX).is_err());
    let ext = |blocks: u32| with(&[(1028, &blocks.to_le_bytes()), (1080, &[0x53, 0xef])]);
    assert_eq!(ext(1024), Ok(()));
    assert!(ext(1025).unwrap_err().0.contains("ext file system"));
    let fat = |blocks: u16| {
        let boot = [0xeb, 0x3c, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4];
        with(&[
            (0, &boot),
            (19, &blocks.to_le_bytes()),
            (510, &[0x55, 0xaa]),
        ])
    };
    assert_eq!(fat(2048), Ok(()));
    assert!(fat(2049).unwrap_err().0.contains("FAT"));
    let guid = |last: u64| with(&[(512, b"EFI PART"), (544, &last.to_le_bytes())]);
    assert_eq!(guid(2047), Ok(()));
    assert!(guid(2048).is_err() && guid(u64::MAX).is_err());
}

/// A file that another program may change, with a hole where `hole` says.
#[derive(Clone, Debug)]
struct Shared {
    bytes: Arc<Mutex<Vec<u8>>>,
    size: u64,
    hole: std::ops::Range<u64>,
    reads: Arc<Mutex<Vec<u64>>>,
}

impl Shared {
    fn new(bytes: Vec<u8>, size: u64) -> Shared {
        Shared {
            bytes: Arc::new(Mutex::new(bytes)),
            size,
            hole: 0..0,
            reads: Arc::default(),
        }
    }

    fn reads(&self) -> Vec<u64> {
        core::mem::take(&mut self.reads.lock().unwrap())
    }
}

impl Image for Shared {
    fn bytes(&self) -> u64 {
        self.size
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.reads.lock().unwrap().push(at);
        self.bytes.lock().unwrap().read(at, bytes)
    }

    fn next_data(&self, at: u64) -> u64 {
        match self.hole.contains(&at) {
            true => self.hole.end,
            false => at,
        }
    }
}

/// Writes a block, and returns the card status afterwards.
fn write(card: &mut Card, block: u32, byte: u8) -> u32 {
    card.command(24, block);
    card.receive_block(&[byte; 512]);
    value(&card.command(13, 1 << 16))
}

#[test]
fn an_image_is_read_in_chunks_when_the_guest_reads_and_is_never_written() {
    let image: Vec<u8> = (0..BYTES).map(byte).collect();
    let file = Shared::new(image.clone(), BYTES);
    let mut card = Card::new(&Content::of(file.clone()).unwrap());
    assert_eq!(file.reads().len(), 16);
    selected(&mut card);
    assert_eq!(write(&mut card, 200, 7) & 0xfff8_0000, 0);
    for block in [3, 4, 200] {
        card.command(17, block);
        let of_image = image[block as usize * 512..][..512].to_vec();
        let expected = if block == 200 { vec![7; 512] } else { of_image };
        assert_eq!(card.send_block(), Some(expected));
    }
    assert_eq!(file.reads(), [64 << 10, 0]);
    assert!(*file.bytes.lock().unwrap() == image && card.trouble().is_none());
}

#[test]
fn holes_are_not_read_and_equal_zeros() {
    let mut image = vec![0; BYTES as usize];
    image[0] = 1;
    image[BYTES as usize - 1] = 1;
    let file = Shared {
        hole: 1000..BYTES - 1000,
        ..Shared::new(image.clone(), BYTES)
    };
    let content = Content::of(file.clone()).unwrap();
    assert_eq!(file.reads(), [0, BYTES - (64 << 10)]);
    assert_eq!(content.hash(), Content::of(image.clone()).unwrap().hash());
    image[BYTES as usize / 2] = 1;
    assert_ne!(content.hash(), Content::of(image).unwrap().hash());
    let zeros = Content::of(vec![0; BYTES as usize]).unwrap();
    let twice = Content::of(vec![0; 2 * BYTES as usize]).unwrap();
    assert!(zeros.hash().is_some() && zeros.hash() != twice.hash());
}

#[test]
fn the_card_fails_when_the_image_changes_or_ends() {
    let image: Vec<u8> = (0..BYTES).map(byte).collect();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let file = Shared::new(image.clone(), BYTES);
        let mut card = Card::new(&Content::of(file.clone()).unwrap());
        selected(&mut card);
        change(&mut file.bytes.lock().unwrap());
        card
    };
    let mut card = changed(&|bytes| bytes[100_000] ^= 1);
    card.command(17, 3);
    assert!(card.send_block().is_some() && card.trouble().is_none());
    card.command(18, 127);
    assert!(card.send_block().is_some());
    assert_eq!((card.send_block(), card.send_block()), (None, None));
    assert_eq!(value(&card.command(12, 0)) >> 21 & 1, 1);
    let trouble = card.trouble().unwrap();
    assert!(
        trouble.contains("between bytes 65536 and 131071"),
        "{trouble}"
    );
    let mut card = changed(&|bytes| bytes.truncate(100_000));
    assert_eq!(write(&mut card, 200, 7) >> 19 & 1, 1);
    assert!(card.trouble().unwrap().contains("at byte 65536"));
    let mut card = changed(&|bytes| bytes.clear());
    // Whole pages need not be read to be erased. A part of a page must be read.
    for (last, error) in [(15, 0), (16, 1)] {
        card.command(32, 8);
        card.command(33, last);
        assert_eq!(value(&card.command(38, 0)) >> 19 & 1, error);
    }
    let mut bytes = [1; 100];
    card.read(0, &mut bytes);
    assert_eq!(bytes, [0; 100]);
}

#[test]
fn a_slot_is_saved_with_what_was_written_and_restored_on_its_own_content_only() {
    let content = content();
    let mut slot = Slot::default();
    slot.insert(Some(&content));
    selected(slot.card_mut().unwrap());
    let card = slot.card_mut().unwrap();
    card.command(25, 9);
    card.receive_block(&[7; 512]);
    let mut saved = Vec::new();
    slot.save(&mut saved);
    assert!(saved.len() < 5000);
    let restored = |content: Option<&Content>, saved: &[u8]| {
        let mut slot = Slot::default();
        slot.insert(content);
        let mut from = Saved::new(saved);
        slot.restore(&mut from)?;
        from.end()?;
        Ok::<Slot, Damaged>(slot)
    };
    let mut other = restored(Some(&content), &saved).unwrap();
    let mut again = Vec::new();
    other.save(&mut again);
    assert!(saved == again);
    // The write of many blocks continues.
    let mut bytes = [0; 1024];
    let card = other.card_mut().unwrap();
    assert!(card.receive_block(&[8; 512]).is_some());
    card.read(9 * 512, &mut bytes);
    assert_eq!((bytes[0], bytes[512]), (7, 8));
    let empty = Content::empty(BYTES).unwrap();
    for wrong in [None, Some(&empty)] {
        assert!(restored(wrong, &saved).is_err());
    }
    for length in 0..saved.len() {
        assert!(restored(Some(&content), &saved[..length]).is_err());
    }
    // An empty card needs no content. A page beyond its end is refused.
    slot.insert(Some(&empty));
    selected(slot.card_mut().unwrap());
    slot.card_mut().unwrap().command(24, 2047);
    slot.card_mut().unwrap().receive_block(&[1; 512]);
    let mut saved = Vec::new();
    slot.save(&mut saved);
    assert!(restored(None, &saved).is_ok());
    let at = 1 + 8 + 1 + 1 + 8;
    assert_eq!(saved[at..at + 4], 255u32.to_le_bytes());
    saved[at..at + 4].copy_from_slice(&256u32.to_le_bytes());
    assert!(restored(None, &saved).is_err());
}
