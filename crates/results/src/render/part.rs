// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a page consists of.

use crate::render::grid::Grid;

/// A heading with what stands below it.
#[derive(Clone, Default)]
pub struct Part {
    pub heading: String,
    pub text: String,
    pub charts: Vec<Chart>,
    pub tables: Vec<Grid>,
    /// Opened by those who want it.
    pub folded: bool,
}

/// A picture and the name of its file.
#[derive(Clone)]
pub struct Chart {
    pub name: String,
    pub svg: String,
}

impl Chart {
    /// A picture and its name.
    pub fn new(name: &str, svg: String) -> Chart {
        Chart {
            name: name.to_string(),
            svg,
        }
    }
}
