// SPDX-License-Identifier: MIT OR Apache-2.0
//! A changed number of a board file, such as `caches.dcache_bytes=32K`. The file itself does not change.

use super::reader::SpecError;
use crate::suggest::did_you_mean;
use std::fmt;
use std::str::FromStr;
use toml::{Table, Value};

/// Name that messages use in place of a file name.
const PLACE: &str = "--set";
/// The entry in `[sources]` for changed numbers: key and text.
const SOURCE: (&str, &str) = ("--set", "set by the user, instead of the board file's");

/// A key and its new value, as the user wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    key: String,
    value: String,
}

impl Change {
    /// Returns the key of the number.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

impl FromStr for Change {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Change, SpecError> {
        // In the name of a board, a plus separates the changes.
        let pair = text.split_once('=').filter(|_| !text.contains('+'));
        match pair {
            Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
                Ok(Change {
                    key: key.trim().to_owned(),
                    value: value.trim().to_owned(),
                })
            }
            _ => Err(error(
                text,
                "is not KEY=VALUE, as in caches.dcache_bytes=32K".to_owned(),
            )),
        }
    }
}

fn error(key: &str, problem: String) -> SpecError {
    SpecError {
        file: PLACE.to_owned(),
        key: key.to_owned(),
        problem,
    }
}

/// Changes the table of a board file. A change of a cache also removes the cache type register `ctr`, because `ctr`
/// describes the caches of the file. If `ctr` is changed too, it stays.
pub(super) fn apply(root: &mut Table, changes: &[Change]) -> Result<(), SpecError> {
    if changes.is_empty() {
        return Ok(());
    }
    let keys = numbers(root, "");
    for change in changes {
        let key = change.key.as_str();
        if !keys.iter().any(|known| known == key) {
            let near = meant(key, &keys);
            let all = "`warmswitch list keys --board BOARD` lists all keys";
            let problem = format!("is not the key of a number of this board{near} {all}");
            return Err(error(key, problem));
        }
        let mut number = Table::new();
        number.insert("value".to_owned(), number_of(key, &change.value)?);
        number.insert("source".to_owned(), SOURCE.0.into());
        number.insert("confidence".to_owned(), "E".into());
        let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
        if let Some(table) = inner(root, section) {
            table.insert(name.to_owned(), Value::Table(number));
            if section == "caches"
                && name != "ctr"
                && !changes.iter().any(|c| c.key == "caches.ctr")
            {
                table.remove("ctr");
            }
        }
    }
    if let Some(sources) = inner(root, "sources") {
        sources.insert(SOURCE.0.to_owned(), SOURCE.1.into());
    }
    Ok(())
}

fn inner<'a>(root: &'a mut Table, path: &str) -> Option<&'a mut Table> {
    let mut parts = path.split('.').filter(|part| !part.is_empty());
    parts.try_fold(root, |table, part| table.get_mut(part)?.as_table_mut())
}

/// Suggests the key that has the most words in common with the typed key: `caches.dcache_bytes` for `dcache`. If no key
/// has a word in common, suggests the nearest spelling.
fn meant(typed: &str, keys: &[String]) -> String {
    let lower = typed.to_lowercase();
    let words: Vec<&str> = lower
        .split(['.', '_'])
        .filter(|word| word.len() > 2)
        .collect();
    let shared = |key: &str| words.iter().filter(|word| key.contains(**word)).count();
    let near = |key: &str| strsim::jaro_winkler(&lower, key);
    let best = keys.iter().max_by(|a, b| {
        let by_words = shared(a).cmp(&shared(b));
        by_words.then(near(a).total_cmp(&near(b)))
    });
    match best {
        Some(key) if shared(key) > 0 => format!("; did you mean \"{key}\"?"),
        _ => did_you_mean(typed, keys) + ";",
    }
}

/// Returns the key paths of all numbers.
pub(super) fn numbers(table: &Table, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in table {
        let full = match path {
            "" => key.clone(),
            path => format!("{path}.{key}"),
        };
        match value {
            Value::Table(inner) if inner.contains_key("value") => found.push(full),
            Value::Table(inner) => found.extend(numbers(inner, &full)),
            Value::Integer(_) | Value::Float(_) => found.push(full),
            _ => {}
        }
    }
    found
}

