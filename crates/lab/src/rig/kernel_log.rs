// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest's kernel said while a command ran, for a command that failed: why it refused a program does not reach
//! a quiet console.

use anyhow::Result;
use board::BoardBus;

use crate::base::shell::in_shell;
use crate::rig::session::Session;
use crate::runs::markers::Typed;

/// Seconds by which the kernel's two clocks may differ: one has hundredths.
const BLUR_S: f64 = 0.03;
/// Lines that are of interest.
const LAST_LINES: usize = 5;
/// Board seconds for asking.
const LIMIT_S: f64 = 20.0;

/// The kernel's last lines since `from`, in seconds since the board was turned on; none where the guest cannot tell.
pub fn since<B: BoardBus>(session: &mut Session<B>, from: f64) -> Vec<String> {
    let asked = session.seconds();
    told(session)
        .map(|text| lines(&text, from - asked))
        .unwrap_or_default()
}

fn told<B: BoardBus>(session: &mut Session<B>) -> Result<String> {
    let typed = Typed::own(&in_shell("cat /proc/uptime; dmesg"));
    let measured = session.run(&typed, LIMIT_S)?;
    let (text, _) = typed.ended(&measured.console)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Lines from so many seconds after the uptime in the first one.
fn lines(text: &str, after_s: f64) -> Vec<String> {
    let mut all = text.lines();
    let uptime = all.next().and_then(|line| line.split(' ').next());
    let Some(uptime) = uptime.and_then(|uptime| uptime.parse::<f64>().ok()) else {
        return Vec::new();
    };
    let said = |line: &str| {
        let (time, words) = line.strip_prefix('[')?.split_once("] ")?;
        let time: f64 = time.trim().parse().ok()?;
        (time + BLUR_S >= uptime + after_s).then(|| words.to_string())
    };
    let mut said: Vec<String> = all.filter_map(said).collect();
    said.drain(..said.len().saturating_sub(LAST_LINES));
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_since_a_command_began_are_told_the_last_ones() {
        let text =
            "2.50 1.0\n[    0.10] booting\n[    1.99] before\n[    2.31] x: no place\nno line\n";
        assert_eq!(lines(text, -0.4), ["x: no place"]);
        assert!(lines(text, -0.1).is_empty());
        assert!(lines("no uptime\n[    9.0] x\n", -1.0).is_empty());
        let many: String = (0..9).map(|n| format!("[    2.{n}] {n}\n")).collect();
        assert_eq!(lines(&format!("3.00 1\n{many}"), -2.0).len(), LAST_LINES);
    }
}
