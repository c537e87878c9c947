// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates a random program from a seed.

use std::collections::{BTreeMap, BTreeSet};

use board::random::Random;

use super::grammar::{
    CODE_FILES, CODE_PAGES, CODE_SLOTS, Grammar, PAGES, Profile, SLOTS, Zone, within,
};
use super::places::Weights;
use super::program::{Program, given_back, parts, written};

/// Number of pages that count as the end of a mapping.
const LAST_PAGES: u64 = 8;

/// Generates the random program of a seed.
pub fn program(grammar: &Grammar, seed: u64) -> Program {
    let mut drawer = Drawer::new(grammar, seed);
    let mut program = drawer.program();
    let last = drawer.last_look();
    loop {
        let mut whole = program.clone();
        whole.sequences[0].extend(last.clone());
        let work: usize = whole.work().iter().sum();
        if whole.check().is_ok() && work <= grammar.limits.work {
            return whole;
        }
        // If the program is too large, or takes too long to interpret, shorten the sequence that takes the most work.
        let work = program.work();
        let busiest = (0..work.len()).max_by_key(|n| work[*n]).unwrap_or(0);
        let ops = &mut program.sequences[busiest];
        ops.truncate(ops.len() * 3 / 4);
    }
}

/// Returns the zones of the kernel that a program's ops can reach.
pub fn zones(grammar: &Grammar, program: &Program) -> Weights {
    let ops: BTreeSet<&str> = program.names().collect();
    let is_reached =
        |zone: &Zone| zone.ops.is_empty() || zone.ops.iter().any(|op| ops.contains(op.as_str()));
    let reached = grammar.zone.iter().filter(|(_, zone)| is_reached(zone));
    reached
        .map(|(name, zone)| (name.clone(), zone.weight))
        .collect()
}

