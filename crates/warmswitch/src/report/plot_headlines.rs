// SPDX-License-Identifier: MIT OR Apache-2.0
//! The headlines as bars: each kernel's figure in proportion to the first one's.

use anyhow::Result;
use plotters::prelude::*;

use results::figures::figure::{figure, thousands};
use results::figures::headline::{self, Line};
use results::render::plot::{Area, COLOURS, Hover, drawing, keys, titled};
use results::runs::point::short_kernel;

const WIDTH: u32 = 480;
/// Bars begin here, and end here at the largest ratio.
const LEFT: i32 = 12;
const RIGHT: i32 = 360;
/// Of a bar.
const HEIGHT: i32 = 15;

/// A group of bars a headline, as SVG text; empty without headlines.
pub fn bars(lines: &[&Line]) -> Result<String> {
    let kernels = headline::kernels(lines);
    let all = lines
        .iter()
        .flat_map(|line| kernels.iter().filter_map(|kernel| line.ratio(kernel)));
    let of_papers = lines.iter().filter_map(|line| line.paper.as_ref());
    let of_papers = of_papers.flat_map(|paper| paper.ratios.iter().map(|(_, ratio)| *ratio));
    let largest = all.chain(of_papers).fold(1.0, f64::max);
    let group = 30 + HEIGHT * kernels.len() as i32;
    let mut svg = String::new();
    let hover = {
        let size = (WIDTH, (60 + group * lines.len() as i32) as u32);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).map_err(drawing)?;
        let names = kernels.iter().map(|k| short_kernel(k).to_string());
        let title = match lines.iter().any(|line| line.paper.is_some()) {
            true => "In brackets: the ratio to the first kernel; black marks: the paper's",
            false => "In brackets: the ratio to the first kernel",
        };
        let names: Vec<String> = names.collect();
        let mut drawn = Bars {
            area: titled(&root, title, &keys(&names, &COLOURS))?,
            largest,
            hover: Hover::default(),
        };
        for (line, n) in lines.iter().zip(0..) {
            let top = 4 + group * n;
            let what = Text::new(line.what(), (LEFT, top), words(13));
            drawn.area.draw(&what).map_err(drawing)?;
            for ((kernel, colour), bar) in kernels.iter().zip(COLOURS).zip(0..) {
                drawn.bar(line, kernel, colour, top + 18 + HEIGHT * bar)?;
            }
        }
        root.present().map_err(drawing)?;
        drawn.hover
    };
    Ok(hover.over(svg))
}

fn words(size: i32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&BLACK)
}

struct Bars<'a> {
    area: Area<'a>,
    largest: f64,
    hover: Hover,
}

impl Bars<'_> {
    fn x(&self, ratio: f64) -> i32 {
        LEFT + (f64::from(RIGHT - LEFT) * ratio / self.largest) as i32
    }

    /// A kernel's, with its figure and the paper's mark; none without a figure.
    fn bar(&mut self, line: &Line, kernel: &str, colour: RGBColor, y: i32) -> Result<()> {
        let Some(ratio) = line.ratio(kernel) else {
            return Ok(());
        };
        let end = self.x(ratio);
        let corners = [(LEFT, y), (end, y + HEIGHT - 2)];
        let of_paper = line.paper.iter().flat_map(|paper| &paper.ratios);
        let marks = of_paper.filter(|(of, _)| of == kernel);
        let marks: Vec<i32> = marks.map(|(_, ratio)| self.x(*ratio)).collect();
        // Behind the bar, and behind a mark that is.
        let behind = marks.iter().copied().fold(end, i32::max) + 6;
        let figure = Text::new(line.cell(kernel), (behind, y), words(12));
        // Where the area begins in the whole chart.
        let above = self.area.get_pixel_range().1.start;
        let here = corners.map(|(x, y)| (x, y + above));
        self.hover.bar(here, words_of(line, kernel));
        self.area
            .draw(&Rectangle::new(corners, colour.filled()))
            .and_then(|()| self.area.draw(&figure))
            .map_err(drawing)?;
        for x in marks {
            let mark = [(x - 1, y - 1), (x + 1, y + HEIGHT - 1)];
            self.area
                .draw(&Rectangle::new(mark, BLACK.filled()))
                .map_err(drawing)?;
        }
        Ok(())
    }
}

/// A figure with its interval and what a paper has.
fn words_of(line: &Line, kernel: &str) -> String {
    let said = line.figure(kernel).map(|m| {
        let name = short_kernel(kernel);
        let samples = m.samples.map(|n| format!(", {} samples", thousands(n)));
        format!(
            "{name}: {} {}{}",
            figure(m),
            m.unit,
            samples.unwrap_or_default()
        )
    });
    let paper = line
        .paper
        .iter()
        .map(|paper| (&paper.source, &paper.ratios));
    let ratios = paper.flat_map(|(source, ratios)| ratios.iter().map(move |r| (source, r)));
    let theirs = ratios.filter(|(_, (of, _))| of == kernel);
    let theirs =
        theirs.map(|(source, (_, ratio))| format!("; the paper's ratio: {ratio:.2} ({source})"));
    said.into_iter().chain(theirs).collect()
}
