// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of a sheet for one line of memory: the line's words in memory, the cache sets that can hold it, the TLB
//! entries that translate to it, and waiting writes.

use std::collections::BTreeSet;

use arm::{HeldEntry, HeldLine, Pa, TlbSide, WaitingWrite};

use super::caches::Cache;
use super::sheet::{Kind, Part, Piece, Row};
use super::state::{Focus, Memory, State};

/// Size of a page, in bytes. The virtual addresses of a line of memory differ only in the bits above the offset in the
/// page.
const PAGE: u32 = 4096;
/// If at most this number of sets can hold the line, all of them are shown. If more sets can hold it, only the relevant
/// ones are shown.
const SETS: usize = 4;

/// Label and first word of each half of a line.
const HALVES: [(&str, usize); 2] = [("  lower half", 0), ("  upper half", 4)];

/// Returns all parts.
pub fn parts(states: [&State; 2], target: Focus, memory: [Memory; 2]) -> Vec<Part> {
    let mut parts = vec![memory_part(target, memory)];
    for cache in Cache::all(states) {
        for set in sets(&cache, states, target) {
            parts.push(set_part(&cache, set, states, target, memory));
        }
    }
    parts.push(tlb_part(states, &|entry| {
        covers(entry.mva.0, entry.bytes, target.mva.0)
            || covers(entry.pa.0, entry.bytes, target.pa.0)
    }));
    parts.push(waiting_part(states));
    parts
}

fn covers(first: u32, bytes: u32, address: u32) -> bool {
    address.wrapping_sub(first) < bytes
}

fn memory_part(target: Focus, memory: [Memory; 2]) -> Part {
    let cell = |n: usize, first: usize| {
        let words = (first..first + 4).map(|w| match memory[n][w] {
            Some(word) => word_piece(word, n == 1 && memory[0][w] != memory[1][w]),
            None => Piece::plain("no memory", false),
        });
        let state = Piece::plain("     ", false);
        [state].into_iter().chain(words).collect()
    };
    let rows = HALVES.map(|(label, first)| Row {
        label: label.to_string(),
        cells: [cell(0, first), cell(1, first)],
    });
    Part {
        title: format!("memory at PA {}", target.pa),
        rows: rows.into(),
    }
}

/// Returns a piece for a word of a line or of memory.
pub fn word_piece(word: u32, changed: bool) -> Piece {
    Piece {
        kind: Kind::Word,
        ..Piece::plain(format!("{word:08x}"), changed)
    }
}

/// Returns the sets that can hold the line of memory through any of its virtual addresses. If there are many such sets,
/// returns only the set of the requested address, and the sets that hold the line in one of the two states.
fn sets(cache: &Cache, states: [&State; 2], target: Focus) -> Vec<u32> {
    let own = target.mva.0 / 32 % cache.sets;
    let in_page = PAGE / 32;
    let possible = (0..cache.sets).filter(|set| set % in_page == own % in_page);
    let possible: Vec<u32> = possible.collect();
    if possible.len() <= SETS && cache.sets >= in_page || possible.len() == 1 {
        return possible;
    }
    let lines = states.iter().flat_map(|state| &state.lines[cache.side]);
    let copies = lines.filter(|line| line.mini == cache.mini && line.pa == Some(target.pa));
    let sets: BTreeSet<u32> = copies.map(|line| line.place.0).chain([own]).collect();
    sets.into_iter().collect()
}

fn set_part(
    cache: &Cache,
    set: u32,
    states: [&State; 2],
    target: Focus,
    memory: [Memory; 2],
) -> Part {
    let mut rows = Vec::new();
    let both = |way| states.map(|state| cache.line(state, (set, way)));
    if (0..cache.ways).all(|way| both(way) == [None; 2]) {
        let invalid = ["invalid"; 2].map(String::from);
        rows.push(Row::texts("  all ways", invalid));
        return Part {
            title: format!("{}, set {set} of {}", cache.name, cache.sets),
            rows,
        };
    }
    for way in 0..cache.ways {
        let lines = both(way);
        let is_copy = |line: &&HeldLine| line.pa == Some(target.pa);
        let with_words = lines.iter().flatten().any(is_copy) || lines[0] != lines[1];
        rows.push(head(way, lines, Some(target), !with_words));
        if with_words {
            let memory = [0, 1].map(|n| {
                let copy = lines[n].filter(|line| line.pa == Some(target.pa));
                copy.map(|_| memory[n])
            });
            rows.extend(words(cache, lines, memory));
        }
    }
    Part {
        title: format!("{}, set {set} of {}", cache.name, cache.sets),
        rows,
    }
}

/// Returns the row with the tags of a way. With `alone`, no rows with words follow, so this row also shows the dirty
/// halves.
pub fn head(way: u32, lines: [Option<&HeldLine>; 2], target: Option<Focus>, alone: bool) -> Row {
    let text = |line: Option<&HeldLine>| {
        let Some(line) = line else {
            return "invalid".to_string();
        };
        let pa = line.pa.map_or("none".to_string(), |pa| pa.to_string());
        let dirty = match line.halves {
            _ if !alone => "",
            0 => "",
            1 => ", lower half dirty",
            2 => ", upper half dirty",
            _ => ", dirty",
        };
        let relation = match target {
            Some(target) if line.pa == Some(target.pa) => match line.mva.0 == target.mva.0 & !31 {
                true => "  this address",
                false => "  alias",
            },
            _ => "",
        };
        format!("MVA {} PA {pa}{dirty}{relation}", line.mva)
    };
    let texts = lines.map(text);
    Row::texts(format!("  way {way}"), texts)
}

