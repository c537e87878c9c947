// SPDX-License-Identifier: MIT OR Apache-2.0
//! Markers around the output of a command on the guest's console, and the kernel's last messages.

use anyhow::{Context as _, Result, bail};

/// Printed by `run-guest` before the program starts.
pub const BEGIN: &str = "@@begin";
/// Printed by `run-guest`, with the exit status, after the program has ended.
pub const END: &str = "@@end ";
/// Printed by the first process before the first prompt.
pub const READY: &str = "@@ready";
/// Linux's message before the cause of a panic.
const PANIC: &str = "Kernel panic";
/// Linux's message when it could unpack only a part of its root file system. Linux then continues with this part.
const HALF_UNPACKED: &str = "Initramfs unpacking failed";
/// Number of lines from the end of the console output in an error message.
const LAST_LINES: usize = 5;

/// A line that is typed to the guest's shell, and the markers around the command's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// The typed line.
    pub line: String,
    begin: String,
    /// Marker after the command's output. The exit status follows the marker.
    pub end: String,
}

impl Typed {
    /// Makes the line for a workload's command, which the guest's `run-guest` starts. The output of our workloads
    /// contains no markers.
    pub fn by_run_guest(command: &str) -> Typed {
        Typed {
            line: format!("run-guest {command}"),
            begin: BEGIN.to_string(),
            end: END.to_string(),
        }
    }

    /// Makes the line for a user's command, which may print anything. The markers contain a hash of the command. The
    /// typed line has quotes inside the markers, so the terminal's echo of the line does not match the markers.
    pub fn own(command: &str) -> Typed {
        let number = &blake3::hash(command.as_bytes()).to_hex()[..8];
        let line = format!(
            r#"printf '%s\n' @@"begin-{number}"; {command}; printf '\n%s %d\n' @@"end-{number}" $?"#
        );
        Typed {
            line,
            begin: format!("@@begin-{number}"),
            end: format!("@@end-{number} "),
        }
    }

    /// Returns the output and the exit status of a command that has ended.
    pub fn ended(&self, console: &[u8]) -> Result<(Vec<u8>, i32)> {
        let (output, status) = self.said(console);
        let status = status.context("the console has no readable exit status of the command")?;
        Ok((output, status))
    }

    /// Whether the command reads from standard input.
    pub fn reads(&self) -> bool {
        self.line.contains(" </.stdin;")
    }

    /// Returns the command's output so far, byte for byte, and its exit status if it has ended.
    pub fn said(&self, console: &[u8]) -> (Vec<u8>, Option<i32>) {
        let Some(begin) = find(console, self.begin.as_bytes()) else {
            return (Vec::new(), None);
        };
        let body = &console[begin + self.begin.len()..];
        let body = body.strip_prefix(b"\r").unwrap_or(body);
        let body = body.strip_prefix(b"\n").unwrap_or(body);
        let end = find(body, format!("\n{}", self.end).as_bytes());
        let status = end.and_then(|end| {
            let rest = String::from_utf8_lossy(&body[end + 1 + self.end.len()..]).into_owned();
            rest.split_whitespace().next()?.parse().ok()
        });
        let body = &body[..end.unwrap_or(body.len())];
        let body = if end.is_some() {
            body.strip_suffix(b"\r").unwrap_or(body)
        } else {
            body
        };
        (without_returns(body), status)
    }
}

