// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of ELF that a boot loader needs: loadable segments and the entry point of an ARM executable.

use object::Endianness;
use object::elf::{EM_ARM, ET_EXEC, FileHeader32, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};

/// A loadable segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Physical (load) address.
    pub physical: u32,
    /// Bytes in the file.
    pub bytes: &'a [u8],
    /// Number of bytes in memory. Bytes beyond the end of `bytes` are zero.
    pub memory_size: u32,
}

/// An executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elf<'a> {
    /// Address of the first instruction.
    pub entry: u32,
    /// Segments with bytes in memory.
    pub segments: Vec<Segment<'a>>,
}

/// Returns the name of a common machine number.
fn machine_name(machine: u16) -> &'static str {
    match machine {
        3 => "x86",
        8 => "MIPS",
        20 | 21 => "PowerPC",
        62 => "x86-64",
        183 => "64-bit ARM",
        243 => "RISC-V",
        _ => "another machine",
    }
}

impl<'a> Elf<'a> {
    /// Parses an executable.
    ///
    /// # Errors
    /// Fails when the file is damaged, or is not a 32-bit little-endian ARM executable.
    pub fn parse(bytes: &'a [u8]) -> Result<Elf<'a>, String> {
        if !bytes.starts_with(b"\x7fELF") {
            return Err("is not an ELF file".to_owned());
        }
        let machine = bytes.get(18..20).map(|b| u16::from_le_bytes([b[0], b[1]]));
        match machine {
            Some(EM_ARM) => {}
            // EM_ARM in a big-endian file.
            Some(0x2800) => {
                return Err("is for big-endian ARM: build it for little-endian ARM".into());
            }
            Some(m) => {
                return Err(format!(
                    "is an ELF file for {} (machine {m}), not for ARM",
                    machine_name(m)
                ));
            }
            None => return Err("the ELF file is cut short".to_owned()),
        }
        let damaged = |e: object::read::Error| format!("the ELF file is damaged: {e}");
        let header = FileHeader32::<Endianness>::parse(bytes).map_err(damaged)?;
        let endian = header.endian().map_err(damaged)?;
        if header.e_type.get(endian) != ET_EXEC {
            return Err("is not an executable: link it to a fixed address".into());
        }
        let mut segments = Vec::new();
        for program in header.program_headers(endian, bytes).map_err(damaged)? {
            if program.p_type(endian) != PT_LOAD || program.p_memsz(endian) == 0 {
                continue;
            }
            let data = program.data(endian, bytes).map_err(|()| {
                "the ELF file is cut short: a segment ends beyond the end of the file".to_owned()
            })?;
            segments.push(Segment {
                physical: program.p_paddr(endian),
                bytes: data,
                memory_size: program.p_memsz(endian),
            });
        }
        if segments.is_empty() {
            return Err("the ELF file has no segment to load".to_owned());
        }
        Ok(Elf {
            entry: header.e_entry(endian),
            segments,
        })
    }
}
