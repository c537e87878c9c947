// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask sentences [SEED [COUNT]]`: draws sentences from documents, help and comments. A reader marks the
//! sentences that he would rewrite. Equal seeds and trees give equal sentences.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::{git, root};

/// Minimum number of words in a sentence.
const WORDS: usize = 5;

/// A sentence, and the place where it begins.
struct Sentence {
    place: String,
    text: String,
}

/// Prints the sentences.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let number = |at: usize, usual: u64| match arguments.get(at) {
        Some(word) => (word.parse()).with_context(|| format!("{word}: a number is expected")),
        None => Ok(usual),
    };
    let (seed, count): (u64, u64) = (number(0, 1)?, number(1, 200)?);
    let listed = git().args(["ls-files", "*.md", "*.rs"]).output()?;
    let mut all = Vec::new();
    for path in String::from_utf8_lossy(&listed.stdout).lines() {
        let text = std::fs::read_to_string(root().join(path)).with_context(|| path.to_string())?;
        all.extend(sentences(path, &text));
    }
    println!("{} sentences; seed {seed}", all.len());
    let mut state = seed;
    for n in 1..=count.min(all.len() as u64) {
        let at = (draw(&mut state) % all.len() as u64) as usize;
        let Sentence { place, text } = all.swap_remove(at);
        println!("{n}. {place}: {text}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the next random number (splitmix64).
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Returns the sentences of a document's prose or of a source's comments. Help texts are comments in the source.
fn sentences(path: &str, text: &str) -> Vec<Sentence> {
    let is_document = path.ends_with(".md");
    let mut found = Vec::new();
    let mut paragraph = String::new();
    let mut begins = 0;
    let (mut in_code, mut in_comment) = (false, false);
    for (n, line) in text.lines().chain([""]).enumerate() {
        let words = line.trim_start();
        let prose = match is_document {
            true => {
                let fence = words.starts_with("```");
                in_code ^= fence;
                let begun = in_comment || words.starts_with("<!--");
                in_comment = begun && !line.contains("-->");
                let no_prose = words.starts_with(['|', '#', '<', '!']) || line.starts_with("    ");
                (!fence && !in_code && !begun && !no_prose).then_some(words)
            }
            false => ["//! ", "/// ", "// "]
                .iter()
                .find_map(|mark| words.strip_prefix(mark)),
        };
        let prose = prose.filter(|prose| !prose.is_empty() && !prose.starts_with("SPDX"));
        let item = prose.is_some_and(|prose| is_document && is_item(prose));
        if prose.is_none() || item {
            split(path, begins, &paragraph, &mut found);
            paragraph.clear();
        }
        if let Some(prose) = prose {
            if paragraph.is_empty() {
                begins = n + 1;
            }
            paragraph.push_str(prose.trim_start_matches("- "));
            paragraph.push(' ');
        }
    }
    found
}

/// Returns whether a line begins an item of a list.
fn is_item(prose: &str) -> bool {
    let number = prose.split_once(". ").map_or("", |(number, _)| number);
    prose.starts_with("- ") || !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// Splits a paragraph into sentences. A sentence ends at a full stop before a capital letter, a backtick or a bracket.
fn split(path: &str, line: usize, paragraph: &str, found: &mut Vec<Sentence>) {
    let mut rest = paragraph.trim();
    while !rest.is_empty() {
        let ends = rest.match_indices(". ").map(|(at, _)| at + 1);
        let ends = ends.chain([rest.len()]);
        let is_end = |at: &usize| {
            let next = rest[*at..].trim_start().chars().next();
            next.is_none_or(|c| c.is_uppercase() || c == '`' || c == '[')
        };
        let end = ends.into_iter().find(is_end).unwrap_or(rest.len());
        let text = rest[..end].trim().to_string();
        if text.split(' ').count() >= WORDS {
            let place = format!("{path}:{line}");
            found.push(Sentence { place, text });
        }
        rest = rest[end..].trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &str, text: &str) -> Vec<String> {
        let all = sentences(path, text).into_iter();
        all.map(|sentence| sentence.text).collect()
    }

    #[test]
    fn a_comment_within_a_line_hides_no_sentence_behind_it() {
        let document = "A figure of 41<!-- record --> us stands in this line.\n\n<!-- One two three\n\n\
                        four five six. -->\n\nSeven eight nine ten eleven.\n";
        let all = texts("a.md", document);
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(all[1], "Seven eight nine ten eleven.");
    }

    #[test]
    fn prose_and_comments_are_split_into_sentences() {
        let document = "# A heading of five words here\n\nOne two three four five. Six seven eight\n\
                        nine ten eleven.\n- An item with five words.\n\n    code is no prose at all.\n| a | table row here too |\n";
        assert_eq!(
            texts("a.md", document),
            [
                "One two three four five.",
                "Six seven eight nine ten eleven.",
                "An item with five words."
            ]
        );
        let source = "/// Reads the file at once, e.g. a board's file.\nfn a() {} // short\n// One more comment of words.\n";
        assert_eq!(
            texts("a.rs", source),
            [
                "Reads the file at once, e.g. a board's file.",
                "One more comment of words."
            ]
        );
    }
}
