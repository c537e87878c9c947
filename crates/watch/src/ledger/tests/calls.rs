// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls are followed through returns, jumps, exceptions, interrupts and changes of task. The last ones are of a reader who
//! wanted to break that, and failed.

use super::ledger;
use crate::ledger::calls::{Arrival, Calls};
use crate::ledger::{Function, Functions, Owner, TaskId};
use arm::Cause;

fn inside(function: u32) -> u32 {
    entry(function) + 0x40
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

    /// User land has called 1; and the stack pointer with which it did.
    fn in_system_call() -> (Followed, u32) {
        let (mut f, stack) = (Followed::new(), 0xc780_1f00);
        f.at(0x8000, 0xbe00_0000, 0);
        f.at(entry(1), stack, 0x8004);
        (f, stack)
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
    let stack = 0xc780_1f00;
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
    let stack = 0xc780_1f00;
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
    for (n, place, task, to) in [(1, 3, 1, vec![7]), (2, 0, 0, vec![1, 2, 7])] {
        f.calls.switch((1 - task, task), false, stack - 48);
        f.calls.take_place((place, owner(task, None)));
        f.calls.stay(f.functions.of(entry(7)), stack - 48);
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

#[test]
fn the_fetch_of_a_return_that_an_interrupt_comes_before_is_no_call() {
    let (mut f, stack) = Followed::in_system_call();
    f.at(entry(2), stack - 16, inside(1));
    // 2 returns to 1: its fetch misses, and an interrupt comes first.
    f.calls.go_ahead(f.functions.of(inside(1)));
    f.calls.spent(Cause::InstructionMiss, 30);
    f.calls.interrupt();
    let all = f.calls.all();
    let last = all
        .iter()
        .find(|c| c.cycles()[Cause::InstructionMiss as usize] == 30)
        .unwrap();
    let callers = std::iter::successors(Some(last), |c| c.caller.map(|n| &all[n as usize]));
    let got: Vec<_> = callers.map(|c| c.owner.function.number()).collect();
    assert_eq!(got, vec![Some(1), None]);
}

#[test]
fn user_land_is_not_called_by_the_kernel_when_its_fetch_was_for_nothing() {
    let mut f = Followed::new();
    f.at(0x8000, 0xbe00_0000, 0);
    f.at(entry(1), 0xc780_1f00, 0x8004);
    f.calls.go_ahead(Function::USER);
    f.calls.spent(Cause::InstructionMiss, 30);
    f.calls.interrupt();
    let last = f
        .calls
        .all()
        .iter()
        .find(|c| c.cycles()[Cause::InstructionMiss as usize] == 30)
        .unwrap();
    assert_eq!(last.caller, None);
}

#[test]
fn a_return_to_a_first_instruction_is_a_return() {
    let (mut f, stack) = Followed::in_system_call();
    // 1 has set lr to the entry of 3 (ret_fast_syscall) and jumps to 2, which jumps to 4.
    f.at(entry(2), stack, entry(3));
    f.at(entry(4), stack, entry(3));
    // It comes to 3's entry with its own link register.
    assert_eq!(
        f.at(entry(3), stack, 0xdead_0000),
        [vec![None], chain([1, 3])].concat()
    );
}

#[test]
fn a_return_below_a_call_that_began_nobody_knows_where_is_found() {
    let (mut f, stack) = Followed::in_system_call();
    // 1 calls a local label in 2 (v5tj_early_abort), which jumps to 3, which returns to 1.
    f.at(inside(2), stack - 16, inside(1));
    f.at(entry(3), stack - 16, inside(1));
    assert_eq!(
        f.at(inside(1), stack - 16, inside(1)),
        [vec![None], chain([1])].concat()
    );
}

#[test]
fn a_new_task_is_not_called_by_what_switched_to_it() {
    let mut f = Followed::new();
    let stack = 0xc780_1f00;
    f.at(entry(1), stack, 0);
    f.at(entry(7), stack - 48, entry(1) + 0x40);
    f.calls.switch((0, 1), false, stack - 48);
    f.calls.take_place((1, owner(1, None)));
    f.calls.stay(f.functions.of(entry(7)), stack - 48);
    // 7 calls 8, still on the other stack; then the task goes on where it was, on its own one: in 3.
    f.at(entry(8), stack - 48, entry(7) + 0x40);
    f.at(entry(7) + 0x40, stack - 48, 0);
    assert_eq!(f.at(entry(3) + 0x40, 0xc790_1e00, 0), chain([3]));
}

#[test]
fn a_task_that_is_preempted_while_it_exits_is_the_same_task() {
    let mut l = ledger();
    l.hooks.switch_to = 0xc000_0000;
    let first = l.task_at(0x100);
    l.task = first;
    l.tasks[first as usize].ended = true;
    // It is preempted by another, and comes back.
    let other = l.task_at(0x200);
    l.task = other;
    assert_eq!(l.task_at(0x100), first);
}
