// SPDX-License-Identifier: MIT OR Apache-2.0
//! Extra interrupts at moments drawn from a seed, mostly where a kernel may lose a race.
//!
//! [`Chaos`] observes like any [`Observer`], and requests a stop where an interrupt is due. The caller that runs the
//! machine then calls [`interrupt`], which toggles the wire of [`PIN`]. Chaos changes nothing else. A seed always gives
//! the same interrupts in the same cycles.
//!
//! A draw has three parts: a window, a number of its occasions to skip, and a number of instructions to wait after the
//! next occasion. A window is a kind of moment, and an occasion is one such moment. Each seed considers only a random
//! subset of all places, so some seeds concentrate on rare places.

use std::collections::BTreeSet;
use std::ops::Range;

use arm::{Cause, Context, Cpu, Event, Exit, Reaction, Width};
use board::bus::SystemBus;
use board::bus::dma::Transfer;
use board::machine::Machine;
use board::random::Random;
use board::{Observed, Observer};

/// Pin of the probed port that chaos toggles. A driver that has requested interrupts for the edges of this pin gets an
/// interrupt.
pub const PIN: u8 = 7;

/// A kind of moment at which an interrupt may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Window {
    /// Any instruction.
    Anywhere,
    /// Interrupts were masked and are now unmasked.
    Unmasked,
    /// Preemption was off and is now on, because a lock was dropped.
    Preemptible,
    /// A CP15 operation on caches, write buffer or TLB was executed.
    Maintained,
    /// A function that changes a page-table entry begins.
    Entry,
    /// The PID register or the table base was written.
    Switch,
}

impl Window {
    /// All windows, each with its weight in draws.
    const WEIGHTS: [(Window, u64); 6] = [
        (Window::Anywhere, 2),
        (Window::Unmasked, 2),
        (Window::Preemptible, 5),
        (Window::Maintained, 4),
        (Window::Entry, 3),
        (Window::Switch, 1),
    ];

    /// Returns a name for output.
    pub fn name(self) -> &'static str {
        match self {
            Window::Anywhere => "anywhere",
            Window::Unmasked => "interrupts enabled",
            Window::Preemptible => "preemption enabled",
            Window::Maintained => "maintenance done",
            Window::Entry => "entry about to change",
            Window::Switch => "address space changed",
        }
    }
}

/// Places of a kernel, from its symbols. Chaos draws a window only if the kernel has places for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Entry of `__switch_to()`, which switches to the task in r2; address of the running task; offset of the
    /// preemption count in a task.
    pub preemption: Option<(u32, u32, u32)>,
    /// Start addresses of functions that change page-table entries.
    pub entries: Vec<u32>,
    /// Zones: a weight and a list of functions for each job of the kernel's memory management. A seed mostly considers
    /// one zone and the direct callees of its functions.
    pub zones: Vec<(u64, Vec<Range<u32>>)>,
}

/// A raised interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Window of the draw.
    pub window: Window,
    /// Virtual address of the instruction before the interrupt.
    pub pc: u32,
    /// Core cycles since power-on when the machine stopped for the interrupt.
    pub cycle: u64,
}

/// Address of an interrupted kernel instruction, and the next reason why a process other than the woken one enters the
/// kernel. The reason is a system call number or [`FAULT`].
pub type Interleaving = (u32, u32);

/// Stands in an [`Interleaving`] for a data or prefetch abort.
pub const FAULT: u32 = u32::MAX;

/// Bits M4:M0 of user mode.
const USER: u32 = 0x10;

/// The draw of the next interrupt.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    window: Window,
    /// Number of occasions to skip.
    skip: u64,
    /// Number of instructions to wait after the occasion.
    delay: u64,
    /// No interrupt comes before cycle `from`. If no occasion has come by cycle `until`, the interrupt comes at any
    /// instruction.
    from: u64,
    until: u64,
    /// Whether chaos ignores occasions outside the seed's zone.
    focused: bool,
    /// Whether the occasion has come and `delay` is counting.
    counting: bool,
}

/// Whether the last interrupt is still being handled. The handling time is not part of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Over,
    /// Cycle in which the interrupt came, and whether the woken task has run.
    Since(u64, bool),
}

