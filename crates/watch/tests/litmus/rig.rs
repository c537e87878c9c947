// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the programs and runs them on a board: `sam9263`, or `ixp425` for XScale.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use arm::{Pa, Reaction};
use board::boot::Boot;
use board::bus::SystemBus;
use board::{BoardBus, BoardSpec, Machine, Observed, Stop};
use watch::checker::Checker;

/// Physical addresses of `litmus.h`.
const LOAD: u32 = 0x1_0000;
const DONE: u32 = 0xe000;
const CASE: u32 = 0xe004;
const VARIANT: u32 = 0xe008;
const END: u32 = 0xe00c;
const READY: u32 = 0xe010;
const GO: u32 = 0xe014;
const RESULTS: u32 = 0xe100;
const RESULTS_VA: u32 = 0x4000_0000 + RESULTS;
const DONE_MARK: u32 = 0x600d;
/// Physical address of the programs' scratch memory.
pub const DATA: u32 = 0x20_0000;

/// Maximum length of a program's run, in core cycles: a few milliseconds of board time.
const LIMIT: u64 = 5_000_000;

struct Programs {
    image: Vec<u8>,
    symbols: BTreeMap<String, u32>,
}

fn output(command: &mut Command) -> Vec<u8> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command
        .output()
        .unwrap_or_else(|e| panic!("cannot run {name}: {e}; install gcc-arm-linux-gnueabi"));
    assert!(
        out.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    out.stdout
}

thread_local! {
    /// Board of this thread's programs.
    static BOARD: Cell<&'static str> = const { Cell::new("sam9263") };
}

/// Runs a test with programs for XScale, on an XScale board.
pub fn on_xscale(test: impl FnOnce()) {
    let before = BOARD.replace("ixp425");
    test();
    BOARD.set(before);
}

fn programs() -> &'static Programs {
    static ARM: OnceLock<Programs> = OnceLock::new();
    static XSCALE: OnceLock<Programs> = OnceLock::new();
    match BOARD.get() {
        "ixp425" => XSCALE.get_or_init(|| build("litmus-xscale", &["-DXSCALE"])),
        _ => ARM.get_or_init(|| build("litmus", &[])),
    }
}

fn build(to: &str, defined: &[&str]) -> Programs {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest/litmus");
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (elf, bin) = (
        target.join(format!("{to}.elf")),
        target.join(format!("{to}.bin")),
    );
    let mut files: Vec<PathBuf> = std::fs::read_dir(&source)
        .unwrap_or_else(|e| panic!("{}: {e}", source.display()))
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "S"))
        .collect();
    // The entry must come first in the image.
    files.sort_by_key(|path| (!path.ends_with("start.S"), path.clone()));
    output(
        Command::new("arm-linux-gnueabi-gcc")
            .args(defined)
            .args(["-nostdlib", "-static", "-marm", "-march=armv5te"])
            .args(["-Wl,-Ttext=0x70010000", "-Wl,--build-id=none", "-o"])
            .arg(&elf)
            .args(&files),
    );
    output(
        Command::new("arm-linux-gnueabi-objcopy")
            .args(["-O", "binary", "-j", ".text"])
            .args([&elf, &bin]),
    );
    let listing = output(Command::new("arm-linux-gnueabi-nm").arg(&elf));
    let symbols = String::from_utf8_lossy(&listing)
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            let address = u32::from_str_radix(fields.next()?, 16).ok()?;
            Some((fields.nth(1)?.to_owned(), address))
        })
        .collect();
    let image = std::fs::read(&bin).unwrap_or_else(|e| panic!("{}: {e}", bin.display()));
    Programs { image, symbols }
}

fn board() -> BoardSpec {
    BoardSpec::named(BOARD.get()).unwrap_or_else(|e| panic!("{e}"))
}

fn bare() -> Boot {
    Boot::Bare {
        load: LOAD,
        entry: LOAD,
        bytes: programs().image.clone(),
    }
}

/// Returns the program or label at or before a virtual address, and the distance.
pub fn name_of(pc: u32) -> String {
    let symbols = programs().symbols.iter();
    let before = symbols.filter(|(_, at)| **at <= pc && pc - **at < 0x200);
    match before.max_by_key(|(_, at)| **at) {
        Some((name, at)) if *at == pc => name.clone(),
        Some((name, at)) => format!("{name}+{:#x}", pc - at),
        None => format!("{pc:#x}"),
    }
}

