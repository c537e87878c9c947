// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks whether the root file system fits into a board's RAM. The kernel unpacks the archive into memory. The archive
//! itself also stays in RAM until everything is unpacked.
//!
//! A root file system is a tmpfs unless the command line selects another type. A tmpfs holds at most half of the pages
//! that the kernel and the archive leave free (Linux mm/shmem.c, `shmem_default_max_blocks`). If a root file system is
//! larger, the kernel gets it compressed and unpacks it into a ramfs, which may use all pages (init/do_mounts.c,
//! `init_rootfs`).

use std::io::Write as _;
use std::path::Path;

use anyhow::{Result, bail};
use board::BoardSpec;
use board::boot::LinuxBoot;
use flate2::Compression;
use flate2::write::GzEncoder;

use supply::added::Added;
use supply::image::FLAT_SYMBOL;
use supply::image::cpio::{self, PAGE, Unpacked};
use supply::symbols;

/// RAM that a kernel takes per page, in bytes. It holds the page's `struct page`, page tables and hash tables. `plain`
/// takes 35 bytes ("Memory:" in its log on boards with 32 and 64 MB).
const PER_PAGE: u64 = 40;
/// RAM that a kernel takes on any board in addition to its image, in bytes. `plain` takes 609 KB.
const BESIDES: u64 = 768 << 10;
/// RAM to leave free with a ramfs, in bytes. The kernel needs it to unpack, and programs need it to run.
const SPARE: u64 = 4 << 20;
/// Inode and directory entry of a name, in bytes.
const NAME: u64 = 768;
/// Largest RAM of a board (`ram.size` in board files), in bytes.
const MOST_RAM: u64 = 256 << 20;
/// Kernel option that puts the root file system into a ramfs.
const RAMFS: &str = "rootfstype=ramfs";

/// Properties of a kernel, from its symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTraits {
    /// Whether the kernel has no address spaces.
    pub flat: bool,
    /// Whether the kernel has a loader for bFLT programs.
    pub loads_flat: bool,
    /// Size of the kernel in RAM.
    bytes: u64,
    /// Whether the kernel has a tmpfs.
    tmpfs: bool,
    /// Whether the kernel can unpack a compressed archive.
    gunzip: bool,
}

impl KernelTraits {
    /// Reads the properties from a kernel with symbols.
    pub fn of(vmlinux: Option<&Path>) -> Option<KernelTraits> {
        let names = [
            "_stext",
            "_end",
            FLAT_SYMBOL,
            "load_flat_binary",
            "shmem_parse_one",
            "gunzip",
        ];
        let [start, end, flat, loads_flat, tmpfs, gunzip] = symbols::places(vmlinux?, names)?;
        Some(KernelTraits {
            bytes: end?.checked_sub(start?)?,
            flat: flat.is_some(),
            loads_flat: loads_flat.is_some(),
            tmpfs: tmpfs.is_some(),
            gunzip: gunzip.is_some(),
        })
    }
}

/// How a root file system is given to a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Unchanged. `tmpfs` says whether the kernel unpacks the archive into a tmpfs.
    AsIs { tmpfs: bool },
    /// Compressed, into a ramfs.
    Packed,
}

/// RAM that the kernel and its tables leave, and the content that has to fit into it.
#[derive(Clone, Copy, Debug)]
struct Room {
    free: u64,
    content: Unpacked,
}

impl Room {
    /// Returns the RAM that an archive of this size lacks, in bytes. Returns `None` if the archive fits.
    fn lacks(&self, archive: u64, form: Form) -> Option<u64> {
        let archive = archive.next_multiple_of(PAGE);
        let pages = self.content.pages * PAGE;
        let lacking = |wanted: u64, present: u64| wanted.checked_sub(present).filter(|n| *n > 0);
        match form {
            Form::AsIs { tmpfs: true } => {
                // A tmpfs can hold at most as many names as pages.
                let half = self.free.saturating_sub(archive) / 2 / PAGE;
                lacking(self.content.pages.max(self.content.names), half).map(|n| n * PAGE)
            }
            _ => lacking(
                pages + archive + SPARE + self.content.names * NAME,
                self.free,
            ),
        }
    }

