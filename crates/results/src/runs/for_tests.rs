// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up runs, for tests.

use serde_json::{Value, json};

use crate::runs::point::Point;
use crate::runs::run::{Provenance, Run, Window};

const CPU_HZ: u64 = 180_000_000;

/// Makes a run whose switches take `switch_us`, with matching counters.
pub fn made_up_run(board: &str, mode: &str, size_kb: u32, tasks: u32, switch_us: f64) -> Run {
    let rounds = 100;
    let overhead_ns: Vec<f64> = (0..11).map(|i| 10_000.0 + f64::from(i)).collect();
    let switch_ns = |i: i32| switch_us * 1e3 + f64::from(i * 10);
    let switch_ns: Vec<f64> = (0..11).map(switch_ns).collect();
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
        layout: 0,
    };
    Run {
        format: Run::FORMAT,
        hash: Provenance::default().run_hash(&point),
        experiment: "switch-cost".into(),
        cpu_hz: CPU_HZ,
        kind: "lat_ctx".into(),
        output: line(json!({
            "format": 1, "mode": mode, "tasks": tasks, "size_kb": size_kb,
            "rounds": rounds, "overhead_ns": overhead_ns, "hop_ns": hop_ns, "switch_ns": switch_ns,
        })),
        seen: None,
        whole: Window::default(),
        ring: window(switch_us + 10.055, 1.0),
        overhead: window(10.005, 0.1),
        end_cycle: 1,
        engine: "interpreter".into(),
        provenance: Provenance::default(),
        point,
    }
}

/// Makes the runs of a whole campaign on two boards.
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

/// Changes the values of a key in the output of a made-up run.
pub fn change(run: &mut Run, key: &str, new_value: impl Fn(f64) -> f64) {
    let mut line: Value = serde_json::from_str(&run.output).unwrap();
    for value in line[key].as_array_mut().unwrap() {
        *value = json!(new_value(value.as_f64().unwrap()));
    }
    run.output = self::line(line);
}

/// Formats the line as our guests print it: the guest's name comes first.
fn line(mut keys: Value) -> String {
    keys.as_object_mut().unwrap().remove("guest");
    format!("{{\"guest\":\"lat_ctx\",{}", &keys.to_string()[1..])
}
