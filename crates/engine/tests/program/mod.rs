// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random programs, and the memory that they run in.

use arm::isa::encodings;
use arm::model::ARM926EJS;
use arm::{BurstTime, Bus, BusError, CostTable, Cpu, Pa, Signals, State, Width};

pub mod hot;
mod rare;
pub mod thumb;

/// Bytes of memory. It is repeated up to 1 MB.
const SIZE: u32 = 1 << 18;
/// First address of the random code, and its number of words.
const CODE: u32 = 0x1_0000;
const WORDS: u32 = 1536;
/// First address of the data.
const DATA: u32 = 0x2_0000;
/// Translation table, a table of small pages and a table of tiny pages.
const TABLE: u32 = 0x3_0000;
const COARSE: u32 = 0x3_4000;
const FINE: u32 = 0x3_5000;
/// Cycles between two interrupts.
const PERIOD: u64 = 1999;

/// Costs of the cores.
pub const COST: CostTable = CostTable {
    bus_sync: 1,
    tail_exposed_256: 128,
    walk_overhead: 1,
    lines_tested_per_op: 8,
    cp15_busy: 1,
};

/// The whole state of a core and its memory.
pub fn saved(cpu: &Cpu<Ram>) -> Vec<u8> {
    let mut bytes = Vec::new();
    cpu.save(&mut bytes);
    bytes
}

/// Saves everything but the memory, which is away for that time.
pub fn save_without_ram(cpu: &mut Cpu<Ram>, to: &mut Vec<u8>) {
    let words = std::mem::take(&mut cpu.bus.words);
    to.clear();
    cpu.save(to);
    cpu.bus.words = words;
}

/// Whether the memories of two cores are the same.
pub fn have_the_same_ram(one: &Cpu<Ram>, other: &Cpu<Ram>) -> bool {
    one.bus.words == other.bus.words
}

/// The registers and counters of a core.
pub fn describe(cpu: &Cpu<Ram>) -> String {
    let registers: Vec<_> = (0..16).map(|n| format!("{:x}", cpu.register(n))).collect();
    let counters: Vec<_> = cpu.counters.entries();
    format!(
        "cycles {} cpsr {:x} registers {registers:?}\n{counters:?}",
        cpu.cycles(),
        cpu.cpsr()
    )
}

/// A linear congruential generator.
pub struct Random(pub u64);

impl Random {
    /// Returns 32 random bits.
    pub fn next(&mut self) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32 ^ (self.0 >> 17) as u32
    }

    /// Returns a random number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        u64::from(self.next()) % limit
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Memory, and a timer whose interrupt request stays for some cycles.
#[derive(Clone)]
pub struct Ram {
    words: Vec<u32>,
    next: u64,
    until: u64,
}

arm::state!(Ram: words, next, until);

impl Ram {
    /// Returns memory with the program of a seed, in A32 or Thumb state.
    pub fn new(seed: u64, thumb: bool) -> Ram {
        let mut random = Random(seed ^ 0x5eed);
        let code: Vec<_> = match thumb {
            true => thumb::words(&thumb::random_halves(&mut random, WORDS)),
            false => (0..WORDS).map(|_| instruction(&mut random)).collect(),
        };
        Ram::with(&code, &mut random)
    }

