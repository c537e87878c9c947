// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disassembly from the print formats of the rows, in unified syntax.
//!
//! A format is assembler text with operands in braces. A lower-case letter that is a register field of the
//! pattern (`d n m s h l`) prints the register. The other operands are:
//!
//! | operand | prints |
//! |---|---|
//! | `{c}` `{S}` `{W}` `{Z}` | condition; `s`, `!`, `l` if the bit is set |
//! | `{I}` `{M}` `{R}` | rotated constant; register shifted by constant; register shifted by register |
//! | `{a}` `{x}` `{y}` | address of a word or byte; of the half-word class; of a coprocessor transfer |
//! | `{A}` `{L}` | addressing mode of LDM; register list |
//! | `{T}` `{i}` `{j}` `{k}` | branch target; constant; constant 1 to 32; 16-bit constant |
//! | `{w}` `{h}` | constant in words; constant in half-words |
//! | `{P}` `{F}` | status register; its fields |
//! | `{r}` `{v}` `{b}` | Rm rotated by bytes; Rm shifted left or arithmetically right; number of bits of a saturation |
//! | `{e}` `{q}` | `x` if half-words are exchanged, `r` if the product is rounded |
//! | `{u}` `{o}` `{E}` | effect of CPS, with its masks; mode; byte order |
//! | `{p}` `{o}` `{X}` `{N}` `{D}` `{K}` | coprocessor operands as bare numbers |

use super::{Encoding, all_a32, bit, fixed_bits, rm, rn, rs, shifter, thumb};

const CONDITIONS: [&str; 16] = [
    "eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "", "",
];
const REGISTERS: [&str; 16] = [
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "sl", "fp", "ip", "sp", "lr", "pc",
];
const SHIFTS: [&str; 4] = ["lsl", "lsr", "asr", "ror"];

/// Disassembles the A32 instruction `insn` at `address`.
pub fn disassemble(insn: u32, address: u32) -> String {
    match best(rows_of_state(insn, false), insn) {
        Some(encoding) => Text {
            encoding,
            insn,
            address,
            thumb: false,
        }
        .print(),
        None => format!(".word {insn:#010x}"),
    }
}

/// Disassembles the Thumb instruction `half` at `address`. The halves of BL and BLX print separately.
pub fn disassemble_thumb(half: u16, address: u32) -> String {
    let insn = u32::from(half);
    match best(rows_of_state(insn, true), insn) {
        Some(encoding) => Text {
            encoding,
            insn,
            address,
            thumb: true,
        }
        .print(),
        None => format!(".short {half:#06x}"),
    }
}

/// The rows of a state that an instruction may match.
pub(super) fn rows_of_state(insn: u32, thumb: bool) -> Box<dyn Iterator<Item = &'static Encoding>> {
    let unconditional = insn >> 28 == 15;
    match thumb {
        true => Box::new(thumb::ENCODINGS.iter()),
        false => {
            Box::new(all_a32().filter(move |row| row.pattern.starts_with("1111") == unconditional))
        }
    }
}

/// The most specific row that matches.
pub(super) fn best<'a>(
    rows: impl Iterator<Item = &'a Encoding>,
    insn: u32,
) -> Option<&'a Encoding> {
    rows.filter(|row| {
        let (mask, value) = fixed_bits(row.pattern);
        insn & mask == value
    })
    .max_by_key(|row| fixed_bits(row.pattern).0.count_ones())
}

/// An instruction to print.
struct Text<'a> {
    encoding: &'a Encoding,
    insn: u32,
    address: u32,
    thumb: bool,
}

