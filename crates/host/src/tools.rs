// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boards' workloads on this machine: the programs that each tool runs, and their results.

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

/// Head start of a program that waits for the other end.
const HEAD_START: Duration = Duration::from_millis(300);

/// One run of a program.
pub struct Call {
    /// Name in tables.
    what: String,
    program: Source,
    arguments: Vec<String>,
    /// The program at the other end, which is measured. `program` observes this program.
    other: Option<Other>,
    /// UIO device, for the program that answers its interrupts.
    device: Option<String>,
}

/// The other end of a call.
struct Other {
    name: &'static str,
    arguments: Vec<String>,
}

/// Source of a program.
enum Source {
    /// The guest's source, unchanged.
    Guest(&'static str),
    /// A file in `host/` that adapts the guest's source to a PC.
    Adapted(&'static str),
}

/// Length of a tool's measurement.
#[derive(Clone, Copy)]
pub struct Form {
    /// Whether to measure with fewer rounds, samples or seconds.
    pub quick: bool,
}

impl Form {
    fn pick(self, full: u32, quick: u32) -> u32 {
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

/// Makes the calls of `ctx`: rings of processes and of threads.
pub fn ctx(form: Form, sizes_kb: &[u32], tasks: &[u32]) -> Vec<Call> {
    let (rounds, samples) = (form.pick(1000, 200), form.pick(11, 5));
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

/// Makes the calls of `fifo` (`-v`) or `pipe` (`-f`): latency and bandwidth between two processes.
pub fn ipc(form: Form, option: &str) -> Vec<Call> {
    let (rounds, mb, samples) = (
        form.pick(20_000, 2000),
        form.pick(200, 20),
        form.pick(11, 5),
    );
    let latency = format!("lat {option} -n {rounds} -r {samples}");
    let bandwidth = format!("bw {option} -m {mb} -r {samples}");
    vec![
        call("latency".into(), Source::Adapted("ipc"), &latency),
        call("bandwidth".into(), Source::Adapted("ipc"), &bandwidth),
    ]
}

/// Makes the call of `messaging`: groups of 20 senders and 20 receivers.
pub fn messaging(form: Form, groups: u32) -> Vec<Call> {
    let runs = form.pick(11, 3);
    let (what, arguments) = (format!("{groups} groups"), format!("{runs} {groups}"));
    vec![call(what, Source::Adapted("messages"), &arguments)]
}

/// Returns the default options of `cyclic`.
pub fn timer(form: Form) -> String {
    format!("-i 1000 -t 1 -p 80 -m -D {}", form.pick(10, 1))
}

/// Makes the call of `cyclic`: latency of a timer, with these options.
pub fn cyclic(options: &str) -> Vec<Call> {
    vec![call("timer".into(), Source::Adapted("cyclic"), options)]
}

/// Makes the calls of `overhead`. They measure the pairs of tasks in the paper of 2007.
pub fn overhead(form: Form) -> Vec<Call> {
    let (pieces, samples) = (form.pick(64, 16), form.pick(11, 3));
    let turns = if form.quick { "1 16" } else { "1 4 16 64" };
    let pair = |(a, b): (&str, &str)| {
        let arguments = format!("-n {pieces} -r {samples} {a} {b} {turns}");
        call(format!("{a}-{b}"), Source::Guest("overhead"), &arguments)
    };
    [("sort", "deflate"), ("aes", "crc")].map(pair).into()
}

/// Makes the call of `memory`: latency of loads and bandwidth, up to this size.
pub fn memory(form: Form, max_kb: u32) -> Vec<Call> {
    let max_kb = if form.quick { max_kb.min(64) } else { max_kb };
    let arguments = format!("-m {max_kb} -r {} -t {}", form.pick(7, 3), form.pick(5, 1));
    vec![call("memory".into(), Source::Guest("memory"), &arguments)]
}

/// Makes the call of `reply`. It measures how fast a program answers packets. The program runs on this machine, or at
/// `to`.
pub fn reply(form: Form, to: Option<Ipv4Addr>, hz: u32) -> Vec<Call> {
    let seconds = form.pick(10, 1);
    let address = to.unwrap_or(Ipv4Addr::LOCALHOST);
    let arguments = format!("reply {address} {seconds} {hz} 64 1");
    let what = format!("reply from {address}");
    let requests = call(what, Source::Adapted("net"), &arguments);
    // The answering program starts before the first request and ends after the last request.
    vec![requests.beside(to, "udp_reply", seconds + 1)]
}

/// Makes the call of `period`. It measures how regularly a program sends packets. The program runs on this machine, or
/// at the address `from`.
pub fn period(form: Form, from: Option<Ipv4Addr>, us: u32) -> Vec<Call> {
    let seconds = form.pick(10, 1);
    let arguments = format!("period {}", seconds + 1);
    let what = "period".to_string();
    let mut receiver =
        call(what, Source::Adapted("net"), &arguments).beside(from, "udp_period", seconds);
    if let Some(sender) = &mut receiver.other {
        sender.arguments.push(us.to_string());
    }
    vec![receiver]
}

/// Makes the call of `irq`: a task that answers interrupts of a UIO device.
pub fn irq(form: Form, device: &str) -> Vec<Call> {
    let seconds = form.pick(10, 1).to_string();
    let task = call(device.to_string(), Source::Adapted("uio_latency"), &seconds);
    vec![Call {
        device: Some(device.to_string()),
        ..task
    }]
}

impl Call {
    /// Adds the other end, which runs on this machine. Adds nothing if `remote` gives another machine.
    fn beside(self, remote: Option<Ipv4Addr>, name: &'static str, seconds: u32) -> Call {
        let local = Other {
            name,
            arguments: words(&format!("{seconds} {}", Ipv4Addr::LOCALHOST)),
        };
        Call {
            other: remote.is_none().then_some(local),
            ..self
        }
    }

    /// Runs the call to its end. If the call has another end, only that end is pinned to the processor `cpu`.
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
        let (observing, other) = thread::scope(|scope| {
            let observing = scope.spawn(|| programs::run(&program, &self.arguments, None));
            // The other end sends "ready" to this program, so this program must already be running.
            thread::sleep(HEAD_START);
            let other = programs::run(&measured, &other.arguments, cpu);
            (observing.join(), other)
        });
        let mut ran =
            observing.map_err(|_| anyhow::anyhow!("the thread of a program failed"))??;
        ran.errors += &other?.errors;
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

    /// Runs the call. Returns `None` when Ctrl-C ended the call. Fails if the program cannot be built or started.
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

    /// Returns the name in tables.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the program's name and its arguments.
    pub fn words(&self) -> Vec<String> {
        let name = std::iter::once(self.name().to_string());
        name.chain(self.arguments.iter().cloned()).collect()
    }
}

/// Runs the calls. Ctrl-C ends the measurement early.
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
