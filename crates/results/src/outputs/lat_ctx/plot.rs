// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charts of rings: latency against the number of tasks, and stacked bars of a switch's time by cause.

use std::ops::Range;

use anyhow::Result;
use plotters::prelude::*;

use super::attribution::{self, Terms};
use super::compare::Row;
use crate::figures::figure;
use crate::figures::statistics::Estimate;
use crate::render::plot::{
    COLOURS, Hover, Key, MARKERS, Marker, OTHERS, SIZE, drawing, keys, tick, titled,
};
use crate::runs::point::short_kernel;
use base::distinct::distinct;

/// Latency that a chart shows.
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

/// Appearance of the curves in all charts of a board: a colour for each kernel, and a marker for each size.
pub struct Looks<'a> {
    kernels: Vec<&'a str>,
    sizes: Vec<u32>,
}

impl<'a> Looks<'a> {
    /// Assigns colours and markers. `rows` are all rows of the board.
    pub fn of(rows: &[&'a Row]) -> Looks<'a> {
        let mut sizes: Vec<u32> = rows.iter().map(|r| r.size_kb).collect();
        sizes.sort_unstable();
        sizes.dedup();
        Looks {
            kernels: distinct(rows.iter().map(|r| r.kernel.as_str())),
            sizes,
        }
    }

    /// Sizes in KB that tasks read, ascending.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    fn colour(&self, kernel: &str) -> RGBColor {
        let at = self.kernels.iter().position(|k| *k == kernel);
        COLOURS[at.unwrap_or(0) % COLOURS.len()]
    }

    fn marker(&self, size_kb: u32) -> Marker {
        let at = self.sizes.iter().position(|s| *s == size_kb);
        MARKERS[at.unwrap_or(0) % MARKERS.len()]
    }

    /// Returns the curves of `rows` with their legend entries. The entries are names of kernels, or sizes if there is
    /// only one kernel.
    fn curves<'r>(&self, rows: &[&'r Row]) -> Vec<(Key, Vec<&'r Row>)> {
        let one_kernel = distinct(rows.iter().map(|r| r.kernel.as_str())).len() == 1;
        let mut curves = Vec::new();
        for (kernel, size) in distinct(rows.iter().map(|r| (r.kernel.as_str(), r.size_kb))) {
            let key = Key {
                name: match one_kernel {
                    true => format!("{size} KB"),
                    false => short_kernel(kernel).to_string(),
                },
                colour: self.colour(kernel),
                marker: Some(self.marker(size)),
            };
            let curve = (rows.iter()).filter(|r| (r.kernel.as_str(), r.size_kb) == (kernel, size));
            curves.push((key, curve.copied().collect()));
        }
        curves
    }
}

/// Draws the time per switch in microseconds against the number of tasks. Charts can share `scale_us`.
pub fn latency(
    rows: &[&Row],
    looks: &Looks,
    shown: Shown,
    title: &str,
    scale_us: Range<f64>,
) -> Result<String> {
    let mut svg = String::new();
    let mut hover = Hover::default();
    let most_tasks = rows.iter().map(|r| r.tasks).max().unwrap_or(2);
    let (keys, curves): (Vec<Key>, Vec<Vec<&Row>>) = looks.curves(rows).into_iter().unzip();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(drawing)?;
        let area = titled(&root, title, &keys)?;
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
        for (key, curve) in keys.iter().zip(curves) {
            let colour = key.colour;
            let bars = curve.iter().map(|r| {
                let (low, middle, high) = shown.of(r);
                ErrorBar::new_vertical(r.tasks, low, middle, high, colour.filled(), 6)
            });
            chart.draw_series(bars).map_err(drawing)?;
            let line = curve.iter().map(|r| (r.tasks, shown.of(r).1));
            chart
                .draw_series(LineSeries::new(line, colour.stroke_width(2)))
                .map_err(drawing)?;
            for row in curve {
                let (low, middle, high) = shown.of(row);
                let at = chart.backend_coord(&(row.tasks, middle));
                let marker = key.marker.unwrap_or(Marker::Disc);
                marker.draw(&root, at, colour)?;
                let figure = figure::estimate(Estimate {
                    value: middle,
                    low,
                    high,
                });
                let what = format!("{} tasks, {} KB", row.tasks, row.size_kb);
                let kernel = short_kernel(&row.kernel);
                hover.point(at, format!("{kernel}, {what}: {figure} us"));
            }
        }
        root.present().map_err(drawing)?;
    }
    Ok(hover.over(svg))
}

/// Returns a scale for all charts of these rows. The scale includes zero. It also includes negative differences,
/// because processes may be faster than threads.
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

/// A bar: microseconds of each term.
pub struct Bar {
    pub name: String,
    us: [f64; attribution::COUNT],
}

impl Bar {
    /// Makes a bar from the cycles of a row.
    pub fn of(name: String, row: &Row, terms: &Terms) -> Bar {
        let us = |cycles: f64| cycles * 1e6 / row.cpu_hz as f64;
        Bar {
            name,
            us: terms.cycles.map(us),
        }
    }
}

