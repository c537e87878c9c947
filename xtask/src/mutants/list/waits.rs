// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mutants of three of the core's shortcuts: operations that wait for results, writes that wait for the bus, and the
//! restoring of a core from a snapshot.

use super::{Mutant, killed};

pub const MUTANTS: &[Mutant] = &[
    killed(
        "cpu/interlock.rs",
        "!self.behaviour().scoreboard && op.header() == 1 &&",
        "!self.behaviour().scoreboard &&",
        "the short path is only for unconditional operations of one cycle",
    ),
    killed(
        "cpu/interlock.rs",
        "op.header() == 1 && !op.uses_any_of(pending.0) {",
        "op.header() == 1 {",
        "the short path is only for operations that wait for nothing",
    ),
    killed(
        "cpu/interlock.rs",
        "if !self.behaviour().scoreboard && op.header()",
        "if op.header()",
        "the XScale has no short path",
    ),
    killed(
        "cpu/interlock.rs",
        "            self.interlock = pending.later();\n            self.spend",
        "            self.interlock = Interlock::NONE;\n            self.spend",
        "after the short path, too, the next instruction may have to wait",
    ),
    killed(
        "cpu/interlock.rs",
        "        self.0 & !(0xffff << 32) == 0",
        "        self.0 & !(0xffff_ffff << 32) == 0",
        "loaded words are available after one cycle, other results after two",
    ),
    killed(
        "cpu/interlock.rs",
        "self.interlock != Interlock::NONE && op.header() != 0 {",
        "self.interlock != Interlock::NONE {",
        "an operation waits only after it is decoded",
    ),
    killed(
        "cpu/state.rs",
        "        cpu.memory.drop_translations();\n        let found",
        "        let found",
        "a restored core reports the next use of each translation to its observer",
    ),
    killed(
        "memory/fetch.rs",
        "    if line_pc != NO_LINE {",
        "    if false {",
        "a restored core finds the operations of its line",
    ),
    killed(
        "write_buffer.rs",
        "        if self.len != 0 || self.victim.is_some() {\n            while",
        "        if self.len != 0 {\n            while",
        "a victim is written even if no store is buffered",
    ),
    killed(
        "write_buffer.rs",
        "        if !self.is_empty() {\n            self.write_before_read",
        "        if self.len != 0 {\n            self.write_before_read",
        "a read waits for a victim of its line",
    ),
];
