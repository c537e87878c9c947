// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boards as data: core, clocks, caches, memory timing, and peripherals.
//!
//! The files are `boards/*.toml` and `boards/machine/*.toml`, which are read at run time. The files of the repository
//! are also built in, for tests and for a program that runs without the repository. Every number has a source and a
//! confidence (see [`reader`]).

mod change;
mod kernels;
mod peripherals;
mod reader;

pub use change::Change;
pub use kernels::MachineKernels;
pub use peripherals::{DeviceSpec, GRANULE, IgnoredSpec, Peripherals, Sink, Wire};
pub use reader::{Confidence, Limits, Quantity, SpecError, Step};

use crate::suggest::did_you_mean;
use reader::{Document, Section};

use arm::model::{self, Core};
use std::collections::BTreeMap;
use std::path::Path;

/// The board that is used when the user names none.
pub const DEFAULT_BOARD: &str = "sam9263";

const BOARDS: &[(&str, &str)] = &[
    ("sam9263", include_str!("../../../../boards/sam9263.toml")),
    ("s3c24a0", include_str!("../../../../boards/s3c24a0.toml")),
    ("omap1610", include_str!("../../../../boards/omap1610.toml")),
    ("sam9x60", include_str!("../../../../boards/sam9x60.toml")),
    (
        "at91rm9200",
        include_str!("../../../../boards/at91rm9200.toml"),
    ),
    ("ixp425", include_str!("../../../../boards/ixp425.toml")),
    (
        "sam9263-ek",
        include_str!("../../../../boards/sam9263-ek.toml"),
    ),
    (
        "at91rm9200-ek",
        include_str!("../../../../boards/at91rm9200-ek.toml"),
    ),
    (
        "sam9g20-ek",
        include_str!("../../../../boards/sam9g20-ek.toml"),
    ),
    (
        "sam9x60-ek",
        include_str!("../../../../boards/sam9x60-ek.toml"),
    ),
];
const MACHINES: &[(&str, &str)] = &[
    (
        "versatilepb",
        include_str!("../../../../boards/machine/versatilepb.toml"),
    ),
    (
        "at91sam9263",
        include_str!("../../../../boards/machine/at91sam9263.toml"),
    ),
    (
        "at91rm9200",
        include_str!("../../../../boards/machine/at91rm9200.toml"),
    ),
    (
        "at91sam9g20",
        include_str!("../../../../boards/machine/at91sam9g20.toml"),
    ),
    (
        "at91sam9x60",
        include_str!("../../../../boards/machine/at91sam9x60.toml"),
    ),
];

/// SDRAM timing. Times are in bus clocks unless the field names another unit.
#[derive(Clone, Debug, PartialEq)]
pub struct SdramSpec {
    /// Time from the bus grant to the critical word when the row is open.
    pub first_word_row_hit_bus: u32,
    /// Time from the bus grant to the critical word when the row is not open.
    pub first_word_row_miss_bus: u32,
    /// Time of each further word of a burst. It may be a fraction.
    pub clk_per_word_bus: f64,
    /// Time before the first word of a write burst.
    pub write_setup_bus: u32,
    /// Number of banks, a power of two.
    pub banks: u32,
    /// Bytes of a row, over the whole bus width. This is a power of two and at least 1 KB. No burst of a core crosses a
    /// multiple of 1 KB, so each burst stays within a row.
    pub row_bytes: u32,
    /// Time between refreshes, ns. Each refresh closes all rows.
    pub refresh_interval_ns: u32,
    /// Time for which a refresh occupies the SDRAM (tRC).
    pub refresh_busy_bus: u32,
}

