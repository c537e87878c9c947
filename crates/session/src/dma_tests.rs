// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of memory that a device writes. The test itself writes to memory and bypasses the caches, as a bus master
//! would.

use super::*;
use crate::boot::Recipe;
use base::boards;
use base::paths::root;
use supply::added::Added;
use supply::image::Programs;
use supply::toolchain::command;

const PAGE: u32 = 4096;

/// Runs `dma_peeked`, waits for the address that it prints, and writes to that page. Returns how many old words the
/// program saw before a switch, and how many after it.
fn peeked(kernel: &str) -> (u32, u32) {
    let dir = std::env::temp_dir().join(format!("warmswitch-{}-{kernel}-dma", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let program = dir.join("dma_peeked");
    let mut compile = command(&Programs::Armv5te.compiler().unwrap());
    compile.args(["-O2", "-static", "-o"]).arg(&program);
    compile.arg(root().join("linux/6.12/proofs/dma_peeked.c"));
    assert!(compile.status().unwrap().success());
    let mut recipe = Recipe::of(kernel);
    recipe.added.push(Added::program(program));

    let board = boards::load("sam9263").unwrap().0;
    let boot = recipe.prepare(&board).unwrap().boot();
    let mut session = Session::boot(&board, 1, &boot).unwrap();
    let from = session.machine.console_log().len();
    session.machine.send(b"dma_peeked\n");
    let page = rest_of_line_after(&mut session, from, "looking at 0x");
    session
        .machine
        .run_for(std::time::Duration::from_millis(50));
    let bus = &mut session.machine.cpu_mut().bus;
    let offset = u32::from_str_radix(&page, 16).unwrap() - bus.ram_base();
    assert!((0..PAGE).all(|at| bus.ram_mut().poke(offset + at, 2)));
    let counts = ["old while it looked: ", "old after a switch: "].map(|text| {
        let count = rest_of_line_after(&mut session, from, text);
        count.trim_end().parse().unwrap()
    });
    std::fs::remove_dir_all(dir).unwrap();
    counts.into()
}

/// Waits for `text`, and returns the rest of its line.
fn rest_of_line_after(session: &mut Session, from: usize, text: &str) -> String {
    let start = session.console(Attached::nothing()).until(from, text, 10.0);
    let start = start.map_err(|ended| session.wait_error(ended)).unwrap();
    let end = session
        .console(Attached::nothing())
        .until(start, "\n", 10.0);
    end.map_err(|ended| session.wait_error(ended)).unwrap();
    let log = String::from_utf8_lossy(&session.machine.console_log()[start..]).into_owned();
    log.lines().next().unwrap_or_default().to_string()
}

#[test]
#[ignore = "needs kernels"]
fn what_a_device_wrote_to_a_pinned_page_is_seen_after_the_next_switch() {
    for kernel in [
        "product",
        "product-fcse-guaranteed",
        "product-fcse-best-effort",
    ] {
        let (before, after) = peeked(kernel);
        assert!(before > 0, "{kernel}");
        assert_eq!(after, 0, "{kernel}");
    }
}
