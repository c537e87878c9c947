// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of the coherence checker that its tests have to notice.

mod diagnosis;
mod others;

/// What is to come of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Killed,
    /// No test can tell, or need: why.
    Survives(&'static str),
}

/// A change.
pub struct Mutant {
    /// In `crates/board/src/coherence`.
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

/// All of them.
pub fn mutants() -> impl Iterator<Item = &'static Mutant> {
    diagnosis::MUTANTS.iter().chain(others::MUTANTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::SOURCE;
    use crate::root;

    #[test]
    fn every_mutant_is_of_a_text_that_is_there_once() {
        for mutant in mutants() {
            let file = root().join(SOURCE).join(mutant.file);
            let text = std::fs::read_to_string(file).unwrap();
            let found = text.matches(mutant.old).count();
            assert_eq!(found, 1, "{}: {}", mutant.file, mutant.why);
        }
    }
}
