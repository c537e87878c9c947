// SPDX-License-Identifier: MIT OR Apache-2.0
//! The headlines as bars: each kernel's figure in proportion to the first one's.

use anyhow::Result;
use plotters::prelude::*;

use crate::figures::headline::{self, Line};
use crate::runs::point::short_kernel;
use crate::sheets::plot::{COLOURS, drawing, titled};

const WIDTH: u32 = 480;
/// Bars begin here, and end here at the largest ratio.
const LEFT: i32 = 12;
const RIGHT: i32 = 360;
/// Of a bar.
const HEIGHT: i32 = 15;

/// A group of bars a headline, as SVG text; empty without headlines.
pub fn bars(lines: &[&Line]) -> Result<String> {
    let kernels = headline::kernels(lines);
    let ratio = |line: &Line, kernel: &str| {
        let first = line.figures.first()?;
        let found = line.figures.iter().find(|m| m.place.kernel == kernel)?;
        (first.value > 0.0).then(|| found.value / first.value)
    };
    let all = lines
        .iter()
        .flat_map(|line| kernels.iter().filter_map(|kernel| ratio(line, kernel)));
    let largest = all.fold(1.0, f64::max);
    let group = 30 + HEIGHT * kernels.len() as i32;
    let mut svg = String::new();
    {
        let size = (WIDTH, (60 + group * lines.len() as i32) as u32);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).map_err(drawing)?;
        let names = kernels.iter().map(|k| short_kernel(k).to_string());
        let title = match lines.iter().any(|line| line.paper.is_some()) {
            true => "In proportion to the first kernel; marks: the paper's",
            false => "In proportion to the first kernel",
        };
        let area = titled(&root, title, &names.collect::<Vec<_>>())?;
        for (line, n) in lines.iter().zip(0..) {
            let top = 4 + group * n;
            let words = |size, colour| ("sans-serif", size).into_font().color(colour);
            let what = Text::new(line.what(), (LEFT, top), words(13, &BLACK));
            area.draw(&what).map_err(drawing)?;
            for ((kernel, colour), bar) in kernels.iter().zip(COLOURS).zip(0..) {
                let Some(ratio) = ratio(line, kernel) else {
                    continue;
                };
                let y = top + 18 + HEIGHT * bar;
                let end = LEFT + (f64::from(RIGHT - LEFT) * ratio / largest) as i32;
                let corners = [(LEFT, y), (end, y + HEIGHT - 2)];
                let figure = Text::new(line.cell(kernel), (end + 6, y), words(12, &BLACK));
                area.draw(&Rectangle::new(corners, colour.filled()))
                    .and_then(|()| area.draw(&figure))
                    .map_err(drawing)?;
                let of_paper = line.paper.iter().flat_map(|paper| &paper.ratios);
                for (_, ratio) in of_paper.filter(|(of, _)| of == kernel) {
                    let x = LEFT + (f64::from(RIGHT - LEFT) * ratio / largest) as i32;
                    let mark = [(x - 1, y - 1), (x + 1, y + HEIGHT - 1)];
                    area.draw(&Rectangle::new(mark, BLACK.filled()))
                        .map_err(drawing)?;
                }
            }
        }
        root.present().map_err(drawing)?;
    }
    Ok(svg)
}
