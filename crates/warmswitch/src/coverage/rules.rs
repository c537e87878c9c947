// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of `linux/VERSION/coverage.toml`: functions that maintain caches or the TLB, code that does not count, and
//! reasons for unreached sites.

use std::path::Path;

use anyhow::{Result, bail};
use serde::Deserialize;

use super::text::{Does, Function, Site, Text};
use base::paths::shown;
use base::toml_file;
use supply::mutant::Cp15;

/// Content of the file. In names, `*` matches any text. Names omit compiler suffixes (`.constprop.0`).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rules {
    /// Prefixes of the paths of source files that count.
    pub folders: Vec<String>,
    /// Functions whose calls are sites.
    pub maintains: Vec<String>,
    /// Functions that match `maintains` but maintain nothing.
    pub maintains_not: Vec<String>,
    /// Tables of function pointers in a kernel for several cores.
    #[serde(default)]
    pub table: Vec<Table>,
    /// Code that does not count.
    #[serde(default)]
    pub excluded: Vec<Excluded>,
    /// Reasons for unreached sites.
    #[serde(default)]
    pub unreached: Vec<Unreached>,
}

/// A table of function pointers. A call through the table counts as a call of `symbol->slot`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Name of the variable.
    pub symbol: String,
    /// Names of its words, in order.
    pub slots: Vec<String>,
}

/// Sites that do not count. All given keys must match.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Excluded {
    /// Source file of the function. If the rule has neither `callee` nor `op`, the function itself does not count
    /// either.
    pub file: Option<String>,
    /// Function that contains the site.
    pub function: Option<String>,
    /// Section of the function.
    pub section: Option<String>,
    /// Function that the site calls.
    pub callee: Option<String>,
    /// CP15 operation of the site.
    pub op: Option<Cp15>,
    /// Reason for the exclusion.
    pub reason: String,
}

/// Sites that are known to be unreached. All given keys must match.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unreached {
    /// Function that contains the site.
    pub function: String,
    /// Function that the site calls.
    pub callee: Option<String>,
    /// CP15 operation of the site.
    pub op: Option<Cp15>,
    /// Kernels to which the rule applies. An empty list means all kernels.
    #[serde(default)]
    pub kernels: Vec<String>,
    /// `true` if no path leads to the site in this configuration or on these boards.
    #[serde(default)]
    pub dead: bool,
    /// Reason why no run reaches the site.
    pub reason: String,
}

/// Returns whether a pattern matches `name`. In the pattern, `*` matches any text.
pub fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|tail| {
            let starts = tail.char_indices().map(|(at, _)| at);
            let mut starts = starts.chain([tail.len()]);
            starts.any(|at| fits(rest, &tail[at..]))
        }),
    }
}

/// Returns whether a name matches the pattern of a rule. A rule without a pattern matches every name.
fn name_fits(pattern: Option<&String>, name: Option<&str>) -> bool {
    pattern.is_none_or(|pattern| name.is_some_and(|name| fits(pattern, plain(name))))
}

/// Returns a function's name without compiler suffixes.
pub fn plain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

fn action_fits(callee: Option<&String>, op: Option<Cp15>, does: &Does) -> bool {
    let (called, operation) = match does {
        Does::Calls(name) => (Some(name.as_str()), None),
        Does::Operation(op) => (None, Some(*op)),
    };
    let op_fits = op.is_none_or(|op| operation.is_some_and(|operation| op.covers(operation)));
    name_fits(callee, called) && op_fits
}

impl Rules {
    /// Reads and checks the file.
    pub fn load(path: &Path) -> Result<Rules> {
        let rules: Rules = toml_file::read(path)?;
        let excluded = rules.excluded.iter().map(|e| ("excluded", &e.reason));
        let unreached = rules.unreached.iter().map(|u| ("unreached", &u.reason));
        if let Some((key, _)) = excluded.chain(unreached).find(|(_, r)| r.trim().is_empty()) {
            bail!("{}: {key}.reason: empty; write a reason", shown(path));
        }
        if rules.excluded.iter().any(Excluded::has_no_condition) {
            bail!(
                "{}: excluded: only a reason, which would exclude everything; add file, function, section, callee or op",
                shown(path)
            );
        }
        Ok(rules)
    }

    /// Returns whether a call of this function is a site.
    pub fn maintains(&self, name: &str) -> bool {
        let any = |names: &[String]| names.iter().any(|pattern| fits(pattern, plain(name)));
        any(&self.maintains) && !any(&self.maintains_not)
    }

    /// Returns whether a function lies in the folders that count.
    pub fn counts(&self, function: &Function) -> bool {
        let begins = |folder: &String| function.file.starts_with(folder);
        self.folders.iter().any(begins)
    }

    /// Returns the index of the rule that excludes a function with all its sites.
    pub fn excludes(&self, function: &Function) -> Option<usize> {
        let whole =
            |rule: &Excluded| rule.callee.is_none() && rule.op.is_none() && rule.is_of(function);
        self.excluded.iter().position(whole)
    }

    /// Returns the index of the rule that excludes a site.
    pub fn excludes_site(&self, function: &Function, site: &Site) -> Option<usize> {
        self.excluded.iter().position(|rule| {
            rule.is_of(function) && action_fits(rule.callee.as_ref(), rule.op, &site.does)
        })
    }

    /// Returns the index of the rule that explains why a site of this kernel is unreached.
    pub fn why(&self, kernel: &str, text: &Text, site: &Site) -> Option<usize> {
        let covers = |entry: &Unreached| entry.is_for(kernel) && entry.covers(text, site);
        self.unreached.iter().position(covers)
    }
}

impl Excluded {
    fn has_no_condition(&self) -> bool {
        let names = [&self.file, &self.function, &self.section, &self.callee];
        names.iter().all(|name| name.is_none()) && self.op.is_none()
    }

    fn is_of(&self, function: &Function) -> bool {
        name_fits(self.function.as_ref(), Some(&function.name))
            && self
                .file
                .as_ref()
                .is_none_or(|file| fits(file, &function.file))
            && (self.section.as_ref()).is_none_or(|section| fits(section, &function.section))
    }
}

impl Unreached {
    /// Returns whether the rule applies to this kernel.
    pub fn is_for(&self, kernel: &str) -> bool {
        self.kernels.is_empty() || self.kernels.iter().any(|pattern| fits(pattern, kernel))
    }

    /// Returns whether the rule matches this site.
    pub fn covers(&self, text: &Text, site: &Site) -> bool {
        let function = &text.functions[site.function];
        name_fits(Some(&self.function), Some(&function.name))
            && action_fits(self.callee.as_ref(), self.op, &site.does)
    }

    /// Returns function, callee and operation of the rule, for notes.
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
                "excluded.reason: empty; write a reason",
            ),
            (
                "[[excluded]]\nreason='r'\n",
                "excluded: only a reason, which would exclude everything",
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
