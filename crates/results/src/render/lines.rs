// SPDX-License-Identifier: MIT OR Apache-2.0
//! Line charts, including latency histograms with a logarithmic axis of counts, as in the papers.

use std::collections::BTreeMap;

use anyhow::Result;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::figures::latencies::Latencies;
use crate::render::plot::{COLOURS, SIZE, drawing, keys, tick, titled};

/// A line with at most this number of points shows each point as a dot.
const FEW: usize = 20;

/// Draws a latency histogram for each series.
pub fn histograms(series: &[(String, Latencies)], board: &str) -> Result<String> {
    let lines = series.iter().map(|(name, l)| (name.clone(), steps(l)));
    let lines: Vec<(String, Vec<(f64, f64)>)> = lines.collect();
    let most = lines.iter().flat_map(|(_, line)| line).map(|(_, n)| *n);
    let most = most.fold(1.0, f64::max);
    let longest = series.iter().map(|(_, l)| l.max_ns).max().unwrap_or(1);
    chart(
        &format!("{board}: latencies, number of samples"),
        ("latency, us", "samples"),
        0f64..longest as f64 / 1e3 * 1.02 + 1.0,
        (0.5f64..most * 2.0).log_scale(),
        &lines,
    )
}

/// Returns the outline of a histogram with bars of 1 us.
fn steps(l: &Latencies) -> Vec<(f64, f64)> {
    let overflow = (l.overflows > 0).then_some((l.max_ns, l.overflows));
    let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
    for (ns, count) in l.ns.iter().copied().chain(overflow) {
        *bins.entry(ns / 1000).or_default() += count;
    }
    let mut line = Vec::new();
    let mut end = 0;
    for (us, count) in bins {
        if us != end {
            line.extend([(end as f64, 0.5), (us as f64, 0.5)]);
        }
        end = us + 1;
        line.extend([(us as f64, count as f64), (end as f64, count as f64)]);
    }
    line.push((end as f64, 0.5));
    line
}

/// Draws a line for each series.
pub fn chart<Y>(
    title: &str,
    (x_label, y_label): (&str, &str),
    x: std::ops::Range<f64>,
    y: Y,
    lines: &[(String, Vec<(f64, f64)>)],
) -> Result<String>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(drawing)?;
        let names: Vec<String> = lines.iter().map(|(name, _)| name.clone()).collect();
        let area = titled(&root, title, &keys(&names, &COLOURS))?;
        let mut chart = ChartBuilder::on(&area)
            .margin(10)
            .x_label_area_size(40)
            .y_label_area_size(65)
            .build_cartesian_2d(x, y)
            .map_err(drawing)?;
        chart
            .configure_mesh()
            .x_desc(x_label)
            .y_desc(y_label)
            .label_style(("sans-serif", 12))
            .x_label_formatter(&tick)
            .y_label_formatter(&tick)
            .light_line_style(WHITE)
            .draw()
            .map_err(drawing)?;
        for ((_, line), colour) in lines.iter().zip(COLOURS.iter().cycle()) {
            let points = line.iter().copied();
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(1)).point_size(0))
                .map_err(drawing)?;
            if line.len() <= FEW {
                let points = line.iter().copied();
                let dots = points.map(|at| Circle::new(at, 3, colour.filled()));
                chart.draw_series(dots).map_err(drawing)?;
            }
        }
        root.present().map_err(drawing)?;
    }
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_between_bins_falls_to_the_axis() {
        let l = Latencies::of_bins(vec![(3, 5), (4, 6), (9, 1)], 2, 20, 0.0);
        let line = steps(&l);
        assert!(line.contains(&(3.0, 5.0)) && line.contains(&(5.0, 6.0)));
        assert!(line.contains(&(5.0, 0.5)) && line.contains(&(9.0, 0.5)));
        assert_eq!(line[line.len() - 2], (21.0, 2.0));
        let svg = histograms(&[("plain".into(), l)], "sam9263").unwrap();
        assert!(svg.contains("latency, us") && svg.contains("plain"));
    }
}
