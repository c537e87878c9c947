// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `boot` on a terminal. Keys must reach the guest, Ctrl-A x must leave, and the terminal's settings must be
//! restored.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

/// A terminal with `warmswitch boot` on it.
struct Terminal {
    child: Child,
    keys: File,
    /// The program's side of the terminal, to read its settings.
    screen: File,
    output: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    fn boot() -> Terminal {
        let host = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&host)
            .and_then(|()| unlockpt(&host))
            .expect("a terminal");
        let name = ptsname(&host, Vec::new()).expect("its name");
        let name = std::ffi::OsStr::from_bytes(name.as_bytes()).to_owned();
        let open = || {
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(&name)
                .expect("its screen")
        };
        let child = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
            .arg("boot")
            .stdin(open())
            .stdout(open())
            .stderr(open())
            .spawn()
            .expect("the program starts");
        let keys = File::from(host);
        let mut reader = keys.try_clone().expect("a second handle");
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Terminal {
            child,
            keys,
            screen: open(),
            output,
            seen: String::new(),
        }
    }

    /// Sends SIGTERM, as `kill` does.
    fn terminate(&self) {
        let child = Pid::from_child(&self.child);
        kill_process(child, Signal::TERM).expect("the child is there");
    }

    fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).expect("the terminal takes keys");
    }

    fn wait_for(&mut self, text: &str) {
        let end = Instant::now() + Duration::from_secs(120);
        while !self.seen.contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("no {text:?} in:\n{}", self.seen),
            }
        }
    }

    /// Returns whether the terminal collects keys into lines, which is the default setting.
    fn makes_lines(&self) -> bool {
        tcgetattr(&self.screen)
            .expect("settings")
            .local_modes
            .contains(LocalModes::ICANON)
    }
}

#[test]
#[ignore = "needs the kernel"]
fn the_terminal_is_raw_during_a_boot_and_restored_after_it() {
    let mut terminal = Terminal::boot();
    terminal.wait_for("warmswitch# ");
    assert!(!terminal.makes_lines());
    // The quotes make the echo of the command differ from the command's output.
    terminal.press(b"echo he\"\"llo\r");
    terminal.wait_for("hello");
    // Ctrl-C goes to the guest.
    terminal.press(b"sleep 1000\r");
    std::thread::sleep(Duration::from_millis(500));
    terminal.press(b"\x03");
    std::thread::sleep(Duration::from_millis(500));
    terminal.press(b"echo st\"\"atus=$?\r");
    terminal.wait_for("status=130");
    terminal.press(b"\x01x");
    assert_eq!(terminal.child.wait().expect("it ends").code(), Some(0));
    assert!(terminal.makes_lines());
}

#[test]
#[ignore = "needs the kernel"]
fn the_terminal_is_restored_when_the_program_is_told_to_end() {
    let mut terminal = Terminal::boot();
    terminal.wait_for("warmswitch# ");
    terminal.terminate();
    terminal.child.wait().expect("it ends");
    assert!(terminal.makes_lines());
}
