// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code of all machines of the process, found by the words of a line and by the core.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arm::engine::{Code, Engine, Entries, Entry, Layout, Line, Set, Translation};
use arm::model::Core;
use arm::{Bus, Cpu, Width};

use crate::format::{Calls, Frame};
use crate::host::{self, Maker, Stubs};
use crate::memory::CodeMemory;
use crate::plan;

/// A core, and the instruction set and the words of a line. The address stands for the core, which is a constant.
type Key = (usize, Set, [u32; 8]);

/// Code for one layout of the core. When its memory is full, another one replaces it; machines that still use the old
/// memory keep it until they ask for more code.
struct Generation {
    memory: Arc<CodeMemory>,
    maker: Maker,
    /// Name and entries of each line's code, or `None` if the line has no plan.
    codes: HashMap<Key, Option<(u32, Entries)>>,
}

static GENERATIONS: Mutex<Vec<(Layout, Generation)>> = Mutex::new(Vec::new());

/// What the translators of the process have done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// Lines translated.
    pub lines: u64,
    /// Bytes of their code.
    pub bytes: u64,
    /// Host time that their translation took.
    pub time: Duration,
}

static STATISTICS: Mutex<Statistics> = Mutex::new(Statistics {
    lines: 0,
    bytes: 0,
    time: Duration::ZERO,
});

/// Returns what the translators of the process have done.
pub fn statistics() -> Statistics {
    *STATISTICS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A machine's translator.
struct Translator {
    memory: Arc<CodeMemory>,
    stubs: [Stubs; 2],
    threshold: u32,
}

/// Returns a translator for a core.
pub fn translator<B: Bus>(
    core: &'static Core,
    threshold: u32,
) -> Result<Box<dyn Engine<B>>, String> {
    if !plan::is_planned(core) {
        return Err(format!(
            "the translator does not know the core {}",
            core.name
        ));
    }
    let mut all = GENERATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let generation = generation(&mut all, &Cpu::<B>::LAYOUT)?;
    Ok(Box::new(Translator {
        memory: Arc::clone(&generation.memory),
        stubs: generation.maker.stubs(),
        threshold,
    }))
}

fn new_generation(layout: &Layout) -> Result<Generation, String> {
    let memory = CodeMemory::new().map_err(|error| format!("no memory for code: {error}"))?;
    let memory = Arc::new(memory);
    let maker =
        Maker::new(Arc::clone(&memory), layout).ok_or("the memory for code is too small")?;
    Ok(Generation {
        memory,
        maker,
        codes: HashMap::new(),
    })
}

fn generation<'a>(
    all: &'a mut Vec<(Layout, Generation)>,
    layout: &Layout,
) -> Result<&'a mut Generation, String> {
    let n = match all.iter().position(|(known, _)| known == layout) {
        Some(n) => n,
        None => {
            all.push((*layout, new_generation(layout)?));
            all.len() - 1
        }
    };
    Ok(&mut all[n].1)
}

impl Generation {
    /// Returns the code of a line, which is made if it is missing. Fails if the memory is full.
    fn code<B: Bus>(&mut self, line: &Line<B>) -> Result<Option<(u32, Entries)>, Full> {
        let core = std::ptr::from_ref(line.core()) as usize;
        let key = (core, line.set(), *line.words());
        if let Some(code) = self.codes.get(&key) {
            return Ok(*code);
        }
        let (begin, before) = (Instant::now(), self.memory.used());
        let code = match plan::plan(line) {
            Some(plan) => Some(self.maker.make(&plan).ok_or(Full)?),
            None => None,
        };
        self.codes.insert(key, code);
        let mut statistics = STATISTICS.lock().unwrap_or_else(PoisonError::into_inner);
        statistics.lines += 1;
        statistics.bytes += (self.memory.used() - before) as u64;
        statistics.time += begin.elapsed();
        Ok(code)
    }
}

/// The memory is full.
struct Full;

impl Translator {
    /// Whether the machine uses the memory of a generation. If not, the machine moves there, and has no code then.
    fn is_of(&mut self, generation: &Generation) -> bool {
        let is = Arc::ptr_eq(&generation.memory, &self.memory);
        if !is {
            self.memory = Arc::clone(&generation.memory);
            self.stubs = generation.maker.stubs();
        }
        is
    }
}

