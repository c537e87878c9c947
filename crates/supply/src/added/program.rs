// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether an added program could start in the guest, by what it begins with and what it names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::Around;
use super::view::View;
use crate::image::LIBRARY_DIR;
use crate::image::elf;

/// The last architecture before ARMv6, by ARM's number (IHI0045, `Tag_CPU_arch`).
const ARMV5TEJ: u64 = 5;

/// Where cross compilers have libraries that could be added.
const CROSS_LIBRARIES: &str = "/usr/arm-linux-gnueabi/lib";

/// How the first line of a script begins.
const SCRIPT: &[u8] = b"#!";
/// How a program of uClinux begins (Linux include/linux/flat.h).
const FLAT_PROGRAM: &[u8] = b"bFLT";
/// Programs that Linux on ARM has no loader for.
const FOREIGN: [(&[u8], &str); 4] = [
    (b"MZ", "a program for Windows or EFI"),
    (b"\xcf\xfa\xed\xfe", "a program for macOS"),
    (b"\xce\xfa\xed\xfe", "a program for macOS"),
    (b"\xca\xfe\xba\xbe", "a Java class or a program for macOS"),
];

/// What a program has to be where there are no address spaces.
const NOT_FLAT: &str = "a kernel without address spaces runs static programs that run at any address, and do not fork: \
                        `warmswitch cc --for flat` makes one";

/// A program among what is added.
pub struct Program {
    /// Where it comes from.
    pub host: PathBuf,
    /// Where it goes.
    pub guest: String,
    /// Whether it was named itself, and is not one of many in a folder.
    pub by_name: bool,
    /// What it needs, or why no guest can run it.
    needs: Result<elf::Needs, String>,
    /// Only a kernel with a loader for it runs it.
    flat: bool,
}

impl Program {
    /// The file's, unless it is none.
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

    /// Why the guest cannot run it, as far as that is known.
    pub fn trouble(&self, around: &Around, view: &View) -> Option<String> {
        let needs = match &self.needs {
            Ok(needs) => needs,
            Err(why) => return Some(why.clone()),
        };
        if self.flat {
            let none = around.loads_flat == Some(false);
            return none.then(|| {
                "it is a bFLT program of uClinux, and this kernel has no loader for it\n  help: \
                 `warmswitch cc` makes one that it runs"
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

/// What binfmt_elf_fdpic would refuse by ENOEXEC or ENOENT.
fn not_flat(needs: &elf::Needs) -> Option<String> {
    if !needs.libraries.is_empty() {
        Some(format!("it is dynamic\n  help: {NOT_FLAT}"))
    } else if needs.fixed {
        Some(format!("it runs at one address only\n  help: {NOT_FLAT}"))
    } else {
        None
    }
}

/// What the loader would refuse: linked with a newer C library.
fn newer_c_library(needs: &elf::Needs, versions: &BTreeSet<String>) -> Option<String> {
    let missing = needs.c_library.difference(versions).next()?;
    Some(format!(
        "it needs {missing} of {}, which is newer than the guest's\n  help: `warmswitch cc` links with the guest's own",
        elf::C_LIBRARY
    ))
}

/// Whether the guest lacks its loader, its interpreter or a library.
fn lacks(needs: &elf::Needs, around: &Around, view: &View) -> Option<String> {
    // Of another root file system it is not known where its loader looks.
    if around.names.is_none() || !around.is_ours {
        return None;
    }
    let there = |path: &str| view.behind(path).is_some();
    if let Some(loader) = &needs.loader
        && !there(loader)
    {
        let loader = loader.escape_debug();
        return Some(format!("it is run by {loader}, which is not in the guest"));
    }
    let library = |name: &&String| match name.contains('/') {
        // One with a path is looked for there.
        true => there(name),
        false => view.has_name(name),
    };
    let name = needs.libraries.iter().find(|name| !library(name))?;
    let cross = Path::new(CROSS_LIBRARIES).join(name);
    let hint = if name.contains('/') {
        format!("link with the library's name alone, or --add it to /{name}")
    } else if cross.is_file() {
        format!("--add {} takes it there", cross.display())
    } else {
        format!("--add FILE:/{LIBRARY_DIR}/{name} takes it there")
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
            "{name}: a program for ARMv6 or newer; the boards' cores are ARMv5TE: -march=armv5te makes one for them"
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

/// Whether a file begins as a script does.
pub fn is_script(content: &[u8]) -> bool {
    content.starts_with(SCRIPT)
}

/// A kernel module or another file for a linker.
fn is_object(elf: &[u8]) -> bool {
    elf.get(16..18) == Some(&[1, 0])
}
