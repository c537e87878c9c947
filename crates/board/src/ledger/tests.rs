// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ledger's sums are the clock's, and nothing changes when it looks on.

mod misses;

use super::calls::Arrival;
use super::*;
use crate::Machine;
use crate::machine::snapshot_tests::{STORE, cached, cached_with};
use std::time::Duration;

/// A ledger that knows of no function.
fn ledger() -> Ledger {
    Ledger::new(Arc::default(), Hooks::default(), 0)
}

fn sum(ledger: &Ledger) -> Cycles {
    let mut sum = [0; Cause::COUNT];
    for cell in ledger.cells() {
        for (sum, cycles) in sum.iter_mut().zip(cell.cycles()) {
            *sum += cycles;
        }
    }
    sum
}

#[test]
fn charges_come_to_the_clock_and_change_nothing_on_every_board() {
    for board in crate::spec::board_names() {
        let mut plain = cached(board, STORE);
        plain.run_for(Duration::from_micros(700));
        let begun = plain.now();
        let mut watched = plain.clone().observed_by(ledger());
        for step in [1, 3, 50, 10_007, 400_000] {
            let until = plain.now() + step;
            assert_eq!(plain.run_until(until), watched.run_until(until), "{board}");
            assert_eq!(plain.now(), watched.now(), "{board}");
            let total: u64 = watched.observer().total().iter().sum();
            assert_eq!(total, plain.now() - begun, "{board}");
            assert_eq!(sum(watched.observer()), watched.observer().total());
        }
        assert_eq!(plain.counters(), watched.counters(), "{board}");
        assert_eq!(plain.memory_hash(), watched.memory_hash(), "{board}");
        assert_eq!(plain.console_log(), watched.console_log(), "{board}");
    }
}

#[test]
fn every_miss_but_a_first_one_was_somebodys_doing() {
    let plain = cached("sam9263", STORE);
    let mut watched = plain.observed_by(ledger());
    watched.run_for(Duration::from_millis(2));
    // Once more over the same lines, which later ones have replaced.
    watched.cpu_mut().set_register(6, 0);
    watched.run_for(Duration::from_millis(2));
    let fills = watched.counters().dcache_fills;
    let missed: Vec<_> = watched.observer().missed().collect();
    let data = missed.iter().filter(|(m, _)| m.kind == Kind::Data);
    let count = |first: bool| -> u64 {
        let of = data.clone().filter(|(m, _)| (m.by == By::First) == first);
        of.map(|(_, missed)| missed.count).sum()
    };
    // The newest may not be settled yet.
    assert!(fills - count(true) - count(false) <= 1);
    assert!(count(true) > 100 && count(false) > 100, "{missed:?}");
    let cycles: u64 = data.clone().map(|(_, missed)| missed.cycles).sum();
    let counted = watched.counters().dcache_fill_cycles;
    assert!(cycles.abs_diff(counted) < 200, "{cycles} {counted}");
    let lines = watched.observer().missed_by_line();
    let of_lines = lines.filter(|(place, _)| place.kind == Kind::Data);
    let by_line: u64 = of_lines.map(|(_, missed)| missed.count).sum();
    assert_eq!(by_line, count(true) + count(false));
}

/// Misses of stores in a loop, and how many stores and cycles the core's counters have in the write
/// buffer.
fn stores(mut plain: Machine) -> (Vec<(Miss, Missed)>, u64, u64) {
    plain.run_for(Duration::from_micros(10));
    let before = *plain.counters();
    let mut watched = plain.observed_by(ledger());
    watched.run_for(Duration::from_millis(2));
    watched.cpu_mut().set_register(6, 0);
    watched.run_for(Duration::from_millis(2));
    let after = watched.counters();
    let missed = watched.observer().missed();
    (
        missed.filter(|(m, _)| m.kind == Kind::Store).collect(),
        after.buffered_stores - before.buffered_stores,
        after.write_wait_cycles - before.write_wait_cycles,
    )
}

#[test]
fn a_store_whose_line_is_not_there_is_a_miss_by_somebodys_doing() {
    // str r8, [r5, r7, lsl #1]
    let (missed, buffered, _) = stores(cached("sam9263", 0xe785_8087));
    let count = |first: bool| -> u64 {
        let of = missed.iter().filter(|(m, _)| (m.by == By::First) == first);
        of.map(|(_, missed)| missed.count).sum()
    };
    // Those to devices are no misses.
    let of_devices = buffered - count(true) - count(false);
    assert!(of_devices < buffered / 50, "{missed:?} {buffered}");
    assert!(count(true) > 100 && count(false) > 100, "{missed:?}");
}

