// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two machines that run an image: the core under test with flat memory, and QEMU.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use arm::model::{ARM920T, ARM926EJS, ARM1136_R0P4, ARM1136_R1P3, Core, IXP42X, Version};
use arm::{BurstTime, Bus, BusError, Config, CostTable, Cpu, Exit, Mva, Pa, Signals, Width};

use crate::layout::{RAM_BYTES, SCTLR, SYSREG_PA};

/// A core and QEMU's corresponding core.
pub struct Pair {
    /// The core under test.
    pub core: &'static Core,
    /// QEMU's core, as its option `-cpu` names it.
    qemu: &'static str,
    /// Whether the cores are ARMv5. If not, they are ARMv4T.
    pub armv5: bool,
    /// CP15 registers that privileged code reads: CRn and opcode 2.
    pub registers: &'static [(u32, u32)],
    /// Bits of the control register that only the core under test has.
    ours: u32,
}

impl Pair {
    /// Whether the cores are ARMv6.
    pub fn v6(&self) -> bool {
        self.core.version >= Version::V6
    }
}

/// Registers of CP15 that the ARM926EJ-S and the ARM1136 read.
const REGISTERS: &[(u32, u32)] = &[
    (0, 0),
    (0, 1),
    (1, 0),
    (2, 0),
    (3, 0),
    (5, 0),
    (5, 1),
    (6, 0),
    (13, 0),
];

/// The ARM926EJ-S.
pub static ARMV5: Pair = Pair {
    core: &ARM926EJS,
    qemu: "arm926,vfp=off",
    armv5: true,
    registers: REGISTERS,
    ours: 0,
};

/// The ARM1136 of revision r0p4. Both machines have MMU tables of the old format, which ARMv6 also has.
pub static ARMV6: Pair = Pair {
    core: &ARM1136_R0P4,
    qemu: "arm1136-r2,vfp=off,midr=0x4107b364",
    armv5: true,
    registers: REGISTERS,
    ours: 0,
};

/// The ARM1136 of revision r1p3, which is QEMU's.
pub static ARMV6K: Pair = Pair {
    core: &ARM1136_R1P3,
    qemu: "arm1136,vfp=off",
    ..ARMV6
};

/// The ARM920T. QEMU does not have this core, but has TI's OMAP core, which has the same architecture. In OMAP's CP15,
/// the control and cache type registers have other values, and c5,c0,1 is the fault status of data.
pub static ARMV4T: Pair = Pair {
    core: &ARM920T,
    qemu: "ti925t,midr=0x41129200",
    armv5: false,
    registers: &[(0, 0), (2, 0), (3, 0), (5, 0), (6, 0), (13, 0)],
    ours: 0xc000_0000,
};

/// The XScale. The accumulator of QEMU's core has no sign, and its fault status registers are those of ARM's own
/// cores.
pub static XSCALE: Pair = Pair {
    core: &IXP42X,
    qemu: "pxa255,midr=0x690541d1",
    armv5: true,
    registers: &[
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
        (2, 0),
        (3, 0),
        (5, 0),
        (6, 0),
        (13, 0),
    ],
    ours: 0,
};

/// Flat memory at address 0, and the register that ends the run.
pub struct Flat {
    ram: Vec<u8>,
    ended: bool,
}

impl Flat {
    fn range(&self, pa: Pa, bytes: u32) -> Result<std::ops::Range<usize>, BusError> {
        let start = pa.0 as usize;
        let range = start..start + bytes as usize;
        if range.end <= self.ram.len() {
            Ok(range)
        } else {
            Err(BusError)
        }
    }
}

impl Bus for Flat {
    fn read(&mut self, _: u64, pa: Pa, width: Width) -> Result<(u32, u32), BusError> {
        let mut value = [0; 4];
        let range = self.range(pa, width.bytes())?;
        value[..range.len()].copy_from_slice(&self.ram[range]);
        Ok((u32::from_le_bytes(value), 2))
    }

