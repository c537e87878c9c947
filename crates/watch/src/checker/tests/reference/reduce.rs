// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a program that fails short: what can go without the failure going goes.

use super::program::{Op, Program};
use super::run::{Failure, Tally, run};

/// Programs tried at most.
const TRIALS: usize = 4000;

/// The shortest program found, and its failure.
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
                let mut other = program.clone();
                other.ops.drain(at..other.ops.len().min(at + chunk));
                match fails(&other, &failure.sort) {
                    Some(other_failure) => (program, failure) = (other, other_failure),
                    None => at += chunk,
                }
            }
            chunk /= 2;
        }
        for at in 0..program.ops.len() {
            let mut other = program.clone();
            let Op::Do(slot, r0, r1, true) = other.ops[at] else {
                continue;
            };
            other.ops[at] = Op::Do(slot, r0, r1, false);
            if let Some(other_failure) = fails(&other, &failure.sort) {
                (program, failure) = (other, other_failure);
            }
        }
    }
    (program, failure)
}