/// State while one program is generated.
struct Drawer<'a> {
    random: Random,
    grammar: &'a Grammar,
    profile: &'a Profile,
    /// Data slots in use. The first slot is the favourite.
    slots: Vec<u64>,
    code_slots: Vec<u64>,
    files: Vec<u64>,
    /// Maximum number of pages that one op reaches.
    at_once: u64,
    /// Number of pages in each slot when it was last mapped or resized.
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

    /// Chooses a random slot other than `except`.
    fn slot(&mut self, code: bool, except: Option<u64>) -> u64 {
        let all: &[u64] = if code { &CODE_SLOTS } else { &SLOTS };
        let used = if code { &self.code_slots } else { &self.slots };
        let mut used = if used.is_empty() { all } else { used }.to_vec();
        used.retain(|slot| Some(*slot) != except);
        if used.is_empty() {
            used.extend(all.iter().filter(|slot| Some(**slot) != except));
        }
        self.one_of(&used)
    }

    fn size(&self, slot: Option<u64>) -> u64 {
        let size = slot.and_then(|slot| self.sizes.get(&slot));
        size.copied().unwrap_or(self.profile.pages[1])
    }

    /// Chooses a random number of pages for an op whose first page is already chosen.
    fn count(&mut self, name: &str, at: (Option<u64>, u64), most: u64, whole: bool) -> u64 {
        let (slot, page) = at;
        if name.starts_with('m') || name == "z" {
            let [from, to] = self.profile.pages;
            let count = within(&mut self.random, [from.min(most), to.min(most)]);
            self.sizes.extend(slot.map(|slot| (slot, count)));
            return count;
        }
        let rest = self.size(slot).min(most).saturating_sub(page);
        let rest = rest.clamp(1, self.at_once);
        if whole || self.percent(self.grammar.draw.rest_percent) {
            return rest;
        }
        1 + self.random.below(rest)
    }

    fn page(&mut self, slot: Option<u64>, most: u64, whole: bool) -> u64 {
        let whole = whole && self.at_once == PAGES;
        if whole || self.percent(self.grammar.draw.first_page_percent) {
            return 0;
        }
        let size = self.size(slot).min(most);
        if self.percent(self.grammar.draw.last_pages_percent) {
            return size - 1 - self.random.below(size.min(LAST_PAGES));
        }
        self.random.below(size)
    }

    /// Chooses random arguments for an op. If `first_slot` is given, it is the op's first slot.
    fn op(&mut self, name: &str, first_slot: Option<u64>) -> String {
        let (draw, arguments) = (&self.grammar.draw, &self.grammar.op[name]);
        let mut numbers: Vec<u64> = Vec::new();
        let (mut slot, mut page) = (None, 0);
        let whole = self.profile.whole_percent.unwrap_or(draw.whole_percent);
        let whole = self.percent(whole);
        for letter in arguments.chars() {
            let code = matches!(letter, 'c' | 'g' | 'h' | 'x');
            let number = match letter {
                's' | 'c' => {
                    let given = first_slot.filter(|_| slot.is_none());
                    let drawn = given.unwrap_or_else(|| self.slot(code, slot));
                    slot = Some(drawn);
                    drawn
                }
                'f' => self.one_of(&self.files.clone()),
                'x' => self.one_of(&(0..CODE_FILES).collect::<Vec<_>>()),
                'p' | 'g' => {
                    page = self.page(slot, if code { CODE_PAGES } else { u64::MAX }, whole);
                    page
                }
                'k' | 'h' => {
                    let most = if code { CODE_PAGES } else { u64::MAX };
                    self.count(name, (slot, page), most, whole)
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

    /// Maps the slots in use, and writes to most of the data slots.
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

    /// Chooses the few kinds of ops that a sequence contains. With few kinds, a sequence repeats one kind of work
    /// ("swarm testing", Groce and others 2012).
    fn kinds(&mut self, weights: &'a Weights) -> Vec<(&'a String, u64)> {
        let mut all: Vec<_> = weighed(weights).collect();
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

    /// Generates `count` random ops. After an op that takes rights away, an op that gives them back often follows soon.
    fn body(&mut self, count: u64, weights: &'a Weights) -> Vec<String> {
        let kinds = self.kinds(weights);
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
        let phrase = self.phrase();
        first.extend(self.body(phrase.unwrap_or(length), self.profile.first()));
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
            let drawn = self.phrase().unwrap_or(length).min(length);
            ops.extend(self.body(drawn, &self.profile.does));
            repeat(&mut ops, fixed[k], length);
            self.at_once = PAGES;
            sequences.push(ops);
            let again = phrase.is_some() && starter == 0;
            let times = within(&mut self.random, self.profile.times);
            for n in 0..if again { 1 } else { times } {
                starts.push((starter as usize, format!("{kind}{k}"), n == 0));
            }
        }
        for (starter, start, first) in starts {
            let rest = (sequences[starter].len() - fixed[starter]) as u64;
            // Put the first start of a task into the first half of the sequence that starts it.
            let rest = if first { rest / 2 } else { rest };
            let at = fixed[starter] + self.random.below(rest + 1) as usize;
            let at = self.met(&sequences[starter], fixed[starter], at);
            sequences[starter].insert(at, start);
            // The op after the start races with the new task. After this op, the starting task may give up the
            // processor, so that the new task can end.
            let behind = at + 2;
            if self.percent(self.grammar.draw.wait_percent) && behind <= sequences[starter].len() {
                sequences[starter].insert(behind, "y".to_string());
            }
        }
        repeat(&mut sequences[0], fixed[0], length);
        Program { sequences }
    }

    /// Chooses the position at which a task starts. Usually, this is right before the next op that takes memory or
    /// rights away, so that the task runs during this op.
    fn met(&mut self, ops: &[String], first: usize, at: usize) -> usize {
        let met = self.grammar.draw.met_percent;
        if !self.percent(met) {
            return at;
        }
        let takes = |op: &String| {
            let name = parts(op).map_or("", |(name, _)| name);
            self.grammar.draw.met.iter().any(|met| met == name)
        };
        let from_there = (at..ops.len()).chain(first..at);
        let mut taking = from_there.filter(|n| takes(&ops[*n]));
        taking.next().unwrap_or(at)
    }

    /// Chooses a random length for a phrase. Returns `None` if the sequence repeats no phrase.
    fn phrase(&mut self) -> Option<u64> {
        let percent = self.profile.phrase_percent;
        let percent = percent.unwrap_or(self.grammar.draw.phrase_percent);
        self.percent(percent)
            .then(|| within(&mut self.random, self.grammar.draw.phrase))
    }

    /// Returns ops that wait for all other tasks and then read all mapped pages.
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

/// Repeats the ops from index `from` on, until there are `length` of them.
fn repeat(ops: &mut Vec<String>, from: usize, length: u64) {
    let phrase = ops[from..].to_vec();
    let rest = (length as usize).saturating_sub(phrase.len());
    ops.extend(phrase.iter().cycle().take(rest).cloned());
}

/// Iterates over ops and their weights.
fn weighed(ops: &Weights) -> impl Iterator<Item = (&String, u64)> + Clone {
    ops.iter().map(|(name, weight)| (name, *weight))
}
