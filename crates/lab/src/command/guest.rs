// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch guest`: boot, run one command, show what it printed; on a board of ours, or on QEMU's
//! versatilepb, which has no caches: what goes wrong on a board alone is a matter of caches.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use board::spec;

use crate::Outcome;
use crate::base::boards;
use crate::rig::boot::{Prepared, Recipe, is_path};
use crate::rig::qemu::{self, Qemu, Start};
use crate::rig::session::Session;
use crate::rig::snapshot::Snapshots;

use crate::runs::markers;
use crate::runs::run::Window;
use crate::supply::image;
use crate::supply::kernel;
use crate::supply::mutant;

/// Board seconds that a command may take when nobody says.
const LIMIT_S: f64 = 300.0;

/// Boot, run one command in the guest and show what it printed: exit 1 when it failed
#[derive(clap::Args)]
pub struct Args {
    /// Name of a board, or a path to a board file
    #[arg(long, value_name = "BOARD", default_value = spec::DEFAULT_BOARD)]
    board: String,
    /// Name of a kernel, or a path to a zImage or Image
    #[arg(long, value_name = "KERNEL", default_value = "plain")]
    kernel: String,
    /// Device tree for a kernel given by path
    #[arg(long, value_name = "FILE")]
    dtb: Option<PathBuf>,
    /// Run it on QEMU's versatilepb, with the board's size of RAM
    #[arg(long, value_name = "CPU", num_args = 0..=1, require_equals = true,
          default_missing_value = qemu::ARM926)]
    qemu: Option<String>,
    /// More of the kernel's command line
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    append: String,
    /// Take out a maintenance operation first: a mutant's name, or FILE:NAME
    #[arg(long, value_name = "MUTANT")]
    mutant: Option<String>,
    /// Board time the command may take, in seconds; on QEMU there is no limit
    #[arg(long, value_name = "SECONDS", default_value_t = LIMIT_S)]
    limit: f64,
    /// Then say what the command took on the board: cycles and the core's counters
    #[arg(long, conflicts_with = "qemu")]
    counters: bool,
    /// Boot, instead of going on from the snapshot of an earlier boot
    #[arg(long, conflicts_with = "qemu")]
    fresh_boot: bool,
    /// What to run in the guest
    #[arg(last = true, value_name = "CMD", required = true)]
    command: Vec<String>,
}

/// What came of the command.
struct Ran {
    text: String,
    status: i32,
    /// On a board.
    took: Option<Window>,
}

/// Runs.
pub fn execute(args: &Args) -> Result<Outcome> {
    if !(args.limit > 0.0 && args.limit.is_finite()) {
        bail!("--limit {}: not a number of seconds above 0", args.limit);
    }
    let prepared = args.prepared()?;
    let result = match &args.qemu {
        Some(cpu) => args.on_qemu(cpu, &prepared),
        None => args.on_board(&prepared),
    };
    match result {
        Ok(ran) => {
            println!("{}", ran.text);
            if let Some(took) = ran.took.filter(|_| args.counters) {
                println!("cycles {}", took.cycles);
                for (name, value) in took.counters {
                    println!("{name} {value}");
                }
            }
            if ran.status == 0 {
                return Ok(Outcome::Done);
            }
            eprintln!("the command ended with {}", ran.status);
            Ok(Outcome::No)
        }
        Err(error) => {
            eprintln!("{error:#}");
            Ok(Outcome::No)
        }
    }
}

impl Args {
    /// Without what the mutant lacks.
    fn prepared(&self) -> Result<Prepared> {
        let mut prepared = Recipe {
            dtb: self.dtb.clone(),
            append: self.append.clone(),
            reset_on_panic: true,
            ..Recipe::of(&self.kernel)
        }
        .prepare()?;
        if let Some(text) = &self.mutant {
            let found = mutant::named(text, || kernel::mutants(&self.kernel))?;
            prepared.patch(&found)?;
        }
        Ok(prepared)
    }

    /// Boots that come once are not kept.
    fn snapshots(&self) -> Snapshots {
        let common = self.append.is_empty() && self.mutant.is_none() && !is_path(&self.kernel);
        Snapshots::cached_if(common && !self.fresh_boot)
    }

    fn on_board(&self, prepared: &Prepared) -> Result<Ran> {
        let (board, _) = boards::load(&self.board)?;
        let boot = prepared.boot();
        let note = |line: &str| eprintln!("{line}");
        let mut session = Session::booted(&self.snapshots(), &board, 1, &boot, &note)?;
        let measured = session.run_guest(&self.command.join(" "), self.limit)?;
        let console = String::from_utf8_lossy(&measured.console);
        let (text, status) = markers::between_markers(&console)?;
        Ok(Ran {
            text: text.to_string(),
            status,
            took: Some(measured.whole),
        })
    }

    fn on_qemu(&self, cpu: &str, prepared: &Prepared) -> Result<Ran> {
        let (board, _) = boards::load(&self.board)?;
        let linux = &prepared.linux;
        let mut qemu = Qemu::start(&Start {
            kernel: &linux.kernel.bytes,
            dtb: &prepared.files.dtb,
            root: &image::root_fs()?.cpio,
            command_line: &linux.command_line,
            ram_bytes: board.ram_bytes,
            cpu,
            plugin: None,
        })?;
        let ran = qemu
            .wait_for_prompt()
            .and_then(|()| qemu.run_guest(&self.command.join(" ")));
        let (text, status) = ran.with_context(|| qemu.last_words())?;
        Ok(Ran {
            text,
            status,
            took: None,
        })
    }
}
