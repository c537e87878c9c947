// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program: drawn from a seed, written as text, and made short while it fails.

use std::collections::{BTreeMap, HashSet};

use anyhow::{Result, bail};
use board::random::Random;

use super::grammar::{
    BYTES, CODE_FILES, CODE_PAGES, CODE_SLOTS, Grammar, Profile, SEQUENCE_OPS, SEQUENCES, SLOTS,
    pick, within,
};

/// What each task does: the first sequence is that of the first process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Ops as they are written.
    pub sequences: Vec<Vec<String>>,
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
    /// Pages of each slot, as it was mapped or resized last.
    sizes: BTreeMap<u64, u64>,
}

impl<'a> Drawer<'a> {
    fn new(grammar: &'a Grammar, seed: u64) -> Drawer<'a> {
        let mut random = Random::new(seed);
        let profiles = grammar.profile.values();
        let profile = pick(&mut random, profiles.map(|p| (p, &p.weight)));
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
        pick(&mut self.random, (0..).zip(&weights)).unwrap_or(0)
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
            let span = if most == CODE_PAGES {
                [1, most]
            } else {
                [from, to]
            };
            let count = within(&mut self.random, span);
            self.sizes.extend(slot.map(|slot| (slot, count)));
            return count;
        }
        let rest = self.size(slot).min(most).saturating_sub(page).max(1);
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
            let fitting = self.profile.maps.iter().filter(|(name, _)| fits(name));
            let Some(name) = pick(&mut self.random, fitting) else {
                continue;
            };
            ops.push(self.op(name, Some(slot)));
            if letter == 's' && self.percent(70) {
                ops.push(self.op("w", Some(slot)));
            }
        }
        ops
    }

    /// So many ops of any kind. Rights that are taken are given back soon.
    fn body(&mut self, count: u64) -> Vec<String> {
        let mut ops = Vec::new();
        let mut back: Vec<(u64, String)> = Vec::new();
        for n in 0..count {
            let Some(name) = pick(&mut self.random, self.profile.does.iter()) else {
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
        first.extend(self.body(length));
        let mut sequences = vec![first];
        let mut starts = Vec::new();
        for k in 1..count {
            let kind = pick(&mut self.random, self.profile.starts.iter());
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
            ops.extend(self.body(length));
            sequences.push(ops);
            for _ in 0..1 + u64::from(self.percent(15)) {
                starts.push((starter as usize, format!("{kind}{k}")));
            }
        }
        for (starter, start) in starts {
            let early = (sequences[starter].len() - fixed[starter]) as u64 / 2;
            let at = fixed[starter] + self.random.below(early + 1) as usize;
            sequences[starter].insert(at, start);
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

fn written(name: &str, numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("{name}{}", numbers.join("."))
}

/// What undoes an op that takes rights.
fn given_back(op: &str) -> Option<String> {
    let (name, mut numbers) = parts(op)?;
    let all = match name {
        "p" => 2,
        "pc" => 1,
        _ => return None,
    };
    let right = numbers.last_mut()?;
    if std::mem::replace(right, all) == all {
        return None;
    }
    Some(written(name, &numbers))
}

/// The name and the numbers of an op, if it looks like one.
fn parts(op: &str) -> Option<(&str, Vec<u64>)> {
    let letters = op
        .find(|c: char| !c.is_ascii_lowercase())
        .unwrap_or(op.len());
    let (name, numbers) = op.split_at(letters);
    if name.is_empty() {
        return None;
    }
    if numbers.is_empty() {
        return Some((name, Vec::new()));
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = |text: &str| text.parse().ok().filter(|_| digits(text));
    let numbers = numbers.split('.').map(number).collect::<Option<_>>()?;
    Some((name, numbers))
}

impl Program {
    /// The program of a seed.
    pub fn generate(grammar: &Grammar, seed: u64) -> Program {
        let mut drawer = Drawer::new(grammar, seed);
        let mut program = drawer.program();
        // What the interpreter does not take becomes shorter.
        while program.check().is_err() {
            for ops in &mut program.sequences {
                ops.truncate(ops.len() * 3 / 4);
            }
        }
        program
    }

    /// The guest's argument.
    pub fn text(&self) -> String {
        let sequences: Vec<String> = self.sequences.iter().map(|ops| ops.join(" ")).collect();
        sequences.join("|")
    }

    /// How many there are.
    pub fn ops(&self) -> usize {
        self.sequences.iter().map(Vec::len).sum()
    }

    /// Only the ops that are to be kept, all of them counted in order. Sequences keep their numbers.
    pub fn without(&self, keep: &[bool]) -> Program {
        let mut keep = keep.iter();
        let mut rest = |ops: &Vec<String>| {
            let kept = ops.iter().filter(|_| keep.next().copied().unwrap_or(false));
            kept.cloned().collect()
        };
        Program {
            sequences: self.sequences.iter().map(&mut rest).collect(),
        }
    }

    /// Reads what [`Program::text`] wrote. Whether there are such ops the interpreter says.
    pub fn parse(text: &str) -> Result<Program> {
        let ops = |sequence: &str| {
            let ops = sequence.split(' ').filter(|op| !op.is_empty());
            ops.map(str::to_string).collect()
        };
        let program = Program {
            sequences: text.trim().split('|').map(ops).collect(),
        };
        program.check()?;
        Ok(program)
    }

    fn check(&self) -> Result<()> {
        if self.sequences.len() > SEQUENCES || self.text().len() > BYTES {
            bail!("a program has at most {SEQUENCES} sequences and {BYTES} bytes");
        }
        for (n, ops) in self.sequences.iter().enumerate() {
            if ops.len() > SEQUENCE_OPS {
                bail!("sequence {n} has more than {SEQUENCE_OPS} ops");
            }
            if let Some(op) = ops.iter().find(|op| parts(op).is_none()) {
                bail!(
                    "sequence {n}: \"{op}\" is no op (letters, then numbers with points between)"
                );
            }
        }
        Ok(())
    }
}

/// Asks of each program once.
struct Reducer<'a> {
    fails: &'a mut dyn FnMut(&Program) -> Result<bool>,
    good: HashSet<String>,
}

impl Reducer<'_> {
    fn fails(&mut self, program: &Program) -> Result<bool> {
        let text = program.text();
        if self.good.contains(&text) {
            return Ok(false);
        }
        let fails = (self.fails)(program)?;
        if !fails {
            self.good.insert(text);
        }
        Ok(fails)
    }

    /// Delta debugging (ddmin; Zeller and Hildebrandt, 2002): a part of the ops, all but a part, finer
    /// parts, until none of them can be taken out.
    fn shorten(&mut self, program: &Program) -> Result<Program> {
        let mut kept: Vec<usize> = (0..program.ops()).collect();
        let of = |kept: &[usize]| {
            let keep: Vec<bool> = (0..program.ops()).map(|n| kept.contains(&n)).collect();
            program.without(&keep)
        };
        let mut parts = 2;
        while !kept.is_empty() {
            let size = kept.len().div_ceil(parts);
            let chunks = kept.chunks(size).map(<[usize]>::to_vec);
            let but = |chunk: &Vec<usize>| {
                kept.iter()
                    .filter(|n| !chunk.contains(n))
                    .copied()
                    .collect()
            };
            let complements = kept
                .chunks(size)
                .map(<[usize]>::to_vec)
                .map(|chunk| but(&chunk));
            let mut found = None;
            let tries = chunks
                .map(|c| (c, 2))
                .chain(complements.map(|c| (c, parts.max(3) - 1)));
            for (rest, next) in
                tries.filter(|(rest, _): &(Vec<usize>, usize)| rest.len() < kept.len())
            {
                if self.fails(&of(&rest))? {
                    found = Some((rest, next));
                    break;
                }
            }
            match found {
                Some((rest, next)) => (kept, parts) = (rest, next),
                None if size == 1 => break,
                None => parts = (parts * 2).min(kept.len()),
            }
        }
        Ok(of(&kept))
    }

    /// Smaller numbers, one at a time. What the interpreter refuses does not fail.
    fn lessen(&mut self, mut program: Program) -> Result<Program> {
        for sequence in 0..program.sequences.len() {
            for op in 0..program.sequences[sequence].len() {
                while let Some(less) = self.lesser(&program, sequence, op)? {
                    program.sequences[sequence][op] = less;
                }
            }
        }
        Ok(program)
    }

    /// The op with one number less, if the program still fails with that.
    fn lesser(&mut self, program: &Program, sequence: usize, op: usize) -> Result<Option<String>> {
        let Some((name, numbers)) = parts(&program.sequences[sequence][op]) else {
            return Ok(None);
        };
        for (at, was) in numbers.iter().enumerate() {
            for less in [0, 1, was / 2, was.saturating_sub(1)] {
                let mut numbers = numbers.clone();
                numbers[at] = less;
                let mut other = program.clone();
                other.sequences[sequence][op] = written(name, &numbers);
                if less < *was && self.fails(&other)? {
                    return Ok(Some(written(name, &numbers)));
                }
            }
        }
        Ok(None)
    }
}

/// The shortest program found that fails as this one does: no op of it can be taken out.
pub fn reduce(
    program: &Program,
    fails: &mut dyn FnMut(&Program) -> Result<bool>,
) -> Result<Program> {
    let mut reducer = Reducer {
        fails,
        good: HashSet::new(),
    };
    if !reducer.fails(program)? {
        bail!("the program does not fail");
    }
    let short = reducer.shorten(program)?;
    let small = reducer.lessen(short)?;
    reducer.shorten(&small)
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
