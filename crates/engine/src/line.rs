// SPDX-License-Identifier: MIT OR Apache-2.0
//! The code of a line, for every host: a head, with what an entry at each instruction needs; then the instructions in
//! order. The calls of the interpreter lie elsewhere in the memory, because they are rare. `walk.rs` walks over the plan,
//! and a [`Host`] emits the pieces.
//!
//! The counts of cycles and instructions lag behind: they change only where the code leaves the line, by amounts that the
//! plan knows. An entry at a later instruction subtracts what the instructions before it would have added.

use arm::engine::Pending;
use dynasmrt::relocations::Relocation;
use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, VecAssembler};

use crate::action::Action;
use crate::format::{Described, Head, Made, Timed, first, head};
use crate::plan::{Plan, Step};

/// The pieces of a line's code that depend on the host. One register of the host holds the address where the code goes
/// next: the target.
pub trait Host: Sized {
    type Relocation: Relocation;
    /// Places of the core's fields.
    type Fields: Copy;
    /// Addresses of the shared code.
    type Stubs: Copy;
    /// The way from the code of an instruction to its call.
    type Slow: Copy;
    /// Bytes of a call of the interpreter.
    const CALL: usize;
    /// Bytes of an access that calls the core. A call of the interpreter follows it.
    const ACCESS: usize;