    /// Returns memory with a program.
    pub fn with(code: &[u32], random: &mut Random) -> Ram {
        let mut ram = Ram {
            words: vec![0; SIZE as usize / 4],
            next: PERIOD,
            until: 0,
        };
        ram.words[CODE as usize / 4..][..code.len()].copy_from_slice(code);
        for n in 0..0x2000 {
            ram.words[DATA as usize / 4 + n] = random.next();
        }
        // The vectors skip the instruction, or return to it.
        let vectors = [
            0xe1a0_f00e_u32, // reset
            0xe1b0_f00e,     // undefined: movs pc, lr
            0xe1b0_f00e,     // SWI
            0xea00_003b,     // prefetch abort: goes to 0x100
            0xe25e_f004,     // data abort: subs pc, lr, #4
            0,
            0xe25e_f004, // IRQ
            0xe25e_f004, // FIQ
        ];
        ram.words[..8].copy_from_slice(&vectors);
        // and lr, r8, #0xff0; add lr, lr, #0x10000; movs pc, lr
        ram.words[0x40..0x43].copy_from_slice(&[0xe208_eeff, 0xe28e_e801, 0xe1b0_f00e]);
        // 4 MB of sections on the same memory: cached, written through, uncached and buffered, cached.
        for (n, section) in [0xc0e, 0xc0a, 0xc06, 0xc0e].into_iter().enumerate() {
            ram.words[TABLE as usize / 4 + n] = section;
        }
        // The fifth MB has small pages, the sixth has tiny pages. Some have different rights.
        ram.words[TABLE as usize / 4 + 4] = COARSE | 0x11;
        ram.words[TABLE as usize / 4 + 5] = FINE | 0x13;
        for n in 0..256 {
            let rights = [0xff0, 0xff0, 0xaa0, 0x550, 0xe40, 0xbf0][random.below(6) as usize];
            let kind = [0xc, 0xc, 0x8, 0x4, 0x0][random.below(5) as usize];
            let page = (n as u32 % 64) << 12;
            let in_code = (0x10..0x18).contains(&(n % 64));
            ram.words[COARSE as usize / 4 + n] =
                page | if in_code { 0xffe } else { rights | kind | 2 };
        }
        for n in 0..1024 {
            let rights = [0x30, 0x30, 0x20, 0x10][random.below(4) as usize];
            let kind = [0xc, 0xc, 0x8, 0x4, 0x0][random.below(5) as usize];
            let page = (n as u32 % 256) << 10;
            ram.words[FINE as usize / 4 + n] = match n % 256 {
                0x40..0x60 => page | 0x3f,
                _ => page | rights | kind | 3,
            };
        }
        ram.words[TABLE as usize / 4 + 31] = 0xc0e;
        // The same for two other processes.
        for process in 1..3 {
            for n in 0..6 {
                ram.words[TABLE as usize / 4 + 32 * process + n] =
                    ram.words[TABLE as usize / 4 + n];
            }
        }
        ram
    }

    fn word(&mut self, pa: Pa) -> Result<&mut u32, BusError> {
        match pa.0 {
            ..0x10_0000 => Ok(&mut self.words[(pa.0 % SIZE) as usize / 4]),
            _ => Err(BusError),
        }
    }
}

/// Turns the MMU and the caches on.
pub fn start(cpu: &mut Cpu<Ram>) {
    let code = [
        0xee02_0f10_u32,
        0xee03_1f10,
        0xee01_2f10,
        0xe1a0_0000,
        0xe1a0_0000,
    ];
    for (n, word) in code.into_iter().enumerate() {
        cpu.bus.words[0x8000 / 4 + n] = word;
    }
    let predicts = u32::from(cpu.config().core.behaviour.predicts_branches) << 11;
    let control = 0x0005_107d & !2 | predicts;
    for (n, value) in [TABLE, u32::MAX, control].into_iter().enumerate() {
        cpu.set_register(n, value);
    }
    cpu.set_pc(0x8000);
    for _ in code {
        cpu.step();
    }
}

/// Values for r0 to r15: data addresses, numbers, and a place in the code.
pub fn registers(random: &mut Random) -> [u32; 16] {
    std::array::from_fn(|n| match n {
        0..=7 | 13 => {
            let section = [0, 0, 0, 1, 2, 3][random.below(6) as usize] << 20;
            let misaligned = if random.one_in(10) {
                random.next() & 3
            } else {
                0
            };
            (DATA + (random.next() & 0x7ffc)) | section | misaligned
        }
        14 => CODE + random.next() % WORDS * 4,
        15 => CODE + random.next() % WORDS * 4 + (u32::from(random.one_in(4)) << 20),
        _ if random.one_in(3) => random.next() & 0xff,
        _ => random.next(),
    })
}

/// Instructions that a line often has, by name.
const USUAL: [&str; 28] = [
    "AND", "EOR", "SUB", "RSB", "ADD", "ADC", "SBC", "RSC", "TST", "TEQ", "CMP", "CMN", "ORR",
    "MOV", "BIC", "MVN", "LDR", "STR", "LDRB", "STRB", "LDRH", "STRH", "LDRSB", "LDRSH", "LDM",
    "STM", "MUL", "MLA",
];

