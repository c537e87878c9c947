// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boot loader: puts kernel, device tree and initial RAM disk into RAM, and sets the registers (Linux
//! Documentation/arch/arm/booting.rst).
//!
//! A raw Image goes to 0x8000, a vmlinux to the addresses of its segments, and a zImage above the kernel that it
//! unpacks. A kernel from a U-Boot image goes to the address in that image. Device tree and RAM disk follow. No code runs before the kernel, so caches and MMU are off. The loader
//! refuses files that do not fit the board: a device tree of another machine, and a zImage whose kernel is linked at an
//! address outside the RAM.

mod kernel;
mod pieces;
mod usable;

use crate::clocks;
use crate::elf::Elf;
use crate::fdt::{Node, Tree};
use crate::memory::Sdram;
use crate::spec::{BoardSpec, Peripherals};
use kernel::{KernelKind, kind, place_of, unpacked_bytes};
use pieces::{Piece, check_places, place};
use std::io::Read as _;
use std::path::Path;

/// Offset of a raw Image in RAM.
const TEXT_OFFSET: u32 = 0x8000;
/// Bytes kept free after a raw Image, whose file does not contain the size of its bss.
const IMAGE_BSS: u32 = 4 << 20;
/// Offset of zImage and device tree if the RAM is large enough: above any unpacked kernel.
const HIGH: u32 = 24 << 20;
/// Name of the kernel's command line in messages.
const COMMAND_LINE: &str = "the kernel's command line";
const ALIGN: u32 = 0x1_0000;

/// A mistake in the files or options of a boot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct BootError {
    /// The file or option with the mistake.
    pub file: String,
    /// What is wrong.
    pub problem: String,
}

/// Contents of a file, with its name for messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blob {
    /// File name.
    pub name: String,
    /// Contents.
    pub bytes: Vec<u8>,
}

/// Largest file that is read, in bytes. Even a vmlinux with all its debug information is smaller.
const LARGEST_FILE: u64 = 1 << 30;

/// Reads a file, which must not be empty. Fails after `most` bytes, because a device file may never end.
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
    /// Fails when the file cannot be read, is empty, or is larger than any file that fits a board.
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

    /// Checks that the file is a kernel for this board, as far as its contents show. `place` has the addresses that a
    /// U-Boot image gives the kernel.
    ///
    /// # Errors Fails when the file is not such a kernel. The message says what the file is instead, or to which
    /// address it unpacks its kernel.
    pub fn check_kernel(self, spec: &BoardSpec, place: Option<Place>) -> Result<(), BootError> {
        let kernel = self;
        let linux = LinuxBoot {
            kernel,
            place,
            ..LinuxBoot::default()
        };
        let (pieces, _) = linux.kernel_pieces(spec, spec.ram_bytes)?;
        check_places(spec, spec.ram_bytes, &pieces)
    }

    /// Checks that the file is a device tree of this machine.
    ///
    /// # Errors Fails when the file is not such a device tree. The message says why.
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

/// A new value for a one-cell property in the device tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Path of an existing node, such as `/core-module/clock-1000000`.
    pub node: String,
    /// Name of the property.
    pub property: String,
    /// New value.
    pub value: u32,
}

/// Addresses that a U-Boot image gives its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Physical address of the kernel's first byte.
    pub load: u32,
    /// Physical address of the kernel's first instruction.
    pub entry: u32,
}

/// A Linux kernel with its device tree, RAM disk and command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinuxBoot {
    /// zImage, raw Image or vmlinux.
    pub kernel: Blob,
    /// Addresses of a zImage or raw Image. `None` if the boot loader selects them.
    pub place: Option<Place>,
    /// Device tree.
    pub dtb: Blob,
    /// Initial RAM disk.
    pub initrd: Option<Blob>,
    /// Kernel command line.
    pub command_line: String,
    /// Changes to the device tree.
    pub overrides: Vec<Override>,
}

/// Contents of RAM when the core starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Boot {
    /// A Linux kernel.
    Linux(LinuxBoot),
    /// A flat program. Registers are zero, and the core starts at `entry` in Supervisor mode.
    Bare {
        /// Physical address of the first byte.
        load: u32,
        /// Physical address of the first instruction.
        entry: u32,
        /// The program.
        bytes: Vec<u8>,
    },
    /// An ELF executable that is linked at physical addresses. It starts like [`Boot::Bare`].
    BareElf(Blob),
}

/// State in which the core starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Address of the first instruction.
    pub pc: u32,
    /// Values of r0 to r2.
    pub registers: [u32; 3],
    /// Whether the kernel starts without the decompressor of a zImage.
    pub decompressed: bool,
}

impl Boot {
    /// Returns the board with the timer clocks that the device tree gives.
    ///
    /// # Errors
    /// Fails when the file is not a device tree of this machine, or when its timer clocks cannot be set.
    pub fn on(&self, mut spec: BoardSpec) -> Result<BoardSpec, BootError> {
        if let Boot::Linux(linux) = self {
            let tree = linux.own_tree()?;
            linux.check_machine(&tree, &spec.peripherals)?;
            clocks::set(&mut spec.peripherals, &tree)
                .map_err(|problem| linux.dtb.error(problem))?;
        }
        Ok(spec)
    }