    /// Counts cycles.
    fn count(line: &mut Line<'_, Self>, cycles: u8);
    /// Counts a wait as interlock cycles.
    fn count_wait(line: &mut Line<'_, Self>, cycles: u8);
    /// Takes a wait back, whose cycles and interlock cycles are counted.
    fn take_wait_back(line: &mut Line<'_, Self>, cycles: u8);
    /// Makes the interpreter know what is pending, instead of the plan, if it executes an instruction.
    fn tell(line: &mut Line<'_, Self>, number: usize, pending: Pending);
    /// Jumps if a condition fails.
    fn condition(line: &mut Line<'_, Self>, condition: u32, fails: DynamicLabel);

    /// Jumps to a place of the line's code.
    fn jump(line: &mut Line<'_, Self>, to: DynamicLabel);
    /// Jumps to an address of the code memory.
    fn jump_out(line: &mut Line<'_, Self>, to: usize);
    /// Returns the way to a call.
    fn slow(line: &mut Line<'_, Self>, call: usize) -> Self::Slow;

    /// Makes the target the address of an instruction, which may be the first one of the next line.
    fn target_instruction(line: &mut Line<'_, Self>, number: usize);
    /// Makes the target an address at some distance from the start of the line.
    fn target_distance(line: &mut Line<'_, Self>, distance: i32);
    /// Makes the target the value of a register.
    fn target_register(line: &mut Line<'_, Self>, register: usize);
    /// Adds an offset to the target.
    fn add_to_target(line: &mut Line<'_, Self>, offset: u32);
    /// Takes the slow way if bit 0 of the target selects the other instruction set.
    fn leave_set(line: &mut Line<'_, Self>, slow: Self::Slow);
    /// Clears the low bits of the target.
    fn align_target(line: &mut Line<'_, Self>);
    /// Puts the return address of a call into r14. In Thumb state, its bit 0 is set. Keeps the target.
    fn link(line: &mut Line<'_, Self>, number: usize);
    /// Goes to the line at the target, after instructions that took some cycles. The results are pending.
    fn go(line: &mut Line<'_, Self>, cycles: u8, instructions: usize, pending: Pending);
    /// Goes to the next line while nothing is pending.
    fn go_on(line: &mut Line<'_, Self>);
    /// Branches to another instruction of the line, if the horizon is not near.
    fn branch_within(line: &mut Line<'_, Self>, number: usize, step: &Step, to: usize);
    /// Records that a branch is taken. Jumps to `wrong`, if it is there, if the prediction was wrong.
    fn taken(line: &mut Line<'_, Self>, number: usize, wrong: Option<DynamicLabel>);
    /// Records that a branch is not taken. Jumps to `right`, if it is there, if the prediction was right.
    fn not_taken(line: &mut Line<'_, Self>, number: usize, right: Option<DynamicLabel>);

    /// Executes an instruction that accesses no memory and does not branch.
    fn compute(line: &mut Line<'_, Self>, number: usize, action: Action);
    /// Executes an instruction that accesses memory or the CPSR, or takes the slow way.
    fn access(line: &mut Line<'_, Self>, number: usize, step: &Step, slow: Self::Slow);
    /// Appends an access without a grant to the calls.
    fn access_by_core(line: &Line<'_, Self>, calls: &mut Calls<Self>, access: &Access);
    /// Appends a call of the interpreter to the calls. Behind it, the code goes on at the address `resume`.
    fn call(line: &Line<'_, Self>, calls: &mut Calls<Self>, described: &Described, resume: usize);
}

/// Calls while they are made.
pub type Calls<H> = VecAssembler<<H as Host>::Relocation>;

/// An access that calls the core.
pub struct Access {
    pub step: Step,
    pub timed: Timed,
    /// The call of the interpreter that follows the access.
    pub interpreted: DynamicLabel,
    /// Address where the code goes on after the access.
    pub resume: usize,
}

/// Code of a line while it is made.
pub struct Line<'a, H: Host> {
    pub ops: VecAssembler<H::Relocation>,
    pub f: H::Fields,
    pub stubs: H::Stubs,
    pub plan: &'a Plan,
    /// Addresses of the code and of the calls.
    pub at: [usize; 2],
    /// Start of each instruction, and of what follows the last.
    pub starts: Vec<DynamicLabel>,
    /// Start of each instruction behind its wait.
    pub waited: Vec<DynamicLabel>,
    /// Jumps to calls, for a host whose conditional branches do not reach the other part of the memory.
    pub jumps: Vec<(DynamicLabel, usize)>,
    calls: Vec<Call>,
    /// Their bytes.
    calls_bytes: usize,
}

/// A call of the interpreter for an instruction.
struct Call {
    number: usize,
    step: Step,
    /// Whether the code has the address of a transfer, and only the access is missing.
    accesses: bool,
}

/// How code goes to the next line.
pub enum Chain {
    /// Nothing is pending.
    Free,
    /// These results are pending, on a core with a scoreboard.
    Soon(u64),
    /// These loaded words are pending, a set of registers.
    Words(u16),
    /// These results are pending, which are available one cycle later than words.
    Late(u16),
    /// Other results are pending.
    Pending(u64),
}

/// Makes the code of a line, for the two parts of the memory, whose next addresses are `ends`.
pub fn make<H: Host>(plan: &Plan, f: H::Fields, stubs: H::Stubs, ends: [usize; 2]) -> Made {
    let mut ops = VecAssembler::new(ends[0]);
    let (count, head_bytes) = (plan.steps.len(), Head::of(plan.set).bytes as usize);
    ops.extend(vec![0; head_bytes]);
    let starts = (0..=count).map(|_| ops.new_dynamic_label()).collect();
    let waited = (0..count).map(|_| ops.new_dynamic_label()).collect();
    let mut line = Line::<H> {
        ops,
        f,
        stubs,
        plan,
        at: ends,
        starts,
        waited,
        jumps: Vec::new(),
        calls: Vec::new(),
        calls_bytes: 0,
    };
    let (offsets, entries) = line.instructions();
    for (label, call) in core::mem::take(&mut line.jumps) {
        line.ops.dynamic_label(label);
        H::jump_out(&mut line, call);
    }
    let cold = line.calls(&offsets);
    let mut hot = line.ops.finalize().expect("every label is near");
    hot[..head_bytes].copy_from_slice(&head(plan, &entries));
    Made {
        hot,
        cold,
        entries: first(&entries),
    }
}

impl<H: Host> Line<'_, H> {
    /// How code goes to the next line while results are pending.
    pub fn chain(&self, pending: Pending) -> Chain {
        let (bits, words) = (pending.bits(), pending.soon());
        let soon = u64::from(words) << 32;
        match bits {
            0 => Chain::Free,
            _ if self.plan.beside => Chain::Soon(bits),
            _ if bits == soon => Chain::Words(words),
            _ if bits == soon | soon << 16 => Chain::Late(words),
            _ => Chain::Pending(bits),
        }
    }

    /// Address of a call of the interpreter for an instruction.
    pub fn call(&mut self, number: usize, step: Step, accesses: bool) -> usize {
        let address = self.at[1] + self.calls_bytes;
        self.calls_bytes += H::CALL + if accesses { H::ACCESS } else { 0 };
        self.calls.push(Call {
            number,
            step,
            accesses,
        });
        address
    }

    /// The calls of the interpreter. `offsets` has the place of each instruction.
    fn calls(&mut self, offsets: &[usize]) -> Vec<u8> {
        let mut calls = VecAssembler::new(self.at[1]);
        for call in core::mem::take(&mut self.calls) {
            let Call { number, step, .. } = call;
            let resume = self.at[0] + offsets[number + 1];
            let next_start = self.plan.start(number + 1);
            if call.accesses {
                self.access_by_core(&mut calls, number, step, resume);
            }
            let described = Described {
                number: number as u8,
                start: step.start,
                next_start,
                stall: step.stall,
                unused: [0; 4],
                before: step.before.bits(),
                after: self.plan.pending(number + 1).bits(),
            };
            H::call(self, &mut calls, &described, resume);
        }
        let bytes = self.calls_bytes;
        assert_eq!(calls.offset().0, bytes, "a call has {} bytes", H::CALL);
        calls.finalize().expect("every label is near")
    }

    /// An access without a grant. The call of the interpreter follows.
    fn access_by_core(&self, calls: &mut Calls<H>, number: usize, step: Step, resume: usize) {
        let start = calls.offset().0;
        let access = Access {
            step,
            timed: Timed {
                number: number as u8,
                before: step.start + step.stall + step.cycles,
                next_start: self.plan.start(number + 1),
            },
            interpreted: calls.new_dynamic_label(),
            resume,
        };
        H::access_by_core(self, calls, &access);
        let rest = H::ACCESS - (calls.offset().0 - start);
        calls.extend(core::iter::repeat_n(0xcc_u8, rest));
        calls.dynamic_label(access.interpreted);
    }
}
