// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decoding: bits 27:20 and 7:4 (Thumb: bits 15:6) index short lists of candidate rows.

use std::sync::Arc;

use super::branch::undefined;
use super::{A32, Encoding, Op, Select, Version, a32_selectors, fixed_bits, thumb};
use crate::bus::Bus;
use crate::model::Core;

/// Number of A32 keys. A key has bits 27:20, bits 7:4, and one bit for the unconditional space.
const A32_KEYS: usize = 2 << 12;
/// Number of Thumb keys: bits 15:6.
const THUMB_KEYS: usize = 1 << 10;

/// The decoder's part of a row.
struct Candidate<B: Bus> {
    mask: u32,
    value: u32,
    name: &'static str,
    select: Select<B>,
}

/// Rows that share a key, the most specific first.
struct Lists<B: Bus> {
    /// For each key, start of its list in `order`, and length of the list.
    keys: Vec<(u16, u16)>,
    /// Row numbers. Keys with equal lists share one list.
    order: Vec<u16>,
    rows: Vec<Candidate<B>>,
}

struct Tables<B: Bus> {
    a32: Lists<B>,
    thumb: Lists<B>,
    core: &'static Core,
}

/// Decodes instructions. Clones are cheap, because they share the tables.
pub(crate) struct DecodeTable<B: Bus>(Arc<Tables<B>>);

impl<B: Bus> Clone for DecodeTable<B> {
    fn clone(&self) -> Self {
        DecodeTable(Arc::clone(&self.0))
    }
}

impl<B: Bus> DecodeTable<B> {
    /// Makes the table for a core. The table has the instructions of the core's architecture version and of earlier
    /// versions, and the core's own instructions.
    pub(crate) fn new(core: &'static Core) -> DecodeTable<B> {
        let a32 = A32.iter().copied().flatten().zip(a32_selectors());
        let own = core.own_encodings().iter().zip(core.own_selectors());
        DecodeTable::of(core, a32.chain(own))
    }

    /// Makes the table with these rows for A32.
    pub(super) fn of<'a>(
        core: &'static Core,
        a32: impl Iterator<Item = (&'a Encoding, Select<B>)>,
    ) -> DecodeTable<B> {
        let thumb = thumb::ENCODINGS.iter().zip(thumb::selectors());
        DecodeTable(Arc::new(Tables {
            a32: Lists::new(core.version, a32, A32_KEYS, 32, a32_key_bits),
            thumb: Lists::new(core.version, thumb, THUMB_KEYS, 16, |key| {
                (0xffc0, key << 6)
            }),
            core,
        }))
    }

    /// Decodes an A32 instruction.
    #[inline]
    pub(crate) fn arm(&self, insn: u32) -> Op<B> {
        let (row, core) = (self.arm_row(insn), self.0.core);
        row.map_or_else(|| undefined(insn, core), |row| (row.select)(insn, core))
    }

    /// Name of the encoding of an A32 instruction.
    pub(crate) fn arm_name(&self, insn: u32) -> Option<&'static str> {
        self.arm_row(insn).map(|row| row.name)
    }

    /// Name of the encoding of a Thumb instruction.
    pub(crate) fn thumb_name(&self, half: u16) -> Option<&'static str> {
        self.thumb_row(half).map(|row| row.name)
    }

    #[inline]
    fn arm_row(&self, insn: u32) -> Option<&Candidate<B>> {
        let unconditional = usize::from(insn >> 28 == 15) << 12;
        let key = (insn >> 16 & 0xff0 | insn >> 4 & 15) as usize | unconditional;
        self.0.a32.find(key, insn)
    }

    /// Decodes a Thumb instruction.
    #[inline]
    pub(crate) fn thumb(&self, half: u16) -> Op<B> {
        let (row, insn, core) = (self.thumb_row(half), u32::from(half), self.0.core);
        row.map_or_else(
            || thumb::undefined(insn, core),
            |row| (row.select)(insn, core),
        )
    }

    #[inline]
    fn thumb_row(&self, half: u16) -> Option<&Candidate<B>> {
        self.0.thumb.find(usize::from(half >> 6), u32::from(half))
    }
}

/// The instruction bits that a key of the A32 index fixes, as (mask, value).
fn a32_key_bits(key: u32) -> (u32, u32) {
    let unconditional = if key >> 12 != 0 { 0xf000_0000 } else { 0 };
    (
        0x0ff0_00f0 | unconditional,
        (key & 0xff0) << 16 | (key & 15) << 4 | unconditional,
    )
}

