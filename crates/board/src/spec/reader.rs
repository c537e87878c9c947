// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a TOML file in which every number has an origin.
//!
//! A number is `{ value = 7, source = "key of [sources]", confidence = "D" }`. If its table has `source` and
//! `confidence`, it can be a plain number. Messages name the file, the key, the mistake, and the nearest valid name.

use super::change::{self, Change};
use crate::suggest::did_you_mean;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use toml::{Table, Value};

/// A mistake in a board or machine file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {key}: {problem}")]
pub struct SpecError {
    /// The file, as the user named it.
    pub file: String,
    /// Path of the key, such as `clocks.cpu_hz`. If the file is not valid TOML, a line number.
    pub key: String,
    /// What is wrong, and how to correct it.
    pub problem: String,
}

/// How reliable a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Read in a vendor manual, a device tree or a paper.
    Documented,
    /// Follows from code or from documented bit fields.
    Inferred,
    /// Recalled from a manual, without reading it again.
    Recalled,
    /// Engineering estimate, to be calibrated.
    Estimated,
}

impl Confidence {
    fn parse(letter: &str) -> Option<Confidence> {
        match letter {
            "D" => Some(Confidence::Documented),
            "I" => Some(Confidence::Inferred),
            "R" => Some(Confidence::Recalled),
            "E" => Some(Confidence::Estimated),
            _ => None,
        }
    }

    /// Returns the letter that the files use.
    pub fn letter(self) -> char {
        match self {
            Confidence::Documented => 'D',
            Confidence::Inferred => 'I',
            Confidence::Recalled => 'R',
            Confidence::Estimated => 'E',
        }
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

/// One number of a file with its origin, for tables and reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// Path of the key, such as `clocks.cpu_hz`.
    pub key: String,
    /// The number. The suffix of the key is its unit.
    pub value: f64,
    /// Source of the number, in words.
    pub source: String,
    /// How reliable the number is.
    pub confidence: Confidence,
}

/// The allowed numbers between the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// All numbers, including fractions.
    Any,
    /// Multiples of this number.
    Of(u64),
    /// Powers of two.
    PowerOfTwo,
}

/// The values that the reader accepts for a number. The bounds depend on the file's other numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Lowest accepted value.
    pub lowest: f64,
    /// Highest accepted value.
    pub highest: f64,
    /// Accepted values between the bounds.
    pub step: Step,
    /// The unit. It is empty for counts and addresses.
    pub unit: &'static str,
}

/// A parsed file.
pub(super) struct Document {
    file: String,
    root: Table,
    sources: BTreeMap<String, String>,
    quantities: RefCell<Vec<Quantity>>,
    limits: RefCell<BTreeMap<String, Limits>>,
}

impl Document {
    /// Parses `text`. `file` is its name in messages.
    pub fn parse(file: &str, text: &str) -> Result<Document, SpecError> {
        Document::changed(file, text, &[])
    }

    /// Parses `text` and changes some of its numbers.
    pub fn changed(file: &str, text: &str, changes: &[Change]) -> Result<Document, SpecError> {
        let mut root: Table = text.parse().map_err(|e: toml::de::Error| {
            let offset = e.span().map_or(0, |s| s.start.min(text.len()));
            let line = text.as_bytes()[..offset]
                .iter()
                .filter(|&&b| b == b'\n')
                .count()
                + 1;
            SpecError {
                file: file.to_owned(),
                key: format!("line {line}"),
                problem: e.message().trim().replace('\n', ", "),
            }
        })?;
        change::apply(&mut root, changes)?;
        let mut document = Document {
            file: file.to_owned(),
            root,
            sources: BTreeMap::new(),
            quantities: RefCell::default(),
            limits: RefCell::default(),
        };
        let error = |key: &str, problem: &str| document.error(key.to_owned(), problem.to_owned());
        let mut sources = BTreeMap::new();
        if let Some(value) = document.root.get("sources") {
            let table = value
                .as_table()
                .ok_or_else(|| error("sources", "is not a table"))?;
            for (key, value) in table {
                let text = value.as_str().filter(|t| !t.trim().is_empty());
                let problem = "is not a text, or is empty";
                let text = text.ok_or_else(|| error(&format!("sources.{key}"), problem))?;
                sources.insert(key.clone(), text.to_owned());
            }
        }
        document.sources = sources;
        Ok(document)
    }

