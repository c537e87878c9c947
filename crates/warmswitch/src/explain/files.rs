// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renders an account for other programs: folded stacks for flame graphs, and callgrind's format.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use arm::Cause;
use watch::ledger::{CallId, Cycles, Owner};

use crate::explain::account::{Account, add, by_cause, cause_name, total};

/// Task or interrupt, and function.
type Place = (String, String);

fn place(account: &Account<'_>, owner: &Owner) -> Place {
    let function = frame(account.function(owner.function));
    (frame(&account.place(owner)), function)
}

/// Makes a name safe as a frame of a stack. A semicolon would begin another frame, and a line break would begin another
/// stack.
fn frame(name: &str) -> String {
    let parts = |c: char| matches!(c, ';' | '\n' | '\r');
    name.replace(parts, "_")
}

/// Renders one line per task or interrupt, chain of calls, and cause: `TASK;CALLER;...;FUNCTION;CAUSE CYCLES`.
pub fn folded(account: &Account<'_>) -> String {
    let mut stacks: BTreeMap<String, Cycles> = BTreeMap::new();
    for (number, call) in account.calls() {
        let task = account.place(&call.owner);
        let names = [&[task.as_str()], &account.chain(number)[..]].concat();
        let names: Vec<String> = names.into_iter().map(frame).collect();
        add(stacks.entry(names.join(";")).or_default(), &call.cycles());
    }
    let mut text = String::new();
    for (stack, cycles) in stacks {
        for (cause, cycles) in by_cause(&cycles).filter(|(_, cycles)| *cycles > 0) {
            let _ = writeln!(text, "{stack};{cause} {cycles}");
        }
    }
    text
}

/// Calls from one function to another, made by one task or interrupt.
#[derive(Default)]
struct Arc {
    count: u64,
    /// Cycles from call to return.
    cycles: Cycles,
}

/// Calls by caller and callee.
type Arcs = BTreeMap<Place, BTreeMap<String, Arc>>;

/// Sums the cycles of calls by caller and callee. If a chain contains a pair of functions more than once, only the
/// outermost call counts, because it includes the inner ones.
fn arcs(account: &Account<'_>) -> Arcs {
    let calls: Vec<_> = account.calls().collect();
    let mut whole: BTreeMap<CallId, Cycles> = BTreeMap::new();
    for (number, call) in calls.iter().rev() {
        let own = whole.entry(*number).or_default();
        add(own, &call.cycles());
        let own = *own;
        if let Some(caller) = call.caller {
            add(whole.entry(caller).or_default(), &own);
        }
    }
    let by_number: BTreeMap<CallId, _> = calls.iter().copied().collect();
    let pair = |number: CallId| {
        let call = by_number[&number];
        let caller = call.caller?;
        let functions = (by_number[&caller].owner.function, call.owner.function);
        Some((caller, functions))
    };
    let mut arcs = Arcs::new();
    for (number, call) in &calls {
        let Some((caller, functions)) = pair(*number) else {
            continue;
        };
        let mut outer = std::iter::successors(pair(caller), |(caller, _)| pair(*caller));
        let inner = outer.any(|(_, others)| others == functions);
        let from = place(account, &by_number[&caller].owner);
        let (_, to) = place(account, &call.owner);
        let arc = arcs.entry(from).or_default().entry(to).or_default();
        arc.count += call.count;
        if !inner {
            add(&mut arc.cycles, &whole[number]);
        }
    }
    arcs
}

/// Renders functions and calls in callgrind's format (Callgrind Format Specification, version 1). The first event is
/// the sum of all cycles. The other events are the cycles of each cause. The task or interrupt takes the place of the
/// source file, because readers of the format distinguish functions by file.
pub fn callgrind(account: &Account<'_>, command: &str) -> String {
    let names = Cause::ALL.map(|cause| format!("{cause:?}")).join(" ");
    let list = |cycles: &Cycles| {
        let each: Vec<String> = cycles.iter().map(u64::to_string).collect();
        format!("{} {}", total(cycles), each.join(" "))
    };
    let mut text = format!(
        "# callgrind format\nversion: 1\ncreator: warmswitch {}\ncmd: {}\npart: 1\npositions: line\n",
        env!("CARGO_PKG_VERSION"),
        frame(command)
    );
    let _ = writeln!(text, "event: Cycles : all cycles");
    for cause in Cause::ALL {
        let _ = writeln!(text, "event: {cause:?} : {}", cause_name(cause));
    }
    let causes = account.causes();
    let _ = writeln!(text, "events: Cycles {names}\nsummary: {}", list(&causes));
    let arcs = arcs(account);
    for (from, cycles) in account.sums(|owner| place(account, owner)) {
        let (task, function) = &from;
        let _ = writeln!(text, "\nfl={task}\nfn={function}\n0 {}", list(&cycles));
        for (called, arc) in arcs.get(&from).into_iter().flatten() {
            // A call that began before the ledger started has a count of 0.
            let count = arc.count.max(1);
            let _ = writeln!(text, "cfl={task}\ncfn={called}\ncalls={count} 0");
            let _ = writeln!(text, "0 {}", list(&arc.cycles));
        }
    }
    let _ = writeln!(text, "\ntotals: {}", list(&causes));
    text
}
