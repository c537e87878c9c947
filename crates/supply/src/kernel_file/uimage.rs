// SPDX-License-Identifier: MIT OR Apache-2.0
//! U-Boot's legacy image: a header of 64 bytes in big-endian byte order, and the data (U-Boot include/image.h).

use std::fmt;

/// First word of the header.
const MAGIC: u32 = 0x2705_1956;
/// Bytes of the header.
const HEADER: usize = 64;
/// The values of a Linux kernel for ARM.
const LINUX: u8 = 5;
const ARM: u8 = 2;
const KERNEL: u8 = 2;
/// A kernel that runs wherever it is.
const KERNEL_NOLOAD: u8 = 14;

/// Names of processors, by the header's number.
const PROCESSORS: [(u8, &str); 8] = [
    (3, "x86"),
    (5, "MIPS"),
    (7, "PowerPC"),
    (12, "m68k"),
    (14, "MicroBlaze"),
    (22, "64-bit ARM"),
    (24, "x86-64"),
    (26, "RISC-V"),
];
/// Names of other types of images, by the header's number.
const TYPES: [(u8, &str); 7] = [
    (1, "of a stand-alone program"),
    (3, "of a RAM disk"),
    (4, "of several files"),
    (5, "of firmware"),
    (6, "of a script"),
    (7, "of a file system"),
    (8, "of a device tree"),
];
/// Names of compressions, by the header's number.
const COMPRESSIONS: [(u8, &str); 6] = [
    (2, "bzip2"),
    (3, "lzma"),
    (4, "lzo"),
    (5, "lz4"),
    (6, "zstd"),
    (7, "xz"),
];

/// A checked image of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uimage<'a> {
    /// Load address and address of the first instruction. `None` if the kernel runs wherever it is.
    pub place: Option<(u32, u32)>,
    /// Whether the data is compressed with gzip.
    pub gzip: bool,
    /// The kernel, or the compressed kernel.
    pub data: &'a [u8],
}

/// Reads an image. Returns `None` if the bytes do not begin like an image.
///
/// # Errors
/// Fails when the image is damaged or cut short, or is not an image of one Linux kernel for ARM.
pub fn parse(bytes: &[u8]) -> Option<Result<Uimage<'_>, String>> {
    (word(bytes, 0)? == MAGIC).then(|| checked(bytes))
}

fn checked(bytes: &[u8]) -> Result<Uimage<'_>, String> {
    let cut = |whole: usize| {
        let is = bytes.len();
        format!("the U-Boot image is cut short: {is} bytes of {whole}")
    };
    let header = bytes.get(..HEADER).ok_or_else(|| cut(HEADER))?;
    let field = |n: usize| word(header, 4 * n).unwrap_or(0);
    let mut without = header.to_vec();
    without[4..8].fill(0);
    if crc32(&without) != field(1) {
        return Err("the U-Boot image is damaged: the checksum of its header is wrong".to_owned());
    }
    let end = HEADER.saturating_add(field(3) as usize);
    let data = bytes.get(HEADER..end).ok_or_else(|| cut(end))?;
    if crc32(data) != field(6) {
        return Err("the U-Boot image is damaged: the checksum of its data is wrong".to_owned());
    }
    let [system, processor, kind, compression] = field(7).to_be_bytes();
    let name = name(&header[32..]);
    let named = |names: &[(u8, &str)], number: u8, noun: &str| {
        let found = names.iter().find(|(n, _)| *n == number);
        found.map_or(format!("{noun} {number}"), |(_, name)| (*name).to_owned())
    };
    if kind != KERNEL && kind != KERNEL_NOLOAD {
        let what = named(&TYPES, kind, "of type");
        return Err(format!(
            "is a U-Boot image {what} ({name}), not of one kernel: extract the kernel with dumpimage"
        ));
    }
    if processor != ARM {
        let other = named(&PROCESSORS, processor, "processor");
        return Err(format!(
            "is a U-Boot image for {other} ({name}), not for ARM"
        ));
    }
    if system != LINUX {
        return Err(format!(
            "is a U-Boot image for operating system {system} ({name}), not for Linux"
        ));
    }
    if compression > 1 {
        let other = named(&COMPRESSIONS, compression, "compression");
        return Err(format!(
            "is a U-Boot image compressed with {other} ({name}): only gzip is read; extract the kernel with \
             dumpimage"
        ));
    }
    Ok(Uimage {
        place: (kind == KERNEL).then(|| (field(4), field(5))),
        gzip: compression == 1,
        data,
    })
}

