// SPDX-License-Identifier: MIT OR Apache-2.0
//! Coverage of a kernel: the functions of mm/ and arch/arm/mm that the boot and a command reached, and the sites that
//! they reached. A site is an instruction that maintains caches, write buffer or TLB.

mod indirect;
pub mod rules;
pub mod saved;
pub mod sites;
pub mod table;
pub mod text;

use std::collections::BTreeMap;

use watch::reached::Reached;

use rules::Rules;
use text::{Function, Site, Text};

/// Name of the file with the rules, in the folder of a kernel series.
pub const RULES: &str = "coverage.toml";

/// Executed words of the boot, and of everything after the boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Both {
    pub boot: Reached,
    pub later: Reached,
}

impl Both {
    /// Returns two empty sets for this text.
    pub fn none(text: &Text) -> Both {
        let none = Reached::new(text.base, text.bytes);
        Both {
            boot: none.clone(),
            later: none,
        }
    }

    /// Adds the words of another run. Returns false if the other run covers another address range.
    #[must_use]
    pub fn merge(&mut self, other: &Both) -> bool {
        self.boot.merge(&other.boot) && self.later.merge(&other.later)
    }

    fn has(&self, at: u32) -> bool {
        self.boot.has(at) || self.later.has(at)
    }
}

/// Three numbers of functions or sites: all of them, the reached ones, and the ones that the boot reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub all: usize,
    pub reached: usize,
    pub by_boot: usize,
}

impl Count {
    fn add(&mut self, (boot, any): (bool, bool)) {
        self.all += 1;
        self.by_boot += usize::from(boot);
        self.reached += usize::from(any);
    }

    /// Returns the reached share, in percent. It is 100 if the total is 0.
    pub fn percent(&self) -> f64 {
        match self.all {
            0 => 100.0,
            all => self.reached as f64 * 100.0 / all as f64,
        }
    }
}

/// Counts of functions and sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub functions: Count,
    pub sites: Count,
}

/// Source files with their counts, and the unreached sites in these files.
#[derive(Default)]
pub struct Part<'a> {
    pub files: BTreeMap<&'a str, Counts>,
    /// Unreached sites, each with the index of the `unreached` rule that explains it.
    pub unreached: Vec<(&'a Site, Option<usize>)>,
    /// Number of unreached sites to which no path leads, according to a rule.
    pub dead: usize,
}

impl Part<'_> {
    /// Returns the sum over all files.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for counts in self.files.values() {
            for (sum, one) in [
                (&mut total.functions, counts.functions),
                (&mut total.sites, counts.sites),
            ] {
                sum.all += one.all;
                sum.reached += one.reached;
                sum.by_boot += one.by_boot;
            }
        }
        total
    }

    /// Returns the counts of reachable sites, which are all sites except the dead ones.
    pub fn alive(&self) -> Count {
        let sites = self.total().sites;
        Count {
            all: sites.all - self.dead,
            ..sites
        }
    }
}

/// Counts for a kernel and its runs.
pub struct Coverage<'a> {
    /// Functions and sites in the folders of the rules.
    pub inside: Part<'a>,
    /// Sites in all other code.
    pub outside: Part<'a>,
    /// Numbers of excluded functions and sites, by index of the `excluded` rule.
    pub excluded: BTreeMap<usize, (usize, usize)>,
    /// Indices of `unreached` rules for this kernel that explain no site.
    pub stale: Vec<usize>,
}

impl<'a> Coverage<'a> {
    /// Counts functions and sites.
    pub fn of(text: &'a Text, rules: &Rules, kernel: &str, both: &Both) -> Coverage<'a> {
        let mut coverage = Coverage {
            inside: Part::default(),
            outside: Part::default(),
            excluded: BTreeMap::new(),
            stale: Vec::new(),
        };
        for function in &text.functions {
            coverage.function(function, rules, both);
        }
        for site in &text.sites {
            let why = || rules.why(kernel, text, site);
            coverage.site(&text.functions[site.function], site, rules, both, why);
        }
        let explains = |n: &usize| {
            let parts = [&coverage.inside, &coverage.outside];
            let mut all = parts.into_iter().flat_map(|part| &part.unreached);
            all.any(|(_, why)| *why == Some(*n))
        };
        let own = (0..rules.unreached.len()).filter(|n| rules.unreached[*n].is_for(kernel));
        coverage.stale = own.filter(|n| !explains(n)).collect();
        coverage
    }

    fn part(&mut self, function: &Function, rules: &Rules) -> &mut Part<'a> {
        match rules.counts(function) {
            true => &mut self.inside,
            false => &mut self.outside,
        }
    }

