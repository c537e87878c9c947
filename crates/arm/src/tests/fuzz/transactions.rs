// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bus log: random loads and stores near the ends of lines and kilobytes, in pages of every kind and size. Some of
//! these accesses hit the cache, others miss. The transactions of each instruction are compared with those that
//! [`cutter`] derives from it.
//!
//! The cutter receives the lines that the cache holds. A dirty line that an instruction replaces must be written back.
//! Table walks are ignored. A drain separates consecutive store instructions at consecutive addresses, because they
//! could form one burst (docs/understand/LIMITS.md).
//!
//! `FUZZ_SEEDS`, `FUZZ_HOURS` and `FUZZ_ON` are as in [`super`] (`cargo xtask fuzz --bus`).

use std::collections::BTreeMap;

use super::cutter::{self, Kind, Made, Master, Word};
use super::random::Random;
use super::search::{plan, set};
use super::setup::SMALL_920T;
use super::xscale;
use crate::addr::Mva;
use crate::cpu::Cpu;
use crate::model::{ARM926EJS, Core};
use crate::tests::bus::{TestBus, Transaction};
use crate::tests::core::{COARSE, FINE, HERE, on};

const TTB: u32 = 0x4000;
/// Start of data. The tables are below it.
const DATA: u32 = 1 << 20;
/// Number of instructions of a program.
const LENGTH: usize = 300;
/// Number of small pages, and of tiny pages.
const PAGES: u32 = 8;

/// Each core, and the rules of its bus.
static CORES: [(&Core, Master); 3] = [
    (&ARM926EJS, Master::Arm926),
    (&SMALL_920T, Master::Arm920),
    (&xscale::SMALL, Master::XScale),
];

const KINDS: [Kind; 4] = [Kind::Ncnb, Kind::Ncb, Kind::WriteThrough, Kind::WriteBack];

/// Mapping of each kilobyte: physical address and kind of page.
type Pages = BTreeMap<u32, (u32, Kind)>;

/// An instruction, the address in r1, and its transfer.
#[derive(Clone, Copy, Debug)]
struct Access {
    insn: u32,
    base: u32,
    /// First byte and number of bytes.
    va: u32,
    bytes: u32,
    loads: bool,
    stores: bool,
    /// Whether the access transfers several words.
    multiple: bool,
}

struct Bench {
    cpu: Cpu<TestBus>,
    master: Master,
    pages: Pages,
    cache_on: bool,
    /// End address of the last access that bypassed the cache. `None` if none has done so since the last drain.
    end: Option<u32>,
}

/// C and B, and X, of a kind of page.
fn attributes(kind: Kind) -> (u32, bool) {
    match kind {
        Kind::Ncnb => (0, false),
        Kind::Ncb => (4, false),
        Kind::WriteThrough => (8, false),
        Kind::WriteBack => (0xc, false),
        Kind::Alone => (4, true),
        Kind::Allocating => (0xc, true),
    }
}

impl Bench {
    fn new(core: &'static Core, master: Master, r: &mut Random) -> Bench {
        let mut bus = TestBus::new(2 << 20);
        bus.single = 1 + r.below(30);
        let mut pages = Pages::new();
        let kinds = match master {
            Master::XScale => [&KINDS[..], &[Kind::Alone, Kind::Allocating]].concat(),
            _ => KINDS.to_vec(),
        };
        bus.put(TTB, &[0xc0e, COARSE | 1, FINE | 3]);
        for n in 0..PAGES {
            // Sometimes consecutive pages are also consecutive in memory.
            let number = |r: &mut Random| if r.percent(50) { n } else { r.below(200) };
            let (kind, pa) = (r.pick(&KINDS), DATA + 0x1000 * number(r));
            bus.put(COARSE + 4 * n, &[pa | 0xff2 | attributes(kind).0]);
            for quarter in 0..4 {
                pages.insert(0x400 + 4 * n + quarter, (pa + 0x400 * quarter, kind));
            }
            let (kind, pa) = (r.pick(&KINDS), DATA + 0x400 * number(r));
            bus.put(FINE + 4 * n, &[pa | 0x33 | attributes(kind).0]);
            pages.insert(0x800 + n, (pa, kind));
        }
        for (n, kind) in (3..).zip(&kinds) {
            let (cb, x) = attributes(*kind);
            bus.put(TTB + 4 * n, &[DATA | 0xc02 | cb | u32::from(x) << 12]);
            for kilobyte in 0..32 {
                pages.insert(0x400 * n + kilobyte, (DATA + 0x400 * kilobyte, *kind));
            }
        }
        let mut cpu = on(core, bus);
        for (register, value) in [(2, TTB), (3, 1)] {
            cpu.cp15_write(0, register, 0, 0, value);
        }
        let mut bench = Bench {
            cpu,
            master,
            pages,
            cache_on: true,
            end: None,
        };
        bench.switch_cache(true);
        bench
    }