impl<B: Bus> Lists<B> {
    fn new<'a>(
        version: Version,
        rows: impl Iterator<Item = (&'a Encoding, Select<B>)>,
        keys: usize,
        width: usize,
        key_bits: fn(u32) -> (u32, u32),
    ) -> Lists<B> {
        let mut rows: Vec<_> = rows
            .filter(|(encoding, _)| version.has(encoding.version))
            .map(|(encoding, select)| {
                assert_eq!(
                    encoding.pattern.len(),
                    width,
                    "pattern of {}",
                    encoding.name
                );
                let (mask, value) = fixed_bits(encoding.pattern);
                Candidate {
                    mask,
                    value,
                    name: encoding.name,
                    select,
                }
            })
            .collect();
        rows.sort_by_key(|row| core::cmp::Reverse(row.mask.count_ones()));
        let mut lists = Lists {
            keys: Vec::with_capacity(keys),
            order: Vec::new(),
            rows,
        };
        for key in 0..keys as u32 {
            let (mask, value) = key_bits(key);
            let unconditional = width == 32 && mask >> 28 == 15;
            let list: Vec<u16> = (0u16..)
                .zip(&lists.rows)
                .filter(|(_, row)| (row.value ^ value) & row.mask & mask == 0)
                // A row with a condition field does not match the unconditional space.
                .filter(|(_, row)| width != 32 || (row.mask >> 28 == 15) == unconditional)
                .map(|(number, _)| number)
                .collect();
            lists.add(&list);
        }
        lists
    }

    /// Appends the list of the next key. Reuses the list of an earlier key if the two are equal.
    fn add(&mut self, list: &[u16]) {
        let known = self
            .order
            .windows(list.len().max(1))
            .position(|window| window == list);
        let start = known.unwrap_or_else(|| {
            self.order.extend_from_slice(list);
            self.order.len() - list.len()
        });
        self.keys.push((start as u16, list.len() as u16));
    }

