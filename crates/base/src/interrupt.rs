// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C. The first Ctrl-C asks all work to stop at the next safe point, so that measurements are saved and the
//! terminal is restored. The second Ctrl-C ends the program at once.

use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::parallel::lock;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Running process groups that this program started.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Interval at which waiting loops check for a request to stop.
const OFTEN: Duration = Duration::from_millis(50);
/// Time that a process group has between SIGTERM and SIGKILL.
const PATIENCE: Duration = Duration::from_secs(2);

/// Exit code of a program that Ctrl-C ended, as shells report it.
const INTERRUPTED: i32 = 130;

/// Installs the handler for Ctrl-C, SIGTERM and SIGHUP. Call it once.
pub fn install() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            crate::terminal::restore();
            for group in lock(&GROUPS).iter() {
                let _ = kill_process_group(*group, Signal::KILL);
            }
            std::process::exit(INTERRUPTED);
        }
        eprintln!("\nstopping; measurements are kept (Ctrl-C again ends at once)");
    })?;
    Ok(())
}

/// Returns whether the user asked to stop.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// A child program and all processes that it starts, in a separate process group. Dropping the value ends the group.
pub struct Group {
    child: Child,
    pid: Option<Pid>,
    /// Whether a request to stop ends the group.
    stops: bool,
}

impl Group {
    /// Starts a program in a new process group.
    pub fn spawn(command: &mut Command) -> std::io::Result<Group> {
        let child = command.process_group(0).spawn()?;
        let pid = Pid::from_raw(child.id() as i32);
        lock(&GROUPS).extend(pid);
        let stops = true;
        Ok(Group { child, pid, stops })
    }

    /// Waits until the program ends, and calls `meanwhile` every 50 ms. Fails when the user asks to stop.
    pub fn wait(&mut self, mut meanwhile: impl FnMut()) -> Result<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if self.stops && asked() {
                self.end();
                bail!("stopped");
            }
            meanwhile();
            std::thread::sleep(OFTEN);
        }
    }

    /// Passes the program's standard output to `each`, piece by piece, and waits until the program ends. Fails when the
    /// user asks to stop, or when `each` fails.
    pub fn read(&mut self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<ExitStatus> {
        let (sender, receiver) = channel();
        if let Some(stdout) = self.child.stdout.take() {
            forward(stdout, sender);
        }
        loop {
            match receiver.recv_timeout(OFTEN) {
                Ok(piece) => each(&piece)?,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.stops && asked() {
                self.end();
                bail!("stopped");
            }
        }
        self.wait(|| {})
    }

    /// Ends the whole group. Sends SIGTERM first and SIGKILL later.
    fn end(&mut self) {
        let Some(pid) = self.pid else { return };
        let _ = kill_process_group(pid, Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(OFTEN);
        }
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
        lock(&GROUPS).retain(|pid| Some(*pid) != self.pid);
    }
}

/// Starts a thread that sends the contents of a pipe, piece by piece.
fn forward(mut pipe: impl Read + Send + 'static, sender: Sender<Vec<u8>>) {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
}

/// Runs a program as [`Command::output`] does. Fails when the user asks to stop while the program runs. A program that
/// starts after such a request runs to its end, because saving measurements needs the program.
pub fn output(command: &mut Command) -> Result<Output> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let stops = !asked();
    let mut group = Group::spawn(command)?;
    group.stops = stops;
    let (sender, receiver) = channel();
    if let Some(pipe) = group.child.stderr.take() {
        forward(pipe, sender);
    }
    let mut stdout = Vec::new();
    let status = group.read(|piece| {
        stdout.extend(piece);
        Ok(())
    })?;
    let stderr = receiver.iter().flatten().collect();
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_says_comes_whole_with_its_status() {
        let script = "yes | head -c 300000; echo bad >&2; exit 3";
        let output = output(Command::new("sh").args(["-c", script])).unwrap();
        assert_eq!(
            (output.stdout.len(), output.status.code()),
            (300_000, Some(3))
        );
        assert_eq!(output.stderr, b"bad\n");
    }

    #[test]
    fn a_group_that_is_left_ends_with_what_it_started() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 1000 & echo $!; wait"])
            .stdout(Stdio::piped());
        let mut group = Group::spawn(&mut command).unwrap();
        let mut line = Vec::new();
        let left = group.read(|piece| {
            line.extend(piece);
            bail!("left")
        });
        assert!(left.is_err());
        drop(group);
        let pid = String::from_utf8(line).unwrap();
        // A signal ends a process only when the process is scheduled again.
        let stat = format!("/proc/{}/stat", pid.trim());
        let ended = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        let begun = Instant::now();
        while !ended() && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(OFTEN);
        }
        assert!(ended(), "{pid}");
    }
}