    fn switch_cache(&mut self, on: bool) {
        let core = self.cpu.config().core;
        let value = core.sctlr.reset & core.clocking | 1 | u32::from(on) << 2;
        self.cpu.cp15_write(0, 1, 0, 0, value);
        self.cache_on = on;
    }

    /// The word at an address, if it is mapped.
    fn word(&self, va: u32) -> Option<Word> {
        let (pa, kind) = *self.pages.get(&(va / 1024))?;
        let kind = match kind {
            // Kind of the page with the cache off (DDI0198D table 4-1).
            Kind::WriteThrough | Kind::WriteBack | Kind::Allocating if !self.cache_on => Kind::Ncnb,
            kind => kind,
        };
        Some(Word {
            va,
            pa: pa + va % 1024,
            kind,
            hits: self.cpu.data_line(Mva(va)).is_some(),
        })
    }

    /// The bus rules that apply at present.
    fn rules(&self) -> Master {
        match self.master {
            Master::Arm920 if !self.cache_on => Master::Separate,
            master => master,
        }
    }

    /// Transactions that the manuals require, if all words are mapped.
    fn expected(&self, access: &Access) -> Option<Vec<Made>> {
        if !access.multiple {
            let word = self.word(access.va)?;
            return Some(cutter::single(
                word,
                access.bytes,
                access.loads,
                access.stores,
            ));
        }
        let words = (access.va..access.va + access.bytes).step_by(4);
        let words: Vec<Word> = words.map(|va| self.word(va)).collect::<Option<_>>()?;
        Some(match access.stores {
            true => cutter::stored(self.rules(), &words),
            false => cutter::loaded(self.rules(), &words),
        })
    }

    /// Dirty lines, by number: MVA, physical address, halves.
    fn dirty(&self) -> BTreeMap<usize, (Mva, u32, u8)> {
        let cache = &self.cpu.dcache();
        let dirty = (0..cache.lines()).filter_map(|line| {
            let (mva, halves) = cache.state(line)?;
            (halves != 0).then(|| (line, (mva, cache.pa(line).0, halves)))
        });
        dirty.collect()
    }

    fn execute(&mut self, access: &Access) {
        self.cpu.set_cpsr(0xd3);
        self.cpu.r[1] = access.base;
        let op = self.cpu.decoder().arm(access.insn);
        (self.cpu.pc, self.cpu.r[15]) = (HERE + 4, HERE + 8);
        self.cpu.cycles += op.cycles();
        (op.exec)(&mut self.cpu, op);
        self.cpu.take_exit();
    }

    /// Transactions on the bus, without table walks.
    fn made(&mut self) -> Vec<Made> {
        let log = std::mem::take(&mut self.cpu.bus.log);
        let made = log.iter().map(|transaction| match *transaction {
            Transaction::Read(pa, width) => Made::Read(pa, width.bytes()),
            Transaction::ReadWords(pa, words) => Made::Read(pa, 4 * words as u32),
            Transaction::ReadLine(pa) => Made::Fill(pa),
            Transaction::Write(pa, width, _) => Made::Write(pa, width.bytes()),
            Transaction::WriteWords(pa, words) => Made::Write(pa, 4 * words as u32),
        });
        made.filter(|made| !matches!(made, Made::Read(pa, _) if *pa < DATA))
            .collect()
    }

    fn drain(&mut self) {
        self.cpu.drain_write_buffer();
        self.end = None;
    }

    /// Executes accesses and drains the write buffer. Returns the difference between the transactions and the manuals'
    /// rules.
    fn compare(&mut self, accesses: &[Access]) -> Result<usize, String> {
        let (mut wanted, mut victims, mut begun) = (Vec::new(), Vec::new(), Vec::new());
        for access in accesses {
            let Some(made) = self.expected(access) else {
                continue;
            };
            let first = made.iter().find_map(|made| match made {
                Made::Write(pa, _) => Some(*pa),
                _ => None,
            });
            if first.is_some() && first == self.end {
                self.drain();
            }
            let dirty = self.dirty();
            self.execute(access);
            for (line, (mva, pa, halves)) in dirty {
                if self.cpu.dcache().state(line).map(|(mva, _)| mva) != Some(mva) {
                    victims.push(match halves {
                        1 => Made::Write(pa, 16),
                        2 => Made::Write(pa + 16, 16),
                        _ => Made::Write(pa, 32),
                    });
                }
            }
            if let Some(Made::Write(pa, bytes)) =
                made.iter().rfind(|m| matches!(m, Made::Write(..)))
            {
                self.end = Some(pa + bytes);
            }
            wanted.extend(made);
            begun.push(*access);
        }
        self.drain();
        let all = self.made();
        let is_write = |made: &Made| matches!(made, Made::Write(..));
        let (mut writes, reads): (Vec<_>, Vec<_>) = all.into_iter().partition(is_write);
        let (stores, loads): (Vec<_>, Vec<_>) = wanted.iter().partition(|made| is_write(made));
        for victim in &victims {
            match writes.iter().position(|made| made == victim) {
                Some(at) => drop(writes.remove(at)),
                None => return Err(format!("{victim:x?} was not written back")),
            }
        }
        match writes == stores && reads == loads {
            true => Ok(wanted.len()),
            false => Err(format!(
                "{begun:x?}\nreads {reads:x?}\nwanted {loads:x?}\nwrites {writes:x?}\nwanted {stores:x?}"
            )),
        }
    }
}

