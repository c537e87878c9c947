// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the output of the commands in docs/use/LESSON.md with the document. The kernel determines addresses and the
//! ways of the caches. Therefore, only the words that the lesson's program stores, and their marks, are compared.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const LESSON: &str = include_str!("../../../../docs/use/LESSON.md");
const PROGRAM: &str = env!("CARGO_BIN_EXE_warmswitch");
/// Words that the lesson's program stores, and instructions of its functions.
const WORDS: [&str; 4] = ["11111111", "22222222", "e3a00001", "e3a00002"];

/// A command of the document, with its output in the document.
struct Shown {
    command: String,
    output: String,
}

/// Returns the commands of the document, in order.
fn shown() -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut inside = false;
    for line in LESSON.lines() {
        let Some(line) = line.strip_prefix("    ") else {
            inside &= line.is_empty();
            continue;
        };
        if let Some(command) = line.strip_prefix("$ ") {
            all.push(Shown {
                command: command.to_string(),
                output: String::new(),
            });
            inside = true;
        } else if let Some(last) = all.last_mut().filter(|_| inside) {
            match last.command.strip_suffix('\\') {
                Some(begin) => last.command = begin.to_string() + line.trim(),
                None => last.output += &format!("{line}\n"),
            }
        }
    }
    all
}

/// Returns the lesson's words in an output, with their marks.
fn words(output: &str) -> Vec<&str> {
    let tokens = output.lines().flat_map(|line| line.split([' ', '*']));
    let mut words: Vec<&str> = tokens
        .filter(|token| WORDS.contains(&token.trim_end_matches('~')))
        .collect();
    words.sort_unstable();
    words
}

/// Runs a line in a shell in the tree. Returns the output. The exit status of the line must be 0.
fn typed(tree: &Path, line: &str) -> String {
    let programs = Path::new(PROGRAM).parent().expect("a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-ec", line])
        .env("PATH", format!("{}:{path}", programs.display()))
        .current_dir(tree)
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs the lesson's commands in order, and compares their output.
pub fn read_in(tree: &Path) {
    fs::create_dir_all(tree.join("out")).unwrap();
    let all = shown();
    assert!(all.len() >= 8, "{} commands", all.len());
    for Shown { command, output } in &all {
        let here = typed(tree, command);
        if command.contains("look ") {
            assert!(!words(output).is_empty(), "{command}: it shows no word");
            assert_eq!(words(output), words(&here), "{command}:\n{here}");
        }
        if command.contains("coherence ") {
            let kind = |text: &str| text.split_once(']').map(|(kind, _)| kind.to_string());
            assert_eq!(kind(output), kind(&here), "{command}:\n{here}");
        }
    }
    for picture in ["stale.svg", "mended.svg"] {
        let picture = fs::read_to_string(tree.join("out").join(picture)).expect("a picture");
        for word in ["11111111", "22222222"] {
            assert!(picture.contains(&format!(">{word}</text>")), "{word}");
        }
    }
}

#[test]
fn nothing_that_is_one_kernels_own_is_typed() {
    for Shown { command, .. } in shown() {
        let numbers = command.split([' ', '@', '+']).filter(|word| word.len() > 8);
        let typed = numbers.filter(|word| word.starts_with("0x") || word.parse::<u64>().is_ok());
        assert_eq!(typed.count(), 0, "{command}");
    }
}
