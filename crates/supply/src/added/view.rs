// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's paths, including the added paths: their types, and the targets of links.

use std::collections::BTreeMap;

use crate::image::cpio::Kind;

/// Maximum number of links that Linux follows in one path.
const MOST_LINKS: usize = 40;

/// Paths, without a `/` at their beginning, with their types.
pub struct View {
    kinds: BTreeMap<String, Kind>,
}

impl View {
    /// Makes a view of a root file system's paths.
    pub fn of(kinds: BTreeMap<String, Kind>) -> View {
        View { kinds }
    }

    /// Returns the type of a path, without following links.
    pub fn at(&self, path: &str) -> Option<&Kind> {
        match path {
            "" => Some(&Kind::Directory),
            path => self.kinds.get(path),
        }
    }

    /// Sets the type of a path, and adds the folders above the path.
    pub fn put(&mut self, path: &str, kind: Kind) {
        for (at, _) in path.match_indices('/') {
            let above = self.kinds.entry(path[..at].to_string());
            above.or_insert(Kind::Directory);
        }
        self.kinds.insert(path.to_string(), kind);
    }

    /// Returns a path after following the links of the folders above the path. `last` says whether to follow a link at
    /// the path itself. On failure, returns the path at fault: a path above `path` that is not a folder, or `path`
    /// itself if links form a loop.
    pub fn resolved(&self, path: &str, last: bool) -> Result<String, String> {
        let mut rest: Vec<String> = path.rsplit('/').map(str::to_string).collect();
        let mut done: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    done.pop();
                    continue;
                }
                _ => done.push(part),
            }
            let here = done.join("/");
            match self.at(&here) {
                Some(Kind::Link(target)) if last || !rest.is_empty() => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(path.to_string());
                    }
                    done.pop();
                    if target.starts_with('/') {
                        done.clear();
                    }
                    rest.extend(target.rsplit('/').map(str::to_string));
                }
                Some(Kind::File { .. } | Kind::Other) if !rest.is_empty() => return Err(here),
                _ => {}
            }
        }
        Ok(done.join("/"))
    }

    /// Returns the type of the file that a path leads to, after following all links.
    pub fn behind(&self, path: &str) -> Option<&Kind> {
        self.at(&self.resolved(path, true).ok()?)
    }

    /// Returns whether any folder has a file of this name.
    pub fn has_name(&self, name: &str) -> bool {
        let is = |path: &String| path.rsplit('/').next() == Some(name);
        self.kinds.keys().any(is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> View {
        let mut view = View::of(BTreeMap::new());
        view.put("bin/busybox", Kind::File { executable: true });
        view.put("bin/sh", Kind::Link("busybox".into()));
        view.put("lib", Kind::Link("usr/lib".into()));
        view.put("usr/lib/x.so", Kind::File { executable: false });
        view.put("usr/there", Kind::Link("/bin/../bin".into()));
        view.put("loop", Kind::Link("loop".into()));
        view
    }

    #[test]
    fn links_above_are_followed_and_what_is_no_folder_is_named() {
        let view = view();
        assert_eq!(view.resolved("lib/new", false).unwrap(), "usr/lib/new");
        assert_eq!(view.resolved("usr/there/new", false).unwrap(), "bin/new");
        assert_eq!(view.resolved("bin/sh", false).unwrap(), "bin/sh");
        assert_eq!(view.resolved("bin/sh", true).unwrap(), "bin/busybox");
        assert_eq!(view.resolved("bin/sh/x", false).unwrap_err(), "bin/busybox");
        assert_eq!(view.resolved("loop/x", false).unwrap_err(), "loop/x");
        assert_eq!(view.resolved("new/er", false).unwrap(), "new/er");
        assert_eq!(view.resolved("", true).unwrap(), "");
    }

    #[test]
    fn what_a_path_leads_to_is_known() {
        let view = view();
        assert_eq!(
            view.behind("bin/sh"),
            Some(&Kind::File { executable: true })
        );
        assert_eq!(view.behind("usr/there"), Some(&Kind::Directory));
        assert_eq!(view.behind("loop"), None);
        assert!(view.has_name("x.so") && !view.has_name("y.so"));
    }
}
