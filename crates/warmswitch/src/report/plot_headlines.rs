// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the headlines as bars. A bar's length is the ratio of a kernel's figure to the first kernel's figure.

use anyhow::Result;
use plotters::prelude::*;

use results::figures::figure::{figure, thousands};
use results::figures::headline::{self, Line};
use results::render::plot::{Area, COLOURS, Hover, drawing, keys, titled};
use results::runs::point::short_kernel;

/// Width of the chart, in pixels.
const WIDTH: u32 = 480;
/// Left end of all bars, in pixels.
const LEFT: i32 = 12;
/// Right end of the longest bar, in pixels.
const RIGHT: i32 = 360;
/// Height of a bar, including the gap to the next bar, in pixels.
const HEIGHT: i32 = 15;

/// Draws one group of bars per headline, as SVG text. Returns an empty text without headlines.
pub fn bars(lines: &[&Line]) -> Result<String> {
    let kernels = headline::kernels(lines);
    let all = lines
        .iter()
        .flat_map(|line| kernels.iter().filter_map(|kernel| line.ratio(kernel)));
    let papers = lines.iter().filter_map(|line| line.paper.as_ref());
    let paper_ratios = papers.flat_map(|paper| paper.ratios.iter().map(|(_, ratio)| *ratio));
    let largest = all.chain(paper_ratios).fold(1.0, f64::max);
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

    /// Draws a kernel's bar, its figure and the paper's mark. Draws nothing if the kernel has no figure.
    fn bar(&mut self, line: &Line, kernel: &str, colour: RGBColor, y: i32) -> Result<()> {
        let Some(ratio) = line.ratio(kernel) else {
            return Ok(());
        };
        let end = self.x(ratio);
        let corners = [(LEFT, y), (end, y + HEIGHT - 2)];
        let paper_ratios = line.paper.iter().flat_map(|paper| &paper.ratios);
        let marks = paper_ratios.filter(|(name, _)| name == kernel);
        let marks: Vec<i32> = marks.map(|(_, ratio)| self.x(*ratio)).collect();
        // The text starts to the right of the bar and its marks.
        let text_x = marks.iter().copied().fold(end, i32::max) + 6;
        let figure = Text::new(line.cell(kernel), (text_x, y), words(12));
        // `hover` takes coordinates relative to the chart, not to this area.
        let top = self.area.get_pixel_range().1.start;
        let in_chart = corners.map(|(x, y)| (x, y + top));
        self.hover.bar(in_chart, tooltip(line, kernel));
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

/// Returns a kernel's figure, the interval of the figure, and the paper's ratio.
fn tooltip(line: &Line, kernel: &str) -> String {
    let measured = line.figure(kernel).map(|m| {
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
    let published = ratios.filter(|(_, (name, _))| name == kernel);
    let published =
        published.map(|(source, (_, ratio))| format!("; the paper's ratio: {ratio:.2} ({source})"));
    measured.into_iter().chain(published).collect()
}
