// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the network between the guest and the host: bytes in both directions, for clients of the host and for
//! clients in the guest.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use crate::usage::refused;

const MEGABYTE: usize = 1 << 20;

/// Returns a megabyte in which each part differs from the others.
fn megabyte() -> Vec<u8> {
    (0..MEGABYTE as u32 / 4)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect()
}

/// Starts a command in a guest whose port 7 is forwarded. Returns the host's port.
fn guest(command: &str) -> (Child, u16, BufReader<ChildStderr>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_warmswitch"))
        .args([
            "guest",
            "--forward",
            "0:7",
            "--host-loopback",
            "--",
            command,
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains("leads to port 7") {
        line.clear();
        assert_ne!(errors.read_line(&mut line).expect("text"), 0, "no port");
    }
    let port = line.split([':', ' ']).find_map(|word| word.parse().ok());
    (child, port.expect("a port"), errors)
}

/// Sends bytes to a port and ends the direction. Returns the answer, or `None` if the guest refuses the connection.
fn exchange(port: u16, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the program listens");
    let mut writer = stream.try_clone().expect("a second handle");
    let bytes = bytes.to_vec();
    let sender = std::thread::spawn(move || {
        let sent = writer.write_all(&bytes);
        let _ = writer.shutdown(Shutdown::Write);
        sent.is_ok()
    });
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let sent = sender.join().expect("no panic");
    (sent && read.is_ok()).then_some(answer)
}

#[test]
#[ignore = "needs the kernel"]
fn a_megabyte_goes_to_the_guest_and_back_and_the_guest_fetches_another() {
    let all = megabyte();
    let far = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let far_port = far.local_addr().expect("its address").port();
    let (child, port, mut errors) = guest(&format!(
        "network-up sh -c 'busybox nc -l -p 7 -e cat; busybox nc 10.0.0.1 {far_port} </dev/null | sha256sum'"
    ));
    // Until the guest's server listens, the guest refuses connections.
    let end = Instant::now() + Duration::from_secs(120);
    let answer = loop {
        match exchange(port, &all) {
            Some(answer) => break answer,
            None => assert!(Instant::now() < end, "the guest does not listen"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(answer == all, "{} bytes came back", answer.len());
    let (mut stream, _) = far.accept().expect("the guest connects");
    stream.write_all(&all).expect("the guest reads");
    drop(stream);
    let output = child.wait_with_output().expect("it ends");
    let mut said = String::new();
    errors.read_to_string(&mut said).expect("text");
    assert_eq!(output.status.code(), Some(0), "{said}");
    let printed = String::from_utf8_lossy(&output.stdout);
    let sum = host_sum(&all);
    assert!(printed.contains(&sum), "no {sum} in: {printed}{said}");
}

/// Returns the SHA-256 of the bytes, by the host's program.
fn host_sum(bytes: &[u8]) -> String {
    let mut child = Command::new("sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sha256sum starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(bytes).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split(' ').next().unwrap_or_default().to_string()
}

#[test]
fn a_taken_port_and_options_that_compare_runs_are_refused_with_the_network() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("its address").port();
    let forward = format!("{port}:22");
    let place = format!("127.0.0.1:{port}");
    for verb in ["boot", "guest", "net"] {
        let words = [verb, "--forward", &forward, "--", "true"];
        refused(&words, &["--forward", &place, "in use"]);
        let words = [verb, "--forward", "22", "--", "true"];
        refused(&words, &["--forward", "[ADDR:]PORT:GUEST_PORT"]);
        let words = [verb, "--host-loopback", "--", "true"];
        refused(&words, &["--forward"]);
    }
    for (verb, option) in [
        ("boot", "--json"),
        ("guest", "--counters"),
        ("guest", "--qemu"),
        ("guest", "--chaos=1"),
        ("net", "--flood"),
        ("net", "--ping-hz=5"),
    ] {
        let name = option.split('=').next().unwrap_or(option);
        let words = [verb, option, "--forward", "0:22", "--", "true"];
        refused(&words, &["--forward", name]);
    }
}
