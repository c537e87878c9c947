// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads that keep this machine busy during a measurement: the loads of the boards' experiments
//! (`guest/cyclictest/workload.toml`), run with a PC's programs.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process_group};

use super::programs::Program;
use supply::toolchain::command;

/// Time that a load runs before the measurement begins.
const HEAD_START: Duration = Duration::from_secs(1);
/// Interval at which the file is sent over TCP.
const SERVED_EVERY: Duration = Duration::from_secs(7);
const TICK: Duration = Duration::from_millis(100);
/// Size of the file in bytes: about the size of busybox, which the boards serve.
const SERVED_BYTES: usize = 1 << 20;
/// The boards read /dev/mem. On a PC, a read of /dev/mem may access devices and hang the machine. Therefore, this
/// script copies an equal amount of zeros. `$1` is the number of this process. If this process is killed without
/// cleaning up, for example by a second Ctrl-C, the loops end after their current commands.
const PAPER: &str = "while kill -0 $1; do find /; dd if=/dev/zero bs=64k count=1000; done";
/// Scripts of Atmel's load. [`Load::serve`] adds the file over TCP.
const ATMEL: [&str; 3] = [
    "while kill -0 $1; do ls -lR /; done",
    "while kill -0 $1; do dd if=/dev/zero of=/dev/null bs=512 count=1000000; done",
    "while kill -0 $1; do \"$0\" 100 1 & sleep 5; kill $!; done",
];

/// Kind of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Load of the FCSE paper: `find /` and a copy of memory, in a loop
    Paper,
    /// Atmel's load for the AT91SAM9263: `ls -lR /`, `dd`, messages killed every 5 s, a file over TCP every 7 s
    Atmel,
}

impl Kind {
    /// Name of the load in documents and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Paper => "paper",
            Kind::Atmel => "atmel",
        }
    }
}

/// A load that runs until it is dropped.
pub struct Load {
    shells: Vec<Child>,
    over: Arc<AtomicBool>,
    network: Option<JoinHandle<()>>,
}

impl Load {
    /// Starts a load, and waits for the head start.
    pub fn start(kind: Kind) -> Result<Load> {
        let mut load = Load {
            shells: Vec::new(),
            over: Arc::default(),
            network: None,
        };
        match kind {
            Kind::Paper => load.shell(PAPER, "sh")?,
            Kind::Atmel => {
                let messages = Program::own("messages").built()?;
                for script in ATMEL {
                    load.shell(script, &messages.to_string_lossy())?;
                }
                load.serve()?;
            }
        }
        thread::sleep(HEAD_START);
        Ok(load)
    }

    /// Starts a script without input and output in its own process group. Its `$0` is `name`.
    fn shell(&mut self, script: &str, name: &str) -> Result<()> {
        let mut shell = command("sh");
        let own = std::process::id().to_string();
        shell.args(["-c", script, name, &own]).process_group(0);
        shell
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.shells.push(shell.spawn().context("cannot start sh")?);
        Ok(())
    }

    /// Starts a thread that sends a file over TCP on the loopback device.
    fn serve(&mut self) -> Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .context("cannot get a TCP port for the load")?;
        let address = listener.local_addr()?;
        let over = self.over.clone();
        self.network = Some(thread::spawn(move || {
            let file = vec![0x5a; SERVED_BYTES];
            while !over.load(Ordering::Relaxed) {
                let receiver = TcpStream::connect(address).map(|mut to| {
                    thread::spawn(move || to.read_to_end(&mut Vec::new()).unwrap_or(0))
                });
                // The transfer only keeps the machine busy, so errors do not matter.
                if let (Ok((mut from, _)), Ok(reader)) = (listener.accept(), receiver) {
                    let _ = from.write_all(&file);
                    drop(from);
                    let _ = reader.join();
                }
                let next = Instant::now() + SERVED_EVERY;
                while Instant::now() < next && !over.load(Ordering::Relaxed) {
                    thread::sleep(TICK);
                }
            }
        }));
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for shell in &mut self.shells {
            let group = i32::try_from(shell.id()).ok().and_then(Pid::from_raw);
            // An error means that the group no longer has a process.
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
            let _ = shell.wait();
        }
        if let Some(network) = self.network.take() {
            let _ = network.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the processes of a group in /proc.
    fn members(group: u32) -> usize {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let stat = all.filter_map(|p| std::fs::read_to_string(p.path().join("stat")).ok());
        let of_group = stat.filter(|stat| {
            let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            let mut words = rest.split_whitespace();
            let state = words.next();
            // Fields: state, parent, group.
            words.nth(1) == Some(&group.to_string()) && state != Some("Z")
        });
        of_group.count()
    }

    #[test]
    fn a_load_runs_until_it_is_dropped_and_leaves_nothing_behind() {
        for kind in [Kind::Paper, Kind::Atmel] {
            let load = Load::start(kind).unwrap();
            let groups: Vec<u32> = load.shells.iter().map(Child::id).collect();
            let all: usize = groups.iter().map(|group| members(*group)).sum();
            assert!(all > groups.len(), "{kind:?}: {all}");
            drop(load);
            // Killed processes may take a moment to disappear.
            let gone = || groups.iter().all(|group| members(*group) == 0);
            let end = Instant::now() + Duration::from_secs(10);
            while !gone() && Instant::now() < end {
                thread::sleep(TICK);
            }
            assert!(gone(), "{kind:?}");
        }
    }
}