/// Returns an address, usually a few words from the end of a kilobyte.
fn address(r: &mut Random, pages: &[u32]) -> u32 {
    let start = r.pick(pages) * 1024;
    match r.percent(60) {
        true => start + 4 * r.below(24) - 4 * r.below(16).min(start / 4),
        false => start + 4 * r.below(256),
    }
}

fn access(r: &mut Random, master: Master, pages: &[u32]) -> Access {
    let va = address(r, pages);
    if r.percent(60) {
        let user = r.percent(10);
        // At least one register, but neither the base (r1) nor the pc.
        let list =
            (r.word() & [0xffff, r.word()][r.below(2) as usize] & 0x7ffd) | 1 << (2 + r.below(13));
        let (bytes, mode) = (4 * list.count_ones(), r.below(4));
        let base = [va + bytes - 4, va, va + bytes, va.wrapping_sub(4)][mode as usize];
        let loads = r.percent(35);
        let insn = 0xe801_0000 | mode << 23 | u32::from(user) << 22 | u32::from(loads) << 20 | list;
        return Access {
            insn,
            base,
            va,
            bytes,
            loads,
            stores: !loads,
            multiple: true,
        };
    }
    let double = master != Master::Arm920 && r.percent(25);
    if double {
        let loads = r.percent(50);
        let insn = if loads { 0xe1c1_20d0 } else { 0xe1c1_20f0 };
        let va = va & !7;
        return Access {
            insn,
            base: va,
            va,
            bytes: 8,
            loads,
            stores: !loads,
            multiple: true,
        };
    }
    let (insn, bytes, loads, stores) = r.pick(&[
        (0xe591_2000, 4, true, false),
        (0xe1d1_20b0, 2, true, false),
        (0xe5d1_2000, 1, true, false),
        (0xe4b1_2000, 4, true, false), // ldrt
        (0xe581_2000, 4, false, true),
        (0xe1c1_20b0, 2, false, true),
        (0xe5c1_2000, 1, false, true),
        (0xe4a1_2000, 4, false, true), // strt
        (0xe101_2093, 4, true, true),  // swp
        (0xe141_2093, 1, true, true),  // swpb
    ]);
    let va = va + r.below(4) / bytes * bytes;
    Access {
        insn,
        base: va,
        va,
        bytes,
        loads,
        stores,
        multiple: false,
    }
}

/// Runs a program. Returns the number of transactions compared, or the first difference.
fn run(core: &'static Core, master: Master, seed: u64) -> Result<usize, String> {
    let r = &mut Random::new(seed ^ 0x0b05);
    let mut bench = Bench::new(core, master, r);
    let pages: Vec<u32> = bench.pages.keys().copied().collect();
    let (mut done, mut compared) = (0, 0);
    while done < LENGTH {
        if r.percent(3) {
            bench.switch_cache(!bench.cache_on);
        }
        let together = if r.percent(60) { 1 } else { 1 + r.below(5) };
        let accesses: Vec<_> = (0..together).map(|_| access(r, master, &pages)).collect();
        compared += bench
            .compare(&accesses)
            .map_err(|text| format!("{}, seed {seed}, behind {done}: {text}", core.name))?;
        done += accesses.len();
    }
    Ok(compared)
}

#[test]
fn bus_transactions_are_those_of_an_independent_cutter() {
    let (from, to, hours) = plan(100);
    let start = std::time::Instant::now();
    let wanted = set("FUZZ_ON");
    let named = |core: &Core| {
        wanted
            .as_ref()
            .is_none_or(|name| core.name.starts_with(name.as_str()))
    };
    let cores: Vec<_> = CORES.iter().filter(|(core, _)| named(core)).collect();
    assert!(
        !cores.is_empty(),
        "{wanted:?}: {:?}",
        CORES.map(|(core, _)| core.name)
    );
    let mut compared = 0;
    for seed in from..to {
        if hours.is_some_and(|time| start.elapsed() >= time) {
            break;
        }
        for (core, master) in &cores {
            compared += run(core, *master, seed).unwrap_or_else(|text| panic!("{text}"));
        }
    }
    println!("{compared} transactions compared");
    assert!(compared > 1000, "{compared}");
}
