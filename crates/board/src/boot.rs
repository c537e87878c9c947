// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a boot loader does: kernel, device tree and initial RAM disk into RAM, registers set
//! (Linux Documentation/arch/arm/booting.rst).
//!
//! A raw Image goes to 0x8000, a vmlinux where its segments say, a zImage above what it unpacks.
//! Device tree and RAM disk come behind. Nothing runs before the kernel: caches and MMU are off.
//! What cannot work together is refused: a device tree of another machine, a zImage of a kernel that
//! is linked elsewhere.

mod pieces;
mod usable;

use crate::clocks;
use crate::elf::Elf;
use crate::fdt::Tree;
use crate::memory::Sdram;
use crate::spec::{BoardSpec, Peripherals};
use pieces::{Piece, check_places, place};
use std::io::Read as _;
use std::path::Path;

/// Offset of a raw Image in RAM.
const TEXT_OFFSET: u32 = 0x8000;
/// Kernel memory kept free behind a raw Image, whose file does not say how large its bss is.
const IMAGE_BSS: u32 = 4 << 20;
/// Where zImage and device tree go when the RAM is large enough: above any unpacked kernel.
const HIGH: u32 = 24 << 20;
/// What messages call the words that the kernel is told.
const COMMAND_LINE: &str = "the kernel's command line";
const ALIGN: u32 = 0x1_0000;
/// The code before a zImage's compressed part is smaller.
const LONGEST_HEAD: usize = 64 << 10;

/// Something is wrong with what the user wants to boot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct BootError {
    /// The file, or the part of the set-up.
    pub file: String,
    /// What is wrong.
    pub problem: String,
}

/// Bytes and the name messages call them by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blob {
    /// File name.
    pub name: String,
    /// Contents.
    pub bytes: Vec<u8>,
}

/// Largest file worth reading: a vmlinux with all its debug information is below it.
const LARGEST_FILE: u64 = 1 << 30;

/// A file's bytes, at least one; a device that never ends is given up at `most`.
pub(crate) fn read_at_most(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|e| e.to_string())?;
    let read = file.take(most + 1).read_to_end(&mut bytes);
    match read.map_err(|e| e.to_string())? as u64 {
        0 => Err("the file is empty".to_owned()),
        size if size > most => Err(format!("the file is larger than {most} bytes")),
        _ => Ok(bytes),
    }
}

impl Blob {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is empty, or is larger than anything that fits a board.
    pub fn read(path: &Path) -> Result<Blob, BootError> {
        let name = path.display().to_string();
        match read_at_most(path, LARGEST_FILE) {
            Ok(bytes) => Ok(Blob { name, bytes }),
            Err(problem) => Err(BootError {
                file: name,
                problem,
            }),
        }
    }

    /// Refuses what is no kernel for this board, as far as the file says.
    ///
    /// # Errors
    /// What it is instead, or where it wants to be unpacked.
    pub fn check_kernel(self, spec: &BoardSpec) -> Result<(), BootError> {
        let kernel = self;
        let linux = LinuxBoot {
            kernel,
            ..LinuxBoot::default()
        };
        linux.kernel_pieces(spec, spec.ram_bytes).map(|_| ())
    }

    /// Refuses what is no device tree of the machine that there is.
    ///
    /// # Errors
    /// Why not.
    pub fn check_tree(self, machine: &Peripherals) -> Result<(), BootError> {
        let dtb = self;
        let linux = LinuxBoot {
            dtb,
            ..LinuxBoot::default()
        };
        linux.check_machine(&linux.own_tree()?, machine)
    }

    fn error(&self, problem: impl Into<String>) -> BootError {
        BootError {
            file: self.name.clone(),
            problem: problem.into(),
        }
    }
}

/// A change to one property of one cell in the device tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Path of a node that exists: `/core-module/clock-1000000`.
    pub node: String,
    /// Property.
    pub property: String,
    /// New value.
    pub value: u32,
}

