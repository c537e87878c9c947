// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words in colour, if standard output is a terminal and NO_COLOR is not set.

use std::io::Write as _;

use clap::builder::styling::{AnsiColor, Style};

use crate::output;

/// Words that begin a line, with their colours.
const WORDS: [(&str, AnsiColor); 6] = [
    ("holds:", AnsiColor::Green),
    ("open:", AnsiColor::Yellow),
    ("warning:", AnsiColor::Yellow),
    ("FAILS:", AnsiColor::Red),
    ("FAILED:", AnsiColor::Red),
    ("error[", AnsiColor::Red),
];

/// Prints a text. If `WORDS` has the first word of a line, this word is in colour.
pub fn print(text: &str) {
    output::judge(anstream::stdout().write_all(coloured(text).as_bytes()));
}

fn coloured(text: &str) -> String {
    text.split_inclusive('\n').map(line).collect()
}

fn line(line: &str) -> String {
    let found = WORDS.iter().find(|(word, _)| line.starts_with(word));
    let Some((word, colour)) = found else {
        return line.to_string();
    };
    // The kind of a report gets the colour, too: `error[stale-read]`.
    let end = match word.ends_with('[') {
        true => line.find(']').map_or(word.len(), |at| at + 1),
        false => word.len(),
    };
    let style = Style::new().bold().fg_color(Some((*colour).into()));
    let (word, rest) = line.split_at(end);
    format!("{style}{word}{style:#}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_at_the_beginning_of_a_line_are_coloured_and_nothing_else_changes() {
        let text = "holds: it holds: yes\nerror[stale-read]: old\nno warning: here\n";
        let coloured = coloured(text);
        assert_eq!(coloured.matches("\u{1b}[0m").count(), 2, "{coloured:?}");
        assert!(coloured.contains("\u{1b}[0m: old\n"), "{coloured:?}");
        let plain = anstream::adapter::strip_str(&coloured).to_string();
        assert_eq!(plain, text);
    }
}
