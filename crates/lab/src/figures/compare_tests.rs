// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims about the comparison, on made-up runs.

use super::*;
use crate::runs::point::Point;
use crate::runs::run::{Provenance, Window};
use crate::runs::sample::{LatCtx, Output};

const CPU_HZ: u64 = 180_000_000;

/// A run whose switches take `switch_us`, with counters that fit.
pub fn made_up_run(board: &str, mode: &str, size_kb: u32, tasks: u32, switch_us: f64) -> Run {
    let rounds = 100;
    let overhead_ns: Vec<f64> = (0..11).map(|i| 10_000.0 + f64::from(i)).collect();
    let switch_ns: Vec<f64> = (0..11)
        .map(|i| switch_us * 1e3 + f64::from(i * 10))
        .collect();
    let hop_ns: Vec<f64> = switch_ns.iter().map(|ns| ns + 10_005.0).collect();
    let window = |hop_us: f64, share: f64| {
        let hops = 11 * rounds * tasks;
        let per_hop = hop_us * CPU_HZ as f64 / 1e6;
        let cycles = (per_hop * f64::from(hops)) as u64;
        let part = |s: f64| (cycles as f64 * s * share) as u64;
        let counters = [
            ("cache_op_cycles", part(0.2)),
            ("icache_fill_cycles", part(0.15)),
            ("dcache_fill_cycles", part(0.15)),
            ("tlb_walk_cycles", part(0.1)),
            ("icache_fills", 60 * u64::from(hops)),
        ];
        let counters = counters
            .into_iter()
            .map(|(n, v)| (n.to_string(), v))
            .collect();
        Window {
            sections: 11,
            cycles,
            counters,
        }
    };
    let point = Point {
        board: board.into(),
        kernel: "6.12/plain".into(),
        mode: mode.into(),
        axes: [
            ("size_kb".to_string(), size_kb),
            ("tasks".to_string(), tasks),
        ]
        .into(),
        seed: 1,
    };
    Run {
        format: Run::FORMAT,
        hash: Provenance::default().run_hash(&point),
        experiment: "switch-cost".into(),
        cpu_hz: CPU_HZ,
        guest: Output::LatCtx(LatCtx {
            guest: "lat_ctx".into(),
            format: 1,
            mode: mode.into(),
            tasks,
            size_kb,
            rounds,
            overhead_ns,
            hop_ns,
            switch_ns,
        }),
        whole: Window::default(),
        ring: window(switch_us + 10.055, 1.0),
        overhead: window(10.005, 0.1),
        end_cycle: 1,
        provenance: Provenance::default(),
        point,
    }
}

/// A whole made-up campaign on both boards.
pub fn made_up_runs() -> Vec<Run> {
    let mut runs = Vec::new();
    for board in ["sam9263", "s3c24a0"] {
        for size_kb in [0, 16] {
            for tasks in [2, 4, 16] {
                let extra = f64::from(size_kb + tasks);
                runs.push(made_up_run(board, "process", size_kb, tasks, 100.0 + extra));
                runs.push(made_up_run(
                    board,
                    "thread",
                    size_kb,
                    tasks,
                    30.0 + 2.0 * extra,
                ));
            }
        }
    }
    runs
}

fn compared(runs: &[Run]) -> Comparison {
    compare(runs, &Envelope::load().unwrap())
}

#[test]
fn the_difference_is_process_less_thread_in_microseconds_and_cycles() {
    let c = compared(&made_up_runs());
    assert_eq!(c.rows.len(), 12);
    assert_eq!((c.rows[0].board.as_str(), c.rows[0].tasks), ("sam9263", 2));
    let row = &c.rows[0];
    assert!((row.difference_us.value - 68.0).abs() < 1e-6);
    assert!((row.difference_cycles - 68.0 * 180.0).abs() < 1e-3);
    assert!(row.difference_us.low > 60.0 && row.difference_us.high < 75.0);
    assert!(c.warnings.is_empty(), "{:?}", c.warnings);
}

#[test]
fn a_mode_without_its_partner_makes_no_row() {
    let runs = [made_up_run("sam9263", "process", 0, 2, 100.0)];
    assert!(compared(&runs).rows.is_empty());
}

#[test]
fn every_row_of_a_board_with_an_envelope_gets_a_sentence_that_names_a_counter() {
    let c = compared(&made_up_runs());
    assert_eq!(c.envelope.len(), 12);
    for beside in &c.envelope {
        let e = &beside.envelope_us;
        assert_eq!(
            beside.inside,
            (e.low..=e.high).contains(&beside.measured_us.value)
        );
        assert!(beside.sentence.contains("_cycles"), "{}", beside.sentence);
    }
}

#[test]
fn an_unstable_overhead_and_a_wrong_clock_are_warned_about() {
    let mut runs = made_up_runs();
    if let Output::LatCtx(guest) = &mut runs[0].guest {
        guest.overhead_ns[0] *= 1.2;
    }
    runs[1].ring.cycles *= 2;
    let warnings = compared(&runs).warnings.join("\n");
    assert!(warnings.contains("overhead's samples differ"), "{warnings}");
    assert!(warnings.contains("check the timer's rate"), "{warnings}");
}

#[test]
fn two_seeds_with_identical_results_are_warned_about() {
    let mut runs = made_up_runs();
    let mut again = runs[0].clone();
    again.point.seed = 2;
    runs.push(again);
    let warnings = compared(&runs).warnings.join("\n");
    assert!(warnings.contains("gave identical results"), "{warnings}");
}

#[test]
fn a_difference_within_the_noise_is_warned_about() {
    let runs = [
        made_up_run("sam9263", "process", 0, 2, 30.0),
        made_up_run("sam9263", "thread", 0, 2, 30.0),
    ];
    let warnings = compared(&runs).warnings.join("\n");
    assert!(warnings.contains("not clear of zero"), "{warnings}");
}

#[test]
fn another_kernel_stands_beside_the_first_and_not_beside_the_envelope() {
    let mut runs = made_up_runs();
    let mut fcse = made_up_runs();
    for run in &mut fcse {
        run.point.kernel = "6.12/fcse-guaranteed".into();
        if let Output::LatCtx(guest) = &mut run.guest {
            let half = |ns: &mut f64| *ns /= 2.0;
            guest.switch_ns.iter_mut().for_each(half);
        }
    }
    runs.extend(fcse);
    let c = compared(&runs);
    assert_eq!(
        (c.rows.len(), c.envelope.len(), c.against.len()),
        (24, 12, 12)
    );
    assert_eq!(
        c.rows[6].kernel, "6.12/fcse-guaranteed",
        "behind the first's"
    );
    let a = &c.against[0];
    assert!((a.to_base - 0.5).abs() < 1e-9 && a.base == "6.12/plain");
    assert!(
        (a.to_threads - 102.05 / 34.05).abs() < 1e-9,
        "{}",
        a.to_threads
    );
}
