// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charts of rings: latency over tasks with a line per size, and stacked cycles per switch.

use std::ops::Range;

use anyhow::Result;
use plotters::prelude::*;

use super::attribution;
use super::compare::Row;
use crate::sheets::plot::{COLOURS, SIZE, drawing, tick, titled};

/// Which latency a chart shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Processes,
    Threads,
    Difference,
}

impl Shown {
    fn of(self, row: &Row) -> (f64, f64, f64) {
        match self {
            Shown::Processes => (
                row.process_us.low,
                row.process_us.median,
                row.process_us.high,
            ),
            Shown::Threads => (row.thread_us.low, row.thread_us.median, row.thread_us.high),
            Shown::Difference => {
                let d = &row.difference_us;
                (d.low, d.value, d.high)
            }
        }
    }
}

/// Latency per switch in microseconds over the number of tasks; several charts can share `scale_us`.
pub fn latency(rows: &[&Row], shown: Shown, title: &str, scale_us: Range<f64>) -> Result<String> {
    let mut svg = String::new();
    let most_tasks = rows.iter().map(|r| r.tasks).max().unwrap_or(2);
    {
        let mut sizes: Vec<u32> = rows.iter().map(|r| r.size_kb).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let names: Vec<String> = sizes.iter().map(|size| format!("{size} KB")).collect();
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(drawing)?;
        let area = titled(&root, title, &names)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(55)
            .build_cartesian_2d(0..most_tasks + 1, scale_us)
            .map_err(drawing)?;
        chart
            .configure_mesh()
            .x_desc("tasks in the ring")
            .y_desc("us per switch")
            .label_style(("sans-serif", 12))
            .y_label_formatter(&tick)
            .light_line_style(WHITE)
            .draw()
            .map_err(drawing)?;
        for (size, colour) in sizes.iter().zip(COLOURS.iter().cycle()) {
            let points: Vec<(u32, (f64, f64, f64))> = rows
                .iter()
                .filter(|r| r.size_kb == *size)
                .map(|r| (r.tasks, shown.of(r)))
                .collect();
            let bars = points.iter().map(|(x, (low, middle, high))| {
                ErrorBar::new_vertical(*x, *low, *middle, *high, colour.filled(), 6)
            });
            chart.draw_series(bars).map_err(drawing)?;
            let line = points.iter().map(|(x, (_, middle, _))| (*x, *middle));
            chart
                .draw_series(LineSeries::new(line, colour.stroke_width(2)))
                .map_err(drawing)?;
        }
        root.present().map_err(drawing)?;
    }
    Ok(svg)
}

/// A scale that shows all rows in every chart, and zero. Processes may be faster than threads.
pub fn scale_us(rows: &[&Row]) -> Range<f64> {
    let all = rows.iter().flat_map(|r| {
        let shown = [Shown::Processes, Shown::Threads, Shown::Difference];
        shown.map(|shown| shown.of(r))
    });
    let (lowest, largest) = all.fold((0.0, 1.0), |(lowest, largest), (low, _, high)| {
        (f64::min(lowest, low), f64::max(largest, high))
    });
    let step = 10f64.powf(largest.log10().floor()) / 2.0;
    let below = step / 5.0;
    (lowest * 1.02 / below).floor() * below..(largest * 1.02 / step).ceil() * step
}

/// A scale on which the cycles of all rows can be compared.
pub fn scale_cycles(rows: &[&Row]) -> Range<f64> {
    let cycles = rows.iter().filter_map(|r| r.difference.map(|d| d.cycles));
    let (lowest, largest) = cycles.fold((0.0, 1.0), |(lowest, largest), c| {
        (
            f64::min(lowest, on_its_side(&c, -1.0)),
            f64::max(largest, on_its_side(&c, 1.0)),
        )
    });
    lowest * 1.05..largest * 1.05
}