    fn write(&mut self, _: u64, pa: Pa, width: Width, value: u32) -> Result<u32, BusError> {
        if pa.0 >> 12 == SYSREG_PA >> 12 {
            self.ended |= pa.0 & 0xfff == 0x40;
            return Ok(2);
        }
        let range = self.range(pa, width.bytes())?;
        let len = range.len();
        self.ram[range].copy_from_slice(&value.to_le_bytes()[..len]);
        Ok(2)
    }

    fn read_line(&mut self, _: u64, pa: Pa, line: &mut [u32; 8]) -> Result<BurstTime, BusError> {
        let range = self.range(Pa(pa.0 & !31), 32)?;
        for (word, bytes) in line.iter_mut().zip(self.ram[range].chunks_exact(4)) {
            *word = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        }
        Ok(BurstTime { first: 4, last: 11 })
    }

    fn read_words(&mut self, _: u64, pa: Pa, words: &mut [u32]) -> Result<BurstTime, BusError> {
        let range = self.range(pa, 4 * words.len() as u32)?;
        let last = 4 + words.len() as u32 - 1;
        for (word, bytes) in words.iter_mut().zip(self.ram[range].chunks_exact(4)) {
            *word = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        }
        Ok(BurstTime { first: 4, last })
    }

    fn write_words(&mut self, _: u64, pa: Pa, words: &[u32]) -> Result<u32, BusError> {
        let range = self.range(pa, 4 * words.len() as u32)?;
        for (word, bytes) in words.iter().zip(self.ram[range].chunks_exact_mut(4)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Ok(2 * words.len() as u32)
    }

    fn advance(&mut self, _: u64) -> Signals {
        Signals {
            attention: self.ended,
            ..Signals::default()
        }
    }

    fn next_event(&self) -> u64 {
        if self.ended { 0 } else { u64::MAX }
    }

    fn peek(&self, pa: Pa) -> Option<u8> {
        self.ram.get(pa.0 as usize).copied()
    }

    fn poke(&mut self, pa: Pa, value: u8) -> bool {
        self.ram
            .get_mut(pa.0 as usize)
            .map(|byte| *byte = value)
            .is_some()
    }
}

/// Runs an image on the core under test with caches of `cache` bytes. Returns the memory at the end of the run, or an
/// error and the number of unfinished tests.
pub fn run_core(
    core: &'static Core,
    image: &[u8],
    cache: u32,
    tests: usize,
    cells: u32,
) -> Result<Vec<u8>, (String, u32)> {
    let cost = CostTable {
        bus_sync: 0,
        tail_exposed_256: 256,
        walk_overhead: 0,
        lines_tested_per_op: 8,
        cp15_busy: 0,
    };
    let cache = cache.clamp(core.cache_bytes.0, core.cache_bytes.1);
    let config = Config::new(core, cache, cache, cost).expect("the core can have this cache");
    let mut cpu = Cpu::new(
        config,
        Flat {
            ram: image.to_vec(),
            ended: false,
        },
    );
    match cpu.run(1_000_000 + tests as u64 * 20_000) {
        Exit::Attention => Ok(cpu.bus.ram),
        exit => {
            let cell = |n: u32| {
                let bytes = [0, 1, 2, 3].map(|i| cpu.debug_read(Mva(cells + n + i)).unwrap_or(0));
                u32::from_le_bytes(bytes)
            };
            Err((
                format!("the core stopped with {exit:?} at pc {:#010x}", cpu.pc()),
                cell(84),
            ))
        }
    }
}

/// A run of QEMU on an image.
pub struct Qemu {
    child: Child,
    ram: PathBuf,
    started: Instant,
}

/// Time limit of QEMU. A batch needs this long only if QEMU hangs.
const QEMU_LIMIT: Duration = Duration::from_secs(120);

/// Returns QEMU's options for the machine, with a backend for its sound chip if the machine takes one.
fn machine() -> &'static [&'static str] {
    static MACHINE: OnceLock<&[&str]> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let help = ["-machine", "versatilepb,help"];
        let options = Command::new("qemu-system-arm").args(help).output();
        let options = options.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        match options.is_ok_and(|options| options.contains("audiodev=")) {
            true => &[
                "-M",
                "versatilepb,memory-backend=ram,audiodev=none",
                "-audiodev",
                "none,id=none",
            ],
            false => &["-M", "versatilepb,memory-backend=ram"],
        }
    })
}

