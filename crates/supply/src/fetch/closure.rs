// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packages with their dependencies. apt chooses them as for a machine on which some packages are already installed.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, bail};

use super::{Deb, Store, Wish, name_and_version};
use crate::cache::{Inputs, Lock};
use crate::toolchain::output;
use base::paths::write_atomically;
use base::suggest::nearest;

/// Fields kept for a package that is assumed to be installed. Its dependencies are left out, because they are not
/// installed.
const KEPT: [&str; 6] = [
    "Package",
    "Version",
    "Architecture",
    "Multi-Arch",
    "Provides",
    "Essential",
];
/// An essential package that is not assumed to be installed. Packages that need `perl-base` at run time depend on it.
const NOT_ASSUMED: &str = "perl-base";

/// A package's entry in apt's lists.
struct Stanza<'a> {
    name: &'a str,
    essential: bool,
    text: &'a str,
}

impl Store {
    /// Returns these packages and their dependencies. Leaves out dependencies that are essential or in `assumed`.
    /// Requested packages are always included. The cache keeps the result for equal requests.
    pub fn closure(&self, names: &[String], assumed: &BTreeSet<&str>) -> Result<Vec<Deb>> {
        let list = self
            .debs
            .join(format!("{}.closure", self.key(names, assumed)));
        if let Ok(text) = fs::read_to_string(&list)
            && let Some(debs) = self.all_cached(&text)
        {
            return Ok(debs);
        }
        let chosen = {
            let _lock = Lock::take(&self.cache, "apt")?;
            self.choose(names, assumed)?
        };
        let wishes = chosen.iter().map(|(name, version)| Wish {
            name,
            version: Some(version),
        });
        let debs = self.get(&wishes.collect::<Vec<_>>(), false)?;
        let lines = debs
            .iter()
            .map(|deb| format!("{} {}\n", deb.name, deb.version));
        write_atomically(&list, lines.collect::<String>().as_bytes())?;
        Ok(debs)
    }

    fn key(&self, names: &[String], assumed: &BTreeSet<&str>) -> String {
        let mut inputs = Inputs::new("closure 1");
        let suites = self.suites.iter().map(String::as_str);
        let names = names.iter().map(String::as_str);
        for word in suites.chain(names).chain(assumed.iter().copied()) {
            inputs.add("word", word.as_bytes());
        }
        inputs.hash()
    }

    /// Returns the packages of a list from the cache, if the cache has all of them.
    fn all_cached(&self, list: &str) -> Option<Vec<Deb>> {
        let deb = |line: &str| {
            let (name, version) = line.split_once(' ')?;
            let version = Some(version);
            self.cached(&Wish { name, version })
                .filter(|deb| Some(deb.version.as_str()) == version)
        };
        list.lines().map(deb).collect()
    }

    /// Has apt choose the packages. Returns their names and versions.
    fn choose(&self, names: &[String], assumed: &BTreeSet<&str>) -> Result<Vec<(String, String)>> {
        let updated = self.update()?;
        let available = output(self.tool("apt-cache").arg("dumpavail"));
        let available = available.map_err(|error| updated.err().unwrap_or(error))?;
        let stanzas: Vec<Stanza> = available.split("\n\n").filter_map(stanza).collect();
        for name in names {
            check_name(name, &stanzas)?;
        }
        let is_present = |s: &&Stanza| {
            let taken = s.essential && s.name != NOT_ASSUMED || assumed.contains(s.name);
            taken && !names.iter().any(|name| name == s.name)
        };
        let present: Vec<&Stanza> = stanzas.iter().filter(is_present).collect();
        let status = self.apt.join("assumed");
        let text: String = present.iter().map(|s| installed(s.text)).collect();
        write_atomically(&status, text.as_bytes())?;
        let mut apt = self.apt_get();
        apt.arg("-o");
        apt.arg(format!("Dir::State::status={}", status.display()));
        apt.args(["install", "-y", "--no-install-recommends", "--print-uris"]);
        let listed = output(apt.args(names))
            .with_context(|| format!("--add-package {}", names.join(", ")))?;
        let mut chosen = Vec::new();
        for file in listed.lines().filter_map(file_of) {
            let Some((name, version)) = name_and_version(file) else {
                bail!("{file}: apt offers a file that is not a package");
            };
            // The entry of an assumed package has no dependencies, so apt takes it for another package and offers the
            // package again.
            if !present.iter().any(|s| s.name == name) {
                chosen.push((name, version));
            }
        }
        for name in names {
            if !chosen.iter().any(|(chosen, _)| chosen == name) {
                bail!("--add-package {name}: apt offers no file for it");
            }
        }
        Ok(chosen)
    }
}

