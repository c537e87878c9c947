// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a program is drawn from a seed.

use std::collections::{BTreeMap, BTreeSet};

use board::random::Random;

use super::grammar::{
    CODE_FILES, CODE_PAGES, CODE_SLOTS, Grammar, PAGES, Profile, SLOTS, Zone, within,
};
use super::places::Weights;
use super::program::{Program, given_back, written};

/// The program of a seed.
pub fn program(grammar: &Grammar, seed: u64) -> Program {
    let mut program = Drawer::new(grammar, seed).program();
    // What the interpreter does not take becomes shorter.
    while program.check().is_err() {
        for ops in &mut program.sequences {
            ops.truncate(ops.len() * 3 / 4);
        }
    }
    program
}

/// Zones of the kernel that a program has to do with.
pub fn zones(grammar: &Grammar, program: &Program) -> Weights {
    let ops: BTreeSet<&str> = program.names().collect();
    let is_met =
        |zone: &Zone| zone.ops.is_empty() || zone.ops.iter().any(|op| ops.contains(op.as_str()));
    let met = grammar.zone.iter().filter(|(_, zone)| is_met(zone));
    met.map(|(name, zone)| (name.clone(), zone.weight))
        .collect()
}

/// What a program is drawn with.
struct Drawer<'a> {
    random: Random,
    grammar: &'a Grammar,
    profile: &'a Profile,
    /// In use, of data; the first is the favourite one.
    slots: Vec<u64>,
    code_slots: Vec<u64>,
    files: Vec<u64>,
    /// Pages that an op reaches, at most.
    at_once: u64,
    /// Pages of each slot, as it was mapped or resized last.
    sizes: BTreeMap<u64, u64>,
}

