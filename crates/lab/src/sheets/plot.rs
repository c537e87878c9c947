// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all charts share. They are SVG text.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

/// Of a chart, in pixels.
pub const SIZE: (u32, u32) = (480, 320);
/// Colours told apart by colour-blind readers, too (Okabe and Ito).
pub const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 120, 120),
];

/// Where charts are drawn.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws a title and the names of the colours below it, where they cover no curve; gives the rest
/// of the area.
pub fn titled<'a>(root: &Area<'a>, title: &str, names: &[String]) -> Result<Area<'a>> {
    const LEFT: i32 = 65;
    let root = root.titled(title, ("sans-serif", 16)).map_err(drawing)?;
    let (width, _) = root.dim_in_pixel();
    let (mut x, mut y) = (LEFT, 2);
    let mut places = Vec::new();
    for name in names {
        let long = 26 + 6 * name.len() as i32;
        if x > LEFT && x + long > width as i32 {
            (x, y) = (LEFT, y + 16);
        }
        places.push((x, y));
        x += long;
    }
    let (key, rest) = root.split_vertically(if names.is_empty() { 0 } else { y + 16 });
    for ((name, (x, y)), colour) in names.iter().zip(places).zip(COLOURS.iter().cycle()) {
        let corners = [(x, y + 1), (x + 14, y + 10)];
        key.draw(&Rectangle::new(corners, colour.filled()))
            .and_then(|()| key.draw(&Text::new(name.as_str(), (x + 18, y), ("sans-serif", 12))))
            .map_err(drawing)?;
    }
    Ok(rest)
}

/// A number at an axis, without a fraction that is zero.
pub fn tick(x: &f64) -> String {
    let rounded = (x * 1000.0).round() / 1000.0;
    // Not "-0".
    (rounded + 0.0).to_string()
}

/// An error of the drawing library.
pub fn drawing<E: std::fmt::Display>(error: E) -> anyhow::Error {
    anyhow!("cannot draw the chart: {error}")
}