/// Draws interrupts, and passes all events to another observer.
#[derive(Clone)]
pub struct Chaos<O> {
    /// The observer that gets all events.
    pub inner: O,
    places: Places,
    /// The zone that this seed considers.
    focus: Vec<Range<u32>>,
    /// Bloom filter of `places.entries`.
    filter: u64,
    random: Random,
    /// Unit in which gaps are drawn, in cycles.
    gap: u64,
    /// A gap lasts up to 2^n units. The number n is drawn below `powers`.
    powers: u64,
    /// Time that chaos waits for an occasion, in cycles.
    wait: u64,
    /// One gap in `pauses` is a pause. If `pauses` is 1, no gap is a pause.
    pauses: u64,
    /// Longest pause, in cycles.
    pause: u64,
    /// Longest time that counts as handling an interrupt, in cycles.
    longest: u64,
    rest: Rest,
    /// Only one in `sieve` places counts. `salt` decides which places count.
    sieve: u64,
    salt: u64,
    drawn: Option<Drawn>,
    due: bool,
    points: Vec<Point>,
    /// The previous instruction: its address, whether interrupts were masked, and the mode.
    last: (u32, bool, u32),
    followed: Followed,
    /// Tasks that only handle the interrupt: the first task that runs for it, and the task that it wakes.
    own: [u32; 2],
    met: BTreeSet<Interleaving>,
}

impl<O> Chaos<O> {
    /// Returns a [`Chaos`] that raises no interrupts before [`Chaos::begin`].
    pub fn new(inner: O) -> Chaos<O> {
        Chaos {
            inner,
            places: Places::default(),
            focus: Vec::new(),
            filter: 0,
            random: Random::new(0),
            gap: 0,
            powers: 0,
            wait: 0,
            longest: 0,
            pauses: 1,
            pause: 0,
            rest: Rest::Over,
            sieve: 1,
            salt: 0,
            drawn: None,
            due: false,
            points: Vec::new(),
            last: (0, true, 0),
            followed: Followed::No,
            own: [0; 2],
            met: BTreeSet::new(),
        }
    }

    /// Begins to draw interrupts from this seed at cycle `now`, on a core with this clock.
    pub fn begin(&mut self, seed: u64, places: Places, now: u64, cpu_hz: u64) {
        self.random = Random::new(seed);
        self.places = places;
        self.places.entries.sort_unstable();
        let zones = self
            .places
            .zones
            .iter()
            .map(|(weight, zone)| (zone, *weight));
        self.focus = self.random.pick(zones).cloned().unwrap_or_default();
        self.focus.sort_unstable_by_key(|range| range.start);
        self.own = [0; 2];
        let entries = self.places.entries.iter();
        self.filter = entries.fold(0, |bits, pc| bits | 1 << (pc >> 2 & 63));
        // The unit of gaps is 5 us. The longest gap is 4 to 64 units. After the gap, chaos waits 0.1 to 0.4 ms for an
        // occasion. Handling an interrupt takes about 0.1 ms.
        self.gap = cpu_hz / 200_000;
        self.powers = 3 + self.random.below(5);
        self.wait = (cpu_hz / 10_000) << self.random.below(3);
        self.longest = cpu_hz / 2000;
        // In some seeds, one gap in eight lasts up to 5 ms. During this gap, a process that an interrupt let run early
        // can finish.
        self.pause = cpu_hz / 200;
        self.pauses = [1, 1, 8][self.random.below(3) as usize];
        self.rest = Rest::Over;
        self.sieve = 1 << self.random.below(5);
        self.salt = self.random.below(u64::MAX);
        self.points.clear();
        self.met.clear();
        self.draw(now);
    }

    /// Returns the interrupts that were raised.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Returns the interleavings that the interrupts led to.
    pub fn met(&self) -> &BTreeSet<Interleaving> {
        &self.met
    }