/// Linux and what it is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinuxBoot {
    /// zImage, raw Image or vmlinux.
    pub kernel: Blob,
    /// Device tree.
    pub dtb: Blob,
    /// Initial RAM disk.
    pub initrd: Option<Blob>,
    /// Kernel command line.
    pub command_line: String,
    /// Changes to the device tree.
    pub overrides: Vec<Override>,
}

/// What is in RAM when the core starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Boot {
    /// A Linux kernel.
    Linux(LinuxBoot),
    /// A flat program. Registers are zero, the core is at `entry` in Supervisor mode.
    Bare {
        /// Physical address of the first byte.
        load: u32,
        /// Physical address of the first instruction.
        entry: u32,
        /// The program.
        bytes: Vec<u8>,
    },
    /// An ELF executable linked to physical addresses; starts like [`Boot::Bare`].
    BareElf(Blob),
}

/// How the core starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// First instruction.
    pub pc: u32,
    /// r0 to r2.
    pub registers: [u32; 3],
    /// A kernel without the decompressor that enters it on a product.
    pub decompressed: bool,
}

impl Boot {
    /// The board as the device tree describes it: its timers count the clock that the tree says.
    ///
    /// # Errors
    /// When it is no device tree, or one of another machine.
    pub fn on(&self, mut spec: BoardSpec) -> Result<BoardSpec, BootError> {
        if let Boot::Linux(linux) = self {
            let tree = linux.own_tree()?;
            linux.check_machine(&tree, &spec.peripherals)?;
            clocks::set(&mut spec.peripherals, &tree)
                .map_err(|problem| linux.dtb.error(problem))?;
        }
        Ok(spec)
    }

    /// Puts everything into RAM and says how the core starts.
    ///
    /// # Errors
    /// When a file is not what it should be, or things do not fit.
    pub fn load(&self, spec: &BoardSpec, ram: &mut Sdram) -> Result<Start, BootError> {
        match self {
            Boot::Linux(linux) => linux.load(spec, ram),
            Boot::Bare { load, entry, bytes } => {
                let piece = Piece {
                    name: "the program".to_owned(),
                    base: *load,
                    bytes,
                    size: bytes.len() as u32,
                };
                place(spec, spec.ram_bytes, ram, &[piece])?;
                Ok(Start {
                    pc: *entry,
                    registers: [0; 3],
                    decompressed: false,
                })
            }
            Boot::BareElf(blob) => {
                let elf = Elf::parse(&blob.bytes).map_err(|problem| blob.error(problem))?;
                place(spec, spec.ram_bytes, ram, &segments(&elf, &blob.name, 0))?;
                Ok(Start {
                    pc: elf.entry,
                    registers: [0; 3],
                    decompressed: false,
                })
            }
        }
    }
}

fn segments<'a>(elf: &Elf<'a>, name: &str, shift: u32) -> Vec<Piece<'a>> {
    let piece = |(i, s): (usize, &crate::elf::Segment<'a>)| Piece {
        name: format!("{name} (segment {i})"),
        base: s.physical.wrapping_sub(shift),
        bytes: s.bytes,
        size: s.memory_size,
    };
    elf.segments.iter().enumerate().map(piece).collect()
}

impl LinuxBoot {
    /// Bytes of RAM, from its beginning on, that the kernel uses: the board's, or fewer by `mem=`.
    ///
    /// # Errors
    /// When the command line names RAM that the board does not have.
    pub fn ram_bytes(&self, spec: &BoardSpec) -> Result<u32, BootError> {
        let base = spec.peripherals.ram_base;
        usable::usable(&self.command_line, base, spec.ram_bytes).map_err(|problem| BootError {
            file: COMMAND_LINE.to_owned(),
            problem,
        })
    }

