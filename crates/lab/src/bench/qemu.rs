// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bench's works on QEMU's versatilepb: plain, and with the cache simulation that comes with its
//! sources (`contrib/plugins/cache.c`) as a plugin.
//!
//! Both run with a fixed virtual time per instruction (`-icount`), as ours does not depend on the
//! host's clock either.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use board::fdt::Tree;

use super::{Guest, WORKS};
use crate::paths::{self, shown};
use crate::progress::Progress;
use crate::{interrupt, sample};

/// QEMU's program.
const PROGRAM: &str = "qemu-system-arm";
/// Where distributions and `make install` put plugins.
const PLUGIN_DIRS: &[&str] = &[
    "/usr/local/lib/qemu/plugins",
    "/usr/lib/qemu/plugins",
    "/usr/lib/x86_64-linux-gnu/qemu/plugins",
    "/usr/lib/aarch64-linux-gnu/qemu/plugins",
    "/usr/libexec/qemu/plugins",
];
/// Its cache simulation, with the geometry of the default board's caches.
const PLUGIN: &str = "libcache.so";
const PLUGIN_OPTIONS: &str =
    "dcachesize=16384,dassoc=4,dblksize=32,icachesize=16384,iassoc=4,iblksize=32";
/// The SP804's clock: QEMU counts at 1 MHz, our device tree says 24 MHz.
const TIMER_CLOCK: &str = "/core-module/clock-1000000";
const QEMU_TIMER_DIVISOR: u32 = 24;
/// Virtual time an instruction takes, 2 to the power of this in ns; as slow as the default board.
const ICOUNT_SHIFT: u32 = 3;
/// Host time without a byte on the console after which QEMU counts as stuck.
const SILENCE: Duration = Duration::from_secs(120);

/// CPU seconds of each work, in the order of [`WORKS`].
pub type Times = Vec<f64>;

/// The cache plugin: the one given, else one where plugins are installed.
pub fn find_plugin(given: Option<&Path>) -> Result<Option<PathBuf>> {
    if let Some(path) = given {
        if !path.is_file() {
            bail!("--cache-plugin {}: no such file", shown(path));
        }
        return Ok(Some(std::path::absolute(path)?));
    }
    Ok(PLUGIN_DIRS
        .iter()
        .map(|dir| Path::new(dir).join(PLUGIN))
        .find(|path| path.is_file()))
}

/// QEMU's version line; `None` when it is not installed.
pub fn version() -> Option<String> {
    let output = Command::new(PROGRAM).arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .next()
        .map(str::to_owned)
}

/// Runs all works; each the best of `repeat`.
pub fn times(guest: &Guest, plugin: Option<&Path>, repeat: u32) -> Result<Times> {
    let label = if plugin.is_some() {
        "QEMU with cache plugin"
    } else {
        "QEMU"
    };
    let mut progress = Progress::new(label, u64::from(repeat) * WORKS.len() as u64);
    let dtb = paths::out().join("bench/qemu.dtb");
    paths::write_atomically(&dtb, &device_tree(guest)?)?;
    let mut best = vec![f64::INFINITY; WORKS.len()];
    for _ in 0..repeat {
        let mut qemu = Qemu::start(guest, &dtb, plugin)?;
        qemu.wait_for(sample::READY)?;
        qemu.wait_for("# ")?;
        let mut since = 0.0;
        for (work, best) in WORKS.iter().zip(&mut best) {
            for command in work.commands {
                qemu.run(command)?;
            }
            let now = qemu.cpu_s()?;
            *best = best.min(now - since);
            since = now;
            progress.step(work.name);
        }
    }
    progress.finish("done");
    Ok(best)
}