impl<'a> Drawer<'a> {
    fn new(grammar: &'a Grammar, seed: u64) -> Drawer<'a> {
        let mut random = Random::new(seed);
        let profiles = grammar.profile.values();
        let profile = random.pick(profiles.map(|p| (p, p.weight)));
        let profile = profile.expect("one of them has a weight");
        let mut some = |all: &[u64], span| {
            let mut all = all.to_vec();
            let mut some = Vec::new();
            for _ in 0..within(&mut random, span) {
                some.push(all.swap_remove(random.below(all.len() as u64) as usize));
            }
            some
        };
        let slots = some(&SLOTS, profile.slots);
        let code_slots = some(&CODE_SLOTS, profile.code_slots);
        let files = some(&[0, 1, 2, 3], profile.files);
        Drawer {
            random,
            grammar,
            profile,
            slots,
            code_slots,
            files,
            at_once: PAGES,
            sizes: BTreeMap::new(),
        }
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn one_of(&mut self, all: &[u64]) -> u64 {
        if self.percent(self.grammar.draw.favourite_percent) {
            return all[0];
        }
        all[self.random.below(all.len() as u64) as usize]
    }

    fn weighted(&mut self, weights: [u64; 3]) -> u64 {
        self.random.pick((0..).zip(weights)).unwrap_or(0)
    }

    /// A slot; another one than `but`.
    fn slot(&mut self, code: bool, but: Option<u64>) -> u64 {
        let all: &[u64] = if code { &CODE_SLOTS } else { &SLOTS };
        let used = if code { &self.code_slots } else { &self.slots };
        let mut used = if used.is_empty() { all } else { used }.to_vec();
        used.retain(|slot| Some(*slot) != but);
        if used.is_empty() {
            used.extend(all.iter().filter(|slot| Some(**slot) != but));
        }
        self.one_of(&used)
    }

    fn size(&self, slot: Option<u64>) -> u64 {
        let size = slot.and_then(|slot| self.sizes.get(&slot));
        size.copied().unwrap_or(self.profile.pages[1])
    }

    /// A number of pages, from the one on that was drawn before.
    fn count(&mut self, name: &str, slot: Option<u64>, page: u64, most: u64) -> u64 {
        if name.starts_with('m') || name == "z" {
            let [from, to] = self.profile.pages;
            let count = within(&mut self.random, [from.min(most), to.min(most)]);
            self.sizes.extend(slot.map(|slot| (slot, count)));
            return count;
        }
        let rest = self.size(slot).min(most).saturating_sub(page);
        let rest = rest.clamp(1, self.at_once);
        if self.percent(self.grammar.draw.whole_percent) {
            return rest;
        }
        1 + self.random.below(rest)
    }

    fn page(&mut self, slot: Option<u64>, most: u64) -> u64 {
        if self.percent(self.grammar.draw.first_page_percent) {
            return 0;
        }
        let size = self.size(slot).min(most);
        self.random.below(size)
    }

    /// An op of that name, of a certain slot if one is given.
    fn op(&mut self, name: &str, of: Option<u64>) -> String {
        let (draw, arguments) = (&self.grammar.draw, &self.grammar.op[name]);
        let mut numbers: Vec<u64> = Vec::new();
        let (mut slot, mut page) = (None, 0);
        for letter in arguments.chars() {
            let code = matches!(letter, 'c' | 'g' | 'h' | 'x');
            let number = match letter {
                's' | 'c' => {
                    let given = of.filter(|_| slot.is_none());
                    let drawn = given.unwrap_or_else(|| self.slot(code, slot));
                    slot = Some(drawn);
                    drawn
                }
                'f' => self.one_of(&self.files.clone()),
                'x' => self.one_of(&(0..CODE_FILES).collect::<Vec<_>>()),
                'p' | 'g' => {
                    page = self.page(slot, if code { CODE_PAGES } else { u64::MAX });
                    page
                }
                'k' | 'h' => {
                    let most = if code { CODE_PAGES } else { u64::MAX };
                    self.count(name, slot, page, most)
                }
                'd' => self.weighted(draw.rings),
                'r' => self.weighted(draw.rights),
                't' => self.random.below(draw.processes),
                _ => within(&mut self.random, draw.naps),
            };
            numbers.push(number);
        }
        written(name, &numbers)
    }

    /// Maps what is in use, and writes to it.
    fn maps(&mut self) -> Vec<String> {
        let mut ops = Vec::new();
        let slots = self.slots.iter().map(|slot| (*slot, 's'));
        let code_slots = self.code_slots.iter().map(|slot| (*slot, 'c'));
        for (slot, letter) in slots.chain(code_slots).collect::<Vec<_>>() {
            let grammar = self.grammar;
            let fits = |name: &String| grammar.op[name].starts_with(letter);
            let fitting = weighed(&self.profile.maps).filter(|(name, _)| fits(name));
            let Some(name) = self.random.pick(fitting) else {
                continue;
            };
            ops.push(self.op(name, Some(slot)));
            if letter == 's' && self.percent(70) {
                ops.push(self.op("w", Some(slot)));
            }
        }
        ops
    }

    /// The ops that a sequence consists of: a few of all, so that some sequences do one thing over and over ("swarm
    /// testing", Groce and others 2012).
    fn kinds(&mut self, of: &'a Weights) -> Vec<(&'a String, u64)> {
        let mut all: Vec<_> = weighed(of).collect();
        let mut some = Vec::new();
        for _ in 0..within(&mut self.random, self.profile.kinds) {
            let left = all.iter().enumerate().map(|(n, (_, weight))| (n, *weight));
            let Some(n) = self.random.pick(left) else {
                break;
            };
            some.push(all.swap_remove(n));
        }
        some
    }

    /// So many ops of these. Rights that are taken are given back soon.
    fn body(&mut self, count: u64, of: &'a Weights) -> Vec<String> {
        let kinds = self.kinds(of);
        let mut ops = Vec::new();
        let mut back: Vec<(u64, String)> = Vec::new();
        for n in 0..count {
            let Some(name) = self.random.pick(kinds.iter().copied()) else {
                break;
            };
            let op = self.op(name, None);
            let given = given_back(&op).filter(|_| self.percent(self.grammar.draw.back_percent));
            back.extend(given.map(|op| (n + 1 + self.random.below(3), op)));
            ops.push(op);
            let now = back.iter().filter(|(at, _)| *at == n);
            ops.extend(now.map(|(_, op)| op.clone()));
        }
        ops
    }

    fn program(&mut self) -> Program {
        let count = within(&mut self.random, self.profile.sequences) as usize;
        let mut first = self.maps();
        let mut fixed = vec![first.len()];
        let length = within(&mut self.random, self.profile.first_ops);
        first.extend(self.body(length, self.profile.first()));
        let mut sequences = vec![first];
        let mut starts = Vec::new();
        for k in 1..count {
            let kind = self.random.pick(weighed(&self.profile.starts));
            let kind = kind.expect("one of them has a weight");
            let starter = if self.percent(60) {
                0
            } else {
                self.random.below(k as u64)
            };
            let mut ops = Vec::new();
            if kind == "vx" {
                ops = self.maps();
            }
            fixed.push(ops.len());
            let length = within(&mut self.random, self.profile.ops);
            self.at_once = self.profile.at_once;
            ops.extend(self.body(length, &self.profile.does));
            self.at_once = PAGES;
            sequences.push(ops);
            for n in 0..within(&mut self.random, self.profile.times) {
                starts.push((starter as usize, format!("{kind}{k}"), n == 0));
            }
        }
        for (starter, start, first) in starts {
            let rest = (sequences[starter].len() - fixed[starter]) as u64;
            // Somebody comes early.
            let rest = if first { rest / 2 } else { rest };
            let at = fixed[starter] + self.random.below(rest + 1) as usize;
            sequences[starter].insert(at, start);
            // The next op races the task, which may come to an end behind it.
            let behind = at + 2;
            if self.percent(self.grammar.draw.wait_percent) && behind <= sequences[starter].len() {
                sequences[starter].insert(behind, "y".to_string());
            }
        }
        sequences[0].extend(self.last_look());
        Program { sequences }
    }

    /// When all others are done.
    fn last_look(&self) -> Vec<String> {
        let mut ops = vec!["j".to_string()];
        let size = |slot: &u64| self.size(Some(*slot));
        ops.extend(
            self.slots
                .iter()
                .map(|s| written("r", &[*s, 0, size(s), 2])),
        );
        ops.extend(
            self.code_slots
                .iter()
                .map(|s| written("c", &[*s, 0, CODE_PAGES])),
        );
        ops
    }
}

/// Ops and their weights.
fn weighed(ops: &Weights) -> impl Iterator<Item = (&String, u64)> + Clone {
    ops.iter().map(|(name, weight)| (name, *weight))
}
