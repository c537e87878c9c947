// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `host/target.c` printed on a product, found again in a log of its console or of a connection to it.

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use super::document::Machine;
use super::read;
use super::rows::Row;

/// Each line of the program's begins so.
const START: &str = "{\"target\":\"";
/// Of its lines.
const FORMAT: u32 = 1;

/// A line of the program's.
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
    },
}

/// A program that came to its end there.
#[derive(Deserialize)]
struct Run {
    tool: String,
    what: String,
    command: String,
    cpu: Option<usize>,
    code: Option<i32>,
    errors: String,
    /// A guest's result.
    printed: Option<Value>,
    /// What else it printed.
    output: Option<String>,
}

/// One call of the program.
struct Called {
    machine: Machine,
    tools: Vec<Tool>,
    /// `None` when the log ends before it did.
    interrupted: Option<bool>,
}

/// What a tool came to.
struct Tool {
    name: String,
    cpu: Option<usize>,
    rows: Vec<Row>,
}

/// What there is in a log.
#[derive(Default)]
pub struct Log {
    /// Each tool's document, with its rows.
    pub tools: Vec<(String, Value, Vec<Row>)>,
    /// What is missing or damaged.
    pub notes: Vec<String>,
}

/// Reads a log; an error when nothing of the program's is in it.
pub fn read(text: &str) -> Result<Log> {
    let mut log = Log::default();
    let mut all: Vec<Called> = Vec::new();
    for (n, line) in text.lines().enumerate() {
        // A console's line may begin with a prompt or the kernel's time, and ends with a carriage return.
        let Some(at) = line.find(START) else { continue };
        match serde_json::from_str(line[at..].trim_end()) {
            Ok(line) => take(&mut all, line).with_context(|| format!("line {}", n + 1))?,
            Err(error) => log
                .notes
                .push(format!("line {} is damaged, and left out: {error}", n + 1)),
        }
    }
    if all.is_empty() {
        bail!(
            "nothing that warmswitch-target printed is in it{}",
            log.notes
                .first()
                .map_or(String::new(), |note| format!(": {note}"))
        );
    }
    for called in all {
        if called.interrupted.is_none() {
            log.notes
                .push("the log ends before the program did".to_string());
        }
        for tool in called.tools {
            let measured = json!({"runs": tool.rows});
            let interrupted = called.interrupted != Some(false);
            let document = called
                .machine
                .document(&tool.name, tool.cpu, interrupted, measured);
            log.tools.push((tool.name, document, tool.rows));
        }
    }
    Ok(log)
}

fn take(all: &mut Vec<Called>, line: Line) -> Result<()> {
    match line {
        Line::Machine { format, .. } if format != FORMAT => {
            bail!("warmswitch-target prints format {format}, this program reads {FORMAT}");
        }
        Line::Machine { machine, .. } => all.push(Called {
            machine,
            tools: Vec::new(),
            interrupted: None,
        }),
        Line::Run(run) => {
            let called = all.last_mut().context("a run, and no machine before it")?;
            called.add(run)?;
        }
        Line::End { interrupted } => {
            let called = all.last_mut().context("an end, and no machine before it")?;
            called.interrupted = Some(interrupted);
        }
    }
    Ok(())
}

impl Called {
    fn add(&mut self, run: Run) -> Result<()> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if run.tool.is_empty() || !run.tool.chars().all(is_name) {
            bail!("a tool named {:?}", run.tool);
        }
        let command: Vec<String> = run.command.split_whitespace().map(String::from).collect();
        let program = command.first().context("a run of no program")?;
        let printed = match (run.printed, run.output) {
            (Some(value), _) => read::checked(program, value),
            (None, output) => read::printed(program, &output.unwrap_or_default()),
        };
        let row = Row::of(&run.what, command, run.code, &run.errors, printed);
        let same = |tool: &&mut Tool| tool.name == run.tool && tool.cpu == run.cpu;
        match self.tools.last_mut().filter(same) {
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
    const END: &str = r#"{"target":"end","interrupted":false}"#;

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
            log.notes[0].starts_with("line 2 is damaged"),
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
        let said = crate::host::rows::failed(&log.tools[0].2);
        assert!(
            said[0].contains("ipc ended with Some(1): ipc: fork"),
            "{said:?}"
        );
        assert!(
            said[1].contains("ipc printed a result of \"memory\""),
            "{said:?}"
        );
        assert_eq!(said.len(), 3);
    }

    #[test]
    fn what_is_no_log_of_the_programs_is_an_error() {
        assert!(log(&["hello"]).is_err());
        assert!(log(&[RUN]).is_err(), "no machine");
        assert!(log(&[&MACHINE.replace("\"format\":1", "\"format\":2")]).is_err());
        // Names become those of files.
        assert!(log(&[MACHINE, &RUN.replace("\"pipe\"", "\"../pipe\"")]).is_err());
    }
}
