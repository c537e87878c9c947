// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest's kernel said while a command ran, for a command that failed: why it refused a program does not reach
//! a quiet console.

use anyhow::Result;
use board::BoardBus;

use crate::session::Session;
use base::shell::in_shell;
use results::runs::markers::Typed;

/// Seconds by which the kernel's two clocks may differ: one has hundredths.
const BLUR_S: f64 = 0.03;
/// Lines that are of interest.
const LAST_LINES: usize = 5;
/// By itself: what is typed takes time, a long line more of it. The shell reads it: a program would begin as late as the
/// command did, and the kernel may refuse that before it begins.
const UPTIME: &str = "read -r up idle </proc/uptime; echo $up $idle";
/// Prints the last records with their times, whatever the kernel's lines begin with. A reader of the records waits for
/// the next one. They go to a file first: the console is too slow for all of them.
const RECORDS: &str =
    "cat /dev/kmsg >/tmp/.kmsg & sleep 0.1; kill $!; tail -n 40 /tmp/.kmsg; rm /tmp/.kmsg";
/// Board seconds for asking.
const LIMIT_S: f64 = 20.0;

/// The kernel's last lines since a command was typed at `from`, in seconds since the board was turned on; none where
/// the guest cannot tell.
pub fn since<B: BoardBus>(session: &mut Session<B>, from: f64) -> Vec<String> {
    // The uptime is typed as the command was, and read as long after that as the command began.
    let ago = session.seconds() - from;
    let told = told(session, UPTIME).and_then(|uptime| Ok((uptime, told(session, RECORDS)?)));
    told.map(|(uptime, records)| lines(&uptime, &records, ago))
        .unwrap_or_default()
}

fn told<B: BoardBus>(session: &mut Session<B>, line: &str) -> Result<String> {
    let typed = Typed::own(&in_shell(line));
    let measured = session.run(&typed, LIMIT_S)?;
    let (text, _) = typed.ended(&measured.console)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Records from so many seconds before that uptime.
fn lines(uptime: &str, records: &str, ago_s: f64) -> Vec<String> {
    let Some(uptime) = uptime.split(' ').next().and_then(|s| s.parse::<f64>().ok()) else {
        return Vec::new();
    };
    let said = |line: &str| {
        // Level, number, microseconds, flags; and the words.
        let (about, words) = line.split_once(';')?;
        let time: f64 = about.split(',').nth(2)?.parse().ok()?;
        (time / 1e6 + BLUR_S >= uptime - ago_s).then(|| words.to_string())
    };
    let mut said: Vec<String> = records.lines().filter_map(said).collect();
    said.drain(..said.len().saturating_sub(LAST_LINES));
    said
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