    fn load(&self, spec: &BoardSpec, ram: &mut Sdram) -> Result<Start, BootError> {
        let base = spec.peripherals.ram_base;
        let ram_bytes = self.ram_bytes(spec)?;
        let (mut pieces, pc) = self.kernel_pieces(spec, ram_bytes)?;
        // The rest is laid out behind a kernel that is in RAM.
        check_places(spec, ram_bytes, &pieces)?;
        let kernel_end = pieces
            .iter()
            .map(|p| p.base.saturating_add(p.size))
            .max()
            .unwrap_or(base);
        let dtb_at = kernel_end
            .max(base + high(ram_bytes))
            .next_multiple_of(ALIGN);
        // The final size of the tree does not depend on the values put in.
        let dtb_size = self.tree(spec, (0, 0))?.len() as u32;
        let initrd_at = (dtb_at + dtb_size).next_multiple_of(ALIGN);
        let initrd_size = self.initrd.as_ref().map_or(0, |i| i.bytes.len() as u32);
        let dtb = self.tree(spec, (initrd_at, initrd_at.saturating_add(initrd_size)))?;
        let name = self.dtb.name.clone();
        pieces.push(Piece {
            name,
            base: dtb_at,
            bytes: &dtb,
            size: dtb_size,
        });
        if let Some(initrd) = &self.initrd {
            let name = initrd.name.clone();
            pieces.push(Piece {
                name,
                base: initrd_at,
                bytes: &initrd.bytes,
                size: initrd_size,
            });
        }
        place(spec, ram_bytes, ram, &pieces)?;
        Ok(Start {
            pc,
            registers: [0, spec.peripherals.machine_id, dtb_at],
            decompressed: !matches!(kind(&self.kernel)?, KernelKind::Zimage),
        })
    }

    fn kernel_pieces(
        &self,
        spec: &BoardSpec,
        ram_bytes: u32,
    ) -> Result<(Vec<Piece<'_>>, u32), BootError> {
        let (ram, kernel) = (spec.peripherals.ram_base, &self.kernel);
        let piece = |base, extra| Piece {
            name: kernel.name.clone(),
            base,
            bytes: &kernel.bytes,
            size: (kernel.bytes.len() as u32).saturating_add(extra),
        };
        match kind(kernel)? {
            KernelKind::Elf => {
                let elf = Elf::parse(&kernel.bytes).map_err(|problem| kernel.error(problem))?;
                // A vmlinux is linked to virtual addresses: its first segment starts PAGE_OFFSET
                // plus a few pages, RAM starts where PAGE_OFFSET is mapped.
                let lowest = elf.segments.iter().map(|s| s.physical).min().unwrap_or(0);
                let shift = (lowest & 0xffe0_0000).wrapping_sub(ram);
                Ok((
                    segments(&elf, &kernel.name, shift),
                    elf.entry.wrapping_sub(shift),
                ))
            }
            KernelKind::Zimage => {
                self.check_place(spec)?;
                let at = ram + high(ram_bytes);
                // It needs room for its stack and heap behind itself.
                Ok((vec![piece(at, 1 << 20)], at))
            }
            KernelKind::Image => Ok((vec![piece(ram + TEXT_OFFSET, IMAGE_BSS)], ram + TEXT_OFFSET)),
        }
    }

    /// A zImage that unpacks its kernel to an address of its own, instead of to the RAM that it finds
    /// itself in, has to mean this board's RAM.
    fn check_place(&self, spec: &BoardSpec) -> Result<(), BootError> {
        let (base, bytes) = (spec.peripherals.ram_base, &self.kernel.bytes);
        let Some(place) = place_of(bytes) else {
            return Ok(());
        };
        let end = u64::from(base) + u64::from(spec.ram_bytes);
        if (u64::from(base)..end).contains(&u64::from(place)) {
            return Ok(());
        }
        Err(self.kernel.error(format!(
            "the zImage unpacks its kernel to {place:#010x}; this board's RAM is {base:#010x} to {end:#010x}: \
             CONFIG_AUTO_ZRELADDR makes one for any RAM"
        )))
    }

