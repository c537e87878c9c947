// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory for code: no page is writable and executable at once, and full memory is replaced.
//!
//! These tests have a process of their own, because all machines of a process share the memory.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

// The programs are for other tests.
#[allow(dead_code)]
mod program;

use arm::engine::{Set, Translation};
use arm::model::ARM926EJS;
use arm::{Config, Cpu};
use program::{COST, Ram};

fn core() -> Cpu<Ram> {
    Cpu::new(
        Config::new(&ARM926EJS, 4096, 4096, COST).unwrap(),
        Ram::new(1, false),
    )
}

/// Words of line `n`: additions of different constants.
fn words(n: u32) -> [u32; 8] {
    std::array::from_fn(|at| 0xe280_0000 + (n >> (2 * at) & 3) + 4 * at as u32)
}

#[test]
fn no_page_is_writable_and_executable() {
    let mut translator = engine::translator_for(&ARM926EJS, 1).unwrap();
    let code = translator.translate(&core().line_of(words(0), Set::A32));
    assert!(matches!(code, Translation::Code(..)), "{code:?}");
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let of_code: Vec<_> = maps
        .lines()
        .filter(|line| line.contains("warmswitch code"))
        .collect();
    assert!(of_code.len() >= 2, "{maps}");
    let rights: Vec<_> = of_code
        .iter()
        .map(|line| &line[line.find(' ').unwrap() + 1..][..3])
        .collect();
    assert!(
        rights.contains(&"rw-") && rights.contains(&"r-x"),
        "{rights:?}"
    );
    assert!(!maps.contains(" rwx"), "{maps}");
}

#[test]
fn full_memory_is_replaced_and_other_machines_follow() {
    let core = core();
    let mut one = engine::translator_for(&ARM926EJS, 1).unwrap();
    let mut other = engine::translator_for(&ARM926EJS, 1).unwrap();
    let known = one.translate(&core.line_of(words(0), Set::A32));
    assert_eq!(other.translate(&core.line_of(words(0), Set::A32)), known);
    let dropped = (1..60_000)
        .find(|n| one.translate(&core.line_of(words(*n), Set::A32)) == Translation::Dropped);
    assert!(dropped.is_some_and(|n| n > 10_000), "{dropped:?}");
    // Both begin anew. The other machine notices when it asks, and shares the new code then.
    let again = one.translate(&core.line_of(words(7), Set::A32));
    assert!(matches!(again, Translation::Code(..)));
    assert_eq!(
        other.translate(&core.line_of(words(7), Set::A32)),
        Translation::Dropped
    );
    assert_eq!(other.translate(&core.line_of(words(7), Set::A32)), again);
}
