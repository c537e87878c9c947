// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections and charts of the report.

use crate::render::grid::Grid;

/// A section of the report.
#[derive(Clone, Default)]
pub struct Part {
    /// Heading, as plain text.
    pub heading: String,
    /// Paragraph below the heading, as plain text; may be empty.
    pub text: String,
    /// Charts of the section, in order.
    pub charts: Vec<Chart>,
    /// Tables of the section, in order.
    pub tables: Vec<Grid>,
    /// Whether the section is closed until the reader opens it.
    pub folded: bool,
}

/// A picture and the name of its file.
#[derive(Clone)]
pub struct Chart {
    /// Name of the file, without ".svg".
    pub name: String,
    /// The picture, as SVG text.
    pub svg: String,
}

impl Chart {
    /// Makes a chart.
    pub fn new(name: &str, svg: String) -> Chart {
        Chart {
            name: name.to_string(),
            svg,
        }
    }
}
