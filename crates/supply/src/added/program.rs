// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides whether an added program can start in the guest, from its first bytes and the files that it needs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::Around;
use super::view::View;
use crate::image::LIBRARY_DIR;
use crate::image::elf;

/// The last architecture before ARMv6, as a value of `Tag_CPU_arch` (ARM's ABI, IHI0045).
const ARMV5TEJ: u64 = 5;

/// Folder of the cross compiler's libraries, which the user can add.
const CROSS_LIBRARIES: &str = "/usr/arm-linux-gnueabi/lib";

/// First bytes of a script.
const SCRIPT: &[u8] = b"#!";
/// First bytes of a program of uClinux (Linux include/linux/flat.h).
const FLAT_PROGRAM: &[u8] = b"bFLT";
/// First bytes of programs for which Linux on ARM has no loader.
const FOREIGN: [(&[u8], &str); 4] = [
    (b"MZ", "a program for Windows or EFI"),
    (b"\xcf\xfa\xed\xfe", "a program for macOS"),
    (b"\xce\xfa\xed\xfe", "a program for macOS"),
    (b"\xca\xfe\xba\xbe", "a Java class or a program for macOS"),
];

/// Requirements for programs on a kernel without address spaces.
const NOT_FLAT: &str = "on a kernel without address spaces a program is static, runs at any address and does not \
                        fork: compile it with `warmswitch cc --for flat`";

/// An added program.
pub struct Program {
    /// Path on the host.
    pub host: PathBuf,
    /// Path in the guest.
    pub guest: String,
    /// Whether the user named the program itself. Otherwise, the user named a folder that contains it.
    pub by_name: bool,
    /// Files that the program needs, or the reason why no guest can run it.
    needs: Result<elf::Needs, String>,
    /// Whether the program is a bFLT program, which needs a loader in the kernel.
    flat: bool,
}

impl Program {
    /// Returns the program in a file. Returns `None` if the file is not a program.
    pub fn of(
        (host, guest): (&Path, &str),
        content: &[u8],
        executable: bool,
        by_name: bool,
    ) -> Option<Program> {
        let flat = executable && content.starts_with(FLAT_PROGRAM);
        let foreign = || FOREIGN.iter().find(|(magic, _)| content.starts_with(magic));
        let needs = if content.starts_with(b"\x7fELF") && !is_object(content) {
            elf_needs(host, content)
        } else if is_script(content) {
            Ok(script_needs(content))
        } else if flat {
            Ok(elf::Needs::default())
        } else if let Some((_, what)) = foreign().filter(|_| executable) {
            Err(format!(
                "it is {what}, not for little-endian ARM under Linux"
            ))
        } else {
            return None;
        };
        Some(Program {
            host: host.to_path_buf(),
            guest: guest.to_string(),
            by_name,
            needs,
            flat,
        })
    }

    /// Returns the reason why the guest cannot run the program, if a reason is known.
    pub fn trouble(&self, around: &Around, view: &View) -> Option<String> {
        let needs = match &self.needs {
            Ok(needs) => needs,
            Err(why) => return Some(why.clone()),
        };
        if self.flat {
            let none = around.loads_flat == Some(false);
            return none.then(|| {
                "it is a bFLT program of uClinux, and this kernel has no loader for it\n  help: \
                compile it with `warmswitch cc`"
                    .to_string()
            });
        }
        around
            .flat
            .then(|| not_flat(needs))
            .flatten()
            .or_else(|| newer_c_library(needs, around.c_library.as_ref()?))
            .or_else(|| lacks(needs, around, view))
    }
}

/// Returns the reason why binfmt_elf_fdpic would fail with ENOEXEC or ENOENT.
fn not_flat(needs: &elf::Needs) -> Option<String> {
    if !needs.libraries.is_empty() {
        Some(format!("it is dynamic\n  help: {NOT_FLAT}"))
    } else if needs.fixed {
        Some(format!("it runs at one address only\n  help: {NOT_FLAT}"))
    } else {
        None
    }
}

/// Returns an error if the program was linked with a C library newer than the guest's C library, because the loader
/// refuses such a program.
fn newer_c_library(needs: &elf::Needs, versions: &BTreeSet<String>) -> Option<String> {
    let missing = needs.c_library.difference(versions).next()?;
    Some(format!(
        "it needs {missing} of {}, which is newer than the guest's\n  help: link it with the guest's own: \
         use `warmswitch cc`",
        elf::C_LIBRARY
    ))
}

/// Returns an error if the guest lacks the program's loader, interpreter or a library.
fn lacks(needs: &elf::Needs, around: &Around, view: &View) -> Option<String> {
    // The folders that the loader searches are known only for our root file system.
    if around.names.is_none() || !around.is_ours {
        return None;
    }
    let exists = |path: &str| view.behind(path).is_some();
    if let Some(loader) = &needs.loader
        && !exists(loader)
    {
        let loader = loader.escape_debug();
        return Some(format!("it is run by {loader}, which is not in the guest"));
    }
    let library = |name: &&String| match name.contains('/') {
        // A name with a slash is a path.
        true => exists(name),
        false => view.has_name(name),
    };
    let name = needs.libraries.iter().find(|name| !library(name))?;
    let cross = Path::new(CROSS_LIBRARIES).join(name);
    let hint = if name.contains('/') {
        format!("link with the library's name without a path, or --add it to /{name}")
    } else if cross.is_file() {
        format!("add it with --add {}", cross.display())
    } else {
        format!("add it with --add FILE:/{LIBRARY_DIR}/{name}")
    };
    Some(format!(
        "it needs {name}, which is not in the guest: {hint}"
    ))
}

fn elf_needs(host: &Path, content: &[u8]) -> Result<elf::Needs, String> {
    let name = host.file_name().unwrap_or_default().to_string_lossy();
    let needs = elf::needs(&name, content).map_err(|error| error.to_string())?;
    if elf::architecture(content).is_some_and(|number| number > ARMV5TEJ) {
        return Err(format!(
            "{name}: a program for ARMv6 or newer; the boards' cores are ARMv5TE: compile it with -march=armv5te"
        ));
    }
    Ok(needs)
}

fn script_needs(content: &[u8]) -> elf::Needs {
    let first = content.split(|byte| *byte == b'\n').next();
    let first = String::from_utf8_lossy(&first.unwrap_or_default()[SCRIPT.len()..]).into_owned();
    let interpreter = first.trim_start_matches([' ', '\t']);
    let end = interpreter.find([' ', '\t', '\r']);
    elf::Needs {
        loader: Some(interpreter[..end.unwrap_or(interpreter.len())].to_string()),
        ..elf::Needs::default()
    }
}

/// Returns whether a file begins like a script.
pub fn is_script(content: &[u8]) -> bool {
    content.starts_with(SCRIPT)
}

/// Returns whether an ELF file is an object for a linker, such as a kernel module.
fn is_object(elf: &[u8]) -> bool {
    elf.get(16..18) == Some(&[1, 0])
}
