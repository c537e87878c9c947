// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which differences are one report, and how often each was met.

use super::Checker;
use super::call_log::Apart;
use super::circumstances::{Circumstances, Difference};
use super::diagnosis;
use super::report::{Access, Cause, Pair, Report, pair};
use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher};
use std::ops::Range;

/// Differences between the same two instructions that are diagnosed; those beyond are counted as
/// the last one was.
const DIAGNOSED: u32 = 64;

/// Bits of the kinds of access in a [`Pair`].
const KIND_BITS: u8 = 4;

/// Which of the functions that are told apart had to do with a difference, as a hash (FNV-1a).
pub(super) type Among = u64;
const EMPTY: Among = 0xcbf2_9ce4_8422_2325;
const PRIME: Among = 0x100_0000_01b3;

/// The causes that were met.
#[derive(Clone, Default)]
pub(super) struct Causes {
    /// How often each was met, and its report.
    met: BTreeMap<(Cause, Among), (u64, usize)>,
    /// How often two instructions have been diagnosed, and the last cause.
    pairs: BTreeMap<(Pair, Among), (u32, Cause)>,
    /// Functions: whoever leaves reports out by their callers is to see one of each kind of callers.
    apart: Apart,
}

/// FNV-1a over what is told apart.
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
    /// Tells causes apart by whether these functions are among the callers, from now on.
    pub fn set_apart(&mut self, functions: Apart) {
        self.apart = functions;
    }

    /// The functions.
    pub fn apart(&self) -> &Apart {
        &self.apart
    }

    /// None was met.
    pub fn forget(&mut self) {
        self.met.clear();
        self.pairs.clear();
    }

    /// Whether callers matter.
    pub fn are_told_apart(&self) -> bool {
        !self.apart.is_empty()
    }

    /// Which of the functions are among callers of three sorts, and under which circumstances.
    pub fn among(&self, callers: &[Vec<u32>; 3], circumstances: &Circumstances) -> Among {
        let calls = |function: &Range<u32>, of: &[u32]| of.iter().any(|pc| function.contains(pc));
        let functions = self.apart.callers.iter();
        let mut hash = Fnv(EMPTY);
        for is in functions.flat_map(|f| callers.iter().map(|of| calls(f, of))) {
            is.hash(&mut hash);
        }
        circumstances.hash(&mut hash);
        hash.finish()
    }

    /// Counts a difference like many before. False when it has to be diagnosed.
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

    /// A difference was diagnosed: whether its cause is new. Its report is to be number `next` then.
    pub fn is_new(&mut self, pair: Pair, report: &Report, among: Among, next: usize) -> bool {
        let cause = report.cause();
        let diagnosed = self.pairs.entry((pair, among)).or_insert((0, cause));
        *diagnosed = (diagnosed.0 + 1, cause);
        let known = self.met.entry((cause, among)).or_insert((0, next));
        known.0 += 1;
        known.0 == 1
    }

    /// How often each was met, and the number of its report.
    pub fn counts(&self) -> impl Iterator<Item = (u64, usize)> {
        self.met.values().copied()
    }
}

impl Checker {
    /// Counts a difference like many before. False when it has to be diagnosed.
    pub(super) fn is_well_known(&mut self, met: &Difference<'_>, among: Among) -> bool {
        let pair = self.pair(met);
        self.causes.is_well_known(pair, among)
    }

    /// What differences are counted together by when there are many. Of the state of the lines it has what is known
    /// without the history: whether the newest is in its dirty line, whether that which was used is dirty as well, and
    /// whether it is of other memory.
    pub(super) fn pair(&self, met: &Difference<'_>) -> Pair {
        let (access, pc, writer) = pair(met.access, met.context.pc, met.writer.pc);
        let fill = self.history.fill_of(met.access, met.mva);
        let is_line = met.access == Access::Load { cached: true };
        let states = [
            diagnosis::holds(&self.dirty, met.writer, met.pa),
            is_line && self.dirty.since(met.mva.0).is_some(),
            fill.is_some_and(|fill| fill.pa != met.pa.0 & !31),
        ];
        let with = |bits, is| bits << 1 | u8::from(is);
        let state = states.into_iter().fold(0, with);
        (state << KIND_BITS | access, pc, writer)
    }

    /// Which of the functions that are told apart had to do with it.
    pub(super) fn among(&self, met: &Difference<'_>) -> Among {
        if !self.causes.are_told_apart() {
            return 0;
        }
        let (calls, writer) = (&self.calls, met.writer);
        let used = calls.callers(calls.now(met.context));
        let running = calls.running(writer);
        let callers = [used, calls.callers(writer.node), running];
        self.causes.among(&callers, &self.circumstances(met))
    }
}

#[cfg(test)]
mod tests {
    use crate::checker::tests::scripted::{CALLERS, FUNCTION, LOADED, STORED, Scripted};

    #[test]
    fn each_instruction_that_uses_a_stale_word_is_reported_and_each_once() {
        let mut script = Scripted::new(&[]);
        script.stored_and_loaded(0);
        for pc in [FUNCTION + 4, FUNCTION + 8, FUNCTION + 8] {
            script.loaded(0, pc);
        }
        let counts: Vec<u64> = script.checker.reports().map(|(_, count)| count).collect();
        assert_eq!(counts, [1, 1]);
    }

    #[test]
    fn who_uses_a_stale_word_is_told_apart_by_callers_that_somebody_asks_for() {
        for (apart, expected) in [(&[][..], &[1][..]), (&CALLERS, &[1, 1, 1])] {
            let mut script = Scripted::new(apart);
            script.called(CALLERS[0], |script| script.stored_and_loaded(0));
            for caller in [CALLERS[0], CALLERS[1], CALLERS[1]] {
                script.called(caller, |script| script.loaded(0, FUNCTION + 4));
            }
            let counts: Vec<u64> = script.checker.reports().map(|(_, count)| count).collect();
            assert_eq!(counts, expected);
        }
    }

    #[test]
    fn who_had_begun_before_the_store_is_told_apart_from_who_began_behind_it() {
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

    /// A line of the second address goes to memory with what was there, while the newest is still in that of the first.
    #[test]
    fn a_write_back_that_destroys_nothing_hides_nobody_however_well_known_its_like_is() {
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

    /// How often each report was met when both have called twice, and their callers.
    fn reports(apart: &[u32]) -> Vec<(u64, Vec<u32>)> {
        let mut script = Scripted::new(apart);
        for (n, caller) in (0..).zip([CALLERS, CALLERS].concat()) {
            script.called(caller, |script| script.stored_and_loaded(n));
        }
        let all = script.checker.reports();
        all.map(|(r, count)| (count, r.trace.written.clone()))
            .collect()
    }

    #[test]
    fn one_cause_is_a_report_for_each_sort_of_callers_that_somebody_asks_for() {
        let [one, other] = CALLERS.map(|caller| vec![caller]);
        assert_eq!(reports(&[]), [(4, one.clone())]);
        assert_eq!(reports(&[FUNCTION]), [(4, one.clone())]);
        for apart in [&CALLERS[..1], &CALLERS[1..], &CALLERS] {
            assert_eq!(reports(apart), [(2, one.clone()), (2, other.clone())]);
        }
    }
}
