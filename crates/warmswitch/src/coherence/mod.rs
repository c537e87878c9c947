// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a guest under the coherence checker ([`watch::checker`]): boots the guest, runs a command and collects the
//! reports.
//!
//! The console is read in fixed slices of board time. Therefore, a kernel and a command always give the same reports in
//! the same cycles.

pub mod baseline;
mod buffer;
pub mod mutants;
pub mod names;
pub mod outside;
pub mod page;
mod page_moves;
pub mod render;
pub mod replay;
pub mod suppress;
mod words;

use anyhow::{Result, bail};
use board::boot::Boot;
use board::{BoardBus, BoardSpec, Machine, Observed, Stop};
use watch::checker::{Checker, Distinctions, KernelFunctions, REPORTS, Report};

use base::time::cpu_s;
use names::Names;
use outside::{Beside, Outside};
use results::runs::markers::Typed;
use session::console::{self, AfterStop, Console, StopHandler};
use suppress::Suppression;

/// The command to run, and the conditions that end the run.
pub struct Plan<'a> {
    /// Command to type; `None` checks only the boot.
    pub command: Option<&'a Typed>,
    /// Addresses of the kernel instructions whose executions are counted.
    pub counted: &'a [u32],
    /// Kernel functions whose calls distinguish reports. If two reports differ in such a call, [`Plan::ends`] is called
    /// for each of them.
    pub distinctions: Distinctions,
    /// Kernel functions through which the checker follows pages and DMA buffers.
    pub functions: KernelFunctions,
    /// Limit of board time for the command, in seconds.
    pub limit_s: f64,
    /// What is connected to the board.
    pub outside: &'a Outside,
    /// Decides whether a report ends the run.
    pub ends: &'a dyn Fn(&Report) -> bool,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The boot finished. If there was a command, it finished, too. The value is the command's status.
    Finished(Option<i32>),
    /// A report ended the run.
    Report,
    /// The boot reached its limit of board time.
    BootLimit,
    /// The command reached its limit of board time.
    Limit,
    /// The user pressed Ctrl-C.
    Interrupted,
    /// The board stopped. The text is the reason.
    Stopped(String),
}

impl RunEnd {
    /// Describes the end in one or two words, for output and stored results.
    pub fn word(&self) -> &'static str {
        match self {
            RunEnd::Finished(_) => "finished",
            RunEnd::Report => "report",
            RunEnd::BootLimit => "boot limit",
            RunEnd::Limit => "limit",
            RunEnd::Interrupted => "interrupted",
            RunEnd::Stopped(_) => "stopped",
        }
    }

    /// Returns the command's status, if the command ended.
    pub fn status(&self) -> Option<i32> {
        match self {
            RunEnd::Finished(status) => *status,
            _ => None,
        }
    }
}

/// Result of a run.
pub struct Findings {
    /// One report per cause, with its number of occurrences, in chronological order.
    pub reports: Vec<(Report, u64)>,
    /// How the run ended.
    pub ended: RunEnd,
    /// Number of executions of the instructions in [`Plan::counted`].
    pub counted: u64,
    /// Core cycles since power-on.
    pub cycles: u64,
    /// Board time since power-on, in seconds.
    pub seconds: f64,
    /// Instructions executed.
    pub instructions: u64,
    /// Complete console output.
    pub console: Vec<u8>,
    /// The command's part of the console output, unchanged.
    pub said: Vec<u8>,
}

/// Boots the board and runs `plan` under the checker.
pub fn check(board: &BoardSpec, boot: &Boot, plan: &Plan<'_>) -> Result<Findings> {
    let mut machine = Checker::machine(board.clone(), boot)?;
    plan.outside.connect(&mut machine)?;
    machine.observer_mut().set_stop_at_report(true);
    machine.observer_mut().set_counted(plan.counted);
    machine.observer_mut().tell_apart(plan.distinctions.clone());
    machine.observer_mut().follow(plan.functions);
    let mut seen = 0;
    let judge = Judge(|machine: &Machine<Observed<Checker>>| {
        judge(machine.observer(), &mut seen, plan.ends)
    });
    let ended = match session(&mut machine, judge, u64::MAX, plan.command, plan.limit_s) {
        Ok(status) => RunEnd::Finished(status),
        Err(ended) => ended,
    };
    plan.outside.check_card()?;
    Ok(findings(&machine, machine.observer(), ended, plan.command))
}

/// Collects the results from a machine and its checker.
pub fn findings<B: BoardBus>(
    machine: &Machine<B>,
    checker: &Checker,
    ended: RunEnd,
    command: Option<&Typed>,
) -> Findings {
    let reports = checker.reports();
    Findings {
        reports: reports.map(|(r, count)| (r.clone(), count)).collect(),
        ended,
        counted: checker.counted(),
        cycles: machine.now(),
        seconds: machine.seconds(),
        instructions: machine.counters().instructions,
        console: machine.console_log().to_vec(),
        said: command.map_or(Vec::new(), |typed| typed.said(machine.console_log()).0),
    }
}

