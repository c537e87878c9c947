// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch look`, and that docs/LESSON.md shows what it prints.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::commands::scratch;

const LESSON: &str = include_str!("../../../../docs/LESSON.md");
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest/lesson/lesson.c");
/// Words that the lesson's program stores, and those of its functions.
const WORDS: [&str; 4] = ["11111111", "22222222", "e3a00001", "e3a00002"];

fn run(dir: &Path, program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(dir);
    let output = command.stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}"))
}

fn warmswitch(dir: &Path, arguments: &[&str]) -> Output {
    run(dir, env!("CARGO_BIN_EXE_warmswitch"), arguments)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn wrong_usage_names_the_option_and_what_was_meant() {
    for (arguments, part) in [
        (&["--at", "f"][..], "<CMD>"),
        (&["--", "true"], "--at"),
        (&["--at", "0x8000@", "--", "true"], "not PC@CYCLE"),
        (
            &["--at", "8000 b", "--", "true"],
            "not PC, PC@CYCLE or SYMBOL",
        ),
        (&["--at", "lr", "--", "true"], "--at: a register"),
        (&["--at", "f", "--nth", "0", "--", "true"], "--nth 0"),
        (
            &["--at", "0x8000@7", "--nth", "2", "--", "true"],
            "--nth 2: --at says",
        ),
        (
            &["--at", "f", "--until", "0x8000@7", "--", "true"],
            "--until: a cycle",
        ),
        (
            &["--at", "f", "--address", "r16", "--", "true"],
            "not a virtual address",
        ),
        (&["--at", "f", "--limit", "0", "--", "true"], "--limit 0"),
        (
            &["--at", "f", "--board", "sam9236", "--", "true"],
            "did you mean \"sam9263\"?",
        ),
        (
            &["--at", "f", "--mutant", "alias-no-flash", "--", "true"],
            "did you mean \"alias-no-flush\"?",
        ),
    ] {
        let output = warmswitch(Path::new("."), &[&["look"], arguments].concat());
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
}

#[test]
fn help_has_an_example_and_the_documents_name() {
    let help = text(&warmswitch(Path::new("."), &["look", "--help"]).stdout);
    for part in ["warmswitch look --add", "docs/LESSON.md"] {
        assert!(help.contains(part), "{help}");
    }
}

#[test]
#[ignore = "needs the kernel"]
fn a_place_that_is_not_reached_and_memory_that_is_not_there_are_named() {
    for (arguments, part) in [
        (
            &["--at", "start_kernal"][..],
            "--at start_kernal: no such function; did you mean \"start_kernel\"?",
        ),
        (
            &["--at", "start_kernel"],
            "was executed 0 times, and not 1, when the command ended",
        ),
        (
            &["--at", "sys_read", "--address", "0x00000010"],
            "--address: nothing is mapped at 0x00000010",
        ),
    ] {
        let all = [&["look"], arguments, &["--", "true"]].concat();
        let output = warmswitch(Path::new("."), &all);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(part), "{arguments:?}: {message}");
    }
}

/// The document's commands, each with what it shows of their output.
fn shown() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in LESSON.lines() {
        match line.strip_prefix("    ") {
            Some(line) => match line.strip_prefix("$ ") {
                Some(command) => {
                    all.push((command.to_string(), String::new()));
                    inside = true;
                }
                None if inside => {
                    let (command, output) = all.last_mut().expect("a command");
                    if let Some(begin) = command.strip_suffix('\\') {
                        *command = begin.to_string() + line.trim();
                    } else {
                        *output += &format!("{line}\n");
                    }
                }
                None => {}
            },
            None => inside &= line.is_empty(),
        }
    }
    all
}

/// The lesson's words with their marks: which way they are in is another kernel's own.
fn words(output: &str) -> Vec<&str> {
    let tokens = output.lines().flat_map(|line| line.split([' ', '*']));
    let mut words: Vec<&str> = tokens
        .filter(|token| WORDS.contains(&token.trim_end_matches('~')))
        .collect();
    words.sort_unstable();
    words
}

fn between<'a>(text: &'a str, begin: &str, end: char) -> &'a str {
    let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{text}"));
    rest.split(end).next().unwrap_or(rest)
}

#[test]
#[ignore = "needs the kernel"]
fn the_lesson_shows_what_its_commands_print() {
    let dir = scratch("lesson");
    let build = ["cc", "-O2", "-static", "-o", "lesson", SOURCE];
    let built = run(&dir, env!("CARGO_BIN_EXE_warmswitch"), &build);
    assert!(built.status.success(), "{}", text(&built.stderr));
    let commands = shown();
    let of = |verb: &str| {
        let begin = format!("warmswitch {verb} ");
        let of_verb = commands.iter().filter(move |(c, _)| c.starts_with(&begin));
        of_verb.cloned().collect::<Vec<_>>()
    };
    let checked = of("coherence");
    let [(command, report)] = &checked[..] else {
        panic!("{checked:?}")
    };
    let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
    let found = text(&warmswitch(&dir, &arguments).stdout);
    // Where it was for the document, and here.
    let moved = |text: &str| {
        [("--gdb ", ' '), ("through VA ", ' ')]
            .map(|(begin, end)| between(text, begin, end).to_string())
    };
    let (then, now) = (moved(report), moved(&found));
    let looks = of("look");
    assert!(looks.len() >= 6, "{looks:?}");
    let look = |command: &str| {
        let command = command.replace(&then[0], &now[0]);
        let command = command.replace(&then[1], &now[1]);
        let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
        let output = warmswitch(&dir, &arguments);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command}: {message}");
        text(&output.stdout)
    };
    std::thread::scope(|scope| {
        for (command, shown) in &looks {
            let look = &look;
            scope.spawn(move || {
                let output = look(command);
                assert_eq!(words(shown), words(&output), "{command}:\n{output}");
            });
        }
    });
    for picture in ["stale.svg", "mended.svg"] {
        let picture = std::fs::read_to_string(dir.join(picture)).expect("a picture");
        for word in ["11111111", "22222222"] {
            assert!(picture.contains(&format!(">{word}</text>")), "{word}");
        }
    }
    let (first, _) = &looks[0];
    assert_eq!(look(first), look(first), "the same bytes twice");
}