    fn draw(&mut self, now: u64) {
        let is_known = |window| match window {
            Window::Preemptible => self.places.preemption.is_some(),
            Window::Entry => !self.places.entries.is_empty(),
            _ => true,
        };
        let known = Window::WEIGHTS.into_iter().filter(|w| is_known(w.0));
        let known: Vec<(Window, u64)> = known.collect();
        let window = self.random.pick(known.into_iter());
        let longest = match self.random.below(self.pauses) {
            1 => self.pause,
            _ => self.gap << self.random.below(self.powers),
        };
        let from = now + self.random.below(longest);
        let skip = 1 << self.random.below(4);
        let delay = 1 << self.random.below(9);
        let at_once = self.random.below(2) == 0;
        let focused = self.random.below(4) != 0 && !self.focus.is_empty();
        self.drawn = Some(Drawn {
            window: window.unwrap_or(Window::Anywhere),
            skip: self.random.below(skip),
            delay: if at_once { 0 } else { self.random.below(delay) },
            from,
            until: from + self.wait,
            focused,
            counting: false,
        });
    }

    /// Counts an occasion at `place`.
    #[inline]
    fn count_occasion(&mut self, window: Window, place: u32, now: u64) {
        let is_handled = self.is_handled();
        let Some(drawn) = &mut self.drawn else { return };
        let rests = self.rest != Rest::Over;
        if drawn.window != window || drawn.counting || rests || now < drawn.from {
            return;
        }
        if drawn.focused && window != Window::Anywhere && !is_among(&self.focus, place)
            || is_handled
        {
            return;
        }
        // The multiplication spreads addresses (Fibonacci hashing).
        let hash = (u64::from(place) ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        if !hash.is_multiple_of(self.sieve) {
            return;
        }
        match drawn.skip {
            0 => drawn.counting = true,
            _ => drawn.skip -= 1,
        }
    }

    /// Follows an instruction that is about to be executed. Returns whether the interrupt comes after this instruction.
    #[inline]
    fn fetched(
        &mut self,
        context: &Context,
        width: Width,
        word: u32,
        registers: &[u32; 16],
    ) -> bool {
        let Some(drawn) = self.drawn else {
            return false;
        };
        let (pc, now) = (context.pc, context.cycle);
        let is_user = context.mode & 0x1f == USER;
        self.follow(context, registers);
        let (_, was_masked, _) = self.last;
        self.last = (pc, context.masked, context.mode);
        if let Some((switch_to, task, _)) = &mut self.places.preemption
            && pc == *switch_to
        {
            *task = registers[2];
            if let Followed::Taken(_) = self.followed
                && self.own[0] == 0
            {
                self.own[0] = registers[2];
            }
        }
        if !self.is_rest_over(now) || now < drawn.from {
            return false;
        }
        if !drawn.counting {
            match drawn.window {
                Window::Anywhere => self.count_occasion(Window::Anywhere, pc, now),
                _ if now >= drawn.until => self.give_up(),
                _ if is_user => {}
                Window::Unmasked if was_masked && !context.masked => {
                    self.count_occasion(Window::Unmasked, pc, now);
                }
                Window::Entry if self.is_entry(pc) => {
                    self.count_occasion(Window::Entry, registers[14], now);
                }
                Window::Maintained | Window::Switch if width == Width::Word => {
                    if let Some(window) = opened(word) {
                        self.count_occasion(window, registers[14], now);
                    }
                }
                _ => {}
            }
        }
        self.falls_due(context)
    }

    /// Returns whether the last interrupt has been handled. If so, the gap before the next interrupt begins.
    #[inline]
    fn is_rest_over(&mut self, now: u64) -> bool {
        let Rest::Since(since, woken) = self.rest else {
            return true;
        };
        let handled = self.is_handled();
        let is_over = woken && !handled || now > since + self.longest;
        if is_over {
            self.rest = Rest::Over;
            if let Some(drawn) = &mut self.drawn {
                (drawn.from, drawn.until) =
                    (drawn.from + (now - since), drawn.until + (now - since));
            }
        } else if handled && !woken {
            self.rest = Rest::Since(since, self.is_woken());
        }
        is_over
    }

    /// Returns whether the running task is the task that interrupts wake.
    fn is_woken(&self) -> bool {
        let task = self.places.preemption.map(|(_, task, _)| task);
        task == Some(self.own[1])
    }

    /// Returns whether the running task only handles an interrupt.
    fn is_handled(&self) -> bool {
        let task = self.places.preemption.map(|(_, task, _)| task);
        task.is_some_and(|task| self.own.contains(&task))
    }

    fn is_entry(&self, pc: u32) -> bool {
        self.filter >> (pc >> 2 & 63) & 1 != 0 && self.places.entries.binary_search(&pc).is_ok()
    }

    /// Gives up the window, because no occasion came. The interrupt then comes at any instruction, after the delay.
    fn give_up(&mut self) {
        if let Some(drawn) = &mut self.drawn {
            (drawn.window, drawn.counting) = (Window::Anywhere, true);
        }
    }

    /// Counts the instructions after the occasion, and returns whether the interrupt is due.
    fn falls_due(&mut self, context: &Context) -> bool {
        let Some(drawn) = &mut self.drawn else {
            return false;
        };
        if !drawn.counting || self.due {
            return false;
        }
        if drawn.delay > 0 {
            drawn.delay -= 1;
            return false;
        }
        self.due = true;
        self.points.push(Point {
            window: drawn.window,
            pc: context.pc,
            cycle: context.cycle,
        });
        true
    }
}

/// Returns whether an address is in one of the ranges, which are sorted.
fn is_among(ranges: &[Range<u32>], address: u32) -> bool {
    let behind = ranges.partition_point(|range| range.start <= address);
    behind > 0 && ranges[behind - 1].contains(&address)
}

/// Returns the window that an instruction opens. MCR p15 (`DDI0100I A4.1.32`) opens a window if it accesses c7 (except
/// wait for interrupt), c8, c2 or c13. The two MRC p15 that test and clean D-cache lines (`DDI0198D 2.3.7`) also open a
/// window. Linux cleans the whole cache with these two instructions.
fn opened(word: u32) -> Option<Window> {
    if word & 0x0f10_0f10 == 0x0e10_0f10 {
        let tests_and_cleans = matches!(word & 0x000f_00ef, 0x0007_006a | 0x0007_006e);
        return tests_and_cleans.then_some(Window::Maintained);
    }
    if word & 0x0f10_0f10 != 0x0e00_0f10 {
        return None;
    }
    match (word >> 16 & 15, word & 15) {
        (7, 0) => None,
        (7 | 8, _) => Some(Window::Maintained),
        (2 | 13, _) => Some(Window::Switch),
        _ => None,
    }
}

impl<O: Companion> Observer for Chaos<O> {
    fn run_core(cpu: &mut Cpu<Observed<Chaos<O>>>, limit: u64) -> Exit {
        O::run_core_of_both(cpu, limit)
    }

