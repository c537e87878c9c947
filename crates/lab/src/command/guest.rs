// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch guest`: boot, run one command, show what it printed; on a board of ours, or on QEMU's
//! versatilepb, which has no caches: what goes wrong on a board alone is a matter of caches.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use board::boot::{Blob, Boot, LinuxBoot};
use board::spec;

use crate::Outcome;
use crate::base::boards;
use crate::base::paths::shown;
use crate::rig::qemu::{self, Qemu, Start};
use crate::rig::session;
use crate::rig::session::Session;
use crate::rig::snapshot::Snapshots;
use crate::rig::target::{is_path, kernel_files};
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
    let kernel = args.kernel()?;
    let result = match &args.qemu {
        Some(cpu) => args.on_qemu(cpu, &kernel),
        None => args.on_board(kernel),
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

/// A kernel, without what the mutant lacks, and what it is given.
struct Kernel {
    image: Blob,
    dtb: PathBuf,
    modules: Option<PathBuf>,
    command_line: String,
}

impl Args {
    fn kernel(&self) -> Result<Kernel> {
        let files = kernel_files(&self.kernel, self.dtb.as_deref(), None)?;
        let mut image = Blob::read(&files.image)?;
        if let Some(text) = &self.mutant {
            let found = mutant::named(text, || kernel::mutants(&self.kernel))?;
            let Some(vmlinux) = &files.vmlinux else {
                let file = shown(&files.image);
                bail!("--mutant {text}: {file} has no vmlinux with symbols beside it");
            };
            mutant::apply(&mut image.bytes, vmlinux, &found)?;
        }
        let parts = [
            &files.command_line,
            session::CMDLINE,
            session::RESET_ON_PANIC,
            &self.append,
        ];
        Ok(Kernel {
            image,
            dtb: files.dtb,
            modules: files.modules,
            command_line: session::command_line(&parts),
        })
    }

    /// Boots that come once are not kept.
    fn snapshots(&self) -> Snapshots {
        let common = self.append.is_empty() && self.mutant.is_none() && !is_path(&self.kernel);
        Snapshots::cached_if(common && !self.fresh_boot)
    }

    fn on_board(&self, kernel: Kernel) -> Result<Ran> {
        let (board, _) = boards::load(&self.board)?;
        let boot = Boot::Linux(LinuxBoot {
            kernel: kernel.image,
            dtb: Blob::read(&kernel.dtb)?,
            initrd: Some(session::initrd(
                &image::root_fs()?.cpio,
                kernel.modules.as_deref(),
            )?),
            command_line: kernel.command_line,
            overrides: Vec::new(),
        });
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

    fn on_qemu(&self, cpu: &str, kernel: &Kernel) -> Result<Ran> {
        let (board, _) = boards::load(&self.board)?;
        let root = image::root_fs()?.cpio;
        let mut qemu = Qemu::start(&Start {
            kernel: &kernel.image.bytes,
            dtb: &kernel.dtb,
            root: &root,
            command_line: &kernel.command_line,
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
