// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renders a report as text and as JSON.

use std::fmt::Write as _;

use arm::{Context, Mva, Pa};
use board::bus::dma::Purpose;
use serde_json::{Value, json};
use watch::checker::{Access, Call, Mapped, Path, Report, Switch, Trace, Writer};

use super::Group;
use super::names::Names;
use super::page;
use super::words::{
    kind_words, linux_calls, mask, mode, movement, physical, place, place_json, process, purpose,
    through, what, width,
};

/// Inputs for the rendering of a report.
pub struct Style<'a> {
    /// Names of functions and lines.
    pub names: &'a Names,
    /// Core clock, in Hz.
    pub cpu_hz: u64,
    /// Returns the command that replays the run up to an instruction.
    pub replay: &'a dyn Fn(&Context) -> String,
}

/// Maximum number of callers that are shown by name alone. The first caller is not counted, because it is shown with
/// address and line.
const CALLERS: usize = 9;

/// Text that replaces a replay command if the report has none.
const NO_REPLAY: &str = "none, because no instruction made the access";

impl Style<'_> {
    /// Renders the first report of a group, and a note on the group's other reports.
    pub fn group(&self, group: &Group) -> String {
        let mut text = self.text(&group.first, group.count);
        if group.causes > 1 {
            let _ = writeln!(
                text,
                "  note: the first of {} different reports between these two functions",
                group.causes
            );
        }
        text.push('\n');
        text
    }

    /// Renders a report that occurred `count` times.
    pub fn text(&self, report: &Report, count: u64) -> String {
        let mut text = format!("error[{}]: {}", report.kind.name(), what(report.kind));
        if count > 1 {
            let _ = write!(text, " ({count} times)");
        }
        let used = match report.access {
            Access::Outlives(_) => "given to another owner by",
            Access::Map => "mapped again by",
            _ => "used by",
        };
        let user = match report.access {
            Access::Dma { .. } => self.names.user_of(report) + ", a device, without an instruction",
            _ => self.names.place(report.context.pc),
        };
        let _ = writeln!(text, "\n  {used}: {user}");
        let _ = writeln!(text, "    {}", self.used(report));
        if let Some(other) = report.filled_from {
            let _ = writeln!(text, "    that line was filled from {}", physical(other));
        }
        let _ = writeln!(text, "    {}", self.when(report.context.cycle));
        if report.access.is_by_core() {
            let _ = writeln!(
                text,
                "    {}, {}",
                mode(report.context.mode),
                process(report.context.pid, report.context.space())
            );
        }
        self.callers(&mut text, &report.trace.used);
        if !report.access.is_by_core() {
            self.bell(&mut text, report);
        }
        self.page(&mut text, report);
        self.buffer(&mut text, report);
        if report.writer.path != Path::Call {
            self.written(&mut text, report);
        }
        if !report.kind.is_of_buffer() {
            let _ = writeln!(text, "  newest value was: {}", place(report.place));
            self.history(&mut text, report);
        }
        self.between(&mut text, &report.trace);
        let _ = writeln!(text, "  needed: {}", report.needed());
        if let Some(calls) = linux_calls(report) {
            let _ = writeln!(text, "    in Linux: {calls}");
        }
        let replay = self.replay_of(report);
        let replay = replay.as_deref().unwrap_or(NO_REPLAY);
        let _ = writeln!(text, "  replay: {replay}");
        text
    }

    /// Adds the writer of the newest value, and its callers.
    fn written(&self, text: &mut String, report: &Report) {
        self.writer(text, report);
        self.callers(text, &report.trace.written);
        if let Some(first) = report.trace.running.first() {
            let name = self.names.function(*first);
            let _ = writeln!(text, "    {name} had not returned yet");
        }
    }

    /// Returns the command that replays the run up to the access. Returns `None` if no instruction made the access.
    fn replay_of(&self, report: &Report) -> Option<String> {
        let by_core = report.access.is_by_core();
        by_core.then(|| (self.replay)(&report.context))
    }

    /// Adds the callers, innermost first.
    pub(super) fn callers(&self, text: &mut String, callers: &[u32]) {
        if let Some((first, rest)) = callers.split_first() {
            let mut names = vec![self.names.place(*first)];
            let rest = rest.iter().take(CALLERS);
            names.extend(rest.map(|pc| self.names.function(*pc)));
            let _ = writeln!(text, "    called from {}", names.join(", "));
        }
    }

    /// Adds the last store to the registers of the report's device, which may have started the transfer.
    fn bell(&self, text: &mut String, report: &Report) {
        let device = report.trace.device.as_ref();
        if let Some((name, bell)) = device.and_then(|d| Some((&d.name, d.bell.as_ref()?))) {
            let (cycle, place) = (bell.cycle, self.names.place(bell.pc));
            let _ = writeln!(
                text,
                "    last store to the registers of {name}: cycle {cycle}, {place}"
            );
            self.callers(text, &bell.callers);
        }
    }

    /// Adds the mappings, switches and calls between the write and the use. One of them may lack an operation.
    fn between(&self, text: &mut String, trace: &Trace) {
        for Mapped {
            mva,
            writer,
            callers,
            before,
        } in &trace.mapped
        {
            let _ = writeln!(
                text,
                "  MVA {mva} was mapped in cycle {} by: {}",
                writer.cycle,
                self.names.place(writer.pc)
            );
            self.callers(text, callers);
            if let Some((writer, callers)) = before {
                let _ = writeln!(
                    text,
                    "    before that in cycle {} by: {}",
                    writer.cycle,
                    self.names.place(writer.pc)
                );
                self.callers(text, callers);
            }
        }
        if let Some(Switch { cycle, pc, callers }) = &trace.switched {
            let _ = writeln!(
                text,
                "  the address space changed last in cycle {cycle} by: {}",
                self.names.place(*pc)
            );
            self.callers(text, callers);
        }
        for (what, calls) in [
            ("the writer's callers then called:".to_string(), &trace.next),
            (
                format!(
                    "calls with one of these addresses since cycle {}:",
                    trace.since
                ),
                &trace.given,
            ),
        ] {
            if calls.is_empty() {
                continue;
            }
            let _ = writeln!(text, "  {what}");
            for call in calls {
                let _ = writeln!(
                    text,
                    "    cycle {}: {} from {}",
                    call.cycle,
                    self.names.function(call.to),
                    self.names.place(call.from)
                );
            }
        }
    }

    fn when(&self, cycle: u64) -> String {
        let seconds = cycle as f64 / self.cpu_hz as f64;
        format!("cycle {cycle}, {seconds:.6} s of board time")
    }

    /// Describes the used data, the addresses through which it was used, and its old and newest values.
    fn used(&self, report: &Report) -> String {
        let width = width(report.width);
        let (mva, pa) = (report.mva, report.pa);
        let values = format!(
            "{:#010x} instead of {:#010x}",
            report.got,
            report.newest & mask(report.width)
        );
        let at = format!("{}, {}", through(report.context.pid, mva), physical(pa));
        match report.access {
            Access::Load { .. } if report.kind.is_of_buffer() => {
                format!("a load of a {width} at {at}")
            }
            Access::Load { cached: true } => {
                format!("a {width} from the D-cache at {at}: {values}")
            }
            Access::Load { cached: false } => format!("a {width} from the bus at {at}: {values}"),
            Access::Fetch { .. } => format!("the instruction at {at}: {values}"),
            Access::Walk => format!("the descriptor at {} for {mva}: {values}", physical(pa)),
            Access::Translation(kind) => {
                let led_to = report
                    .led_to
                    .map_or(String::new(), |pa| format!(", led to {pa}"));
                format!(
                    "{} at {}{led_to}; its descriptor at {}: {values}",
                    kind_words(kind),
                    through(report.context.pid, mva),
                    physical(pa)
                )
            }
            Access::WriteBack { victim: true } => {
                format!("the D-cache line at {at} made room for another: {values}")
            }
            Access::WriteBack { victim: false } => {
                format!("the D-cache line at {at} was cleaned: {values}")
            }
            Access::Dma { writes, .. } => {
                let device = report.trace.device.as_ref();
                let what = purpose(device.map_or(Purpose::Unknown, |device| device.purpose));
                let does = if writes { "write" } else { "read" };
                let at = format!("a {does} of {what}, a {width} at {}", physical(pa));
                match report.kind.is_of_buffer() {
                    true => at,
                    false => format!("{at}: {values}"),
                }
            }
            Access::Store { .. } => format!("a store of a {width} at {at}"),
            Access::Map => format!("the call maps the byte at {}", physical(pa)),
            Access::Outlives(kept) => format!("{} {at}", page::left(kept)),
        }
    }

    fn writer(&self, text: &mut String, report: &Report) {
        let Writer {
            cycle,
            pc,
            mva,
            pid,
            space,
            path,
            ..
        } = report.writer;
        match path {
            Path::Call => {}
            Path::Loaded => {
                let _ = writeln!(text, "  newest value: in RAM since power-on");
            }
            Path::Dma => {
                let device = self.names.writer_of(report);
                let _ = writeln!(text, "  newest value written by: {device}, a device");
                let _ = writeln!(text, "    {}", self.when(cycle));
                self.bell(text, report);
            }
            Path::Line | Path::Buffer => {
                let _ = writeln!(text, "  newest value written by: {}", self.names.place(pc));
                let _ = writeln!(
                    text,
                    "    through {}, into {}",
                    through(pid, Mva(mva)),
                    match path {
                        Path::Line => "a D-cache line",
                        _ => "the write buffer",
                    }
                );
                let _ = writeln!(text, "    {}", self.when(cycle));
                if (pid, space) != (report.context.pid, report.context.space()) {
                    let _ = writeln!(text, "    {}", process(pid, space));
                }
            }
        }
    }

    fn history(&self, text: &mut String, report: &Report) {
        let line = Pa(report.pa.0 & !31);
        if report.since.is_empty() {
            let _ = writeln!(
                text,
                "  history of the line at {} since the newest write: no event",
                physical(line)
            );
            return;
        }
        let _ = writeln!(
            text,
            "  history of the line at {} since the newest write:",
            physical(line)
        );
        if !report.since_is_whole {
            let _ = writeln!(text, "    (older events are not kept)");
        }
        for event in &report.since {
            let other = match event.pa == line.0 {
                true => String::new(),
                false => format!(" ({})", physical(Pa(event.pa))),
            };
            let _ = writeln!(
                text,
                "    cycle {}: {}{other} by {}",
                event.cycle,
                movement(event),
                self.names.place(event.pc)
            );
        }
    }

    /// Renders a report as JSON.
    pub fn json(&self, report: &Report, count: u64) -> Value {
        let place = |pc: u32| {
            let (symbol, line) = self.names.symbol_and_line(pc);
            json!({ "pc": pc, "symbol": symbol, "line": line, "function": self.names.function(pc) })
        };
        let history: Vec<Value> = report
            .since
            .iter()
            .map(|e| json!({
                    "cycle": e.cycle, "mva": e.mva, "pa": e.pa, "what": movement(e), "by": place(e.pc)
                }))
            .collect();
        let writer = &report.writer;
        let callers = |pcs: &[u32]| -> Vec<Value> { pcs.iter().map(|pc| place(*pc)).collect() };
        let calls = |calls: &[Call]| -> Vec<Value> {
            let call = |c: &Call| {
                let to = self.names.function(c.to);
                json!({ "cycle": c.cycle, "function": to, "from": place(c.from) })
            };
            calls.iter().map(call).collect()
        };
        let trace = &report.trace;
        json!({
            "wrong": report.kind.name(),
            "page": self.page_json(report),
            "buffer": self.buffer_json(report),
            "count": count,
            "what": what(report.kind),
            "used": {
                "by": report.access.is_by_core().then(|| place(report.context.pc)),
                "callers": callers(&trace.used),
                "how": self.used(report),
                "cycle": report.context.cycle,
                "mva": report.mva.0,
                "pa": report.pa.0,
                "filled_from": report.filled_from.map(|pa| pa.0),
                "pid": report.context.pid,
                "ttb": report.context.ttb,
                "got": report.got,
                "newest": report.newest,
            },
            "writer": {
                "by": (writer.path != Path::Dma).then(|| place(writer.pc)),
                "callers": callers(&trace.written),
                "running": callers(&trace.running),
                "path": match writer.path {
                    Path::Call => "call",
                    Path::Loaded => "loaded",
                    Path::Line => "line",
                    Path::Buffer => "buffer",
                    Path::Dma => "dma",
                },
                "cycle": writer.cycle,
                "mva": writer.mva,
                "pid": writer.master().is_none().then_some(writer.pid),
                "ttb": writer.space.table(),
            },
            "newest_was": place_json(report.place),
            "history": history,
            "mapped": trace.mapped.iter().map(|m| json!({
                "mva": m.mva.0, "cycle": m.writer.cycle,
                "by": place(m.writer.pc), "callers": callers(&m.callers),
                "before": m.before.as_ref().map(|(w, from)| json!({
                    "cycle": w.cycle, "by": place(w.pc), "callers": callers(from)
                })),
            })).collect::<Vec<_>>(),
            "switched": trace.switched.as_ref().map(|s| json!({
                "cycle": s.cycle, "by": place(s.pc), "callers": callers(&s.callers)
            })),
            "called_next": calls(&trace.next),
            "called_with_address": calls(&trace.given),
            "history_is_whole": report.since_is_whole,
            "device": trace.device.as_ref().map(|device| json!({
                "name": device.name,
                "purpose": purpose(device.purpose),
                "last_store": device.bell.as_ref().map(|bell| json!({
                    "cycle": bell.cycle, "by": place(bell.pc), "callers": callers(&bell.callers)
                })),
            })),
            "needed": report.needed(),
            "replay": self.replay_of(report),
        })
    }
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