#[test]
fn a_store_that_misses_is_charged_what_it_waits_for_the_write_buffer() {
    // stmdb r5, {r0-r14}, where nothing is ever loaded, three times: more than the bus takes away meanwhile.
    let (missed, _, waited) = stores(cached_with("sam9263", [0xe905_7fff; 3]));
    let cycles: u64 = missed.iter().map(|(_, missed)| missed.cycles).sum();
    assert!(cycles <= waited && waited > 10_000, "{cycles} {waited}");
    assert!(waited - cycles < waited / 20, "{cycles} {waited}");
}

#[test]
fn a_table_finds_what_was_put_in_however_much_that_is() {
    let mut table = table::Table::<u64>::new();
    // Keys that differ in their upper halves alone, too.
    let key = |n: u64| (n << 40) | (n % 3);
    for n in 0..10_000 {
        assert_eq!(*table.at(key(n)), 0);
        *table.at(key(n)) = n;
    }
    for n in (0..10_000).rev() {
        assert_eq!(*table.at(key(n)), n);
        *table.at(key(n)) += 1;
    }
    let mut all: Vec<(u64, u64)> = table.iter().map(|(key, n)| (key, *n)).collect();
    all.sort_by_key(|(_, n)| *n);
    assert!(all == Vec::from_iter((0..10_000).map(|n| (key(n), n + 1))));
}

#[test]
fn a_pair_of_owners_is_its_key() {
    let most = (1 << 30) - 1;
    for by in [
        By::First,
        By::Replaced(0),
        By::Replaced(most),
        By::Invalidated(7),
    ] {
        for kind in [
            Kind::Instruction,
            Kind::Data,
            Kind::Translation,
            Kind::Store,
        ] {
            for of in [0, 5, most] {
                let miss = Miss { kind, by, of };
                assert_eq!(Miss::of_key(miss.key()), miss);
            }
        }
    }
}

/// Functions of 4 KB each: the first one is number 0 at 0xc0000000.
struct Followed {
    calls: Calls,
    functions: Functions,
}

const KERNEL: u32 = 0xc000_0000;

fn entry(function: u32) -> u32 {
    KERNEL + 0x1000 * function
}

impl Followed {
    fn new() -> Followed {
        let functions = Functions::new((0..16).map(entry).collect(), KERNEL);
        let calls = Calls::new(owner(0, None));
        let mut followed = Followed { calls, functions };
        followed.calls.take_place((0, owner(0, None)));
        followed
    }

    /// Comes to an address, stays there for a cycle, and says by which calls.
    fn at(&mut self, pc: u32, stack: u32, link: u32) -> Vec<Option<usize>> {
        let user = pc < KERNEL;
        let (function, from, _) = self.functions.at(pc, user);
        self.calls.arrived(Arrival {
            function,
            first: pc == from,
            pc,
            stack,
            link,
        });
        self.calls.spent(Cause::Instruction, 1);
        self.chain()
    }

    fn chain(&self) -> Vec<Option<usize>> {
        let all = self.calls.all();
        let callers = std::iter::successors(Some(self.calls.now()), |n| all[*n as usize].caller);
        let mut chain = Vec::from_iter(callers.map(|n| all[n as usize].owner.function.number()));
        chain.reverse();
        chain
    }
}

fn owner(task: TaskId, interrupt: Option<Option<u32>>) -> Owner {
    Owner {
        task,
        interrupt,
        function: Function::OTHER,
        timed: false,
    }
}

/// Functions by number.
fn chain<const N: usize>(numbers: [usize; N]) -> Vec<Option<usize>> {
    numbers.map(Some).to_vec()
}

