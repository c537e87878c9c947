// SPDX-License-Identifier: MIT OR Apache-2.0
//! The peripherals of a board: devices, wires between them, and ignored regions.

use super::kernels::{self, MachineKernels};
use super::reader::{Document, Quantity, Section, SpecError};
use crate::device::parts;
use crate::suggest::did_you_mean;
use std::collections::BTreeMap;
use std::fmt;

/// Bases and sizes of device regions are multiples of this number of bytes.
pub const GRANULE: u32 = 16;

/// Maximum number of input pins of a device.
const INPUTS: u32 = 64;
/// Maximum number of output pins of a device.
const OUTPUTS: u32 = 32;

/// A device of the machine file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// Name within the machine, such as `uart0`.
    pub name: String,
    /// Part name, as in [`parts::names`].
    pub part: String,
    /// Physical address.
    pub base: u32,
    /// Size in bytes, a multiple of [`GRANULE`].
    pub size: u32,
    /// The part's own clock, Hz.
    pub clock_hz: Option<u64>,
    /// Additional wait states of this device, in bus clocks per transfer. Every peripheral also has the board's wait
    /// states.
    pub wait_bus: u32,
    /// Further values of the part.
    pub values: BTreeMap<String, u64>,
}

/// A region that exists on the real board and that the model ignores on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredSpec {
    /// Name of the region.
    pub name: String,
    /// Physical address.
    pub base: u32,
    /// Size in bytes, a multiple of [`GRANULE`].
    pub size: u32,
    /// Reason why the region is not modelled.
    pub reason: String,
    /// Path of the region's node in the chip's device tree. The first access to a region with a node is reported.
    pub node: Option<String>,
    /// Registers that read a constant: offset and value, in ascending order. All other registers read zero.
    pub values: Vec<(u32, u32)>,
}

/// End of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sink {
    /// Input pin of a device (index into the devices).
    Device(usize, u32),
    /// The core's interrupt request.
    Irq,
    /// The core's fast interrupt request.
    Fiq,
    /// The stop of the core's clock, until an interrupt request.
    Stop,
    /// The board's reset, which ends the run.
    Reset,
}

/// A wire from output `pin` of device `from` to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Index of the device that drives the wire.
    pub from: usize,
    /// Output of that device.
    pub pin: u32,
    /// End of the wire.
    pub to: Sink,
}

/// Keys of a `[[device]]`.
const DEVICE_KEYS: [&str; 9] = [
    "name",
    "part",
    "base",
    "size",
    "clock_hz",
    "wait_bus",
    "values",
    "source",
    "confidence",
];
/// Keys of `[boot]`, in addition to those of [`kernels`].
const BOOT_KEYS: [&str; 4] = ["compatible", "kernel_options", "machine_id", "ram_base"];
/// Keys of an `[[ignored]]` region.
const IGNORED_KEYS: [&str; 8] = [
    "name",
    "base",
    "size",
    "reason",
    "node",
    "values",
    "source",
    "confidence",
];

/// The peripherals of a machine file.
#[derive(Clone, PartialEq)]
pub struct Peripherals {
    /// Name in board files.
    pub name: String,
    /// One-line title for lists.
    pub title: String,
    /// QEMU's machine with these peripherals, if QEMU has one.
    pub qemu: Option<String>,
    /// `compatible` of the root of a device tree for this machine.
    pub compatible: String,
    /// Options that a kernel needs for this machine and its console.
    pub kernel_options: Vec<String>,
    /// Kernel, device tree and console of the machine.
    pub kernels: MachineKernels,
    /// Machine number passed in r1 at boot.
    pub machine_id: u32,
    /// Physical address of the RAM.
    pub ram_base: u32,
    /// Index of the device with the console.
    pub console: usize,
    /// Index of the device whose outputs 1 to 8 are the pins that instruments see.
    pub probes: usize,
    /// Index of the device that carries Ethernet frames, if the machine has one.
    pub network: Option<usize>,
    /// Whether an access to an address that no unit owns gives an external abort. Otherwise the access ends the run.
    pub unmapped_aborts: bool,
    /// The devices, in the file's order.
    pub devices: Vec<DeviceSpec>,
    /// The wires.
    pub wires: Vec<Wire>,
    /// Regions that the model ignores on purpose.
    pub ignored: Vec<IgnoredSpec>,
    /// Every number with its origin.
    pub quantities: Vec<Quantity>,
}