impl<B: Bus> Engine<B> for Translator {
    fn translate(&mut self, line: &Line<B>) -> Translation {
        let mut all = GENERATIONS.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(generation) = generation(&mut all, &Cpu::<B>::LAYOUT) else {
            return Translation::Never;
        };
        if !self.is_of(generation) {
            return Translation::Dropped;
        }
        match generation.code(line) {
            Ok(Some((name, entries))) => Translation::Code(Code(name), entries),
            Ok(None) => Translation::Never,
            // Without a new memory, this line stays as it is, and the code that exists stays in use.
            Err(Full) => match new_generation(&Cpu::<B>::LAYOUT) {
                Ok(fresh) => {
                    *generation = fresh;
                    self.is_of(generation);
                    Translation::Dropped
                }
                Err(_) => Translation::Never,
            },
        }
    }

    fn run(&mut self, cpu: &mut Cpu<B>, code: Code) -> u64 {
        let tables = cpu.tables();
        let scoreboard = cpu.config().core.behaviour.scoreboard;
        let set = cpu.instruction_set();
        let at = std::ptr::from_mut(cpu).cast::<u8>();
        let core = (at.wrapping_add(host::BIAS), scoreboard);
        let calls = match set {
            Set::A32 => calls::<B, false>(),
            Set::Thumb => calls::<B, true>(),
        };
        let mut frame = Frame::new(&self.memory, tables, core, calls);
        // SAFETY: The code has the layout of this core and lies in this memory, because the core forgets its code when
        // the memory changes. The core lives as long as the call.
        unsafe { host::enter(&self.stubs[set as usize], &mut frame, code.0) }
    }

    fn threshold(&self) -> u32 {
        self.threshold
    }

    fn fork(&self) -> Box<dyn Engine<B>> {
        Box::new(Translator {
            memory: Arc::clone(&self.memory),
            stubs: self.stubs,
            threshold: self.threshold,
        })
    }
}

/// What code of an instruction set calls.
fn calls<B: Bus, const THUMB: bool>() -> Calls {
    Calls {
        step: step::<B, THUMB>,
        enter: enter::<B, THUMB>,
        load: load::<B>,
        store: store::<B>,
        load_block: load_block::<B>,
        store_block: store_block::<B>,
    }
}

/// The core that code passes to a function.
///
/// # Safety
///
/// `at` must be the address of a core + [`host::BIAS`], and nobody else may use the core as long as the result lives.
unsafe fn core_at<'a, B: Bus>(at: *mut u8) -> &'a mut Cpu<B> {
    // SAFETY: The caller ensures it.
    unsafe { &mut *at.wrapping_sub(host::BIAS).cast() }
}

/// Executes the next instruction by the interpreter.
extern "C" fn step<B: Bus, const THUMB: bool>(core: *mut u8) -> bool {
    // SAFETY: The code passes its core, and uses the core only after the return.
    unsafe { core_at::<B>(core) }.execute_next::<THUMB>()
}

/// Loads from an MVA. Returns a number with bit 63 set if the core took a data abort.
extern "C" fn load<B: Bus>(core: *mut u8, mva: u32, bytes: u32) -> u64 {
    // SAFETY: As in `step`.
    let value = unsafe { core_at::<B>(core) }.load_without_grant(mva, width(bytes));
    value.map_or(u64::MAX, u64::from)
}

/// Stores to an MVA. Returns a number with bit 63 set if the core took a data abort.
extern "C" fn store<B: Bus>(core: *mut u8, mva: u32, bytes: u32, value: u32) -> u64 {
    // SAFETY: As in `step`.
    let stored = unsafe { core_at::<B>(core) }.store_without_grant(mva, width(bytes), value);
    if stored { 0 } else { u64::MAX }
}

/// Loads registers from a VA. Returns a number with bit 63 set if the core took a data abort.
extern "C" fn load_block<B: Bus>(core: *mut u8, va: u32, list: u32) -> u64 {
    // SAFETY: As in `step`.
    let loaded = unsafe { core_at::<B>(core) }.load_block_without_grant(va, list);
    if loaded { 0 } else { u64::MAX }
}

/// Stores registers to a VA. Returns a number with bit 63 set if the core took a data abort.
extern "C" fn store_block<B: Bus>(core: *mut u8, va: u32, list: u32) -> u64 {
    // SAFETY: As in `step`.
    let stored = unsafe { core_at::<B>(core) }.store_block_without_grant(va, list);
    if stored { 0 } else { u64::MAX }
}

fn width(bytes: u32) -> Width {
    match bytes {
        4 => Width::Word,
        2 => Width::Half,
        _ => Width::Byte,
    }
}

/// Enters the next line as the interpreter does.
extern "C" fn enter<B: Bus, const THUMB: bool>(core: *mut u8) -> i32 {
    // SAFETY: As in `step`.
    match unsafe { core_at::<B>(core) }.enter_next::<THUMB>() {
        Entry::Code(code) => code.0 as i32,
        Entry::Nowhere => -1,
        Entry::Executed => -2,
    }
}
