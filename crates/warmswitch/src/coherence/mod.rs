// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest under the coherence checker ([`watch::checker`]): boot, run a command, collect reports.
//!
//! Time passes in fixed slices of board time, so that the same kernel and command give the same
//! reports in the same cycles.

pub mod baseline;
pub mod mutants;
pub mod names;
pub mod page;
mod page_moves;
pub mod render;
pub mod replay;
pub mod suppress;

use anyhow::{Result, bail};
use board::boot::Boot;
use board::{BoardBus, BoardSpec, Machine, Observed, Stop};
use watch::checker::{Apart, Checker, PageFunctions, REPORTS, Report};

use base::time::cpu_s;
use names::Names;
use results::runs::markers::Typed;
use session::console::{self, AfterStop, Console, StopHandler};
use suppress::Suppression;

/// What to run.
pub struct Plan<'a> {
    /// What is typed; only the boot without.
    pub command: Option<&'a Typed>,
    /// Instructions of the kernel whose executions are counted.
    pub counted: &'a [u32],
    /// Functions of the kernel by whose calls [`Plan::ends`] tells reports apart.
    pub apart: Apart,
    /// The kernel's functions by which the checker follows pages, if they are known.
    pub pages: Option<PageFunctions>,
    /// Board seconds that the command may take.
    pub limit_s: f64,
    /// Whether a report ends the run.
    pub ends: &'a dyn Fn(&Report) -> bool,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The boot, and the command with this status if there was one.
    Finished(Option<i32>),
    /// A report ended it.
    Report,
    /// Board time ran out in the boot.
    BootLimit,
    /// Board time ran out in the command.
    Limit,
    /// Ctrl-C.
    Interrupted,
    /// The board stopped; in words.
    Stopped(String),
}

impl RunEnd {
    /// In a word or two.
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

    /// What the command ended with, if it did.
    pub fn status(&self) -> Option<i32> {
        match self {
            RunEnd::Finished(status) => *status,
            _ => None,
        }
    }
}

/// What came out.
pub struct Findings {
    /// One report a cause and how often it was met, in the order of time.
    pub reports: Vec<(Report, u64)>,
    /// How it ended.
    pub ended: RunEnd,
    /// How often an instruction of [`Plan::counted`] was executed.
    pub counted: u64,
    /// Core cycles since power-on.
    pub cycles: u64,
    /// Board time since power-on.
    pub seconds: f64,
    /// Instructions executed.
    pub instructions: u64,
    /// What the console said.
    pub console: Vec<u8>,
    /// What the command printed of it, byte for byte.
    pub said: Vec<u8>,
}

/// Boots and runs what `plan` says.
pub fn check(board: &BoardSpec, boot: &Boot, plan: &Plan<'_>) -> Result<Findings> {
    let mut machine = Checker::machine(board.clone(), boot)?;
    machine.observer_mut().set_stop_at_report(true);
    machine.observer_mut().set_counted(plan.counted);
    machine.observer_mut().tell_apart(plan.apart.clone());
    if let Some(pages) = plan.pages {
        machine.observer_mut().follow_pages(pages);
    }
    let mut seen = 0;
    let judge = Judge(|machine: &Machine<Observed<Checker>>| {
        judge(machine.observer(), &mut seen, plan.ends)
    });
    let ended = match session(&mut machine, judge, u64::MAX, plan.command, plan.limit_s) {
        Ok(status) => RunEnd::Finished(status),
        Err(ended) => ended,
    };
    Ok(findings(&machine, machine.observer(), ended, plan.command))
}

/// What a machine and its checker have come to.
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

/// The host's processor time for the same cycles.
#[derive(Clone, Copy)]
pub struct Cost {
    /// With the checker, seconds.
    pub on_s: f64,
    /// Without it, seconds.
    pub off_s: f64,
}

/// The same, and once more without the checker.
pub fn check_twice(board: &BoardSpec, boot: &Boot, plan: &Plan<'_>) -> Result<(Findings, Cost)> {
    let start_s = cpu_s();
    let findings = check(board, boot, plan)?;
    let on_s = cpu_s() - start_s;
    let start_s = cpu_s();
    let mut machine = Machine::new(board.clone(), boot)?;
    let (nobody, cycles) = (Judge(|_: &Machine| Ok(())), findings.cycles);
    // How it ends was said already; where it does is the point.
    let ended = session(&mut machine, nobody, cycles, plan.command, plan.limit_s);
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

/// Whether one of the reports that were not judged before ends the run.
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
    // What comes next would not be told, whatever a list leaves out of these.
    if end || *seen == REPORTS {
        Err(RunEnd::Report)
    } else {
        Ok(())
    }
}

