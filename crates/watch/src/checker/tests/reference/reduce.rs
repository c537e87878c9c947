// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shortens a failing program: removes every operation that the failure does not need.

use super::program::{Op, Program};
use super::run::{Failure, Tally, run};

/// Maximum number of programs tried.
const TRIALS: usize = 4000;

/// Returns the shortest failing program found, and its failure.
pub fn reduce(mut program: Program, mut failure: Failure) -> (Program, Failure) {
    program.ops.truncate(failure.op + 1);
    let mut trials = 0;
    let mut fails = |program: &Program, sort: &str| {
        trials += 1;
        if trials > TRIALS {
            return None;
        }
        let failed = run(program, &mut Tally::new()).err();
        failed.filter(|failure| failure.sort == sort)
    };
    for _ in 0..2 {
        let mut chunk = program.ops.len();
        while chunk > 0 {
            let mut at = 0;
            while at < program.ops.len() {
                let mut shorter = program.clone();
                shorter.ops.drain(at..shorter.ops.len().min(at + chunk));
                match fails(&shorter, &failure.sort) {
                    Some(new_failure) => (program, failure) = (shorter, new_failure),
                    None => at += chunk,
                }
            }
            chunk /= 2;
        }
        for at in 0..program.ops.len() {
            let mut simpler = program.clone();
            let Op::Do(slot, r0, r1, true) = simpler.ops[at] else {
                continue;
            };
            simpler.ops[at] = Op::Do(slot, r0, r1, false);
            if let Some(new_failure) = fails(&simpler, &failure.sort) {
                (program, failure) = (simpler, new_failure);
            }
        }
    }
    (program, failure)
}
