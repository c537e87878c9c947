// SPDX-License-Identifier: MIT OR Apache-2.0
//! An account as files that other programs show: folded stacks for flame graphs, and callgrind's format.

use std::fmt::Write as _;

use arm9::Cause;
use board::ledger::Owner;

use crate::explain::account::{Account, cause_name};

/// Task or interrupt, and function.
fn place(account: &Account<'_>, owner: &Owner) -> (String, String) {
    let function = account.function(owner.function).to_string();
    (account.place(owner), function)
}

/// A frame of a stack: a semicolon would begin another one, and a line's end another stack.
fn frame(name: &str) -> String {
    let parts = |c: char| matches!(c, ';' | '\n' | '\r');
    name.replace(parts, "_")
}

/// A line for each task or interrupt, function and cause: `TASK;FUNCTION;CAUSE CYCLES`.
pub fn folded(account: &Account<'_>) -> String {
    let mut text = String::new();
    for ((task, function), cycles) in account.sums(|owner| place(account, owner)) {
        for (cause, cycles) in Cause::ALL.into_iter().zip(cycles) {
            if cycles > 0 {
                let (task, function) = (frame(&task), frame(&function));
                let _ = writeln!(text, "{task};{function};{} {cycles}", cause_name(cause));
            }
        }
    }
    text
}

/// The profile of each function of each task or interrupt, which stands where callgrind has a file, as its readers tell
/// functions apart by that. Events are all cycles, and those of each cause (Callgrind Format Specification, version 1).
pub fn callgrind(account: &Account<'_>, command: &str) -> String {
    let names = Cause::ALL.map(|cause| format!("{cause:?}")).join(" ");
    let list = |cycles: &[u64]| {
        let each: Vec<String> = cycles.iter().map(u64::to_string).collect();
        format!("{} {}", cycles.iter().sum::<u64>(), each.join(" "))
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
    for ((task, function), cycles) in account.sums(|owner| place(account, owner)) {
        let (task, function) = (frame(&task), frame(&function));
        let _ = writeln!(text, "\nfl={task}\nfn={function}\n0 {}", list(&cycles));
    }
    let _ = writeln!(text, "\ntotals: {}", list(&causes));
    text
}