/// Prints every value that differs between machines. A board's identity is the hash of this text. [`MachineKernels`]
/// changes no machine, so this text leaves it out. Values that only chips have are printed only if a machine has them,
/// so that the identities of other boards stay.
impl fmt::Debug for Peripherals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Peripherals {
            name,
            title,
            qemu,
            compatible,
            kernel_options,
            kernels: _,
            machine_id,
            ram_base,
            console,
            probes,
            network,
            unmapped_aborts,
            devices,
            wires,
            ignored,
            quantities,
        } = self;
        let mut out = f.debug_struct("Peripherals");
        out.field("name", name).field("title", title);
        match qemu {
            Some(qemu) => out.field("qemu", qemu),
            None => out.field("qemu", &None::<()>),
        };
        out.field("compatible", compatible)
            .field("kernel_options", kernel_options)
            .field("machine_id", machine_id)
            .field("ram_base", ram_base)
            .field("console", console)
            .field("probes", probes);
        match network {
            Some(network) => out.field("network", network),
            None => out.field("network", &None::<()>),
        };
        if *unmapped_aborts {
            out.field("unmapped_aborts", &true);
        }
        out.field("devices", devices)
            .field("wires", wires)
            .field("ignored", ignored)
            .field("quantities", quantities)
            .finish()
    }
}

impl Peripherals {
    /// Returns the index of the device that drives the core's nIRQ, or the number of devices if none does.
    pub(crate) fn interrupts(&self) -> usize {
        let wire = self.wires.iter().find(|wire| wire.to == Sink::Irq);
        wire.map_or(self.devices.len(), |wire| wire.from)
    }

    /// Returns the names of the devices that drive input `line` of the interrupt controller at the core.
    pub fn interrupt_sources(&self, line: u32) -> Vec<&str> {
        let to = Sink::Device(self.interrupts(), line);
        let wires = self.wires.iter().filter(|wire| wire.to == to);
        let devices = wires.filter_map(|wire| self.devices.get(wire.from));
        devices.map(|device| device.name.as_str()).collect()
    }

    /// Returns the port whose pins instruments see, as guest programs take it: `PART@ADDRESS`, the address in
    /// hexadecimal (`guest/shared/pins.h`).
    pub fn pins(&self) -> String {
        let port = &self.devices[self.probes];
        format!("{}@{:x}", port.part, port.base)
    }

    /// Parses the text of a machine file. `file` is its name in messages.
    ///
    /// # Errors
    /// Fails at the first mistake.
    pub fn parse(file: &str, text: &str) -> Result<Peripherals, SpecError> {
        let document = Document::parse(file, text)?;
        let root = document.root(&[
            "name", "title", "console", "probes", "network", "qemu", "unmapped", "boot", "device",
            "wiring", "ignored",
        ])?;
        let boot = root.section("boot", &[&BOOT_KEYS[..], &kernels::KEYS].concat())?;
        let devices = root
            .sections("device", &DEVICE_KEYS)?
            .iter()
            .map(device)
            .collect::<Result<Vec<_>, _>>()?;
        unique_names(&root, &devices)?;
        let ignored = root
            .sections("ignored", &IGNORED_KEYS)?
            .iter()
            .map(ignored_region)
            .collect::<Result<Vec<_>, _>>()?;
        let wires = wires(&root, &devices)?;
        let by_name = |key: &str| {
            let name = root.text(key)?;
            find(&devices, &name).map_err(|problem| root.error(key, problem))
        };
        let mut set = Peripherals {
            name: root.text("name")?,
            title: root.text("title")?,
            qemu: root.has("qemu").then(|| root.text("qemu")).transpose()?,
            compatible: boot.text("compatible")?,
            kernel_options: boot.texts("kernel_options")?,
            kernels: MachineKernels::read(&boot)?,
            machine_id: boot.integer("machine_id", 0..=0xffff_ffff, "")? as u32,
            ram_base: boot.integer("ram_base", 0..=0xf000_0000, "")? as u32,
            console: by_name("console")?,
            probes: by_name("probes")?,
            network: root
                .has("network")
                .then(|| by_name("network"))
                .transpose()?,
            unmapped_aborts: unmapped_aborts(&root)?,
            devices,
            wires,
            ignored,
            quantities: Vec::new(),
        };
        set.check_overlaps(&root)?;
        set.quantities = document.quantities();
        Ok(set)
    }

