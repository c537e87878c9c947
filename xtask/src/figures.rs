// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask figures`: checks that the figures in documents equal the figures in `records/*.csv`; `--write` updates
//! them. A comment after a figure names it:
//!
//!     39.27<!-- switch-cost; sam9263; size_kb=0 tasks=2; fcse-guaranteed; process; switch -->
//!
//! `--write` keeps a figure's number of decimals. `A / B` is a ratio, and `A - B` is a difference. `switch.low` is the
//! lower end of the interval, and `load/reply` is a series of a mode. A table can be generated completely from a
//! comment before the table. In this comment, `NAME := TEXT` defines an abbreviation:
//!
//!     <!-- table: size_kb=0,16 tasks=2,16
//!     at := switch-cost; sam9263; size_kb={size_kb} tasks={tasks}
//!     KB = {size_kb}
//!     plain, us = {at}; plain; process; switch : 2
//!     -->

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::root;

/// Value, low end and high end of each figure. The key is "campaign; board; axes; kernel; mode; metric".
type Records = BTreeMap<String, [f64; 3]>;

/// Checks or updates the figures of all documents. Returns failure if a checked figure differs.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let write = match arguments {
        [] => false,
        [one] if one == "--write" => true,
        _ => bail!("usage: cargo xtask figures [--write]"),
    };
    let mut code = ExitCode::SUCCESS;
    for (path, old, new) in differing()? {
        let name = path.display();
        if write {
            fs::write(&path, new).with_context(|| format!("cannot write {name}"))?;
            println!("{name}: written");
        } else {
            for (old, new) in old.lines().zip(new.lines()).filter(|(old, new)| old != new) {
                println!("{name}:\n- {old}\n+ {new}");
            }
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Returns the documents whose figures differ from the records. Each has its path, its current text and its updated
/// text.
pub fn differing() -> Result<Vec<(PathBuf, String, String)>> {
    let records = records()?;
    let mut all = Vec::new();
    for path in documents()? {
        let old = fs::read_to_string(&path)?;
        let new = renewed(&old, &records).with_context(|| path.display().to_string())?;
        if new != old {
            all.push((path, old, new));
        }
    }
    Ok(all)
}

fn documents() -> Result<Vec<PathBuf>> {
    let mut all = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                all.push(path);
            }
        }
    }
    all.sort();
    Ok(all)
}

fn records() -> Result<Records> {
    let mut all = Records::new();
    for entry in fs::read_dir(root().join("records"))? {
        let path = entry?.path();
        let Some(name) = path
            .file_name()
            .and_then(|n| n.to_str()?.strip_suffix(".csv"))
        else {
            continue;
        };
        read(name, &fs::read_to_string(&path)?, &mut all)
            .with_context(|| path.display().to_string())?;
    }
    Ok(all)
}

fn read(campaign: &str, text: &str, all: &mut Records) -> Result<()> {
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [
            board,
            axes,
            kernel,
            mode,
            series,
            metric,
            _,
            value,
            low,
            high,
        ] = cells[..]
        else {
            bail!("expected a line with 10 cells: {line}");
        };
        let mode = match series {
            "" => mode.to_string(),
            series => format!("{mode}/{series}"),
        };
        let key = [campaign, board, axes, kernel, &mode, metric].join("; ");
        all.insert(key, [value.parse()?, low.parse()?, high.parse()?]);
    }
    Ok(())
}