/// Removes the carriage return that the terminal puts before each line feed.
fn without_returns(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    for (at, byte) in body.iter().enumerate() {
        if *byte != b'\r' || body.get(at + 1) != Some(&b'\n') {
            out.push(*byte);
        }
    }
    out
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// Returns the text between the markers of `run-guest`, and the exit status.
pub fn between_markers(console: &str) -> Result<(&str, i32)> {
    let start = console
        .rfind(BEGIN)
        .context("the program was not started: the console has no @@begin")?;
    let body = &console[start + BEGIN.len()..];
    let end = body
        .rfind(END)
        .context("the program did not end: the console has no @@end")?;
    let status = body[end + END.len()..]
        .split_whitespace()
        .next()
        .unwrap_or("");
    let status = status
        .parse()
        .with_context(|| format!("@@end {status}: {status:?} is not an exit status"))?;
    Ok((body[..end].trim(), status))
}

/// Refuses the exit statuses of a shell that could not run the command (POSIX, exit status for commands).
pub fn check_that_it_ran(status: i32, output: &str) -> Result<()> {
    let why = match status {
        126 => "it cannot be executed",
        127 => "there is no such program",
        _ => return Ok(()),
    };
    let output = output.trim_end();
    bail!("the guest cannot run the command: {why} (exit status {status} of its shell)\n{output}");
}

/// Whether the kernel reported that it unpacked only a part of its root file system.
pub fn is_half_unpacked(console: &[u8]) -> bool {
    find(console, HALF_UNPACKED.as_bytes()).is_some()
}

/// Returns the last lines of the console, for error messages. Earlier lines about a kernel panic or a half-unpacked
/// root file system are included, because a long backtrace may separate them from the end.
pub fn last_words(console: &[u8]) -> String {
    let text = anstream::adapter::strip_bytes(console).into_vec();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    if lines.is_empty() {
        return "\n  the console is empty\n  help: the kernel may give its serial line another name: --append console=ttyAT0,115200 \
                (CONFIG_SERIAL_ATMEL_TTYAT)"
            .into();
    }
    let from = lines.len().saturating_sub(LAST_LINES);
    let line_with = |text| lines[..from].iter().rfind(|line| line.contains(text));
    let causes = [HALF_UNPACKED, PANIC].into_iter().filter_map(line_with);
    let last: Vec<&str> = causes.chain(&lines[from..]).copied().collect();
    format!("\n  the console's last lines:\n    {}", last.join("\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_stands_between_the_markers_whatever_the_terminal_echoes() {
        let console = "# run-guest x\r\n@@begin\r\nline\r\n\r\n@@end 3\r\n# ";
        assert_eq!(between_markers(console).unwrap(), ("line", 3));
    }

    #[test]
    fn a_console_without_markers_is_an_error() {
        assert!(between_markers("nothing").is_err());
        assert!(between_markers("@@begin\nx\n@@end q\n").is_err());
    }

    #[test]
    fn what_a_users_command_prints_is_no_marker_and_comes_byte_for_byte() {
        let typed = Typed::own("echo @@end 0");
        let echo = format!("# {}\r\n", typed.line);
        assert!(!echo.contains(&typed.begin) && !echo.contains(&typed.end));
        let said = |output: &[u8], status: &str| {
            let mut console = format!("{echo}{}\r\n", typed.begin).into_bytes();
            console.extend(output);
            console.extend(format!("\r\n{}{status}\r\n# ", typed.end).bytes());
            typed.said(&console)
        };
        let lines = said(b"  @@end 0\r\n@@begin\r\n \xff\r\r\n\r\n", "9");
        assert_eq!(
            lines,
            (b"  @@end 0\n@@begin\n \xff\r\n\n".to_vec(), Some(9))
        );
        assert_eq!(
            said(b"no line feed", "0"),
            (b"no line feed".to_vec(), Some(0))
        );
        assert_eq!(said(b"", "1"), (Vec::new(), Some(1)));
        let begun = format!("{echo}{}\r\nhalf", typed.begin);
        assert_eq!(typed.said(begun.as_bytes()), (b"half".to_vec(), None));
        assert_eq!(typed.said(echo.as_bytes()), (Vec::new(), None));
    }

    #[test]
    fn a_command_that_the_shell_did_not_find_is_an_error_with_its_words() {
        let error = check_that_it_ran(127, "sh: x: not found\n").unwrap_err();
        let text = error.to_string();
        assert!(text.contains("no such program") && text.ends_with("sh: x: not found"));
        assert!(check_that_it_ran(1, "").is_ok());
    }

    #[test]
    fn a_panics_line_is_among_the_last_words_however_long_its_trace() {
        let trace = "#0 f\r\n".repeat(20);
        let console = format!("boots\r\nKernel panic - not syncing: x\r\n{trace}");
        let words = last_words(console.as_bytes());
        assert!(words.contains("Kernel panic - not syncing: x\n") && !words.contains("boots"));
        assert_eq!(words.lines().count(), 8);
        assert!(last_words(b"\r\n").contains("is empty"));
        let cut = format!("boots\r\n[    0.2] Initramfs unpacking failed: write error\r\n{trace}");
        assert!(is_half_unpacked(cut.as_bytes()) && !is_half_unpacked(b"boots"));
        let words = last_words(cut.as_bytes());
        assert!(words.contains("unpacking failed: write error\n"), "{words}");
    }
}
