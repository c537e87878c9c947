// SPDX-License-Identifier: MIT OR Apache-2.0
//! Quotes words and lines for a POSIX shell: for the guest's shell, and for commands that messages show.

use anyhow::{Result, bail};

/// Longest line, in bytes. The guest's line editor has room for such a line and for the words that are typed around it.
const LONGEST: usize = 900;

/// Words that have a meaning for the shell at the start of a command (POSIX, reserved words).
const RESERVED: [&str; 18] = [
    "!", "{", "}", "case", "do", "done", "elif", "else", "esac", "fi", "for", "if", "in", "then",
    "until", "while", "function", "[[",
];

/// Builtins that change or end the shell that runs them (POSIX, special built-in utilities, and two of busybox). The
/// guest runs them in a separate shell.
const SPECIAL: [&str; 17] = [
    "break", ":", "continue", ".", "eval", "exec", "exit", "export", "readonly", "return", "set",
    "shift", "times", "trap", "unset", "local", "source",
];

/// Quotes a word for a shell, if it needs quotes.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,=+%@".contains(c);
    match word.chars().all(plain) && !word.is_empty() {
        true => word.to_string(),
        false => in_quotes(word),
    }
}

fn in_quotes(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the command that runs a line in a separate shell.
pub fn in_shell(line: &str) -> String {
    format!("sh -c {}", quoted(line))
}

/// Returns the line to type into the guest's shell for the words after `--`. A single word is a line for the shell.
/// Several words are a program and its arguments.
pub fn typed(words: &[String]) -> Result<String> {
    if words.iter().any(|word| word.contains(char::is_control)) {
        bail!(
            "-- {words:?}: control characters cannot be typed to the guest's shell: give one line of text"
        );
    }
    let line = match words {
        [] => String::new(),
        [line] if line.trim().is_empty() => bail!("-- {line:?}: no command"),
        [line] if quoted(line) == *line && is_program(line) => line.clone(),
        [line] => in_shell(line),
        [first, ..] if SPECIAL.contains(&first.as_str()) => in_shell(&shown(words)),
        [first, rest @ ..] if !is_program(first) => {
            // Without quotes, the shell would treat the word as a keyword or an assignment. With quotes, it is a
            // program's name.
            let rest = rest.iter().map(|word| format!(" {}", quoted(word)));
            in_quotes(first) + &rest.collect::<String>()
        }
        words => shown(words),
    };
    if line.len() > LONGEST {
        bail!(
            "-- {:.40}...: {} bytes; the guest's shell takes at most {LONGEST}: put the commands into a script",
            line,
            line.len()
        );
    }
    Ok(line)
}

/// Formats the words for messages. A single word is shown as it is. The words of a program and its arguments are
/// quoted.
pub fn shown(words: &[String]) -> String {
    if let [line] = words {
        return line.clone();
    }
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// Returns whether a shell takes this word as a program name. The word is the first word of a command.
fn is_program(word: &str) -> bool {
    !SPECIAL.contains(&word) && !RESERVED.contains(&word) && !word.contains('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
        typed(&words).unwrap()
    }

    #[test]
    fn words_come_through_a_shell_as_they_are() {
        assert_eq!(quoted("mm_suite"), "mm_suite");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn one_word_is_a_line_and_several_are_a_program_and_its_arguments() {
        assert_eq!(of(&["true; false"]), "sh -c 'true; false'");
        assert_eq!(of(&["sh", "-c", "echo a; b"]), "sh -c 'echo a; b'");
        assert_eq!(of(&["grep", "-c", "a b", "/x"]), "grep -c 'a b' /x");
        assert_eq!(of(&["mm_suite"]), "mm_suite");
        assert_eq!(of(&["echo", "$HOME", ""]), "echo '$HOME' ''");
    }

    #[test]
    fn what_would_end_the_shell_that_tells_the_status_runs_in_another() {
        assert_eq!(of(&["exit 3"]), "sh -c 'exit 3'");
        assert_eq!(of(&["exit"]), "sh -c exit");
        assert_eq!(of(&["A=3"]), "sh -c A=3");
        assert_eq!(of(&["if", "x"]), "'if' x");
        assert_eq!(of(&["A=3", "x"]), "'A=3' x");
        assert_eq!(of(&["if"]), "sh -c if");
        assert_eq!(of(&["exec", "a b"]), r"sh -c 'exec '\''a b'\'''");
    }

    #[test]
    fn what_cannot_be_typed_is_refused() {
        for bad in ["", "  ", "a\nb", "\u{1b}[A", &"x".repeat(901)] {
            assert!(typed(&[bad.to_string()]).is_err(), "{bad:?}");
        }
        assert_eq!(typed(&[]).unwrap(), "");
    }
}
