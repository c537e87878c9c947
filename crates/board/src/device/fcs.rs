// SPDX-License-Identifier: MIT OR Apache-2.0
//! The frame check sequence of Ethernet (IEEE 802.3, 3.2.9), which controllers of all families share.

use crate::link::CHECKSUM;

/// Returns the remainder before its final inversion. Its least significant bit is first on the wire.
pub(super) fn remainder(bytes: &[u8]) -> u32 {
    let step = |crc: u32| {
        if crc & 1 != 0 {
            crc >> 1 ^ 0xedb8_8320
        } else {
            crc >> 1
        }
    };
    bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |c, _| step(c))
    })
}

/// Returns the checksum that follows these bytes on the wire.
pub(super) fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    (!remainder(bytes)).to_le_bytes()
}

/// Removes the checksum from the end of a frame. Returns whether it is right.
pub(super) fn remove(frame: &mut Vec<u8>) -> bool {
    let given = frame.split_off(frame.len().saturating_sub(CHECKSUM));
    given == checksum(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        // The check value of this CRC, which is the checksum of these nine digits.
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926u32.to_le_bytes());
        let mut frame = [&b"123456789"[..], &checksum(b"123456789")].concat();
        assert!(remove(&mut frame));
        assert_eq!(frame, b"123456789");
        assert!(!remove(&mut frame), "these bytes are no checksum");
        assert!(!remove(&mut vec![1, 2]), "too short for a checksum");
    }
}
