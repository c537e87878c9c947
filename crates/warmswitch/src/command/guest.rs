// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch guest`: boots the guest, runs one command, and prints the command's output.
//!
//! The command runs on a simulated board or on QEMU's versatilepb, which has no caches. A command that fails only on
//! the board therefore points to a bug in cache maintenance.

use anyhow::{Result, bail};
use board::BoardSpec;

use crate::Outcome;
use crate::chaos::places::KernelPlaces;
use crate::chaos::run::Drawn;
use crate::chaos::{self, unchecked};
use crate::coherence::RunEnd;
use crate::coherence::names::Names;
use crate::command::examples::Help;
use base::output::write_bytes;
use base::time;
use results::runs::markers::{self, Typed};
use results::runs::run::Window;
use session::boot::Prepared;
use session::card::{self, CardFile};
use session::fetched::{self, Fetched};
use session::kernel_log;
use session::network::{self, Network};
use session::peer::{NoPeer, Peer};
use session::qemu::{self, Qemu, Start};
use session::session::{Failure, Session};
use session::snapshot::Snapshots;
use session::target::{Given, Target};
use supply::mutant::Mutant;
use supply::symbols::Symbols;

/// Default of `--limit`, in seconds of board time.
const LIMIT_S: f64 = 300.0;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/use/GUESTS.md",
    examples: &[
        ("guest -- 'uname -a; free'", "a line for the guest's shell"),
        ("guest --add hello -- hello", "your own program"),
        (
            "guest --add-package lua5.4 -- lua5.4 -v",
            "a Debian package with its dependencies",
        ),
        (
            "guest --set caches.dcache_bytes=32K -- cyclictest -l 1000 -q",
            "on a board with a larger data cache",
        ),
    ],
};

/// Boot, run one command in the guest and print its output (exit code 1 if the command fails)
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Run the command on QEMU's versatilepb, with the board's size of RAM
    #[arg(long, value_name = "CPU", num_args = 0..=1, require_equals = true,
          default_missing_value = qemu::ARM926, conflicts_with_all = ["set", "victims", "limit", "forward", "sd"])]
    qemu: Option<String>,
    /// Name of a mutant, or FILE:NAME. Before the run, removes the mutant's maintenance operation from the kernel
    #[arg(long, value_name = "MUTANT")]
    mutant: Option<String>,
    /// Limit of board time for the command, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT_S)]
    limit: f64,
    /// After the command, copy the guest's file GUEST to HOST, or to a file of the same name in the current folder
    #[arg(long, value_name = "GUEST[:HOST]")]
    fetch: Vec<Fetched>,
    /// After the command, print its cycles and the core's counters
    ///
    /// The cycles and counters include the shell's work and idle cycles. They are exact to 5 ms of board time.
    #[arg(long, conflicts_with_all = ["qemu", "forward"])]
    counters: bool,
    /// Interrupt the command at random moments that SEED determines, and switch between its tasks (docs/use/CHAOS.md)
    ///
    /// The command `mm_chaos` without arguments runs the seed's random program.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["qemu", "fetch", "forward", "sd"])]
    chaos: Option<u64>,
    /// Boot, instead of restoring a snapshot of an earlier boot
    #[arg(long, conflicts_with = "qemu")]
    fresh_boot: bool,
    #[command(flatten)]
    card: card::Options,
    #[command(flatten)]
    network: network::Options,
    /// Command to run in the guest. One word is a line for the guest's shell. Several words are a program and its
    /// arguments
    ///
    /// The command reads this program's standard input if that is a file or a pipe.
    #[arg(last = true, value_name = "CMD", required = true)]
    command: Vec<String>,
}

/// Result of the command.
struct GuestRun {
    output: Vec<u8>,
    status: i32,
    /// Cycles and counters; `None` on QEMU.
    took: Option<Window>,
    /// Result of `--fetch`. It is an error if a file could not be copied.
    fetched: Result<()>,
    /// Kernel messages during the command, if it failed.
    kernel_messages: Vec<String>,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    time::seconds("limit", args.limit)?;
    fetched::check(&args.fetch)?;
    let board = args.target.check()?;
    let mutant = args.target.mutant(args.mutant.as_deref())?;
    if let Some(seed) = args.chaos {
        return args.disturbed(seed, &board, mutant.as_ref());
    }
    let network = args.network.open()?;
    let card = args.card.open(&board)?;
    let Given { typed, stdin, .. } = Given::new(&args.command)?;
    let prepared = args.prepared(&board, stdin, mutant.as_ref(), card.is_some())?;
    let ran = match &args.qemu {
        Some(cpu) => args.on_qemu(cpu, &board, &prepared, &typed),
        None => args.on_board(&board, &prepared, &typed, Around { network, card }),
    };
    if let Err(error) = &ran
        && let Some(failure) = error.downcast_ref::<Failure>()
    {
        write_bytes(&typed.said(&failure.console).0);
    }
    let ran = ran?;
    write_bytes(&ran.output);
    for line in &ran.kernel_messages {
        eprintln!("the guest's kernel: {line}");
    }
    markers::check_that_it_ran(ran.status, "")?;
    if let Some(took) = ran.took.filter(|_| args.counters) {
        println!("cycles {}", took.cycles);
        for (name, value) in took.counters {
            println!("{name} {value}");
        }
    }
    ran.fetched?;
    if ran.status == 0 {
        return Ok(Outcome::Done);
    }
    eprintln!("the command ended with {}", ran.status);
    Ok(Outcome::No)
}