    /// Returns the top level, which may have `keys` and `sources`.
    pub fn root(&self, keys: &[&str]) -> Result<Section<'_>, SpecError> {
        let mut keys = keys.to_vec();
        keys.push("sources");
        Section::open(self, String::new(), &self.root, &keys)
    }

    /// Returns every number read so far, in reading order.
    pub fn quantities(&self) -> Vec<Quantity> {
        self.quantities.borrow().clone()
    }

    /// Returns the limits of each number read so far, by key.
    pub fn limits(self) -> BTreeMap<String, Limits> {
        self.limits.into_inner()
    }

    fn error(&self, key: String, problem: String) -> SpecError {
        SpecError {
            file: self.file.clone(),
            key,
            problem,
        }
    }
}

/// A table of a document.
pub(super) struct Section<'a> {
    document: &'a Document,
    path: String,
    table: &'a Table,
}

impl<'a> Section<'a> {
    fn open(
        document: &'a Document,
        path: String,
        table: &'a Table,
        keys: &[&str],
    ) -> Result<Self, SpecError> {
        let section = Section {
            document,
            path,
            table,
        };
        for key in table.keys() {
            if !keys.contains(&key.as_str()) {
                let near = did_you_mean(key, keys);
                return Err(section.error(key, format!("unknown key{near}")));
            }
        }
        Ok(section)
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Makes an error for `key` of this table.
    pub fn error(&self, key: &str, problem: String) -> SpecError {
        self.document.error(self.path_of(key), problem)
    }

    fn required(&self, key: &str) -> Result<&'a Value, SpecError> {
        self.table
            .get(key)
            .ok_or_else(|| self.error(key, "is missing".to_owned()))
    }

