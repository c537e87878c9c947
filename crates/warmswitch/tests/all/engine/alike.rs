// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux and its programs in lockstep on the boards, with the interpreter and the translator.
//!
//! `LOCKSTEP_WHOLE_SUITE=1` runs all programs of `mm_suite`, which take an hour at small steps.

use base::boards;
use board::Machine;
use results::runs::markers::{self, Typed};
use session::boot::{KernelFiles, Recipe};
use session::peer::{Plan, Question, rate};
use supply::kernel::{self, Request};

use super::lockstep::Lockstep;

/// Cycle at which each board continues from the state of the other one: in the middle of the boot.
const EXCHANGE: u64 = 200_000_000;
/// Context switches of processes.
const RINGS: &str = "lat_ctx -P -s 4 -n 400 -r 1 -l 100 4";

/// Programs about memory management: fork, code made at run time, shared memory.
fn suite() -> &'static str {
    match std::env::var_os("LOCKSTEP_WHOLE_SUITE") {
        Some(_) => "mm_suite",
        None => "mm_suite --only fork_cow --only jit_fork --only shared_memory",
    }
}

/// Two boards with a kernel, before the first instruction.
fn powered(board: &str, kernel: &str) -> Lockstep {
    let (board, _) = boards::load(board).expect("the board");
    let built = kernel::build(&Request {
        name: kernel.into(),
        ..Request::default()
    });
    let recipe = Recipe {
        files: Some(KernelFiles::from(&built.expect("the kernel"))),
        ..Recipe::default()
    };
    let boot = recipe.prepare(&board).expect("a root file system").boot();
    let machine = Machine::new(board.clone(), &boot).expect("a machine");
    Lockstep::new(board, machine)
}

/// Boots to the prompt.
fn booted(board: &str, kernel: &str) -> Lockstep {
    let mut boards = powered(board, kernel);
    let ready = boards.until(0, markers::READY);
    boards.until(ready, "# ");
    boards
}

/// Runs commands after each other. Each must succeed.
fn run(boards: &mut Lockstep, commands: &[&str]) {
    for command in commands {
        let typed = Typed::own(command);
        let start = boards.type_line(&typed.line);
        let end = boards.until(start, &typed.end);
        boards.until(end, "\n");
        let (output, status) = typed.ended(boards.console(start)).expect("a status");
        assert_eq!(status, 0, "{command}: {}", String::from_utf8_lossy(&output));
    }
}

fn check_that_lines_were_translated() {
    assert!(::engine::statistics().lines > 1000);
}

#[test]
#[ignore = "needs the kernel"]
fn linux_boots_in_lockstep_and_continues_from_the_other_engines_state() {
    let mut boards = powered("sam9263", "plain");
    boards.until_cycle(EXCHANGE);
    boards.exchange();
    let ready = boards.until(0, markers::READY);
    boards.until(ready, "# ");
    run(&mut boards, &[RINGS]);
    boards.end("boot and rings of sam9263, exchanged");
    check_that_lines_were_translated();
}

#[test]
#[ignore = "needs the kernel"]
fn programs_of_the_sam9263_run_in_lockstep() {
    let mut boards = booted("sam9263", "fcse-guaranteed");
    run(&mut boards, &[suite(), RINGS]);
    boards.end("boot, mm_suite and rings of sam9263");
    check_that_lines_were_translated();
}

#[test]
#[ignore = "needs the kernel"]
fn programs_of_the_at91rm9200_run_in_lockstep() {
    let mut boards = booted("at91rm9200", "fcse-multi");
    run(&mut boards, &[suite(), RINGS]);
    boards.end("boot, mm_suite and rings of at91rm9200");
    check_that_lines_were_translated();
}

#[test]
#[ignore = "needs the kernel"]
fn programs_of_the_ixp425_run_in_lockstep() {
    let mut boards = booted("ixp425", "fcse-multi");
    run(&mut boards, &[suite(), RINGS]);
    boards.end("boot, mm_suite and rings of ixp425");
    check_that_lines_were_translated();
}

/// The guest and the requests are those of the experiment packet_reply.
#[test]
#[ignore = "needs the kernel"]
fn replies_to_packets_run_in_lockstep() {
    let mut boards = booted("sam9263", "fcse-guaranteed");
    let plan = Plan {
        interval_ns: 1_000_000,
        jitter_ns: 300_000,
        seed: 1,
        duration_ns: 2_000_000_000,
        question: Question::Command,
        payload: 64,
        flood: false,
    };
    boards.connect(rate(100).expect("100 Mbit/s"), plan);
    let from = boards.console(0).len();
    run(
        &mut boards,
        &["network-up beside-load udp_reply 3 10.0.0.1 </dev/null"],
    );
    let output = String::from_utf8_lossy(boards.console(from)).into_owned();
    let replies = output.split("\"replies\":").nth(1).expect("a count");
    let digits = replies.find(|c: char| !c.is_ascii_digit()).expect("an end");
    let replies: u32 = replies[..digits].parse().expect("a number");
    assert!(replies > 1000, "{output}");
    boards.end("boot and replies to packets of sam9263");
    check_that_lines_were_translated();
}
