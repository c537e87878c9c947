// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the kernel log of a failed command. The kernel prints few messages on the console (`quiet`), so only this log
//! says why the kernel refused a program.

use anyhow::Result;
use board::BoardBus;

use crate::session::Session;
use base::shell::in_shell;
use results::runs::markers::Typed;

/// Largest difference between the uptime and the clock of the log, in seconds. The uptime has a resolution of 0.01 s.
const BLUR_S: f64 = 0.03;
/// Maximum number of lines to show.
const LAST_LINES: usize = 5;
/// Prints the uptime. This is a separate command, because a longer line takes longer to type. The shell itself reads
/// the file, because a program takes time to start, whereas the kernel may refuse the user's command at once.
const UPTIME: &str = "read -r up idle </proc/uptime; echo $up $idle";
/// Prints the last log records with their times. `cat` must be killed, because it waits for the next record. The
/// records go to a file first, because the console is too slow for all of them.
const RECORDS: &str =
    "cat /dev/kmsg >/tmp/.kmsg & sleep 0.1; kill $!; tail -n 40 /tmp/.kmsg; rm /tmp/.kmsg";
/// Limit of board time for each of these commands, in seconds.
const LIMIT_S: f64 = 20.0;

/// Returns the kernel's last lines since a command was typed at `from`, in seconds since power-on. Returns no lines if
/// the guest cannot read the log.
pub fn since<B: BoardBus>(session: &mut Session<B>, from: f64) -> Vec<String> {
    // The uptime command is typed like the user's command, so both start equally long after they are typed.
    let ago = session.seconds() - from;
    let output =
        output_of(session, UPTIME).and_then(|uptime| Ok((uptime, output_of(session, RECORDS)?)));
    output
        .map(|(uptime, records)| lines(&uptime, &records, ago))
        .unwrap_or_default()
}

fn output_of<B: BoardBus>(session: &mut Session<B>, line: &str) -> Result<String> {
    let typed = Typed::own(&in_shell(line));
    let measured = session.run(&typed, LIMIT_S)?;
    let (text, _) = typed.ended(&measured.console)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the text of the last records. The first of these records is at most `ago_s` seconds older than the uptime.
fn lines(uptime: &str, records: &str, ago_s: f64) -> Vec<String> {
    let Some(uptime) = uptime.split(' ').next().and_then(|s| s.parse::<f64>().ok()) else {
        return Vec::new();
    };
    let text = |line: &str| {
        // A record is "level,number,microseconds,flags;text".
        let (prefix, text) = line.split_once(';')?;
        let time: f64 = prefix.split(',').nth(2)?.parse().ok()?;
        (time / 1e6 + BLUR_S >= uptime - ago_s).then(|| text.to_string())
    };
    let mut lines: Vec<String> = records.lines().filter_map(text).collect();
    lines.drain(..lines.len().saturating_sub(LAST_LINES));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_since_a_command_began_are_told_the_last_ones() {
        let records = "6,1,100000,-;booting\n6,2,1990000,-;before\n\
            4,3,2310000,-;x: no place; so it is\n KEY=value\nno line\n";
        assert_eq!(lines("2.50 1.0\n", records, 0.4), ["x: no place; so it is"]);
        assert!(lines("2.50 1.0\n", records, 0.1).is_empty());
        assert!(lines("no uptime\n", "6,1,9000000,-;x\n", 1.0).is_empty());
        let many: String = (0..9).map(|n| format!("6,{n},2{n}00000,-;{n}\n")).collect();
        assert_eq!(lines("3.00 1\n", &many, 2.0).len(), LAST_LINES);
    }
}