    /// Returns the size, in bytes, of the largest file that fits in addition to this archive. The file fits even if it
    /// does not compress.
    fn more(&self, archive: u64, packed: u64, forms: &[Form]) -> u64 {
        let fits = |bytes: &u64, form: &Form| {
            let content = Unpacked {
                pages: self.content.pages + bytes.div_ceil(PAGE),
                names: self.content.names + 1,
            };
            let archive = match form {
                Form::AsIs { .. } => archive + bytes,
                // gzip makes incompressible data a little larger.
                Form::Packed => packed + bytes + bytes / 2048,
            };
            // The header of the name and its padding take one more page.
            let room = Room { content, ..*self };
            room.lacks(archive + PAGE, *form).is_none()
        };
        let most = |form: &Form| {
            let (mut low, mut high) = (0, self.free / PAGE);
            while low < high {
                let middle = (low + high).div_ceil(2);
                match fits(&(middle * PAGE), form) {
                    true => low = middle,
                    false => high = middle - 1,
                }
            }
            low * PAGE
        };
        forms.iter().map(most).max().unwrap_or(0)
    }
}

/// Makes the root file system with the user's files fit into the board's RAM. If it does not fit, the error says by how
/// much it is too large, and what fits. The first `own` bytes of the archive are not the user's. If too little is known
/// about a kernel or an archive, accepts it. The kernel then reports files that it cannot unpack.
pub fn fit(
    linux: &mut LinuxBoot,
    kernel: Option<&KernelTraits>,
    board: &BoardSpec,
    (own, added): (usize, &[Added]),
) -> Result<()> {
    let ram = u64::from(linux.ram_bytes(board)?);
    let (Some(kernel), Some(initrd)) = (kernel, &linux.initrd) else {
        return Ok(());
    };
    let Some(content) = cpio::unpacked(&initrd.bytes) else {
        return Ok(());
    };
    let tables = ram / PAGE * PER_PAGE + BESIDES + linux.dtb.bytes.len() as u64;
    let room = Room {
        free: ram.saturating_sub(kernel.bytes + tables),
        content,
    };
    let as_is = Form::AsIs {
        tmpfs: kernel.tmpfs && is_tmpfs(&linux.command_line),
    };
    let Some(lacking) = room.lacks(initrd.bytes.len() as u64, as_is) else {
        return Ok(());
    };
    let may_pack = kernel.gunzip && !names_a_root(&linux.command_line);
    let mut forms = vec![as_is];
    if may_pack {
        forms.push(Form::Packed);
    }
    let mut lacking = lacking;
    if may_pack && room.lacks(0, Form::Packed).is_none() {
        let packed = packed(&initrd.bytes)?;
        let Some(still) = room.lacks(packed.len() as u64, Form::Packed) else {
            eprintln!(
                "note: {}: the root file system is given compressed and goes into a ramfs, so the boot takes longer",
                ram_of(board, ram)
            );
            linux.initrd = linux.initrd.take().map(|initrd| board::boot::Blob {
                bytes: packed,
                ..initrd
            });
            linux.command_line = format!("{} {RAMFS}", linux.command_line);
            return Ok(());
        };
        lacking = still;
    }
    let own = initrd.bytes[..own].to_vec();
    too_much(room, lacking, (own, added), (board, ram, kernel), &forms)
}

/// Returns the error that says by how much the root file system is too large, and what fits.
fn too_much(
    room: Room,
    lacking: u64,
    (own, added): (Vec<u8>, &[Added]),
    (board, ram, kernel): (&BoardSpec, u64, &KernelTraits),
    forms: &[Form],
) -> Result<()> {
    let content = cpio::unpacked(&own).unwrap_or_default();
    let of_root = Room { content, ..room };
    let more = match of_root.lacks(0, Form::Packed) {
        Some(_) => 0,
        None => of_root.more(own.len() as u64, packed(&own)?.len() as u64, forms),
    };
    let kb = |bytes: u64| bytes >> 10;
    let ram_text = ram_of(board, ram);
    let kernel_kb = kb(kernel.bytes);
    let sizes = format!(
        "unpacked it takes {} KB, the archive stays in RAM until then, and the kernel takes {kernel_kb} KB",
        kb(room.content.pages * PAGE)
    );
    let most = largest(added);
    let (what, fits) = match &most {
        Some((option, _)) if more > 0 => (
            format!("{option}: with it the root file system does not fit into {ram_text}"),
            format!("a file of {more} bytes fits on this board, even if it does not compress"),
        ),
        _ => (
            format!("the root file system does not fit into {ram_text}"),
            "nothing can be added on this board".to_string(),
        ),
    };
    let larger = match (ram == u64::from(board.ram_bytes), ram < MOST_RAM) {
        (false, _) => "; without mem=, more fits",
        (true, true) => "; with --set ram.size=256M, more fits",
        (true, false) => "",
    };
    bail!(
        "{what}: {} KB too much ({sizes})\n  help: {fits}{larger}",
        kb(lacking.next_multiple_of(1 << 10))
    )
}