    /// Returns names, addresses and sizes of all regions, devices first.
    pub fn regions(&self) -> impl Iterator<Item = (&str, u32, u32)> {
        let devices = self
            .devices
            .iter()
            .map(|d| (d.name.as_str(), d.base, d.size));
        devices.chain(
            self.ignored
                .iter()
                .map(|i| (i.name.as_str(), i.base, i.size)),
        )
    }

    fn check_overlaps(&self, root: &Section<'_>) -> Result<(), SpecError> {
        let mut regions: Vec<_> = self.regions().collect();
        regions.sort_by_key(|r| r.1);
        for pair in regions.windows(2) {
            let ((a, a_base, a_size), (b, b_base, b_size)) = (pair[0], pair[1]);
            if u64::from(a_base) + u64::from(a_size) > u64::from(b_base) {
                let problem = format!(
                    "\"{b}\" at {b_base:#010x} (size {b_size:#x}) overlaps \"{a}\" at \
                     {a_base:#010x} (size {a_size:#x})"
                );
                return Err(root.error(b, problem));
            }
        }
        Ok(())
    }
}

fn region(s: &Section<'_>) -> Result<(u32, u32), SpecError> {
    let base = s.integer("base", 0..=0xffff_ffff, "")?;
    let size = s.integer("size", 0..=0x1000_0000, " bytes")?;
    for (key, n) in [("base", base), ("size", size)] {
        if n % u64::from(GRANULE) != 0 {
            return Err(s.error(key, format!("{n:#x} is not a multiple of {GRANULE}")));
        }
    }
    if size == 0 {
        let problem = format!("the region has no bytes: write at least {GRANULE}");
        return Err(s.error("size", problem));
    }
    if base + size > 1 << 32 {
        return Err(s.error("size", "the region ends beyond 4 GB".to_owned()));
    }
    Ok((base as u32, size as u32))
}

fn unmapped_aborts(root: &Section<'_>) -> Result<bool, SpecError> {
    if !root.has("unmapped") {
        return Ok(false);
    }
    match root.text("unmapped")?.as_str() {
        "abort" => Ok(true),
        "stop" => Ok(false),
        other => {
            let problem = format!("\"{other}\" is no answer: write \"abort\" or \"stop\"");
            Err(root.error("unmapped", problem))
        }
    }
}

fn ignored_region(s: &Section) -> Result<IgnoredSpec, SpecError> {
    let (base, size) = region(s)?;
    Ok(IgnoredSpec {
        name: s.text("name")?,
        base,
        size,
        reason: s.text("reason")?,
        node: s.has("node").then(|| s.text("node")).transpose()?,
        values: constants(s, size)?,
    })
}

/// Reads the constants of an ignored region. The key of a constant is `r` and the offset of its register in hexadecimal.
fn constants(s: &Section<'_>, size: u32) -> Result<Vec<(u32, u32)>, SpecError> {
    let constant = |(key, value): (String, u64)| {
        let hexadecimal = key
            .strip_prefix('r')
            .map(|hex| u32::from_str_radix(hex, 16));
        match (hexadecimal, u32::try_from(value)) {
            (Some(Ok(offset)), Ok(value)) if offset % 4 == 0 && offset < size => {
                Ok((offset, value))
            }
            _ => {
                let problem = format!(
                    "{key} = {value:#x} is not a 32-bit register of the region: write, for example, r0c = 1"
                );
                Err(s.error("values", problem))
            }
        }
    };
    let values = s.values("values")?.into_iter().map(constant);
    let mut values = values.collect::<Result<Vec<_>, _>>()?;
    values.sort_unstable();
    match values.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => {
            let problem = format!("register {:#x} has two values", pair[0].0);
            Err(s.error("values", problem))
        }
        None => Ok(values),
    }
}

