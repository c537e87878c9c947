// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups differences between used and newest values into reports, and counts the differences.

use super::Checker;
use super::call_log::Distinctions;
use super::circumstances::{Circumstances, Difference};
use super::diagnosis;
use super::report::{Access, Cause, Pair, Report, pair};
use super::shadow::Path;
use core::mem::discriminant;
use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher};
use std::ops::Range;

/// Number of differences that are diagnosed for each pair of instructions. Further differences of the pair count
/// towards the cause of the last diagnosis.
const DIAGNOSED: u32 = 64;

/// Width of the kind of access in a [`Pair`], in bits.
const KIND_BITS: u8 = 4;

/// Hash (FNV-1a) of the callers and circumstances with which suppressions distinguish reports.
pub(super) type Among = u64;
const EMPTY: Among = 0xcbf2_9ce4_8422_2325;
const PRIME: Among = 0x100_0000_01b3;

/// The causes found so far.
#[derive(Clone, Default)]
pub(super) struct Causes {
    /// Count and report number of each cause.
    met: BTreeMap<(Cause, Among), (u64, usize)>,
    /// For each pair of instructions: number of diagnoses and last cause.
    pairs: BTreeMap<(Pair, Among), (u32, Cause)>,
    /// Functions that suppressions name. Differences with different callers become separate reports, because a
    /// suppression may cover only one of these reports.
    distinctions: Distinctions,
}

/// FNV-1a.
struct Fnv(Among);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }
}

impl Causes {
    /// Sets the functions that distinguish reports, such as callers.
    pub fn set_apart(&mut self, functions: Distinctions) {
        self.distinctions = functions;
    }

    /// Returns the functions that distinguish reports.
    pub fn distinctions(&self) -> &Distinctions {
        &self.distinctions
    }

    /// Forgets all causes.
    pub fn forget(&mut self) {
        self.met.clear();
        self.pairs.clear();
    }

    /// Returns whether any functions distinguish reports.
    pub fn are_told_apart(&self) -> bool {
        !self.distinctions.is_empty()
    }

    /// Hashes the distinguishing functions in each list of callers, and the circumstances.
    pub fn among(&self, callers: &[Vec<u32>; 3], circumstances: &Circumstances) -> Among {
        let calls =
            |function: &Range<u32>, list: &[u32]| list.iter().any(|pc| function.contains(pc));
        let Distinctions {
            callers: all,
            direct_callers,
            ..
        } = &self.distinctions;
        let mut hash = Fnv(EMPTY);
        for list in callers {
            let first = &list[..list.len().min(1)];
            let indirect = all.iter().map(|function| calls(function, list));
            let direct = direct_callers.iter().map(|function| calls(function, first));
            for is in indirect.chain(direct) {
                is.hash(&mut hash);
            }
        }
        circumstances.hash(&mut hash);
        hash.finish()
    }

    /// Counts a difference whose pair has been diagnosed often enough. Returns false if the difference needs a
    /// diagnosis.
    pub fn is_well_known(&mut self, pair: Pair, among: Among) -> bool {
        match self.pairs.get_mut(&(pair, among)) {
            Some((n, cause)) if *n >= DIAGNOSED => {
                if let Some(known) = self.met.get_mut(&(*cause, among)) {
                    known.0 += 1;
                }
                true
            }
            _ => false,
        }
    }

    /// Counts a diagnosed difference and returns whether its cause is new. A new cause gets report number `next`.
    pub fn is_new(&mut self, pair: Pair, report: &Report, among: Among, next: usize) -> bool {
        let cause = report.cause();
        let diagnosed = self.pairs.entry((pair, among)).or_insert((0, cause));
        *diagnosed = (diagnosed.0 + 1, cause);
        let known = self.met.entry((cause, among)).or_insert((0, next));
        known.0 += 1;
        known.0 == 1
    }

    /// Returns the count and the report number of each cause.
    pub fn counts(&self) -> impl Iterator<Item = (u64, usize)> {
        self.met.values().copied()
    }
}

impl Checker {
    /// Counts a difference whose pair has been diagnosed often enough. Returns false if the difference needs a
    /// diagnosis.
    pub(super) fn is_well_known(&mut self, met: &Difference<'_>, among: Among) -> bool {
        let pair = self.pair(met);
        self.causes.is_well_known(pair, among)
    }

    /// Returns the key under which frequent differences are counted. The key includes the part of the lines' state that
    /// is known without the events: whether the newest value was stored into a line, whether it is still in that line,
    /// whether the used line is dirty too, and whether the used line holds other memory.
    pub(super) fn pair(&self, met: &Difference<'_>) -> Pair {
        let (access, pc, writer) = pair(met.access, met.context.pc, met.writer.pc);
        let fill = self.history.fill_of(met.access, met.mva);
        let is_line = met.access == Access::Load { cached: true };
        let states = [
            met.writer.path == Path::Line,
            diagnosis::holds(&self.dirty, met.writer, met.pa),
            is_line && self.dirty.since(met.mva.0).is_some(),
            fill.is_some_and(|fill| fill.pa != met.pa.0 & !31),
        ];
        let append = |bits, is| bits << 1 | u8::from(is);
        let state = states.into_iter().fold(0, append);
        (state << KIND_BITS | access, pc, writer)
    }

