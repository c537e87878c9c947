// SPDX-License-Identifier: MIT OR Apache-2.0
//! Report sections of rings: curves against the number of tasks, cycles by cause, and the envelope.

use anyhow::Result;

use super::attribution;
use super::compare::{Comparison, Row};
use super::plot::{self, Bar, Looks, Shown};
use super::tables;
use crate::figures::published::Envelope;
use crate::render::grid::Grid;
use crate::render::part::{Chart, Part};
use crate::runs::point::short_kernel;
use base::distinct::distinct;

/// Makes the sections of each board.
pub fn parts(experiment: &str, comparison: &Comparison, envelope: &Envelope) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for board in tables::boards(comparison) {
        let rows: Vec<&Row> = comparison
            .rows
            .iter()
            .filter(|r| r.board == board)
            .collect();
        parts.extend(board_parts(experiment, board, &rows)?);
        parts.extend(envelope_part(comparison, envelope, board));
    }
    Ok(parts)
}

fn board_parts(experiment: &str, board: &str, rows: &[&Row]) -> Result<Vec<Part>> {
    let looks = Looks::of(rows);
    let draw = |drawn: &[&Row], shown: Shown, text: &str| {
        let title = format!("{board}, {text}");
        plot::latency(drawn, &looks, shown, &title, plot::scale_us(rows))
    };
    let charts = |shown: Shown, name: &str, text: &str| {
        each_kernel(experiment, board, rows, name, |kernel, of_kernel| {
            draw(of_kernel, shown, &format!("{kernel}: {text}"))
        })
    };
    let mut by_size = Vec::new();
    for size in looks.sizes() {
        let of_size: Vec<&Row> = (rows.iter().copied())
            .filter(|row| row.size_kb == *size)
            .collect();
        by_size.push(Chart {
            name: format!("{experiment}-{board}-{size}-kb"),
            svg: draw(&of_size, Shown::Processes, &format!("{size} KB: processes"))?,
        });
    }
    let mut others = charts(Shown::Processes, "processes", "processes")?;
    others.extend(charts(Shown::Threads, "threads", "threads of one process")?);
    others.extend(charts(
        Shown::Difference,
        "difference",
        "processes minus threads",
    )?);
    let mut parts = vec![Part {
        heading: format!("{board} at {:.0} MHz", rows[0].cpu_hz as f64 / 1e6),
        text: "A ring of tasks hands a token around through pipes. The task with the token reads \
               some KB of its own array. A hop of the token minus its work without a switch is a \
               context switch. Points are medians by the guest's clock, with 95 % intervals."
            .into(),
        charts: by_size,
        ..Part::default()
    }];
    parts.extend(where_it_goes(experiment, board, rows)?);
    parts.extend([
        Part {
            heading: format!(
                "{board}: charts of each kernel, as in the paper: processes, threads, and processes minus threads"
            ),
            charts: others,
            folded: true,
            ..Part::default()
        },
        Part {
            heading: format!("{board}: figures and counters of {} rings", rows.len()),
            tables: vec![counters(rows)],
            folded: true,
            ..Part::default()
        },
    ]);
    Ok(parts)
}

/// Draws the cycles of a switch by cause, for the smallest and the largest ring of the first two kernels. Also draws,
/// for all rows, the cycles of changing the address space by cause.
fn where_it_goes(experiment: &str, board: &str, rows: &[&Row]) -> Result<Vec<Part>> {
    let ring = |row: &Row| (row.size_kb, row.tasks);
    let ends = [
        rows.iter().map(|row| ring(row)).min(),
        rows.iter().map(|row| ring(row)).max(),
    ];
    let mut bars = Vec::new();
    for end in distinct(ends.into_iter().flatten()) {
        for kernel in tables::kernels(rows).iter().take(2) {
            let is_end = |row: &&&Row| row.kernel == *kernel && ring(row) == end;
            let name = format!("{}, {} x {} KB", short_kernel(kernel), end.1, end.0);
            let bar = |row: &&Row| Some(Bar::of(name, row, row.process.as_ref()?));
            bars.extend(rows.iter().find(is_end).and_then(bar));
        }
    }
    if bars.is_empty() {
        return Ok(Vec::new());
    }
    let title = format!("{board}: a switch between processes");
    let svg = plot::stacked(&bars, &title, plot::scale_of(&bars))?;
    let bars_of = |rows: &[&Row]| -> Vec<Bar> {
        let name = |row: &Row| format!("{} KB x {}", row.size_kb, row.tasks);
        let bar = |row: &&Row| Some(Bar::of(name(row), row, row.difference.as_ref()?));
        rows.iter().filter_map(bar).collect()
    };
    let scale = plot::scale_of(&bars_of(rows));
    let all = each_kernel(experiment, board, rows, "cycles", |kernel, of_kernel| {
        let title = format!("{board}, {kernel}: process minus thread");
        plot::stacked(&bars_of(of_kernel), &title, scale.clone())
    })?;
    Ok(vec![
        Part {
            heading: format!("{board}: where the time goes"),
            text: "By the core's counters while the guest holds a pin high, minus the work without a switch. A bar to \
                   the left of zero: the work without a switch takes more of it."
                .into(),
            charts: vec![Chart {
                name: format!("{experiment}-{board}-where"),
                svg,
            }],
            ..Part::default()
        },
        Part {
            heading: format!("{board}: where the time goes in every ring, processes minus threads"),
            text: "A switch between processes changes the address space, a switch between threads of \
                   one process does not. The difference is the cost of changing the address space. \
                   Bars to the right of zero take longer between processes, bars to the left take \
                   less."
                .into(),
            charts: all,
            folded: true,
            ..Part::default()
        },
    ])
}

/// Draws a chart of each kernel's rows. `draw` gets the kernel's short name.
fn each_kernel(
    experiment: &str,
    board: &str,
    rows: &[&Row],
    name: &str,
    draw: impl Fn(&str, &[&Row]) -> Result<String>,
) -> Result<Vec<Chart>> {
    let chart = |kernel: &&str| {
        let short = short_kernel(kernel);
        let svg = draw(short, &of_kernel(rows, kernel))?;
        let name = format!("{experiment}-{board}-{short}-{name}");
        Ok(Chart { name, svg })
    };
    tables::kernels(rows).iter().map(chart).collect()
}

fn of_kernel<'a>(rows: &[&'a Row], kernel: &str) -> Vec<&'a Row> {
    let of_kernel = rows.iter().filter(|row| row.kernel == kernel);
    of_kernel.copied().collect()
}

fn counters(rows: &[&Row]) -> Grid {
    let mut headings: Vec<String> = [
        "kernel",
        "KB",
        "tasks",
        "processes us",
        "threads us",
        "difference us",
        "95 % interval us",
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
    Grid {
        texts: 1,
        headings,
        rows: rows.iter().map(|row| cells(row)).collect(),
    }
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

fn envelope_part(comparison: &Comparison, envelope: &Envelope, board: &str) -> Option<Part> {
    let of_board = comparison.envelope.iter().filter(|b| b.board == board);
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
    let inside = rows.iter().filter(|row| row[0] == "inside").count();
    let headings = [
        "envelope",
        "explanation of the difference",
        "KB",
        "tasks",
        "measured us",
        "envelope us",
    ];
    (!rows.is_empty()).then(|| Part {
        heading: format!(
            "{board} against the envelope: {inside} of {} inside",
            rows.len()
        ),
        text: format!("{}. A plausibility check, not a fit.", envelope.source),
        folded: true,
        tables: vec![Grid {
            texts: 2,
            headings: headings.map(String::from).to_vec(),
            rows,
        }],
        ..Part::default()
    })
}
