// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes that tests must detect. They change the coherence checker, the core's shortcuts or the translator.

mod bus;
mod data;
mod diagnosis;
mod engine;
mod fetches;
mod others;
mod states;
mod waits;

/// Expected result of the tests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Killed,
    /// No test can detect the change, or no test needs to detect it. The text is the reason.
    Survives(&'static str),
}

/// A change of the source.
pub struct Mutant {
    /// File, relative to the sources of the changed crate.
    pub file: &'static str,
    /// Text to replace, and its replacement. The file contains the text to replace once.
    pub old: &'static str,
    pub new: &'static str,
    /// The rule that the change breaks.
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

/// Returns a mutant that survives, for the given reason.
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

/// Returns the mutants of the checker.
pub fn of_checker() -> Vec<&'static Mutant> {
    diagnosis::MUTANTS.iter().chain(others::MUTANTS).collect()
}

/// Returns the mutants of the core.
pub fn of_core() -> Vec<&'static Mutant> {
    data::MUTANTS
        .iter()
        .chain(fetches::MUTANTS)
        .chain(waits::MUTANTS)
        .chain(bus::MUTANTS)
        .collect()
}

/// Returns the mutants of the translator.
pub fn of_engine() -> Vec<&'static Mutant> {
    engine::MUTANTS.iter().chain(states::MUTANTS).collect()
}

#[cfg(test)]
mod tests {
    use crate::mutants::{CHECKER, CORE, ENGINE};
    use crate::root;

    #[test]
    fn every_mutant_is_of_a_text_that_is_there_once() {
        for subject in [&CHECKER, &CORE, &ENGINE] {
            for mutant in (subject.mutants)() {
                let file = root().join(subject.source).join(mutant.file);
                let text = std::fs::read_to_string(file).unwrap();
                let found = text.matches(mutant.old).count();
                assert_eq!(found, 1, "{}: {}", mutant.file, mutant.why);
            }
        }
    }
}