/// Returns the name of the file in a line `'uri' file size hash`. Ignores the hash in the line, because the fetch
/// checks the file against the hash in the signed list.
fn file_of(line: &str) -> Option<&str> {
    line.strip_prefix('\'')?.split_whitespace().nth(1)
}

fn stanza(text: &str) -> Option<Stanza<'_>> {
    let name = field(text, "Package")?;
    Some(Stanza {
        name,
        essential: field(text, "Essential") == Some("yes"),
        text,
    })
}

fn field<'a>(stanza: &'a str, key: &str) -> Option<&'a str> {
    let line = |line: &'a str| line.strip_prefix(key)?.strip_prefix(": ");
    stanza.lines().find_map(line)
}

/// Turns a package's entry in apt's lists into the entry of an installed package.
fn installed(stanza: &str) -> String {
    let kept = KEPT.iter().filter_map(|key| {
        let value = field(stanza, key)?;
        Some(format!("{key}: {value}\n"))
    });
    let rest = "Status: install ok installed\nMaintainer: warmswitch\nDescription: assumed\n\n";
    kept.collect::<String>() + rest
}

/// Fails unless a package has this name. The error suggests a name.
fn check_name(name: &str, stanzas: &[Stanza<'_>]) -> Result<()> {
    if stanzas.iter().any(|s| s.name == name) {
        return Ok(());
    }
    let provides = |s: &&Stanza<'_>| {
        let all = field(s.text, "Provides").unwrap_or_default();
        all.split(", ")
            .any(|one| one.split(' ').next() == Some(name))
    };
    let providers: Vec<&str> = stanzas.iter().filter(provides).map(|s| s.name).collect();
    if !providers.is_empty() {
        bail!(
            "--add-package {name}: a virtual package\n  help: name one that provides it: {}",
            providers.join(", ")
        );
    }
    let names: Vec<&str> = stanzas.iter().map(|s| s.name).collect();
    let near = nearest(name, &names);
    let hint = near.map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
    bail!("--add-package {name}: Debian has no such package for armel{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "Package: lua5.4\nVersion: 5.4.4-3\nArchitecture: armel\nDepends: libc6\n\n\
        Package: mawk\nVersion: 1\nArchitecture: armel\nProvides: awk, x (= 1)\nDescription: a\n b\n\n\
        Package: dash\nEssential: yes\nVersion: 2\nArchitecture: armel\nPre-Depends: libc6\n";

    fn stanzas() -> Vec<Stanza<'static>> {
        LIST.split("\n\n").filter_map(stanza).collect()
    }

    fn refused(name: &str) -> String {
        check_name(name, &stanzas()).unwrap_err().to_string()
    }

    #[test]
    fn a_name_is_a_package_or_is_answered_with_what_is_meant() {
        assert!(check_name("lua5.4", &stanzas()).is_ok());
        assert!(refused("lua54").ends_with("did you mean \"lua5.4\"?"));
        assert!(
            refused("awk").contains("virtual package\n  help: name one that provides it: mawk")
        );
        assert!(refused("x").contains("mawk"));
        assert!(refused("zzzzzzzzzzzz").ends_with("no such package for armel"));
    }

    #[test]
    fn a_file_is_read_whatever_hash_stands_behind_it() {
        let line = "'http://m.example/p/a_1-2_armel.deb' a_1-2_armel.deb 12 MD5Sum:ab";
        assert_eq!(file_of(line), Some("a_1-2_armel.deb"));
        assert_eq!(file_of("Reading package lists..."), None);
    }

    #[test]
    fn an_assumed_package_has_no_dependencies() {
        let dash = &stanzas()[2];
        assert!(dash.essential && dash.name == "dash");
        let text = installed(dash.text);
        assert!(
            text.contains("Essential: yes\n") && text.contains("Version: 2\n"),
            "{text}"
        );
        assert!(
            !text.contains("Depends") && text.ends_with("\n\n"),
            "{text}"
        );
    }
}
