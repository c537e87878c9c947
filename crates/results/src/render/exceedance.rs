// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exceedance chart: the share of latencies above x, on two logarithmic axes. The chart shows the tail of the
//! distribution, which a histogram hides.

use anyhow::Result;
use plotters::prelude::*;

use crate::figures::figure;
use crate::figures::latencies::Latencies;
use crate::render::plot::{Area, COLOURS, Hover, SIZE, drawing, keys, tick, titled};

/// Common latency limits in us, drawn as vertical lines.
const LIMITS: [(f64, &str); 2] = [(500.0, "500 us"), (1000.0, "1 ms")];
const GREY: RGBColor = RGBColor(120, 120, 120);

type Line = Vec<(f64, f64)>;

/// Draws a line for each series, with a ring at the 99 % quantile and a cross at the maximum.
pub fn svg(series: &[(String, Latencies)], board: &str) -> Result<String> {
    let lines: Vec<(&String, Line)> = series.iter().map(|(name, l)| (name, line(l))).collect();
    let samples = |l: &Latencies| figure::thousands(l.total());
    let names = series
        .iter()
        .map(|(name, l)| format!("{name} ({})", samples(l)));
    let names: Vec<String> = names.collect();
    let mut svg = String::new();
    let mut hover = Hover::default();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(drawing)?;
        let title = format!("{board}: share of latencies above x");
        let area = titled(&root, &title, &keys(&names, &COLOURS))?;
        draw(&area, &lines, &mut hover)?;
        root.present().map_err(drawing)?;
    }
    Ok(hover.over(svg))
}

fn draw(area: &Area, lines: &[(&String, Line)], hover: &mut Hover) -> Result<()> {
    let points = || lines.iter().flat_map(|(_, line)| line);
    let first = points().map(|(x, _)| *x).fold(f64::MAX, f64::min).max(0.1);
    let last = points().map(|(x, _)| *x).fold(LIMITS[1].0, f64::max);
    let least = points().map(|(_, y)| *y).fold(1.0, f64::min);
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(65)
        .build_cartesian_2d(
            (first * 0.9..last * 1.2).log_scale(),
            (least / 2.0..1.0).log_scale(),
        )
        .map_err(drawing)?;
    chart
        .configure_mesh()
        .x_desc("latency, us (ring: 99 % quantile, cross: maximum)")
        .x_labels(6)
        .y_desc("share above")
        .label_style(("sans-serif", 12))
        .x_label_formatter(&tick)
        .y_label_formatter(&|y| format!("{y:e}"))
        .light_line_style(WHITE)
        .draw()
        .map_err(drawing)?;
    for (x, name) in LIMITS {
        let ends = [(x, least / 2.0), (x, 1.0)];
        let label = Text::new(name, (x, 0.9), ("sans-serif", 11).into_font().color(&GREY));
        chart
            .draw_series(LineSeries::new(ends, GREY))
            .map_err(drawing)?;
        chart.draw_series([label]).map_err(drawing)?;
    }
    for ((name, line), colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let at_99 = line.iter().find(|(_, y)| *y <= 0.01);
        let largest = line.last();
        for (at, what) in [(at_99, "99 % are at most"), (largest, "maximum:")] {
            if let Some(at) = at {
                let text = format!("{name}: {what} {} us", figure::digits(at.0));
                hover.point(chart.backend_coord(at), text);
            }
        }
        let rings = at_99.map(|at| Circle::new(*at, 4, colour.stroke_width(2)));
        let crosses = largest.map(|at| Cross::new(*at, 4, colour.stroke_width(2)));
        chart
            .draw_series(LineSeries::new(
                line.iter().copied(),
                colour.stroke_width(2),
            ))
            .map_err(drawing)?;
        chart.draw_series(rings).map_err(drawing)?;
        chart.draw_series(crosses).map_err(drawing)?;
    }
    Ok(())
}

/// Returns the steps of the line. The line ends at the maximum. The last step has the share of the latencies that equal
/// the maximum.
fn line(l: &Latencies) -> Line {
    let total = l.total().max(1) as f64;
    let mut above = l.total();
    let mut line = Vec::new();
    for (ns, count) in &l.ns {
        let us = (*ns as f64 / 1e3).max(0.1);
        line.push((us, above as f64 / total));
        above -= count;
        if above > 0 {
            line.push((us, above as f64 / total));
        }
    }
    if above > 0 {
        line.push((l.max_ns as f64 / 1e3, above as f64 / total));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_falls_to_the_share_of_the_largest() {
        let l = Latencies::of_bins(vec![(10, 90), (20, 9)], 1, 700, 0.0);
        let line = line(&l);
        assert_eq!(line[0], (10.0, 1.0));
        assert!(line.contains(&(20.0, 0.1)) && line.contains(&(20.0, 0.01)));
        assert_eq!(line.last(), Some(&(700.0, 0.01)));
        let exact = Latencies::of_bins(vec![(10, 3), (40, 1)], 0, 40, 0.0);
        assert_eq!(super::line(&exact).last(), Some(&(40.0, 0.25)));
        let svg = svg(&[("plain".into(), l)], "sam9263").unwrap();
        for part in ["plain (100)", "1 ms", "share above", "<circle"] {
            assert!(svg.contains(part), "no {part} in\n{svg}");
        }
    }
}
