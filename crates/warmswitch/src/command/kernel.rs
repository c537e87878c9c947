// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch kernel build`: fetches, verifies, configures and builds a kernel. Caches the kernel by its inputs.
//! `warmswitch kernel check-series`: checks every prefix of a version's patch series.
//! `warmswitch kernel versions`: lists the versions, and the patch series that apply to each.

mod versions;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Result, bail};
use board::BoardSpec;
use board::spec::DEFAULT_BOARD;
use clap::Subcommand;
use serde_json::json;
use watch::checker::Distinctions;

use crate::Outcome;
use crate::coherence::outside::Outside;
use crate::coherence::{self, Plan, RunEnd, page};
use crate::command::examples::Help;
use base::boards;
use base::paths;
use results::runs::markers::Typed;
use session::boot::{KernelFiles, Recipe};
use supply::image;
use supply::kernel::{self, Request, series};
use supply::symbols::Symbols;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/use/GUESTS.md, docs/understand/KERNELS.md",
    examples: &[
        (
            "kernel build 6.12/plain",
            "fetch, verify, patch, configure and build a kernel",
        ),
        (
            "kernel check-series 6.12/fcse-guaranteed",
            "each prefix builds and passes a test; with FCSE off, the code is plain Linux",
        ),
    ],
};

/// Build and check kernels for the boards
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Build(BuildArgs),
    CheckSeries(CheckArgs),
    Versions(versions::Args),
}

/// Check each patch of a version's series, and build and boot each prefix
#[derive(clap::Args)]
struct CheckArgs {
    /// Version, such as 6.12, or one of its variants, such as 6.12/fcse-guaranteed
    version: String,
    /// Number of parallel jobs [default: one per processor]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Repeat the checks of prefixes that passed earlier, for instance after a change of the simulator or a guest
    #[arg(long)]
    anew: bool,
    /// For a variant with several series, check only prefixes of at least N patches [default: 1]
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true)]
    from: usize,
}

/// Smoke test for every prefix. mm_suite skips tests of features that the prefix lacks.
const SMOKE: &str = "mm_suite --quick --only fork_cow --only exec_arguments --only shared_memory \
                     --only protect --only jit_fork --only ptrace_text --only signal_frames \
                     --only foreign_slots --only too_large --only held_by_files";
/// Smoke test for a kernel without address spaces.
const SMOKE_FLAT: &str = "sh -c 'ipc lat -v -n 100 -r 1 && lat_ctx -T -s 4 -n 50 -r 1 4'";
/// Limit of board time for a smoke test, in seconds.
const SMOKE_LIMIT_S: f64 = 120.0;

/// Fetch, verify, configure and build a kernel, unless the cache has it
#[derive(clap::Args)]
struct BuildArgs {
    /// Name of the kernel, such as 6.12/plain or plain
    name: String,
    /// Source tree to build from, instead of Debian's source package
    #[arg(long, value_name = "DIR")]
    linux: Option<PathBuf>,
    /// With --linux, a .config or defconfig, instead of the kernel's own fragments
    #[arg(long, value_name = "FILE", requires = "linux")]
    config: Option<PathBuf>,
    /// Number of parallel jobs [default: one per processor]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Look for a newer source package even if the cache has one
    #[arg(long)]
    refresh: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    match &args.verb {
        Verb::Build(args) => build(args),
        Verb::CheckSeries(args) => check_series(args),
        Verb::Versions(args) => versions::execute(args),
    }
}

fn check_series(args: &CheckArgs) -> Result<Outcome> {
    let (board, _) = boards::load(DEFAULT_BOARD)?;
    for name in series::variants(&args.version)? {
        println!("{name}");
        let request = Request {
            name,
            jobs: args.jobs.map_or(0, NonZeroUsize::get),
            ..Request::default()
        };
        series::check(
            &request,
            &series::Passed {
                test: &[SMOKE, SMOKE_FLAT].concat(),
                forget: args.anew,
                from: args.from,
            },
            &mut |prefix| works(prefix, &board),
            &mut |text| println!("  {text}"),
        )?;
    }
    Ok(Outcome::Done)
}

/// Boots a prefix and runs the smoke test under the coherence checker.
fn works(prefix: &series::Prefix, board: &BoardSpec) -> Result<()> {
    let smoke = match image::is_flat(&prefix.vmlinux) {
        true => SMOKE_FLAT,
        false => SMOKE,
    };
    let recipe = Recipe {
        files: Some(KernelFiles {
            vmlinux: Some(prefix.vmlinux.clone()),
            ..KernelFiles::bare(&prefix.image, &prefix.dtb)
        }),
        reset_on_panic: true,
        ..Recipe::default()
    };
    let boot = recipe.prepare(board)?.boot();
    let vmlinux = Some(prefix.vmlinux.as_path());
    let findings = coherence::check(
        board,
        &boot,
        &Plan {
            command: Some(&Typed::by_run_guest(smoke)),
            counted: &[],
            distinctions: Distinctions::default(),
            functions: page::functions(&Symbols::of(vmlinux), vmlinux, board.peripherals.ram_base),
            limit_s: SMOKE_LIMIT_S,
            outside: &Outside::default(),
            ends: &|_| true,
        },
    )?;
    if findings.ended != RunEnd::Finished(Some(0)) {
        let console = String::from_utf8_lossy(&findings.console);
        bail!("the smoke test failed: {:?}\n{console}", findings.ended);
    }
    Ok(())
}

fn build(args: &BuildArgs) -> Result<Outcome> {
    let kernel = kernel::build(&Request {
        name: args.name.clone(),
        linux_dir: args.linux.clone(),
        config: args.config.clone(),
        jobs: args.jobs.map_or(0, NonZeroUsize::get),
        refresh: args.refresh,
        ..Request::default()
    })?;
    if args.json {
        let document = json!({
            "kernel": kernel.record,
            "dir": kernel.dir,
            "zimage": kernel.zimage,
            "image": kernel.image,
            "vmlinux": kernel.vmlinux,
            "dtb": kernel.dtb,
            "config": kernel.config,
            "command_line": kernel.command_line,
        });
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        let record = &kernel.record;
        println!("{} {} from {}", record.name, record.release, record.source);
        println!("{}", paths::shown(&kernel.dir));
        if !kernel.command_line.is_empty() {
            println!(
                "{} is this kernel with the command line {}",
                args.name, kernel.command_line
            );
        }
    }
    Ok(Outcome::Done)
}
