// SPDX-License-Identifier: MIT OR Apache-2.0
//! Forms of a kernel's file, recognised by their first bytes, and addresses in a zImage.

use super::{Blob, BootError, TEXT_OFFSET};

/// Upper bound of the code before a zImage's compressed part, bytes.
const LONGEST_HEAD: usize = 64 << 10;
/// Bytes of the code at the start of a zImage, which selects the address of the kernel.
const FIRST_CODE: usize = 0x200;
/// The instruction `mov r4, #0x8000`.
const MOV_R4_8000: [u8; 4] = 0xe3a0_4902_u32.to_le_bytes();
/// Magic numbers of the table in a zImage, and of the table's entry with the kernel's size (Linux
/// arch/arm/boot/compressed/vmlinux.lds.S).
const TABLE: u32 = 0x4545_4545;
const SIZES: u32 = 0x5a53_4c4b;

/// Form of a kernel's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KernelKind {
    Zimage,
    Image,
    Elf,
}

/// Recognises a kernel by its first bytes. Refuses files that are known to be something else.
pub(super) fn kind(kernel: &Blob) -> Result<KernelKind, BootError> {
    let b = &kernel.bytes;
    let word = |at: usize| word(b, at);
    let other = [
        (
            b.starts_with(&[0x1f, 0x8b]),
            "is compressed with gzip: unpack it first",
        ),
        (
            b.starts_with(b"\xfd7zXZ"),
            "is compressed with xz: unpack it first",
        ),
        (
            b.starts_with(&[0x27, 0x05, 0x19, 0x56]),
            "is a U-Boot image: extract the zImage from it",
        ),
        (
            b.starts_with(&[0xd0, 0x0d, 0xfe, 0xed]),
            "is a device tree, not a kernel",
        ),
        (
            word(0x202) == Some(0x5372_6448),
            "is a kernel for x86, not for ARM",
        ),
        (
            word(0x38) == Some(0x644d_5241),
            "is a kernel for 64-bit ARM, not for ARMv5",
        ),
    ];
    if b.starts_with(b"\x7fELF") {
        return Ok(KernelKind::Elf);
    }
    if let Some((_, what)) = other.iter().find(|o| o.0) {
        return Err(kernel.error(*what));
    }
    if word(0x24) == Some(0x016f_2818) {
        let size = word(0x2c)
            .unwrap_or(0)
            .wrapping_sub(word(0x28).unwrap_or(0)) as usize;
        if size > b.len() {
            let problem = format!("the zImage is cut short: {} bytes of {size}", b.len());
            return Err(kernel.error(problem));
        }
        return Ok(KernelKind::Zimage);
    }
    // A raw Image begins with an unconditional instruction.
    match word(0) {
        Some(first) if first >> 28 == 0xe && b.len() > 0x1000 => Ok(KernelKind::Image),
        _ => Err(kernel.error("is not an ARM kernel: neither zImage nor Image nor ELF")),
    }
}

/// Returns the address to which a zImage unpacks its kernel, if the address is fixed. The code before the compressed
/// part loads the address into r4 (Linux arch/arm/boot/compressed/head.S, `zreladdr`). 0x8000 is an immediate operand.
/// Any other address is a word in the code's literal pool, 0x8000 above a multiple of 16 MB.
pub(super) fn place_of(zimage: &[u8]) -> Option<u32> {
    const MAGICS: [&[u8]; 5] = [
        b"\x1f\x8b\x08",
        b"\xfd7zXZ",
        b"\x5d\0\0",
        b"\x89LZO",
        b"\x02\x21\x4c\x18",
    ];
    let start = zimage[..zimage.len().min(FIRST_CODE)].chunks_exact(4);
    if start.into_iter().any(|w| w == MOV_R4_8000) {
        return Some(TEXT_OFFSET);
    }
    let head = &zimage[..zimage.len().min(LONGEST_HEAD)];
    let packed = |at: &usize| MAGICS.iter().any(|magic| head[*at..].starts_with(magic));
    let end = (0..head.len()).find(packed).unwrap_or(0);
    let words = head[..end].chunks_exact(4);
    let mut words = words.map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
    words.find(|word| word & 0x00ff_ffff == TEXT_OFFSET && *word != TEXT_OFFSET)
}

/// Returns the bytes that a zImage's kernel takes in RAM, with its bss. Kernels before Linux 4.15 do not tell.
pub(super) fn unpacked_bytes(zimage: &[u8]) -> Option<u32> {
    if word(zimage, 0x34)? != TABLE {
        return None;
    }
    let table = word(zimage, 0x38)? as usize;
    if word(zimage, table.checked_add(4)?)? != SIZES {
        return None;
    }
    let size = word(zimage, word(zimage, table.checked_add(8)?)? as usize)?;
    size.checked_add(word(zimage, table.checked_add(12)?)?)
}

/// Returns the little-endian word at an offset.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    word.first_chunk().copied().map(u32::from_le_bytes)
}
