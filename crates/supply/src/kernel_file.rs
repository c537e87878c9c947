// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel's file that the user gives: takes a U-Boot image and an appended device tree apart, and finds the names of
//! the kernel's functions.

mod kallsyms;
mod same_build;
mod symbol_file;
mod uimage;
mod zimage;

use std::path::PathBuf;

use anyhow::Result;

use crate::cache;
use base::paths;

pub use same_build::check as check_vmlinux;

/// A kernel's file, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFile {
    /// zImage, raw Image or ELF file.
    pub kernel: Vec<u8>,
    /// Load address and address of the first instruction, from a U-Boot image.
    pub place: Option<(u32, u32)>,
    /// Device tree behind a zImage.
    pub tree: Option<Vec<u8>>,
}

impl KernelFile {
    /// Takes the content of a file apart. Content of an unknown form stays as it is.
    ///
    /// # Errors
    /// Says what is wrong with the file. The message continues "FILE: ".
    pub fn of(bytes: Vec<u8>) -> Result<KernelFile, String> {
        let (kernel, place) = match uimage::parse(&bytes) {
            None => (bytes, None),
            Some(image) => {
                let image = image?;
                let kernel = match image.gzip {
                    false => image.data.to_vec(),
                    true => zimage::gunzip(image.data)
                        .ok_or("the U-Boot image is damaged: its data cannot be unpacked")?,
                };
                (kernel, image.place)
            }
        };
        let (kernel, tree) = zimage::split(kernel)?;
        Ok(KernelFile {
            kernel,
            place,
            tree,
        })
    }

    /// Returns the kernel without its compression. Returns `None` if only the kernel itself can unpack it.
    pub fn image(&self) -> Option<Vec<u8>> {
        match zimage::is(&self.kernel) {
            true => zimage::unpacked(&self.kernel),
            false => Some(self.kernel.clone()),
        }
    }
}

/// Returns whether a kernel contains one of these names of machines. `image` is the kernel without its compression.
pub fn knows_machine(image: &[u8], compatible: &[&str]) -> bool {
    let mut texts = image.split(|byte| *byte == 0);
    texts.any(|text| {
        compatible
            .iter()
            .any(|name| text.ends_with(name.as_bytes()))
    })
}

/// Number of the form of the files that [`symbols_in`] makes. A change of the form needs another number.
const FORMAT: u32 = 2;

/// Makes a file with the symbols in an Image, and keeps it in the cache. Returns `None` if the Image has no symbols.
pub fn symbols_in(image: &[u8]) -> Result<Option<PathBuf>> {
    let name = format!("{}-{FORMAT}.elf", &blake3::hash(image).to_hex()[..32]);
    let path = cache::dir()?.join("symbols").join(name);
    if path.is_file() {
        return Ok(Some(path));
    }
    let symbols = kallsyms::find(image);
    let Some(file) = symbols.and_then(|symbols| symbol_file::of(image, &symbols)) else {
        return Ok(None);
    };
    paths::write_atomically(&path, &file).map(|()| Some(path))
}

/// Keeps a part of a kernel's file in the cache, under a name from its content. Returns its path.
pub fn kept(part: &[u8], ending: &str) -> Result<PathBuf> {
    let name = format!("{}.{ending}", &blake3::hash(part).to_hex()[..32]);
    let path = cache::dir()?.join("parts").join(name);
    if !path.is_file() {
        paths::write_atomically(&path, part)?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: (u32, u32) = (0x2000_8000, 0x2000_8000);

    fn image() -> Vec<u8> {
        (0..100_000u32).flat_map(u32::to_le_bytes).collect()
    }

    fn tree() -> Vec<u8> {
        let mut tree = b"\xd0\x0d\xfe\xed\0\0\0\x28".to_vec();
        tree.resize(40, 7);
        tree
    }

    #[test]
    fn a_u_boot_image_of_a_zimage_with_a_tree_is_taken_apart() {
        let zimage = zimage::made(&image());
        let both = [&zimage[..], &tree()].concat();
        let file = KernelFile::of(uimage::made([5, 2, 2, 0], PLACE, &both)).unwrap();
        assert_eq!(
            (file.place, file.tree.as_ref()),
            (Some(PLACE), Some(&tree()))
        );
        assert_eq!(file.kernel, zimage);
        assert_eq!(file.image(), Some(image()));
    }

    #[test]
    fn a_packed_image_is_unpacked_and_damage_is_told() {
        use std::io::Write as _;
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&image()).unwrap();
        let packed = packed.finish().unwrap();
        let of = |data: &[u8]| KernelFile::of(uimage::made([5, 2, 2, 1], PLACE, data));
        assert_eq!(of(&packed).unwrap().kernel, image());
        let problem = of(&packed[..packed.len() / 2]).unwrap_err();
        assert!(problem.contains("cannot be unpacked"), "{problem}");
    }

    #[test]
    fn other_files_stay_as_they_are() {
        let file = KernelFile::of(b"text".to_vec()).unwrap();
        assert_eq!(
            (&file.kernel[..], file.place, file.tree),
            (&b"text"[..], None, None)
        );
    }

    #[test]
    fn a_kernel_knows_the_machines_that_it_names() {
        let image = b"code\0atmel,at91sam9\0xarm,integrator-ap\0more";
        assert!(knows_machine(
            image,
            &["atmel,at91sam9263ek", "atmel,at91sam9"]
        ));
        assert!(knows_machine(image, &["arm,integrator-ap"]));
        assert!(!knows_machine(image, &["atmel,at91rm9200"]));
        assert!(!knows_machine(image, &["atmel,at91"]));
        assert!(!knows_machine(image, &[]));
    }
}
