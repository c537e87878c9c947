// SPDX-License-Identifier: MIT OR Apache-2.0
//! An ELF file with the code and the symbols of an Image that has a table of symbols. The file takes the place of the
//! vmlinux that the user does not have. It has no source lines.

use super::kallsyms::Symbol;

/// Offset of a kernel from the start of its part of the address space.
const TEXT_OFFSET: u32 = 0x8000;
/// Alignment of that part, in bytes.
const PART: u32 = 0x20_0000;
/// Bytes of the headers: the file's, that of the segment, and one of each section.
const HEADER: u32 = 52;
const SEGMENT: u32 = 32;
const SECTION: u32 = 40;
/// Offset of the Image in the file.
const IMAGE_AT: u32 = HEADER + SEGMENT + SECTIONS * SECTION;
/// Section numbers.
const TEXT: u16 = 1;
const BSS: u16 = 2;
const ABSOLUTE: u16 = 0xfff1;
/// Number of sections.
const SECTIONS: u32 = 7;
/// Names of the sections, with their places in this text.
const NAMES: &[u8] = b"\0.text\0.bss\0.symtab\0.strtab\0.shstrtab\0.init.proc.info\0";
const NAME_PLACES: [u32; 7] = [0, 1, 7, 12, 20, 28, 38];

/// Returns the virtual address of the Image's first byte.
fn base(symbols: &[Symbol]) -> Option<u32> {
    let text = symbols.iter().find(|s| s.name == "_text");
    let lowest = symbols.first()?.address & !(PART - 1);
    Some(text.map_or(lowest + TEXT_OFFSET, |s| s.address))
}

/// Returns the range of a section that symbols enclose, as an offset in the Image and a size.
fn enclosed(symbols: &[Symbol], base: u32, (from, to): (&str, &str)) -> Option<(u32, u32)> {
    let at = |name: &str| Some(symbols.iter().find(|s| s.name == name)?.address);
    let (from, to) = (at(from)?, at(to)?);
    Some((from.checked_sub(base)?, to.checked_sub(from)?))
}

/// Returns the symbol table and the names in it. The Image ends at `end`, and the zeros behind it at `last`. A symbol's
/// size reaches to the next symbol.
fn table(symbols: &[Symbol], base: u32, (end, last): (u32, u32)) -> (Vec<u8>, Vec<u8>) {
    let (mut table, mut names) = (vec![0; 16], vec![0]);
    for (n, symbol) in symbols.iter().enumerate() {
        let next = symbols[n..].iter().find(|s| s.address > symbol.address);
        let size = next.map_or(0, |next| next.address - symbol.address);
        let section = match symbol.address {
            at if (base..end).contains(&at) => TEXT,
            at if (end..last).contains(&at) => BSS,
            _ => ABSOLUTE,
        };
        let is_code = matches!(symbol.kind, b't' | b'T' | b'w' | b'W') && section == TEXT;
        let binding = u8::from(symbol.kind.is_ascii_uppercase());
        for word in [names.len() as u32, symbol.address, size] {
            table.extend(word.to_le_bytes());
        }
        table.extend([binding << 4 | if is_code { 2 } else { 1 }, 0]);
        table.extend(section.to_le_bytes());
        names.extend(symbol.name.bytes().chain([0]));
    }
    (table, names)
}

/// Returns the file's header, the header of its segment, which is the Image, and the headers of its sections.
fn headers(entry: u32, length: u32, sections: &[[u32; 9]; 7]) -> Vec<u8> {
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    let eabi = 0x0500_0000;
    // An executable for ARM with one segment. Section 5 has the sections' names.
    let sizes = [
        HEADER | SEGMENT << 16,
        1 | SECTION << 16,
        5 << 16 | SECTIONS,
    ];
    let words = [0x28_0002, 1, entry, HEADER, HEADER + SEGMENT, eabi];
    // Type, offset, addresses, bytes, flags, alignment.
    let segment = [1, IMAGE_AT, entry, entry, length, length, 7, 4];
    for word in words.into_iter().chain(sizes).chain(segment) {
        file.extend(word.to_le_bytes());
    }
    for (name, section) in NAME_PLACES.iter().zip(sections) {
        for word in [name].into_iter().chain(section) {
            file.extend(word.to_le_bytes());
        }
    }
    file
}