#[test]
fn calls_returns_and_jumps_at_the_end_are_followed() {
    let mut f = Followed::new();
    let (inside, stack) = (|n| entry(n) + 0x40, 0xc780_1f00);
    f.at(0x8000, 0xbe00_0000, 0);
    // 1 calls 2, which calls 3, which ends with a jump to 4, which returns to 2.
    let from_user = |functions: Vec<Option<usize>>| [vec![None], functions].concat();
    assert_eq!(f.at(entry(1), stack, 0x8004), from_user(chain([1])));
    assert_eq!(
        f.at(entry(2), stack - 16, inside(1)),
        from_user(chain([1, 2]))
    );
    assert_eq!(
        f.at(entry(3), stack - 32, inside(2)),
        from_user(chain([1, 2, 3]))
    );
    assert_eq!(
        f.at(entry(4), stack - 32, inside(2)),
        from_user(chain([1, 2, 3, 4]))
    );
    assert_eq!(f.at(inside(2), stack - 32, 0), from_user(chain([1, 2])));
    // Again, and 3 returns itself: the same call, twice.
    let at = f.at(entry(3), stack - 32, inside(2) + 8);
    assert_eq!(at, from_user(chain([1, 2, 3])));
    assert_eq!(f.calls.all()[f.calls.now() as usize].count, 2);
    assert_eq!(f.at(inside(2) + 8, stack - 32, 0), from_user(chain([1, 2])));
    assert_eq!(f.at(inside(1), stack - 16, 0), from_user(chain([1])));
    // An exception of 1, whose handler returns to the instruction; 5 stands for all of it.
    assert_eq!(
        f.at(entry(5), 0x40, inside(1) + 8),
        from_user(chain([1, 5]))
    );
    assert_eq!(f.at(inside(1) + 8, stack - 16, 0), from_user(chain([1])));
    // Another system call begins at user land.
    f.at(0x8008, 0xbe00_0000, 0);
    assert_eq!(f.at(entry(6), stack, 0x800c), from_user(chain([6])));
}

#[test]
fn each_task_and_interrupt_has_its_own_calls_and_goes_on_in_them() {
    let mut f = Followed::new();
    let (inside, stack) = (|n| entry(n) + 0x40, 0xc780_1f00);
    f.at(entry(1), stack, 0);
    assert_eq!(f.at(entry(2), stack - 16, inside(1)), chain([1, 2]));
    // An interrupt in 2, which calls 3 in it and goes on.
    f.calls.interrupt();
    f.calls.take_place((1, owner(0, Some(None))));
    assert_eq!(f.at(entry(3), stack - 32, inside(9)), chain([3]));
    // Its line is known only now.
    f.calls.take_place((2, owner(0, Some(Some(4)))));
    f.calls.stay(f.functions.of(entry(3)), stack - 32);
    assert_eq!(f.chain(), chain([3]));
    let owner_now = |f: &Followed| f.calls.all()[f.calls.now() as usize].owner;
    assert_eq!(owner_now(&f).interrupt, Some(Some(4)));
    f.calls.interrupt_ended();
    f.calls.take_place((0, owner(0, None)));
    assert_eq!(f.at(inside(2), stack - 16, 0), chain([1, 2]));
    // 7 changes the task to one that never ran, and that one back to the first.
    assert_eq!(f.at(entry(7), stack - 48, inside(2)), chain([1, 2, 7]));
    let other = 0xc790_1f00;
    for (n, place, task, to) in [(1, 3, 1, vec![7]), (2, 0, 0, vec![1, 2, 7])] {
        f.calls.switch((1 - task, task), false);
        f.calls.take_place((place, owner(task, None)));
        f.calls.stay(f.functions.of(entry(7)), other);
        assert_eq!(f.chain(), Vec::from_iter(to.into_iter().map(Some)), "{n}");
    }
    assert_eq!(f.at(inside(2), stack - 48, 0), chain([1, 2]));
}

#[test]
fn what_is_charged_on_the_way_to_a_function_is_that_functions() {
    let mut f = Followed::new();
    let stack = 0xc780_1f00;
    f.at(entry(1), stack, 0);
    let own = |f: &Followed, function: u32| -> u64 {
        let function = f.functions.of(entry(function));
        let all = f.calls.all().iter();
        let of = all.filter(|call| call.owner.function == function);
        of.map(|call| call.cycles().iter().sum::<u64>()).sum()
    };
    // Its first instruction is fetched, 20 cycles, and then it runs.
    f.calls.go_ahead(f.functions.of(entry(2)));
    f.calls.spent(Cause::InstructionMiss, 20);
    f.at(entry(2), stack, entry(1) + 4);
    assert_eq!((own(&f, 1), own(&f, 2)), (1, 21));
    // Another one's is fetched, and an interrupt comes first.
    f.calls.go_ahead(f.functions.of(entry(3)));
    f.calls.spent(Cause::InstructionMiss, 30);
    f.calls.interrupt();
    f.calls.take_place((1, owner(0, Some(None))));
    f.at(entry(4), stack - 64, 0);
    assert_eq!((own(&f, 2), own(&f, 3), own(&f, 4)), (21, 30, 1));
}

#[test]
fn what_never_returns_does_not_make_a_stack_without_end() {
    let mut f = Followed::new();
    for n in 0..10_000 {
        f.at(
            entry(1 + n % 2),
            0xc780_0000 - 64 * n,
            entry(2 - n % 2) + 0x40,
        );
        assert!(f.chain().len() <= 256);
    }
    assert!(f.calls.all().len() <= 1000);
}