/// A board.
#[derive(Clone, Debug, PartialEq)]
pub struct BoardSpec {
    /// Name on the command line.
    pub name: String,
    /// One-line title for lists.
    pub title: String,
    /// Core clock, Hz.
    pub cpu_hz: u64,
    /// Clock of bus and memory, Hz.
    pub bus_hz: u64,
    /// The core as this chip integrates it.
    pub core: arm::Config,
    /// Cache type register that follows from the cache sizes.
    pub ctr: u32,
    /// Bytes of RAM.
    pub ram_bytes: u32,
    /// Address of the SDRAM on the real chip, for information only. The machine file gives the address of the simulated
    /// RAM.
    pub soc_ram_base: u32,
    /// Memory timing.
    pub sdram: SdramSpec,
    /// Time of a read from a peripheral, bus clocks.
    pub peripheral_read_bus: u32,
    /// Time of a write to a peripheral, bus clocks.
    pub peripheral_write_bus: u32,
    /// The peripherals.
    pub peripherals: Peripherals,
    /// Every number of the board file with its origin.
    pub quantities: Vec<Quantity>,
}

/// Returns the names of the built-in boards, the default first.
pub fn board_names() -> Vec<&'static str> {
    BOARDS.iter().map(|b| b.0).collect()
}

/// Largest board file that is read, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

impl BoardSpec {
    /// Returns a hash of the board. Boards that differ in any value have different hashes.
    pub fn identity(&self) -> blake3::Hash {
        // A board is plain data, so its debug form contains every value.
        blake3::hash(format!("{self:?}").as_bytes())
    }

    /// Returns a built-in board.
    ///
    /// # Errors
    /// Fails when no built-in board has this name. The message suggests the nearest name.
    pub fn named(name: &str) -> Result<BoardSpec, SpecError> {
        match BOARDS.iter().find(|b| b.0 == name) {
            Some((_, text)) => BoardSpec::parse(&format!("boards/{name}.toml"), text),
            None => Err(SpecError {
                file: format!("boards/{name}.toml"),
                key: "board".to_owned(),
                problem: format!("no board \"{name}\"{}", did_you_mean(name, &board_names())),
            }),
        }
    }

    /// Reads a board from a file and changes some of its numbers. The changes become part of its name. The board's
    /// machine file is in the directory `machine` next to the board file. If it is not there, it is in the directory
    /// `machine` in `data`.
    ///
    /// # Errors
    /// Fails when a file cannot be read, and at the first mistake in it.
    pub fn from_file(path: &Path, data: &Path, changes: &[Change]) -> Result<BoardSpec, SpecError> {
        let beside = path.parent().unwrap_or(Path::new(""));
        let machines = Machines::In(&[&beside.join("machine"), &data.join("machine")]);
        let (file, text) = read(path)?;
        Ok(BoardSpec::with_machines(&file, &text, changes, &machines)?.0)
    }

    /// Returns every number of a board file with its limits, in the order in which they are read.
    ///
    /// # Errors
    /// Fails as [`BoardSpec::from_file`] does.
    pub fn numbers(
        path: &Path,
        data: &Path,
        changes: &[Change],
    ) -> Result<Vec<(Quantity, Limits)>, SpecError> {
        let beside = path.parent().unwrap_or(Path::new(""));
        let machines = Machines::In(&[&beside.join("machine"), &data.join("machine")]);
        let (file, text) = read(path)?;
        let (spec, limits) = BoardSpec::with_machines(&file, &text, changes, &machines)?;
        let numbers = spec.quantities.into_iter();
        let limits = |quantity: Quantity| {
            let limits = limits.get(&quantity.key).copied()?;
            Some((quantity, limits))
        };
        Ok(numbers.filter_map(limits).collect())
    }

    /// Parses the text of a board file that names a built-in machine. `file` is its name in messages.
    ///
    /// # Errors
    /// Fails at the first mistake.
    pub fn parse(file: &str, text: &str) -> Result<BoardSpec, SpecError> {
        Ok(BoardSpec::with_machines(file, text, &[], &Machines::BuiltIn)?.0)
    }

