// SPDX-License-Identifier: MIT OR Apache-2.0
//! A zImage: its end, the device tree behind it, and the Image that it unpacks (Linux
//! arch/arm/boot/compressed/vmlinux.lds.S).

use std::io::Read as _;

use flate2::read::GzDecoder;

/// Word at 0x24 of a zImage.
const MAGIC: u32 = 0x016f_2818;
/// First bytes of a device tree.
const TREE: [u8; 4] = [0xd0, 0x0d, 0xfe, 0xed];
/// First bytes of gzip's format.
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
/// Largest kernel that is unpacked, in bytes: the largest RAM of a board.
const LARGEST: u64 = 256 << 20;
/// Smallest kernel, in bytes. A shorter result of gzip is not a kernel.
const SMALLEST: usize = 64 << 10;

/// Returns the bytes of the zImage itself. Returns `None` if the bytes are not a zImage.
fn size(bytes: &[u8]) -> Option<usize> {
    let word = |at: usize| {
        let word = bytes.get(at..at + 4)?;
        word.first_chunk().copied().map(u32::from_le_bytes)
    };
    (word(0x24)? == MAGIC).then_some(())?;
    Some(word(0x2c)?.wrapping_sub(word(0x28)?) as usize)
}

/// Returns whether the bytes are a zImage.
pub fn is(bytes: &[u8]) -> bool {
    size(bytes).is_some()
}

/// Splits a zImage from the device tree behind it, if there is one. Other bytes behind a zImage stay, because no kernel
/// reads them.
///
/// # Errors
/// Fails when the device tree is cut short.
pub fn split(mut bytes: Vec<u8>) -> Result<(Vec<u8>, Option<Vec<u8>>), String> {
    let behind = size(&bytes).and_then(|size| Some((size, bytes.get(size..)?)));
    let Some((size, behind)) = behind.filter(|(_, behind)| behind.starts_with(&TREE)) else {
        return Ok((bytes, None));
    };
    let whole = behind
        .get(4..8)
        .and_then(|word| word.first_chunk().copied());
    let whole = whole.map_or(8, u32::from_be_bytes) as usize;
    let Some(tree) = behind.get(..whole) else {
        return Err(format!(
            "the device tree behind the zImage is cut short: {} bytes of {whole}",
            behind.len()
        ));
    };
    let tree = tree.to_vec();
    bytes.truncate(size);
    Ok((bytes, Some(tree)))
}

/// Unpacks gzip's format. Returns `None` if the bytes are damaged, cut short or too large.
pub fn gunzip(packed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = GzDecoder::new(packed)
        .take(LARGEST + 1)
        .read_to_end(&mut bytes);
    (read.ok()? as u64 <= LARGEST).then_some(bytes)
}

/// Returns the Image in a zImage that gzip compressed. Returns `None` for other bytes and other compressions.
pub fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let own = &bytes[..size(bytes)?.min(bytes.len())];
    let starts = own.windows(GZIP.len()).enumerate();
    let mut starts = starts.filter(|(_, first)| *first == GZIP).map(|(at, _)| at);
    starts.find_map(|at| gunzip(&own[at..]).filter(|image| image.len() >= SMALLEST))
}

/// Makes a zImage of an Image, for tests.
#[cfg(test)]
pub fn made(image: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut zimage = vec![0; 0x1000];
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(image).unwrap();
    zimage.extend(packed.finish().unwrap());
    let size = zimage.len() as u32;
    for (at, word) in [(0x24, MAGIC), (0x28, 0), (0x2c, size)] {
        zimage[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    zimage
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Vec<u8> {
        (0..100_000u32).flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn a_zimage_unpacks_to_its_image() {
        let zimage = made(&image());
        assert_eq!(unpacked(&zimage), Some(image()));
        assert_eq!(unpacked(&image()), None);
        let mut damaged = zimage.clone();
        damaged.truncate(zimage.len() / 2);
        assert_eq!(unpacked(&damaged), None);
        // A start of gzip's format in the code before the data is skipped.
        let mut early = zimage;
        early[0x100..0x103].copy_from_slice(&GZIP);
        assert_eq!(unpacked(&early), Some(image()));
    }

    #[test]
    fn the_tree_behind_a_zimage_is_split_off() {
        let zimage = made(&image());
        let mut tree = TREE.to_vec();
        tree.extend(40u32.to_be_bytes());
        tree.resize(40, 7);
        let with = |tree: &[u8]| split([&zimage[..], tree].concat());
        assert_eq!(with(&tree), Ok((zimage.clone(), Some(tree.clone()))));
        let padded = [&tree[..], &[0; 100]].concat();
        assert_eq!(with(&padded), Ok((zimage.clone(), Some(tree.clone()))));
        assert_eq!(with(&[]), Ok((zimage.clone(), None)));
        assert_eq!(with(b"else"), Ok(([&zimage[..], b"else"].concat(), None)));
        assert_eq!(
            with(&tree[..30]).unwrap_err(),
            "the device tree behind the zImage is cut short: 30 bytes of 40"
        );
        assert!(with(&tree[..4]).unwrap_err().contains("4 bytes of 8"));
        let other = b"no kernel".to_vec();
        assert_eq!(split(other.clone()), Ok((other, None)));
    }
}
