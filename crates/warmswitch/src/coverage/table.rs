// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renders coverage as tables and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::rules::Rules;
use super::text::{Does, Site, Text};
use super::{Count, Counts, Coverage, Part, RULES};
use crate::coherence::names::Names;
use results::render::grid::Grid;

/// Sources of names and descriptions of sites.
pub struct Style<'a> {
    pub names: &'a Names,
    pub text: &'a Text,
    pub rules: &'a Rules,
}

/// Descriptions of CP15 operations by `opc1,CRn,CRm,opc2` (DDI0198D 2.3). The descriptions are valid for all cores.
const OPERATIONS: [(&str, &str); 17] = [
    ("0,c7,c5,0", "invalidates the I-cache"),
    ("0,c7,c5,1", "invalidates a line of the I-cache"),
    ("0,c7,c6,0", "invalidates the D-cache"),
    ("0,c7,c6,1", "invalidates a line of the D-cache"),
    ("0,c7,c7,0", "invalidates both caches"),
    ("0,c7,c10,1", "cleans a line of the D-cache"),
    ("0,c7,c10,2", "cleans a line of the D-cache by its index"),
    ("0,c7,c10,3", "tests and cleans the D-cache"),
    ("0,c7,c10,4", "drains the write buffer"),
    ("0,c7,c14,1", "cleans and invalidates a line of the D-cache"),
    ("0,c7,c14,2", "cleans and invalidates a line by its index"),
    ("0,c7,c14,3", "tests, cleans and invalidates the D-cache"),
    ("0,c8,c5,0", "invalidates the TLB for instructions"),
    ("0,c8,c6,0", "invalidates the TLB for data"),
    (
        "0,c8,c5,1",
        "invalidates an entry of the TLB for instructions",
    ),
    ("0,c8,c6,1", "invalidates an entry of the TLB for data"),
    ("0,c8,c7,0", "invalidates the TLB"),
];

impl Style<'_> {
    /// Returns what a site does: `calls flush_x` for a call, or the description of a CP15 operation.
    fn does(&self, site: &Site) -> String {
        match &site.does {
            Does::Calls(name) => format!("calls {name}"),
            Does::Operation(op) => {
                let op = op.to_string();
                let known = OPERATIONS.iter().find(|(number, _)| *number == op);
                match known {
                    Some((_, does)) => format!("{does} ({op})"),
                    None => op,
                }
            }
        }
    }

    /// Returns `function+0x12 (file:line)`.
    fn place(&self, site: &Site) -> String {
        let function = &self.text.functions[site.function];
        let offset = site.at - function.start;
        let line = self.names.symbol_and_line(site.at).1;
        let line = line.map(|line| format!(" ({line})")).unwrap_or_default();
        format!("{}+{offset:#x}{line}", function.name)
    }

    fn reason(&self, why: Option<usize>) -> Option<&str> {
        Some(self.rules.unreached[why?].reason.as_str())
    }

    /// Renders both tables, each with its unreached sites. The excluded code follows.
    pub fn text(&self, coverage: &Coverage<'_>) -> String {
        let folders = self.rules.folders.join(", ");
        let (inside, outside) = (&coverage.inside, &coverage.outside);
        let mut text = format!(
            "Code of {folders}:\n{}\n{}",
            table(inside, true),
            total(inside)
        );
        text.push_str(&self.unreached(inside));
        let _ = write!(
            text,
            "\nSites of other code:\n{}\n{}",
            table(outside, false),
            total(outside)
        );
        text.push_str(&self.unreached(outside));
        text.push_str("\nNot counted:\n");
        for (rule, (functions, sites)) in &coverage.excluded {
            let reason = &self.rules.excluded[*rule].reason;
            let _ = writeln!(text, "  {sites} sites, {functions} functions: {reason}");
        }
        text
    }

    fn unreached(&self, part: &Part<'_>) -> String {
        let mut text = String::new();
        for (site, why) in &part.unreached {
            let reason = self.reason(*why).map(|reason| format!(": {reason}"));
            let (place, does) = (self.place(site), self.does(site));
            let _ = writeln!(text, "  {place} {does}{}", reason.unwrap_or_default());
        }
        text
    }

    /// Returns a note for each `unreached` rule that explains no site.
    pub fn stale(&self, coverage: &Coverage<'_>) -> Vec<String> {
        let stale = coverage.stale.iter();
        let label = |n: &usize| self.rules.unreached[*n].label();
        stale
            .map(|n| {
                let label = label(n);
                format!("{RULES}: unreached \"{label}\": its sites were reached, or do not exist")
            })
            .collect()
    }

    /// Renders coverage as JSON.
    pub fn json(&self, coverage: &Coverage<'_>) -> Value {
        let excluded = coverage.excluded.iter().map(|(rule, (functions, sites))| {
            let reason = &self.rules.excluded[*rule].reason;
            json!({ "reason": reason, "functions": functions, "sites": sites })
        });
        json!({
            "inside": self.part(&coverage.inside),
            "outside": self.part(&coverage.outside),
            "excluded": excluded.collect::<Vec<_>>(),
            "stale": self.stale(coverage),
        })
    }

    fn part(&self, part: &Part<'_>) -> Value {
        let counts = |counts: &Counts| {
            let one =
                |c: Count| json!({ "all": c.all, "reached": c.reached, "by_boot": c.by_boot });
            json!({ "functions": one(counts.functions), "sites": one(counts.sites) })
        };
        let files = part
            .files
            .iter()
            .map(|(file, c)| (file.to_string(), counts(c)));
        let unreached = part.unreached.iter().map(|(site, why)| {
            let function = &self.text.functions[site.function];
            json!({
                "address": site.at,
                "function": function.name,
                "file": function.file,
                "place": self.place(site),
                "does": self.does(site),
                "reason": self.reason(*why),
                "dead": why.is_some_and(|n| self.rules.unreached[n].dead),
            })
        });
        let total = part.total();
        json!({
            "files": files.collect::<serde_json::Map<_, _>>(),
            "total": counts(&total),
            "percent": total.sites.percent(),
            "alive": { "all": part.alive().all, "percent": part.alive().percent() },
            "unreached": unreached.collect::<Vec<_>>(),
        })
    }
}