    fn with_machines(
        file: &str,
        text: &str,
        changes: &[Change],
        machines: &Machines<'_>,
    ) -> Result<(BoardSpec, BTreeMap<String, Limits>), SpecError> {
        let document = Document::changed(file, text, changes)?;
        let root = document.root(&[
            "name",
            "title",
            "core",
            "machine",
            "clocks",
            "caches",
            "core_timing",
            "ram",
            "sdram",
            "peripherals",
        ])?;
        let name = root.text("core")?;
        let Some(core) = Core::named(&name) else {
            let cores: Vec<&str> = model::ALL.iter().map(|core| core.name).collect();
            let near = did_you_mean(&name, &cores);
            return Err(root.error("core", format!("no core \"{name}\"{near}")));
        };
        let (cpu_hz, bus_hz) = clocks(&root)?;
        let (icache, dcache, ctr) = caches(&root, core)?;
        let ram = root.section("ram", &["size", "soc_base"])?;
        let peripheral = root.section("peripherals", &["read_bus", "write_bus"])?;
        let mut spec = BoardSpec {
            name: root.text("name")?,
            title: root.text("title")?,
            cpu_hz,
            bus_hz,
            core: arm::Config {
                core,
                icache,
                dcache,
                cost: core_timing(&root, core)?,
                victim_seed: 0,
                victims: arm::Victims::Random,
            },
            ctr,
            ram_bytes: ram_bytes(&ram)?,
            soc_ram_base: ram.integer("soc_base", 0..=0xffff_f000, "")? as u32,
            sdram: sdram(&root)?,
            peripheral_read_bus: peripheral.integer("read_bus", 1..=1000, " bus clocks")? as u32,
            peripheral_write_bus: peripheral.integer("write_bus", 1..=1000, " bus clocks")? as u32,
            peripherals: machines.find(&root)?,
            quantities: Vec::new(),
        };
        spec.check_ram_place(&ram)?;
        for change in changes {
            spec.name.push_str(&format!("+{change}"));
        }
        spec.quantities = document.quantities();
        Ok((spec, document.limits()))
    }

    fn check_ram_place(&self, ram: &Section<'_>) -> Result<(), SpecError> {
        let start = u64::from(self.peripherals.ram_base);
        let end = start + u64::from(self.ram_bytes);
        for (name, base, size) in self.peripherals.regions() {
            let (base, size) = (u64::from(base), u64::from(size));
            if base < end && start < base + size {
                return Err(ram.error(
                    "size",
                    format!("RAM from {start:#010x} to {end:#010x} overlaps \"{name}\""),
                ));
            }
        }
        Ok(())
    }

    /// Converts nanoseconds of board time to core cycles, rounded down.
    pub fn cycles_of_ns(&self, ns: u64) -> u64 {
        (u128::from(ns) * u128::from(self.cpu_hz) / 1_000_000_000) as u64
    }
}

/// Reads a file. Returns its name for messages and its text.
fn read(path: &Path) -> Result<(String, String), SpecError> {
    let file = path.display().to_string();
    let bytes = crate::boot::read_at_most(path, LARGEST_FILE);
    let text = bytes.and_then(|b| String::from_utf8(b).map_err(|e| e.to_string()));
    match text {
        Ok(text) => Ok((file, text)),
        Err(problem) => Err(SpecError {
            file,
            key: "file".to_owned(),
            problem,
        }),
    }
}

/// Places to look for machine files.
enum Machines<'a> {
    BuiltIn,
    /// The first of these directories that has the file.
    In(&'a [&'a Path]),
}

