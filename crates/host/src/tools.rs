// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boards' workloads on this machine: which programs a tool runs, and what comes of them.

use std::net::Ipv4Addr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::programs::{self, Program, ProgramOutput};
use super::read;
use super::rows::Row;
use anyhow::Result;
use base::interrupt;
use base::progress::Progress;

/// Default sizes of each task's working set in `ctx`, in KB.
pub const SIZES_KB: [u32; 4] = [0, 4, 16, 64];
/// Default numbers of tasks in a ring of `ctx`.
pub const TASKS: [u32; 3] = [2, 8, 16];

/// How long before the other end a program that waits for it is started.
const HEAD_START: Duration = Duration::from_millis(300);

/// One run of a program.
pub struct Call {
    /// In tables.
    what: String,
    program: Source,
    arguments: Vec<String>,
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

/// The lengths of a tool's measurement.
#[derive(Clone, Copy)]
pub struct Form {
    /// Whether fewer rounds, samples or seconds are measured.
    pub quick: bool,
}

impl Form {
    fn of(self, full: u32, quick: u32) -> u32 {
        if self.quick { quick } else { full }
    }
}

fn call(what: String, program: Source, arguments: &str) -> Call {
    Call {
        what,
        program,
        arguments: words(arguments),
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
                calls.push(call(what, Source::Guest("lat_ctx"), &arguments));
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
        call("latency".into(), Source::Adapted("ipc"), &latency),
        call("bandwidth".into(), Source::Adapted("ipc"), &bandwidth),
    ]
}

/// Groups of 20 senders and 20 receivers.
pub fn messaging(form: Form, groups: u32) -> Vec<Call> {
    let runs = form.of(11, 3);
    let (what, arguments) = (format!("{groups} groups"), format!("{runs} {groups}"));
    vec![call(what, Source::Adapted("messages"), &arguments)]
}

/// The options of `cyclic` when nobody gives any.
pub fn timer(form: Form) -> String {
    format!("-i 1000 -t 1 -p 80 -m -D {}", form.of(10, 1))
}

/// A timer's latency, by the options of `cyclic`.
pub fn cyclic(options: &str) -> Vec<Call> {
    vec![call("timer".into(), Source::Adapted("cyclic"), options)]
}

/// The pairs of the paper of 2007.
pub fn overhead(form: Form) -> Vec<Call> {
    let (pieces, samples) = (form.of(64, 16), form.of(11, 3));
    let turns = if form.quick { "1 16" } else { "1 4 16 64" };
    let pair = |(a, b): (&str, &str)| {
        let arguments = format!("-n {pieces} -r {samples} {a} {b} {turns}");
        call(format!("{a}-{b}"), Source::Guest("overhead"), &arguments)
    };
    [("sort", "deflate"), ("aes", "crc")].map(pair).into()
}

/// Loads and bandwidth up to a size.
pub fn memory(form: Form, max_kb: u32) -> Vec<Call> {
    let max_kb = if form.quick { max_kb.min(64) } else { max_kb };
    let arguments = format!("-m {max_kb} -r {} -t {}", form.of(7, 3), form.of(5, 1));
    vec![call("memory".into(), Source::Guest("memory"), &arguments)]
}

/// How a program answers packets: one here, or the one at `to`.
pub fn reply(form: Form, to: Option<Ipv4Addr>, hz: u32) -> Vec<Call> {
    let seconds = form.of(10, 1);
    let there = to.unwrap_or(Ipv4Addr::LOCALHOST);
    let arguments = format!("reply {there} {seconds} {hz} 64 1");
    let what = format!("reply from {there}");
    let asked = call(what, Source::Adapted("net"), &arguments);
    // It begins before the questions and ends after them.
    vec![asked.beside(to, "udp_reply", seconds + 1)]
}

/// How regularly a program sends packets: one here, or the one at `from`.
pub fn period(form: Form, from: Option<Ipv4Addr>, us: u32) -> Vec<Call> {
    let seconds = form.of(10, 1);
    let arguments = format!("period {}", seconds + 1);
    let what = "period".to_string();
    let mut seen =
        call(what, Source::Adapted("net"), &arguments).beside(from, "udp_period", seconds);
    if let Some(sender) = &mut seen.other {
        sender.arguments.push(us.to_string());
    }
    vec![seen]
}

/// Interrupts of a UIO device and the task that answers them.
pub fn irq(form: Form, device: &str) -> Vec<Call> {
    let seconds = form.of(10, 1).to_string();
    let answered = call(device.to_string(), Source::Adapted("uio_latency"), &seconds);
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
    fn ran(&self, cpu: Option<usize>) -> Result<ProgramOutput> {
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
        let printed = read::printed(self.name(), &ran.output);
        Ok(Some(Row::of(
            &self.what,
            self.words(),
            ran.code,
            &ran.errors,
            printed,
        )))
    }

    /// In tables.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The program and its arguments.
    pub fn words(&self) -> Vec<String> {
        let name = std::iter::once(self.name().to_string());
        name.chain(self.arguments.iter().cloned()).collect()
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
