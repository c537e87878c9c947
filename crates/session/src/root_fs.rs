// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks whether an initial RAM disk is a root file system with a first process.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use board::boot::Blob;

use crate::memory::KernelTraits;
use supply::added::Around;
use supply::image::cpio::Kind;
use supply::image::{LIBRARY_DIR, cpio, elf};

/// First bytes of the compressed formats that a kernel unpacks (Linux lib/decompress.c, init/do_mounts_rd.c).
const COMPRESSED: [&[u8]; 8] = [
    b"\x1f\x8b",
    b"\x1f\x9e",
    b"BZh",
    b"\x5d\0",
    b"\xfd7zXZ",
    b"\x89LZO",
    b"\x02!L\x18",
    b"\x28\xb5\x2f\xfd",
];
/// Offsets and magic numbers of the file systems that a kernel mounts.
const FILE_SYSTEMS: [(usize, &[u8]); 5] = [
    (0, b"hsqs"),
    (0, b"-rom1fs-"),
    (0, b"\x45\x3d\xcd\x28"),
    (0x410, b"\x7f\x13"),
    (0x438, b"\x53\xef"),
];

/// Rejects a file that no kernel can unpack or mount. If the file is an uncompressed archive, returns the names in it.
pub fn check_form(initrd: &Blob) -> Result<Option<BTreeMap<String, Kind>>> {
    let (file, bytes) = (&initrd.name, &initrd.bytes);
    let is_file_system =
        |(at, magic): &(usize, &[u8])| bytes.get(*at..).is_some_and(|rest| rest.starts_with(magic));
    let names = cpio::names(bytes);
    // A compressed archive may follow an uncompressed one.
    let compressed = COMPRESSED.iter().any(|magic| bytes.starts_with(magic))
        || bytes.starts_with(b"070701") && bytes.len() > 110;
    if names.is_none() && !compressed && !FILE_SYSTEMS.iter().any(is_file_system) {
        bail!(
            "{file}: no root file system: it is neither a cpio archive (newc), which may be compressed, \
             nor the image of a file system"
        );
    }
    Ok(names)
}

/// Rejects a file without a root file system. Returns the known properties of the root file system and the kernel. The
/// board has `ram_bytes` of RAM.
pub fn check(
    initrd: &Blob,
    command_line: &str,
    is_ours: bool,
    kernel: Option<&KernelTraits>,
    ram_bytes: u32,
) -> Result<Around> {
    let around = Around {
        names: None,
        is_ours,
        flat: kernel.is_some_and(|kernel| kernel.flat),
        loads_flat: kernel.map(|kernel| kernel.loads_flat),
        c_library: None,
        ram_bytes: u64::from(ram_bytes),
    };
    let (file, bytes) = (&initrd.name, &initrd.bytes);
    let names = check_form(initrd)?;
    let Some(found) = &names else {
        return Ok(around);
    };
    let word = |key: &str| {
        command_line
            .split_whitespace()
            .find_map(|w| w.strip_prefix(key))
    };
    let init = word("rdinit=").unwrap_or("/init").trim_start_matches('/');
    if !found.contains_key(init) && word("root=").is_none() {
        bail!("{file}: no root file system: the archive has no /{init} to start");
    }
    let library = cpio::content(bytes, &format!("{LIBRARY_DIR}/{}", elf::C_LIBRARY));
    let c_library = library.and_then(elf::versions_of);
    Ok(Around {
        names,
        c_library,
        ..around
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use supply::image::cpio::Archive;

    fn check(bytes: Vec<u8>, words: &str) -> Result<Around> {
        let name = "r.cpio".to_string();
        super::check(&Blob { name, bytes }, words, false, None, 64 << 20)
    }

    #[test]
    fn an_archive_has_the_first_process_or_another_root_is_named() {
        let mut archive = Archive::default();
        archive.file("sbin/init", true, vec![1]).unwrap();
        let error = check(archive.bytes(), "quiet").err().unwrap().to_string();
        assert_eq!(
            error,
            "r.cpio: no root file system: the archive has no /init to start"
        );
        assert!(check(archive.bytes(), "rdinit=/sbin/init").is_ok());
        assert!(check(archive.bytes(), "root=/dev/nfs").is_ok());
    }

    #[test]
    fn what_is_neither_archive_nor_image_is_refused() {
        for bad in [&b"hello"[..], b"070701", b"", &[0x7f, b'E', b'L', b'F']] {
            assert!(check(bad.to_vec(), "").is_err(), "{bad:?}");
        }
        assert!(check(b"\x1f\x8b\x08".to_vec(), "").is_ok());
        let mut ext2 = vec![0; 2048];
        ext2[0x438..0x43a].copy_from_slice(b"\x53\xef");
        assert!(check(ext2, "").is_ok());
    }
}