/// Returns a scale for all bars.
pub fn scale_of(bars: &[Bar]) -> Range<f64> {
    let (lowest, largest) = bars.iter().fold((0.0, 1.0), |(lowest, largest), bar| {
        (
            f64::min(lowest, on_its_side(&bar.us, -1.0)),
            f64::max(largest, on_its_side(&bar.us, 1.0)),
        )
    });
    lowest * 1.05..largest * 1.05
}

/// Draws bars of stacked terms: positive terms to the right of zero, negative terms to the left.
pub fn stacked(bars: &[Bar], title: &str, scale: Range<f64>) -> Result<String> {
    let count = bars.len() as i32;
    // A chart with few bars has thicker bars, so that it is about as high as other charts.
    let bar_height = if bars.len() < 8 { 26 } else { 12 };
    let mut svg = String::new();
    let mut hover = Hover::default();
    {
        let height = 130 + bar_height * bars.len() as u32;
        let root = SVGBackend::with_string(&mut svg, (SIZE.0, height)).into_drawing_area();
        root.fill(&WHITE).map_err(drawing)?;
        let names = attribution::headings();
        let area = titled(&root, title, &keys(&names.map(String::from), &OTHERS))?;
        let longest = bars.iter().map(|bar| bar.name.len()).max().unwrap_or(0) as u32;
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size((longest * 6 + 14).max(80))
            .build_cartesian_2d(scale, (0..count - 1).into_segmented())
            .map_err(drawing)?;
        let name = |at: &SegmentValue<i32>| match at {
            SegmentValue::CenterOf(i) if *i < count => bars[(count - 1 - i) as usize].name.clone(),
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .disable_y_mesh()
            .y_labels(bars.len())
            .y_label_formatter(&name)
            .x_label_formatter(&tick)
            .x_desc("us per switch")
            .label_style(("sans-serif", 11))
            .light_line_style(WHITE)
            .draw()
            .map_err(drawing)?;
        for (term, colour) in OTHERS.iter().enumerate() {
            let all = bars.iter().zip((0..count).rev()).map(|(bar, at)| {
                let start = on_its_side(&bar.us[..term], bar.us[term]);
                let corners = [
                    (start, SegmentValue::Exact(at)),
                    (start + bar.us[term], SegmentValue::Exact(at + 1)),
                ];
                let text = format!("{}: {} {:.1} us", bar.name, names[term], bar.us[term]);
                hover.bar(
                    corners.each_ref().map(|corner| chart.backend_coord(corner)),
                    text,
                );
                let mut drawn = Rectangle::new(corners, colour.filled());
                drawn.set_margin(1, 1, 0, 0);
                drawn
            });
            let all: Vec<_> = all.collect();
            chart.draw_series(all).map_err(drawing)?;
        }
        root.present().map_err(drawing)?;
    }
    Ok(hover.over(svg))
}

/// Returns the sum of the terms that have the sign of `side`.
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
    fn kernels_have_colours_and_sizes_markers_and_points_their_values() {
        let comparison = compare(&made_up_runs(), &Envelope::load().unwrap());
        let rows: Vec<&Row> = comparison
            .rows
            .iter()
            .filter(|r| r.board == "sam9263")
            .collect();
        let looks = Looks::of(&rows);
        let of_one: Vec<&Row> = (rows.iter().copied())
            .filter(|r| r.kernel == rows[0].kernel)
            .collect();
        let scale = scale_us(&rows);
        let svg = latency(
            &of_one,
            &looks,
            Shown::Processes,
            "processes",
            scale.clone(),
        );
        let svg = svg.unwrap();
        for part in [
            "<svg",
            "tasks in the ring",
            "us per switch",
            "0 KB",
            "16 KB",
            "<title>",
        ] {
            assert!(svg.contains(part), "no {part:?}");
        }
        assert!(svg.matches("<polyline").count() >= 2);
        let colour = |svg: &str, hex: &str| svg.contains(hex);
        assert!(colour(&svg, "#0072B2") && !colour(&svg, "#D55E00"));
        let of_size: Vec<&Row> = (rows.iter().copied()).filter(|r| r.size_kb == 0).collect();
        let svg = latency(&of_size, &looks, Shown::Processes, "0 KB", scale).unwrap();
        let names = distinct(of_size.iter().map(|r| short_kernel(&r.kernel)));
        assert!(names.iter().all(|name| svg.contains(name)), "{names:?}");
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
    fn the_stacked_chart_has_every_term_and_every_bar() {
        let comparison = compare(&made_up_runs(), &Envelope::load().unwrap());
        let bar = |row: &Row| {
            Some(Bar::of(
                row.tasks.to_string() + " tasks",
                row,
                &row.process?,
            ))
        };
        let bars: Vec<Bar> = comparison.rows.iter().filter_map(bar).collect();
        let svg = stacked(&bars, "where", scale_of(&bars)).unwrap();
        let named = attribution::headings().into_iter().chain(["4 tasks"]);
        for part in named.chain(["us per switch", "4 tasks: cache ops "]) {
            assert!(svg.contains(part), "no {part:?}");
        }
    }
}
