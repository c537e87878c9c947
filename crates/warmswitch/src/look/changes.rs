// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of a sheet that show changes: changed cache lines with their words, changed TLB entries, and waiting writes.

use super::caches::Cache;
use super::focus::{head, tlb_part, waiting_part, words};
use super::sheet::{Part, Row};
use super::state::State;

/// Maximum number of changed lines shown per cache.
const LINES: usize = 8;

/// Returns all parts.
pub fn parts(states: [&State; 2]) -> Vec<Part> {
    let caches = Cache::all(states);
    let mut parts: Vec<Part> = (caches.iter())
        .filter_map(|cache| lines(cache, states))
        .collect();
    let [before, after] = states;
    let mut tlb = tlb_part(states, &|entry| {
        before.entries.contains(entry) != after.entries.contains(entry)
    });
    tlb.title = format!(
        "TLB, entries: {} before, {} after; changed entries",
        before.entries.len(),
        after.entries.len()
    );
    parts.push(tlb);
    parts.push(waiting_part(states));
    parts
}

fn lines(cache: &Cache, states: [&State; 2]) -> Option<Part> {
    let places = (0..cache.sets).flat_map(|set| (0..cache.ways).map(move |way| (set, way)));
    let both = |place| states.map(|state| cache.line(state, place));
    let changed: Vec<_> = places
        .map(|place| (place, both(place)))
        .filter(|(_, [before, after])| before != after)
        .collect();
    let mut rows = Vec::new();
    for ((set, way), lines) in changed.iter().take(LINES) {
        let mut row = head(*way, *lines, None, false);
        row.label = format!("  set {set} way {way}");
        rows.push(row);
        rows.extend(words(cache, *lines, [None; 2]));
    }
    if let Some(more) = changed.len().checked_sub(LINES).filter(|more| *more > 0) {
        rows.push(Row {
            label: format!("  and {more} more"),
            ..Row::default()
        });
    }
    (!rows.is_empty()).then(|| Part {
        title: format!("{}, changed lines", cache.name),
        rows,
    })
}
