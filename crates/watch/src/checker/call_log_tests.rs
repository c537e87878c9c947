// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the log of calls between a fill, a write and a use, with hand-written instruction sequences.

use super::super::calls::stack;
use super::*;
use arm::{AddressSpace, Context, Width};

const SP: u32 = 0xc100_1f00;
/// Function that calls the other functions.
const SYSTEM_CALL: u32 = 0xc000_1000;
const COPY: u32 = 0xc000_2000;
const FLUSH: u32 = 0xc000_3000;
const OTHER: u32 = 0xc000_4000;

struct Run {
    calls: Calls,
    cycle: u64,
    argument: u32,
    bits: u32,
}

impl Run {
    fn new(distinctions: &Distinctions) -> Run {
        let mut calls = Calls::new();
        calls.call_log.set(distinctions);
        let mut run = Run {
            calls,
            cycle: 0,
            argument: 0,
            bits: 0,
        };
        run.call(OTHER, SYSTEM_CALL);
        run
    }

    /// Executes an instruction and returns its call-tree node.
    fn at(&mut self, pc: u32, word: u32) -> Node {
        self.on(pc, word, SP, 0)
    }

    /// Executes an instruction on a stack and under a table base.
    fn on(&mut self, pc: u32, word: u32, sp: u32, ttb: u32) -> Node {
        self.cycle += 10;
        let mut registers = [0; 16];
        registers[0] = self.argument;
        registers[2] = self.bits;
        registers[13] = sp;
        let context = Context {
            cycle: self.cycle,
            pc,
            mode: 0x13,
            ttb,
            ..Context::default()
        };
        self.calls.fetched(&context, Width::Word, word, &registers);
        self.calls.now(&context)
    }

    /// Calls a function from the start of another, and returns the node of the call.
    fn call(&mut self, from: u32, to: u32) -> Node {
        self.at(from, bl(from, to));
        self.at(to, 0)
    }

    /// Makes a call that returns. Gives the call's cycle and node.
    fn called(&mut self, from: u32, to: u32) -> (u64, Node) {
        let node = self.call(from, to);
        let cycle = self.cycle;
        self.at(from + 4, 0);
        (cycle, node)
    }

    fn between(
        &self,
        distinctions: &Distinctions,
        written: (u64, Node),
        filled: Option<u64>,
    ) -> Between {
        let addresses = [Some(Mva(0x0200_5004)), Some(Mva(0xc200_5004))];
        let events = Events {
            written,
            filled,
            stack: stack(SP >> 13),
            addresses,
            spaces: [AddressSpace::default(); 2],
        };
        self.calls.between(distinctions, events)
    }
}

fn bl(from: u32, to: u32) -> u32 {
    0xeb00_0000 | to.wrapping_sub(from + 8) >> 2 & 0xff_ffff
}

/// Returns a function. If `mask` is given, its condition is that r2 has at least one of these bits set.
fn given(start: u32, mask: Option<u32>) -> Vec<Given> {
    let bits = mask.map(|mask| Bits { register: 2, mask });
    let function = start..start + 0x100;
    vec![Given { function, bits }]
}

fn function(start: u32) -> Vec<Range<u32>> {
    std::iter::once(start..start + 0x100).collect()
}

#[test]
fn calls_by_the_writers_callers_count_until_a_caller_is_called_again() {
    let distinctions = Distinctions {
        callers: function(SYSTEM_CALL),
        then_called: function(FLUSH),
        ..Distinctions::default()
    };
    for (flushes, again, seen) in [
        (true, false, true),
        (false, true, false),
        (false, false, false),
    ] {
        let mut run = Run::new(&distinctions);
        let written = run.called(SYSTEM_CALL, COPY);
        if flushes {
            run.called(SYSTEM_CALL, FLUSH);
        }
        if again {
            run.at(OTHER + 4, 0);
            run.call(OTHER, SYSTEM_CALL);
            run.called(SYSTEM_CALL, FLUSH);
        }
        let then = run.between(&distinctions, written, None).then_called;
        assert_eq!(then == [FLUSH], seen, "{flushes} {again}: {then:x?}");
    }
}

#[test]
fn a_line_is_filled_in_a_call_from_its_beginning_to_the_write() {
    let distinctions = Distinctions {
        filled_in: function(SYSTEM_CALL),
        ..Distinctions::default()
    };
    let mut run = Run::new(&distinctions);
    let began = run.cycle;
    let written = run.called(SYSTEM_CALL, COPY);
    for (filled, is) in [
        (None, false),
        (Some(began - 1), false),
        (Some(began), true),
        (Some(written.0 - 1), true),
        (Some(written.0), false),
    ] {
        let found = run.between(&distinctions, written, filled).filled_in;
        assert_eq!(found == [SYSTEM_CALL], is, "{filled:?} {found:x?}");
    }
}

#[test]
fn a_call_since_the_fill_counts_if_it_got_an_address_with_or_without_the_fcse_slot() {
    let distinctions = Distinctions {
        called_since_fill: given(FLUSH, None),
        ..Distinctions::default()
    };
    for (argument, is) in [(0x0200_5fff, true), (0x5000, true), (0x0200_6000, false)] {
        let mut run = Run::new(&distinctions);
        let before = run.cycle;
        run.argument = argument;
        let (cycle, node) = run.called(SYSTEM_CALL, FLUSH);
        let since = |filled| {
            run.between(&distinctions, (cycle, node), filled)
                .called_since_fill
        };
        assert_eq!(since(Some(before)) == [(FLUSH, None)], is, "{argument:x}");
        assert_eq!([since(Some(cycle + 1)), since(None)], [[], []]);
    }
}

