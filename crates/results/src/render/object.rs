// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns a result, as `--json` prints it, into tables with units. The first table has the single numbers. Next comes a
//! table for each group of objects with equal keys, and finally a table for each array.

use serde_json::{Map, Value};

use crate::figures::figure::digits;
use crate::render::grid::Grid;

/// Units at the end of a key.
const UNITS: [&str; 4] = ["us", "ns", "s", "hz"];

/// Keys of a distribution, in the order of the columns.
const SPREAD: [&str; 6] = ["count", "min", "avg", "median", "max", "sd"];

/// Makes the tables of a result.
pub fn tables(result: &Map<String, Value>) -> Vec<Grid> {
    let mut found = Found {
        numbers: Grid::new(1, ["what", "value", "unit"]),
        alike: Vec::new(),
        rows: Vec::new(),
    };
    found.take(result, "");
    let mut all = vec![found.numbers];
    all.retain(|grid| !grid.rows.is_empty());
    all.extend(found.alike.into_iter().map(|(_, grid)| grid));
    all.extend(found.rows);
    all
}

/// Tables made so far.
struct Found {
    numbers: Grid,
    /// Keys of the objects, with their table.
    alike: Vec<(Vec<String>, Grid)>,
    rows: Vec<Grid>,
}

impl Found {
    /// Adds all entries of an object. `prefix` precedes their names.
    fn take(&mut self, object: &Map<String, Value>, prefix: &str) {
        for (key, value) in object {
            let name = format!("{prefix}{}", key.replace('_', " "));
            match value {
                Value::Object(inner) if is_flat(inner) => self.together(&name, inner),
                Value::Object(inner) => self.take(inner, &format!("{name}, ")),
                Value::Array(all) => self.rows.extend(of_rows(&name, all)),
                value => {
                    let (name, unit) = unit(&name);
                    self.numbers.add_row([name, &cell(value), unit]);
                }
            }
        }
    }

    /// Adds an object of numbers to the table of objects that have equal keys and an equal unit.
    fn together(&mut self, name: &str, object: &Map<String, Value>) {
        let entries = entries(object);
        let keys: Vec<String> = entries.iter().map(|(key, _)| key.to_string()).collect();
        let (name, unit) = unit(name);
        let is_like = |(others, grid): &(Vec<String>, Grid)| {
            *others == keys && grid.rows.iter().all(|row| row[1] == unit)
        };
        let n = self.alike.iter().position(is_like).unwrap_or_else(|| {
            let headings = ["what".to_string(), "unit".into()].into_iter();
            let headings = headings.chain(keys.iter().map(|key| key.replace('_', " ")));
            self.alike.push((keys.clone(), Grid::new(2, headings)));
            self.alike.len() - 1
        });
        let cells = entries.into_iter().map(|(_, value)| cell(value));
        let row = [name.to_string(), unit.to_string()].into_iter();
        self.alike[n].1.add_row(row.chain(cells));
    }
}

/// Returns the entries of an object. The entries of a distribution come first, in the order of its columns. The other
/// entries follow, ordered by name.
fn entries(object: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let place = |key: &str| SPREAD.iter().position(|known| *known == key);
    let mut entries: Vec<(&str, &Value)> = object.iter().map(|(k, v)| (k.as_str(), v)).collect();
    entries.sort_by_key(|(key, _)| place(key).unwrap_or(SPREAD.len()));
    entries
}

/// Whether the object holds no objects and no arrays.
fn is_flat(object: &Map<String, Value>) -> bool {
    !object.values().any(|v| v.is_object() || v.is_array())
}

/// Makes a table with a row for each object of an array. The entries of an inner object become separate columns.
fn of_rows(name: &str, all: &[Value]) -> Option<Grid> {
    let flat = |value: &Value| {
        let mut cells = Vec::new();
        for (key, value) in value.as_object()? {
            match value.as_object() {
                Some(inner) => cells.extend(entries(inner).into_iter().map(|(k, v)| {
                    let (name, unit) = unit(key);
                    let unit = if k == "count" { "" } else { unit };
                    (
                        format!(
                            "{}\n{}\n{unit}",
                            name.replace('_', " "),
                            k.replace('_', " ")
                        ),
                        cell(v),
                    )
                })),
                None => cells.push((key.replace('_', " "), cell(value))),
            }
        }
        // The rate comes first.
        cells.sort_by_key(|(heading, _)| heading != "hz");
        Some(cells)
    };
    let all: Vec<Vec<(String, String)>> = all.iter().filter_map(flat).collect();
    let widest = all.iter().max_by_key(|cells| cells.len())?;
    let headings: Vec<String> = widest.iter().map(|(heading, _)| heading.clone()).collect();
    let mut grid = Grid::new(1, headings.clone());
    grid.headings[0] = format!("{name}\n{}", grid.headings[0]);
    for cells in &all {
        let cell_below = |heading: &String| {
            let found = cells.iter().find(|(other, _)| other == heading);
            found.map_or("-".to_string(), |(_, cell)| cell.clone())
        };
        grid.add_row(headings.iter().map(cell_below));
    }
    Some(grid)
}

/// Splits a name into the name without its unit, and the unit.
fn unit(name: &str) -> (&str, &str) {
    let parts = name.rsplit_once(['_', ' ']);
    match parts.filter(|(_, unit)| UNITS.contains(unit)) {
        Some((name, unit)) => (name, unit),
        None => (name, ""),
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::Bool(yes) => (if *yes { "yes" } else { "no" }).into(),
        Value::String(text) => text.clone(),
        value if value.is_f64() => value.as_f64().map_or_else(String::new, digits),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_spreads_and_rows_are_tables_in_units() {
        let spread = json!({"count": 2, "min": 38.25, "max": 61.5});
        let result = json!({
            "pulses_sent": 10, "end_s": 2.5, "edges_lost": null, "over": true,
            "to_board": {"taken": 3, "no_room": 0}, "from_board": {"taken": 4, "no_room": 1},
            "served": {"pulses": 9, "first_us": spread, "second_us": null},
            "rates": [{"pulses": 9, "first_us": spread, "hz": 500.0}, {"pulses": 0, "first_us": null, "hz": 900.0}],
        });
        let all = tables(result.as_object().unwrap());
        let text: Vec<String> = all.iter().map(Grid::to_string).collect();
        let text = text.join("\n");
        for part in [
            "pulses sent    ┆    10 ┆",
            "end            ┆  2.50 ┆    s",
            "edges lost     ┆     - ┆",
            "served, pulses ┆     9 ┆",
            "to board   ┆      ┆       0 ┆     3",
            "from board ┆      ┆       1 ┆     4",
            "served, first ┆ us   ┆     2 ┆ 38.2 ┆ 61.5",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert_eq!(all.len(), 4, "{text}");
        assert_eq!(all[3].rows[1], ["900", "-", "-", "-", "0"]);
    }
}
