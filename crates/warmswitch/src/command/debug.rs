// SPDX-License-Identifier: MIT OR Apache-2.0
//! `warmswitch debug`: runs the board under gdb, from before its first instruction.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use board::Machine;
use gdbstub::stub::{DisconnectReason, GdbStub};

use crate::Outcome;
use crate::command::boot;
use crate::command::examples::Help;
use crate::gdb::link::Link;
use crate::gdb::{Debuggee, EventLoop};
use base::paths::shown;
use session::target::Target;
use supply::symbols::Symbols;

/// Text at the end of this verb's `--help`.
pub const HELP: Help = Help {
    documents: "docs/use/DEBUG.md",
    examples: &[(
        "debug",
        "wait for gdb, and print the command that starts it",
    )],
};

/// Debug a guest with gdb: registers, memory, breakpoints and watchpoints
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Kernel command line, instead of warmswitch's own
    #[arg(last = true, value_name = "CMDLINE")]
    cmdline: Vec<String>,
    /// TCP port to listen on, on this machine only. 0 takes a free port
    #[arg(long, value_name = "PORT", default_value_t = 1234)]
    port: u16,
    /// Talk to gdb over standard input and output. In gdb, type `target remote | warmswitch debug --stdio`
    #[arg(long, conflicts_with = "port")]
    stdio: bool,
}

pub fn execute(args: &Args) -> Result<Outcome> {
    let place = Place::of(args.stdio, args.port)?;
    let board = args.target.check()?;
    let started = boot::power_on(&args.target, board, &args.cmdline, None)?;
    serve(started.machine, started.vmlinux.as_deref(), &place)
}

/// Connection to gdb.
pub enum Place {
    Stdio,
    Port(TcpListener),
}

impl Place {
    /// Opens the connection early, so that a port in use is an error before anything is built.
    pub fn of(stdio: bool, port: u16) -> Result<Place> {
        if stdio {
            return Ok(Place::Stdio);
        }
        let listener = TcpListener::bind(("127.0.0.1", port));
        let listener = listener.with_context(|| {
            format!("--port {port}: cannot listen on it; name another port, or 0 for a free one")
        })?;
        Ok(Place::Port(listener))
    }
}

/// Serves a machine to gdb, from its current instruction.
pub fn serve(machine: Machine, vmlinux: Option<&Path>, place: &Place) -> Result<Outcome> {
    let kernel = vmlinux.map_or("VMLINUX".to_string(), shown);
    let symbols = Symbols::of(vmlinux);
    let (link, console): (Link, crate::gdb::Console) = match place {
        Place::Stdio => (Link::stdio(), Box::new(std::io::stderr())),
        Place::Port(listener) => (
            wait_for_gdb(listener, &kernel)?,
            Box::new(std::io::stdout()),
        ),
    };
    let mut debuggee = Debuggee::new(machine, symbols, console);
    match GdbStub::new(link).run_blocking::<EventLoop>(&mut debuggee) {
        Ok(DisconnectReason::Disconnect | DisconnectReason::Kill) => Ok(Outcome::Done),
        Ok(DisconnectReason::TargetExited(_)) => Ok(Outcome::Done),
        Ok(DisconnectReason::TargetTerminated(_)) => Ok(Outcome::No),
        // gdb closed the connection, or the user pressed Ctrl-C.
        Err(error) if error.is_connection_error() || error.is_target_error() => Ok(Outcome::Done),
        Err(error) => bail!("gdb: {error}"),
    }
}

fn wait_for_gdb(listener: &TcpListener, vmlinux: &str) -> Result<Link> {
    let port = listener.local_addr()?.port();
    println!("the board waits; in another terminal:");
    println!("  gdb-multiarch {vmlinux} -ex 'target remote :{port}'");
    std::io::stdout().flush()?;
    let (stream, _) = listener
        .accept()
        .context("cannot accept the connection of gdb")?;
    Ok(Link::tcp(stream)?)
}