impl Machines<'_> {
    fn find(&self, root: &Section<'_>) -> Result<Peripherals, SpecError> {
        let name = root.text("machine")?;
        let plain = !name.contains(['/', '\\']);
        let found = match self {
            _ if !plain => None,
            Machines::BuiltIn => {
                let text = MACHINES
                    .iter()
                    .find(|m| m.0 == name)
                    .map(|m| m.1.to_owned());
                text.map(|text| (format!("boards/machine/{name}.toml"), text))
            }
            Machines::In(dirs) => {
                let mut paths = dirs.iter().map(|dir| dir.join(format!("{name}.toml")));
                let path = paths.find(|path| path.is_file());
                path.map(|path| read(&path)).transpose()?
            }
        };
        if let Some((file, text)) = found {
            return Peripherals::parse(&file, &text);
        }
        let names = self.names();
        let near = did_you_mean(&name, &names);
        Err(root.error("machine", format!("no machine \"{name}\"{near}")))
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = match self {
            Machines::BuiltIn => MACHINES.iter().map(|m| m.0.to_owned()).collect(),
            Machines::In(dirs) => {
                let entries = dirs.iter().flat_map(std::fs::read_dir).flatten().flatten();
                let paths = entries.map(|entry| entry.path());
                let files = paths.filter(|p| p.extension().is_some_and(|e| e == "toml"));
                let stem = |p: std::path::PathBuf| Some(p.file_stem()?.to_str()?.to_owned());
                files.filter_map(stem).collect()
            }
        };
        names.sort();
        names.dedup();
        names
    }
}

fn clocks(root: &Section<'_>) -> Result<(u64, u64), SpecError> {
    let clocks = root.section("clocks", &["cpu_hz", "bus_hz"])?;
    let cpu_hz = clocks.integer("cpu_hz", 1_000_000..=2_000_000_000, " Hz")?;
    let bus_hz = clocks.integer("bus_hz", 1_000_000..=2_000_000_000, " Hz")?;
    let problem = || {
        format!("the core clock of {cpu_hz} Hz is not 1 to 16 times the bus clock of {bus_hz} Hz")
    };
    clocks.narrow(("bus_hz", bus_hz), cpu_hz.div_ceil(16)..=cpu_hz, problem)?;
    clocks.narrow(("cpu_hz", cpu_hz), bus_hz..=16 * bus_hz, problem)?;
    Ok((cpu_hz, bus_hz))
}

/// Instruction cache, data cache, and cache type register.
type Caches = (arm::CacheGeometry, arm::CacheGeometry, u32);

fn caches(root: &Section<'_>, core: &Core) -> Result<Caches, SpecError> {
    let caches = root.section("caches", &["icache_bytes", "dcache_bytes", "ways", "ctr"])?;
    let ways = caches.integer("ways", 1..=64, "")? as u32;
    let right = u64::from(core.ways);
    caches.narrow(("ways", ways.into()), right..=right, || {
        format!("caches of {} have {} ways", core.name, core.ways)
    })?;
    let geometry = |key: &str| {
        let size = caches.integer(key, 0..=u64::from(u32::MAX), " bytes")? as u32;
        let cache = core
            .cache(size)
            .map_err(|problem| caches.error(key, problem))?;
        let (least, most) = core.cache_bytes;
        let found = (key, u64::from(size));
        caches.narrow(found, least.into()..=most.into(), || {
            format!("{size} bytes")
        })?;
        caches.step(found, Step::PowerOfTwo)?;
        Ok(cache)
    };
    let (icache, dcache) = (geometry("icache_bytes")?, geometry("dcache_bytes")?);
    let right = core.cache_type(icache, dcache);
    if !caches.has("ctr") {
        return Ok((icache, dcache, right));
    }
    let ctr = caches.integer("ctr", 0..=0xffff_ffff, "")? as u32;
    let parts = [
        ("instruction", ctr & 0xfff, icache),
        ("data", ctr >> 12 & 0xfff, dcache),
    ];
    for (side, field, geometry) in parts {
        // DDI0198D 2.3.1: size in [9:6] as 512 << n, ways in [5:3] as 1 << n, words in [1:0].
        let (size, ways, words) = (512 << (field >> 6 & 15), 1 << (field >> 3 & 7), field & 3);
        if (size, ways, words) != (geometry.size, geometry.ways, 2) {
            return Err(caches.error(
                "ctr",
                format!(
                    "{ctr:#010x} describes a {side} cache of {size} bytes in {ways} ways of {}-byte \
                     lines, but the board's has {} bytes in {} ways of 32-byte lines: remove ctr, or \
                     write {right:#010x}",
                    8 << words,
                    geometry.size,
                    geometry.ways
                ),
            ));
        }
    }
    caches.narrow(("ctr", ctr.into()), right.into()..=right.into(), || {
        format!(
            "{ctr:#010x} is not the cache type register of {}: remove ctr, or write {right:#010x}",
            core.name
        )
    })?;
    Ok((icache, dcache, ctr))
}