/// Makes the file. Returns `None` if the symbols do not fit the Image.
pub fn of(image: &[u8], symbols: &[Symbol]) -> Option<Vec<u8>> {
    let base = base(symbols)?;
    let length = u32::try_from(image.len()).ok()?;
    let end = base.checked_add(length)?;
    // The vectors lie far behind the kernel, and belong to no section here.
    let last = symbols.iter().find(|s| s.name == "_end");
    let last = last.map_or(end, |s| s.address.max(end));
    let (table, names) = table(symbols, base, (end, last));
    let (of_table, of_names) = (table.len() as u32, names.len() as u32);
    let processors = enclosed(symbols, base, ("__proc_info_begin", "__proc_info_end"));
    let processors = processors.filter(|(at, bytes)| at.checked_add(*bytes) <= Some(length));
    let (processors_at, processors) = processors.unwrap_or((0, 0));
    let table_at = IMAGE_AT + length.next_multiple_of(4);
    let names_at = table_at + of_table;
    let texts_at = names_at + of_names;
    let of_texts = NAMES.len() as u32;
    let list = (base + processors_at, IMAGE_AT + processors_at);
    // Type, flags, address, offset, bytes, link, first global symbol, alignment, bytes of an entry.
    let sections: [[u32; 9]; 7] = [
        [0; 9],
        [1, 6, base, IMAGE_AT, length, 0, 0, 4, 0],
        [8, 3, end, texts_at, last - end, 0, 0, 4, 0],
        [2, 0, 0, table_at, of_table, 4, 1, 4, 16],
        [3, 0, 0, names_at, of_names, 0, 0, 1, 0],
        [3, 0, 0, texts_at, of_texts, 0, 0, 1, 0],
        [1, 0, list.0, list.1, processors, 0, 0, 4, 0],
    ];
    let mut file = headers(base, length, &sections);
    file.extend(image);
    file.resize(table_at as usize, 0);
    Some([&file, &table[..], &names, NAMES].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _};

    fn symbol(address: u32, kind: u8, name: &str) -> Symbol {
        Symbol {
            address,
            kind,
            name: name.to_owned(),
        }
    }

    #[test]
    fn the_file_has_code_symbols_and_processors() {
        let image: Vec<u8> = (0..=255).cycle().take(0x1001).collect();
        let symbols = [
            symbol(0xc010_8000, b'T', "_text"),
            symbol(0xc010_8010, b't', "start_it"),
            symbol(0xc010_8100, b'd', "__proc_info_begin"),
            symbol(0xc010_8134, b'd', "__proc_info_end"),
            symbol(0xc010_a000, b'B', "jiffies"),
            symbol(0xc010_a004, b'B', "_end"),
            symbol(0xffff_0000, b't', "vector_rst"),
        ];
        let bytes = of(&image, &symbols).unwrap();
        let elf = object::File::parse(&*bytes).unwrap();
        let section = |name| elf.section_by_name(name).unwrap().data().unwrap();
        assert_eq!(section(".text"), &image[..]);
        let segment = elf.segments().next().unwrap();
        assert_eq!(segment.address(), 0xc010_8000);
        assert_eq!(segment.data().unwrap(), &image[..]);
        assert_eq!(section(".init.proc.info"), &image[0x100..0x134]);
        let found: Vec<_> = elf
            .symbols()
            .map(|s| (s.name().unwrap(), s.address(), s.size(), s.kind()))
            .collect();
        let function = object::SymbolKind::Text;
        assert_eq!(found[1], ("start_it", 0xc010_8010, 0xf0, function));
        assert_eq!(found[4].0, "jiffies");
        assert_eq!(found.len(), 7);
        let bss = elf.section_by_name(".bss").unwrap();
        assert_eq!(bss.address() + bss.size(), 0xc010_a004);
        let vector = elf.symbol_by_name("vector_rst").unwrap();
        assert_eq!(vector.section_index(), None);
        let jiffies = elf.symbol_by_name("jiffies").unwrap();
        assert_eq!(jiffies.section_index().map(|n| n.0), Some(2));
    }

    #[test]
    fn without_the_first_symbol_the_image_begins_behind_the_page_tables() {
        assert_eq!(
            base(&[symbol(0xc010_0000, b'T', "_stext")]),
            Some(0xc000_8000)
        );
        assert_eq!(base(&[]), None);
        assert_eq!(of(&[0; 16], &[symbol(u32::MAX, b'T', "_text")]), None);
    }
}
