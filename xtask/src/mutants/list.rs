// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of the coherence checker and of the core's shortcuts that their tests have to notice.

mod bus;
mod data;
mod diagnosis;
mod fetches;
mod others;
mod waits;

/// What is to come of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Killed,
    /// No test can tell, or need: why.
    Survives(&'static str),
}

/// A change.
pub struct Mutant {
    /// Under the sources of what is changed.
    pub file: &'static str,
    /// Text that is there once, and what is there instead.
    pub old: &'static str,
    pub new: &'static str,
    /// What no longer holds.
    pub why: &'static str,
    pub expected: Expected,
}

const fn killed(
    file: &'static str,
    old: &'static str,
    new: &'static str,
    why: &'static str,
) -> Mutant {
    Mutant {
        file,
        old,
        new,
        why,
        expected: Expected::Killed,
    }
}

/// The same, which no test needs to notice.
const fn survives(
    file: &'static str,
    old: &'static str,
    new: &'static str,
    why: &'static str,
    reason: &'static str,
) -> Mutant {
    Mutant {
        expected: Expected::Survives(reason),
        ..killed(file, old, new, why)
    }
}

/// The checker's.
pub fn of_checker() -> Vec<&'static Mutant> {
    diagnosis::MUTANTS.iter().chain(others::MUTANTS).collect()
}

/// The core's.
pub fn of_core() -> Vec<&'static Mutant> {
    data::MUTANTS
        .iter()
        .chain(fetches::MUTANTS)
        .chain(waits::MUTANTS)
        .chain(bus::MUTANTS)
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::mutants::{CHECKER, CORE};
    use crate::root;

    #[test]
    fn every_mutant_is_of_a_text_that_is_there_once() {
        for subject in [&CHECKER, &CORE] {
            for mutant in (subject.mutants)() {
                let file = root().join(subject.source).join(mutant.file);
                let text = std::fs::read_to_string(file).unwrap();
                let found = text.matches(mutant.old).count();
                assert_eq!(found, 1, "{}: {}", mutant.file, mutant.why);
            }
        }
    }
}