    /// Puts everything into RAM. Returns the state in which the core starts.
    ///
    /// # Errors
    /// Fails when a file has the wrong contents, or when the files do not fit into RAM.
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
    /// Returns the number of bytes, from the start of RAM, that the kernel uses. Without `mem=`, the kernel uses all
    /// RAM of the board.
    ///
    /// # Errors
    /// Fails when the command line names RAM that the board does not have.
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
        // The other pieces follow the kernel, so the kernel is checked first.
        check_places(spec, ram_bytes, &pieces)?;
        let kernel_end = pieces
            .iter()
            .map(|p| p.base.saturating_add(p.size))
            .max()
            .unwrap_or(base)
            .max(self.unpacked_end(base));
        let dtb_at = kernel_end
            .max(base + high(ram_bytes))
            .next_multiple_of(ALIGN);
        // The size of the tree does not depend on the addresses of the RAM disk.
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
            KernelKind::Zimage | KernelKind::Image if self.place.is_some() => self.placed(spec),
            KernelKind::Elf => {
                let elf = Elf::parse(&kernel.bytes).map_err(|problem| kernel.error(problem))?;
                // A vmlinux is linked at virtual addresses. Its first segment starts a few pages after PAGE_OFFSET,
                // which is mapped to the start of RAM.
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
                // A zImage needs room for its stack and heap after its end.
                Ok((vec![piece(at, 1 << 20)], at))
            }
            KernelKind::Image => Ok((vec![piece(ram + TEXT_OFFSET, IMAGE_BSS)], ram + TEXT_OFFSET)),
        }
    }

    /// Returns the kernel at the addresses that a U-Boot image gives.
    fn placed(&self, spec: &BoardSpec) -> Result<(Vec<Piece<'_>>, u32), BootError> {
        let kernel = &self.kernel;
        let size = kernel.bytes.len() as u64;
        let Place { load, entry } = self.place.unwrap_or(Place { load: 0, entry: 0 });
        let (from, to) = (u64::from(load), u64::from(load) + size);
        if !(from..to).contains(&u64::from(entry)) {
            return Err(kernel.error(format!(
                "the U-Boot image starts its kernel at {entry:#010x}, outside of the kernel at {from:#010x} to {to:#010x}"
            )));
        }
        let base = u64::from(spec.peripherals.ram_base);
        let end = base + u64::from(spec.ram_bytes);
        if from < base || to > end {
            return Err(kernel.error(format!(
                "the U-Boot image loads its kernel to {from:#010x}, but this board's RAM is {base:#010x} to \
                 {end:#010x}: make the image with mkimage -a {:#x}",
                base + u64::from(TEXT_OFFSET)
            )));
        }
        let extra = match kind(kernel)? {
            KernelKind::Zimage => {
                self.check_place(spec)?;
                1 << 20
            }
            _ => IMAGE_BSS,
        };
        let piece = Piece {
            name: kernel.name.clone(),
            base: load,
            bytes: &kernel.bytes,
            size: (kernel.bytes.len() as u32).saturating_add(extra),
        };
        Ok((vec![piece], entry))
    }

    /// Returns the end of the RAM that a zImage at a given place needs. A zImage that lies where its kernel goes first
    /// moves itself behind that kernel.
    fn unpacked_end(&self, ram_base: u32) -> u32 {
        let unpacked = self.place.and_then(|_| unpacked_bytes(&self.kernel.bytes));
        unpacked.map_or(ram_base, |unpacked| {
            let own = self.kernel.bytes.len() as u32;
            let above = TEXT_OFFSET.saturating_add(unpacked).saturating_add(own);
            ram_base.saturating_add(above).saturating_add(1 << 20)
        })
    }

    /// Checks the address to which a zImage unpacks its kernel: it must be in this board's RAM. A zImage without a
    /// fixed address unpacks its kernel into the RAM in which the zImage runs.
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
            "the zImage unpacks its kernel to {place:#010x}, but this board's RAM is {base:#010x} to {end:#010x}: \
             build it with CONFIG_AUTO_ZRELADDR, which fits any RAM"
        )))
    }

    fn own_tree(&self) -> Result<Tree, BootError> {
        Tree::parse(&self.dtb.bytes)
            .map_err(|problem| self.dtb.error(format!("not a device tree: {problem}")))
    }

    /// If the tree names a machine, checks that it is this one.
    fn check_machine(&self, tree: &Tree, machine: &Peripherals) -> Result<(), BootError> {
        let Some(other) = tree.root.texts("compatible").next() else {
            return Ok(());
        };
        let own = &machine.compatible;
        if tree.root.is(own) {
            return Ok(());
        }
        Err(self.dtb.error(format!(
            "the device tree is for {other:?}, but the board's machine is {} ({own:?}): use a device tree for \
             {own:?}",
            machine.name
        )))
    }

    /// Returns the device tree with memory, command line, RAM disk and overrides.
    fn tree(&self, spec: &BoardSpec, initrd: (u32, u32)) -> Result<Vec<u8>, BootError> {
        let mut tree = self.own_tree()?;
        for cells in ["#address-cells", "#size-cells"] {
            if tree.root.get_u32(cells) != Some(1) {
                let problem =
                    format!("{cells} of the root is not 1: use 32-bit addresses and sizes");
                return Err(self.dtb.error(problem));
            }
        }
        let memory = memory_node(&mut tree.root);
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

/// Returns the tree's node of the memory, whatever its unit address is. Makes a node if there is none.
fn memory_node(root: &mut Node) -> &mut Node {
    let is_memory = |node: &Node| node.texts("device_type").any(|text| text == "memory");
    match root.children.iter().position(is_memory) {
        Some(at) => &mut root.children[at],
        None => root.child_or_new("memory"),
    }
}

fn high(ram_bytes: u32) -> u32 {
    HIGH.min(ram_bytes / 2)
}

#[cfg(test)]
mod tests;