    #[inline]
    fn find(&self, key: usize, insn: u32) -> Option<&Candidate<B>> {
        let (start, length) = self.keys[key];
        let list = &self.order[usize::from(start)..usize::from(start + length)];
        list.iter()
            .map(|&number| &self.rows[usize::from(number)])
            .find(|row| insn & row.mask == row.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{self, ARM920T, ARM926EJS};
    use crate::tests::bus::TestBus;

    fn table(core: &'static Core) -> DecodeTable<TestBus> {
        DecodeTable::new(core)
    }

    fn a32() -> Vec<&'static Encoding> {
        A32.iter().copied().flatten().collect()
    }

    #[test]
    fn patterns_have_32_letters_and_thumb_patterns_16() {
        for row in a32() {
            assert_eq!(row.pattern.len(), 32, "{}", row.name);
        }
        for row in thumb::ENCODINGS {
            assert_eq!(row.pattern.len(), 16, "{}", row.name);
        }
        assert_eq!(a32().len(), a32_selectors::<TestBus>().len());
    }

    /// Checks that if two rows match the same instruction, one is a special case of the other.
    fn assert_no_ambiguity(rows: &[&Encoding]) {
        for (n, one) in rows.iter().enumerate() {
            for other in &rows[n + 1..] {
                let (mask, value) = fixed_bits(one.pattern);
                let (other_mask, other_value) = fixed_bits(other.pattern);
                let disjoint = (value ^ other_value) & mask & other_mask != 0;
                let nested = mask != other_mask
                    && (mask & other_mask == mask || mask & other_mask == other_mask);
                assert!(
                    disjoint || nested,
                    "{} {}\n{} {}",
                    one.pattern,
                    one.name,
                    other.pattern,
                    other.name
                );
            }
        }
    }

    #[test]
    fn rows_never_overlap_ambiguously() {
        let is_unconditional = |row: &&&Encoding| row.pattern.starts_with("1111");
        let rows = a32();
        assert_no_ambiguity(
            &rows
                .iter()
                .filter(is_unconditional)
                .copied()
                .collect::<Vec<_>>(),
        );
        let conditional = rows.iter().filter(|row| !is_unconditional(row));
        assert_no_ambiguity(&conditional.copied().collect::<Vec<_>>());
        assert_no_ambiguity(&thumb::ENCODINGS.iter().collect::<Vec<_>>());
    }

    #[test]
    fn the_index_finds_what_a_search_of_all_rows_finds() {
        for core in model::EVERY {
            finds_what_a_search_finds(core);
        }
    }

    fn finds_what_a_search_finds(core: &'static Core) {
        let table = table(core);
        let selectors = [a32_selectors::<TestBus>(), core.own_selectors()].concat();
        let mut insn: u32 = 0x1234_5678;
        for _ in 0..100_000 {
            insn = insn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let insn = insn.rotate_right(13);
            let best = (a32().into_iter().chain(core.own_encodings()))
                .zip(&selectors)
                .filter(|(row, _)| core.version.has(row.version))
                .filter(|(row, _)| row.pattern.starts_with("1111") == (insn >> 28 == 15))
                .map(|(row, select)| (fixed_bits(row.pattern), select))
                .filter(|((mask, value), _)| insn & mask == *value)
                .max_by_key(|((mask, _), _)| mask.count_ones());
            let expected =
                best.map_or_else(|| undefined(insn, core), |(_, select)| select(insn, core));
            let found = table.arm(insn);
            assert_eq!(
                (found.insn(), found.uses()),
                (expected.insn(), expected.uses()),
                "{insn:#010x}"
            );
            assert_eq!(found.exec as usize, expected.exec as usize, "{insn:#010x}");
        }
    }

    #[test]
    fn unconditional_instructions_always_execute() {
        let table = table(&ARM926EJS);
        assert_eq!(table.arm(0xfa00_0000).cond(), 14);
        assert_eq!(table.arm(0x1b00_0000).cond(), 1);
    }

    #[test]
    fn older_versions_lack_newer_instructions() {
        let v4 = table(&ARM920T);
        let undefined = undefined::<TestBus>(0, &ARM926EJS).exec as usize;
        assert_eq!(v4.arm(0xe16f_0f11).exec as usize, undefined); // clz
        assert_ne!(v4.arm(0xe1a0_0000).exec as usize, undefined);
    }

    /// The rows of ARMv6 are undefined on every earlier core, whatever is in their letters.
    #[test]
    fn instructions_of_armv6_are_undefined_before_armv6() {
        let later = |row: &&Encoding| row.version >= Version::V6;
        for core in model::ALL {
            let table = table(core);
            for row in a32().into_iter().filter(later) {
                let (mask, value) = fixed_bits(row.pattern);
                for noise in [0u32, u32::MAX, 0x1234_5678, 0x9999_9999] {
                    let noise = match row.pattern.starts_with("1111") {
                        true => noise,
                        false => noise & 0x0fff_ffff | 0xe000_0000,
                    };
                    let insn = value | noise & !mask;
                    let is_msr = table.arm_name(insn) == Some("MSR");
                    assert!(table.arm_name(insn).is_none() || is_msr, "{}", row.name);
                    assert_eq!(is_msr, insn & 0x0fff_fff8 == 0x0320_f000, "{}", row.name);
                }
            }
            for row in thumb::ENCODINGS.iter().filter(later) {
                let (mask, value) = fixed_bits(row.pattern);
                for noise in [0, !mask, 0x1234 & !mask] {
                    assert!(table.thumb_name((value | noise) as u16).is_none());
                }
            }
        }
    }

    #[test]
    fn own_rows_never_overlap_ambiguously() {
        for core in model::EVERY {
            let mut rows = a32();
            rows.retain(|row| core.version.has(row.version));
            rows.extend(core.own_encodings());
            let is_unconditional = |row: &&&Encoding| row.pattern.starts_with("1111");
            let conditional = rows.iter().filter(|row| !is_unconditional(row));
            assert_no_ambiguity(&conditional.copied().collect::<Vec<_>>());
            for row in core.own_encodings() {
                assert_eq!(row.pattern.len(), 32);
            }
        }
    }

    #[test]
    fn own_instructions_are_undefined_elsewhere() {
        use crate::tests::core::{arm, on};
        for core in [&ARM920T, &ARM926EJS] {
            for insn in [
                0xee20_1010u32,
                0xee28_1010,
                0xee2c_1010,
                0xec41_0000,
                0xec54_3000,
                0xee10_0e10,
                0xee00_0e10,
                0xee07_0e10,
                0xee1f_fe11,
            ] {
                for mode in [0xd3, 0x10] {
                    let mut cpu = on(core, TestBus::new(0x1_0000));
                    cpu.set_cpsr(mode);
                    arm(&mut cpu, insn);
                    assert_eq!(cpu.pc, 4, "{insn:#x} {mode:#x}");
                }
            }
        }
    }
}