/// Cycles by which a process switch is longer, stacked by counter, one bar per row: to the right
/// of zero what takes longer, to the left what takes less.
pub fn stacked(rows: &[&Row], title: &str, scale: Range<f64>) -> Result<String> {
    let rows: Vec<(&Row, [f64; attribution::COUNT])> = rows
        .iter()
        .filter_map(|r| r.difference.map(|d| (*r, d.cycles)))
        .collect();
    let names: Vec<String> = rows
        .iter()
        .map(|(r, _)| format!("{} KB x {}", r.size_kb, r.tasks))
        .collect();
    let count = rows.len() as i32;
    let mut svg = String::new();
    {
        let height = 130 + 12 * rows.len() as u32;
        let root = SVGBackend::with_string(&mut svg, (SIZE.0, height)).into_drawing_area();
        root.fill(&WHITE).map_err(drawing)?;
        let names_of_terms = attribution::headings().map(String::from);
        let area = titled(&root, title, &names_of_terms)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(80)
            .build_cartesian_2d(scale, (0..count).into_segmented())
            .map_err(drawing)?;
        let name = |at: &SegmentValue<i32>| match at {
            SegmentValue::CenterOf(i) if *i < count => names[(count - 1 - i) as usize].clone(),
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .disable_y_mesh()
            .y_labels(rows.len() + 1)
            .y_label_formatter(&name)
            .x_label_formatter(&|x| format!("{x:.0}"))
            .x_desc("core cycles per switch")
            .label_style(("sans-serif", 11))
            .light_line_style(WHITE)
            .draw()
            .map_err(drawing)?;
        for term in 0..attribution::COUNT {
            let colour = COLOURS[term % COLOURS.len()];
            let bars = rows.iter().enumerate().map(|(i, (_, cycles))| {
                let start = on_its_side(&cycles[..term], cycles[term]);
                let at = count - 1 - i as i32;
                let corners = [
                    (start, SegmentValue::Exact(at)),
                    (start + cycles[term], SegmentValue::Exact(at + 1)),
                ];
                let mut bar = Rectangle::new(corners, colour.filled());
                bar.set_margin(1, 1, 0, 0);
                bar
            });
            chart.draw_series(bars).map_err(drawing)?;
        }
        root.present().map_err(drawing)?;
    }
    Ok(svg)
}

/// What those `terms` are together that have the sign of `side`.
fn on_its_side(terms: &[f64], side: f64) -> f64 {
    terms.iter().filter(|t| **t * side > 0.0).sum()
}

#[cfg(test)]
mod tests {
    use super::super::compare::compare;
    use super::*;
    use crate::figures::published::Envelope;
    use crate::runs::for_tests::made_up_runs;

    #[test]
    fn a_chart_has_a_line_per_size_and_names_its_axes() {
        let comparison = compare(&made_up_runs(), &Envelope::load().unwrap());
        let rows: Vec<&Row> = comparison
            .rows
            .iter()
            .filter(|r| r.board == "sam9263")
            .collect();
        let svg = latency(&rows, Shown::Processes, "processes", scale_us(&rows)).unwrap();
        for part in [
            "<svg",
            "tasks in the ring",
            "us per switch",
            "0 KB",
            "16 KB",
        ] {
            assert!(svg.contains(part), "no {part:?}");
        }
        assert!(svg.matches("<polyline").count() >= 2);
    }

    #[test]
    fn the_scale_holds_the_largest_value() {
        let comparison = compare(&made_up_runs(), &Envelope::load().unwrap());
        let rows: Vec<&Row> = comparison.rows.iter().collect();
        let scale = scale_us(&rows);
        assert!(scale.start == 0.0 && scale.end >= 132.0 && scale.end <= 200.0);
    }

    #[test]
    fn processes_that_are_faster_than_threads_are_in_the_chart() {
        let mut comparison = compare(&made_up_runs(), &Envelope::load().unwrap());
        comparison.rows[0].difference_us.low = -4.5;
        let rows: Vec<&Row> = comparison.rows.iter().collect();
        let scale = scale_us(&rows);
        assert!(scale.start <= -4.5 && scale.start >= -20.0, "{scale:?}");
        assert_eq!(on_its_side(&[3.0, -1.0, 2.0, -4.0], 1.0), 5.0);
        assert_eq!(on_its_side(&[3.0, -1.0, 2.0, -4.0], -7.0), -5.0);
    }

    #[test]
    fn the_stacked_chart_has_every_term_and_every_row() {
        let comparison = compare(&made_up_runs(), &Envelope::load().unwrap());
        let rows: Vec<&Row> = comparison.rows.iter().collect();
        let svg = stacked(&rows, "where", scale_cycles(&rows)).unwrap();
        for part in attribution::headings()
            .iter()
            .chain(&["16 KB x 4", "0 KB x 2"])
        {
            assert!(svg.contains(part), "no {part:?}");
        }
    }
}