    /// Returns the required table `key`, which may have `keys`.
    pub fn section(&self, key: &str, keys: &[&str]) -> Result<Section<'a>, SpecError> {
        let table = self.required(key)?.as_table();
        let table = table.ok_or_else(|| self.error(key, "is not a table".to_owned()))?;
        Section::open(self.document, self.path_of(key), table, keys)
    }

    /// Returns the array of tables `key`, which is empty if the key is missing. Messages call each table by its
    /// `name`.
    pub fn sections(&self, key: &str, keys: &[&str]) -> Result<Vec<Section<'a>>, SpecError> {
        let Some(value) = self.table.get(key) else {
            return Ok(Vec::new());
        };
        let wrong = || self.error(key, format!("is not a list of tables: write [[{key}]]"));
        let mut sections = Vec::new();
        for (i, value) in value.as_array().ok_or_else(wrong)?.iter().enumerate() {
            let table = value.as_table().ok_or_else(wrong)?;
            let name = table.get("name").and_then(Value::as_str);
            let name = name.map_or_else(|| i.to_string(), str::to_owned);
            let path = self.path_of(&format!("{key}.{name}"));
            sections.push(Section::open(self.document, path, table, keys)?);
        }
        Ok(sections)
    }

    /// Returns whether the table has the key.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Returns a text, which must not be empty.
    pub fn text(&self, key: &str) -> Result<String, SpecError> {
        match self.required(key)?.as_str() {
            Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
            _ => Err(self.error(key, "is not a text, or is empty".to_owned())),
        }
    }

    /// Returns a list of texts.
    pub fn texts(&self, key: &str) -> Result<Vec<String>, SpecError> {
        let wrong = || self.error(key, "is not a list of texts".to_owned());
        let list = self.required(key)?.as_array().ok_or_else(wrong)?;
        list.iter()
            .map(|v| v.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect()
    }

    /// Returns an integer, which must be within `range`, and records its origin. `unit` is for messages.
    pub fn integer(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
        unit: &'static str,
    ) -> Result<u64, SpecError> {
        let value = self.quantity(key)?;
        let found = value
            .as_integer()
            .ok_or_else(|| self.error(key, format!("{value} is not a whole number")))?;
        let (low, high) = range.into_inner();
        match u64::try_from(found) {
            Ok(n) if (low..=high).contains(&n) => {}
            _ => {
                let problem = format!("{found} is not from {low} to {high}{unit}");
                return Err(self.error(key, problem));
            }
        }
        let limits = Limits {
            lowest: low as f64,
            highest: high as f64,
            step: Step::Of(1),
            unit: unit.trim(),
        };
        self.limit(key, limits);
        self.record(key, found as f64)?;
        Ok(found as u64)
    }

    /// Returns a decimal number, which must be within `range`, and records its origin.
    pub fn real(&self, key: &str, range: RangeInclusive<f64>) -> Result<f64, SpecError> {
        let value = self.quantity(key)?;
        let found = value
            .as_float()
            .or_else(|| value.as_integer().map(|i| i as f64));
        let found = found.ok_or_else(|| self.error(key, format!("{value} is not a number")))?;
        let (low, high) = range.into_inner();
        if !(low..=high).contains(&found) {
            return Err(self.error(key, format!("{found} is not from {low} to {high}")));
        }
        let limits = Limits {
            lowest: low,
            highest: high,
            step: Step::Any,
            unit: "",
        };
        self.limit(key, limits);
        self.record(key, found)?;
        Ok(found)
    }

    fn limit(&self, key: &str, limits: Limits) {
        let mut all = self.document.limits.borrow_mut();
        all.insert(self.path_of(key), limits);
    }

    /// Narrows the limits of `found`, which was read from `key`, to `range`. Fails with `problem` if the number is
    /// outside.
    pub fn narrow(
        &self,
        (key, found): (&str, u64),
        range: RangeInclusive<u64>,
        problem: impl FnOnce() -> String,
    ) -> Result<(), SpecError> {
        if !range.contains(&found) {
            return Err(self.error(key, problem()));
        }
        let (low, high) = range.into_inner();
        if let Some(limits) = self
            .document
            .limits
            .borrow_mut()
            .get_mut(&self.path_of(key))
        {
            limits.lowest = limits.lowest.max(low as f64);
            limits.highest = limits.highest.min(high as f64);
        }
        Ok(())
    }

    /// Restricts `found`, which was read from `key`, to `step`. Fails if the number does not fit `step`.
    pub fn step(&self, (key, found): (&str, u64), step: Step) -> Result<(), SpecError> {
        let problem = match step {
            Step::PowerOfTwo if !found.is_power_of_two() => {
                format!("{found} is not a power of two")
            }
            Step::Of(n) if !found.is_multiple_of(n) => {
                format!("{found} is not a multiple of {n}")
            }
            _ => {
                let mut all = self.document.limits.borrow_mut();
                if let Some(limits) = all.get_mut(&self.path_of(key)) {
                    limits.step = step;
                }
                return Ok(());
            }
        };
        Err(self.error(key, problem))
    }

    /// Returns the table with the origin of `key`: the table of the number itself, or this table.
    fn origin(&self, key: &str) -> Result<Section<'a>, SpecError> {
        match self.required(key)? {
            Value::Table(own) => {
                let keys = ["value", "source", "confidence"];
                Section::open(self.document, self.path_of(key), own, &keys)
            }
            _ => Ok(Section {
                document: self.document,
                path: self.path.clone(),
                table: self.table,
            }),
        }
    }

    fn quantity(&self, key: &str) -> Result<&'a Value, SpecError> {
        let value = self.required(key)?;
        let origin = self.origin(key)?;
        if !origin.has("source") || !origin.has("confidence") {
            return Err(self.error(
                key,
                "a number needs its origin: \
                 { value = ..., source = \"key of [sources]\", confidence = \"D\" }"
                    .to_owned(),
            ));
        }
        if value.is_table() {
            origin.required("value")
        } else {
            Ok(value)
        }
    }

    fn record(&self, key: &str, value: f64) -> Result<(), SpecError> {
        let origin = self.origin(key)?;
        let source = origin.text("source")?;
        let Some(words) = self.document.sources.get(&source) else {
            let sources: Vec<&String> = self.document.sources.keys().collect();
            let near = did_you_mean(&source, &sources);
            return Err(origin.error("source", format!("\"{source}\" is not in [sources]{near}")));
        };
        let letter = origin.text("confidence")?;
        let confidence = Confidence::parse(&letter).ok_or_else(|| {
            let problem = format!(
                "\"{letter}\" is not D (documented), I (inferred), R (recalled) or E (estimated)"
            );
            origin.error("confidence", problem)
        })?;
        self.document.quantities.borrow_mut().push(Quantity {
            key: self.path_of(key),
            value,
            source: words.clone(),
            confidence,
        });
        Ok(())
    }

    /// Returns the integers of a free-form table by key. A missing table has none.
    pub fn values(&self, key: &str) -> Result<BTreeMap<String, u64>, SpecError> {
        let Some(value) = self.table.get(key) else {
            return Ok(BTreeMap::new());
        };
        let table = value
            .as_table()
            .ok_or_else(|| self.error(key, "is not a table".to_owned()))?;
        let section = Section {
            document: self.document,
            path: self.path_of(key),
            table,
        };
        table
            .keys()
            .map(|k| Ok((k.clone(), section.integer(k, 0..=i64::MAX as u64, "")?)))
            .collect()
    }
}
