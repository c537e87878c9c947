// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the output of `warmswitch-target` (`host/target.c`) in a log of a product's console or connection.

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use super::document::Machine;
use super::read;
use super::rows::Row;

/// Start of each line that the program prints.
pub const START: &str = "{\"target\":\"";
const MACHINE: &str = "{\"target\":\"machine\"";
/// Format of the lines.
const FORMAT: u32 = 1;

/// A line that `warmswitch-target` prints.
#[derive(Deserialize)]
#[serde(tag = "target", rename_all = "lowercase")]
enum Line {
    Machine {
        format: u32,
        #[serde(flatten)]
        machine: Machine,
    },
    Run(Run),
    End {
        interrupted: bool,
        runs: usize,
    },
}

/// A run of a guest's program on the product.
#[derive(Deserialize)]
struct Run {
    tool: String,
    what: String,
    command: String,
    cpu: Option<usize>,
    code: Option<i32>,
    errors: String,
    /// The guest's result as JSON.
    printed: Option<Value>,
    /// Text output of a guest that prints no JSON.
    output: Option<String>,
}

/// One call of `warmswitch-target`.
struct Called {
    machine: Machine,
    tools: Vec<Tool>,
    /// Whether the call was interrupted, and how many runs it made. `None` when the log does not contain the end of the
    /// call.
    ended: Option<(bool, usize)>,
}

/// The runs of a tool.
struct Tool {
    name: String,
    cpu: Option<usize>,
    rows: Vec<Row>,
}

/// Content of a log.
#[derive(Default)]
pub struct Log {
    /// Name, document and rows of each tool.
    pub tools: Vec<(String, Value, Vec<Row>)>,
    /// Notes about missing and damaged lines.
    pub notes: Vec<String>,
}

/// Reads a log. Rejects a log that contains no run of `warmswitch-target`.
pub fn read(text: &str) -> Result<Log> {
    let mut log = Log::default();
    let mut all: Vec<Called> = Vec::new();
    // Whether the first line of the current call was readable.
    let mut is_known = false;
    for (n, line) in text.lines().enumerate() {
        // A console line may begin with a prompt or the kernel's time, and ends with a carriage return.
        let Some(at) = line.find(START) else { continue };
        let line = line[at..].trim_end();
        is_known &= !line.starts_with(MACHINE);
        let read = serde_json::from_str(line).map_err(anyhow::Error::from);
        if let Err(error) = read.and_then(|line| take(&mut all, &mut is_known, line)) {
            log.notes
                .push(format!("line {} is left out: {error:#}", n + 1));
        }
    }
    if all.iter().all(|called| called.tools.is_empty()) {
        let why = log
            .notes
            .first()
            .map_or(String::new(), |note| format!(": {note}"));
        bail!("the log has no run of warmswitch-target{why}");
    }
    for called in all {
        let runs: usize = called.tools.iter().map(|tool| tool.rows.len()).sum();
        match called.ended {
            None => log
                .notes
                .push("the log ends before the program did".to_string()),
            Some((_, printed)) if printed != runs => {
                log.notes
                    .push(format!("the log has {runs} of {printed} runs"));
            }
            Some(_) => {}
        }
        for tool in called.tools {
            let measured = json!({"runs": tool.rows});
            let interrupted = called.ended.is_none_or(|(interrupted, _)| interrupted);
            let document = called
                .machine
                .document(&tool.name, tool.cpu, interrupted, measured);
            if log.tools.iter().any(|(name, _, _)| *name == tool.name) {
                log.notes.push(format!(
                    "{} is in the log more than once: only the last is kept",
                    tool.name
                ));
            }
            log.tools.push((tool.name, document, tool.rows));
        }
    }
    Ok(log)
}

fn take(all: &mut Vec<Called>, is_known: &mut bool, line: Line) -> Result<()> {
    if let Line::Machine { format, machine } = line {
        if format != FORMAT {
            bail!("warmswitch-target prints format {format}, this program reads format {FORMAT}");
        }
        *is_known = true;
        all.push(Called {
            machine,
            tools: Vec::new(),
            ended: None,
        });
        return Ok(());
    }
    let called = all.last_mut().filter(|_| *is_known);
    let called = called.context("there is no readable line \"machine\" before it")?;
    match line {
        Line::Run(run) => called.add(run)?,
        Line::End { interrupted, runs } => called.ended = Some((interrupted, runs)),
        Line::Machine { .. } => {}
    }
    Ok(())
}

/// Replaces control characters, which could be commands to a terminal.
fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' { '?' } else { c };
    text.chars().map(shown).collect()
}