fn core_timing(root: &Section<'_>, core: &Core) -> Result<arm::CostTable, SpecError> {
    let t = root.section(
        "core_timing",
        &[
            "sync_cpu",
            "tail_exposed",
            "walk_overhead_cpu",
            "lines_tested_per_op",
            "cp15_busy_cpu",
        ],
    )?;
    let tested = "lines_tested_per_op";
    let lines_tested_per_op = match core.test_and_clean {
        true => t.integer(tested, 1..=4096, "")? as u32,
        false if t.has(tested) => {
            let problem = format!(
                "{} has no test-and-clean operation: remove this key",
                core.name
            );
            return Err(t.error(tested, problem));
        }
        false => 0,
    };
    Ok(arm::CostTable {
        bus_sync: t.integer("sync_cpu", 0..=1000, " cycles")? as u32,
        tail_exposed_256: (t.real("tail_exposed", 0.0..=1.0)? * 256.0).round() as u32,
        walk_overhead: t.integer("walk_overhead_cpu", 0..=1000, " cycles")? as u32,
        lines_tested_per_op,
        cp15_busy: t.integer("cp15_busy_cpu", 0..=1000, " cycles")? as u32,
    })
}

fn ram_bytes(ram: &Section<'_>) -> Result<u32, SpecError> {
    let size = ram.integer("size", 1 << 20..=256 << 20, " bytes")?;
    ram.step(("size", size), Step::Of(1 << 20))?;
    Ok(size as u32)
}

fn sdram(root: &Section<'_>) -> Result<SdramSpec, SpecError> {
    let s = root.section(
        "sdram",
        &[
            "first_word_row_hit_bus",
            "first_word_row_miss_bus",
            "clk_per_word_bus",
            "write_setup_bus",
            "banks",
            "row_bytes",
            "refresh_interval_ns",
            "refresh_busy_bus",
        ],
    )?;
    let clocks = |key: &str| Ok(s.integer(key, 1..=1000, " bus clocks")? as u32);
    let power = |key: &str, range, unit: &'static str| {
        let n = s.integer(key, range, unit)?;
        s.step((key, n), Step::PowerOfTwo)?;
        Ok(n as u32)
    };
    let spec = SdramSpec {
        first_word_row_hit_bus: clocks("first_word_row_hit_bus")?,
        first_word_row_miss_bus: clocks("first_word_row_miss_bus")?,
        clk_per_word_bus: s.real("clk_per_word_bus", 0.125..=64.0)?,
        write_setup_bus: clocks("write_setup_bus")?,
        banks: power("banks", 1..=8, "")?,
        row_bytes: power("row_bytes", 1024..=65_536, " bytes")?,
        refresh_interval_ns: s.integer("refresh_interval_ns", 1000..=1_000_000, " ns")? as u32,
        refresh_busy_bus: clocks("refresh_busy_bus")?,
    };
    let (hit, miss) = (spec.first_word_row_hit_bus, spec.first_word_row_miss_bus);
    let (hit, miss) = (u64::from(hit), u64::from(miss));
    let problem = || "a row miss cannot be faster than a row hit".to_owned();
    s.narrow(("first_word_row_miss_bus", miss), hit..=u64::MAX, problem)?;
    s.narrow(("first_word_row_hit_bus", hit), 0..=miss, problem)?;
    Ok(spec)
}

#[cfg(test)]
mod chip_tests;
#[cfg(test)]
mod tests;
