// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line of memory: its own words, the sets that it can be in, and what translates to it or waits to be written.

use std::collections::BTreeSet;

use arm::{HeldEntry, HeldLine, Pa, TlbSide, WaitingWrite};

use super::caches::Cache;
use super::sheet::{Kind, Part, Piece, Row};
use super::state::{Focus, Memory, State};

/// Bytes of a page: addresses of one memory have the same bits below.
const PAGE: u32 = 4096;
/// Sets that are shown although they hold nothing of it.
const SETS: usize = 4;

/// Which half, and which of its words.
const HALVES: [(&str, usize); 2] = [("  lower half", 0), ("  upper half", 4)];

/// All parts.
pub fn parts(states: [&State; 2], asked: Focus, memory: [Memory; 2]) -> Vec<Part> {
    let mut parts = vec![memory_part(asked, memory)];
    for cache in Cache::all(states) {
        for set in sets(&cache, states, asked) {
            parts.push(set_part(&cache, set, states, asked, memory));
        }
    }
    parts.push(tlb_part(states, &|entry| {
        covers(entry.mva.0, entry.bytes, asked.mva.0) || covers(entry.pa.0, entry.bytes, asked.pa.0)
    }));
    parts.push(waiting_part(states));
    parts
}

fn covers(first: u32, bytes: u32, address: u32) -> bool {
    address.wrapping_sub(first) < bytes
}

fn memory_part(asked: Focus, memory: [Memory; 2]) -> Part {
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
        title: format!("memory at PA {}", asked.pa),
        rows: rows.into(),
    }
}

/// A word of a line or of memory.
pub fn word_piece(word: u32, changed: bool) -> Piece {
    Piece {
        kind: Kind::Word,
        ..Piece::plain(format!("{word:08x}"), changed)
    }
}

/// Sets that addresses of this memory can be in; of many those that hold some of it, and the address's own.
fn sets(cache: &Cache, states: [&State; 2], asked: Focus) -> Vec<u32> {
    let own = asked.mva.0 / 32 % cache.sets;
    let in_page = PAGE / 32;
    let can = (0..cache.sets).filter(|set| set % in_page == own % in_page);
    let can: Vec<u32> = can.collect();
    if can.len() <= SETS && cache.sets >= in_page || can.len() == 1 {
        return can;
    }
    let lines = states.iter().flat_map(|state| &state.lines[cache.side]);
    let of_it = lines.filter(|line| line.mini == cache.mini && line.pa == Some(asked.pa));
    let held: BTreeSet<u32> = of_it.map(|line| line.place.0).chain([own]).collect();
    held.into_iter().collect()
}

fn set_part(
    cache: &Cache,
    set: u32,
    states: [&State; 2],
    asked: Focus,
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
        let is_of_it = |line: &&HeldLine| line.pa == Some(asked.pa);
        let whole = lines.iter().flatten().any(is_of_it) || lines[0] != lines[1];
        rows.push(head(way, lines, Some(asked), !whole));
        if whole {
            let memory = [0, 1].map(|n| {
                let of_it = lines[n].filter(|line| line.pa == Some(asked.pa));
                of_it.map(|_| memory[n])
            });
            rows.extend(words(cache, lines, memory));
        }
    }
    Part {
        title: format!("{}, set {set} of {}", cache.name, cache.sets),
        rows,
    }
}

/// The tags of a way, and where no words follow which halves are dirty.
pub fn head(way: u32, lines: [Option<&HeldLine>; 2], asked: Option<Focus>, alone: bool) -> Row {
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
        let which = match asked {
            Some(asked) if line.pa == Some(asked.pa) => match line.mva.0 == asked.mva.0 & !31 {
                true => "  this address",
                false => "  alias",
            },
            _ => "",
        };
        format!("MVA {} PA {pa}{dirty}{which}", line.mva)
    };
    let texts = lines.map(text);
    Row::texts(format!("  way {way}"), texts)
}

/// The words of a way, a half a row, beside memory's where it is known.
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
        // A line that was another one is marked by its tags.
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

/// Those of the entries that are wanted.
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

/// What waits to be written.
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
        title: "victim buffer and write buffer, in the order in which they go out".to_string(),
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