impl Called {
    fn add(&mut self, run: Run) -> Result<()> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if run.tool.is_empty() || !run.tool.chars().all(is_name) {
            bail!("{:?} is not the name of a tool", run.tool);
        }
        let command = plain(&run.command);
        let command: Vec<String> = command.split_whitespace().map(String::from).collect();
        let program = command.first().context("\"command\" is empty")?;
        let printed = match (run.printed, run.output) {
            (Some(value), _) => read::checked(program, value),
            (None, output) => read::printed(program, &output.unwrap_or_default()),
        };
        let what = plain(&run.what).replace('\n', "?");
        let row = Row::of(&what, command, run.code, &plain(&run.errors), printed);
        let same = |tool: &&mut Tool| tool.name == run.tool && tool.cpu == run.cpu;
        match self.tools.iter_mut().find(same) {
            Some(tool) => tool.rows.push(row),
            None => self.tools.push(Tool {
                name: run.tool,
                cpu: run.cpu,
                rows: vec![row],
            }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &str = r#"{"target":"machine","format":1,"quick":false,"measured_at_s":7,"processors":1,"architecture":"armv5tejl","kernel":"6.12","kernel_version":"x","files":{"proc/cpuinfo":"Processor : ARM926EJ-S\n","proc/swaps":"Filename\n"}}"#;
    const RUN: &str = r#"{"target":"run","tool":"pipe","what":"latency","command":"ipc lat -f","cpu":null,"code":0,"errors":"","printed":{"guest":"ipc","format":1,"metric":"lat_fifo","values":[300.5,300.0]}}"#;
    const END: &str = r#"{"target":"end","interrupted":false,"runs":1}"#;

    fn log(lines: &[&str]) -> Result<Log> {
        read(&lines.join("\r\n"))
    }

    #[test]
    fn a_console_with_other_lines_around_gives_the_document_that_this_machine_would_give() {
        let prompt = format!("# {MACHINE}");
        let kernel = "[   12.5] usb 1-1: new device";
        let log = log(&["login: root", &prompt, kernel, RUN, END, "# "]).unwrap();
        assert!(log.notes.is_empty(), "{:?}", log.notes);
        let (tool, document, rows) = &log.tools[0];
        assert_eq!((tool.as_str(), rows.len()), ("pipe", 1));
        assert_eq!(document["machine"]["processor"], "ARM926EJ-S");
        assert_eq!(document["measured_at_s"], 7);
        assert_eq!(document["interrupted"], false);
        let run = &document["measured"]["runs"][0];
        assert_eq!(run["printed"]["values"][0], 300.5);
        assert_eq!(run["figures"][1]["value"], 300.0);
        let swap = document["setup"].as_array().unwrap().iter();
        let swap: Vec<_> = swap
            .filter(|check| check["name"] == "swap devices")
            .collect();
        assert_eq!(swap[0]["good"], true);
    }

    #[test]
    fn what_is_damaged_or_cut_off_is_said_and_the_rest_is_kept() {
        let damaged = RUN.replace("\"printed\":{", "\"printed\":{[  3.1] oops");
        let log = log(&[MACHINE, &damaged, RUN, &RUN[..90]]).unwrap();
        assert_eq!(log.tools[0].2.len(), 1);
        assert_eq!(log.tools[0].1["interrupted"], true);
        assert_eq!(log.notes.len(), 3, "{:?}", log.notes);
        assert!(
            log.notes[0].starts_with("line 2 is left out"),
            "{}",
            log.notes[0]
        );
        assert!(log.notes[2].contains("ends before"), "{}", log.notes[2]);
    }

    #[test]
    fn a_program_that_failed_or_prints_something_else_is_a_row_with_its_reason() {
        let failed = RUN.replace(
            "\"code\":0,\"errors\":\"\"",
            "\"code\":1,\"errors\":\"ipc: fork\"",
        );
        let other = RUN.replace("{\"guest\":\"ipc\"", "{\"guest\":\"memory\"");
        let killed = RUN.replace("\"code\":0", "\"code\":null");
        let log = log(&[MACHINE, &failed, &other, &killed, END]).unwrap();
        let said = crate::rows::failed(&log.tools[0].2);
        assert!(
            said[0].contains("ipc ended with exit code 1: ipc: fork"),
            "{said:?}"
        );
        assert!(
            said[1].contains("ipc printed a result of \"memory\""),
            "{said:?}"
        );
        assert_eq!(said.len(), 3);
    }

    #[test]
    fn runs_behind_a_damaged_first_line_and_runs_that_are_missing_are_said() {
        let damaged = MACHINE.replace("\"processors\":1", "\"processors\":\"1\"");
        let two = log(&[MACHINE, RUN, END, &damaged, RUN, END]).unwrap();
        assert_eq!((two.tools.len(), two.tools[0].2.len()), (1, 1));
        assert_eq!(two.notes.len(), 3, "{:?}", two.notes);
        assert!(
            two.notes[1].contains("no readable line \"machine\""),
            "{}",
            two.notes[1]
        );
        let lost = log(&[MACHINE, RUN, &END.replace(":1}", ":2}")]).unwrap();
        assert_eq!(lost.notes, ["the log has 1 of 2 runs"]);
        let twice = log(&[MACHINE, RUN, END, MACHINE, RUN, END]).unwrap();
        assert_eq!(
            twice.notes,
            ["pipe is in the log more than once: only the last is kept"]
        );
        let odd = RUN.replace("latency", "\\u001b[31mred");
        let odd = log(&[MACHINE, &odd, END]).unwrap();
        assert!(
            !crate::rows::table(&odd.tools[0].2)
                .to_string()
                .contains('\u{1b}')
        );
    }

    #[test]
    fn what_is_no_log_of_the_programs_is_an_error() {
        assert!(log(&["hello"]).is_err());
        assert!(log(&[RUN]).is_err(), "no machine");
        assert!(log(&[&MACHINE.replace("\"format\":1", "\"format\":2")]).is_err());
        // A tool's name becomes a file's name, so it must not be a path.
        assert!(log(&[MACHINE, &RUN.replace("\"pipe\"", "\"../pipe\"")]).is_err());
    }
}