/// Our device tree with the clock that QEMU's timers count.
fn device_tree(guest: &Guest) -> Result<Vec<u8>> {
    let blob =
        fs::read(&guest.dtb).with_context(|| format!("cannot read {}", shown(&guest.dtb)))?;
    let mut tree = Tree::parse(&blob).map_err(anyhow::Error::msg)?;
    let node = tree.node(TIMER_CLOCK);
    let node = node.with_context(|| format!("{}: no node {TIMER_CLOCK}", shown(&guest.dtb)))?;
    node.set_u32("clock-div", QEMU_TIMER_DIVISOR);
    Ok(tree.to_blob())
}

struct Qemu {
    child: Child,
    stdin: ChildStdin,
    output: Receiver<Vec<u8>>,
    console: Vec<u8>,
    /// Behind what was waited for last.
    seen: usize,
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Qemu {
    fn start(guest: &Guest, dtb: &Path, plugin: Option<&Path>) -> Result<Qemu> {
        let mut command = Command::new(PROGRAM);
        command
            .args([
                "-M",
                "versatilepb",
                "-cpu",
                "arm926",
                "-no-reboot",
                "-nic",
                "none",
            ])
            .args(["-display", "none", "-monitor", "none", "-serial", "stdio"])
            .args(["-audiodev", "none,id=none"])
            .args(["-icount", &format!("shift={ICOUNT_SHIFT},sleep=off")])
            .args(["-m", &format!("{}M", guest.ram_bytes >> 20)])
            .arg("-kernel")
            .arg(&guest.zimage)
            .arg("-dtb")
            .arg(dtb)
            .arg("-initrd")
            .arg(&guest.root)
            .args(["-append", &guest.command_line]);
        if let Some(plugin) = plugin {
            command.args(["-plugin", &format!("{},{PLUGIN_OPTIONS}", plugin.display())]);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {PROGRAM}"))?;
        let stdin = child.stdin.take().context("QEMU's input")?;
        let mut stdout = child.stdout.take().context("QEMU's output")?;
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Ok(Qemu {
            child,
            stdin,
            output,
            console: Vec::new(),
            seen: 0,
        })
    }

    fn run(&mut self, command: &str) -> Result<()> {
        self.stdin
            .write_all(format!("run-guest {command}\n").as_bytes())?;
        self.stdin.flush()?;
        self.wait_for(sample::END)?;
        let status = self.seen;
        self.wait_for("\n")?;
        let status = String::from_utf8_lossy(&self.console[status..self.seen])
            .trim()
            .to_owned();
        if status != "0" {
            bail!("{PROGRAM}: {command}: ended with {status}");
        }
        Ok(())
    }

    /// Waits until the console says `text`.
    fn wait_for(&mut self, text: &str) -> Result<()> {
        let tick = Duration::from_millis(200);
        let mut silent = Duration::ZERO;
        loop {
            let new = &self.console[self.seen..];
            if let Some(at) = new.windows(text.len()).position(|w| w == text.as_bytes()) {
                self.seen += at + text.len();
                return Ok(());
            }
            match self.output.recv_timeout(tick) {
                Ok(bytes) => {
                    self.console.extend(bytes);
                    silent = Duration::ZERO;
                }
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                    bail!("{PROGRAM} ended while the bench waited for {text:?}");
                }
                Err(_) if silent >= SILENCE => bail!("{PROGRAM}: no {text:?} on the console"),
                Err(_) if interrupt::asked() => bail!("stopped"),
                Err(_) => silent += tick,
            }
        }
    }

    /// CPU time of all its threads, user and system, seconds.
    fn cpu_s(&self) -> Result<f64> {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        // Behind the name, which may hold anything: state is field 3, utime 14, stime 15.
        let fields: Vec<&str> = match text.rsplit_once(')') {
            Some((_, rest)) => rest.split_whitespace().collect(),
            None => Vec::new(),
        };
        let ticks = |n: usize| fields.get(n - 3).and_then(|f| f.parse::<u64>().ok());
        let (user, system) = ticks(14)
            .zip(ticks(15))
            .with_context(|| format!("{path}: no times"))?;
        Ok((user + system) as f64 / rustix::param::clock_ticks_per_second() as f64)
    }
}
