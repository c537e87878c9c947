// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares objects between variants. Debian's ccache keeps each object under a hash of its compiler input. A build
//! reports how many objects it reused.
//!
//! Objects are built in a directory of the source's tree, so that the kernel's makefiles name all files relative to
//! the tree. An absolute path in a command would differ in each patched tree, and prevent sharing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use base::time::{CpuTimeOf, cpu_s_of};

/// Limit of ccache's disk space, for the objects of all kernels.
const SIZE: &str = "2G";

/// A build with ccache, whose results are counted.
pub struct Shared {
    log: PathBuf,
    cpu_s: f64,
}

/// Returns the CPU time of child processes that ended, in seconds. If it is unknown, returns 0.
fn cpu_s() -> f64 {
    cpu_s_of("self", CpuTimeOf::Children).unwrap_or(0.0)
}

impl Shared {
    /// Begins to count. `log` is the file in which ccache notes each result.
    pub fn begin(log: &Path) -> Shared {
        let _ = fs::remove_file(log);
        Shared {
            log: log.to_path_buf(),
            cpu_s: cpu_s(),
        }
    }

    /// Ends the count and returns it: "1100 of 1200 objects were compiled before, 60 s of CPU time".
    pub fn end(&self) -> String {
        let results = fs::read_to_string(&self.log).unwrap_or_default();
        let _ = fs::remove_file(&self.log);
        summary(&results, cpu_s() - self.cpu_s)
    }
}

fn summary(results: &str, cpu_s: f64) -> String {
    let count = |what: &str| results.lines().filter(|line| *line == what).count();
    let hits = count("direct_cache_hit") + count("preprocessed_cache_hit");
    let all = hits + count("cache_miss");
    format!("{hits} of {all} objects were compiled before, {cpu_s:.0} s of CPU time")
}

/// Makes `make` compile with ccache, which keeps its objects below `cache`.
pub fn by_ccache(make: &mut Command, prefix: &str, cache: &Path, results: &Path) {
    make.arg(format!("CC=ccache {prefix}gcc"))
        .arg("HOSTCC=ccache gcc")
        .env("CCACHE_DIR", cache.join("ccache"))
        .env("CCACHE_MAXSIZE", SIZE)
        .env("CCACHE_STATSLOG", results)
        // ccache compiles the preprocessed text that it used for its lookup, and does not preprocess again. A first
        // build is a quarter faster. The code is the same in both cases. Only debug information could differ.
        .env("CCACHE_NOCPP2", "1")
        // Objects contain no names of directories, see `-fdebug-prefix-map`.
        .env("CCACHE_NOHASHDIR", "1");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_is_counted() {
        let results = "# kernel/fork.c\ndirect_cache_hit\n# a.c\ncache_miss\ndirect_cache_miss\n# b\npreprocessed_cache_hit\n";
        assert_eq!(
            summary(results, 61.5),
            "2 of 3 objects were compiled before, 62 s of CPU time"
        );
    }
}
