// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots a kernel and prints its console: `boot KERNEL DTB INITRD|- SECONDS [BOARD [CMDLINE [INPUT]]]`. INPUT is typed
//! at the first prompt `# `.

use board::boot::{Blob, Boot, LinuxBoot};
use board::{BoardSpec, Machine, Stop};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kernel, dtb, initrd, seconds, rest @ ..] = args.as_slice() else {
        return Err("usage: boot KERNEL DTB INITRD|- SECONDS [BOARD [CMDLINE [INPUT]]]".into());
    };
    let board = rest
        .first()
        .map_or(board::spec::DEFAULT_BOARD, String::as_str);
    let command_line = rest
        .get(1)
        .map_or("console=ttyAMA0 earlycon=pl011,0x101f1000", |c| c);
    let boot = Boot::Linux(LinuxBoot {
        kernel: Blob::read(Path::new(kernel))?,
        place: None,
        dtb: Blob::read(Path::new(dtb))?,
        initrd: if initrd == "-" {
            None
        } else {
            Some(Blob::read(Path::new(initrd))?)
        },
        command_line: command_line.to_owned(),
        overrides: Vec::new(),
    });
    let mut machine = Machine::new(BoardSpec::named(board)?, &boot)?;
    let limit = (seconds.parse::<f64>()? * machine.spec().cpu_hz as f64) as u64;
    let started = Instant::now();
    if let Some(input) = rest.get(2)
        && machine.run_until_console(b"# ", limit) == Stop::ConsoleMatched
    {
        machine.send(input.as_bytes());
        machine.send(b"\n");
    }
    let stop = loop {
        let stop = machine.run_for(Duration::from_millis(10));
        let bytes = machine.take_console();
        std::io::stdout().write_all(&bytes)?;
        std::io::stdout().flush()?;
        if stop != Stop::Limit || machine.now() >= limit {
            break stop;
        }
    };
    let host = started.elapsed().as_secs_f64();
    eprintln!("\n{}", machine.message(&stop, |_| None));
    for (name, value) in machine.counters().entries() {
        eprintln!("{name:24} {value}");
    }
    for region in machine.ignored().iter().filter(|r| r.reads + r.writes > 0) {
        eprintln!(
            "ignored {}: {} reads, {} writes",
            region.name, region.reads, region.writes
        );
    }
    let millions = machine.counters().instructions as f64 / 1e6;
    eprintln!("{host:.2} s host, {:.2} M instructions/s", millions / host);
    eprintln!("memory {}", machine.memory_hash());
    Ok(())
}
