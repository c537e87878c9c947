// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the kernels and files of our boards in QEMU, on the machine that the board's machine file names. QEMU models
//! FCSE, but no caches.
//!
//! Each instruction takes a fixed virtual time (`-icount`). As on our boards, the guest's time therefore does not
//! depend on the host.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use board::fdt::Tree;
use board::spec::BoardSpec;

use crate::watchdog::Over;
use base::interrupt;
use base::paths::{self, shown};
use base::time::{CpuTimeOf, cpu_s_of};
use results::runs::markers::{self, Typed};

/// Name of QEMU's program.
pub const PROGRAM: &str = "qemu-system-arm";
/// QEMU's name for the core of our boards.
pub const ARM926: &str = "arm926";
/// Returns QEMU's machine with the board's peripherals.
///
/// # Errors
/// Fails when QEMU has no such machine.
pub fn machine_of(board: &BoardSpec) -> Result<&str> {
    let name = &board.peripherals.name;
    let machine = board.peripherals.qemu.as_deref();
    machine.with_context(|| {
        format!("QEMU has no machine with the peripherals of \"{name}\": choose another board")
    })
}

/// Device-tree node of the SP804's clock. In QEMU, the SP804 counts at 1 MHz; our device tree says 24 MHz.
const TIMER_CLOCK: &str = "/core-module/clock-1000000";
const QEMU_TIMER_DIVISOR: u32 = 24;
/// Virtual time per instruction: 2 to this power, in ns. QEMU is then about as slow as the default board.
const ICOUNT_SHIFT: u32 = 3;
/// Offset of the magic number in a zImage.
const ZIMAGE_AT: usize = 0x24;
const ZIMAGE_MAGIC: [u8; 4] = 0x016f_2818_u32.to_le_bytes();
/// Load address of a plain Image; the versatilepb's RAM begins at 0.
const TEXT_OFFSET: u32 = 0x8000;
/// File for QEMU's error messages.
const COMPLAINTS: &str = "stderr";
/// Host time without output on the console after which QEMU counts as stuck.
const SILENCE: Duration = Duration::from_secs(120);

/// Returns QEMU's version line. Returns `None` if QEMU is not installed.
pub fn version() -> Option<String> {
    let output = Command::new(PROGRAM).arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .next()
        .map(str::to_owned)
}

/// Returns the help of a machine of QEMU, which lists its options.
fn options(machine: &str) -> String {
    let output = Command::new(PROGRAM)
        .args(["-machine", &format!("{machine},help")])
        .output();
    let help = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    help.unwrap_or_default()
}

/// Returns QEMU's arguments for the machine and for the backend of the machine's sound chip. QEMU 10 does not start
/// unless the machine names a backend. QEMU before 8.2 cannot name a backend and warns about `-audiodev`, but reads
/// `QEMU_AUDIO_DRV`.
fn machine(name: &str, options: &str) -> Vec<String> {
    match options.contains("audiodev=") {
        true => vec![
            "-M".into(),
            format!("{name},audiodev=none"),
            "-audiodev".into(),
            "none,id=none".into(),
        ],
        false => vec!["-M".into(), name.into()],
    }
}

/// Explains the end of QEMU by its status and error messages. After a reset by the guest, the status is success.
fn why_it_ended(is_success: bool, errors: &str) -> String {
    match (is_success, errors.trim()) {
        (true, _) => format!("{PROGRAM} ended: the guest has reset the board or turned it off"),
        (false, "") => format!("{PROGRAM} ended without a message"),
        (false, errors) => format!("{PROGRAM} ended: {errors}"),
    }
}

/// Settings for a start of QEMU.
pub struct Start<'a> {
    /// zImage or plain Image.
    pub kernel: &'a [u8],
    /// The board's device tree. Its timer clock is changed for QEMU.
    pub dtb: &'a Path,
    /// Root file system.
    pub root: &'a [u8],
    /// Kernel command line.
    pub command_line: &'a str,
    /// Size of the RAM, in bytes.
    pub ram_bytes: u32,
    /// QEMU's name of the machine.
    pub machine: &'a str,
    /// QEMU's name of the core.
    pub cpu: &'a str,
    /// Argument of `-plugin`.
    pub plugin: Option<&'a str>,
}

/// Reads the board's device tree and sets the clock of QEMU's timers.
fn device_tree(dtb: &Path) -> Result<Vec<u8>> {
    let blob = fs::read(dtb).with_context(|| format!("cannot read {}", shown(dtb)))?;
    let mut tree = Tree::parse(&blob).map_err(anyhow::Error::msg)?;
    let node = tree.node(TIMER_CLOCK);
    let node = node.with_context(|| format!("{}: no node {TIMER_CLOCK}", shown(dtb)))?;
    node.set_u32("clock-div", QEMU_TIMER_DIVISOR);
    Ok(tree.to_blob())
}

/// Returns a kernel in the form that QEMU loads. QEMU would load a plain Image to the wrong address, so the Image gets
/// a U-Boot header with the right address. QEMU does not check the header's checksums.
fn loadable(kernel: &[u8]) -> Vec<u8> {
    if kernel.get(ZIMAGE_AT..ZIMAGE_AT + 4) == Some(&ZIMAGE_MAGIC[..]) {
        return kernel.to_vec();
    }
    let mut image = Vec::with_capacity(64 + kernel.len());
    // Magic, checksum, time, size, load address, entry, checksum of the data.
    let words = [
        0x2705_1956,
        0,
        0,
        kernel.len() as u32,
        TEXT_OFFSET,
        TEXT_OFFSET,
        0,
    ];
    image.extend(words.iter().flat_map(|word: &u32| word.to_be_bytes()));
    // Linux, ARM, kernel, not compressed; 32 bytes for a name.
    image.extend([5, 2, 2, 0]);
    image.extend([0; 32]);
    image.extend(kernel);
    image
}

