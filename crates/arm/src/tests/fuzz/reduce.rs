// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shortens a failing program: removes every part that the failure does not need.

use super::program::{Op, Program};
use super::run::run;
use super::search::{Failure, Sort, Tally};
use crate::model::Core;

/// Maximum number of programs to try.
const TRIALS: usize = 6000;
const NOTHING: u32 = 0xe1a0_0000; // mov r0, r0

struct Reducer {
    core: &'static Core,
    sort: Sort,
    trials: usize,
    program: Program,
    failure: Failure,
}

impl Reducer {
    /// Replaces the program with `other` if `other` also fails.
    fn take(&mut self, other: Program) -> bool {
        self.trials += 1;
        if self.trials > TRIALS {
            return false;
        }
        match run(self.core, &other, &mut Tally::new()) {
            Err(failure) if failure.sort == self.sort => {
                (self.program, self.failure) = (other, failure);
                true
            }
            _ => false,
        }
    }

    /// Removes parts of a list: halves first, single elements last.
    fn shorten<T: Clone>(&mut self, list: impl Fn(&mut Program) -> &mut Vec<T>) {
        let mut chunk = list(&mut self.program).len();
        while chunk > 0 {
            let mut at = 0;
            while at < list(&mut self.program).len() {
                let mut other = self.program.clone();
                let items = list(&mut other);
                items.drain(at..items.len().min(at + chunk));
                if !self.take(other) {
                    at += chunk;
                }
            }
            chunk /= 2;
        }
    }

    /// Clears words of lines and registers.
    fn empty_words(&mut self) {
        for line in 0..self.program.lines.len() {
            for word in 0..8 {
                for replacement in [0, NOTHING] {
                    let mut other = self.program.clone();
                    let stored = &mut other.lines[line].1[word];
                    if [0, NOTHING].contains(stored) {
                        break;
                    }
                    *stored = replacement;
                    if self.take(other) {
                        break;
                    }
                }
            }
        }
        for op in 0..self.program.ops.len() {
            for n in 0..15 {
                let mut other = self.program.clone();
                if let Op::Registers(values) = &mut other.ops[op]
                    && core::mem::take(&mut values[n]) != 0
                {
                    self.take(other);
                }
            }
        }
    }
}

/// Returns the shortest program found, and its failure.
pub fn reduce(core: &'static Core, mut program: Program, failure: Failure) -> (Program, Failure) {
    program.ops.truncate(failure.op + 1);
    let mut reducer = Reducer {
        core,
        sort: failure.sort,
        trials: 0,
        program,
        failure,
    };
    for _ in 0..2 {
        reducer.shorten(|program| &mut program.ops);
        reducer.shorten(|program| &mut program.lines);
        reducer.shorten(|program| &mut program.tables);
        reducer.empty_words();
    }
    (reducer.program, reducer.failure)
}
