// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the report says of rings: curves over tasks, where the cycles went, the envelope.

use anyhow::Result;

use crate::attribution;
use crate::compare::Row;
use crate::plot::{self, Shown};
use crate::published::Envelope;
use crate::report::{Chart, Part};
use crate::result::{Results, short_kernel};
use crate::table::{self, Grid};

/// A part for each board.
pub fn parts(experiment: &str, results: &Results, envelope: &Envelope) -> Result<Vec<Part>> {
    let comparison = &results.comparison;
    let mut parts = Vec::new();
    for board in table::boards(comparison) {
        let rows: Vec<&Row> = comparison
            .rows
            .iter()
            .filter(|r| r.board == board)
            .collect();
        parts.push(board_part(experiment, &board, &rows)?);
        parts.extend(envelope_part(results, envelope, &board));
    }
    Ok(parts)
}

fn board_part(experiment: &str, board: &str, rows: &[&Row]) -> Result<Part> {
    let scale = plot::scale_us(rows);
    let (mut charts, mut cycles) = (Vec::new(), Vec::new());
    for kernel in table::kernels(rows) {
        let rows: Vec<&Row> = rows
            .iter()
            .filter(|r| r.kernel == kernel)
            .copied()
            .collect();
        let kernel = short_kernel(kernel);
        for (shown, name) in [
            (Shown::Processes, "processes"),
            (Shown::Threads, "threads"),
            (Shown::Difference, "difference"),
        ] {
            let title = match shown {
                Shown::Processes => format!("{board}, {kernel}: processes"),
                Shown::Threads => format!("{board}, {kernel}: threads of one process"),
                Shown::Difference => format!("{board}, {kernel}: processes less threads"),
            };
            charts.push(Chart {
                name: format!("{experiment}-{board}-{kernel}-{name}"),
                svg: plot::latency(&rows, shown, &title, scale.clone())?,
            });
        }
        cycles.push(Chart {
            name: format!("{experiment}-{board}-{kernel}-cycles"),
            svg: plot::stacked(&rows, &format!("{board}, {kernel}: process less thread"))?,
        });
    }
    charts.append(&mut cycles);
    let mut headings: Vec<String> = [
        "kernel",
        "KB",
        "tasks",
        "processes us",
        "threads us",
        "difference us",
        "95 % interval",
        "cycles",
        "instructions",
        "I lines",
        "D lines",
        "walks",
        "PID writes",
    ]
    .into_iter()
    .chain(attribution::headings())
    .map(String::from)
    .collect();
    headings.push("overhead us".into());
    Ok(Part {
        heading: format!("{board} at {:.0} MHz", rows[0].cpu_hz as f64 / 1e6),
        text: "A ring of tasks hands a token around through pipes; whoever holds it reads some KB \
               of its own array. Every hop is a context switch, the same work without a switch \
               subtracted. Between processes it changes the address space, between threads of one \
               process it does not; the difference is what changing the address space costs, and \
               the core's counters, taken while the guest holds a pin high, say where it went. \
               Points are medians by the guest's own clock with 95 % intervals."
            .into(),
        charts,
        tables: vec![Grid {
            texts: 1,
            headings,
            rows: rows.iter().map(|row| cells(row)).collect(),
        }],
    })
}

fn cells(row: &Row) -> Vec<String> {
    let d = &row.difference_us;
    let mut cells = vec![
        short_kernel(&row.kernel).to_string(),
        row.size_kb.to_string(),
        row.tasks.to_string(),
        format!("{:.2}", row.process_us.median),
        format!("{:.2}", row.thread_us.median),
        format!("{:.2}", d.value),
        format!("{:.2} to {:.2}", d.low, d.high),
        format!("{:.0}", row.difference_cycles),
    ];
    match &row.difference {
        Some(t) => {
            let events = [t.instructions, t.icache_fills, t.dcache_fills, t.walks];
            cells.extend(events.iter().map(|x| format!("{x:.0}")));
            cells.push(format!("{:.1}", t.pid_writes));
            cells.extend(t.cycles.iter().map(|x| format!("{x:.0}")));
        }
        None => cells.extend(std::iter::repeat_n("-".to_string(), 5 + attribution::COUNT)),
    }
    cells.push(format!("{:.2}", row.overhead_us));
    cells
}

fn envelope_part(results: &Results, envelope: &Envelope, board: &str) -> Option<Part> {
    let of_board = results
        .comparison
        .envelope
        .iter()
        .filter(|b| b.board == board);
    let rows: Vec<Vec<String>> = of_board
        .map(|b| {
            let e = &b.envelope_us;
            vec![
                if b.inside { "inside" } else { "outside" }.to_string(),
                b.sentence.clone(),
                b.size_kb.to_string(),
                b.tasks.to_string(),
                format!("{:.1}", b.measured_us.value),
                format!("{:.0} ({:.0} to {:.0})", e.typical, e.low, e.high),
            ]
        })
        .collect();
    let headings = [
        "envelope",
        "what explains the difference",
        "KB",
        "tasks",
        "measured us",
        "envelope us",
    ];
    (!rows.is_empty()).then(|| Part {
        heading: format!("{board} beside the envelope"),
        text: format!("{}. A plausibility check, not a fit.", envelope.source),
        charts: Vec::new(),
        tables: vec![Grid {
            texts: 2,
            headings: headings.map(String::from).to_vec(),
            rows,
        }],
    })
}