/// Returns the words of a way in one row per half of the line. Words that differ from `memory` are marked.
pub fn words(
    cache: &Cache,
    lines: [Option<&HeldLine>; 2],
    memory: [Option<Memory>; 2],
) -> Vec<Row> {
    let before = lines[0];
    let cell = |n: usize, half: usize, first: usize| {
        let Some(line) = lines[n] else {
            return Vec::new();
        };
        // If the way now holds another line, mark the tags of that line, but not its words.
        let same = before.filter(|before| n == 1 && before.mva == line.mva);
        let dirty = line.halves >> half & 1 == 1;
        let was = same.map(|before| before.halves >> half & 1 == 1);
        let state = match (cache.side, dirty) {
            (1, _) => "valid",
            (_, true) => "dirty",
            (_, false) => "clean",
        };
        let state = Piece {
            dirty,
            ..Piece::plain(state, was.is_some_and(|was| was != dirty))
        };
        let words = (first..first + 4).map(|w| {
            let word = line.words[w];
            let other = memory[n].and_then(|memory| memory[w]);
            Piece {
                dirty,
                differs: other.is_some_and(|other| other != word),
                ..word_piece(word, same.is_some_and(|before| before.words[w] != word))
            }
        });
        [state].into_iter().chain(words).collect()
    };
    let rows = HALVES.iter().enumerate().map(|(half, (label, first))| Row {
        label: label.to_string(),
        cells: [cell(0, half, *first), cell(1, half, *first)],
    });
    rows.collect()
}

/// Returns the part with the wanted TLB entries.
pub fn tlb_part(states: [&State; 2], wanted: &dyn Fn(&HeldEntry) -> bool) -> Part {
    let key = |entry: &HeldEntry| (side(entry.side), entry.number);
    let all = states.iter().flat_map(|state| &state.entries);
    let keys: BTreeSet<_> = all.filter(|e| wanted(e)).map(key).collect();
    let text = |state: &State, wanted: (&str, usize)| {
        let found = state.entries.iter().find(|entry| key(entry) == wanted);
        found.map_or("invalid".to_string(), entry_text)
    };
    let mut rows: Vec<Row> = keys
        .into_iter()
        .map(|wanted| {
            let label = format!("  {}entry {}", wanted.0, wanted.1);
            Row::texts(label, states.map(|state| text(state, wanted)))
        })
        .collect();
    if rows.is_empty() {
        rows.push(Row::texts("", ["none", "none"].map(String::from)));
    }
    Part {
        title: "TLB".to_string(),
        rows,
    }
}

fn side(side: TlbSide) -> &'static str {
    match side {
        TlbSide::Both => "",
        TlbSide::Instruction => "I ",
        TlbSide::Data => "D ",
    }
}

fn entry_text(entry: &HeldEntry) -> String {
    let size = match entry.bytes {
        bytes if bytes >= 1 << 20 => format!("{} MB", bytes >> 20),
        bytes => format!("{} KB", bytes >> 10),
    };
    let bit = |n: u8, name: &'static str| if entry.cb >> n & 1 == 1 { name } else { "-" };
    format!(
        "{} -> {} {size} {}{}{} AP {}{}",
        entry.mva,
        entry.pa,
        if entry.cb & 4 == 0 { "" } else { "X" },
        bit(1, "C"),
        bit(0, "B"),
        entry.ap,
        if entry.locked { " locked" } else { "" },
    )
}

/// Returns the part with the writes that wait for the bus.
pub fn waiting_part(states: [&State; 2]) -> Part {
    let cells = states.map(waiting_cells);
    let count = cells.iter().map(Vec::len).max().unwrap_or(0);
    let [before, after] = &cells;
    let rows = (0..count).map(|n| {
        let at = |cells: &[Vec<Piece>]| cells.get(n).cloned().unwrap_or_default();
        let (before, mut after) = (at(before), at(after));
        let changed = before != after;
        after.iter_mut().for_each(|piece| piece.changed = changed);
        Row {
            label: String::new(),
            cells: [before, after],
        }
    });
    Part {
        title: "victim buffer and write buffer, in order of writing".to_string(),
        rows: rows.collect(),
    }
}

fn waiting_cells(state: &State) -> Vec<Vec<Piece>> {
    if state.waiting.is_empty() {
        return vec![vec![Piece::plain("empty", false)]];
    }
    let write = |write: &WaitingWrite| {
        let name = if write.victim { "victim" } else { "store" };
        let (Pa(pa), bytes) = (write.pa, write.bytes);
        let head = format!("{name} to PA {pa:#010x}, {bytes} bytes");
        let mut rows = vec![vec![Piece::plain(head, false)]];
        for words in write.words.chunks(4) {
            let blank = Piece::plain("     ", false);
            let words = words.iter().map(|word| word_piece(*word, false));
            rows.push([blank].into_iter().chain(words).collect());
        }
        rows
    };
    state.waiting.iter().flat_map(write).collect()
}
