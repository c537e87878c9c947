// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes, colours, markers and legends of all charts. A chart is SVG text.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

/// Width and height of a chart, in pixels.
pub const SIZE: (u32, u32) = (480, 320);
/// Colours that colour-blind readers can tell apart (Okabe and Ito).
pub const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 120, 120),
];

/// Area that a chart is drawn on.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Colours for everything except kernels (Tol's muted scheme). No other data gets the colour of a kernel.
pub const OTHERS: [RGBColor; 7] = [
    RGBColor(51, 34, 136),
    RGBColor(136, 204, 238),
    RGBColor(17, 119, 51),
    RGBColor(204, 102, 119),
    RGBColor(221, 204, 119),
    RGBColor(136, 34, 85),
    RGBColor(140, 140, 140),
];

/// Shape of the points of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A filled circle.
    Disc,
    /// An empty circle.
    Ring,
    /// A filled square.
    Square,
    /// A filled triangle.
    Triangle,
    /// Two crossed diagonals.
    Cross,
}

/// All markers, in the order in which lines get them.
pub const MARKERS: [Marker; 5] = [
    Marker::Disc,
    Marker::Ring,
    Marker::Square,
    Marker::Triangle,
    Marker::Cross,
];

impl Marker {
    /// Draws the marker at a position in pixels.
    pub fn draw(self, area: &Area, (x, y): (i32, i32), colour: RGBColor) -> Result<()> {
        const R: i32 = 4;
        let filled = colour.filled();
        let drawn = match self {
            Marker::Disc => area.draw(&Circle::new((x, y), R, filled)),
            Marker::Ring => area.draw(&Circle::new((x, y), R, colour.stroke_width(2))),
            Marker::Square => area.draw(&Rectangle::new([(x - 3, y - 3), (x + 3, y + 3)], filled)),
            Marker::Triangle => area.draw(&TriangleMarker::new((x, y), R + 1, filled)),
            Marker::Cross => area.draw(&Cross::new((x, y), R, colour.stroke_width(2))),
        };
        drawn.map_err(drawing)
    }
}

/// Entry of a chart's legend.
pub struct Key {
    /// Text of the entry.
    pub name: String,
    /// Colour of the lines or bars that the entry stands for.
    pub colour: RGBColor,
    /// Marker of the points. `None` draws a rectangle in the colour.
    pub marker: Option<Marker>,
}

/// Makes legend entries. The names get the colours in order.
pub fn keys(names: &[String], colours: &[RGBColor]) -> Vec<Key> {
    let colours = colours.iter().cycle();
    let key = |(name, colour): (&String, &RGBColor)| Key {
        name: name.clone(),
        colour: *colour,
        marker: None,
    };
    names.iter().zip(colours).map(key).collect()
}

/// Draws a title, and the legend below the title, where it covers no curve. Returns the rest of the area.
pub fn titled<'a>(root: &Area<'a>, title: &str, keys: &[Key]) -> Result<Area<'a>> {
    const LEFT: i32 = 65;
    let root = root.titled(title, ("sans-serif", 16)).map_err(drawing)?;
    let (width, _) = root.dim_in_pixel();
    let (mut x, mut y) = (LEFT, 2);
    let mut places = Vec::new();
    for key in keys {
        let long = 26 + 6 * key.name.len() as i32;
        if x > LEFT && x + long > width as i32 {
            (x, y) = (LEFT, y + 16);
        }
        places.push((x, y));
        x += long;
    }
    let (top, rest) = root.split_vertically(if keys.is_empty() { 0 } else { y + 16 });
    for (key, (x, y)) in keys.iter().zip(places) {
        match key.marker {
            Some(marker) => marker.draw(&top, (x + 7, y + 6), key.colour)?,
            None => {
                let corners = [(x, y + 1), (x + 14, y + 10)];
                let swatch = Rectangle::new(corners, key.colour.filled());
                top.draw(&swatch).map_err(drawing)?;
            }
        }
        let name = Text::new(key.name.as_str(), (x + 18, y), ("sans-serif", 12));
        top.draw(&name).map_err(drawing)?;
    }
    Ok(rest)
}

/// Texts that a browser shows at the mouse pointer. Each text belongs to a rectangle, in pixels of the whole chart.
#[derive(Default)]
pub struct Hover(Vec<([i32; 4], String)>);

impl Hover {
    /// Adds the text of a point.
    pub fn point(&mut self, (x, y): (i32, i32), text: String) {
        self.0.push(([x - 6, y - 6, x + 6, y + 6], text));
    }

    /// Adds the text of a bar, which is given by two opposite corners.
    pub fn bar(&mut self, [(a, b), (c, d)]: [(i32, i32); 2], text: String) {
        self.0
            .push(([a.min(c), b.min(d), a.max(c), b.max(d)], text));
    }

    /// Puts the rectangles with their texts over the chart.
    pub fn over(self, mut svg: String) -> String {
        let Some(end) = svg.rfind("</svg>") else {
            return svg;
        };
        let mut over = String::new();
        for ([left, top, right, bottom], text) in self.0 {
            let (width, height) = (right - left, bottom - top);
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            let _ = writeln!(
                over,
                "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"transparent\">\
                 <title>{text}</title></rect>"
            );
        }
        svg.insert_str(end, &over);
        svg
    }
}

/// Formats the number at a tick of an axis, without trailing zeros.
pub fn tick(x: &f64) -> String {
    let rounded = (x * 1000.0).round() / 1000.0;
    // Adding 0 turns "-0" into "0".
    (rounded + 0.0).to_string()
}

/// Converts an error of the drawing library.
pub fn drawing<E: std::fmt::Display>(error: E) -> anyhow::Error {
    anyhow!("cannot draw the chart: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_shown_where_its_point_is() {
        let mut hover = Hover::default();
        hover.point((10, 20), "a < b".into());
        hover.bar([(5, 9), (1, 2)], "c".into());
        let svg = hover.over("<svg>\n</svg>\n".to_string());
        assert!(svg.contains("<rect x=\"4\" y=\"14\" width=\"12\""));
        assert!(svg.contains("<title>a &lt; b</title>") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("<rect x=\"1\" y=\"2\" width=\"4\" height=\"7\""));
    }
}
