// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serves gdb's remote protocol for a board, with the crate `gdbstub`.
//!
//! gdb sees the registers of the current mode. Memory accesses of gdb use virtual addresses and go through the core's
//! data side: FCSE, page tables, D-cache lines and pending writes. These accesses take no board time and do not change
//! the caches. The board compares the pc with a list of breakpoints, so a breakpoint changes neither memory nor the
//! I-cache. Watchpoints are compared with the accesses that pass translation. While a breakpoint or watchpoint is set,
//! the board runs instruction by instruction, at about 10 million instructions per second. The guest cannot notice the
//! debugger.

pub mod link;

use arm::{Bus as _, Mva, Va, Watchpoint};
use board::{Machine, Stop};
use gdbstub::common::Signal;
use gdbstub::conn::{Connection, ConnectionExt as _};
use gdbstub::stub::SingleThreadStopReason;
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event, WaitForStopReasonError};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::singlethread::{
    SingleThreadBase, SingleThreadResume, SingleThreadResumeOps, SingleThreadSingleStep,
    SingleThreadSingleStepOps,
};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps,
    SwBreakpoint, SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps, outputln};
use gdbstub::target::{Target, TargetError, TargetResult};
use gdbstub_arch::arm::reg::ArmCoreRegs;
use gdbstub_arch::arm::{ArmBreakpointKind, Armv4t};

use base::interrupt;
use link::Link;
use supply::symbols::Symbols;

/// Board time between two checks of the connection, in seconds.
const SLICE_S: f64 = 0.005;
/// Instructions between two checks of the connection while the board runs instruction by instruction.
const SINGLE_STEPS: u32 = 20_000;

/// Writer for the guest's console output.
pub type Console = Box<dyn std::io::Write>;

/// A board under a debugger.
pub struct Debuggee {
    machine: Machine,
    symbols: Symbols,
    console: Console,
    /// Number of bytes of the console log that `console` has received.
    shown: usize,
    breakpoints: Vec<u32>,
    watchpoints: Vec<(u32, u32, WatchKind)>,
    /// Whether the next run is a single step.
    stepping: bool,
    /// Whether the next instruction executes even if a breakpoint is set on it.
    resumed: bool,
}

type Reason = SingleThreadStopReason<u32>;

impl Debuggee {
    /// Makes a debuggee from a machine in its current state.
    pub fn new(machine: Machine, symbols: Symbols, console: Console) -> Debuggee {
        Debuggee {
            machine,
            symbols,
            console,
            shown: 0,
            breakpoints: Vec::new(),
            watchpoints: Vec::new(),
            stepping: false,
            resumed: false,
        }
    }

    /// Runs for a short time. Returns the reason if the board has stopped.
    fn run_slice(&mut self) -> Option<Reason> {
        let reason = if self.stepping {
            Some(self.one().unwrap_or(Reason::DoneStep))
        } else if self.breakpoints.is_empty() && self.watchpoints.is_empty() {
            let slice = (SLICE_S * self.machine.spec().cpu_hz as f64) as u64;
            let stop = self.machine.run_until(self.machine.now() + slice);
            self.judge(stop)
        } else {
            self.run_single_steps()
        };
        self.show_console();
        reason
    }

    fn run_single_steps(&mut self) -> Option<Reason> {
        for _ in 0..SINGLE_STEPS {
            if !self.resumed && self.breakpoints.contains(&self.machine.cpu().pc()) {
                return Some(Reason::SwBreak(()));
            }
            self.resumed = false;
            if let Some(reason) = self.one() {
                return Some(reason);
            }
        }
        None
    }

    /// Executes one instruction. A sleeping core continues to sleep until the next event.
    fn one(&mut self) -> Option<Reason> {
        let idle = self.machine.counters().idle_cycles;
        let mut stop = self.machine.run_until(self.machine.now() + 1);
        if stop == Stop::Limit && self.machine.counters().idle_cycles != idle {
            // The core sleeps, so no instruction executes before the next event.
            let next = self.machine.cpu().bus.next_event();
            if next != u64::MAX && next > self.machine.now() {
                stop = self.machine.run_until(next);
            }
        }
        if let Some(watched) = self.machine.cpu_mut().take_watched() {
            let addr = self.watched_va(watched.mva);
            let kind = if watched.write {
                WatchKind::Write
            } else {
                WatchKind::Read
            };
            return Some(Reason::Watch {
                tid: (),
                kind,
                addr,
            });
        }
        self.judge(stop)
    }

