// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests with damaged texts. A text is cut off at any place, or bytes in it are changed. The result is an error or
//! possible figures, never a panic.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::forms_tests::{
    HACKBENCH, HISTOGRAM, JSON, LMBENCH, LOG, OLD_LOG, PLAIN, SIGNALTEST, TOP,
};
use super::tests::RTLA;
use super::*;

/// Returns a text of each form. The histogram has no empty bins, to save time.
fn texts() -> Vec<String> {
    let filled = |line: &&str| !line.ends_with(" 000000");
    let lines = HISTOGRAM.lines().filter(filled);
    let histogram = lines.map(|line| line.to_string() + "\n").collect();
    let others = [
        HACKBENCH, JSON, LMBENCH, LOG, OLD_LOG, PLAIN, SIGNALTEST, TOP, RTLA,
    ];
    let others = others.map(String::from).into_iter();
    others.chain([histogram]).collect()
}

/// Checks that all figures are possible, if the bytes can be read.
fn check(bytes: &[u8]) {
    let Ok(machine) = bytes_of(bytes) else {
        return;
    };
    for item in &machine.items {
        let value = item.estimate.value;
        assert!(value.is_finite() && value >= 0.0, "{item:?}");
    }
    machine.table().to_string();
}

#[test]
fn a_text_that_is_cut_off_anywhere_does_not_panic() {
    for text in texts() {
        assert!(
            text == SIGNALTEST || bytes_of(text.as_bytes()).is_ok(),
            "{text}"
        );
        for end in 0..text.len() {
            check(&text.as_bytes()[..end]);
            check(&text.as_bytes()[end..]);
        }
    }
}

/// Words that are inserted into a text.
const WORDS: [&str; 12] = [
    "99999999999999999999",
    "-7",
    "1e308",
    "nan",
    "\n",
    "\r",
    "\u{1b}[",
    "{",
    " ",
    "|",
    "#",
    ":",
];

/// Generates a place in the text. Also generates a byte to write, or a word to insert, at this place.
fn damage() -> impl Strategy<Value = (prop::sample::Index, u8, Option<String>)> {
    let word = prop::sample::select(&WORDS[..]).prop_map(String::from);
    (
        any::<prop::sample::Index>(),
        any::<u8>(),
        prop::option::of(word),
    )
}

#[test]
fn bytes_that_are_others_do_not_panic() {
    let config = Config {
        failure_persistence: None,
        ..Config::with_cases(2000)
    };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let texts = texts();
    let damaged = (0..texts.len(), vec(damage(), 1..6));
    let ran = TestRunner::new_with_rng(config, random).run(&damaged, |(n, all)| {
        let mut bytes = texts[n].clone().into_bytes();
        for (at, byte, word) in all {
            let at = at.index(bytes.len());
            match word {
                Some(word) => drop(bytes.splice(at..at, word.into_bytes())),
                None => bytes[at] = byte,
            }
        }
        check(&bytes);
        Ok(())
    });
    ran.unwrap();
}
