// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recognises images that were cut off: a partition table or a file system names more bytes than the image has.

use super::{BLOCK, CardError};

/// Refuses an image of `bytes` bytes with this beginning if something in it ends beyond the image.
pub(super) fn check(head: &[u8], bytes: u64) -> Result<(), CardError> {
    let ends = [partitions(head), guid_table(head), ext(head), fat(head)];
    match ends.into_iter().flatten().find(|(_, end)| *end > bytes) {
        None => Ok(()),
        Some((what, end)) => Err(CardError(format!(
            "it was cut off: it has {bytes} bytes, but {what} ends at byte {end}. Copy it again"
        ))),
    }
}

/// A name, and the offset of the first byte behind it.
type End = Option<(&'static str, u64)>;

fn number(head: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let field = head.get(at..at + bytes)?.iter().rev();
    Some(field.fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn has(head: &[u8], at: usize, text: &[u8]) -> bool {
    head.get(at..at + text.len()) == Some(text)
}

/// Returns whether the first block is a boot sector of a FAT file system.
fn is_fat(head: &[u8]) -> bool {
    let jumps = matches!(head.first(), Some(0xeb | 0xe9));
    jumps && number(head, 11, 2) == Some(BLOCK as u64) && number(head, 13, 1) != Some(0)
}

/// The partition that ends last, in a table with four entries.
fn partitions(head: &[u8]) -> End {
    if !has(head, 510, &[0x55, 0xaa]) || is_fat(head) {
        return None;
    }
    let entries = (0..4).map(|n| 446 + 16 * n);
    let ends = entries.filter_map(|at| {
        let kind = number(head, at + 4, 1)?;
        let end = number(head, at + 8, 4)? + number(head, at + 12, 4)?;
        // The entry of type 0xee stands for a table with GUIDs, and may be larger than the card.
        (kind != 0 && kind != 0xee).then_some(end * BLOCK as u64)
    });
    Some(("a partition", ends.max()?))
}

/// The second copy of a table with GUIDs is in the last block.
fn guid_table(head: &[u8]) -> End {
    let last = number(head, BLOCK + 32, 8)?;
    let end = last.saturating_add(1).saturating_mul(BLOCK as u64);
    has(head, BLOCK, b"EFI PART").then_some(("its GUID partition table", end))
}

/// An ext2, ext3 or ext4 file system without a partition table. Its superblock is at byte 1024.
fn ext(head: &[u8]) -> End {
    let shift = 10 + number(head, 1024 + 24, 4)?;
    let blocks = number(head, 1024 + 4, 4)?;
    let is_ext = has(head, 1024 + 56, &[0x53, 0xef]) && shift <= 16;
    is_ext.then(|| ("its ext file system", blocks << shift))
}

/// A FAT file system without a partition table.
fn fat(head: &[u8]) -> End {
    let blocks = match number(head, 19, 2)? {
        0 => number(head, 32, 4)?,
        few => few,
    };
    let is_fat = is_fat(head) && has(head, 510, &[0x55, 0xaa]);
    is_fat.then_some(("its FAT file system", blocks * BLOCK as u64))
}