    /// Translates a stop of the machine for gdb. Returns `None` if the run continues.
    fn judge(&self, stop: Stop) -> Option<Reason> {
        let signal = match stop {
            Stop::Limit | Stop::ConsoleMatched | Stop::Edge | Stop::Frame => return None,
            Stop::Asleep => {
                std::thread::sleep(std::time::Duration::from_millis(20));
                return None;
            }
            Stop::Reset => return Some(Reason::Exited(0)),
            Stop::Breakpoint | Stop::Observer => Signal::SIGINT,
            Stop::UnmodelledCp15 { .. } | Stop::UnmodelledCase { .. } => Signal::SIGILL,
            Stop::ExceptionLoop => Signal::SIGSEGV,
            Stop::Unmapped(_) | Stop::Unmodelled { .. } | Stop::WireLoop { .. } => Signal::SIGBUS,
        };
        eprintln!(
            "\n{}",
            self.machine.message(&stop, |pc| self.symbols.name(pc))
        );
        Some(Reason::Signal(signal))
    }

    fn show_console(&mut self) {
        let log = self.machine.console_log();
        if log.len() > self.shown {
            // A closed console does not end the session.
            let _ = self.console.write_all(&log[self.shown..]);
            let _ = self.console.flush();
            self.shown = log.len();
        }
    }

    fn mva(&self, va: u32) -> Mva {
        self.machine.cpu().debug_mva(Va(va))
    }

    fn watched_va(&self, mva: Mva) -> u32 {
        let covers = |(va, len, _): &&(u32, u32, WatchKind)| mva.0 - self.mva(*va).0 < *len;
        self.watchpoints
            .iter()
            .filter(|(va, ..)| mva >= self.mva(*va))
            .find(covers)
            .map_or(mva.0, |(va, ..)| va + (mva.0 - self.mva(*va).0))
    }

    fn set_watchpoints(&mut self) {
        let point = |(va, bytes, kind): &(u32, u32, WatchKind)| Watchpoint {
            mva: self.mva(*va),
            bytes: *bytes,
            reads: !matches!(kind, WatchKind::Write),
            writes: !matches!(kind, WatchKind::Read),
        };
        let points = self.watchpoints.iter().map(point).collect();
        self.machine.cpu_mut().set_watchpoints(points);
    }
}

impl Target for Debuggee {
    type Arch = Armv4t;
    type Error = &'static str;

    fn base_ops(&mut self) -> BaseOps<'_, Armv4t, &'static str> {
        BaseOps::SingleThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }
}

impl SingleThreadBase for Debuggee {
    fn read_registers(&mut self, regs: &mut ArmCoreRegs) -> TargetResult<(), Self> {
        let cpu = self.machine.cpu();
        regs.r = std::array::from_fn(|n| cpu.register(n));
        regs.sp = cpu.register(13);
        regs.lr = cpu.register(14);
        regs.pc = cpu.pc();
        regs.cpsr = cpu.cpsr();
        Ok(())
    }

    fn write_registers(&mut self, regs: &ArmCoreRegs) -> TargetResult<(), Self> {
        let cpu = self.machine.cpu_mut();
        // The CPSR comes first, because its mode selects the banked registers.
        if regs.cpsr != cpu.cpsr() {
            cpu.set_cpsr(regs.cpsr);
        }
        for (n, value) in regs.r.into_iter().chain([regs.sp, regs.lr]).enumerate() {
            cpu.set_register(n, value);
        }
        if regs.pc != cpu.pc() {
            cpu.set_pc(regs.pc);
        }
        Ok(())
    }

    fn read_addrs(&mut self, start: u32, data: &mut [u8]) -> TargetResult<usize, Self> {
        for (n, byte) in data.iter_mut().enumerate() {
            match self
                .machine
                .cpu()
                .debug_read(self.mva(start.wrapping_add(n as u32)))
            {
                Some(value) => *byte = value,
                None if n == 0 => return Err(TargetError::NonFatal),
                None => return Ok(n),
            }
        }
        Ok(data.len())
    }

    fn write_addrs(&mut self, start: u32, data: &[u8]) -> TargetResult<(), Self> {
        for (n, byte) in data.iter().enumerate() {
            let mva = self.mva(start.wrapping_add(n as u32));
            if !self.machine.cpu_mut().debug_write(mva, *byte) {
                return Err(TargetError::NonFatal);
            }
        }
        Ok(())
    }

    fn support_resume(&mut self) -> Option<SingleThreadResumeOps<'_, Self>> {
        Some(self)
    }
}

impl SingleThreadResume for Debuggee {
    // Ignore the signal with which gdb wants to continue, because a core has no signals.
    fn resume(&mut self, _: Option<Signal>) -> Result<(), &'static str> {
        self.stepping = false;
        self.resumed = true;
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<SingleThreadSingleStepOps<'_, Self>> {
        Some(self)
    }
}