    /// Hashes the facts that distinguish reports of one pair of instructions. These facts are the callers and
    /// circumstances that suppressions ask for. For a read by a bus master, the bus master, the kind of the purpose and
    /// the writer's caller are also such facts. For data that a bus master wrote, the bus master is such a fact, because
    /// no instruction wrote the data. Returns 0 if there are no such facts.
    pub(super) fn among(&self, met: &Difference<'_>) -> Among {
        let told_apart = self.causes.are_told_apart();
        let written = || self.calls.callers(met.writer.node);
        let asked_for = match told_apart {
            true => {
                let running = self.calls.running(met.writer);
                let callers = [self.callers_of_use(met), written(), running];
                self.causes.among(&callers, &self.circumstances(met))
            }
            false => 0,
        };
        let mut hash = Fnv(asked_for);
        match (met.access, met.writer.master()) {
            (
                Access::Dma {
                    master, purpose, ..
                },
                _,
            ) => {
                (master, discriminant(&purpose), written().first()).hash(&mut hash);
            }
            (_, Some(master)) => master.hash(&mut hash),
            _ => {}
        }
        hash.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Distinctions;
    use crate::checker::tests::scripted::{CALLERS, FUNCTION, LOADED, STORED, Scripted};

    #[test]
    fn each_instruction_that_uses_a_stale_word_is_reported_once() {
        let mut script = Scripted::new(&[]);
        script.stored_and_loaded(0);
        for pc in [FUNCTION + 4, FUNCTION + 8, FUNCTION + 8] {
            script.loaded(0, pc);
        }
        let counts: Vec<u64> = script.checker.reports().map(|(_, count)| count).collect();
        assert_eq!(counts, [1, 1]);
    }

    #[test]
    fn uses_of_a_stale_word_are_distinguished_by_the_callers_in_the_list() {
        for (distinctions, expected) in [(&[][..], &[1][..]), (&CALLERS, &[1, 1, 1])] {
            let mut script = Scripted::new(distinctions);
            script.called(CALLERS[0], |script| script.stored_and_loaded(0));
            for caller in [CALLERS[0], CALLERS[1], CALLERS[1]] {
                script.called(caller, |script| script.loaded(0, FUNCTION + 4));
            }
            let counts: Vec<u64> = script.checker.reports().map(|(_, count)| count).collect();
            assert_eq!(counts, expected);
        }
    }

    #[test]
    fn a_call_begun_before_the_store_is_distinguished_from_a_later_call() {
        let mut script = Scripted::new(&CALLERS);
        script.called(CALLERS[0], |script| {
            script.stored_and_loaded(0);
            script.stored_and_loaded(1);
        });
        let call = |script: &mut Scripted| {
            script.called(CALLERS[0], |script| script.loaded(0, FUNCTION + 4))
        };
        call(&mut script);
        call(&mut script);
        let began = script
            .checker
            .reports()
            .map(|(report, count)| (report.trace.circumstances.overlapping, count));
        assert_eq!(began.collect::<Vec<_>>(), [(true, 2), (false, 1)]);
    }

    /// The line of the second address is written back with old data, while the line of the first address still holds
    /// the newest data.
    #[test]
    fn a_write_back_that_destroys_nothing_hides_no_read_however_often_its_pair_was_met() {
        let mut script = Scripted::new(&[]);
        for n in 0..super::DIAGNOSED {
            script.stored(n);
            script.written_back(n, STORED, 7);
            script.written_back(n, LOADED, 0);
        }
        let n = super::DIAGNOSED;
        script.stored(n);
        script.written_back(n, LOADED, 0);
        let before = script.checker.reports().count();
        script.loaded(n, FUNCTION + 16);
        assert_eq!(script.checker.reports().count(), before + 1);
    }

    /// The function calls a second caller, which calls the function again.
    #[test]
    fn a_use_by_the_function_itself_hides_no_use_in_a_function_that_it_calls() {
        let mut script = Scripted::new(&[]);
        let first = CALLERS[0]..CALLERS[0] + 0x100;
        script.checker.tell_apart(Distinctions {
            direct_callers: Vec::from([first]),
            ..Distinctions::default()
        });
        (0..2).for_each(|n| script.stored(n));
        script.called(CALLERS[0], |script| {
            script.loaded(0, FUNCTION + 4);
            script.called(CALLERS[1], |script| script.loaded(1, FUNCTION + 4));
        });
        assert_eq!(script.checker.reports().count(), 2);
    }

    /// Lets each of two callers call twice. Returns the count and the writer's callers of each report.
    fn reports(distinctions: &[u32]) -> Vec<(u64, Vec<u32>)> {
        let mut script = Scripted::new(distinctions);
        for (n, caller) in (0..).zip([CALLERS, CALLERS].concat()) {
            script.called(caller, |script| script.stored_and_loaded(n));
        }
        let all = script.checker.reports();
        all.map(|(r, count)| (count, r.trace.written.clone()))
            .collect()
    }

    #[test]
    fn one_cause_is_one_report_for_each_set_of_callers_in_the_list() {
        let [one, other] = CALLERS.map(|caller| vec![caller]);
        assert_eq!(reports(&[]), [(4, one.clone())]);
        assert_eq!(reports(&[FUNCTION]), [(4, one.clone())]);
        for distinctions in [&CALLERS[..1], &CALLERS[1..], &CALLERS] {
            assert_eq!(
                reports(distinctions),
                [(2, one.clone()), (2, other.clone())]
            );
        }
    }
}
