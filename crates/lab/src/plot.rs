// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charts as SVG text: latency over tasks with a line per size, and stacked cycles per switch.

use std::ops::Range;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

use crate::attribution;
use crate::compare::Row;

pub const SIZE: (u32, u32) = (640, 400);
/// A line per size; colours told apart by colour-blind readers, too (Okabe and Ito).
pub const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 120, 120),
];

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
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(drawing)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(title, ("sans-serif", 18))
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(55)
            .build_cartesian_2d(0..most_tasks + 1, scale_us)
            .map_err(drawing)?;
        chart
            .configure_mesh()
            .x_desc("tasks in the ring")
            .y_desc("us per switch")
            .light_line_style(WHITE)
            .draw()
            .map_err(drawing)?;
        let mut sizes: Vec<u32> = rows.iter().map(|r| r.size_kb).collect();
        sizes.sort_unstable();
        sizes.dedup();
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
                .map_err(drawing)?
                .label(format!("{size} KB"))
                .legend(|(x, y)| Rectangle::new([(x, y - 4), (x + 14, y + 4)], colour.filled()));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.8))
            .border_style(RGBColor(180, 180, 180))
            .draw()
            .map_err(drawing)?;
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

/// Cycles by which a process switch is longer, stacked by counter, one bar per row: to the right
/// of zero what takes longer, to the left what takes less.
pub fn stacked(rows: &[&Row], title: &str) -> Result<String> {
    let rows: Vec<(&Row, [f64; attribution::COUNT])> = rows
        .iter()
        .filter_map(|r| r.difference.map(|d| (*r, d.cycles)))
        .collect();
    let (lowest, largest) = rows.iter().fold((0.0, 1.0), |(lowest, largest), (_, c)| {
        (
            f64::min(lowest, on_its_side(c, -1.0)),
            f64::max(largest, on_its_side(c, 1.0)),
        )
    });
    let names: Vec<String> = rows
        .iter()
        .map(|(r, _)| format!("{} KB x {}", r.size_kb, r.tasks))
        .collect();
    let count = rows.len() as i32;
    let mut svg = String::new();
    {
        let height = 110 + 18 * rows.len() as u32;
        let root = SVGBackend::with_string(&mut svg, (SIZE.0 + 200, height)).into_drawing_area();
        root.fill(&WHITE).map_err(drawing)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(title, ("sans-serif", 18))
            .margin(10)
            .margin_right(130)
            .x_label_area_size(40)
            .y_label_area_size(80)
            .build_cartesian_2d(lowest * 1.05..largest * 1.05, (0..count).into_segmented())
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
                bar.set_margin(2, 2, 0, 0);
                bar
            });
            chart.draw_series(bars).map_err(drawing)?;
        }
        // Beside the chart, where plotters' own legend would be cut off.
        for (term, heading) in attribution::headings().into_iter().enumerate() {
            let (x, y) = (SIZE.0 as i32 + 80, 45 + 18 * term as i32);
            let colour = COLOURS[term % COLOURS.len()];
            root.draw(&Rectangle::new([(x, y), (x + 14, y + 9)], colour.filled()))
                .and_then(|()| root.draw(&Text::new(heading, (x + 20, y), ("sans-serif", 12))))
                .map_err(drawing)?;
        }
        root.present().map_err(drawing)?;
    }
    Ok(svg)
}

/// What those `terms` are together that have the sign of `side`.
fn on_its_side(terms: &[f64], side: f64) -> f64 {
    terms.iter().filter(|t| **t * side > 0.0).sum()
}

pub fn drawing<E: std::fmt::Display>(error: E) -> anyhow::Error {
    anyhow!("cannot draw the chart: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{compare, tests::made_up_runs};
    use crate::published::Envelope;

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
        let svg = stacked(&rows, "where").unwrap();
        for part in attribution::headings()
            .iter()
            .chain(&["16 KB x 4", "0 KB x 2"])
        {
            assert!(svg.contains(part), "no {part:?}");
        }
    }
}
