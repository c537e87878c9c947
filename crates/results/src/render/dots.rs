// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chart of series with few values. Each value is a dot, and the median is a bar.

use std::ops::Range;

use anyhow::Result;
use plotters::prelude::*;

use crate::figures::{figure, statistics};
use crate::render::plot::{COLOURS, Hover, SIZE, drawing, keys, tick, titled};

/// Draws a column of dots for each series, in `unit`.
pub fn svg(title: &str, unit: &str, series: &[(String, Vec<f64>)]) -> Result<String> {
    let names: Vec<String> = series.iter().map(|(name, _)| name.clone()).collect();
    let mut svg = String::new();
    let mut hover = Hover::default();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(drawing)?;
        let area = titled(&root, title, &keys(&names, &COLOURS))?;
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .x_label_area_size(15)
            .y_label_area_size(65)
            .build_cartesian_2d(0.0..series.len().max(1) as f64, scale(series))
            .map_err(drawing)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(0)
            .y_desc(unit)
            .label_style(("sans-serif", 12))
            .y_label_formatter(&tick)
            .light_line_style(WHITE)
            .draw()
            .map_err(drawing)?;
        for (((name, values), colour), n) in series.iter().zip(COLOURS.iter().cycle()).zip(0..) {
            let middle = f64::from(n) + 0.5;
            // Dots lie next to each other, so that no dot hides another dot.
            let step = 0.5 / values.len().max(2) as f64;
            let first = middle - step * (values.len() as f64 - 1.0) / 2.0;
            let places = values.iter().enumerate();
            let places: Vec<(f64, f64)> = places
                .map(|(at, value)| (first + step * at as f64, *value))
                .collect();
            for (place, value) in places.iter().zip(values) {
                let text = format!("{name}: {} {unit}", figure::digits(*value));
                hover.point(chart.backend_coord(place), text);
            }
            let dots = places
                .into_iter()
                .map(|at| Circle::new(at, 3, colour.filled()));
            chart.draw_series(dots).map_err(drawing)?;
            if let Some(median) = statistics::median(values) {
                let ends = [(middle - 0.35, median), (middle + 0.35, median)];
                let bar = LineSeries::new(ends, colour.stroke_width(2));
                chart.draw_series(bar).map_err(drawing)?;
            }
        }
        root.present().map_err(drawing)?;
    }
    Ok(hover.over(svg))
}

/// Returns the range of the vertical axis, which begins at 0.
fn scale(series: &[(String, Vec<f64>)]) -> Range<f64> {
    let all = series.iter().flat_map(|(_, values)| values);
    0.0..all.copied().fold(0.0, f64::max) * 1.1 + f64::MIN_POSITIVE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_a_dot_and_the_median_a_bar() {
        let series = [
            ("plain".into(), vec![2.0, 3.0, 2.5]),
            ("fcse".into(), vec![]),
        ];
        let svg = svg("time of each run", "s", &series).unwrap();
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("plain: 2.50 s") && svg.contains("<polyline"));
    }
}
