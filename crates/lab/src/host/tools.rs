// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boards' workloads on this machine: which programs a tool runs, and what comes of them.

use std::net::Ipv4Addr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};

use super::programs::{self, Program, Ran};
use super::read::{self, Figure};
use crate::base::interrupt;
use crate::base::progress::Progress;
use crate::figures::figure::digits;
use crate::sheets::grid::Grid;

/// How long before the other end a program that waits for it is started.
const HEAD_START: Duration = Duration::from_millis(300);

/// One run of a program.
pub struct Call {
    /// In tables.
    what: String,
    program: Source,
    arguments: Vec<String>,
    read: fn(&Value) -> Result<Vec<Figure>>,
    /// The other end: the program that is measured, by what this one sees of it.
    other: Option<Other>,
    /// A UIO device, for the program that answers its interrupts.
    device: Option<String>,
}

/// A program beside a call's.
struct Other {
    name: &'static str,
    arguments: Vec<String>,
}

/// Whose source.
enum Source {
    /// The board's, as it is.
    Guest(&'static str),
    /// The board's, by a file below `host/` that says what a PC does in another way.
    Adapted(&'static str),
}

/// What came of a call.
#[derive(Serialize)]
pub struct Row {
    what: String,
    command: Vec<String>,
    /// All that the program printed, raw samples among it.
    printed: Value,
    figures: Vec<Figure>,
    /// What the program complained of, though it went on.
    notes: Vec<String>,
    /// Why there is no figure.
    failed: Option<String>,
}

/// The lengths of a tool's measurement.
#[derive(Clone, Copy)]
pub struct Form {
    pub quick: bool,
}

impl Form {
    fn of(self, full: u32, quick: u32) -> u32 {
        if self.quick { quick } else { full }
    }
}

fn call(
    what: String,
    program: Source,
    arguments: &str,
    read: fn(&Value) -> Result<Vec<Figure>>,
) -> Call {
    Call {
        what,
        program,
        arguments: words(arguments),
        read,
        other: None,
        device: None,
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

/// Rings of tasks, as processes and as threads.
pub fn ctx(form: Form, sizes_kb: &[u32], tasks: &[u32]) -> Vec<Call> {
    let (rounds, samples) = (form.of(1000, 200), form.of(11, 5));
    let mut calls = Vec::new();
    for kb in sizes_kb {
        for n in tasks {
            for (mode, option) in [("processes", "-P"), ("threads", "-T")] {
                let arguments = format!("{option} -s {kb} -n {rounds} -r {samples} {n}");
                let what = format!("{n} {mode}, {kb} KB");
                calls.push(call(what, Source::Guest("lat_ctx"), &arguments, read::ring));
            }
        }
    }
    calls
}

/// Named FIFOs (`-v`) or pipes (`-f`) between two processes.
pub fn ipc(form: Form, option: &str) -> Vec<Call> {
    let (rounds, mb, samples) = (form.of(20_000, 2000), form.of(200, 20), form.of(11, 5));
    let latency = format!("lat {option} -n {rounds} -r {samples}");
    let bandwidth = format!("bw {option} -m {mb} -r {samples}");
    vec![
        call(
            "latency".into(),
            Source::Adapted("ipc"),
            &latency,
            read::pipe,
        ),
        call(
            "bandwidth".into(),
            Source::Adapted("ipc"),
            &bandwidth,
            read::pipe,
        ),
    ]
}

/// Groups of 20 senders and 20 receivers.
pub fn messaging(form: Form, groups: u32) -> Vec<Call> {
    let runs = form.of(11, 3);
    let (what, arguments) = (format!("{groups} groups"), format!("{runs} {groups}"));
    vec![call(
        what,
        Source::Adapted("messages"),
        &arguments,
        read::messages,
    )]
}

/// A timer's latency, by the options of `cyclic`.
pub fn cyclic(options: &str) -> Vec<Call> {
    vec![call(
        "timer".into(),
        Source::Adapted("cyclic"),
        options,
        read::cyclic,
    )]
}

/// The pairs of the paper of 2007.
pub fn overhead(form: Form) -> Vec<Call> {
    let (pieces, samples) = (form.of(64, 16), form.of(11, 3));
    let turns = if form.quick { "1 16" } else { "1 4 16 64" };
    let pair = |(a, b): (&str, &str)| {
        let arguments = format!("-n {pieces} -r {samples} {a} {b} {turns}");
        call(
            format!("{a}-{b}"),
            Source::Guest("overhead"),
            &arguments,
            read::overhead,
        )
    };
    [("sort", "deflate"), ("aes", "crc")].map(pair).into()
}

/// Loads and bandwidth up to a size.
pub fn memory(form: Form, max_kb: u32) -> Vec<Call> {
    let max_kb = if form.quick { max_kb.min(64) } else { max_kb };
    let arguments = format!("-m {max_kb} -r {} -t {}", form.of(7, 3), form.of(5, 1));
    vec![call(
        "memory".into(),
        Source::Guest("memory"),
        &arguments,
        read::memory,
    )]
}

/// How a program answers packets: one here, or the one at `to`.
pub fn reply(form: Form, to: Option<Ipv4Addr>, hz: u32) -> Vec<Call> {
    let seconds = form.of(10, 1);
    let there = to.unwrap_or(Ipv4Addr::LOCALHOST);
    let arguments = format!("reply {there} {seconds} {hz} 64 1");
    let what = format!("reply from {there}");
    let asked = call(what, Source::Adapted("net"), &arguments, read::net);
    // It begins before the questions and ends after them.
    vec![asked.beside(to, "udp_reply", seconds + 1)]
}

/// How regularly a program sends packets: one here, or the one at `from`.
pub fn period(form: Form, from: Option<Ipv4Addr>) -> Vec<Call> {
    let seconds = form.of(10, 1);
    let arguments = format!("period {}", seconds + 1);
    let what = "period".to_string();
    vec![
        call(what, Source::Adapted("net"), &arguments, read::net).beside(
            from,
            "udp_period",
            seconds,
        ),
    ]
}

/// Interrupts of a UIO device and the task that answers them.
pub fn irq(form: Form, device: &str) -> Vec<Call> {
    let seconds = form.of(10, 1).to_string();
    let answered = call(
        device.to_string(),
        Source::Adapted("uio_latency"),
        &seconds,
        read::irq,
    );
    vec![Call {
        device: Some(device.to_string()),
        ..answered
    }]
}

impl Call {
    /// With the other end on this machine, unless it is on another one.
    fn beside(self, elsewhere: Option<Ipv4Addr>, name: &'static str, seconds: u32) -> Call {
        let here = Other {
            name,
            arguments: words(&format!("{seconds} {}", Ipv4Addr::LOCALHOST)),
        };
        Call {
            other: elsewhere.is_none().then_some(here),
            ..self
        }
    }

    /// To its end; with the other end, which is the one on the processor that was asked for.
    fn ran(&self, cpu: Option<usize>) -> Result<Ran> {
        let program = self.program()?.built()?;
        if let Some(device) = &self.device {
            let mut arguments = vec![
                format!("UIO={device}"),
                program.to_string_lossy().into_owned(),
            ];
            arguments.extend(self.arguments.iter().cloned());
            return programs::run(Path::new("env"), &arguments, cpu);
        }
        let Some(other) = &self.other else {
            return programs::run(&program, &self.arguments, cpu);
        };
        let measured = Program::own(other.name).built()?;
        let (ours, theirs) = thread::scope(|scope| {
            let ours = scope.spawn(|| programs::run(&program, &self.arguments, None));
            // It is told "ready", for which it has to be there.
            thread::sleep(HEAD_START);
            let theirs = programs::run(&measured, &other.arguments, cpu);
            (ours.join(), theirs)
        });
        let mut ran = ours.map_err(|_| anyhow::anyhow!("the thread that runs it failed"))??;
        ran.errors += &theirs?.errors;
        Ok(ran)
    }

    fn program(&self) -> Result<Program> {
        match self.program {
            Source::Guest(name) => Program::guest(name),
            Source::Adapted(name) => Ok(Program::own(name)),
        }
    }

    fn name(&self) -> &'static str {
        match self.program {
            Source::Guest(name) | Source::Adapted(name) => name,
        }
    }

    /// Runs it; an error when it cannot be built or started. `None` when Ctrl-C came before its end.
    fn run(&self, cpu: Option<usize>) -> Result<Option<Row>> {
        let ran = self.ran(cpu)?;
        if ran.code.is_none() && interrupt::asked() {
            return Ok(None);
        }
        let read = self.printed(&ran).and_then(|v| Ok(((self.read)(&v)?, v)));
        let (figures, printed, failed) = match read {
            Ok((figures, printed)) => (figures, printed, None),
            Err(error) => (Vec::new(), Value::Null, Some(format!("{error:#}"))),
        };
        let mut command = vec![self.name().to_string()];
        command.extend(self.arguments.iter().cloned());
        Ok(Some(Row {
            what: self.what.clone(),
            command,
            printed,
            figures,
            notes: ran.errors.lines().map(String::from).collect(),
            failed,
        }))
    }

    fn printed(&self, ran: &Ran) -> Result<Value> {
        if ran.code != Some(0) {
            let last = ran.errors.trim().lines().last().unwrap_or("nothing said");
            anyhow::bail!("{} ended with {:?}: {last}", self.name(), ran.code);
        }
        match self.name() {
            // It prints what hackbench prints.
            "messages" => Ok(json!({"times_s": read::times(&ran.output)?})),
            name => read::line(name, &ran.output),
        }
    }
}

/// All of them; those before Ctrl-C.
pub fn run(tool: &str, calls: &[Call], cpu: Option<usize>) -> Result<Vec<Row>> {
    let mut progress = Progress::new(tool, calls.len() as u64);
    let mut rows = Vec::new();
    for call in calls {
        if interrupt::asked() {
            break;
        }
        rows.extend(call.run(cpu)?);
        progress.step(&call.what);
    }
    progress.finish("measured");
    Ok(rows)
}

/// A line for each program's run and what is told apart within it, a column for each figure.
pub fn table(rows: &[Row]) -> Grid {
    let mut columns: Vec<(&str, &str)> = Vec::new();
    let mut lines: Vec<(&Row, &str)> = Vec::new();
    for (row, figure) in rows
        .iter()
        .flat_map(|row| row.figures.iter().map(move |f| (row, f)))
    {
        let column = (figure.metric.as_str(), figure.unit);
        if !columns.contains(&column) {
            columns.push(column);
        }
        let is_line = |(r, at): &(&Row, &str)| r.what == row.what && *at == figure.at;
        if !lines.iter().any(is_line) {
            lines.push((row, &figure.at));
        }
    }
    let cell = |row: &Row, at: &str, column: &(&str, &str)| {
        let is = |f: &&Figure| f.at == at && (f.metric.as_str(), f.unit) == *column;
        row.figures.iter().find(is).map_or("-".to_string(), shown)
    };
    let line = |(row, at): &(&Row, &str)| {
        let what = format!("{} {at}", row.what).trim_end().to_string();
        let cells = columns.iter().map(|column| cell(row, at, column));
        std::iter::once(what).chain(cells).collect()
    };
    let headings = columns
        .iter()
        .map(|(metric, unit)| format!("{metric}\n{unit}"));
    Grid {
        texts: 1,
        headings: std::iter::once("what".to_string())
            .chain(headings)
            .collect(),
        rows: lines.iter().map(line).collect(),
    }
}

/// With its interval if it has one.
fn shown(figure: &Figure) -> String {
    let e = figure.estimate;
    let [value, low, high] = [e.value, e.low, e.high].map(digits);
    match low == value && high == value {
        true => value,
        false => format!("{value} ({low}..{high})"),
    }
}

/// Runs that gave no figure, each with its reason.
pub fn failed(rows: &[Row]) -> Vec<String> {
    let failed = rows
        .iter()
        .filter_map(|row| Some((&row.what, row.failed.as_ref()?)));
    failed.map(|(what, why)| format!("{what}: {why}")).collect()
}

/// What could not be set, or was complained of.
pub fn notes(rows: &[Row]) -> Vec<String> {
    let whole = || rows.iter().filter(|row| row.failed.is_none());
    let mut notes: Vec<String> = whole().flat_map(|row| row.notes.clone()).collect();
    for row in whole() {
        let refused = row.printed["refused"].as_object().into_iter().flatten();
        let refused = refused.filter(|(_, is)| **is == true);
        notes.extend(refused.map(|(name, _)| format!("{}: not set: {name}", row.what)));
    }
    // Several processes of a program say the same.
    notes.sort();
    notes.dedup();
    notes
}
