// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bus transactions of an instruction, derived from the manuals' text, independently of the core's code. The sources
//! are `DDI0198D` 4.2, 6.2.2 and table 6-1 for the ARM926EJ-S, S3C2410A p. 4-7 and 4-8 for the ARM920T, and IXP42X p.
//! 47 and 62 for XScale. The caller supplies the state of the cache's lines before the instruction.

/// A transaction: first address and number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// A line fill that begins with this word.
    Fill(u32),
    /// A read that bypasses the cache.
    Read(u32, u32),
    /// A write.
    Write(u32, u32),
}

/// Kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Not cacheable, not bufferable.
    Ncnb,
    /// Not cacheable, bufferable.
    Ncb,
    WriteThrough,
    WriteBack,
    /// XScale: not cacheable, bufferable, never joined with other stores.
    Alone,
    /// XScale: write-back, and a store that misses fills a line.
    Allocating,
}

/// The bus master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Master {
    Arm926,
    Arm920,
    /// The ARM920T with its D-cache off: "separate non-sequential accesses" (S3C2410A p. 4-6).
    Separate,
    XScale,
}

/// A word, with its addresses, the kind of its page, and a flag whether its line is in the cache.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    pub va: u32,
    pub pa: u32,
    pub kind: Kind,
    pub hits: bool,
}

/// Words of each AHB packet, for every number of words.
const PACKETS: [&[u32]; 17] = [
    &[],
    &[1],
    &[1, 1],
    &[1, 1, 1],
    &[4],
    &[4, 1],
    &[4, 1, 1],
    &[4, 1, 1, 1],
    &[8],
    &[8, 1],
    &[8, 1, 1],
    &[8, 1, 1, 1],
    &[8, 4],
    &[8, 4, 1],
    &[8, 4, 1, 1],
    &[8, 4, 1, 1, 1],
    &[8, 8],
];

/// Groups consecutive addresses that do not cross a multiple of `block`. Returns first addresses and numbers
/// of words.
fn groups(addresses: &[u32], block: u32) -> Vec<(u32, u32)> {
    let mut groups: Vec<(u32, u32)> = Vec::new();
    for pa in addresses {
        match groups.last_mut() {
            Some((first, words)) if *first + 4 * *words == *pa && pa % block != 0 => *words += 1,
            _ => groups.push((*pa, 1)),
        }
    }
    groups
}

/// Cuts a run of words that are written with no other words between them.
fn cut(master: Master, kind: Kind, run: &[u32], made: &mut Vec<Made>) {
    let alone = matches!(kind, Kind::Ncnb | Kind::Alone);
    let single = master == Master::Separate || master == Master::XScale && alone;
    let block = match master {
        Master::Arm926 | Master::Arm920 | Master::Separate => 1024,
        Master::XScale => 16,
    };
    for (first, words) in groups(run, block) {
        let whole = [words];
        let ones = [1; 16];
        let packets = match master {
            _ if single => &ones[..words as usize],
            Master::Arm920 => &whole[..],
            Master::Arm926 | Master::Separate | Master::XScale => PACKETS[words as usize],
        };
        let mut at = first;
        for packet in packets {
            made.push(Made::Write(at, 4 * packet));
            at += 4 * packet;
        }
    }
}

/// Transactions of a store of words with ascending addresses.
pub fn stored(master: Master, words: &[Word]) -> Vec<Made> {
    let mut made = Vec::new();
    let mut filled = None;
    let mut run: Vec<u32> = Vec::new();
    let mut run_kind = Kind::Ncnb;
    for word in words {
        let line = word.va / 32;
        let mut in_line = word.hits && word.kind == Kind::WriteBack;
        if word.kind == Kind::Allocating {
            if !word.hits && filled != Some(line) {
                made.push(Made::Fill(word.pa));
                filled = Some(line);
            }
            in_line = true;
        }
        if in_line || word.va % 1024 == 0 {
            cut(master, run_kind, &run, &mut made);
            run.clear();
        }
        if !in_line {
            run.push(word.pa);
            run_kind = word.kind;
        }
    }
    cut(master, run_kind, &run, &mut made);
    made
}

/// Transactions of a load of words with ascending addresses.
pub fn loaded(master: Master, words: &[Word]) -> Vec<Made> {
    let mut made = Vec::new();
    let mut filled = None;
    let mut uncached: Vec<u32> = Vec::new();
    for word in words {
        let cached = !matches!(word.kind, Kind::Ncnb | Kind::Ncb | Kind::Alone);
        if cached || word.va % 1024 == 0 {
            read(master, &mut uncached, &mut made);
        }
        if !cached {
            uncached.push(word.pa);
        } else if !word.hits && filled != Some(word.va / 32) {
            made.push(Made::Fill(word.pa));
            filled = Some(word.va / 32);
        }
    }
    read(master, &mut uncached, &mut made);
    made
}

fn read(master: Master, uncached: &mut Vec<u32>, made: &mut Vec<Made>) {
    let groups = match master {
        Master::Arm920 => groups(uncached, 1024),
        Master::Arm926 | Master::Separate | Master::XScale => {
            uncached.iter().map(|pa| (*pa, 1)).collect()
        }
    };
    made.extend(groups.iter().map(|(pa, words)| Made::Read(*pa, 4 * words)));
    uncached.clear();
}

/// Transactions of a load or store of `bytes` within a word, or of both for a swap.
pub fn single(word: Word, bytes: u32, loads: bool, stores: bool) -> Vec<Made> {
    let Word { pa, kind, .. } = word;
    let cached = !matches!(kind, Kind::Ncnb | Kind::Ncb | Kind::Alone);
    let mut made = Vec::new();
    let fills = cached && !word.hits && (loads || kind == Kind::Allocating);
    if fills {
        made.push(Made::Fill(pa & !3));
    } else if loads && !cached {
        made.push(Made::Read(pa, bytes));
    }
    let stays = kind == Kind::WriteBack && (word.hits || fills) || kind == Kind::Allocating;
    if stores && !stays {
        made.push(Made::Write(pa, bytes));
    }
    made
}

#[test]
fn the_manuals_examples() {
    let word = |va, kind, hits| Word {
        va,
        pa: va + 0x4000,
        kind,
        hits,
    };
    let words = |from: u32, count: u32, kind| -> Vec<Word> {
        (0..count)
            .map(|n| word(from + 4 * n, kind, false))
            .collect()
    };
    let twelve = words(0x108, 12, Kind::Ncb);
    // DDI0198D 6.2.2.
    let ahb = [Made::Write(0x4108, 32), Made::Write(0x4128, 16)];
    assert_eq!(stored(Master::Arm926, &twelve), ahb);
    // S3C2410A p. 4-8.
    let nine = words(0x3f0, 9, Kind::Ncnb);
    let asb = [Made::Read(0x43f0, 16), Made::Read(0x4400, 20)];
    assert_eq!(loaded(Master::Arm920, &nine), asb);
    // A line that hits ends the run.
    let mut mixed = words(0x1c, 10, Kind::WriteBack);
    mixed[1..9].iter_mut().for_each(|word| word.hits = true);
    let two = [Made::Write(0x401c, 4), Made::Write(0x4040, 4)];
    assert_eq!(stored(Master::Arm926, &mixed), two);
}