/// Describes the RAM, for messages.
fn ram_of(board: &BoardSpec, ram: u64) -> String {
    let mb = ram >> 20;
    match ram == u64::from(board.ram_bytes) {
        true => format!("the {mb} MB of RAM of {}", board.name),
        false => format!("the {mb} MB of RAM that mem= leaves {}", board.name),
    }
}

/// Returns the option and size of the largest added file.
fn largest(added: &[Added]) -> Option<(String, u64)> {
    let sizes = added.iter().map(|one| (one.bytes(), one.option()));
    sizes.max().map(|(bytes, option)| (option, bytes))
}

/// Returns whether a kernel that has a tmpfs uses it for the root file system (Linux init/do_mounts.c, `init_rootfs`).
fn is_tmpfs(command_line: &str) -> bool {
    let types = words(command_line, "rootfstype=").next_back();
    let root = words(command_line, "root=").next_back();
    types.map_or(root.is_none(), |types| types.contains("tmpfs"))
}

/// Returns whether the command line selects a root file system.
fn names_a_root(command_line: &str) -> bool {
    words(command_line, "root=").next().is_some()
        || words(command_line, "rootfstype=").next().is_some()
}

fn words<'a>(command_line: &'a str, key: &'a str) -> impl DoubleEndedIterator<Item = &'a str> {
    let words = command_line.split_whitespace();
    words.filter_map(move |word| word.strip_prefix(key))
}

fn packed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn room(free_mb: u64, content_mb: u64) -> Room {
        let content = Unpacked {
            pages: content_mb * MB / PAGE,
            names: 100,
        };
        Room {
            free: free_mb * MB,
            content,
        }
    }

    #[test]
    fn a_tmpfs_takes_half_of_what_the_archive_leaves() {
        let tmpfs = Form::AsIs { tmpfs: true };
        assert_eq!(room(36, 12).lacks(12 * MB, tmpfs), None);
        assert_eq!(room(36, 13).lacks(13 * MB, tmpfs), Some(MB + MB / 2));
        // Each name counts like a page.
        let mut many = room(36, 1);
        many.content.names = 5000;
        assert!(many.lacks(MB, tmpfs).is_some());
        let ramfs = Form::AsIs { tmpfs: false };
        assert_eq!(room(36, 13).lacks(13 * MB, ramfs), None);
        assert!(room(36, 17).lacks(17 * MB, ramfs).is_some());
        assert_eq!(room(24, 12).lacks(5 * MB, Form::Packed), None);
    }

    #[test]
    fn a_file_of_as_many_bytes_as_are_said_fits_and_a_page_more_does_not() {
        let root = room(55, 12);
        for form in [Form::AsIs { tmpfs: true }, Form::Packed] {
            let more = root.more(12 * MB, 5 * MB, &[form]);
            let with = |bytes: u64| {
                let archive = match form {
                    Form::Packed => 5 * MB + bytes + bytes / 2048,
                    _ => 12 * MB + bytes,
                };
                let mut room = root;
                room.content.pages += bytes.div_ceil(PAGE);
                room.content.names += 1;
                room.lacks(archive + PAGE, form)
            };
            assert_eq!(with(more), None, "{form:?}: {more}");
            assert!(with(more + PAGE).is_some(), "{form:?}: {more}");
            assert!(more > 5 * MB, "{form:?}: {more}");
        }
        assert_eq!(room(10, 12).more(12 * MB, 5 * MB, &[Form::Packed]), 0);
    }

    #[test]
    fn the_command_line_says_what_the_root_is() {
        assert!(is_tmpfs("quiet") && is_tmpfs("rootfstype=tmpfs root=x"));
        assert!(!is_tmpfs("root=/dev/ram0") && !is_tmpfs("rootfstype=ramfs"));
        assert!(names_a_root("root=/dev/ram0") && !names_a_root("quiet"));
    }
}
