// SPDX-License-Identifier: MIT OR Apache-2.0
//! The coherence checker. It tracks the newest value of every word of RAM and the writer of that value. It compares
//! every load, instruction, descriptor, write-back and read of a bus master with the newest value.
//!
//! The checker observes ([`board::Observer`]) and changes nothing. A report shows the stale data, the writer of the
//! newest value, the events of the line since that write, and the missing operation. Stale data that is never used is
//! not reported. A write-back of old data over newer data is reported at once.

mod call_log;
pub(crate) mod calls;
mod causes;
mod circumstances;
mod devices;
mod diagnosis;
mod dirty;
mod history;
mod ownership;
mod pages;
mod report;
mod shadow;
#[cfg(test)]
mod tests;
mod trace;
mod translations;

pub use call_log::{Between, Bits, Distinctions, Given};
pub use calls::{Call, Switch};
pub use circumstances::Circumstances;
pub use devices::BusMaster;
pub use history::{LineEvent, Movement};
pub use ownership::{Buffer, Direction, DmaCall, DmaFunctions, KernelFunctions};
pub use pages::PageFunctions;
pub use report::{
    Access, Cause, Kept, Mapped, Moment, Newest, PageMoves, Report, ReportKind, Trace,
};
pub use shadow::{Path, Writer};

use arm::{Context, Cpu, Event, Exit, Mva, Pa, Reaction, Side, Width};
use board::boot::Boot;
use board::bus::SystemBus;
use board::bus::dma::Transfer;
use board::machine::{Machine, SetupError};
use board::spec::BoardSpec;
use board::{Observed, Observer};
use calls::Calls;
use causes::Causes;
use circumstances::Difference;
use devices::Devices;
use dirty::DirtyLines;
use history::History;
use ownership::Ownership;
use pages::Pages;
use report::pair;
use shadow::{Shadow, User};
use std::collections::BTreeMap;
use translations::{Number, Translations, Use};

/// Maximum number of reports. Causes beyond this number are not reported.
pub const REPORTS: usize = 10_000;
/// Maximum number of calls of each kind in a report.
const CALLS: usize = 16;

/// Observes a running board and reports incoherent accesses.
#[derive(Clone)]
pub struct Checker {
    shadow: Shadow,
    history: History,
    dirty: DirtyLines,
    translations: Translations,
    calls: Calls,
    devices: Devices,
    /// Previous writer of each descriptor, by address.
    before: BTreeMap<u32, Writer>,
    reports: Vec<Report>,
    causes: Causes,
    pages: Pages,
    ownership: Ownership,
    stop_at_report: bool,
}

impl Checker {
    /// Returns a checker for the RAM as it is now. Data that a loader put into RAM counts as coherent.
    pub fn new(bus: &SystemBus) -> Checker {
        Checker {
            shadow: Shadow::new(bus.ram().words().to_vec(), bus.ram_base()),
            history: History::default(),
            dirty: DirtyLines::new(),
            translations: Translations::new(),
            calls: Calls::new(),
            devices: Devices::new(bus),
            before: BTreeMap::new(),
            reports: Vec::new(),
            causes: Causes::default(),
            pages: Pages::default(),
            ownership: Ownership::default(),
            stop_at_report: false,
        }
    }

    /// Sets whether the run ends at every new report.
    pub fn set_stop_at_report(&mut self, stop: bool) {
        self.stop_at_report = stop;
    }

    /// Sets the functions that distinguish reports. Differences with one cause become separate reports if a question of
    /// [`Distinctions`] has different answers for them.
    pub fn tell_apart(&mut self, functions: Distinctions) {
        self.calls.call_log.set(&functions);
        self.causes.set_apart(functions);
    }

    /// Starts to count executions of these privileged instructions, from 0.
    pub fn set_counted(&mut self, pcs: &[u32]) {
        self.calls.set_counted(pcs);
    }

    /// Returns how often these instructions were executed.
    pub fn counted(&self) -> u64 {
        self.calls.count()
    }

    /// Returns one report for each cause, with its count, in the order of first occurrence.
    pub fn reports(&self) -> impl Iterator<Item = (&Report, u64)> {
        let mut counts = vec![0; self.reports.len()];
        for (count, report) in self.causes.counts() {
            if let Some(slot) = counts.get_mut(report) {
                *slot = count;
            }
        }
        self.reports.iter().zip(counts)
    }

    /// Discards all reports, and returns their number.
    pub fn forget_reports(&mut self) -> usize {
        self.causes.forget();
        core::mem::take(&mut self.reports).len()
    }