impl Qemu {
    /// Starts QEMU with the image as its memory, in the file `ram`.
    pub fn start(pair: &Pair, image: &[u8], ram: &Path) -> Result<Qemu, String> {
        let sctlr = u32::from_le_bytes(image[SCTLR..SCTLR + 4].try_into().expect("four bytes"));
        let sctlr = (sctlr & !pair.ours).to_le_bytes();
        let parts = [&image[..SCTLR], &sctlr, &image[SCTLR + 4..]];
        let written = std::fs::File::create(ram)
            .and_then(|mut file| parts.iter().try_for_each(|part| file.write_all(part)));
        written.map_err(|e| format!("{}: {e}", ram.display()))?;
        let memory = format!(
            "memory-backend-file,id=ram,size={RAM_BYTES},share=on,mem-path={}",
            ram.display()
        );
        let child = Command::new("qemu-system-arm")
            .args(machine())
            .args(["-cpu", pair.qemu])
            .args(["-m", &format!("{}M", RAM_BYTES >> 20), "-object", &memory])
            .args([
                "-nodefaults",
                "-display",
                "none",
                "-serial",
                "none",
                "-monitor",
                "none",
            ])
            .arg("-no-reboot")
            .env("QEMU_AUDIO_DRV", "none")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| {
                format!("qemu-system-arm: {e}; install it: apt-get install qemu-system-arm")
            })?;
        Ok(Qemu {
            child,
            ram: ram.to_path_buf(),
            started: Instant::now(),
        })
    }

    /// Waits for the end of the run. Returns the memory.
    pub fn finish(mut self) -> Result<Vec<u8>, String> {
        while self.child.try_wait().map_err(|e| e.to_string())?.is_none() {
            if self.started.elapsed() > QEMU_LIMIT {
                let seconds = QEMU_LIMIT.as_secs();
                return Err(format!("QEMU did not finish the batch in {seconds} s"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let status = self.child.wait().map_err(|e| e.to_string())?;
        if !status.success() {
            let mut errors = String::new();
            if let Some(stderr) = self.child.stderr.as_mut() {
                let _ = std::io::Read::read_to_string(stderr, &mut errors);
            }
            return Err(format!("qemu-system-arm: {status}\n{errors}"));
        }
        std::fs::read(&self.ram).map_err(|e| format!("{}: {e}", self.ram.display()))
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.ram);
    }
}

/// Assembles the harness with the cross compiler. Returns its bytes.
pub fn assemble(source: &Path, directory: &Path) -> Result<Vec<u8>, String> {
    let object = directory.join("harness.o");
    let binary = directory.join("harness.bin");
    let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
        let output = Command::new(program)
            .args(arguments)
            .output()
            .map_err(|e| {
                format!("{program}: {e}; install it: apt-get install gcc-arm-linux-gnueabi")
            })?;
        if output.status.success() {
            Ok(())
        } else {
            Err(format!(
                "{program}: {}",
                String::from_utf8_lossy(&output.stderr)
            ))
        }
    };
    run(
        "arm-linux-gnueabi-gcc",
        &[
            "-nostdlib".as_ref(),
            "-c".as_ref(),
            source.as_ref(),
            "-o".as_ref(),
            object.as_ref(),
        ],
    )?;
    run(
        "arm-linux-gnueabi-objcopy",
        &[
            "-O".as_ref(),
            "binary".as_ref(),
            "-j".as_ref(),
            ".text".as_ref(),
            object.as_ref(),
            binary.as_ref(),
        ],
    )?;
    std::fs::read(&binary).map_err(|e| format!("{}: {e}", binary.display()))
}