fn device(s: &Section<'_>) -> Result<DeviceSpec, SpecError> {
    let (base, size) = region(s)?;
    let part = s.text("part")?;
    if !parts::names().contains(&part.as_str()) {
        let near = did_you_mean(&part, &parts::names());
        return Err(s.error("part", format!("no part \"{part}\"{near}")));
    }
    let optional = |key: &str, range, unit: &'static str| {
        if s.has(key) {
            s.integer(key, range, unit).map(Some)
        } else {
            Ok(None)
        }
    };
    let spec = DeviceSpec {
        name: s.text("name")?,
        part,
        base,
        size,
        clock_hz: optional("clock_hz", 1..=2_000_000_000, " Hz")?,
        wait_bus: optional("wait_bus", 0..=10_000, " bus clocks")?.unwrap_or(0) as u32,
        values: s.values("values")?,
    };
    let trial = parts::Params {
        cpu_hz: 100_000_000,
        clock_hz: spec.clock_hz,
        values: spec.values.clone(),
    };
    parts::build(&spec.part, &trial).map_err(|problem| s.error("values", problem))?;
    Ok(spec)
}

fn unique_names(root: &Section<'_>, devices: &[DeviceSpec]) -> Result<(), SpecError> {
    for (i, d) in devices.iter().enumerate() {
        if devices[..i].iter().any(|e| e.name == d.name) {
            let problem = "two devices have this name: rename one".to_owned();
            return Err(root.error(&d.name, problem));
        }
    }
    Ok(())
}

fn find(devices: &[DeviceSpec], name: &str) -> Result<usize, String> {
    devices.iter().position(|d| d.name == name).ok_or_else(|| {
        let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
        let near = did_you_mean(name, &names);
        format!("no device \"{name}\"{near}")
    })
}

fn wires(root: &Section<'_>, devices: &[DeviceSpec]) -> Result<Vec<Wire>, SpecError> {
    let wiring = root.section("wiring", &["wires", "source", "confidence"])?;
    let mut wires = Vec::new();
    for text in wiring.texts("wires")? {
        let wire = parse_wire(&text, devices)
            .map_err(|problem| wiring.error("wires", format!("\"{text}\": {problem}")))?;
        wires.push(wire);
    }
    Ok(wires)
}

fn parse_wire(text: &str, devices: &[DeviceSpec]) -> Result<Wire, String> {
    let form = || "write a wire as \"device.output -> device.input\"".to_owned();
    let pin = |pin: &str, pins: u32| match pin.parse::<u32>() {
        Ok(n) if n < pins => Ok(n),
        _ => Err(format!("\"{pin}\" is not a pin: write 0 to {}", pins - 1)),
    };
    let (from, to) = text.split_once("->").ok_or_else(form)?;
    let (from, from_pin) = from.trim().split_once('.').ok_or_else(form)?;
    let (to, to_pin) = to.trim().split_once('.').ok_or_else(form)?;
    let sink = match (to, to_pin) {
        ("cpu", "irq") => Sink::Irq,
        ("cpu", "fiq") => Sink::Fiq,
        ("cpu", "stop") => Sink::Stop,
        ("cpu", other) => {
            return Err(format!(
                "the core has no input \"{other}\": write irq, fiq or stop"
            ));
        }
        ("board", "reset") => Sink::Reset,
        ("board", other) => return Err(format!("the board has no input \"{other}\": write reset")),
        _ => Sink::Device(find(devices, to)?, pin(to_pin, INPUTS)?),
    };
    Ok(Wire {
        from: find(devices, from)?,
        pin: pin(from_pin, OUTPUTS)?,
        to: sink,
    })
}
