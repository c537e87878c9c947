// SPDX-License-Identifier: MIT OR Apache-2.0
//! Grammar of the random programs: `guest/mm_chaos/grammar.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use board::random::Random;
use serde::Deserialize;

use super::places::{Weights, ZONES};
use base::paths::{root, shown};
use base::suggest::did_you_mean;
use base::toml_file;

/// The kinds of arguments, one letter per kind.
const ARGUMENTS: &str = "scfxpkdrqtmgh";
/// Ops that start another task.
pub const STARTS: [&str; 3] = ["th", "fo", "vx"];
/// Slots and files of the interpreter.
pub const SLOTS: [u64; 6] = [0, 1, 2, 3, 6, 7];
pub const CODE_SLOTS: [u64; 2] = [4, 5];
pub const FILES: u64 = 4;
pub const CODE_FILES: u64 = 2;
pub const PAGES: u64 = 64;
pub const CODE_PAGES: u64 = 8;
const PROCESSES: u64 = 32;
const NAPS: u64 = 50;

/// Smallest and largest value.
pub type Span = [u64; 2];

fn all_pages() -> u64 {
    PAGES
}

/// Limits of the interpreter: sequences, ops per sequence, bytes of text.
pub const SEQUENCES: usize = 16;
pub const SEQUENCE_OPS: usize = 200;
pub const BYTES: usize = 3500;

/// Limits of a random program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of sequences.
    pub sequences: usize,
    /// Maximum number of ops per sequence.
    pub sequence_ops: usize,
    /// Maximum length of the text, in bytes.
    pub bytes: usize,
    /// Maximum work of a program, in ops. An op counts once for each start of its sequence.
    pub work: usize,
}

/// Parameters of the random choices. The percentages are probabilities.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draw {
    /// Probability that the first slot, file or process is chosen.
    pub favourite_percent: u64,
    /// Probability that page 0 is chosen.
    pub first_page_percent: u64,
    /// Probability that a page at the end of the mapping is chosen when page 0 is not chosen.
    pub last_pages_percent: u64,
    /// Probability that an op takes all pages of a mapping.
    pub whole_percent: u64,
    /// Probability that an op takes all pages from the chosen page on, when it does not take all pages of the mapping.
    pub rest_percent: u64,
    /// Weights of three access sizes: a few words, more words, or all words of a page.
    pub rings: [u64; 3],
    /// Weights of three kinds of rights: no rights, read or execute, and write.
    pub rights: [u64; 3],
    /// Probability that an op that takes rights away is soon followed by an op that gives them back.
    pub back_percent: u64,
    /// Probability that the task gives up the processor after the op that follows the start of another task.
    pub wait_percent: u64,
    /// Probability that a task starts right before one of the ops in the list `met`.
    pub met_percent: u64,
    pub met: Vec<String>,
    /// Probability that a sequence repeats one phrase.
    pub phrase_percent: u64,
    /// Number of ops in a phrase.
    pub phrase: Span,
    /// Length of a nap, in units of 100 us.
    pub naps: Span,
    /// Number of processes that a program accesses.
    pub processes: u64,
}

/// Profile of one kind of program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Weight of this profile when a profile is chosen at random.
    pub weight: u64,
    /// Number of sequences.
    pub sequences: Span,
    /// Number of ops in the first sequence.
    pub first_ops: Span,
    /// Number of ops in each sequence except the first.
    pub ops: Span,
    /// Number of kinds of ops in a sequence.
    pub kinds: Span,
    /// Number of times that each sequence except the first is started.
    pub times: Span,
    /// Replaces [`Draw::phrase_percent`].
    pub phrase_percent: Option<u64>,
    /// Replaces [`Draw::whole_percent`].
    pub whole_percent: Option<u64>,
    /// Maximum number of pages that one op in a sequence other than the first reaches.
    #[serde(default = "all_pages")]
    pub at_once: u64,
    /// Number of data slots in use.
    pub slots: Span,
    /// Number of code slots in use.
    pub code_slots: Span,
    /// Number of pages in a mapping.
    pub pages: Span,
    /// Number of files in use.
    pub files: Span,
    /// Ops that start another sequence. No op starts the first sequence.
    pub starts: Weights,
    /// Ops that map the slots at the beginning.
    pub maps: Weights,
    /// Ops of the first sequence, instead of `does`.
    #[serde(default)]
    pub first_does: Weights,
    /// All other ops.
    pub does: Weights,
}