/// Returns the text with the records' figures.
fn renewed(text: &str, records: &Records) -> Result<String> {
    let (mut new, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("<!--") {
        let end = rest[at..]
            .find("-->")
            .context("a comment has no end \"-->\"")?
            + at;
        let comment = rest[at + 4..end].trim();
        let (before, after) = (&rest[..at], &rest[end + 3..]);
        if let Some(table) = comment.strip_prefix("table:") {
            new += &rest[..end + 3];
            new += "\n";
            new += &made(table, records).with_context(|| comment.to_string())?;
            let old = after.trim_start_matches('\n');
            let table = old.lines().take_while(|line| line.starts_with('|'));
            let length: usize = table.map(|line| line.len() + 1).sum();
            rest = old[length.min(old.len())..].trim_start_matches('\n');
            new += if rest.is_empty() { "" } else { "\n" };
        } else if comment.contains(';') {
            let number = |c: char| c.is_ascii_digit() || c == '.' || c == '-' || c == '\u{2212}';
            let digits = before.trim_end_matches(number);
            let old = &before[digits.len()..];
            let decimals = old.split_once('.').map_or(0, |(_, d)| d.len());
            let value = value(comment, records)?;
            new += digits;
            new += &format!("{value:.decimals$}");
            new += &rest[at..end + 3];
            rest = after;
        } else {
            new += &rest[..end + 3];
            rest = after;
        }
    }
    Ok(new + rest)
}

/// Returns the value of "A", "A / B" or "A - B".
fn value(text: &str, records: &Records) -> Result<f64> {
    let one = |text: &str| -> Result<f64> {
        let text = text.trim();
        let (key, which) = match text.strip_suffix(".low") {
            Some(key) => (key, 1),
            None => text.strip_suffix(".high").map_or((text, 0), |key| (key, 2)),
        };
        let found = records.get(key);
        Ok(found.with_context(|| format!("no figure \"{key}\" in records"))?[which])
    };
    if let Some((a, b)) = text.split_once(" / ") {
        return Ok(one(a)? / one(b)?);
    }
    match text.split_once(" - ") {
        Some((a, b)) => Ok(one(a)? - one(b)?),
        None => one(text),
    }
}

/// Makes a table from its comment. The comment has the axes with their values, abbreviations, and a line per column.
fn made(text: &str, records: &Records) -> Result<String> {
    let mut lines = text.lines();
    let axes: Vec<(&str, Vec<&str>)> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|axis| axis.split_once('='))
        .map(|(name, values)| (name, values.split(',').collect()))
        .collect();
    let (words, columns): (Vec<&str>, Vec<&str>) = lines
        .filter(|line| !line.trim().is_empty())
        .partition(|line| line.contains(" := "));
    let words: Vec<(&str, &str)> = (words.iter())
        .filter_map(|line| line.split_once(" := "))
        .collect();
    let columns: Vec<(&str, &str)> = columns
        .into_iter()
        .map(|line| {
            line.split_once(" = ")
                .context("expected a column \"HEADING = FIGURE : DECIMALS\"")
        })
        .collect::<Result<_>>()?;
    let headings: Vec<&str> = columns.iter().map(|(heading, _)| heading.trim()).collect();
    let mut table = format!(
        "| {} |\n|{}\n",
        headings.join(" | "),
        "---:|".repeat(headings.len())
    );
    let mut rows = vec![Vec::new()];
    for (name, values) in &axes {
        let mut longer = Vec::new();
        for row in &rows {
            for value in values {
                let mut row: Vec<(&str, &str)> = Vec::clone(row);
                row.push((name, value));
                longer.push(row);
            }
        }
        rows = longer;
    }
    for row in &rows {
        let mut cells = Vec::new();
        for (_, column) in &columns {
            let mut filled = column.to_string();
            for (name, value) in words.iter().rev().chain(row) {
                filled = filled.replace(&format!("{{{name}}}"), value);
            }
            cells.push(cell(&filled, records)?);
        }
        table += &format!("| {} |\n", cells.join(" | "));
    }
    Ok(table)
}

/// Returns the text of a cell, which consists of plain words or of figures "FIGURE : DECIMALS". Commas separate several
/// figures.
fn cell(text: &str, records: &Records) -> Result<String> {
    let one = |part: &str| -> Result<String> {
        let Some((figure, decimals)) = part.rsplit_once(" : ") else {
            return Ok(part.trim().to_string());
        };
        let decimals: usize = decimals
            .trim()
            .parse()
            .context("expected a number of decimals after \" : \"")?;
        Ok(format!("{:.decimals$}", value(figure, records)?))
    };
    let parts: Result<Vec<String>> = text.split(", ").map(one).collect();
    Ok(parts?.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up() -> Records {
        let mut records = Records::new();
        let text = "board,axes,kernel,mode,series,metric,unit,value,low,high\n\
                    sam,size_kb=0,plain,process,,switch,us,140.138,139.9,140.6\n\
                    sam,size_kb=0,fcse,process,,switch,us,39.272,39.1,39.4\n\
                    sam,hz=50,fcse,load,reply,avg,us,615.2,610,617\n";
        read("cost", text, &mut records).unwrap();
        records
    }

    #[test]
    fn a_figure_is_written_anew_with_its_decimals() {
        let records = made_up();
        let new = |text: &str| renewed(text, &records).unwrap();
        let of = "<!-- cost; sam; size_kb=0; fcse; process; switch -->";
        assert_eq!(
            new(&format!("takes 41.8{of} us")),
            format!("takes 39.3{of} us")
        );
        assert_eq!(new(&format!("**40{of}**")), format!("**39{of}**"));
        let ratio = "<!-- cost; sam; size_kb=0; fcse; process; switch / cost; sam; size_kb=0; plain; process; switch -->";
        assert_eq!(new(&format!("0.3{ratio}")), format!("0.3{ratio}"));
        let low = "<!-- cost; sam; hz=50; fcse; load/reply; avg.low -->";
        assert_eq!(new(&format!("(1{low})")), format!("(610{low})"));
        assert_eq!(new("<!-- SPDX -->\n1"), "<!-- SPDX -->\n1");
        let error = renewed("1<!-- cost; sam; hz=51; fcse; load; avg -->", &records).unwrap_err();
        assert!(error.to_string().contains("hz=51"), "{error}");
    }

    #[test]
    fn a_table_is_made_whole() {
        let text = "<!-- table: size_kb=0\nKB = {size_kb}\n\
                    both = cost; sam; size_kb={size_kb}; plain; process; switch : 0, cost; sam; size_kb={size_kb}; fcse; process; switch : 1\n-->\n\
                    | old |\n|---|\n| 1 |\n\nNext.\n";
        let new = renewed(text, &made_up()).unwrap();
        let end = "-->\n| KB | both |\n|---:|---:|\n| 0 | 140, 39.3 |\n\nNext.\n";
        assert!(new.ends_with(end), "{new}");
        assert_eq!(renewed(&new, &made_up()).unwrap(), new);
    }
}
