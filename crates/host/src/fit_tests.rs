// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the fit.

use super::*;
use base::boards;

/// Computes figures from a board's numbers, with a rule that is not linear.
fn made_up(spec: &BoardSpec, most: u32) -> Vec<Memory> {
    let cycle = 1e9 / spec.cpu_hz as f64;
    let bus = 1e9 / spec.bus_hz as f64;
    let s = &spec.sdram;
    let words = s.clk_per_word_bus * 7.0;
    let hit = f64::from(s.first_word_row_hit_bus);
    let miss = f64::from(s.first_word_row_miss_bus);
    let of = |kb: u32| {
        let lost = 1.0 - (f64::from(spec.core.dcache.size) / 1024.0 / f64::from(kb)).min(1.0);
        let line = |clocks: f64| LINE_BYTES * 1e3 / (8.0 * cycle + lost * clocks * bus);
        Memory {
            kb,
            load_ns: 3.0 * cycle + lost * (miss + words * 0.4) * bus,
            read_mb_s: line(hit + words),
            write_mb_s: line((f64::from(s.write_setup_bus) + words).max(12.0)),
        }
    };
    let sizes = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
    sizes.into_iter().filter(|kb| *kb <= most).map(of).collect()
}

fn found(changed: &[&str]) -> Vec<String> {
    let board = |changes: &[Change]| {
        boards::load(&boards::changed("sam9263", changes))
            .unwrap()
            .0
    };
    let changes: Vec<Change> = changed.iter().map(|text| text.parse().unwrap()).collect();
    let there = made_up(&board(&changes), 256);
    let fit = fit(&board(&[]), &there, &mut |changes, most| {
        Ok(made_up(&board(changes), most))
    });
    let fit = fit.unwrap();
    assert!(fit.off_percent < 1.0, "{changed:?}: {}", fit.off_percent);
    assert!(!fit.table().rows.is_empty());
    fit.changes.iter().map(ToString::to_string).collect()
}

#[test]
fn numbers_that_were_changed_are_found_again_and_no_others() {
    assert!(found(&[]).is_empty());
    let slower = [
        "sdram.first_word_row_hit_bus=12",
        "sdram.first_word_row_miss_bus=16",
    ];
    assert_eq!(found(&slower), slower);
    let narrow = ["sdram.clk_per_word_bus=2", "sdram.write_setup_bus=9"];
    assert_eq!(found(&narrow), narrow);
    let other = [
        "clocks.cpu_hz=240000000",
        "clocks.bus_hz=120000000",
        "caches.dcache_bytes=32K",
    ];
    assert_eq!(found(&other), other);
}

#[test]
fn too_little_that_was_measured_is_an_error_that_names_it() {
    let (board, _) = boards::load("sam9263").unwrap();
    let all = made_up(&board, 256);
    let mut simulate =
        |_: &[Change], most: u32| Ok(made_up(&boards::load("sam9263").unwrap().0, most));
    let mut error =
        |there: &[Memory]| format!("{:#}", fit(&board, there, &mut simulate).err().unwrap());
    assert!(error(&[]).contains("2 KB"));
    assert!(
        error(&all[..9]).contains("24 KB, is not beyond"),
        "{}",
        error(&all[..9])
    );
}