/// Returns a table with a row for each file.
fn table(part: &Part<'_>, functions: bool) -> Grid {
    let mut headings = vec!["file"];
    if functions {
        headings.extend(["functions", "reached"]);
    }
    headings.extend(["sites", "reached", "by the boot"]);
    let row = |(file, counts): (&&str, &Counts)| {
        let mut cells = vec![file.to_string()];
        let Counts {
            functions: f,
            sites,
        } = counts;
        if functions {
            cells.extend([f.all.to_string(), f.reached.to_string()]);
        }
        cells.extend([sites.all, sites.reached, sites.by_boot].map(|n| n.to_string()));
        cells
    };
    Grid {
        texts: 1,
        headings: headings.into_iter().map(str::to_string).collect(),
        rows: part.files.iter().map(row).collect(),
    }
}

/// Returns sentences with the totals.
fn total(part: &Part<'_>) -> String {
    let Counts { functions, sites } = part.total();
    let share = |count: &Count| {
        let percent = count.percent();
        format!("{} of {} ({percent:.1} %)", count.reached, count.all)
    };
    let reached_functions = match functions.all {
        0 => String::new(),
        _ => format!("Functions reached: {}. ", share(&functions)),
    };
    let alive = match part.dead {
        0 => String::new(),
        _ => format!("; of the reachable sites, {}", share(&part.alive())),
    };
    format!(
        "{reached_functions}Sites reached: {}, {} of them by the boot{alive}. Sites not reached:\n",
        share(&sites),
        sites.by_boot
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::Both;
    use crate::coverage::sites::tests::{rules, text};

    #[test]
    fn what_was_not_reached_is_named_with_its_reason() {
        let rules = rules("[[unreached]]\nfunction='user'\ncallee='flush_*'\nreason='no device'\n");
        let text = text(&rules);
        let coverage = Coverage::of(&text, &rules, "plain", &Both::none(&text));
        let names = Names::by_hand(&[]);
        let style = Style {
            names: &names,
            text: &text,
            rules: &rules,
        };
        let output = style.text(&coverage);
        for part in [
            "Functions reached: 0 of 2 (0.0 %). Sites reached: 0 of 5 (0.0 %), 0 of them by the boot. ",
            "  user+0x0 calls flush_all: no device\n",
            "  user+0xc drains the write buffer (0,c7,c10,4)\n",
            "\nSites reached: 0 of 1 (0.0 %)",
            "  other+0x0 calls flush_all\n",
        ] {
            assert!(output.contains(part), "{output}");
        }
        let json = style.json(&coverage);
        assert_eq!(json["inside"]["unreached"][0]["reason"], "no device");
        assert_eq!(json["outside"]["total"]["sites"]["all"], 1);
    }
}