/// Returns the image's name as text for messages.
fn name(bytes: &[u8]) -> impl fmt::Display {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    format!("{text:?}")
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    word.first_chunk().copied().map(u32::from_be_bytes)
}

/// Returns the checksum of IEEE 802.3, which U-Boot uses.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Makes an image, for tests.
#[cfg(test)]
pub fn made(numbers: [u8; 4], (load, entry): (u32, u32), data: &[u8]) -> Vec<u8> {
    let mut header = Vec::new();
    for field in [MAGIC, 0, 0, data.len() as u32, load, entry, crc32(data)] {
        header.extend(field.to_be_bytes());
    }
    header.extend(numbers);
    header.extend(b"Linux-6.12");
    header.resize(HEADER, 0);
    let crc = crc32(&header);
    header[4..8].copy_from_slice(&crc.to_be_bytes());
    header.extend(data);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: (u32, u32) = (0x2000_8000, 0x2000_8040);

    fn problem(bytes: &[u8]) -> String {
        parse(bytes).expect("an image").unwrap_err()
    }

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_kernel_has_its_addresses_and_its_data() {
        let image = made([LINUX, ARM, KERNEL, 0], PLACE, b"kernel");
        let read = Uimage {
            place: Some(PLACE),
            gzip: false,
            data: b"kernel",
        };
        assert_eq!(parse(&image), Some(Ok(read)));
        // Bytes after the data, as a partition has them, do not matter.
        let padded = [&image[..], &[0xff; 100]].concat();
        assert_eq!(parse(&padded), Some(Ok(read)));
        let anywhere = made([LINUX, ARM, KERNEL_NOLOAD, 1], PLACE, b"kernel");
        let read = parse(&anywhere).unwrap().unwrap();
        assert_eq!((read.place, read.gzip), (None, true));
        assert_eq!(parse(b"\x27\x05\x19\x57"), None);
        assert_eq!(parse(b"\x27"), None);
    }

    #[test]
    fn an_image_of_something_else_is_named() {
        let of = |numbers| problem(&made(numbers, PLACE, b"x"));
        assert_eq!(
            of([LINUX, ARM, 4, 0]),
            "is a U-Boot image of several files (\"Linux-6.12\"), not of one kernel: extract the kernel with \
             dumpimage"
        );
        assert!(of([LINUX, ARM, 3, 0]).contains("of a RAM disk"));
        assert!(of([LINUX, ARM, 77, 0]).contains("of type 77"));
        assert!(of([LINUX, 22, KERNEL, 0]).contains("for 64-bit ARM"));
        assert!(of([17, ARM, KERNEL, 0]).contains("for operating system 17"));
        assert!(of([LINUX, ARM, KERNEL, 3]).contains("compressed with lzma"));
        assert!(of([LINUX, ARM, KERNEL, 99]).contains("compressed with compression 99"));
    }

    #[test]
    fn every_damaged_byte_and_every_cut_is_seen() {
        let image = made([LINUX, ARM, KERNEL, 0], PLACE, &[7; 100]);
        for at in 4..image.len() {
            let mut bad = image.clone();
            bad[at] ^= 0x10;
            let problem = problem(&bad);
            assert!(problem.contains("damaged"), "{at}: {problem}");
        }
        for length in 4..image.len() {
            let problem = problem(&image[..length]);
            assert!(problem.contains("cut short"), "{length}: {problem}");
        }
    }
}
