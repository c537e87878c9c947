// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a spare interrupt comes, drawn from a seed: mostly where a kernel may lose a race.
//!
//! [`Chaos`] looks on, like any [`Observer`], and asks for a stop where an interrupt is to come; whoever runs the
//! machine then calls [`Machine::interrupt`], which moves the wire of [`PIN`]. It changes nothing else, and the same
//! seed gives the same interrupts in the same cycles.
//!
//! A draw is a window, how many of its occasions go by, and how many instructions later the interrupt comes. A seed looks
//! at a part of all places only, which it draws first, so that rare places have their seeds.

use std::collections::BTreeSet;
use std::ops::Range;

use arm::{Cause, Context, Cpu, Event, Exit, Reaction, Width};
use board::bus::SystemBus;
use board::machine::Machine;
use board::random::Random;
use board::{Observed, Observer};

/// The pin of the probed port whose wire moves: an interrupt for whoever asked for its edges.
pub const PIN: u8 = 7;

/// An occasion for an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Window {
    /// Any instruction.
    Anywhere,
    /// Interrupts have been masked, and are not any more.
    Unmasked,
    /// Preemption has been off, and is on: a lock was dropped.
    Preemptible,
    /// Behind a CP15 operation on caches, write buffer or TLB.
    Maintained,
    /// A function that changes a page table's entry begins.
    Entry,
    /// The PID register or the table base is written.
    Switch,
}

impl Window {
    /// All of them, each with its weight among draws.
    const WEIGHTS: [(Window, u64); 6] = [
        (Window::Anywhere, 2),
        (Window::Unmasked, 2),
        (Window::Preemptible, 5),
        (Window::Maintained, 4),
        (Window::Entry, 3),
        (Window::Switch, 1),
    ];

    /// In words.
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

/// What is known of a kernel by its symbols; without any of it the windows that need it are not drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Entry of `__switch_to()` (the task in r2 goes on), the task that runs now, and where in a task the count of what
    /// keeps preemption off is.
    pub preemption: Option<(u32, u32, u32)>,
    /// Entries of functions that change a page table's entry.
    pub entries: Vec<u32>,
    /// Functions that do one thing, for each of the things that a kernel does with memory, with its weight: a seed looks
    /// at one mostly, and at what its functions call directly.
    pub zones: Vec<(u64, Vec<Range<u32>>)>,
}

/// An interrupt that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Why there.
    pub window: Window,
    /// Virtual address of the instruction behind which it came.
    pub pc: u32,
    /// Core cycles since power-on when the machine stopped for it.
    pub cycle: u64,
}

/// A kernel's instruction that was interrupted, and the number of the system call, or [`FAULT`], with which the program
/// went on elsewhere.
pub type Interleaving = (u32, u32);

/// Instead of a system call's number: a data or prefetch abort.
pub const FAULT: u32 = u32::MAX;

/// Bits M4:M0 of user mode.
const USER: u32 = 0x10;

/// The next interrupt.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    window: Window,
    /// Occasions that go by.
    skip: u64,
    /// Instructions behind the occasion.
    delay: u64,
    /// Not before this cycle, and when no occasion came by the other, anywhere.
    from: u64,
    until: u64,
    /// Occasions outside the zone do not count.
    focused: bool,
    /// The occasion has come.
    counting: bool,
}

/// What the one that came last costs before the program goes on is not drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Over,
    /// Since this cycle; whether the task that it wakes has run.
    Since(u64, bool),
}

/// Draws interrupts, and lets another observer look on.
#[derive(Clone)]
pub struct Chaos<O> {
    /// Who looks on besides.
    pub inner: O,
    places: Places,
    /// The zone that this seed looks at.
    focus: Vec<Range<u32>>,
    /// A bit for each that one of the entries has.
    filter: u64,
    random: Random,
    /// Cycles that gaps are counted in, how many powers of two of them are drawn from, and how long an occasion is waited
    /// for.
    gap: u64,
    powers: u64,
    wait: u64,
    /// Of so many gaps one is longer, at most so many cycles.
    pauses: u64,
    pause: u64,
    /// Cycles after which a rest is over whatever runs.
    longest: u64,
    rest: Rest,
    /// One of so many places counts, which ones by the salt.
    sieve: u64,
    salt: u64,
    drawn: Option<Drawn>,
    due: bool,
    points: Vec<Point>,
    /// The instruction before: where, and whether interrupts were masked.
    last: (u32, bool, u32),
    followed: Followed,
    /// Tasks that only handle the interrupt: the first that runs for it, and the one that it wakes.
    own: [u32; 2],
    met: BTreeSet<Interleaving>,
}