    fn own_tree(&self) -> Result<Tree, BootError> {
        Tree::parse(&self.dtb.bytes)
            .map_err(|problem| self.dtb.error(format!("not a device tree: {problem}")))
    }

    /// A tree that says of what machine it is has to be one of ours.
    fn check_machine(&self, tree: &Tree, machine: &Peripherals) -> Result<(), BootError> {
        let Some(other) = tree.root.texts("compatible").next() else {
            return Ok(());
        };
        let own = &machine.compatible;
        if tree.root.is(own) {
            return Ok(());
        }
        Err(self.dtb.error(format!(
            "the device tree is of {other:?}; this board has the peripherals of \"{own}\", \
             whatever its chip"
        )))
    }

    /// The device tree with memory, command line, RAM disk and overrides set.
    fn tree(&self, spec: &BoardSpec, initrd: (u32, u32)) -> Result<Vec<u8>, BootError> {
        let mut tree = self.own_tree()?;
        for cells in ["#address-cells", "#size-cells"] {
            if tree.root.get_u32(cells) != Some(1) {
                return Err(self.dtb.error(format!("the root's {cells} is not 1")));
            }
        }
        let memory = tree.root.child_or_new("memory");
        memory.set_text("device_type", "memory");
        let reg = [spec.peripherals.ram_base, spec.ram_bytes];
        memory.set("reg", reg.iter().flat_map(|w| w.to_be_bytes()).collect());
        let chosen = tree.root.child_or_new("chosen");
        chosen.set_text("bootargs", &self.command_line);
        if self.initrd.is_some() {
            chosen.set_u32("linux,initrd-start", initrd.0);
            chosen.set_u32("linux,initrd-end", initrd.1);
        }
        for change in &self.overrides {
            let Some(node) = tree.node(&change.node) else {
                return Err(self.dtb.error(format!("there is no node {}", change.node)));
            };
            node.set_u32(&change.property, change.value);
        }
        Ok(tree.to_blob())
    }
}

fn high(ram_bytes: u32) -> u32 {
    HIGH.min(ram_bytes / 2)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KernelKind {
    Zimage,
    Image,
    Elf,
}

/// Looks at the first bytes; refuses what is known to be something else.
fn kind(kernel: &Blob) -> Result<KernelKind, BootError> {
    let b = &kernel.bytes;
    let word = |at: usize| {
        b.get(at..at + 4)
            .map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]))
    };
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
            "is a U-Boot image: give the zImage in it",
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
    // The first instruction of a raw Image is unconditional.
    match word(0) {
        Some(first) if first >> 28 == 0xe && b.len() > 0x1000 => Ok(KernelKind::Image),
        _ => Err(kernel.error("is not an ARM kernel: neither zImage nor Image nor ELF")),
    }
}

/// Where the code before a zImage's compressed part is told to unpack the kernel, if it is: a word of
/// its literal pool, 0x8000 behind a multiple of 16 MB, which is no immediate value of ARM's (Linux
/// arch/arm/boot/compressed/head.S, `zreladdr`).
fn place_of(zimage: &[u8]) -> Option<u32> {
    const MAGICS: [&[u8]; 5] = [
        b"\x1f\x8b\x08",
        b"\xfd7zXZ",
        b"\x5d\0\0",
        b"\x89LZO",
        b"\x02\x21\x4c\x18",
    ];
    let head = &zimage[..zimage.len().min(LONGEST_HEAD)];
    let packed = |at: &usize| MAGICS.iter().any(|magic| head[*at..].starts_with(magic));
    let end = (0..head.len()).find(packed).unwrap_or(0);
    let words = head[..end].chunks_exact(4);
    let mut words = words.map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
    words.find(|word| word & 0x00ff_ffff == TEXT_OFFSET && *word != TEXT_OFFSET)
}

#[cfg(test)]
mod tests;