    #[inline]
    fn observe(&mut self, system: &SystemBus, context: &Context, event: Event<'_>) -> Reaction {
        let is_due = match event {
            Event::Fetch {
                width,
                value,
                registers,
                ..
            } => self.fetched(context, width, value, registers),
            Event::Store { mva, value: 0, .. } => {
                if let Some((_, task, offset)) = self.places.preemption
                    && mva.0 == task.wrapping_add(offset)
                {
                    self.count_occasion(Window::Preemptible, context.pc, context.cycle);
                }
                false
            }
            _ => false,
        };
        match self.inner.observe(system, context, event) {
            _ if is_due => Reaction::Stop,
            reaction => reaction,
        }
    }

    fn spent(&mut self, cause: Cause, cycles: i64) {
        self.inner.spent(cause, cycles);
    }

    fn raised(&mut self, now: u64, lines: u64) {
        self.inner.raised(now, lines);
    }

    fn transferred(&mut self, transfer: &Transfer) -> Reaction {
        self.inner.transferred(transfer)
    }
}

/// Raises the interrupt that the machine has stopped for, and draws the next one. Returns false if the machine has not
/// stopped for an interrupt.
pub fn interrupt<O: Companion>(machine: &mut Machine<Observed<Chaos<O>>>) -> bool {
    let now = machine.now();
    let chaos = machine.observer_mut();
    if !core::mem::take(&mut chaos.due) {
        return false;
    }
    if let Some(point) = chaos.points.last_mut() {
        point.cycle = now;
    }
    chaos.followed = Followed::Asked;
    chaos.rest = Rest::Since(now, false);
    chaos.draw(now);
    machine.cables().toggle(PIN);
    true
}

mod companion;
mod follow;

pub use companion::{Companion, Unobserved};
use follow::Followed;

#[cfg(test)]
mod tests;
