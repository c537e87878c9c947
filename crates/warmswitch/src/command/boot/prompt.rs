// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds a prompt in a console log. A prompt is a line that has begun and has not ended.

/// Number of bytes to search at the end of the log. A prompt and the kernel messages after it are shorter.
const TAIL: usize = 4096;
/// Number of characters at the end in which two prompts must agree. The text before them may contain a directory.
const SAME: usize = 2;

/// Returns the end of the prompt that the log shows. Returns `None` if it shows no prompt. Kernel messages with a time
/// stamp may follow the prompt.
pub fn of(log: &[u8]) -> Option<String> {
    let text = anstream::adapter::strip_bytes(&log[log.len().saturating_sub(TAIL)..]).into_vec();
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.rsplit('\n');
    if let Some(prompt) = lines.next().and_then(end) {
        return Some(prompt);
    }
    for line in lines {
        // If anything other than a kernel message ended the line, the line is not a prompt.
        let begun = &line[..kernel_part(line)?];
        if let Some(prompt) = end(begun) {
            return Some(prompt);
        }
    }
    None
}

/// Returns the last visible characters of a line that ends like a prompt.
fn end(line: &str) -> Option<String> {
    let line = line.trim_matches('\r');
    // The first three ends belong to shell prompts. The others belong to questions.
    if !["# ", "$ ", "> ", ": ", "? "]
        .iter()
        .any(|end| line.ends_with(end))
    {
        return None;
    }
    let from = line.char_indices().rev().take(SAME).last();
    let (from, _) = from.filter(|_| !line.trim().is_empty())?;
    Some(line[from..].to_string())
}

/// Returns the position of a kernel message in a line. The message begins at its time stamp, `[    1.234567] `.
fn kernel_part(line: &str) -> Option<usize> {
    let is = |(at, _): &(usize, &str)| {
        let time = line[at + 1..]
            .split_once("] ")
            .map(|(time, _)| time.trim_start());
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        time.and_then(|time| time.split_once('.'))
            .is_some_and(|(s, us)| digits(s) && digits(us) && us.len() == 6)
    };
    line.match_indices('[').find(is).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(log: &str) -> Option<String> {
        of(log.as_bytes())
    }

    #[test]
    fn a_line_that_was_not_ended_is_a_prompt() {
        assert_eq!(shown("boots\r\nwarmswitch# "), Some("# ".into()));
        assert_eq!(shown("~ # \x1b[6n"), Some("# ".into()));
        assert_eq!(shown("login: "), Some(": ".into()));
        assert_eq!(shown("checking the disk... "), None);
        assert_eq!(shown("# sleep 10\r\n"), None);
        assert_eq!(shown(""), None);
        assert_eq!(shown("\r\n\r"), None);
    }

    #[test]
    fn what_the_kernel_says_behind_a_prompt_does_not_end_it() {
        let said = "a\r\n/ # [    9.100000] random: crng init done\r\n";
        assert_eq!(shown(said), Some("# ".into()));
        let more = format!("{said}[   10.200000] eth0: link up\r\n");
        assert_eq!(shown(&more), Some("# ".into()));
        let echo = "# printf '[ 1.5 ] && sleep 20; echo finished\r\n";
        assert_eq!(shown(echo), None);
        assert_eq!(shown("a\r\n[   10.200000] eth0: link up\r\n"), None);
    }
}
