// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets up a ledger for the kernel of a board: the kernel's functions, and the hooks at which the ledger notices
//! events.

use std::path::Path;
use std::sync::Arc;

use arm::Mva;
use board::Observed;
use watch::ledger::{Function, Functions, Hooks, Ledger};

use session::session::Session;
use supply::symbols::Symbols;
use supply::variables::{self, Variable};

/// A session in which a ledger charges every cycle.
pub type Charged = Session<Observed<Ledger>>;

/// A kernel's functions. Their numbers are those of [`watch::ledger::Function::number`].
pub struct Kernel {
    names: Vec<String>,
    functions: Arc<Functions>,
    /// Limits of the account, each with its reason.
    pub notes: Vec<String>,
}

impl Kernel {
    /// Returns the function at an address.
    pub fn at(&self, address: u32) -> Function {
        self.functions.of(address)
    }

    /// Returns the name of a function.
    pub fn function(&self, number: usize) -> &str {
        self.names.get(number).map_or("?", String::as_str)
    }
}

/// Name of the first task (Linux init/init_task.c). The position of this name in init_task is the offset of the name in
/// every task's structure.
const FIRST_TASK: &[u8] = b"swapper";

/// From now on, charges all cycles of a booted board. Without a vmlinux, tasks and functions have no names.
pub fn charge(session: Session, vmlinux: Option<&Path>) -> (Charged, Kernel) {
    let symbols = Symbols::of(vmlinux);
    let base = symbols.kernel();
    let functions = symbols.functions().iter().filter(|(at, _)| *at >= base);
    let (starts, names): (Vec<u32>, Vec<String>) = functions.cloned().unzip();
    let mut notes = Vec::new();
    if names.is_empty() {
        let why = "the kernel has no symbols (no vmlinux beside its image)";
        notes.push(format!("{why}: functions and tasks are not distinguished"));
    }
    let mut hook = |name: &str, what: &str| {
        let address = symbols.address(name);
        if address.is_none() && !names.is_empty() {
            notes.push(format!("the kernel has no function {name}(): {what}"));
        }
        address.unwrap_or_default()
    };
    let mut hooks = Hooks {
        schedule: hook("__schedule", "the cost of context switches is unknown"),
        switch_to: hook("__switch_to", "tasks are not distinguished"),
        exit: hook("do_exit", "tasks that end have no names"),
        dead: hook("do_task_dead", "a task that ends may count as two tasks"),
        irq: hook(
            "generic_handle_arch_irq",
            "the end of interrupts is unknown",
        ),
        irq_line: hook("generic_handle_domain_irq", "interrupts have no number"),
        enqueue: ["enqueue_task_fair", "enqueue_task_rt", "enqueue_task_dl"]
            .map(|name| hook(name, "some wake-ups are missed")),
        name_offset: None,
    };
    let variable = |name: &str| vmlinux.and_then(|vmlinux| variables::of(vmlinux, name));
    hooks.name_offset = variable("init_task").and_then(|task| name_offset(&task));
    if hooks.name_offset.is_none() && !names.is_empty() {
        notes.push("the kernel has no variable init_task: tasks have no names".into());
    }
    let current = variable("__current").map(|current| current.address);
    if current.is_none() && !names.is_empty() {
        notes.push("the kernel has no variable __current: the first task has no name".into());
    }
    let functions = Arc::new(Functions::new(starts, base));
    let known = functions.clone();
    let charged = session.observed_by(|machine| {
        let byte = |at: u32| machine.cpu().debug_read(Mva(at)).unwrap_or_default();
        let word = |at: u32| u32::from_le_bytes([0, 1, 2, 3].map(|n| byte(at.wrapping_add(n))));
        Ledger::new(functions, hooks, current.map_or(0, word))
    });
    let kernel = Kernel {
        names,
        functions: known,
        notes,
    };
    (charged, kernel)
}

/// Returns the offset of a task's name in the task's structure.
fn name_offset(first: &Variable) -> Option<u32> {
    let mut places = first.initial.windows(FIRST_TASK.len());
    let at = places.position(|bytes| bytes == FIRST_TASK)?;
    u32::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use board::{BoardBus, Machine};

    use base::boards;
    use session::boot::Recipe;
    use session::snapshot::Snapshots;

    /// Number of comparisons between the observed and the unobserved board.
    const POINTS: usize = 10;
    /// Longest distance between two comparisons, in core cycles.
    const MOST_BETWEEN: u64 = 20_000_000;

    /// Returns the visible state of a machine, with a hash in place of its memory.
    fn state<B: BoardBus>(machine: &Machine<B>) -> String {
        let cpu = machine.cpu();
        let seen = (
            machine.now(),
            std::array::from_fn::<u32, 16, _>(|n| cpu.register(n)),
            *machine.counters(),
            machine.memory_hash(),
            machine.console_log().len(),
            machine.edges().len(),
        );
        format!("{seen:?}")
    }

    #[test]
    #[ignore = "needs the kernel"]
    fn a_board_that_is_looked_at_is_the_same_wherever_it_stops() {
        // The command has pipes, interrupts, an idle core, and many tasks that exit. Exits matter because the ledger
        // reads the name of a task when the task exits.
        let command = "ls; cyclictest -l 20 -p 50 -q; lat_ctx -P -g pl061@101e4000 -s 0 -n 50 2; hackbench -g 1 -l 1";
        for (board, kernel) in [("sam9263", "plain"), ("omap1610", "fcse-guaranteed")] {
            let spec = boards::load(board).unwrap().0;
            let prepared = Recipe::of(kernel).prepare(&spec).unwrap();
            let snapshots = Snapshots::cached_if(true);
            let plain = Session::booted(&snapshots, &spec, 1, &prepared.boot(), &|_| ());
            let mut plain = plain.unwrap();
            let vmlinux = prepared.files.vmlinux.as_deref();
            let (mut charged, _) = charge(plain.clone(), vmlinux);
            charged.keep_latencies((3, None));
            let (a, b) = (plain.machine_mut(), charged.machine_mut());
            a.send(format!("{command}\n").as_bytes());
            b.send(format!("{command}\n").as_bytes());
            let mut random = 20_261_125u64;
            for _ in 0..POINTS {
                random = random.wrapping_mul(6_364_136_223_846_793_005);
                random = random.wrapping_add(1);
                let until = a.now() + (random >> 32) % MOST_BETWEEN;
                assert_eq!(a.run_until(until), b.run_until(until), "{board}");
                assert_eq!(state(a), state(b), "{board}");
            }
            charged.name_tasks();
            let tasks = charged.ledger().tasks();
            for (program, least) in [
                ("ls", 1),
                ("cyclictest", 2),
                ("lat_ctx", 1),
                ("hackbench", 40),
            ] {
                let ended = tasks
                    .iter()
                    .filter(|task| task.ended && task.name == program);
                let ended = ended.count();
                assert!(ended >= least, "{board}: {ended} of {program} have ended");
            }
        }
    }

    #[test]
    fn a_tasks_name_is_where_the_first_task_has_its_own() {
        let task = |initial: &[u8]| Variable {
            address: 0xc000_0000,
            initial: initial.to_vec(),
        };
        assert_eq!(name_offset(&task(b"\0\0\0\0swapper/0\0\0")), Some(4));
        assert_eq!(name_offset(&task(b"\0\0\0\0swap")), None);
        assert_eq!(name_offset(&task(b"")), None);
    }
}