/// Processor time of the host, with and without the checker, for the same board cycles.
#[derive(Clone, Copy)]
pub struct Cost {
    /// Time with the checker, in seconds.
    pub on_s: f64,
    /// Time without the checker, in seconds.
    pub off_s: f64,
}

/// Runs `plan` under the checker, then repeats the same cycles without it to measure the checker's cost.
pub fn check_twice(board: &BoardSpec, boot: &Boot, plan: &Plan<'_>) -> Result<(Findings, Cost)> {
    let start_s = cpu_s();
    let findings = check(board, boot, plan)?;
    let on_s = cpu_s() - start_s;
    let start_s = cpu_s();
    let mut machine = Machine::new(board.clone(), boot)?;
    plan.outside.connect(&mut machine)?;
    let (no_judge, cycles) = (Judge(|_: &Machine| Ok(())), findings.cycles);
    // The reason of the end is known from the first run. Only the cycle is needed here.
    let ended = session(&mut machine, no_judge, cycles, plan.command, plan.limit_s);
    let off_s = cpu_s() - start_s;
    let now = machine.now();
    if ended == Err(RunEnd::Interrupted) {
        bail!("stopped");
    }
    if now != cycles {
        bail!("the run took {cycles} cycles with the checker and {now} without it");
    }
    Ok((findings, Cost { on_s, off_s }))
}

/// Calls `ends` for each report after the first `seen` reports. `Err` ends the run.
pub fn judge(
    checker: &Checker,
    seen: &mut usize,
    ends: &dyn Fn(&Report) -> bool,
) -> Result<(), RunEnd> {
    let mut end = false;
    for (report, _) in checker.reports().skip(*seen) {
        end |= ends(report);
        *seen += 1;
    }
    // The checker keeps at most `REPORTS` causes. It would not report a further cause.
    if end || *seen == REPORTS {
        Err(RunEnd::Report)
    } else {
        Ok(())
    }
}

/// Judges the checker's reports when the observer stops the board. Returns [`AfterStop::Look`], which does not move the
/// ends of the slices. Therefore, a run without the checker goes through the same cycles.
struct Judge<F>(F);

impl<B: BoardBus, F: FnMut(&Machine<B>) -> Result<(), RunEnd>> StopHandler<B> for Judge<F> {
    type End = RunEnd;

    fn stopped(&mut self, machine: &mut Machine<B>, stop: &Stop) -> Result<AfterStop, RunEnd> {
        if *stop != Stop::Observer {
            return Ok(AfterStop::Nothing);
        }
        (self.0)(machine)?;
        Ok(AfterStop::Look)
    }
}

/// Boots and runs the command, until cycle `stop_at` at the latest. Returns the command's status.
fn session<B: BoardBus>(
    machine: &mut Machine<B>,
    judge: impl StopHandler<B, End = RunEnd>,
    stop_at: u64,
    command: Option<&Typed>,
    limit_s: f64,
) -> Result<Option<i32>, RunEnd> {
    let mut console = Console {
        machine,
        beside: Beside(judge),
        stop_at,
    };
    boot(&mut console)?;
    match command {
        Some(command) => run(&mut console, command, limit_s).map(Some),
        None => Ok(None),
    }
}

fn boot<B: BoardBus>(
    console: &mut Console<'_, B, impl StopHandler<B, End = RunEnd>>,
) -> Result<(), RunEnd> {
    let booted = console.boot();
    booted.map_err(|ended| match run_end(console.machine, ended) {
        RunEnd::Limit => RunEnd::BootLimit,
        other => other,
    })
}

/// Boots to the prompt without judging reports.
pub fn boot_alone<B: BoardBus>(machine: &mut Machine<B>) -> Result<()> {
    let mut console = Console {
        machine,
        beside: Judge(|_: &Machine<B>| Ok(())),
        stop_at: u64::MAX,
    };
    match boot(&mut console) {
        Ok(()) => Ok(()),
        Err(RunEnd::Interrupted) => bail!("stopped"),
        Err(ended) => bail!("the guest did not boot: {}", ended.word()),
    }
}

/// Runs the command at the prompt. Returns the command's status.
pub fn run<B: BoardBus>(
    console: &mut Console<'_, B, impl StopHandler<B, End = RunEnd>>,
    command: &Typed,
    limit_s: f64,
) -> Result<i32, RunEnd> {
    let ran = console.run(command, limit_s);
    let (start, end) = ran.map_err(|ended| run_end(console.machine, ended))?;
    let ran = console.until(end, "\n", limit_s);
    ran.map_err(|ended| run_end(console.machine, ended))?;
    let ended = command.ended(&console.machine.console_log()[start..]);
    match ended {
        Ok((_, status)) => Ok(status),
        Err(error) => Err(RunEnd::Stopped(format!("{error:#}"))),
    }
}

