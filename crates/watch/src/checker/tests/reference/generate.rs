// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random programs: a few lines of memory at many addresses, accessed in all ways, with complete, partial or no
//! maintenance.

use super::layout::{
    COARSE, CONTROL, DATA, FINE, PAGES, SECTIONS, TABLES, WINDOWS, data_word, first_level, section,
    small, tiny,
};
use super::program::{Op, Program};
use board::random::Random;

/// Approximate number of operations of a program.
const LENGTH: usize = 1200;

struct Generator {
    random: Random,
    ops: Vec<Op>,
    /// Offsets of lines in pages, and numbers of pages.
    offsets: Vec<u32>,
    pages: Vec<u32>,
    /// Weight of each kind of operation.
    weights: Vec<u32>,
    /// Weight of each section for accesses. The last weight is for windows.
    paths: Vec<u32>,
    /// Number of different values that are stored.
    values: u32,
    /// Probability of each maintenance operation, in percent.
    maintained: u32,
    pid: u32,
    /// MVAs used most recently.
    recent: Vec<u32>,
}

/// Returns the program of a seed.
pub fn program(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let mut below = |n| random.below(n) as u32;
    let late = below(2) == 1;
    let victims = below(1 << 30);
    let offsets = (0..=below(3)).map(|_| 32 * below(4) + 0x400 * below(2));
    let offsets: Vec<u32> = offsets.collect();
    let pages = (0..=below(2)).map(|_| below(u64::from(PAGES))).collect();
    let most = [40, 12, 25, 10, 8, 6, 12, 8, 4, 3];
    let weights = most.map(|most| below(most + 1) + 1).to_vec();
    let paths = [1, 1, 2, 4, 4, 6].map(|most| below(most + 1)).to_vec();
    let values = [3, 40, 1024][below(3) as usize];
    let maintained = [0, 30, 60, 90][below(4) as usize];
    let mut generator = Generator {
        random,
        ops: Vec::new(),
        offsets,
        pages,
        weights,
        paths,
        values,
        maintained,
        pid: 0,
        recent: Vec::new(),
    };
    while generator.ops.len() < LENGTH {
        generator.operation();
    }
    Program {
        seed: victims,
        late,
        alike: victims.is_multiple_of(4),
        ops: generator.ops,
    }
}

impl Generator {
    fn below(&mut self, n: u32) -> u32 {
        self.random.below(u64::from(n)) as u32
    }