    /// Records a write. A write to a descriptor may make TLB entries stale.
    #[inline]
    fn written(&mut self, pa: Pa, width: Width, value: u32, writer: Writer) -> Reaction {
        if let Some(before) = self.shadow.store(pa.0, width, value, writer) {
            self.before.insert(pa.0 & !3, before);
            if self.translations.written(pa.0) {
                return Reaction::DropTranslations;
            }
        }
        Reaction::Continue
    }

    fn report(&mut self, report: Report) -> Reaction {
        match self.is_new(&report) {
            true => self.keep(report),
            false => Reaction::Continue,
        }
    }

    /// Counts a report, and returns whether its cause is new and the report can be kept.
    fn is_new(&mut self, report: &Report) -> bool {
        let met = Difference::of(report);
        let (among, key) = (self.among(&met), self.pair(&met));
        let next = self.reports.len();
        self.causes.is_new(key, report, among, next) && next < REPORTS
    }

    /// Keeps a report of a new cause, and adds the code involved.
    fn keep(&mut self, mut report: Report) -> Reaction {
        report.trace = self.trace(&report);
        self.reports.push(report);
        if self.stop_at_report {
            Reaction::Stop
        } else {
            Reaction::Continue
        }
    }

    /// Compares the value that an access got with the newest value.
    #[inline]
    fn compare(
        &mut self,
        context: &Context,
        access: Access,
        (mva, pa): (Mva, Pa),
        width: Width,
        got: u32,
    ) -> Reaction {
        match self.shadow.newest(pa.0, width) {
            Some(newest) if newest != got => {
                self.stale(context, access, (mva, pa), width, [got, newest])
            }
            _ => Reaction::Continue,
        }
    }

    #[cold]
    fn stale(
        &mut self,
        context: &Context,
        access: Access,
        (mva, pa): (Mva, Pa),
        width: Width,
        [got, newest]: [u32; 2],
    ) -> Reaction {
        let last = self.shadow.writer(pa.0);
        let writer = self.devices.writer(pa, got ^ newest, last);
        let fill = self.history.fill_of(access, mva);
        let met = Difference {
            context,
            access,
            mva,
            pa,
            writer: &writer,
            filled: fill.map(|fill| fill.cycle),
            values: [got, newest],
        };
        let among = self.among(&met);
        let user = User {
            pc: context.pc,
            process: (context.space(), context.pid),
            access: (pair(access, 0, 0).0, mva.0 & !31),
            among,
            in_line: diagnosis::holds(&self.dirty, &writer, pa),
        };
        if !self.shadow.needs_report(pa.0, width, got, user) {
            return Reaction::Continue;
        }
        if self.is_well_known(&met, among) {
            return Reaction::Continue;
        }
        let report = diagnosis::stale(
            &self.history,
            &self.dirty,
            diagnosis::Found {
                context: *context,
                access,
                mva,
                pa,
                width,
                got,
                newest,
                writer,
            },
        );
        self.report(report)
    }

    #[inline]
    fn store(
        &mut self,
        context: &Context,
        (mva, pa): (Mva, Pa),
        width: Width,
        value: u32,
        cached: bool,
    ) -> Reaction {
        let path = if cached {
            self.dirty.stored((mva.0, pa.0), context.cycle);
            Path::Line
        } else {
            Path::Buffer
        };
        let writer = Writer {
            cycle: context.cycle,
            pc: context.pc,
            mva: mva.0,
            pid: context.pid,
            space: context.space(),
            path,
            whole: width == Width::Word,
            node: self.calls.now(context),
            stack: self.calls.stack(),
        };
        self.written(pa, width, value, writer)
    }

    /// Records a write-back. Reports old data over newer data at once, because the newer data is lost even if nothing
    /// reads it.
    fn write_back(
        &mut self,
        context: &Context,
        (mva, pa): (Mva, Pa),
        halves: u8,
        data: &[u32; 8],
        victim: bool,
    ) -> Reaction {
        let mut reaction = Reaction::Continue;
        let mut old = 0;
        for (n, word) in (0u32..).zip(data) {
            if halves >> (n / 4) & 1 == 0 {
                continue;
            }
            let at = Pa(pa.0 + 4 * n);
            let is_lost = self.shadow.written_back(at.0, *word);
            let newest = self.shadow.newest(at.0, Width::Word);
            if newest.is_none_or(|newest| newest == *word) {
                continue;
            }
            old |= 1 << n;
            if !is_lost {
                let access = Access::WriteBack { victim };
                let newest = newest.unwrap_or(0);
                let last = self.shadow.writer(at.0);
                let writer = self.devices.writer(at, newest ^ word, last);
                let found = diagnosis::Found {
                    context: *context,
                    access,
                    mva: Mva(mva.0 + 4 * n),
                    pa: at,
                    width: Width::Word,
                    got: *word,
                    newest,
                    writer,
                };
                let report = diagnosis::overwritten(&self.history, &self.dirty, found);
                let Some(report) = report else { continue };
                self.shadow.lose(at.0, *word);
                let met = Difference::of(&report);
                let among = self.among(&met);
                if !self.is_well_known(&met, among) && self.report(report) == Reaction::Stop {
                    reaction = Reaction::Stop;
                }
            }
        }
        let movement = Movement::WriteBack {
            halves,
            victim,
            old,
        };
        self.history.note(context, mva, pa, movement);
        self.dirty.clean(mva.0);
        reaction
    }