/// What is outside the board and connected to it.
struct Around {
    network: Option<Network>,
    card: Option<CardFile>,
}

impl Args {
    /// Prepares the images. If a mutant is given, applies it.
    fn prepared(
        &self,
        board: &BoardSpec,
        stdin: Option<Vec<u8>>,
        mutant: Option<&Mutant>,
        has_card: bool,
    ) -> Result<Prepared> {
        let mut prepared = self.target.prepare_on(board, stdin, has_card)?;
        if let Some(mutant) = mutant {
            prepared.patch(mutant)?;
        }
        Ok(prepared)
    }

    fn disturbed(&self, seed: u64, board: &BoardSpec, mutant: Option<&Mutant>) -> Result<Outcome> {
        let command = chaos::Command::of(&self.command)?;
        let drawn = Drawn::of(seed, board);
        let mut board = board.clone();
        board.core.victims = drawn.victims;
        let mut prepared = chaos::prepare(&self.target, &board)?;
        if let Some(mutant) = mutant {
            prepared.patch(mutant)?;
        }
        let vmlinux = prepared.files.vmlinux.as_deref();
        let known = KernelPlaces::of(&Symbols::of(vmlinux), vmlinux);
        known.note_what_lacks(&prepared.files.image);
        let note = |line: &str| eprintln!("{line}");
        let snapshots = self.snapshots(false);
        let session = Session::booted(&snapshots, &board, 1, &prepared.boot(), &note)?;
        let machine = session.into_machine();
        let work = command.work(seed)?;
        let ran = unchecked::run(machine, (seed, drawn), &known, &work, self.limit)?;
        write_bytes(&ran.said);
        if self.counters {
            println!("cycles {}\ninstructions {}", ran.cycles, ran.instructions);
            println!("interrupts {}", ran.interrupts);
        }
        match ran.ended {
            RunEnd::Finished(Some(0)) => Ok(Outcome::Done),
            RunEnd::Finished(status) => {
                let status = status.unwrap_or_default();
                markers::check_that_it_ran(status, "")?;
                eprintln!("the command ended with {status}");
                Ok(Outcome::No)
            }
            ended => {
                let names = Names::of(vmlinux);
                bail!(
                    "the run ended early: {}, at {}",
                    ended.word(),
                    names.place(ran.pc)
                )
            }
        }
    }

    /// Returns cached snapshots for boots that are likely to be repeated. Returns no snapshots for other boots.
    fn snapshots(&self, has_input: bool) -> Snapshots {
        let common = self.target.is_common() && self.mutant.is_none() && !has_input;
        Snapshots::cached_if(common && !self.fresh_boot)
    }

    /// Runs the command on the board. The network begins after the boot, so that a snapshot of the boot has none of it.
    fn on_board(
        &self,
        board: &BoardSpec,
        prepared: &Prepared,
        typed: &Typed,
        Around { mut network, card }: Around,
    ) -> Result<GuestRun> {
        let boot = prepared.boot();
        let note = |line: &str| eprintln!("{line}");
        let mut session = match &card {
            Some(card) => Session::boot_with_card(board, 1, &boot, card)?,
            None => Session::booted(&self.snapshots(typed.reads()), board, 1, &boot, &note)?,
        };
        if let Some(network) = &network {
            network.plug(&mut session.cables());
        }
        let peer: &mut dyn Peer = match &mut network {
            Some(network) => network,
            None => &mut NoPeer,
        };
        let began_s = session.seconds();
        let measured = session.run_beside(typed, self.limit, peer)?;
        let (output, status) = typed.ended(&measured.console)?;
        let fetched = fetched::all(&self.fetch, &mut |typed| {
            let measured = session.run_beside(typed, self.limit, peer)?;
            typed.ended(&measured.console)
        });
        let kernel_messages = match status {
            0 => Vec::new(),
            _ => kernel_log::since(&mut session, began_s),
        };
        let refused = network.as_ref().map(Network::notes).unwrap_or_default();
        for note in session.notes().iter().chain(&refused) {
            eprintln!("note: {note}");
        }
        if let Some(card) = &card {
            let well = status == 0 && fetched.is_ok();
            let note = card.end(session.cables().card(), well)?;
            note.iter().for_each(|note| eprintln!("note: {note}"));
        }
        Ok(GuestRun {
            output,
            status,
            took: Some(measured.whole),
            fetched,
            kernel_messages,
        })
    }

    fn on_qemu(
        &self,
        cpu: &str,
        board: &BoardSpec,
        prepared: &Prepared,
        typed: &Typed,
    ) -> Result<GuestRun> {
        let linux = &prepared.linux;
        let root = linux.initrd.as_ref().map_or(&[][..], |root| &root.bytes);
        let mut qemu = Qemu::start(&Start {
            kernel: &linux.kernel.bytes,
            dtb: &prepared.files.dtb,
            root,
            command_line: &linux.command_line,
            ram_bytes: board.ram_bytes,
            machine: qemu::machine_of(board)?,
            cpu,
            plugin: None,
        })?;
        let ran = qemu.wait_for_prompt().and_then(|()| qemu.run(typed));
        let (output, status) = ran.map_err(|error| Failure {
            message: format!("{error:#}{}", markers::last_words(qemu.console())),
            console: qemu.console().to_vec(),
        })?;
        let fetched = fetched::all(&self.fetch, &mut |typed| qemu.run(typed));
        Ok(GuestRun {
            output,
            status,
            took: None,
            fetched,
            kernel_messages: Vec::new(),
        })
    }
}
