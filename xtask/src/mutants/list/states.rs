// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mutants of the translator: XScale, Thumb state, and entries.

use super::{Mutant, killed};

pub static MUTANTS: &[Mutant] = &[
    killed(
        "x64/soon.rs",
        "        ; jne >unknown\n        ; inc esi\n",
        "        ; jne >unknown\n",
        "on XScale, the instruction after the next one waits for a late result",
    ),
    killed(
        "x64/soon.rs",
        "        ; jz >enter\n        ; inc esi\n",
        "        ; jz >enter\n",
        "on XScale, an instruction that uses a late result at an entry waits for two cycles",
    ),
    killed(
        "x64/soon.rs",
        "        ; mov [rbp + TOLD_AT], r13\n",
        "",
        "the interpreter knows what was pending at an entry",
    ),
    killed(
        "x64/soon.rs",
        "        ; mov BYTE [rdx + 4], 3\n",
        "",
        "a branch that was predicted as taken, and is taken, gets the strongest history",
    ),
    killed(
        "x64/soon.rs",
        "        ; dec BYTE [rdx + 4]\n",
        "",
        "a branch that is not taken weakens its history",
    ),
    killed(
        "x64/interpret.rs",
        "        ; mov rax, [rbp + TOLD]\n        ; mov [rbx + f.interlock], rax\n",
        "",
        "the interpreter uses what was pending at an entry",
    ),
    killed(
        "x64/interpret.rs",
        "        ; add r12, rax\n        ; add [rbx + f.interlock_cycles], rax\n",
        "",
        "a call of the interpreter counts a planned wait that an entry took back",
    ),
    killed(
        "beside.rs",
        "_ if step.is_simple() => Late::Waits",
        "_ if step.cycles == 1 => Late::Waits",
        "the wait of the second instruction counts early only if nothing can end the run before it",
    ),
    killed(
        "x64/data.rs",
        "; sar eax, 31 ; xor ecx, eax",
        "; sar eax, 31",
        "XScale's multiplier ends early for small negative factors",
    ),
    killed(
        "x64/branch.rs",
        "jnc >on ; lea eax",
        "jmp >on ; lea eax",
        "nothing is pending after a wrong prediction",
    ),
    killed(
        "plan.rs",
        "true => issue + 1,",
        "true => 1,",
        "a load of the pc whose condition fails takes time on XScale",
    ),
    killed(
        "x64/transfer.rs",
        "; test al, 7 ; jnz extern slow",
        "",
        "XScale transfers only whole double-words",
    ),
    killed(
        "x64/data.rs",
        "; mov edx, 63 ; cmp ecx, edx ; cmova ecx, edx",
        "",
        "a shift with a carry by more than 63 shifts all bits out",
    ),
    killed(
        "x64/data.rs",
        "; test ecx, ecx ; jz >zero",
        "; test ecx, ecx",
        "a shift by zero keeps the carry",
    ),
    killed(
        "decode/thumb.rs",
        ".wrapping_sub(2 * (n as u32 & 1))",
        "",
        "the base of literals is rounded down to a word",
    ),
    killed(
        "decode/thumb.rs",
        "insn as i32 + 4 + 2 * n as i32",
        "insn as i32 + 4 + 4 * n as i32",
        "the distance of a Thumb branch counts from the address of the branch + 4",
    ),
    killed(
        "x64/branch.rs",
        "(self.width() * (number + 1)) as i8 + thumb",
        "(self.width() * (number + 1)) as i8",
        "bit 0 of a return address is set in Thumb state",
    ),
    killed(
        "x64/line.rs",
        "Set::Thumb => asm!(self ; test al, 1 ; jz extern slow)",
        "Set::Thumb => {}",
        "BX to an even address leaves Thumb state",
    ),
    killed(
        "x64/transfer.rs",
        "; test r9b, 1 ; jz extern slow ; dec r9d",
        "; and r9d, -2",
        "POP of an even pc leaves Thumb state",
    ),
    killed(
        "shared.rs",
        "(core, line.set(), *line.words())",
        "(core, Set::A32, *line.words())",
        "the same words are other code in the other state",
    ),
    killed(
        "plan.rs",
        "            flags: false, d, ..",
        "            d, ..",
        "a multiplication that sets the flags has no latency",
    ),
    killed(
        "x64/chain.rs",
        "        ; mov [BYTE rbp + LIMIT], rcx\n        ; mov r9",
        "        ; mov r9",
        "the horizon may be nearer after a fill",
    ),
    killed(
        "x64/interpret.rs",
        "; jns >done",
        "; jmp >done",
        "a load or store that calls the core may fault",
    ),
    killed(
        "x64/interpret.rs",
        "        ; cmp rdx, rax\n        ; near:",
        "        ; clc\n        ; near:",
        "code leaves after a slow access near the horizon",
    ),
    killed(
        "x64/line.rs",
        "before: step.start + step.stall + step.cycles,",
        "before: step.start + step.stall,",
        "an access that calls the core begins after the cycles of its instruction",
    ),
    killed(
        "x64/line.rs",
        "test al, misaligned ; jnz >step",
        "test al, misaligned",
        "a misaligned word is late",
    ),
    killed(
        "plan.rs",
        "without_wait == free && step.action != Action::Interpret && !beside",
        "without_wait == free && !beside",
        "the interpreter knows what is pending at an entry",
    ),
    killed(
        "plan.rs",
        "is_same && without_wait == free",
        "without_wait == free",
        "an entry behind the wait leaves pending what the plan has",
    ),
    killed(
        "x64/line.rs",
        "entries.push((line.offset(), step.start + step.stall));",
        "entries.push((line.offset(), step.start));",
        "an entry behind the wait does not count the wait",
    ),
    killed(
        "decode.rs",
        "name == \"PLD\" && !line.core().behaviour.preload_fills",
        "name == \"PLD\"",
        "PLD fills a line on XScale",
    ),
    killed(
        "shared.rs",
        "Entry::Executed => -2,",
        "Entry::Executed => -1,",
        "the instruction after an uncached fetch counts",
    ),
];