    fn percent(&mut self, n: u32) -> bool {
        self.below(100) < n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    fn weighed(&mut self, weights: &[u32]) -> usize {
        let mut n = self.below(weights.iter().sum::<u32>().max(1));
        for (at, weight) in weights.iter().enumerate() {
            if n < *weight {
                return at;
            }
            n -= weight;
        }
        0
    }

    fn emit(&mut self, name: &str, r0: u32, r1: u32) {
        self.ops.push(Op::named(name, r0, r1));
    }

    fn operation(&mut self) {
        match self.weighed(&self.weights.clone()) {
            0 => self.access(),
            1 => self.execute(),
            2 => self.maintain(),
            3 => self.map(),
            4 => self.switch(),
            5 => self.device(),
            6 => self.rewritten_code(),
            7 => self.changed_mapping(),
            8 => self.tightened_permissions(),
            _ => self.configure(),
        }
    }

    /// Returns the physical address of a word in one of the lines.
    fn pa(&mut self) -> u32 {
        let (page, offset) = (
            self.pick(&self.pages.clone()),
            self.pick(&self.offsets.clone()),
        );
        let word = if self.percent(60) { 0 } else { self.below(8) };
        DATA + 0x1000 * page + offset + 4 * word
    }

    /// Returns a virtual address that is, was or will be mapped to the memory at `pa`.
    fn address_of(&mut self, pa: u32) -> u32 {
        let path = self.weighed(&self.paths.clone());
        if let Some((base, _)) = SECTIONS.get(path) {
            let mva = base + pa;
            self.remember(mva);
            return mva;
        }
        let page = if self.percent(50) {
            pa >> 12 & 3
        } else {
            self.below(PAGES)
        };
        let window = self.below(5);
        let at = DATA + 0x1000 * page + (pa & 0xfff);
        if window == 0 || window == self.pid && self.percent(80) {
            self.remember((self.pid << 25) + at);
            return at;
        }
        let mva = WINDOWS[window as usize] + at;
        self.remember(mva);
        mva
    }

    fn remember(&mut self, mva: u32) {
        self.recent.push(mva);
        if self.recent.len() > 6 {
            self.recent.remove(0);
        }
    }

    fn address(&mut self) -> u32 {
        let pa = self.pa();
        self.address_of(pa)
    }

    fn load(&mut self, va: u32) {
        let user = self.percent(8);
        let name = self.pick(&[
            "ldr", "ldr", "ldr", "ldr", "ldrb", "ldrh", "ldrsb", "ldrsh", "ldrd", "ldm4", "ldm8",
            "ldrt", "ldrbt",
        ]);
        let lane = match name {
            "ldrb" | "ldrsb" | "ldrbt" => self.below(4),
            "ldrh" | "ldrsh" => 2 * self.below(2),
            "ldr" if self.percent(2) => self.below(4),
            _ => 0,
        };
        let va = if name == "ldrd" { va & !7 } else { va } + lane;
        let Op::Do(slot, r0, r1, _) = Op::named(name, va, 0) else {
            return;
        };
        self.ops.push(Op::Do(slot, r0, r1, user));
    }

    fn store(&mut self, va: u32) {
        let user = self.percent(8);
        let name = self.pick(&[
            "str", "str", "str", "str", "str", "strb", "strh", "strd", "stm4", "stm8", "strt",
            "strbt", "swp", "swpb",
        ]);
        let lane = match name {
            "strb" | "strbt" | "swpb" => self.below(4),
            "strh" => 2 * self.below(2),
            _ => 0,
        };
        let value = data_word(self.below(self.values)) >> (8 * lane);
        let va = if name == "strd" { va & !7 } else { va } + lane;
        let Op::Do(slot, r0, r1, _) = Op::named(name, va, value) else {
            return;
        };
        self.ops.push(Op::Do(slot, r0, r1, user));
    }

    fn access(&mut self) {
        let va = self.address();
        if self.percent(50) {
            self.load(va);
        } else {
            self.store(va);
        }
    }

    fn execute_at(&mut self, va: u32) {
        let (thumb, user) = (self.percent(15), self.percent(8));
        let va = va + if thumb { 2 * self.below(2) } else { 0 };
        self.ops.push(Op::Execute(va, thumb, user));
    }

    fn execute(&mut self) {
        let va = self.address();
        self.execute_at(va);
    }

    /// Emits a cache operation on an address, usually a recently used one.
    fn at_line(&mut self, names: &[&str]) {
        let name = self.pick(names);
        let mva = if self.recent.is_empty() || self.percent(15) {
            let pa = self.pa();
            SECTIONS[2 + self.below(3) as usize].0 + pa
        } else {
            self.pick(&self.recent.clone())
        };
        self.emit(name, mva & !31, 0);
    }

    fn maintain(&mut self) {
        match self.below(100) {
            0..25 => self.at_line(&["d-clean"]),
            25..45 => self.at_line(&["d-clean-invalidate"]),
            45..60 => self.at_line(&["d-invalidate"]),
            60..72 => self.at_line(&["i-invalidate"]),
            72..80 => self.emit("drain", 0, 0),
            80..88 => {
                let name = self.pick(&[
                    "d-clean-index",
                    "d-clean-invalidate-index",
                    "d-invalidate-index",
                    "i-invalidate-index",
                ]);
                let set = self.pick(&self.offsets.clone()) & 0x3e0;
                let way = self.below(4);
                self.emit(name, way << 30 | set, 0);
            }
            88..91 => self.at_line(&["i-prefetch"]),
            91..93 => self.emit("i-invalidate-all", 0, 0),
            93..95 => {
                let name = self.pick(&["d-invalidate-all", "invalidate-all"]);
                self.emit(name, 0, 0);
            }
            95..97 => self.emit("test-clean", 0, 0),
            97 => self.emit("test-clean-invalidate", 0, 0),
            _ => self.tlb(),
        }
    }

    fn tlb(&mut self) {
        let name = self.pick(&[
            "tlb-all",
            "itlb-all",
            "dtlb-all",
            "tlb-entry",
            "tlb-entry",
            "itlb-entry",
            "dtlb-entry",
        ]);
        let mva = match self.recent.last() {
            Some(mva) => *mva,
            None => 0,
        };
        self.emit(name, mva, 0);
    }

    /// Returns the address and the new value of a descriptor of a window.
    fn descriptor(&mut self, window: usize, page: u32) -> (u32, u32) {
        let domain = u32::from(self.percent(30));
        let cb = self.pick(&[3, 3, 3, 2, 0, 1]);
        let ap = self.pick(&[3, 3, 3, 2, 1, 0]);
        if self.percent(15) {
            let at = self.pick(&TABLES) + 4 * (WINDOWS[window] >> 20);
            let value = match self.below(10) {
                0..3 => section(ap, domain, cb),
                3 => 0,
                _ => {
                    let other = if self.percent(70) {
                        window
                    } else {
                        self.below(5) as usize
                    };
                    first_level(other, domain)
                }
            };
            return (at, value);
        }
        let data = self.below(PAGES);
        let value = match self.below(20) {
            0 => 0,
            2 if window != 4 => small(data, 0, cb) | self.below(256) << 4,
            // Avoids pages with several descriptors, because a page's descriptors must be equal.
            _ if window == 4 => tiny(self.below(4 * PAGES), ap, cb),
            _ => small(data, ap, cb),
        };
        let index = (DATA >> 12) + page;
        let at = match window {
            4 => FINE + 4 * (4 * index + self.below(4)),
            n => COARSE[n & 1] + 4 * index,
        };
        (at, value)
    }

    /// Lets a device write a descriptor, or writes it through one of the sections.
    fn write_descriptor(&mut self, at: u32, value: u32) {
        if self.percent(10) {
            return self.ops.push(Op::Device(at, 4, value));
        }
        let (base, _) = self.pick(&SECTIONS);
        if self.percent(60) {
            self.emit("ldr", base + at, 0);
        }
        match self.below(10) {
            0 => self.emit("strh", base + at, value),
            1 => self.emit("strb", base + at, value),
            _ => self.emit("str", base + at, value),
        }
        let maintained = self.maintained;
        if self.percent(maintained) {
            self.emit("d-clean", (base + at) & !31, 0);
        }
        if self.percent(maintained) {
            self.emit("drain", 0, 0);
        }
    }

    fn map(&mut self) {
        let (window, page) = (self.below(5) as usize, self.below(PAGES));
        let (at, value) = self.descriptor(window, page);
        self.write_descriptor(at, value);
        if self.percent(50) {
            self.tlb();
        }
    }

    /// Accesses an address, remaps it, and accesses it again.
    fn changed_mapping(&mut self) {
        let (window, page) = (1 + self.below(4) as usize, self.below(PAGES));
        let va = WINDOWS[window] + DATA + 0x1000 * page + self.pick(&self.offsets.clone());
        let access = |g: &mut Self| match g.below(5) {
            0..2 => g.load(va),
            2..4 => g.store(va),
            _ => g.execute_at(va),
        };
        if self.percent(80) {
            access(self);
        }
        let (at, value) = self.descriptor(window, page);
        self.write_descriptor(at, value);
        let maintained = self.maintained;
        if self.percent(maintained) {
            self.emit("d-clean-invalidate", va, 0);
            self.emit("i-invalidate", va, 0);
        }
        if self.percent(maintained) {
            self.emit("tlb-entry", va, 0);
        }
        access(self);
        self.remember(va);
    }

    /// Makes a page read-only. Then loads from the page, which is still allowed, and stores to it, which is not.
    fn tightened_permissions(&mut self) {
        let (window, page) = (1 + self.below(4), self.below(PAGES));
        let va = WINDOWS[window as usize] + DATA + 0x1000 * page;
        let data = self.below(PAGES);
        let index = (DATA >> 12) + page;
        let (at, less) = match window {
            4 => (FINE + 16 * index, tiny(4 * data, 2, 3)),
            n => (COARSE[n as usize & 1] + 4 * index, small(data, 2, 3)),
        };
        let whole = if window == 4 {
            tiny(4 * data, 3, 3)
        } else {
            small(data, 3, 3)
        };
        self.emit("str", SECTIONS[0].0 + at, whole);
        self.emit("tlb-entry", va, 0);
        let user = self.percent(70);
        let (load, store) = (Op::named("ldr", va, 0), Op::named("str", va, data_word(1)));
        let first = if self.percent(50) { &load } else { &store };
        self.ops.push(as_user(first, user));
        self.write_descriptor(at, less);
        let maintained = self.maintained;
        if self.percent(maintained) {
            self.emit("tlb-entry", va, 0);
        }
        self.ops.push(as_user(&load, user));
        self.ops.push(as_user(&store, user));
    }

    /// Executes a line, writes it, and executes it again.
    fn rewritten_code(&mut self) {
        let pa = self.pa();
        let (code, data) = (self.address_of(pa), self.address_of(pa));
        let maintained = self.maintained;
        if self.percent(70) {
            self.execute_at(code);
        }
        if self.percent(50) {
            self.load(data);
        }
        self.store(data);
        if self.percent(maintained) {
            self.emit("d-clean", data & !31, 0);
        }
        if self.percent(maintained) {
            self.emit("drain", 0, 0);
        }
        if self.percent(maintained) {
            self.emit("i-invalidate", code & !31, 0);
        }
        self.execute_at(code);
    }

    fn device(&mut self) {
        let pa = self.pa();
        let va = self.address_of(pa);
        let maintained = self.maintained;
        if self.percent(60) {
            self.load(va);
        }
        if self.percent(maintained) {
            self.emit("d-clean-invalidate", va & !31, 0);
        }
        let bytes = self.pick(&[1, 2, 4, 4, 4]);
        let value = data_word(self.below(self.values));
        self.ops.push(Op::Device(pa, bytes, value));
        if self.percent(70) {
            self.load(va);
        }
    }

    fn switch(&mut self) {
        if self.percent(70) {
            self.pid = self.below(3);
            self.emit("pid", self.pid << 25, 0);
        } else {
            let table = self.pick(&TABLES);
            self.emit("table-base", table, 0);
            let maintained = self.maintained;
            if self.percent(maintained) {
                self.emit("tlb-all", 0, 0);
            }
        }
    }

    /// Changes a setting of the core for a few operations.
    fn configure(&mut self) {
        let setting: (&str, u32, &[u32]) = match self.below(12) {
            0..4 => ("control", CONTROL, &[4, 0x1000, 0x100, 0x200, 0x4000]),
            4..8 => ("domains", 0x5, &[2, 8, 4, 10]),
            8 | 9 => ("tlb-lockdown", 0, &[1, 0x0400_0001]),
            10 => ("debug", 0, &[4]),
            _ => ("d-lockdown", 0, &[1, 3, 7]),
        };
        let (name, normal, others) = setting;
        let other = self.pick(others);
        self.emit(name, normal ^ other, 0);
        for _ in 0..self.below(6) {
            if self.percent(70) {
                self.access();
            } else {
                self.execute();
            }
        }
        self.emit(name, normal, 0);
    }
}

/// Returns the operation with its mode changed: user mode if `user` is set, otherwise privileged mode.
fn as_user(op: &Op, user: bool) -> Op {
    match *op {
        Op::Do(slot, r0, r1, _) => Op::Do(slot, r0, r1, user),
        ref other => other.clone(),
    }
}