    /// Counts a function in the folders of the rules. In other code, only the sites count.
    fn function(&mut self, function: &'a Function, rules: &Rules, both: &Both) {
        if !rules.counts(function) {
            return;
        }
        if let Some(n) = rules.excludes(function) {
            self.excluded.entry(n).or_default().0 += 1;
            return;
        }
        let mut words = (function.start..function.end).step_by(4);
        let boot = words.clone().any(|at| both.boot.has(at));
        let any = boot || words.any(|at| both.later.has(at));
        let counts = self.inside.files.entry(&function.file).or_default();
        counts.functions.add((boot, any));
    }

    fn site(
        &mut self,
        function: &'a Function,
        site: &'a Site,
        rules: &Rules,
        both: &Both,
        why: impl Fn() -> Option<usize>,
    ) {
        if let Some(n) = rules.excludes_site(function, site) {
            self.excluded.entry(n).or_default().1 += 1;
            return;
        }
        let part = self.part(function, rules);
        let counts = part.files.entry(&function.file).or_default();
        let any = both.has(site.at);
        counts.sites.add((both.boot.has(site.at), any));
        if !any {
            let why = why();
            part.dead += usize::from(why.is_some_and(|n| rules.unreached[n].dead));
            part.unreached.push((site, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use arm::Context;

    use super::*;
    use sites::tests::{rules, text};

    const MORE: &str = "
        [[excluded]]\nop='0,c7,c0,4'\nreason='waits'
        [[unreached]]\nfunction='user'\ncallee='flush_all'\ndead=true\nreason='never'
        [[unreached]]\nfunction='flush_all'\nreason='gone'
        [[unreached]]\nfunction='nowhere'\nkernels=['other*']\nreason='another kernel'
        ";

    fn after(text: &Text, boot: &[u32], later: &[u32]) -> Both {
        let mut both = Both::none(text);
        let executed = |reached: &mut Reached, at: &[u32]| {
            for pc in at {
                reached.fetched(&Context {
                    pc: *pc,
                    mode: 0x13,
                    ..Context::default()
                });
            }
        };
        executed(&mut both.boot, boot);
        executed(&mut both.later, later);
        both
    }

    #[test]
    fn functions_and_sites_are_counted_by_file_and_the_boots_apart() {
        let rules = rules(MORE);
        let text = text(&rules);
        let both = after(&text, &[0x1000, 0x1020], &[0x100c]);
        let coverage = Coverage::of(&text, &rules, "plain", &both);
        let count = |all, reached, by_boot| Count {
            all,
            reached,
            by_boot,
        };
        let total = coverage.inside.total();
        assert_eq!(total.functions, count(2, 2, 2));
        assert_eq!(total.sites, count(4, 3, 2));
        let user = coverage.inside.files["mm/a.c"];
        assert_eq!(
            (user.functions, user.sites),
            (count(1, 1, 1), count(3, 2, 1))
        );
        assert_eq!(total.sites.percent(), 75.0);
        assert_eq!(coverage.inside.alive(), count(3, 3, 2));
        assert_eq!(coverage.outside.files["fs/c.c"].sites, count(1, 0, 0));
        let excluded: Vec<_> = coverage.excluded.into_values().collect();
        assert_eq!(excluded, [(0, 1)]);
        let unreached: Vec<_> = coverage
            .inside
            .unreached
            .iter()
            .map(|(s, why)| (s.at, *why))
            .collect();
        assert_eq!(unreached, [(0x1004, Some(0))]);
        assert_eq!(coverage.stale, [1]);
    }

    #[test]
    fn what_was_reached_is_put_together() {
        let rules = rules("");
        let text = text(&rules);
        let mut both = after(&text, &[0x1000], &[]);
        assert!(both.merge(&after(&text, &[], &[0x1004])));
        assert_eq!(both, after(&text, &[0x1000], &[0x1004]));
    }

    #[test]
    fn a_function_that_is_left_out_does_not_count() {
        let rules = rules("[[excluded]]\nfile='mm/*'\nreason='r'\n");
        let text = text(&rules);
        let coverage = Coverage::of(&text, &rules, "plain", &after(&text, &[], &[]));
        assert_eq!(coverage.excluded[&0], (1, 3));
        assert_eq!(coverage.inside.total().functions.all, 1);
    }
}