    /// Handles an event of a line or a TLB entry.
    fn moved(&mut self, context: &Context, event: Event<'_>) -> Reaction {
        self.pages.moved(context, &event);
        match event {
            Event::Fill { side, mva, pa } => {
                self.history.note(context, mva, pa, Movement::Fill(side));
            }
            Event::WriteBack {
                mva,
                pa,
                halves,
                data,
                victim,
            } => {
                return self.write_back(context, (mva, pa), halves, data, victim);
            }
            Event::Invalidate {
                side,
                mva,
                pa,
                halves,
            } => {
                if side == Side::Data {
                    self.dirty.clean(mva.0);
                }
                self.history
                    .note(context, mva, pa, Movement::Invalidate { side, halves });
            }
            Event::InvalidateAll { side } => {
                self.history
                    .note(context, Mva(0), Pa(0), Movement::InvalidateAll(side));
            }
            Event::TlbUse {
                side,
                entry,
                mva,
                pa,
                kind,
                privileged,
            } => {
                let access = Use {
                    entry: (side, entry),
                    mva,
                    pa,
                    kind,
                    privileged,
                };
                return self.use_translation(context, access);
            }
            Event::TlbFill { .. }
            | Event::TlbInvalidate { .. }
            | Event::TlbInvalidateAll { .. }
            | Event::TlbUnlock { .. } => {
                self.translations.moved(&mut self.shadow, context, event);
            }
            // A claimed line has undefined contents, so the claim needs no action. A load of these contents gets a
            // report. The caller handles accesses.
            _ => {}
        }
        Reaction::Continue
    }
}

impl Checker {
    /// Returns a board that the checker observes from power-on.
    ///
    /// # Errors
    /// As [`Machine::new`].
    pub fn machine(spec: BoardSpec, boot: &Boot) -> Result<Machine<Observed<Checker>>, SetupError> {
        Machine::observed(spec, boot, Checker::new)
    }
}

impl Observer for Checker {
    fn transferred(&mut self, transfer: &Transfer) -> Reaction {
        self.dma(transfer)
    }

    #[inline(never)]
    fn run_core(cpu: &mut Cpu<Observed<Checker>>, limit: u64) -> Exit {
        cpu.run(limit)
    }

    #[inline]
    fn observe(&mut self, bus: &SystemBus, context: &Context, event: Event<'_>) -> Reaction {
        match event {
            Event::Fetch {
                mva,
                pa,
                width,
                value,
                cached,
                registers,
            } => {
                self.calls.fetched(context, width, value, registers);
                let reaction = self.functions_at(context, registers);
                let access = Access::Fetch { cached };
                match self.compare(context, access, (mva, pa), width, value) {
                    Reaction::Continue => reaction,
                    other => other,
                }
            }
            Event::Load {
                mva,
                pa,
                width,
                value,
                cached,
            } => {
                let access = Access::Load { cached };
                let reaction = self.compare(context, access, (mva, pa), width, value);
                self.uses_buffer(context, (mva, pa), width, access, value, reaction)
            }
            Event::Store {
                mva,
                pa,
                width,
                value,
                cached,
            } => {
                let node = self.calls.now(context);
                self.devices.stored(bus, context, pa, node);
                let reaction = self.store(context, (mva, pa), width, value, cached);
                let access = Access::Store { cached };
                self.uses_buffer(context, (mva, pa), width, access, value, reaction)
            }
            Event::Walk {
                mva,
                descriptor,
                value,
            } => {
                self.translations.walked(descriptor.0, value);
                self.shadow.watch(descriptor.0);
                let at = (mva, descriptor);
                self.compare(context, Access::Walk, at, Width::Word, value)
            }
            other => self.moved(context, other),
        }
    }
}