impl Profile {
    /// Returns the ops of the first sequence.
    pub fn first(&self) -> &Weights {
        if self.first_does.is_empty() {
            return &self.does;
        }
        &self.first_does
    }
}

/// A part of the kernel in which an interrupt may reveal a bug.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Weight of this zone among the zones that a program can reach.
    pub weight: u64,
    /// Ops through which a program can reach the zone. If the list is empty, every program can reach the zone.
    #[serde(default)]
    pub ops: Vec<String>,
}

/// All input of the program generator, apart from the seed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grammar {
    /// Limits of a program.
    pub limits: Limits,
    /// Parameters of the random choices.
    pub draw: Draw,
    /// Arguments of each op, one letter per argument.
    pub op: BTreeMap<String, String>,
    /// Parts of the kernel, by name.
    pub zone: BTreeMap<String, Zone>,
    /// Profiles, by name.
    pub profile: BTreeMap<String, Profile>,
}

fn grammar_file() -> PathBuf {
    root().join("guest/mm_chaos/grammar.toml")
}

/// Chooses a random number from the span.
pub fn within(random: &mut Random, span: Span) -> u64 {
    span[0] + random.below(span[1] - span[0] + 1)
}

impl Grammar {
    /// Reads and checks the repository's grammar.
    pub fn load() -> Result<Grammar> {
        let path = grammar_file();
        let grammar: Grammar = toml_file::read(&path)?;
        grammar.checked(&path)
    }

    fn checked(self, path: &Path) -> Result<Grammar> {
        let path = shown(path);
        for (name, arguments) in &self.op {
            if let Some(letter) = arguments
                .chars()
                .find(|letter| !ARGUMENTS.contains(*letter))
            {
                bail!(
                    "{path}: op.{name}: '{letter}' is no argument letter; use one of {ARGUMENTS}"
                );
            }
        }
        let limits = [
            ("sequences", self.limits.sequences, SEQUENCES),
            ("sequence_ops", self.limits.sequence_ops, SEQUENCE_OPS),
            ("bytes", self.limits.bytes, BYTES),
        ];
        if let Some((key, _, most)) = limits.iter().find(|(_, limit, most)| limit > most) {
            bail!("{path}: limits.{key}: the interpreter takes at most {most}");
        }
        let most = self.limits.sequence_ops as u64 / 2;
        let spans = [
            ("draw.naps", self.draw.naps, 1, NAPS),
            ("draw.phrase", self.draw.phrase, 1, most),
        ];
        check_spans(&path, "", &spans)?;
        if !(1..=PROCESSES).contains(&self.draw.processes) {
            bail!("{path}: draw.processes: must be 1 to {PROCESSES}");
        }
        for (key, weights) in [("rings", self.draw.rings), ("rights", self.draw.rights)] {
            if weights.iter().sum::<u64>() == 0 {
                bail!("{path}: draw.{key}: all weights are 0; at least one must be larger");
            }
        }
        let lists = self
            .zone
            .iter()
            .map(|(name, zone)| (format!("zone.{name}.ops"), &zone.ops));
        for (key, ops) in lists.chain([("draw.met".to_string(), &self.draw.met)]) {
            if let Some(op) = ops.iter().find(|op| !self.op.contains_key(*op)) {
                let meant = did_you_mean(op, &self.op.keys().collect::<Vec<_>>());
                bail!("{path}: {key}: no op \"{op}\"{meant}");
            }
        }
        self.check_zones(&path)?;
        if self.profile.values().all(|profile| profile.weight == 0) {
            bail!("{path}: profile: all weights are 0; at least one must be larger");
        }
        for (name, profile) in &self.profile {
            self.check_profile(&path, name, profile)?;
        }
        Ok(self)
    }

    fn check_zones(&self, path: &str) -> Result<()> {
        let names: Vec<&str> = ZONES.iter().map(|zone| zone.0).collect();
        for name in self.zone.keys() {
            if !names.contains(&name.as_str()) {
                bail!(
                    "{path}: zone: no zone \"{name}\"{}",
                    did_you_mean(name, &names)
                );
            }
        }
        Ok(())
    }

