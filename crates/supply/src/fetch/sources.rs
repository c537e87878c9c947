// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses of Debian's archive, from the machine's own source lists.
//!
//! Reads both forms of sources.list(5): one-line entries and deb822 stanzas. Takes only the addresses, because the
//! caller names the suites. Leaves out other vendors' archives.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

/// Keyring with the keys that sign Debian's archive.
pub const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// One entry, of either form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Addresses.
    pub uris: Vec<String>,
    /// Suites.
    pub suites: Vec<String>,
    /// Components.
    pub components: Vec<String>,
    /// Path of a keyring, or the key itself. Empty when the entry gives neither.
    pub signed_by: String,
}

/// Addresses of Debian's archive and of its security archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Address for suites such as `bookworm`, `bookworm-updates` and `bookworm-backports`.
    pub main: String,
    /// Address for suites such as `bookworm-security`. A machine may have no such address.
    pub security: Option<String>,
}

impl Archive {
    /// Returns the addresses that this machine uses.
    pub fn of_this_machine() -> Result<Archive> {
        let mut entries = Vec::new();
        if let Ok(text) = fs::read_to_string("/etc/apt/sources.list") {
            entries.extend(one_line(&text));
        }
        let parts = Path::new("/etc/apt/sources.list.d");
        for name in base::paths::names_in(parts, |p| Some(p.file_name()?.to_str()?.to_string())) {
            let text = fs::read_to_string(parts.join(&name)).unwrap_or_default();
            if name.ends_with(".sources") {
                entries.extend(deb822(&text));
            } else if name.ends_with(".list") {
                entries.extend(one_line(&text));
            }
        }
        match Archive::among(&entries) {
            Some(archive) => Ok(archive),
            None => bail!(
                "no entry for Debian's archive in /etc/apt/sources.list or \
                /etc/apt/sources.list.d\n  help: use a Debian machine, or give a kernel tree of \
                your own with --linux DIR"
            ),
        }
    }

    fn among(entries: &[Entry]) -> Option<Archive> {
        let debian: Vec<&Entry> = entries.iter().filter(|e| e.is_debian()).collect();
        let find = |security: bool| {
            let entry = debian.iter().find(|e| e.is_security() == security)?;
            entry
                .uris
                .first()
                .map(|uri| uri.trim_end_matches('/').to_string())
        };
        Some(Archive {
            main: find(false)?,
            security: find(true),
        })
    }

    /// Returns a source list with `suites`. It is for packages of `arch`, or for source packages if `arch` is `None`.
    pub fn list(&self, suites: &[String], arch: Option<&str>) -> String {
        let kind = match arch {
            Some(arch) => format!("deb [arch={arch} "),
            None => "deb-src [".to_string(),
        };
        let mut text = String::new();
        for suite in suites {
            let uri = if suite.ends_with("-security") {
                match &self.security {
                    Some(uri) => uri,
                    None => continue,
                }
            } else {
                &self.main
            };
            text.push_str(&format!("{kind}signed-by={KEYRING}] {uri} {suite} main\n"));
        }
        text
    }
}

impl Entry {
    /// Returns whether the entry is for Debian's own archive. Such an entry has the component `main` of one of Debian's
    /// suites, and no keyring other than Debian's.
    fn is_debian(&self) -> bool {
        const SUITES: &[&str] = &[
            "bookworm",
            "trixie",
            "forky",
            "sid",
            "stable",
            "oldstable",
            "testing",
            "unstable",
        ];
        let base = |suite: &str| {
            suite
                .split(['-', '/'])
                .next()
                .unwrap_or_default()
                .to_string()
        };
        let whole = |suite: &str| {
            let tail = &suite[base(suite).len()..];
            matches!(
                tail,
                "" | "-updates" | "-backports" | "-security" | "/updates"
            )
        };
        let known = |suite: &String| SUITES.contains(&base(suite).as_str()) && whole(suite);
        self.components.iter().any(|c| c == "main")
            && self.suites.iter().any(known)
            && (self.signed_by.is_empty() || self.signed_by.contains("debian-archive"))
            && !self.uris.is_empty()
    }

    fn is_security(&self) -> bool {
        self.suites
            .iter()
            .any(|s| s.ends_with("-security") || s.ends_with("/updates"))
    }
}

