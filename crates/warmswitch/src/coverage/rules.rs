// SPDX-License-Identifier: MIT OR Apache-2.0
//! `linux/VERSION/coverage.toml`: which functions maintain caches and the TLB, what is left out, and why what is not
//! reached is not.

use std::path::Path;

use anyhow::{Result, bail};
use serde::Deserialize;

use super::text::{Does, Function, Site, Text};
use base::paths::shown;
use base::toml_file;
use supply::mutant::Cp15;

/// The whole file. In names `*` stands for anything; they are without what the compiler appended (`.constprop.0`).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rules {
    /// Source files whose sites count begin so.
    pub folders: Vec<String>,
    /// Functions a call of which is a site.
    pub maintains: Vec<String>,
    /// Functions that one of these names fits, too, and that maintain nothing.
    pub maintains_not: Vec<String>,
    /// Tables of functions in a kernel for several cores.
    #[serde(default)]
    pub table: Vec<Table>,
    /// What does not count.
    #[serde(default)]
    pub excluded: Vec<Excluded>,
    /// Why sites are not reached.
    #[serde(default)]
    pub unreached: Vec<Unreached>,
}

/// A table of functions that is called through: such a call is one of `symbol->slot`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The variable.
    pub symbol: String,
    /// What each word of it is.
    pub slots: Vec<String>,
}

/// Sites that do not count. All keys must fit.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Excluded {
    /// Source file of the function; alone, with `function` or with `section`, the function does not count either.
    pub file: Option<String>,
    /// The function it is in.
    pub function: Option<String>,
    /// The section of the function.
    pub section: Option<String>,
    /// The function it calls.
    pub callee: Option<String>,
    /// The operation of CP15 it is.
    pub op: Option<Cp15>,
    /// Why it does not count.
    pub reason: String,
}

/// Sites that are not reached. All keys must fit.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unreached {
    /// The function they are in.
    pub function: String,
    /// The function they call.
    pub callee: Option<String>,
    /// The operation of CP15 they are.
    pub op: Option<Cp15>,
    /// Only of kernels with one of these names; of all when there is none.
    #[serde(default)]
    pub kernels: Vec<String>,
    /// No way leads there: not in this configuration, or not on these boards.
    #[serde(default)]
    pub dead: bool,
    /// Why.
    pub reason: String,
}

/// Whether `*`s of a pattern can stand for something so that it is `name`.
pub fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|behind| {
            let starts = behind.char_indices().map(|(at, _)| at);
            let mut starts = starts.chain([behind.len()]);
            starts.any(|at| fits(rest, &behind[at..]))
        }),
    }
}

/// Whether what a rule asks for, if it does, is what there is.
fn asks(pattern: Option<&String>, name: Option<&str>) -> bool {
    pattern.is_none_or(|pattern| name.is_some_and(|name| fits(pattern, plain(name))))
}

/// A name without what the compiler appended to it.
pub fn plain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

fn does(callee: Option<&String>, op: Option<Cp15>, does: &Does) -> bool {
    let (called, is) = match does {
        Does::Calls(name) => (Some(name.as_str()), None),
        Does::Operation(op) => (None, Some(*op)),
    };
    asks(callee, called) && op.is_none_or(|op| is.is_some_and(|is| op.covers(is)))
}

impl Rules {
    /// Reads and checks the file.
    pub fn load(path: &Path) -> Result<Rules> {
        let rules: Rules = toml_file::read(path)?;
        let excluded = rules.excluded.iter().map(|e| ("excluded", &e.reason));
        let unreached = rules.unreached.iter().map(|u| ("unreached", &u.reason));
        if let Some((key, _)) = excluded.chain(unreached).find(|(_, r)| r.trim().is_empty()) {
            bail!("{}: {key}.reason: it is empty", shown(path));
        }
        Ok(rules)
    }

    /// Whether a call of this function is a site.
    pub fn maintains(&self, name: &str) -> bool {
        let any = |names: &[String]| names.iter().any(|pattern| fits(pattern, plain(name)));
        any(&self.maintains) && !any(&self.maintains_not)
    }