    fn check_profile(&self, path: &str, name: &str, profile: &Profile) -> Result<()> {
        let most = self.limits.sequence_ops as u64 / 2;
        let kinds = profile.does.len().max(profile.first_does.len());
        let spans = [
            (
                "sequences",
                profile.sequences,
                1,
                self.limits.sequences as u64,
            ),
            ("first_ops", profile.first_ops, 0, most),
            ("ops", profile.ops, 0, most),
            ("kinds", profile.kinds, 1, kinds as u64),
            ("times", profile.times, 1, most),
            ("slots", profile.slots, 0, SLOTS.len() as u64),
            ("code_slots", profile.code_slots, 0, CODE_SLOTS.len() as u64),
            ("pages", profile.pages, 1, PAGES),
            ("at_once", [profile.at_once; 2], 1, PAGES),
            ("files", profile.files, 1, FILES),
        ];
        check_spans(path, &format!("profile.{name}."), &spans)?;
        if profile.slots[0] + profile.code_slots[0] == 0 {
            bail!("{path}: profile.{name}.slots: slots or code_slots must begin above 0");
        }
        let tables = [
            ("starts", &profile.starts),
            ("maps", &profile.maps),
            ("first_does", &profile.first_does),
            ("does", &profile.does),
        ];
        for (key, weights) in tables {
            for op in weights.keys() {
                let wrong = match key {
                    _ if !self.op.contains_key(op) => {
                        did_you_mean(op, &self.op.keys().collect::<Vec<_>>())
                    }
                    "starts" if !STARTS.contains(&op.as_str()) => did_you_mean(op, &STARTS),
                    "does" | "first_does" if STARTS.contains(&op.as_str()) => {
                        "; it belongs in starts".to_string()
                    }
                    _ => continue,
                };
                bail!("{path}: profile.{name}.{key}: no op \"{op}\"{wrong}");
            }
            if weights.values().sum::<u64>() == 0 && (key != "first_does" || !weights.is_empty()) {
                bail!(
                    "{path}: profile.{name}.{key}: all weights are 0; at least one must be larger"
                );
            }
        }
        Ok(())
    }
}

fn check_spans(path: &str, table: &str, spans: &[(&str, Span, u64, u64)]) -> Result<()> {
    for (key, [from, to], least, most) in spans {
        if from > to || from < least || to > most {
            bail!("{path}: {table}{key}: [{from}, {to}] is not a range within {least} to {most}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads names and arguments from the interpreter's table.
    fn table() -> BTreeMap<String, String> {
        let source = std::fs::read_to_string(grammar_file().with_file_name("parse.c")).unwrap();
        let (_, table) = source.split_once("op_kinds[] = {").unwrap();
        let (table, _) = table.split_once("NULL, NULL").unwrap();
        let row = |line: &str| {
            let mut parts = line.split('"');
            let (name, arguments) = (parts.nth(1)?, parts.nth(1)?);
            Some((name.to_string(), arguments.to_string()))
        };
        table.lines().filter_map(row).collect()
    }

    #[test]
    fn the_interpreter_has_the_same_ops() {
        let ops = Grammar::load().unwrap().op;
        assert_eq!(ops, table());
        assert!(ops.len() > 40, "{}", ops.len());
    }

    #[test]
    fn each_op_is_in_a_profile() {
        let grammar = Grammar::load().unwrap();
        for op in grammar.op.keys() {
            let used = |profile: &Profile| {
                [&profile.starts, &profile.maps, &profile.does].map(|all| all.contains_key(op))
            };
            let used = grammar.profile.values().any(|p| used(p).contains(&true));
            assert!(used, "{op}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_file_key_and_what_was_meant() {
        let text = std::fs::read_to_string(grammar_file()).unwrap();
        for (from, to, says) in [
            (
                "favourite_percent",
                "favorite_percent",
                "did you mean \"favourite_percent\"?",
            ),
            (
                "kf = 6",
                "kk = 8",
                "profile.code.does: no op \"kk\"; did you mean",
            ),
            (
                "th = 6, fo = 1",
                "w = 6",
                "profile.threads.starts: no op \"w\"; did you mean",
            ),
            (
                "c = 30",
                "vx = 30",
                "profile.code.does: no op \"vx\"; it belongs in starts",
            ),
            (
                "sequences = [3, 7]",
                "sequences = [3, 70]",
                "profile.mixed.sequences: [3, 70]",
            ),
            ("ks = \"cg\"", "ks = \"cy\"", "op.ks: 'y' is no argument"),
        ] {
            assert!(text.contains(from), "{from}");
            let text = text.replacen(from, to, 1);
            let path = Path::new("g/grammar.toml");
            let read = toml_file::parse::<Grammar>(&text, path);
            let error = read.and_then(|grammar| grammar.checked(path)).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with("g/grammar.toml: "), "{error}");
            assert!(error.contains(says), "{error}");
        }
    }
}