fn run_end<B: BoardBus>(machine: &Machine<B>, ended: console::WaitEnd<RunEnd>) -> RunEnd {
    match ended {
        console::WaitEnd::Board(Stop::Limit, _) => RunEnd::Limit,
        console::WaitEnd::Board(stop, _) => RunEnd::Stopped(machine.message(&stop, |_| None)),
        console::WaitEnd::Over(over) => RunEnd::Stopped(over.what().to_string()),
        console::WaitEnd::Interrupted => RunEnd::Interrupted,
        console::WaitEnd::Handler(ended) => ended,
    }
}

/// Reports of one kind in which the same two functions are involved. A suppression covers either all reports of a group
/// or none.
pub struct Group {
    /// First report of the group.
    pub first: Report,
    /// Number of occurrences of all reports in the group.
    pub count: u64,
    /// Number of different reports. Usually, each pair of instructions has one report.
    pub causes: usize,
    /// Index of the suppression that covers the group.
    pub suppression: Option<usize>,
}

/// Groups the reports in which the same functions are involved. The groups keep the chronological order.
pub fn groups(
    reports: &[(Report, u64)],
    suppressions: &[Suppression],
    names: &Names,
) -> Vec<Group> {
    // Functions in user land are unknown, so instructions in user land are compared by address.
    let by_address = |name: String, pc| match name == names::USER {
        true => format!("{pc:#x}"),
        false => name,
    };
    let mut groups: Vec<(_, Group)> = Vec::new();
    for (report, count) in reports {
        let suppression = suppressions.iter().position(|s| s.covers(report, names));
        // The suppression is a part of the key, because reports with equal functions may have different callers.
        let key = (
            report.kind,
            by_address(names.user_of(report), report.context.pc),
            by_address(names.writer_of(report), report.writer.pc),
            suppression,
        );
        if let Some((_, group)) = groups.iter_mut().find(|(k, _)| *k == key) {
            group.count += count;
            group.causes += 1;
            continue;
        }
        let group = Group {
            first: report.clone(),
            count: *count,
            causes: 1,
            suppression,
        };
        groups.push((key, group));
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use arm::{Context, Mva, Pa, Width};
    use watch::checker::{Access, Newest, Path, ReportKind, Trace, Writer};

    /// Returns a report in which the kernel loads, at 0xc0001008, data that user land wrote into a D-cache line.
    pub fn report() -> Report {
        Report {
            kind: ReportKind::StaleRead,
            context: Context {
                cycle: 2_000_000,
                pc: 0xc000_1008,
                pid: 0,
                ttb: 0x00a3_4000,
                mode: 0x13,
                ..Context::default()
            },
            access: Access::Load { cached: true },
            mva: Mva(0xc238_50e4),
            pa: Pa(0x0238_50e4),
            led_to: None,
            filled_from: None,
            width: Width::Word,
            got: 0x3206_e7ad,
            newest: 0x1841_f209,
            writer: Writer {
                cycle: 1_000_000,
                pc: 0x0001_0400,
                mva: 0xb6d8_50e4,
                pid: 0,
                space: arm::AddressSpace::new(0x00a3_4000, 0),
                path: Path::Line,
                node: 0,
                stack: 0,
                whole: true,
            },
            place: Newest::Dirty(Mva(0xb6d8_50e0)),
            since: Vec::new(),
            filled: None,
            since_is_whole: true,
            page: None,
            buffer: None,
            trace: Trace::default(),
        }
    }

    #[test]
    fn a_report_that_no_entry_covers_is_not_of_a_group_that_one_covers() {
        let names = Names::by_hand(&[(0xc000_1000, "reader"), (0xc000_2000, "known")]);
        let (mut first, mut second) = (report(), report());
        first.trace.used = vec![0xc000_2010];
        second.context.pc = 0xc000_1010;
        let entry = Suppression {
            name: "known".into(),
            wrong: vec!["stale-read".into()],
            access: vec!["reader".into()],
            used_in: vec!["known".into()],
            reason: "r".into(),
            ..Suppression::default()
        };
        let groups = groups(&[(first, 1), (second, 1)], &[entry], &names);
        let covered: Vec<_> = groups.iter().map(|g| g.suppression).collect();
        assert_eq!(covered, [Some(0), None]);
    }

    #[test]
    fn reports_of_the_same_functions_are_one_group_and_user_instructions_are_apart() {
        let names = Names::by_hand(&[(0xc000_1000, "reader"), (0xc000_2000, "other")]);
        let (first, mut second, mut third, mut fourth) = (report(), report(), report(), report());
        second.context.pc = 0xc000_1010;
        third.context.pc = 0xc000_2000;
        fourth.writer.pc = 0x0001_0404;
        let all = [(first, 3), (second, 4), (third, 1), (fourth, 1)];
        let groups = groups(&all, &[], &names);
        let counts: Vec<(u64, usize)> = groups.iter().map(|g| (g.count, g.causes)).collect();
        assert_eq!(counts, [(7, 2), (1, 1), (1, 1)]);
    }
}