/// Who judges what the checker reports, when the observer stops the board. The checker does not count
/// as somebody who talks, so that a run without it goes through the same cycles.
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

/// Boots and has the command run, at the longest until cycle `stop_at`; gives its status.
fn session<B: BoardBus>(
    machine: &mut Machine<B>,
    judge: impl StopHandler<B, End = RunEnd>,
    stop_at: u64,
    command: Option<&Typed>,
    limit_s: f64,
) -> Result<Option<i32>, RunEnd> {
    let mut console = Console {
        machine,
        beside: judge,
        stop_at,
    };
    boot(&mut console)?;
    match command {
        Some(command) => run(&mut console, command, limit_s).map(Some),
        None => Ok(None),
    }
}

/// Boots to the prompt.
fn boot<B: BoardBus>(
    console: &mut Console<'_, B, impl StopHandler<B, End = RunEnd>>,
) -> Result<(), RunEnd> {
    let booted = console.boot();
    booted.map_err(|ended| match how(console.machine, ended) {
        RunEnd::Limit => RunEnd::BootLimit,
        other => other,
    })
}

/// The same, with nobody who judges.
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

/// Has the command run; gives its status.
pub fn run<B: BoardBus>(
    console: &mut Console<'_, B, impl StopHandler<B, End = RunEnd>>,
    command: &Typed,
    limit_s: f64,
) -> Result<i32, RunEnd> {
    let ran = console.run(command, limit_s);
    let (start, end) = ran.map_err(|ended| how(console.machine, ended))?;
    let ran = console.until(end, "\n", limit_s);
    ran.map_err(|ended| how(console.machine, ended))?;
    let ended = command.ended(&console.machine.console_log()[start..]);
    match ended {
        Ok((_, status)) => Ok(status),
        Err(error) => Err(RunEnd::Stopped(format!("{error:#}"))),
    }
}

fn how<B: BoardBus>(machine: &Machine<B>, ended: console::WaitEnd<RunEnd>) -> RunEnd {
    match ended {
        console::WaitEnd::Board(Stop::Limit, _) => RunEnd::Limit,
        console::WaitEnd::Board(stop, _) => RunEnd::Stopped(machine.message(&stop, |_| None)),
        console::WaitEnd::Over(over) => RunEnd::Stopped(over.what().to_string()),
        console::WaitEnd::Interrupted => RunEnd::Interrupted,
        console::WaitEnd::Handler(ended) => ended,
    }
}

/// Reports of one kind between the same two functions that the same entry covers, or none.
pub struct Group {
    /// The first of them.
    pub first: Report,
    /// How often any of them was met.
    pub count: u64,
    /// Pairs of instructions.
    pub causes: usize,
    /// The entry that covers it.
    pub suppression: Option<usize>,
}

/// Puts reports together that name the same functions, in the order of time.
pub fn groups(
    reports: &[(Report, u64)],
    suppressions: &[Suppression],
    names: &Names,
) -> Vec<Group> {
    let function = |pc| match names.function(pc) {
        // User land's functions are not known: its instructions stand for themselves.
        name if name == names::USER => format!("{pc:#x}"),
        name => name,
    };
    let mut groups: Vec<(_, Group)> = Vec::new();
    for (report, count) in reports {
        let suppression = suppressions.iter().position(|s| s.covers(report, names));
        // An entry may cover some of them, by their callers, and not others.
        let key = (
            report.wrong,
            function(report.context.pc),
            function(report.writer.pc),
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
    use watch::checker::{Access, Newest, Path, Trace, Writer, Wrong};

    /// A load by the kernel at 0xc0001008 of what user land wrote into a line.
    pub fn report() -> Report {
        Report {
            wrong: Wrong::StaleRead,
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
                ttb: 0x00a3_4000,
                path: Path::Line,
                node: 0,
                stack: 0,
            },
            place: Newest::Dirty(Mva(0xb6d8_50e0)),
            since: Vec::new(),
            filled: None,
            since_is_whole: true,
            page: None,
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
