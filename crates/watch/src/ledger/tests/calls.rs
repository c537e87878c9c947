// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that calls are followed through returns, jumps, exceptions, interrupts and task switches. The last tests come
//! from an adversarial review.

use super::ledger;
use crate::ledger::calls::{Arrival, Calls};
use crate::ledger::{Function, Functions, Owner, TaskId};
use arm::Cause;

fn inside(function: u32) -> u32 {
    entry(function) + 0x40
}

/// Functions of 4 KB each. Function 0 is at 0xc0000000.
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

    /// Returns the state after user land has called function 1, and the stack pointer of that call.
    fn in_system_call() -> (Followed, u32) {
        let (mut f, stack) = (Followed::new(), 0xc780_1f00);
        f.at(0x8000, 0xbe00_0000, 0);
        f.at(entry(1), stack, 0x8004);
        (f, stack)
    }

    /// Executes at an address for one cycle, and returns the chain of calls.
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

/// Returns the chain of calls with these function numbers, outermost first.
fn chain<const N: usize>(numbers: [usize; N]) -> Vec<Option<usize>> {
    numbers.map(Some).to_vec()
}

#[test]
fn calls_returns_and_jumps_at_the_end_are_followed() {
    let mut f = Followed::new();
    let stack = 0xc780_1f00;
    f.at(0x8000, 0xbe00_0000, 0);
    // 1 calls 2, and 2 calls 3. 3 ends with a jump to 4, and 4 returns to 2.
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
    // 2 calls 3 again, and 3 returns without a jump. Both calls of 3 by 2 belong to one `Call`.
    let at = f.at(entry(3), stack - 32, inside(2) + 8);
    assert_eq!(at, from_user(chain([1, 2, 3])));
    assert_eq!(f.calls.all()[f.calls.now() as usize].count, 2);
    assert_eq!(f.at(inside(2) + 8, stack - 32, 0), from_user(chain([1, 2])));
    assert_eq!(f.at(inside(1), stack - 16, 0), from_user(chain([1])));
    // An exception interrupts 1. Its handler is 5, which returns to the interrupted instruction.
    assert_eq!(
        f.at(entry(5), 0x40, inside(1) + 8),
        from_user(chain([1, 5]))
    );
    assert_eq!(f.at(inside(1) + 8, stack - 16, 0), from_user(chain([1])));
    // The next system call begins in user land.
    f.at(0x8008, 0xbe00_0000, 0);
    assert_eq!(f.at(entry(6), stack, 0x800c), from_user(chain([6])));
}

#[test]
fn each_task_and_interrupt_has_its_own_calls_and_continues_in_them() {
    let mut f = Followed::new();
    let stack = 0xc780_1f00;
    f.at(entry(1), stack, 0);
    assert_eq!(f.at(entry(2), stack - 16, inside(1)), chain([1, 2]));
    // An interrupt in 2. Its handler is 3.
    f.calls.interrupt();
    f.calls.take_place((1, owner(0, Some(None))));
    assert_eq!(f.at(entry(3), stack - 32, inside(9)), chain([3]));
    // The interrupt line becomes known.
    f.calls.take_place((2, owner(0, Some(Some(4)))));
    f.calls.stay(f.functions.of(entry(3)), stack - 32);
    assert_eq!(f.chain(), chain([3]));
    let owner_now = |f: &Followed| f.calls.all()[f.calls.now() as usize].owner;
    assert_eq!(owner_now(&f).interrupt, Some(Some(4)));
    f.calls.interrupt_ended();
    f.calls.take_place((0, owner(0, None)));
    assert_eq!(f.at(inside(2), stack - 16, 0), chain([1, 2]));
    // 7 switches to a task that has not run before. The new task switches back.
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
fn the_fetch_of_a_function_is_charged_to_that_function() {
    let mut f = Followed::new();
    let stack = 0xc780_1f00;
    f.at(entry(1), stack, 0);
    let own = |f: &Followed, function: u32| -> u64 {
        let function = f.functions.of(entry(function));
        let all = f.calls.all().iter();
        let selected = all.filter(|call| call.owner.function == function);
        selected.map(|call| call.cycles().iter().sum::<u64>()).sum()
    };
    // The fetch of the first instruction of 2 takes 20 cycles. Then it executes.
    f.calls.go_ahead(f.functions.of(entry(2)));
    f.calls.spent(Cause::InstructionMiss, 20);
    f.at(entry(2), stack, entry(1) + 4);
    assert_eq!((own(&f, 1), own(&f, 2)), (1, 21));
    // The first instruction of 3 is fetched, but an interrupt comes before it executes.
    f.calls.go_ahead(f.functions.of(entry(3)));
    f.calls.spent(Cause::InstructionMiss, 30);
    f.calls.interrupt();
    f.calls.take_place((1, owner(0, Some(None))));
    f.at(entry(4), stack - 64, 0);
    assert_eq!((own(&f, 2), own(&f, 3), own(&f, 4)), (21, 30, 1));
}

#[test]
fn calls_that_never_return_do_not_grow_a_stack_without_bound() {
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
fn an_interrupted_fetch_of_a_return_is_no_call() {
    let (mut f, stack) = Followed::in_system_call();
    f.at(entry(2), stack - 16, inside(1));
    // 2 returns to 1. The fetch misses, and an interrupt comes before the instruction executes.
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
fn an_interrupted_fetch_of_user_land_is_no_call_by_the_kernel() {
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
    // 1 sets lr to the entry of 3 (ret_fast_syscall) and jumps to 2, which jumps to 4.
    f.at(entry(2), stack, entry(3));
    f.at(entry(4), stack, entry(3));
    // 4 returns to the entry of 3, with another value in lr.
    assert_eq!(
        f.at(entry(3), stack, 0xdead_0000),
        [vec![None], chain([1, 3])].concat()
    );
}

#[test]
fn a_return_below_a_call_with_an_unknown_start_is_found() {
    let (mut f, stack) = Followed::in_system_call();
    // 1 calls a local label inside 2 (v5tj_early_abort). 2 jumps to 3, and 3 returns to 1.
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
    // 7 calls 8, still on the stack of the previous task. Then the new task continues in 3, on its own stack.
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
    // Another task preempts the exiting task. The exiting task continues later.
    let other = l.task_at(0x200);
    l.task = other;
    assert_eq!(l.task_at(0x100), first);
}
