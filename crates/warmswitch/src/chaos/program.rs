// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of `mm_chaos`: their text, and the reduction of a failing program.

use std::collections::HashSet;

use anyhow::{Result, bail};

use super::grammar::{BYTES, SEQUENCE_OPS, SEQUENCES, STARTS};

/// A program. Each task runs one sequence. The first process runs the first sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Ops of each sequence, as text.
    pub sequences: Vec<Vec<String>>,
}

/// Writes an op as text.
pub fn written(name: &str, numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("{name}{}", numbers.join("."))
}

/// Returns the op that gives back the rights that `op` takes away. Returns `None` if `op` takes no rights away.
pub fn given_back(op: &str) -> Option<String> {
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

/// Splits an op into its name and its numbers. Returns `None` if the op is malformed.
pub fn parts(op: &str) -> Option<(&str, Vec<u64>)> {
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
    /// Writes the program as the argument of `mm_chaos`.
    pub fn text(&self) -> String {
        let sequences: Vec<String> = self.sequences.iter().map(|ops| ops.join(" ")).collect();
        sequences.join("|")
    }

    /// Iterates over the names of the ops, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let ops = self.sequences.iter().flatten();
        ops.filter_map(|op| Some(parts(op)?.0))
    }

    /// Returns the work of each sequence, which is the number of its ops times the number of its starts.
    pub fn work(&self) -> Vec<usize> {
        let mut begun = vec![0; self.sequences.len()];
        begun[0] = 1usize;
        for (n, ops) in self.sequences.iter().enumerate() {
            for (name, numbers) in ops.iter().filter_map(|op| parts(op)) {
                // A sequence can start only later sequences.
                let next = numbers.first().map(|k| *k as usize);
                let next = next.filter(|k| STARTS.contains(&name) && n < *k && *k < begun.len());
                if let Some(k) = next {
                    begun[k] = begun[k].saturating_add(begun[n]);
                }
            }
        }
        let lengths = self.sequences.iter().map(Vec::len);
        let work = begun.iter().zip(lengths);
        work.map(|(times, ops)| times.saturating_mul(ops)).collect()
    }

    /// Returns the number of ops.
    pub fn ops(&self) -> usize {
        self.sequences.iter().map(Vec::len).sum()
    }

    /// Returns the program with only the ops that `keep` marks, one mark per op in order. Sequences keep their numbers.
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

    /// Parses the text of [`Program::text`]. The interpreter in the guest checks the names of the ops.
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

    /// Checks that the program fits into the interpreter.
    pub fn check(&self) -> Result<()> {
        if self.sequences.len() > SEQUENCES || self.text().len() > BYTES {
            bail!(
                "the program is too large: at most {SEQUENCES} sequences and {BYTES} bytes are possible"
            );
        }
        for (n, ops) in self.sequences.iter().enumerate() {
            if ops.len() > SEQUENCE_OPS {
                bail!(
                    "sequence {n}: has {} ops, at most {SEQUENCE_OPS} are possible",
                    ops.len()
                );
            }
            if let Some(op) = ops.iter().find(|op| parts(op).is_none()) {
                bail!(
                    "sequence {n}: \"{op}\" is not an op: write letters, then numbers separated by points"
                );
            }
        }
        Ok(())
    }
}

/// Reduces a program. Remembers the candidates that did not fail, so that no candidate runs twice.
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

    /// Deletes ops by delta debugging (ddmin; Zeller and Hildebrandt, 2002). First tries each part of the ops alone.
    /// Then tries the ops without each part. Then tries smaller parts. Ends when no single op can be deleted.
    fn shorten(&mut self, program: &Program) -> Result<Program> {
        let mut kept: Vec<usize> = (0..program.ops()).collect();
        let program_of = |kept: &[usize]| {
            let keep: Vec<bool> = (0..program.ops()).map(|n| kept.contains(&n)).collect();
            program.without(&keep)
        };
        let mut parts = 2;
        while !kept.is_empty() {
            let size = kept.len().div_ceil(parts);
            let chunks = kept.chunks(size).map(<[usize]>::to_vec);
            let without = |chunk: &Vec<usize>| {
                kept.iter()
                    .filter(|n| !chunk.contains(n))
                    .copied()
                    .collect()
            };
            let complements = kept
                .chunks(size)
                .map(<[usize]>::to_vec)
                .map(|chunk| without(&chunk));
            let mut found = None;
            let tries = chunks
                .map(|c| (c, 2))
                .chain(complements.map(|c| (c, parts.max(3) - 1)));
            for (rest, next) in
                tries.filter(|(rest, _): &(Vec<usize>, usize)| rest.len() < kept.len())
            {
                if self.fails(&program_of(&rest))? {
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
        Ok(program_of(&kept))
    }

    /// Makes numbers smaller, one at a time. A program that the interpreter rejects counts as not failing.
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

    /// Tries smaller numbers in an op. Returns the first changed op with which the program still fails.
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

/// Reduces a failing program until no op can be deleted without losing the failure.
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
