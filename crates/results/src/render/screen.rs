// SPDX-License-Identifier: MIT OR Apache-2.0
//! The screen of an oscilloscope as SVG. The traces of all triggers are drawn over each other. A point is brighter if
//! more traces pass through it.

use anyhow::Result;
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::render::plot::drawing;
use crate::runs::screen::{Screen, Trace};

const SIZE: (u32, u32) = (900, 420);
const GLASS: RGBColor = RGBColor(8, 20, 12);
const GRID: RGBColor = RGBColor(38, 62, 46);
const GLOW: RGBColor = RGBColor(120, 255, 150);
/// Heights at which low and high are drawn, as shares of a channel's height.
const LOW: f64 = 0.15;
const HIGH: f64 = 0.85;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws the screen. `names` has a name for each channel, from the top.
pub fn svg(screen: &Screen, names: &[String], title: &str) -> Result<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(drawing)?;
        draw(&root, screen, names, title)?;
        root.present().map_err(drawing)?;
    }
    Ok(svg)
}

fn draw(root: &Area<'_>, screen: &Screen, names: &[String], title: &str) -> Result<()> {
    let width_us = screen.window_us;
    let height = screen.traces.len() as f64;
    let mut chart = ChartBuilder::on(root)
        .caption(title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(90)
        .build_cartesian_2d(0f64..width_us, 0f64..height)
        .map_err(drawing)?;
    chart.plotting_area().fill(&GLASS).map_err(drawing)?;
    let name = |y: &f64| {
        let channel = (height - y).floor().max(0.0) as usize;
        names.get(channel).cloned().unwrap_or_default()
    };
    let triggers = screen.triggers;
    chart
        .configure_mesh()
        .x_desc(format!(
            "time after the trigger, us ({triggers} triggers drawn, {} ignored)",
            screen.ignored
        ))
        .y_labels(2 * screen.traces.len() + 1)
        .y_label_formatter(&|y| {
            if y.fract() == 0.5 {
                name(y)
            } else {
                String::new()
            }
        })
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .draw()
        .map_err(drawing)?;
    let column_us = width_us / screen.columns() as f64;
    for (n, trace) in screen.traces.iter().enumerate() {
        let base = height - 1.0 - n as f64;
        let boxes = boxes(trace, triggers).into_iter().map(|b| {
            let x = (b.from as f64 * column_us, b.to as f64 * column_us);
            let style = GLOW.mix(b.glow).filled();
            Rectangle::new([(x.0, base + b.bottom), (x.1, base + b.top)], style)
        });
        chart.draw_series(boxes).map_err(drawing)?;
    }
    Ok(())
}

#[derive(Clone, Debug, PartialEq)]
struct Glowing {
    /// First column.
    from: usize,
    /// Column after the last one.
    to: usize,
    bottom: f64,
    top: f64,
    glow: f64,
}

/// Brightness of a point for its share of the triggers. Even one trace among thousands is visible, because it may show
/// the worst case.
fn glow(count: u64, triggers: u64) -> f64 {
    if count == 0 || triggers == 0 {
        return 0.0;
    }
    let share = (1.0 + count as f64).ln() / (1.0 + triggers as f64).ln();
    0.25 + 0.75 * share.min(1.0)
}

fn boxes(trace: &Trace, triggers: u64) -> Vec<Glowing> {
    let low = trace.high.iter();
    let low: Vec<u64> = low.map(|high| triggers.saturating_sub(*high)).collect();
    let thin = 0.04;
    let lines = [
        (&low, LOW - thin, LOW),
        (&trace.high, HIGH, HIGH + thin),
        (&trace.edges, LOW, HIGH),
    ];
    let mut boxes: Vec<Glowing> = Vec::new();
    for (counts, bottom, top) in lines {
        for (column, count) in counts.iter().enumerate() {
            let glow = glow(*count, triggers);
            if glow == 0.0 {
                continue;
            }
            match boxes.last_mut() {
                Some(b) if b.to == column && b.glow == glow && b.top == top => b.to += 1,
                _ => boxes.push(Glowing {
                    from: column,
                    to: column + 1,
                    bottom,
                    top,
                    glow,
                }),
            }
        }
    }
    boxes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> Trace {
        let mut trace = Trace {
            pin: 0,
            high: vec![0, 0, 0, 99, 99, 99, 99, 99, 100, 100],
            edges: vec![0; 10],
        };
        trace.edges[3] = 99;
        trace.edges[8] = 1;
        trace
    }

    #[test]
    fn the_one_late_response_of_a_hundred_still_glows() {
        let boxes = boxes(&trace(), 100);
        let edges: Vec<&Glowing> = boxes.iter().filter(|b| b.top == HIGH).collect();
        assert_eq!((edges[0].from, edges[1].from), (3, 8));
        assert!(edges[1].glow > 0.25 && edges[1].glow < edges[0].glow);
        let low: Vec<&Glowing> = boxes.iter().filter(|b| b.top == LOW).collect();
        assert_eq!((low[0].from, low[0].to, low[0].glow), (0, 3, 1.0));
        assert_eq!((low[1].from, low[1].to), (3, 8));
        assert_eq!(low.len(), 2, "all were high in the end");
    }

    #[test]
    fn nothing_glows_without_a_trigger() {
        assert_eq!(boxes(&Trace::default(), 100), []);
        assert_eq!(boxes(&trace(), 0), []);
    }
}
