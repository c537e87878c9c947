// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the engines: the translator gives the same bytes and cycles as the interpreter, with Linux on the boards.

use base::boards;
use board::{BoardSpec, Machine, Stop};
use session::boot::{KernelFiles, Recipe};
use supply::kernel::{self, Request};

use crate::commands::warmswitch;
use crate::fcse::output_text;

/// Cycles between two comparisons of the whole state. A prime number, so that the comparisons do not fall on the same
/// places of a loop.
const STEP: u64 = 20_000_003;
/// Comparisons during the boot.
const STEPS: u64 = 40;

/// A machine with a kernel, before its first instruction.
fn powered(board: &str, kernel: &str) -> (BoardSpec, Machine) {
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
    (board, machine)
}

fn state(machine: &Machine) -> blake3::Hash {
    blake3::hash(&machine.snapshot().expect("the machine runs"))
}

fn translate(machine: &mut Machine) {
    let core = machine.spec().core.core;
    let translator = ::engine::translator(core).expect("a translator");
    assert!(machine.cpu_mut().set_engine(Some(translator)));
}

/// Boots Linux with both engines, and compares the machines on the way.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn boots_in_lockstep(board: &str, kernel: &str) {
    let (_, mut translated) = powered(board, kernel);
    let (board, mut interpreted) = powered(board, kernel);
    translate(&mut translated);
    for step in 1..=STEPS {
        for machine in [&mut interpreted, &mut translated] {
            assert_eq!(machine.run_until(step * STEP), Stop::Limit);
        }
        assert_eq!(state(&interpreted), state(&translated), "step {step}");
        if step == STEPS / 2 {
            // From now on, each machine continues from the state of the other one, and has a clone's code.
            let saved = translated.snapshot().expect("the machine runs");
            interpreted = Machine::restored(board.clone(), &saved).expect("the same board");
            translated = translated.clone();
        }
    }
    assert!(::engine::statistics().lines > 1000);
}

#[test]
#[ignore = "needs the kernel"]
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
fn linux_boots_in_lockstep_and_continues_from_the_other_engines_state() {
    boots_in_lockstep("sam9263", "plain");
}

#[test]
#[ignore = "needs the kernel"]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn linux_on_xscale_boots_in_lockstep() {
    boots_in_lockstep("ixp425", "fcse-multi");
}

#[test]
#[ignore = "needs the kernel"]
fn programs_print_and_count_the_same_with_both_engines() {
    let suite = "mm_suite --only fork_cow --only jit_fork --only shared_memory";
    let rings = "lat_ctx -P -s 4 -n 100 -r 1 -l 100 4";
    // Hundreds of processes of all kinds.
    let load = "beside-load sleep 1";
    for (board, kernel, more) in [
        ("sam9263", "fcse-guaranteed", load),
        ("at91rm9200", "fcse-multi", "true"),
        ("ixp425", "fcse-multi", "true"),
    ] {
        let command = format!("{suite}; {rings}; {more}");
        let of = |engine| {
            let options = [
                "guest", "--engine", engine, "--board", board, "--kernel", kernel,
            ];
            let output = warmswitch(&[&options[..], &["--counters", "--", &command]].concat());
            assert!(output.status.success(), "{board}: {}", output_text(&output));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let (one, other) = (of("interpreter"), of("translator"));
        assert!(one.contains("instructions"), "{one}");
        assert_eq!(one, other, "{board}");
    }
}

#[test]
fn an_unknown_engine_is_refused() {
    let output = warmswitch(&["guest", "--engine", "translater", "--", "true"]);
    let text = output_text(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("a similar value exists: 'translator'"),
        "{text}"
    );
}
