// SPDX-License-Identifier: MIT OR Apache-2.0
//! What variants have in common is compiled once: Debian's ccache keeps objects by what was compiled,
//! and a build says what that saved.
//!
//! Objects are made in a directory of the source's tree, so that the kernel's makefiles name all files
//! relative to it: a path of the tree in a command would be another one in each patched tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use base::time::{CpuTimeOf, cpu_s_of};

/// What the objects of all kernels may take.
const SIZE: &str = "2G";

/// A build by ccache, and what it came to.
pub struct Shared {
    log: PathBuf,
    cpu_s: f64,
}

/// CPU time of processes that ended; an unknown time counts as zero.
fn cpu_s() -> f64 {
    cpu_s_of("self", CpuTimeOf::Children).unwrap_or(0.0)
}

impl Shared {
    /// From now on; `log` is where ccache notes each result.
    pub fn begin(log: &Path) -> Shared {
        let _ = fs::remove_file(log);
        Shared {
            log: log.to_path_buf(),
            cpu_s: cpu_s(),
        }
    }

    /// What of it was there already: "1,100 of 1,200 objects were there, 60 s of CPU time".
    pub fn end(&self) -> String {
        let results = fs::read_to_string(&self.log).unwrap_or_default();
        let _ = fs::remove_file(&self.log);
        told(&results, cpu_s() - self.cpu_s)
    }
}

fn told(results: &str, cpu_s: f64) -> String {
    let count = |what: &str| results.lines().filter(|line| *line == what).count();
    let hits = count("direct_cache_hit") + count("preprocessed_cache_hit");
    let all = hits + count("cache_miss");
    format!("{hits} of {all} objects were compiled before, {cpu_s:.0} s of CPU time")
}

/// Has `make` compile by ccache, which keeps its objects below `cache`.
pub fn by_ccache(make: &mut Command, prefix: &str, cache: &Path, results: &Path) {
    make.arg(format!("CC=ccache {prefix}gcc"))
        .arg("HOSTCC=ccache gcc")
        .env("CCACHE_DIR", cache.join("ccache"))
        .env("CCACHE_MAXSIZE", SIZE)
        .env("CCACHE_STATSLOG", results)
        // What was preprocessed to be looked up is compiled, not preprocessed again: a first build is
        // a quarter faster, and the code the same (only notes for debuggers could differ).
        .env("CCACHE_NOCPP2", "1")
        // Names of directories are not in the objects: see `-fdebug-prefix-map`.
        .env("CCACHE_NOHASHDIR", "1");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_is_counted() {
        let results = "# kernel/fork.c\ndirect_cache_hit\n# a.c\ncache_miss\ndirect_cache_miss\n# b\npreprocessed_cache_hit\n";
        assert_eq!(
            told(results, 61.5),
            "2 of 3 objects were compiled before, 62 s of CPU time"
        );
    }
}