    /// Whether a function's sites count.
    pub fn counts(&self, function: &Function) -> bool {
        let begins = |folder: &String| function.file.starts_with(folder);
        self.folders.iter().any(begins)
    }

    /// Why a function does not count.
    pub fn excludes(&self, function: &Function) -> Option<usize> {
        let whole =
            |rule: &Excluded| rule.callee.is_none() && rule.op.is_none() && rule.is_of(function);
        self.excluded.iter().position(whole)
    }

    /// Why a site does not count.
    pub fn excludes_site(&self, function: &Function, site: &Site) -> Option<usize> {
        self.excluded.iter().position(|rule| {
            rule.is_of(function) && does(rule.callee.as_ref(), rule.op, &site.does)
        })
    }

    /// The entry that says why a site of this kernel is not reached.
    pub fn why(&self, kernel: &str, text: &Text, site: &Site) -> Option<usize> {
        let covers = |entry: &Unreached| entry.is_for(kernel) && entry.covers(text, site);
        self.unreached.iter().position(covers)
    }
}

impl Excluded {
    fn is_of(&self, function: &Function) -> bool {
        asks(self.function.as_ref(), Some(&function.name))
            && self
                .file
                .as_ref()
                .is_none_or(|file| fits(file, &function.file))
            && (self.section.as_ref()).is_none_or(|section| fits(section, &function.section))
    }
}

impl Unreached {
    /// Whether it is for a kernel of this name.
    pub fn is_for(&self, kernel: &str) -> bool {
        self.kernels.is_empty() || self.kernels.iter().any(|pattern| fits(pattern, kernel))
    }

    /// Whether it tells of this site.
    pub fn covers(&self, text: &Text, site: &Site) -> bool {
        asks(
            Some(&self.function),
            Some(&text.functions[site.function].name),
        ) && does(self.callee.as_ref(), self.op, &site.does)
    }

    /// For notes: what it is about.
    pub fn label(&self) -> String {
        let op = self.op.map(|op| format!(" {op}"));
        let callee = self
            .callee
            .as_ref()
            .map(|callee| format!(" calls {callee}"));
        format!(
            "{}{}{}",
            self.function,
            callee.unwrap_or_default(),
            op.unwrap_or_default()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coherence::suppress::{SERIES, list};

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, expected) in [
            ("flush_*", "flush_cache_all", true),
            ("flush_*", "__flush_cache_all", false),
            ("*_dma_*", "arm926_dma_inv_range", true),
            ("*_dma_*", "arm926_inv_range", false),
            ("*", "", true),
            ("a*b*c", "abbc", true),
            ("a*b*c", "acb", false),
            ("exact", "exactly", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
        assert_eq!(plain("copy.constprop.0"), "copy");
    }

    #[test]
    fn the_list_of_this_tree_is_read() {
        let rules = Rules::load(&list(SERIES, super::super::RULES)).unwrap();
        assert!(rules.maintains("flush_dcache_folio.part.0"));
        assert!(!rules.maintains("flush_work"));
    }

    #[test]
    fn a_bad_list_is_named_by_file_and_key() {
        let path =
            std::env::temp_dir().join(format!("warmswitch-rules-{}.toml", std::process::id()));
        let good = "folders=['mm/']\nmaintains=[]\nmaintains-not=[]\n";
        for (more, part) in [
            (
                "[[excluded]]\nfunction='f'\nreason=' '\n",
                "excluded.reason: it is empty",
            ),
            (
                "[[unreached]]\nfunktion='f'\nreason='r'\n",
                "did you mean \"function\"?",
            ),
        ] {
            std::fs::write(&path, format!("{good}{more}")).unwrap();
            let error = format!("{:#}", Rules::load(&path).unwrap_err());
            assert!(
                error.contains("warmswitch-rules") && error.contains(part),
                "{error}"
            );
        }
        std::fs::remove_file(&path).unwrap();
    }
}
