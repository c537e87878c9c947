// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renders a sheet as text for the terminal.

use super::sheet::{Kind, Piece, Sheet};

/// Renders a sheet. The last line ends with a newline.
pub fn text(sheet: &Sheet) -> String {
    let columns = sheet.columns();
    let mut lines = vec![sheet.title.clone()];
    for part in &sheet.parts {
        lines.push(String::new());
        if !part.title.is_empty() {
            lines.push(part.title.clone());
        }
        for row in &part.rows {
            let mut line = row.label.clone();
            for placed in columns.place(row) {
                let text = marked(placed.piece);
                line = format!("{line:<0$}{text}", placed.at);
            }
            lines.push(line.trim_end().to_string());
        }
    }
    lines.push(String::new());
    lines.extend(sheet.legend.iter().map(|line| line.to_string()));
    lines.join("\n") + "\n"
}

fn marked(piece: &Piece) -> String {
    let mark = |is: bool, mark: &str| if is { mark.to_string() } else { String::new() };
    match piece.kind {
        Kind::Map => piece.text.clone(),
        _ if piece.text.trim().is_empty() => piece.text.clone(),
        _ => piece.text.clone() + &mark(piece.differs, "~") + &mark(piece.changed, "*"),
    }
}