/// Reads entries `deb [options] uri suite component...`.
pub fn one_line(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some(mut rest) = line
            .strip_prefix("deb")
            .filter(|r| r.starts_with([' ', '\t']))
        else {
            continue;
        };
        rest = rest.trim_start();
        let mut entry = Entry::default();
        if let Some(inner) = rest.strip_prefix('[') {
            let Some((options, tail)) = inner.split_once(']') else {
                continue;
            };
            let signed = options
                .split_whitespace()
                .find_map(|o| o.strip_prefix("signed-by="));
            entry.signed_by = signed.unwrap_or_default().to_string();
            rest = tail;
        }
        let mut words = rest.split_whitespace().map(str::to_string);
        let (Some(uri), Some(suite)) = (words.next(), words.next()) else {
            continue;
        };
        entry.uris.push(uri);
        entry.suites.push(suite);
        entry.components.extend(words);
        entries.push(entry);
    }
    entries
}

/// Reads stanzas of `Key: value` lines, separated by empty lines. A line that begins with a space continues the
/// previous line.
pub fn deb822(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in text.lines().chain([""]) {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            entries.extend(stanza(&fields));
            fields.clear();
        } else if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push(' ');
                value.push_str(line.trim());
            }
        } else if let Some((key, value)) = line.split_once(':') {
            fields.push((key.trim().to_ascii_lowercase(), value.trim().to_string()));
        }
    }
    entries
}

fn stanza(fields: &[(String, String)]) -> Option<Entry> {
    let get = |key: &str| {
        fields
            .iter()
            .find(|(k, _)| k == key)
            .map_or("", |(_, v)| v.as_str())
    };
    let words = |key: &str| {
        get(key)
            .split_whitespace()
            .map(str::to_string)
            .collect::<Vec<_>>()
    };
    let on = !matches!(get("enabled"), "no" | "false" | "0" | "off");
    (on && words("types").iter().any(|t| t == "deb")).then(|| Entry {
        uris: words("uris"),
        suites: words("suites"),
        components: words("components"),
        signed_by: get("signed-by").to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANZAS: &str = "Types: deb\n# a comment\nURIs: http://mirror.example/debian/\n\
        Suites: bookworm bookworm-updates\nComponents: main\n\
        Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n\
        Types: deb deb-src\nURIs: http://mirror.example/debian-security\n\
        Suites: bookworm-security\nComponents: main\n contrib\n";

    #[test]
    fn stanzas_give_both_archives() {
        let entries = deb822(STANZAS);
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[1].components, ["main", "contrib"]);
        let archive = Archive::among(&entries).unwrap();
        assert_eq!(archive.main, "http://mirror.example/debian");
        assert_eq!(
            archive.security.as_deref(),
            Some("http://mirror.example/debian-security")
        );
    }

    #[test]
    fn one_line_entries_give_the_same() {
        let text = "# deb http://no.example/debian bookworm main\n\
            deb-src http://src.example/debian bookworm main\n\
            deb [arch=amd64 signed-by=/x/debian-archive-keyring.gpg] http://m.example/debian \
            bookworm main contrib # note\ndeb http://s.example/debian-security stable-security main\n";
        let archive = Archive::among(&one_line(text)).unwrap();
        assert_eq!(archive.main, "http://m.example/debian");
        assert_eq!(
            archive.security.as_deref(),
            Some("http://s.example/debian-security")
        );
    }

    #[test]
    fn other_vendors_are_not_taken_for_debian() {
        let text = "deb https://a.example/apt tool-bookworm main\n\
            deb https://b.example/linux/debian bookworm stable\n\
            deb [signed-by=/usr/share/keyrings/vendor.gpg] https://c.example/ bookworm main\n\
            deb https://d.example bookworm-pgdg main\ndeb [broken http://e.example bookworm main\n";
        assert_eq!(Archive::among(&one_line(text)), None);
        let disabled = format!("Enabled: no\n{STANZAS}");
        assert_eq!(deb822(&disabled).len(), 1);
    }

    #[test]
    fn a_list_leaves_out_the_security_suite_of_a_machine_without_one() {
        let archive = Archive {
            main: "http://m.example/debian".into(),
            security: None,
        };
        let suites = [
            "bookworm-security".to_string(),
            "bookworm-backports".to_string(),
        ];
        let text = archive.list(&suites, Some("amd64"));
        assert_eq!(text.lines().count(), 1);
        assert!(text.contains("arch=amd64") && text.contains("bookworm-backports main"));
    }
}