fn instruction(random: &mut Random) -> u32 {
    let rows: Vec<_> = encodings(false, &ARM926EJS).collect();
    let (name, pattern) = loop {
        let row = rows[random.below(rows.len() as u64) as usize];
        let is_rare = matches!(
            row.0,
            "MCR" | "MSR" | "CDP" | "LDC" | "STC" | "MCRR" | "MRRC" | "SWI" | "BKPT"
        );
        if if USUAL.contains(&row.0) || row.0 == "B" {
            true
        } else {
            random.one_in(if is_rare { 40 } else { 6 })
        } {
            break row;
        }
    };
    let bits = random.next();
    let mut word = pattern
        .bytes()
        .enumerate()
        .fold(0, |word, (n, letter)| match letter {
            b'0' => word << 1,
            b'1' => word << 1 | 1,
            _ => word << 1 | bits >> (31 - n) & 1,
        });
    if pattern.starts_with("cccc") {
        let condition = if random.one_in(4) {
            random.below(14) as u32
        } else {
            14
        };
        word = word & 0x0fff_ffff | condition << 28;
    }
    let result = 8 + random.below(5) as u32;
    match name {
        "B" | "BL" => {
            word = word & 0xff00_0000 | ((random.next() % 48).wrapping_sub(26)) & 0xff_ffff
        }
        "LDR" | "STR" | "LDRB" | "STRB" | "LDRH" | "STRH" | "LDRSB" | "LDRSH" => {
            let base = if random.one_in(8) {
                15
            } else {
                random.below(8) as u32
            };
            word = word & 0xfff0_ffff | base << 16;
            if !random.one_in(40) {
                word = word & 0xffff_0fff | result << 12;
            }
            if word >> 25 & 7 == 2 {
                word &= 0xffff_f07f;
            }
            if word >> 25 & 7 == 3 && !random.one_in(4) {
                word = word & 0xffff_f000 | (8 + random.below(5) as u32);
            }
            if random.one_in(2) {
                // No write-back.
                word = word & !(1 << 21) | 1 << 24;
            }
        }
        "LDM" | "STM" => {
            let list = if random.one_in(3) {
                word & 0xffff
            } else {
                word & 0x5f0f
            };
            word = word & 0xfff0_0000 | (random.below(8) as u32) << 16 | list;
        }
        _ if !random.one_in(12) => word = word & 0xffff_0fff | result << 12,
        _ => {}
    }
    word
}

impl Bus for Ram {
    fn read(&mut self, _: u64, pa: Pa, width: Width) -> Result<(u32, u32), BusError> {
        let word = *self.word(pa)?;
        Ok((word >> (8 * (pa.0 & 3)) & width.mask(), 3))
    }

    fn write(&mut self, now: u64, pa: Pa, width: Width, value: u32) -> Result<u32, BusError> {
        // A device whose register lies among the data: a store makes the next interrupt come soon.
        if pa.0 & 0x3c == 0x14 && value & 3 == 0 {
            self.next = self.next.min(now + 20 + u64::from(value >> 2 & 255));
        }
        let shift = 8 * (pa.0 & 3 & !(width.bytes() - 1));
        let word = self.word(pa)?;
        *word = *word & !(width.mask() << shift) | (value & width.mask()) << shift;
        Ok(3)
    }

    fn read_line(&mut self, _: u64, pa: Pa, line: &mut [u32; 8]) -> Result<BurstTime, BusError> {
        for (n, word) in (0..).zip(line) {
            *word = *self.word(Pa((pa.0 & !31) + 4 * n))?;
        }
        Ok(BurstTime { first: 5, last: 12 })
    }

    fn read_words(&mut self, _: u64, pa: Pa, words: &mut [u32]) -> Result<BurstTime, BusError> {
        for (n, word) in (0..).zip(words) {
            *word = *self.word(Pa(pa.0 + 4 * n))?;
        }
        Ok(BurstTime { first: 5, last: 12 })
    }

    fn write_words(&mut self, _: u64, pa: Pa, words: &[u32]) -> Result<u32, BusError> {
        for (n, word) in (0..).zip(words) {
            *self.word(Pa(pa.0 + 4 * n))? = *word;
        }
        Ok(7)
    }

    fn advance(&mut self, now: u64) -> Signals {
        if now >= self.next {
            self.until = now + 40;
            self.next = now + PERIOD;
        }
        Signals {
            irq: now < self.until,
            ..Signals::default()
        }
    }

    fn next_event(&self) -> u64 {
        self.next
    }

    fn peek(&self, pa: Pa) -> Option<u8> {
        let word = self.words.get((pa.0 % SIZE) as usize / 4)?;
        Some((word >> (8 * (pa.0 & 3))) as u8)
    }

    fn poke(&mut self, _: Pa, _: u8) -> bool {
        false
    }
}