impl<O> Chaos<O> {
    /// None yet.
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

    /// From cycle `now` on interrupts come as this seed draws them, on a core with this clock.
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
        // 5 us, and up to 4 or 64 times as many; behind that an occasion is waited for as long as the seed has it, 0.1 to
        // 0.4 ms. Handling one takes some 0.1 ms.
        self.gap = cpu_hz / 200_000;
        self.powers = 3 + self.random.below(5);
        self.wait = (cpu_hz / 10_000) << self.random.below(3);
        self.longest = cpu_hz / 2000;
        // In some seeds one gap in eight is of up to 5 ms: whoever was put first comes to an end.
        self.pause = cpu_hz / 200;
        self.pauses = [1, 1, 8][self.random.below(3) as usize];
        self.rest = Rest::Over;
        self.sieve = 1 << self.random.below(5);
        self.salt = self.random.below(u64::MAX);
        self.points.clear();
        self.met.clear();
        self.draw(now);
    }

    /// Those that came.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// What they led to, each once.
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

    /// An occasion at `place`.
    #[inline]
    fn comes(&mut self, window: Window, place: u32, now: u64) {
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
        // A multiplication spreads addresses (Fibonacci hashing).
        let hash = (u64::from(place) ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        if !hash.is_multiple_of(self.sieve) {
            return;
        }
        match drawn.skip {
            0 => drawn.counting = true,
            _ => drawn.skip -= 1,
        }
    }

    /// An instruction is about to be executed; whether the interrupt comes behind it.
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
        if !self.rests(now) || now < drawn.from {
            return false;
        }
        if !drawn.counting {
            match drawn.window {
                Window::Anywhere => self.comes(Window::Anywhere, pc, now),
                _ if now >= drawn.until => self.give_up(),
                _ if is_user => {}
                Window::Unmasked if was_masked && !context.masked => {
                    self.comes(Window::Unmasked, pc, now);
                }
                Window::Entry if self.is_entry(pc) => {
                    self.comes(Window::Entry, registers[14], now);
                }
                Window::Maintained | Window::Switch if width == Width::Word => {
                    if let Some(window) = opened(word) {
                        self.comes(window, registers[14], now);
                    }
                }
                _ => {}
            }
        }
        self.falls_due(context)
    }

    /// Whether the last one is over; the gap to the next begins then.
    #[inline]
    fn rests(&mut self, now: u64) -> bool {
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

    /// Whether the task that an interrupt wakes runs.
    fn is_woken(&self) -> bool {
        let task = self.places.preemption.map(|(_, task, _)| task);
        task == Some(self.own[1])
    }

    /// Whether what runs only handles an interrupt.
    fn is_handled(&self) -> bool {
        let task = self.places.preemption.map(|(_, task, _)| task);
        task.is_some_and(|task| self.own.contains(&task))
    }

    fn is_entry(&self, pc: u32) -> bool {
        self.filter >> (pc >> 2 & 63) & 1 != 0 && self.places.entries.binary_search(&pc).is_ok()
    }

    /// No occasion came: what comes behind so many instructions from here comes anywhere.
    fn give_up(&mut self) {
        if let Some(drawn) = &mut self.drawn {
            (drawn.window, drawn.counting) = (Window::Anywhere, true);
        }
    }

    /// Counts the instructions behind the occasion.
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

/// Whether an address is in one of some ranges, in their order.
fn is_among(ranges: &[Range<u32>], address: u32) -> bool {
    let behind = ranges.partition_point(|range| range.start <= address);
    behind > 0 && ranges[behind - 1].contains(&address)
}

/// The window that an instruction opens: MCR p15 (`DDI0100I A4.1.32`) of c7 but wait for interrupt, of c8, c2, c13; and
/// of MRC p15 both that test and clean lines of the D-cache (`DDI0198D 2.3.7`), by which Linux cleans all of it.
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
                    self.comes(Window::Preemptible, context.pc, context.cycle);
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

    fn raised(&mut self, now: u64, lines: u32) {
        self.inner.raised(now, lines);
    }
}

/// Raises the interrupt that the machine has stopped for, and draws the next one. False when the machine has not
/// stopped for one.
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