/// A running QEMU; killed when dropped.
pub struct Qemu {
    child: Child,
    stdin: ChildStdin,
    output: Receiver<Vec<u8>>,
    console: Vec<u8>,
    /// Position in the console's log after the last awaited text.
    seen: usize,
    /// Folder with kernel, device tree and root file system, removed at the end.
    files: PathBuf,
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.files);
    }
}

impl Qemu {
    /// Starts QEMU.
    pub fn start(start: &Start<'_>) -> Result<Qemu> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let files = paths::out().join(format!("qemu/{}-{number}", std::process::id()));
        let [kernel, dtb, root] = ["kernel", "dtb", "root"].map(|name| files.join(name));
        paths::write_atomically(&root, start.root)?;
        paths::write_atomically(&kernel, &loadable(start.kernel))?;
        paths::write_atomically(&dtb, &device_tree(start.dtb)?)?;
        let complaints = fs::File::create(files.join(COMPLAINTS))?;
        let mut command = Command::new(PROGRAM);
        command
            .args(machine(start.machine, &options(start.machine)))
            .env("QEMU_AUDIO_DRV", "none")
            .args(["-cpu", start.cpu])
            .args(["-no-reboot", "-nic", "none"])
            .args(["-display", "none", "-monitor", "none", "-serial", "stdio"])
            .args(["-icount", &format!("shift={ICOUNT_SHIFT},sleep=off")])
            .args(["-m", &format!("{}M", start.ram_bytes >> 20)])
            .arg("-kernel")
            .arg(&kernel)
            .arg("-dtb")
            .arg(&dtb)
            .arg("-initrd")
            .arg(&root)
            .args(["-append", start.command_line]);
        if let Some(plugin) = start.plugin {
            command.args(["-plugin", plugin]);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints)
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
            files,
        })
    }

    /// Waits for the shell prompt of our root file system.
    pub fn wait_for_prompt(&mut self) -> Result<()> {
        self.wait_for(markers::READY)?;
        self.wait_for("# ")?;
        if markers::is_half_unpacked(&self.console) {
            bail!("{}", Over::HalfUnpacked.what());
        }
        Ok(())
    }

    /// Runs a command. Returns the command's output and status.
    pub fn run(&mut self, typed: &Typed) -> Result<(Vec<u8>, i32)> {
        let start = self.seen;
        self.stdin
            .write_all(format!("{}\n", typed.line).as_bytes())?;
        self.stdin.flush()?;
        self.wait_for(&typed.end)?;
        self.wait_for("\n")?;
        typed.ended(&self.console[start..self.seen])
    }

    /// Returns everything that the console printed.
    pub fn console(&self) -> &[u8] {
        &self.console
    }

    /// Waits until the console prints `text`.
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
                Err(RecvTimeoutError::Disconnected) => {
                    let is_success = self.child.wait()?.success();
                    let errors = fs::read_to_string(self.files.join(COMPLAINTS));
                    bail!("{}", why_it_ended(is_success, &errors.unwrap_or_default()));
                }
                Err(_) if silent >= SILENCE => bail!(
                    "{PROGRAM}: printed nothing for {} s, waiting for {text:?} on the console",
                    SILENCE.as_secs()
                ),
                Err(_) if interrupt::asked() => bail!("stopped"),
                Err(_) => silent += tick,
            }
        }
    }

    /// Returns the processor time of all threads of QEMU, user and system, in seconds.
    pub fn cpu_s(&self) -> Result<f64> {
        cpu_s_of(&self.child.id().to_string(), CpuTimeOf::Process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sound_chip_has_a_backend_where_it_can_and_complaints_are_told() {
        let new = "  append=<string>\n  audiodev=<string> - Audiodev to use for default machine devices\n";
        assert_eq!(machine("pb", new)[1], "pb,audiodev=none");
        assert_eq!(machine("pb", "  append=<string>\n"), ["-M", "pb"]);
        let warned = "audio: Device lm4549: audiodev default parameter is deprecated\n";
        assert!(why_it_ended(true, warned).ends_with("has reset the board or turned it off"));
        assert!(why_it_ended(false, "\n").ends_with("ended without a message"));
        let text = why_it_ended(
            false,
            "qemu-system-arm: no default audio driver available\n",
        );
        assert_eq!(
            text,
            "qemu-system-arm ended: qemu-system-arm: no default audio driver available"
        );
    }

    #[test]
    fn only_a_plain_image_gets_a_header_which_says_where_it_goes() {
        let mut zimage = vec![0; 64];
        zimage[ZIMAGE_AT..ZIMAGE_AT + 4].copy_from_slice(&ZIMAGE_MAGIC);
        assert_eq!(loadable(&zimage), zimage);
        let image = loadable(&[1, 2, 3, 4]);
        assert_eq!(image.len(), 68);
        assert_eq!(image[..4], [0x27, 0x05, 0x19, 0x56]);
        assert_eq!(image[12..20], [0, 0, 0, 4, 0, 0, 0x80, 0]);
        assert_eq!(image[64..], [1, 2, 3, 4]);
    }
}
