// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks whether a kernel has code for the board's core, according to the kernel's list of processors (Linux
//! arch/arm/include/asm/procinfo.h).

use std::fs::File;
use std::path::Path;

use anyhow::{Result, bail};
use arm::model::Core;
use object::{Object as _, ObjectSection as _, ReadCache};

use base::paths::shown;

/// Section with the list.
const SECTION: &str = ".init.proc.info";
/// Size of an entry in bytes. An entry has thirteen words. The first two words are a main ID and the mask of the ID's
/// relevant bits.
const ENTRY: usize = 52;

/// Rejects a kernel whose list does not contain the core. A kernel without a readable list is accepted.
pub fn check(vmlinux: Option<&Path>, core: &Core) -> Result<()> {
    let Some(file) = vmlinux else {
        return Ok(());
    };
    let Ok(opened) = File::open(file) else {
        return Ok(());
    };
    // A vmlinux has many megabytes, so only the needed parts are read.
    let cache = ReadCache::new(opened);
    let Ok(elf) = object::File::parse(&cache) else {
        return Ok(());
    };
    let list = elf.section_by_name(SECTION).and_then(|s| s.data().ok());
    match list.map(|list| has(list, core.midr)) {
        Some(Some(false)) => bail!(
            "{}: has no code for the board's core, {} (main id {:#010x})\n  help: `warmswitch list boards` shows \
             the kernel for each board",
            shown(file),
            core.name,
            core.midr
        ),
        _ => Ok(()),
    }
}

/// Returns whether a list contains a processor. Returns `None` if the bytes are not a list.
fn has(list: &[u8], midr: u32) -> Option<bool> {
    let whole = !list.is_empty() && list.len().is_multiple_of(ENTRY);
    let word = |entry: &[u8], n: usize| {
        let bytes = entry[4 * n..].first_chunk().copied();
        bytes.map(u32::from_le_bytes)
    };
    let is = |entry: &[u8]| Some(midr & word(entry, 1)? == word(entry, 0)?);
    whole.then(|| list.chunks(ENTRY).any(|entry| is(entry) == Some(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_cores_whose_bits_match() {
        let mut list = vec![0; 2 * ENTRY];
        for (n, words) in [[0x4106_9260_u32, 0xff0f_fff0], [0x4100_9200, 0xff00_fff0]]
            .iter()
            .enumerate()
        {
            for (m, word) in words.iter().enumerate() {
                let at = n * ENTRY + 4 * m;
                list[at..at + 4].copy_from_slice(&word.to_le_bytes());
            }
        }
        assert_eq!(has(&list, 0x4106_9265), Some(true));
        assert_eq!(has(&list, 0x4112_9200), Some(true));
        assert_eq!(has(&list[..ENTRY], 0x4112_9200), Some(false));
        assert_eq!(has(&list[..ENTRY - 4], 0x4112_9200), None);
        assert_eq!(has(&[], 0x4106_9265), None);
    }
}
