// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renders the report of one experiment as Markdown, without charts.

use std::fmt::Write as _;

use anyhow::Result;

use crate::report::assumptions;
use crate::report::material::Material;
use crate::report::page;
use crate::report::table;
use results::figures::headline::{self, Line};
use results::render::grid::Grid;
use results::render::part::Part;

/// Renders the report.
pub fn text(material: &Material) -> Result<String> {
    let (results, campaign) = (&material.results, material.campaign);
    let mut text = format!("# {}\n\n", material.experiment.title);
    let lines: Vec<&Line> = results.headlines.iter().collect();
    if let Some(sentence) = headline::sentence(&lines) {
        let _ = writeln!(text, "**{}**\n", escaped(&sentence));
    }
    let on = assumptions::measured_on(material.runs.iter(), &[]);
    if !on.is_empty() {
        let _ = writeln!(text, "{}\n", escaped(&on));
    }
    let command = material.command();
    let (have, planned) = (campaign.runs.len(), campaign.planned);
    let _ = writeln!(
        text,
        "`{command}` reproduces it; {have} of {planned} points are measured.\n"
    );
    if !lines.is_empty() {
        text.push_str(&grid(&table::headlines(&lines)));
    }
    for v in &results.verdicts {
        let (word, reason) = (v.word(), v.reason());
        let sentence = format!("{} ({}). {reason}.", v.text, v.source);
        let _ = writeln!(text, "- **{word}**: {}", escaped(&sentence));
    }
    for entry in &material.experiment.not_applicable {
        let _ = writeln!(text, "- not applicable: {}", escaped(&entry.to_string()));
    }
    for warning in &results.warnings {
        let _ = writeln!(text, "- warning: {}", escaped(warning));
    }
    text.push('\n');
    for part in page::parts(material)? {
        text.push_str(&of_part(&part));
    }
    Ok(text)
}

fn of_part(part: &Part) -> String {
    let mut text = format!("## {}\n\n", escaped(&part.heading));
    if !part.text.is_empty() {
        let _ = writeln!(text, "{}\n", escaped(&part.text));
    }
    text.extend(part.tables.iter().map(grid));
    text
}

/// Renders a table. Numbers are aligned to the right.
fn grid(grid: &Grid) -> String {
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let lines = (0..grid.headings.len()).map(|n| if n < grid.texts { "---|" } else { "---:|" });
    let rows = grid.rows.iter().map(|cells| row(cells));
    format!(
        "{}|{}\n{}\n",
        row(&grid.headings),
        lines.collect::<String>(),
        rows.collect::<String>()
    )
}

/// Puts a text on one line, and escapes the special characters of Markdown.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.trim().chars() {
        match c {
            '\n' => escaped.push(' '),
            '|' | '*' | '_' | '<' | '>' | '`' | '[' | ']' | '\\' => escaped.extend(['\\', c]),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::material::with_made_up;

    #[test]
    fn a_page_without_its_pictures() {
        let text = with_made_up(text).unwrap();
        assert!(
            text.starts_with("# What changing the address space costs"),
            "{text}"
        );
        assert!(
            text.contains("`warmswitch run switch-cost` reproduces it"),
            "{text}"
        );
        assert!(text.contains("\n|---|"), "{text}");
        for line in text.lines().filter(|line| line.starts_with('|')) {
            assert!(line.ends_with('|'), "{line}");
        }
    }

    #[test]
    fn what_could_be_a_mark_is_none() {
        assert_eq!(escaped("a|b *c* d_e\n<f>"), "a\\|b \\*c\\* d\\_e \\<f\\>");
    }
}
