// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of a sheet that show all lines of the caches, with one letter per line.

use super::caches::Cache;
use super::sheet::{Kind, Part, Piece, Row};
use super::state::State;

/// Number of sets per row.
const SETS: u32 = 64;

/// Returns one part per cache.
pub fn parts(states: [&State; 2]) -> Vec<Part> {
    let caches = Cache::all(states);
    caches.iter().map(|cache| part(cache, states)).collect()
}

fn part(cache: &Cache, states: [&State; 2]) -> Part {
    let mut rows = Vec::new();
    for first in (0..cache.sets).step_by(SETS as usize) {
        let last = (first + SETS).min(cache.sets) - 1;
        rows.push(Row {
            label: format!("  sets {first} to {last}"),
            ..Row::default()
        });
        for way in 0..cache.ways {
            rows.push(Row {
                label: format!("  way {way}"),
                cells: [0, 1].map(|n| letters(cache, states, n, (first..=last, way))),
            });
        }
    }
    let counts = states.map(|state| {
        let lines = state.lines[cache.side].iter();
        let lines: Vec<_> = lines.filter(|line| line.mini == cache.mini).collect();
        let dirty = lines.iter().filter(|line| line.halves != 0).count();
        match cache.side {
            0 => format!("{} valid, {dirty} dirty", lines.len()),
            _ => format!("{} valid", lines.len()),
        }
    });
    rows.push(Row::texts("", counts));
    Part {
        title: format!("{}, {} ways of {} sets", cache.name, cache.ways, cache.sets),
        rows,
    }
}

fn letters(
    cache: &Cache,
    states: [&State; 2],
    n: usize,
    (sets, way): (std::ops::RangeInclusive<u32>, u32),
) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for set in sets {
        let [before, now] = [0, n].map(|n| cache.line(states[n], (set, way)));
        let letter = match now.map(|line| line.halves) {
            None => '.',
            Some(0) => 'c',
            Some(1) => 'l',
            Some(2) => 'u',
            Some(_) => 'b',
        };
        let (changed, dirty) = (before != now, !".c".contains(letter));
        match pieces.last_mut() {
            Some(last) if (last.changed, last.dirty) == (changed, dirty) => last.text.push(letter),
            _ => pieces.push(Piece {
                kind: Kind::Map,
                dirty,
                ..Piece::plain(letter, changed)
            }),
        }
    }
    pieces
}