/// A bus whose observer may need to see the writes of devices.
pub trait Poked: BoardBus {
    /// Tells the observer about a byte that a device writes.
    fn poked(&mut self, _: u64, _: Pa, _: u8) -> Reaction {
        Reaction::Continue
    }
}

impl Poked for SystemBus {}

impl Poked for Observed<Checker> {
    fn poked(&mut self, cycle: u64, pa: Pa, value: u8) -> Reaction {
        self.observer.dma_write(cycle, pa, value)
    }
}

/// A board that runs one program.
pub struct Rig<B: BoardBus = SystemBus> {
    machine: Machine<B>,
    name: String,
}

impl Rig {
    /// Loads a variant of the program `name`.
    pub fn new(name: &str, variant: u32) -> Rig {
        let machine = Machine::new(board(), &bare()).unwrap_or_else(|e| panic!("{e}"));
        Rig::with(machine, name, variant)
    }
}

impl Rig<Observed<Checker>> {
    /// Loads a variant of the program `name`, with the coherence checker on.
    pub fn checked(name: &str, variant: u32) -> Rig<Observed<Checker>> {
        let machine = Checker::machine(board(), &bare());
        Rig::with(machine.unwrap_or_else(|e| panic!("{e}")), name, variant)
    }
}

impl<B: Poked> Rig<B> {
    fn with(machine: Machine<B>, name: &str, variant: u32) -> Rig<B> {
        let case = programs().symbols.get(name);
        let case = *case.unwrap_or_else(|| panic!("there is no litmus program {name}"));
        let mut rig = Rig {
            machine,
            name: format!("{name}/{variant}"),
        };
        rig.poke(CASE, case);
        rig.poke(VARIANT, variant);
        rig
    }

    /// The board.
    pub fn machine(&mut self) -> &mut Machine<B> {
        &mut self.machine
    }

    /// Writes a word of memory and bypasses all caches, as a device does.
    pub fn poke(&mut self, pa: u32, value: u32) {
        let now = self.machine.now();
        let cpu = self.machine.cpu_mut();
        for (at, byte) in (pa..).zip(value.to_le_bytes()) {
            assert!(cpu.bus.poke(Pa(at), byte), "{pa:#x} is memory");
            let reaction = cpu.bus.poked(now, Pa(at), byte);
            cpu.react(reaction);
        }
    }

    /// Reads a word of memory and bypasses all caches, as a device does.
    pub fn peek(&self, pa: u32) -> u32 {
        let bus = &self.machine.cpu().bus;
        let bytes = [0, 1, 2, 3].map(|n| bus.peek(Pa(pa + n)).expect("an address of memory"));
        u32::from_le_bytes(bytes)
    }

    fn run_until(&mut self, flag: u32) -> u32 {
        let end = self.machine.now() + LIMIT;
        while self.peek(flag) == 0 {
            let stop = self.machine.run_until(self.machine.now() + 1000);
            let message = self.machine.message(&stop, |_| None);
            let going = stop == Stop::Limit && self.machine.now() < end;
            assert!(going, "{} does not finish: {message}", self.name);
        }
        self.peek(flag)
    }

    /// Runs until the program waits for the device.
    pub fn run_to_device(&mut self) {
        self.run_until(READY);
    }

    /// Lets a program that waits for the device continue.
    pub fn go_on(&mut self) {
        self.poke(GO, 1);
    }

    /// Runs to the end and returns the values that the program observed.
    pub fn finish(mut self) -> Vec<u32> {
        self.run_to_end()
    }

    /// Runs to the end and returns the values that the program observed.
    pub fn run_to_end(&mut self) -> Vec<u32> {
        let mark = self.run_until(DONE);
        assert_eq!(
            mark, DONE_MARK,
            "{} took an unexpected exception",
            self.name
        );
        let words = (self.peek(END) - RESULTS_VA) / 4;
        (0..words).map(|n| self.peek(RESULTS + 4 * n)).collect()
    }
}

/// Runs a program and returns the values that it observed.
pub fn run(name: &str, variant: u32) -> Vec<u32> {
    Rig::new(name, variant).finish()
}
