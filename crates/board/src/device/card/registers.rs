// SPDX-License-Identifier: MIT OR Apache-2.0
//! The card's registers: identification, capacity, features.

/// Relative address that the card publishes.
pub(super) const ADDRESS: u16 = 1;

/// Operating conditions: 2.7 to 3.6 V.
pub(super) const OCR_VOLTAGES: u32 = 0x00ff_8000;
/// Operating conditions: the card has high capacity.
pub(super) const OCR_HIGH_CAPACITY: u32 = 1 << 30;
/// Operating conditions: the card is ready.
pub(super) const OCR_READY: u32 = 1 << 31;

/// Configuration (SCR): version 2.00, erased bytes are zero, no security, 1 and 4 data lines.
pub(super) const SCR: [u8; 8] = [0x02, 0x05, 0, 0, 0, 0, 0, 0];

/// Command classes: basic, block read, block write, erase, application, switch.
const CLASSES: u32 = 1 << 0 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 10;

/// Returns the checksum of commands, responses and registers: 7 bits.
pub(super) fn crc7(bytes: &[u8]) -> u8 {
    let mut crc = 0u8;
    for byte in bytes {
        for bit in (0..8).rev() {
            let top = crc >> 6 & 1 != byte >> bit & 1;
            crc = crc << 1 & 0x7f;
            if top {
                crc ^= 0x09;
            }
        }
    }
    crc
}

/// Puts a checksum behind 15 bytes, and returns the register as words, the highest first.
fn register(bytes: [u8; 15]) -> [u32; 4] {
    let mut whole = [0; 16];
    whole[..15].copy_from_slice(&bytes);
    whole[15] = crc7(&bytes) << 1 | 1;
    let words = whole.as_chunks::<4>().0;
    core::array::from_fn(|n| u32::from_be_bytes(words[n]))
}

/// Returns the identification (CID): no manufacturer, name `WSCRD`, revision 1.0, serial number 1, November 2026.
pub(super) fn cid() -> [u32; 4] {
    register([
        0x00, b'W', b'S', b'W', b'S', b'C', b'R', b'D', 0x10, 0, 0, 0, 1, 0x01, 0xab,
    ])
}

/// Returns the specific data (CSD), version 2.0, of a card with this capacity: 25 MHz, blocks of 512 bytes.
pub(super) fn csd(bytes: u64) -> [u32; 4] {
    let size = ((bytes >> 19) as u32).wrapping_sub(1);
    register([
        0x40, // version 2.0
        0x0e, // TAAC: 1 ms
        0x00, // NSAC
        0x32, // 25 MHz
        (CLASSES >> 4) as u8,
        (CLASSES << 4) as u8 | 9, // blocks of 2^9 bytes
        0x00,                     // no partial blocks
        (size >> 16) as u8 & 0x3f,
        (size >> 8) as u8,
        size as u8,
        0x7f, // erases single blocks; sectors of 128 blocks
        0x80, // no write protection of groups
        0x0a, // writes take 4 times as long as reads; blocks of 2^9 bytes
        0x40, // no partial blocks
        0x00,
    ])
}

/// Returns the SD status: the number of data lines, class 4, allocation units of 4 MiB.
pub(super) fn sd_status(wide: bool) -> Vec<u8> {
    let mut status = vec![0; 64];
    status[0] = if wide { 0x80 } else { 0x00 };
    status[8] = 0x02;
    status[10] = 0x90;
    status
}

/// Carries out a function switch. `argument` is the command's argument, and `fast` says whether the card is in its
/// high-speed mode. Returns the answer, and the mode after the command.
pub(super) fn switched(argument: u32, fast: bool) -> (Vec<u8>, bool) {
    let mut status = vec![0; 64];
    status[1] = 100; // mA
    for group in 0..6 {
        let supported: u16 = if group == 0 { 0x8003 } else { 0x8001 };
        let at = 12 - 2 * group;
        status[at..at + 2].copy_from_slice(&supported.to_be_bytes());
    }
    let asked = |group: usize| argument >> (4 * group) & 0xf;
    let result = |group: usize| match (group, asked(group)) {
        (0, 0xf) => u32::from(fast),
        (_, 0xf) => 0,
        (0, function @ 0..=1) => function,
        (_, 0) => 0,
        _ => 0xf,
    };
    for (at, group) in [(14, 4), (15, 2), (16, 0)] {
        status[at] = (result(group + 1) << 4 | result(group)) as u8;
    }
    // A request that the card cannot carry out in one group changes no group.
    let changes = argument >> 31 != 0 && (0..6).all(|group| result(group) != 0xf);
    (status, if changes { result(0) == 1 } else { fast })
}