impl Text<'_> {
    fn print(&self) -> String {
        let mut text = String::new();
        let mut rest = self.encoding.format;
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            let Some((operand, after)) = after.split_once('}') else {
                break;
            };
            text.push_str(&self.operand(operand.as_bytes()[0]));
            rest = after;
        }
        text + rest
    }

    /// The bits of the field `letter`, collected from all places where the pattern has the letter.
    fn field(&self, letter: u8) -> u32 {
        let width = self.encoding.pattern.len();
        let bits = self
            .encoding
            .pattern
            .bytes()
            .enumerate()
            .filter(|&(_, l)| l == letter);
        bits.fold(0, |value, (n, _)| {
            value << 1 | self.insn >> (width - 1 - n) & 1
        })
    }

    fn has(&self, letter: u8) -> bool {
        self.encoding.pattern.bytes().any(|l| l == letter)
    }

    fn register(&self, letter: u8) -> String {
        REGISTERS[self.field(letter) as usize & 15].into()
    }

    fn operand(&self, letter: u8) -> String {
        let flag = |text: &str| {
            if self.field(letter) != 0 {
                text.to_string()
            } else {
                String::new()
            }
        };
        match letter {
            b'c' => CONDITIONS[self.field(b'c') as usize & 15].into(),
            b'S' => flag("s"),
            b'Z' => flag("l"),
            b'W' if self.thumb => {
                let loaded = self.insn >> self.field(b'n') & 1 != 0;
                if loaded { String::new() } else { "!".into() }
            }
            b'W' => flag("!"),
            b'd' | b'n' | b'm' | b's' | b'l' => self.register(letter),
            b'h' if !self.thumb => self.register(letter),
            b'x' | b'y'
                if self.encoding.name.starts_with("SM") || self.encoding.name == "MIAxy" =>
            {
                if self.field(letter) != 0 {
                    "t".into()
                } else {
                    "b".into()
                }
            }
            b'o' if self.insn >> 28 == 15 && self.insn >> 27 & 1 == 0 => self.new_mode(),
            b'o' if self.encoding.name == "SRS" => format!("#{}", self.field(b'o')),
            b'p' | b'o' => self.field(letter).to_string(),
            b'X' => self.field(b'x').to_string(),
            b'N' => rn(self.insn).to_string(),
            b'K' => rm(self.insn).to_string(),
            b'D' => self.field(b'd').to_string(),
            b'P' => {
                if self.field(b'R') != 0 {
                    "SPSR".into()
                } else {
                    "CPSR".into()
                }
            }
            _ => self.compound(letter),
        }
    }

    fn compound(&self, letter: u8) -> String {
        let insn = self.insn;
        match letter {
            b'I' => format!("#{}", shifter::rotated_constant(insn) as i32),
            b'M' => self.shifted(),
            b'R' => {
                let shift = SHIFTS[self.field(b't') as usize];
                format!("{}, {shift} {}", REGISTERS[rm(insn)], REGISTERS[rs(insn)])
            }
            b'F' => {
                let names = [(19, 'f'), (18, 's'), (17, 'x'), (16, 'c')];
                let fields = names
                    .iter()
                    .filter(|&&(n, _)| bit(insn, n))
                    .map(|&(_, name)| name);
                format!("_{}", fields.collect::<String>())
            }
            b'A' => {
                let up = if bit(insn, 23) { 'i' } else { 'd' };
                let when = if bit(insn, 24) { 'b' } else { 'a' };
                format!("{up}{when}")
            }
            b'L' => self.list(),
            b'T' => format!("{:#x}", self.target()),
            b'i' => format!("#{}", self.field(b'i')),
            b'j' => format!("#{}", (self.field(b'i') + 31) % 32 + 1),
            b'k' if self.thumb => format!("#{:#06x}", self.field(b'i')),
            b'k' => format!("#{:#06x}", self.field(b'i') << 4 | self.field(b'j')),
            b'w' => format!("#{}", self.field(b'i') << 2),
            b'h' => format!("#{}", self.field(b'i') << 1),
            b'a' if bit(insn, 25) => self.indexed(&self.shifted()),
            b'a' => self.constant_indexed(self.field(b'i')),
            b'x' if bit(insn, 22) => {
                self.constant_indexed(self.field(b'h') << 4 | self.field(b'l'))
            }
            b'x' => self.indexed(REGISTERS[rm(insn)]),
            b'y' if !self.indexed_before() && !bit(insn, 21) => {
                format!("[{}], {{{}}}", REGISTERS[rn(insn)], self.field(b'i'))
            }
            b'y' => self.constant_indexed(self.field(b'i') << 2),
            _ => self.of_armv6(letter),
        }
    }

    /// An operand that only instructions of ARMv6 have.
    fn of_armv6(&self, letter: u8) -> String {
        let insn = self.insn;
        match letter {
            b'r' => match self.field(b'r') {
                0 => REGISTERS[rm(insn)].into(),
                by => format!("{}, ror #{}", REGISTERS[rm(insn)], 8 * by),
            },
            b'v' => self.shifted_to_saturate(),
            // The field of a signed saturation is one less than the number of bits.
            b'b' => {
                let less = u32::from(self.encoding.name.starts_with('S'));
                format!("#{}", self.field(b'b') + less)
            }
            b'e' if self.field(b'x') != 0 => "x".into(),
            b'q' if self.field(b'x') != 0 => "r".into(),
            b'e' | b'q' => String::new(),
            b'u' => self.masks(),
            b'E' if self.field(b'E') != 0 => "be".into(),
            b'E' => "le".into(),
            _ => unreachable!(
                "row {} has no operand {}",
                self.encoding.name,
                char::from(letter)
            ),
        }
    }

    /// Rm with its constant shift.
    fn shifted(&self) -> String {
        let register = REGISTERS[rm(self.insn)];
        let (kind, amount) = (self.field(b't') as usize, self.field(b'i'));
        match (kind, amount) {
            (0, 0) => register.into(),
            (3, 0) => format!("{register}, rrx"),
            (1 | 2, 0) => format!("{register}, {} #32", SHIFTS[kind]),
            _ => format!("{register}, {} #{amount}", SHIFTS[kind]),
        }
    }

    /// Rm with the shift of PKHBT, PKHTB, SSAT and USAT.
    fn shifted_to_saturate(&self) -> String {
        let register = REGISTERS[rm(self.insn)];
        match (bit(self.insn, 6), self.field(b'i')) {
            (false, 0) => register.into(),
            (false, amount) => format!("{register}, lsl #{amount}"),
            (true, 0) => format!("{register}, asr #32"),
            (true, amount) => format!("{register}, asr #{amount}"),
        }
    }

    /// What CPS does to the masks, and which.
    fn masks(&self) -> String {
        // The field of Thumb has one bit.
        let effect = self.field(b'u') | if self.thumb { 2 } else { 0 };
        let effect = match effect {
            2 => "ie ",
            3 => "id ",
            _ => return String::new(),
        };
        let set = [b'a', b'i', b'f'].into_iter();
        let set = set.filter(|letter| self.field(*letter) != 0);
        effect.to_owned() + &set.map(char::from).collect::<String>()
    }

    /// The new mode of CPS, if it changes the mode.
    fn new_mode(&self) -> String {
        let mode = self.field(b'o');
        match (self.field(b'M'), self.field(b'u') >> 1) {
            (0, _) => String::new(),
            (_, 0) => format!(" #{mode}"),
            _ => format!(", #{mode}"),
        }
    }

    /// Whether the offset is added before the access. It always is for PLD, and never for the T forms.
    fn indexed_before(&self) -> bool {
        bit(self.insn, 24)
    }

    fn constant_indexed(&self, offset: u32) -> String {
        let base = REGISTERS[rn(self.insn)];
        let w = self.has(b'W') && self.field(b'W') != 0;
        if offset == 0 && bit(self.insn, 23) && !w && self.indexed_before() {
            return format!("[{base}]");
        }
        self.indexed_by(&format!(
            "#{}{offset}",
            if bit(self.insn, 23) { "" } else { "-" }
        ))
    }

    fn indexed(&self, offset: &str) -> String {
        self.indexed_by(&format!(
            "{}{offset}",
            if bit(self.insn, 23) { "" } else { "-" }
        ))
    }

    fn indexed_by(&self, offset: &str) -> String {
        let base = REGISTERS[rn(self.insn)];
        let w = if self.has(b'W') && self.field(b'W') != 0 {
            "!"
        } else {
            ""
        };
        if self.indexed_before() {
            format!("[{base}, {offset}]{w}")
        } else {
            format!("[{base}], {offset}")
        }
    }

    fn list(&self) -> String {
        let mut list = self.insn & if self.thumb { 0xff } else { 0xffff };
        if self.thumb {
            list |= self.field(b'L') << 14 | self.field(b'P') << 15;
        }
        let names: Vec<_> = (0..16)
            .filter(|&n| bit(list, n))
            .map(|n| REGISTERS[n as usize])
            .collect();
        format!("{{{}}}", names.join(", "))
    }

    fn target(&self) -> u32 {
        let width = self.encoding.pattern.bytes().filter(|&l| l == b'i').count();
        let offset = ((self.field(b'i') << (32 - width)) as i32 >> (32 - width)) as u32;
        let (ahead, distance) = match (self.thumb, self.encoding.name) {
            (false, _) => (8, offset << 2 | self.field(b'H') << 1),
            (true, "BL") => (4, offset << 12),
            (true, _) => (4, offset << 1),
        };
        self.address.wrapping_add(ahead).wrapping_add(distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(insn: u32) -> String {
        disassemble(insn, 0x1000)
    }

    #[test]
    fn data_processing_prints_its_operands() {
        assert_eq!(text(0xe0910002), "adds r0, r1, r2");
        assert_eq!(text(0x13a004ff), "movne r0, #-16777216");
        assert_eq!(text(0xe1a0f00e), "mov pc, lr");
        assert_eq!(text(0xe1b00061), "movs r0, r1, rrx");
        assert_eq!(text(0xe0010253), "and r0, r1, r3, asr r2");
        assert_eq!(text(0xe1500021), "cmp r0, r1, lsr #32");
        assert_eq!(text(0xe0c10392), "smull r0, r1, r2, r3");
        assert_eq!(text(0xe16002c1), "smulbt r0, r1, r2");
        assert_eq!(text(0xe16f0f11), "clz r0, r1");
    }

    #[test]
    fn transfers_print_their_addresses() {
        assert_eq!(text(0xe5910000), "ldr r0, [r1]");
        assert_eq!(text(0xe5b10004), "ldr r0, [r1, #4]!");
        assert_eq!(text(0xe4110004), "ldr r0, [r1], #-4");
        assert_eq!(text(0xe7d10122), "ldrb r0, [r1, r2, lsr #2]");
        assert_eq!(text(0xe4b10004), "ldrt r0, [r1], #4");
        assert_eq!(text(0xe1e420d8), "ldrd r2, [r4, #8]!");
        assert_eq!(text(0xe11100b2), "ldrh r0, [r1, -r2]");
        assert_eq!(text(0xf5d1f000), "pld [r1]");
        assert_eq!(text(0xe92d4010), "stmdb sp!, {r4, lr}");
        assert_eq!(text(0xe8f88003), "ldmia r8!, {r0, r1, pc} ^");
    }

    #[test]
    fn control_instructions_print_what_they_address() {
        assert_eq!(text(0x0afffffe), "beq 0x1000");
        assert_eq!(text(0xfb000000), "blx 0x100a");
        assert_eq!(text(0xe321f0d3), "msr CPSR_c, #211");
        assert_eq!(text(0xe14f1000), "mrs r1, SPSR");
        assert_eq!(text(0xee17ff7e), "mrc p15, 0, pc, c7, c14, 3");
        assert_eq!(text(0xe1200070), "bkpt #0x0000");
        assert_eq!(text(0xe7f000f0), ".word 0xe7f000f0");
    }

    #[test]
    fn instructions_of_armv6_print_as_their_assembler_writes_them() {
        assert_eq!(text(0xe6ef0872), "uxtb r0, r2, ror #16");
        assert_eq!(text(0xe6f10072), "uxtah r0, r1, r2");
        assert_eq!(text(0xe6bf0fb1), "rev16 r0, r1");
        assert_eq!(text(0xe6810852), "pkhtb r0, r1, r2, asr #16");
        assert_eq!(text(0xe6a70011), "ssat r0, #8, r1");
        assert_eq!(text(0xe6e80051), "usat r0, #8, r1, asr #32");
        assert_eq!(text(0xe6e80f31), "usat16 r0, #8, r1");
        assert_eq!(text(0xe6110f32), "sasx r0, r1, r2");
        assert_eq!(text(0xe7003271), "smlsdx r0, r1, r2, r3");
        assert_eq!(text(0xe750f231), "smmulr r0, r1, r2");
        assert_eq!(text(0x11910f9f), "ldrexne r0, [r1]");
        assert_eq!(text(0xe1a12f94), "strexd r2, r4, [r1]");
        assert_eq!(text(0xf57ff01f), "clrex");
        assert_eq!(text(0xf10e0092), "cpsid i, #18");
        assert_eq!(text(0xf1080180), "cpsie ai");
        assert_eq!(text(0xf102001f), "cps #31");
        assert_eq!(text(0xf1010200), "setend be");
        assert_eq!(text(0xf96d0513), "srsdb sp!, #19");
        assert_eq!(text(0xf8b20a00), "rfeia r2!");
        assert_eq!(text(0xe320f000), "nop");
        assert_eq!(text(0xe0410392), "umaal r0, r1, r2, r3");
        let text = |half| disassemble_thumb(half, 0x1000);
        assert_eq!(text(0xb2ca), "uxtb r2, r1");
        assert_eq!(text(0xba4a), "rev16 r2, r1");
        assert_eq!(text(0xb672), "cpsid i");
        assert_eq!(text(0xb658), "setend be");
    }

    #[test]
    fn thumb_prints_like_the_a32_it_abbreviates() {
        let text = |half| disassemble_thumb(half, 0x1000);
        assert_eq!(text(0x1a88), "subs r0, r1, r2");
        assert_eq!(text(0x0849), "lsrs r1, r1, #1");
        assert_eq!(text(0x4488), "add r8, r1");
        assert_eq!(text(0x4801), "ldr r0, [pc, #4]");
        assert_eq!(text(0xb510), "push {r4, lr}");
        assert_eq!(text(0xbd20), "pop {r5, pc}");
        assert_eq!(text(0xc803), "ldmia r0, {r0, r1}");
        assert_eq!(text(0xd1fe), "bne 0x1000");
        assert_eq!(text(0xb100), ".short 0xb100");
    }

    #[test]
    fn every_operand_a_row_names_can_be_printed() {
        let print = |encoding: &Encoding, thumb| {
            let insn = fixed_bits(encoding.pattern).1;
            Text {
                encoding,
                insn,
                address: 0,
                thumb,
            }
            .print()
        };
        for row in all_a32() {
            assert!(!print(row, false).is_empty());
        }
        for row in thumb::ENCODINGS {
            assert!(!print(row, true).is_empty());
        }
    }
}