/// Reads a number in the forms `0x4000`, `32K`, `200MHz` and `1.5`.
fn number_of(key: &str, text: &str) -> Result<Value, SpecError> {
    let plain = text.replace('_', "");
    if let Some(hex) = plain.strip_prefix("0x") {
        let number = i64::from_str_radix(hex, 16);
        return number
            .map(Value::Integer)
            .map_err(|_| error(key, format!("\"{text}\" is not a number")));
    }
    let end = plain
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(plain.len());
    let (digits, unit) = plain.split_at(end);
    let factor = match unit {
        "" => 1,
        unit => *units(key)
            .iter()
            .find(|(names, _)| names.contains(&unit))
            .map(|(_, factor)| factor)
            .ok_or_else(|| {
                let known: Vec<&str> = units(key).iter().map(|(names, _)| names[0]).collect();
                let problem = match known.as_slice() {
                    [] => format!("\"{text}\": this number has no unit: remove \"{unit}\""),
                    known => format!(
                        "\"{text}\": unknown unit \"{unit}\": use {}",
                        known.join(", ")
                    ),
                };
                error(key, problem)
            })?,
    };
    if let Ok(number) = digits.parse::<i64>() {
        let product = number.checked_mul(factor);
        return product
            .map(Value::Integer)
            .ok_or_else(|| error(key, format!("{text} is too large")));
    }
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() => {
            let product = number * factor as f64;
            let whole = factor != 1 && product.fract() == 0.0 && product.abs() < 9e15;
            Ok(match whole {
                true => Value::Integer(product as i64),
                false => Value::Float(product),
            })
        }
        _ => Err(error(key, format!("\"{text}\" is not a number"))),
    }
}

type Units = &'static [(&'static [&'static str], i64)];

/// Returns the units that the number of a key can have. The first is the unit of the key itself.
fn units(key: &str) -> Units {
    const BYTES: Units = &[
        (&["B"], 1),
        (&["K", "KB", "KiB"], 1 << 10),
        (&["M", "MB", "MiB"], 1 << 20),
    ];
    const HZ: Units = &[
        (&["Hz"], 1),
        (&["kHz", "k"], 1000),
        (&["MHz", "M"], 1_000_000),
        (&["GHz", "G"], 1_000_000_000),
    ];
    const NS: Units = &[(&["ns"], 1), (&["us"], 1000)];
    if key.ends_with("_bytes") || key == "ram.size" {
        BYTES
    } else if key.ends_with("_hz") {
        HZ
    } else if key.ends_with("_ns") {
        NS
    } else {
        &[]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(key: &str, text: &str) -> Result<Value, String> {
        number_of(key, text).map_err(|e| e.to_string())
    }

    #[test]
    fn numbers_are_read_in_the_units_of_their_keys() {
        assert_eq!(value("caches.dcache_bytes", "32K"), Ok(32768.into()));
        assert_eq!(value("ram.size", "64MB"), Ok((64 << 20).into()));
        assert_eq!(value("clocks.cpu_hz", "200MHz"), Ok(200_000_000.into()));
        assert_eq!(value("clocks.cpu_hz", "198.656MHz"), Ok(198_656_000.into()));
        assert_eq!(value("sdram.banks", "0x8"), Ok(8.into()));
        assert_eq!(value("sdram.clk_per_word_bus", "1.5"), Ok(1.5.into()));
        let wrong = value("caches.ways", "4K").unwrap_err();
        assert_eq!(
            wrong,
            "--set: caches.ways: \"4K\": this number has no unit: remove \"K\""
        );
        let wrong = value("clocks.cpu_hz", "200KB").unwrap_err();
        assert!(
            wrong.ends_with("unknown unit \"KB\": use Hz, kHz, MHz, GHz"),
            "{wrong}"
        );
        for bad in ["x", "0xg", "1e999", "99999999999999999G", "-", "K"] {
            assert!(value("clocks.cpu_hz", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_part_of_a_key_finds_it_and_a_slip_of_the_pen_too() {
        let keys = [
            "caches.icache_bytes",
            "caches.dcache_bytes",
            "clocks.cpu_hz",
            "ram.size",
        ];
        let keys = keys.map(str::to_owned);
        for (typed, key) in [
            ("dcache", "caches.dcache_bytes"),
            ("DCACHE_SIZE", "caches.dcache_bytes"),
            ("caches.dcahe_bytes", "caches.dcache_bytes"),
            ("cpu_mhz", "clocks.cpu_hz"),
            ("ram", "ram.size"),
            ("ran.sise", "ram.size"),
        ] {
            assert!(
                meant(typed, &keys).contains(&format!("\"{key}\"?")),
                "{typed}"
            );
        }
        assert!(meant("zz", &keys).contains("there are: caches.icache_bytes, "));
    }

    #[test]
    fn a_change_is_a_key_and_a_value() {
        let change: Change = "a.b=1".parse().unwrap();
        assert_eq!(change.to_string(), "a.b=1");
        for bad in ["", "a", "=1", "a=", "a=+1"] {
            assert!(bad.parse::<Change>().is_err(), "{bad}");
        }
    }
}