#[test]
fn calls_since_the_write_are_known_as_far_as_calls_are_kept() {
    let distinctions = Distinctions {
        called_since: function(FLUSH),
        ..Distinctions::default()
    };
    let mut run = Run::new(&distinctions);
    let written = run.called(SYSTEM_CALL, COPY);
    let found = run.between(&distinctions, written, None);
    assert_eq!((found.called_since, found.is_whole), (vec![], true));
    for _ in 0..=KEPT {
        run.called(SYSTEM_CALL, FLUSH);
    }
    let found = run.between(&distinctions, written, None);
    assert_eq!((found.called_since, found.is_whole), (vec![FLUSH], false));
}

/// The first task is switched out inside a flush. The write comes before, during or after this suspension.
#[test]
fn a_task_that_was_switched_away_inside_a_function_is_known_at_that_time() {
    let distinctions = Distinctions {
        suspended_in: function(FLUSH),
        ..Distinctions::default()
    };
    let mut run = Run::new(&distinctions);
    let node = run.call(SYSTEM_CALL, FLUSH);
    let before = run.cycle;
    let switch_to = |run: &mut Run, stack: u32| {
        run.cycle += 10;
        let mut registers = [0; 16];
        registers[13] = stack;
        let context = Context {
            cycle: run.cycle,
            pc: OTHER + 0x80,
            mode: 0x13,
            ..Context::default()
        };
        run.calls.fetched(&context, Width::Word, 0, &registers);
        run.cycle
    };
    let away = switch_to(&mut run, SP + 0x1_0000);
    assert_eq!(
        run.between(&distinctions, (away + 1, 0), None).suspended_in,
        [FLUSH]
    );
    let back = switch_to(&mut run, SP - 4);
    for (cycle, is) in [
        (before, false),
        (away, true),
        (back - 1, true),
        (back, false),
    ] {
        let found = run.between(&distinctions, (cycle, node), None).suspended_in;
        assert_eq!(found == [FLUSH], is, "{cycle}");
    }
}

/// Before the write, a second task has entered the writer's system call. The second task flushes only its own data.
#[test]
fn a_flush_by_another_task_is_not_the_writers() {
    let distinctions = Distinctions {
        callers: function(SYSTEM_CALL),
        then_called: function(FLUSH),
        ..Distinctions::default()
    };
    let mut run = Run::new(&distinctions); // the first task enters the system call
    let other = SP + 0x1_0000;
    run.on(OTHER, bl(OTHER, SYSTEM_CALL), other, 0);
    run.on(SYSTEM_CALL, 0, other, 0); // the second task enters it too
    run.on(SYSTEM_CALL + 8, 0, SP, 0);
    let written = run.called(SYSTEM_CALL, COPY); // the first task writes and never flushes
    run.on(SYSTEM_CALL, bl(SYSTEM_CALL, FLUSH), other, 0);
    run.on(FLUSH, 0, other, 0); // the second task flushes
    let then = run.between(&distinctions, written, None).then_called;
    assert_eq!(then, [0; 0], "the writer's task called no flush");
}

/// Another process, with another PID and table base, calls the function for its own page at an equal address.
#[test]
fn a_call_of_another_process_is_for_another_page() {
    let distinctions = Distinctions {
        called_since_fill: given(FLUSH, None),
        ..Distinctions::default()
    };
    let mut run = Run::new(&distinctions);
    let filled = run.cycle;
    let written = run.called(SYSTEM_CALL, COPY);
    // The data is at 0x02005004, in FCSE slot 1, so its process passes 0x5004. The caller has another table base.
    run.argument = 0x5000;
    let other = SP + 0x1_0000;
    run.on(SYSTEM_CALL, bl(SYSTEM_CALL, FLUSH), other, 0x8000);
    run.on(FLUSH, 0, other, 0x8000);
    let found = run
        .between(&distinctions, written, Some(filled))
        .called_since_fill;
    assert_eq!(found, [], "the call was for another process' page");
}

/// No flush follows the write. Later, more calls come than the log keeps, so the log loses the calls just after the
/// write.
#[test]
fn a_call_that_is_no_longer_kept_was_not_called_next() {
    let distinctions = Distinctions {
        callers: function(SYSTEM_CALL),
        then_called: function(FLUSH),
        ..Distinctions::default()
    };
    let mut run = Run::new(&distinctions);
    let written = run.called(SYSTEM_CALL, COPY);
    let again = |run: &mut Run| {
        run.at(OTHER + 4, 0);
        run.call(OTHER, SYSTEM_CALL);
        run.called(SYSTEM_CALL, FLUSH);
    };
    again(&mut run);
    let then = run.between(&distinctions, written, None).then_called;
    assert_eq!(
        then, [0; 0],
        "the system call was repeated before the flush"
    );
    for _ in 0..KEPT {
        again(&mut run);
    }
    run.called(SYSTEM_CALL, FLUSH);
    let then = run.between(&distinctions, written, None).then_called;
    assert_eq!(then, [0; 0], "the calls after the write are unknown");
}

#[test]
fn a_function_may_have_a_condition_on_the_bits_of_an_argument() {
    for (bits, is) in [(6, true), (4, true), (3, false)] {
        let distinctions = Distinctions {
            called_since_fill: given(FLUSH, Some(4)),
            ..Distinctions::default()
        };
        let mut run = Run::new(&distinctions);
        let filled = run.cycle;
        (run.argument, run.bits) = (0x0200_5000, bits);
        let written = run.called(SYSTEM_CALL, FLUSH);
        let found = run.between(&distinctions, written, Some(filled));
        assert_eq!(found.called_since_fill.len(), usize::from(is), "{bits}");
        assert!(found.is_whole_since_fill);
    }
}