impl SingleThreadSingleStep for Debuggee {
    fn step(&mut self, _: Option<Signal>) -> Result<(), &'static str> {
        self.stepping = true;
        Ok(())
    }
}

impl Breakpoints for Debuggee {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for Debuggee {
    fn add_sw_breakpoint(&mut self, at: u32, _: ArmBreakpointKind) -> TargetResult<bool, Self> {
        self.breakpoints.push(at);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, at: u32, _: ArmBreakpointKind) -> TargetResult<bool, Self> {
        let found = self.breakpoints.iter().position(|b| *b == at);
        Ok(found.map(|n| self.breakpoints.swap_remove(n)).is_some())
    }
}

impl HwBreakpoint for Debuggee {
    fn add_hw_breakpoint(&mut self, at: u32, kind: ArmBreakpointKind) -> TargetResult<bool, Self> {
        self.add_sw_breakpoint(at, kind)
    }

    fn remove_hw_breakpoint(
        &mut self,
        at: u32,
        kind: ArmBreakpointKind,
    ) -> TargetResult<bool, Self> {
        self.remove_sw_breakpoint(at, kind)
    }
}

impl HwWatchpoint for Debuggee {
    fn add_hw_watchpoint(&mut self, at: u32, n: u32, kind: WatchKind) -> TargetResult<bool, Self> {
        self.watchpoints.push((at, n.max(1), kind));
        self.set_watchpoints();
        Ok(true)
    }

    fn remove_hw_watchpoint(
        &mut self,
        at: u32,
        n: u32,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        let wanted = (at, n.max(1), kind);
        let found = self.watchpoints.iter().position(|w| *w == wanted);
        let removed = found.map(|n| self.watchpoints.swap_remove(n)).is_some();
        self.set_watchpoints();
        Ok(removed)
    }
}

impl MonitorCmd for Debuggee {
    fn handle_monitor_cmd(
        &mut self,
        command: &[u8],
        mut out: ConsoleOutput<'_>,
    ) -> Result<(), &'static str> {
        let text = String::from_utf8_lossy(command).into_owned();
        let (verb, rest) = text.split_once(' ').unwrap_or((&text, ""));
        match verb {
            "cp15" => {
                let c = self.machine.cpu().cp15();
                outputln!(out, "mode {:?}", self.machine.cpu().mode());
                outputln!(
                    out,
                    "control {:#010x}  ttb {:#010x}  dacr {:#010x}",
                    c.sctlr,
                    c.ttb,
                    c.dacr
                );
                outputln!(
                    out,
                    "dfsr {:#x}  ifsr {:#x}  far {:#010x}",
                    c.dfsr,
                    c.ifsr,
                    c.far
                );
                outputln!(out, "pid {}", c.pid >> 25);
            }
            "counters" => {
                outputln!(
                    out,
                    "cycles {}  board time {:.6} s",
                    self.machine.now(),
                    self.machine.seconds()
                );
                for (name, value) in self.machine.counters().entries() {
                    outputln!(out, "{name} {value}");
                }
            }
            "send" => self.machine.send(format!("{rest}\n").as_bytes()),
            _ => {
                outputln!(out, "monitor cp15        mode and system control registers");
                outputln!(
                    out,
                    "monitor counters    board time and the core's counters"
                );
                outputln!(
                    out,
                    "monitor send TEXT   types a line on the board's console"
                );
            }
        }
        Ok(())
    }
}

/// Event loop of gdbstub. Runs the board until the board stops or gdb sends data.
pub enum EventLoop {}

impl BlockingEventLoop for EventLoop {
    type Target = Debuggee;
    type Connection = Link;
    type StopReason = Reason;

    fn wait_for_stop_reason(
        target: &mut Debuggee,
        link: &mut Link,
    ) -> Result<Event<Reason>, WaitForStopReasonError<&'static str, <Link as Connection>::Error>>
    {
        loop {
            if link.peek().map_or(true, |byte| byte.is_some()) {
                let byte = link.read().map_err(WaitForStopReasonError::Connection)?;
                return Ok(Event::IncomingData(byte));
            }
            if interrupt::asked() {
                return Err(WaitForStopReasonError::Target("stopped"));
            }
            if let Some(reason) = target.run_slice() {
                return Ok(Event::TargetStopped(reason));
            }
        }
    }

    fn on_interrupt(_: &mut Debuggee) -> Result<Option<Reason>, &'static str> {
        Ok(Some(Reason::Signal(Signal::SIGINT)))
    }
}
