// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a scope's recording as VCD or as FST. Every waveform viewer reads VCD. FST suits long recordings. Times are
//! nanoseconds since power-on.

use std::io::{Cursor, Write};

use anyhow::{Result, bail};
use board::bus::Edge;
use board::instrument::Capture;
use fst_writer::{
    FstFileType, FstHeaderWriter, FstInfo, FstScopeType, FstSignalType, FstVarDirection, FstVarType,
};
use vcd::{IdCode, SimulationCommand, TimescaleUnit, Value};

use base::time::nanoseconds;

/// A recording with its time base.
pub struct Waveform<'a> {
    pub capture: &'a Capture,
    /// Pins with a probe.
    pub channels: &'a [u8],
    pub cpu_hz: u64,
    /// Core cycle at which the recording ends.
    pub end: u64,
}

impl Waveform<'_> {
    /// Returns the first and the last nanosecond of the part of the recording in which no edges were lost.
    fn span(&self) -> Result<(u64, u64)> {
        let Some(from) = self.capture.from else {
            bail!("the trigger never fired, so there is no recording to write");
        };
        let end = self.capture.lost_from.unwrap_or(self.end);
        Ok((self.ns(from), self.ns(end)))
    }

    fn ns(&self, cycle: u64) -> u64 {
        nanoseconds(cycle, self.cpu_hz)
    }

    fn initial(&self, pin: u8) -> bool {
        self.capture.initial >> pin & 1 != 0
    }

    /// Returns the comment of the file.
    fn remark(&self) -> String {
        let lost = match self.capture.lost {
            0 => "no edge lost".to_string(),
            n => format!("memory full at the end of this file: {n} more edges lost"),
        };
        format!("core clock {} Hz; {lost}", self.cpu_hz)
    }

    /// Writes VCD.
    pub fn vcd(&self, out: impl Write) -> Result<()> {
        let (from, end) = self.span()?;
        let mut writer = vcd::Writer::new(out);
        writer.version(concat!("warmswitch ", env!("CARGO_PKG_VERSION")))?;
        writer.comment(&self.remark())?;
        writer.timescale(1, TimescaleUnit::NS)?;
        writer.add_module("gpio0")?;
        let mut wires: [Option<IdCode>; 8] = [None; 8];
        for pin in self.channels {
            wires[usize::from(*pin)] = Some(writer.add_wire(1, &format!("pin{pin}"))?);
        }
        writer.upscope()?;
        writer.enddefinitions()?;
        writer.timestamp(from)?;
        writer.begin(SimulationCommand::Dumpvars)?;
        for pin in self.channels {
            if let Some(wire) = wires[usize::from(*pin)] {
                writer.change_scalar(wire, Value::from(self.initial(*pin)))?;
            }
        }
        writer.end()?;
        let mut now = from;
        for Edge { cycle, pin, level } in &self.capture.edges {
            let at = self.ns(*cycle);
            if at != now {
                writer.timestamp(at)?;
                now = at;
            }
            if let Some(wire) = wires[usize::from(*pin)] {
                writer.change_scalar(wire, Value::from(*level))?;
            }
        }
        if end > now {
            writer.timestamp(end)?;
        }
        writer.flush()?;
        Ok(())
    }

    /// Returns the bytes of an FST file.
    pub fn fst(&self) -> Result<Vec<u8>> {
        let (from, end) = self.span()?;
        let info = FstInfo {
            start_time: from,
            timescale_exponent: -9,
            version: format!(
                "warmswitch {}; {}",
                env!("CARGO_PKG_VERSION"),
                self.remark()
            ),
            // Without a date, equal recordings give equal bytes.
            date: String::new(),
            file_type: FstFileType::Verilog,
        };
        let mut header = FstHeaderWriter::new(Cursor::new(Vec::new()), &info)?;
        header.scope("gpio0", "", FstScopeType::Module)?;
        let mut wires = [None; 8];
        for pin in self.channels {
            let wire = header.var(
                format!("pin{pin}"),
                FstSignalType::bit_vec(1),
                FstVarType::Wire,
                FstVarDirection::Implicit,
                None,
            )?;
            wires[usize::from(*pin)] = Some(wire);
        }
        header.up_scope()?;
        let mut body = header.finish()?;
        let bit = |level| if level { b"1" } else { b"0" };
        body.time_change(from)?;
        for pin in self.channels {
            if let Some(wire) = wires[usize::from(*pin)] {
                body.signal_change(wire, bit(self.initial(*pin)))?;
            }
        }
        for Edge { cycle, pin, level } in &self.capture.edges {
            body.time_change(self.ns(*cycle))?;
            if let Some(wire) = wires[usize::from(*pin)] {
                body.signal_change(wire, bit(*level))?;
            }
        }
        body.time_change(end)?;
        Ok(body.finish()?.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use wellen::simple;

    const HZ: u64 = 180_000_000;

    /// Pulses of 50 us every 200 us on pin 2. Pin 0 answers each pulse, with a growing delay.
    fn capture() -> Capture {
        let mut edges = Vec::new();
        for n in 0..20 {
            let start = 181_000_000 + n * 36_000;
            let answer = start + 3_001 + n * 7;
            let toggles = [
                (start, 2, true),
                (answer, 0, true),
                (answer + 400, 0, false),
            ];
            edges.extend(toggles);
            edges.push((start + 9_000, 2, false));
        }
        edges.sort();
        let edge = |(cycle, pin, level)| Edge { cycle, pin, level };
        let edges: Vec<Edge> = edges.into_iter().map(edge).collect();
        Capture {
            from: Some(edges[0].cycle),
            initial: 0,
            edges,
            lost: 0,
            lost_from: None,
        }
    }

    fn waveform(capture: &Capture) -> Waveform<'_> {
        Waveform {
            capture,
            channels: &[2, 0],
            cpu_hz: HZ,
            end: 182_000_000,
        }
    }

    fn vcd(capture: &Capture) -> Vec<u8> {
        let mut bytes = Vec::new();
        waveform(capture).vcd(&mut bytes).unwrap();
        bytes
    }

    /// Reads the edges after `from` with the library of a viewer. An edge has nanoseconds, pin and level.
    fn seen(bytes: Vec<u8>, from: u64) -> Vec<(u64, u8, bool)> {
        let mut wave = simple::read_from_reader(Cursor::new(bytes)).unwrap();
        let vars: Vec<(String, wellen::SignalRef)> = {
            let h = wave.hierarchy();
            h.iter_vars()
                .map(|v| (v.full_name(h), v.signal_ref()))
                .collect()
        };
        let refs: Vec<_> = vars.iter().map(|v| v.1).collect();
        wave.load_signals(&refs);
        let times = wave.time_table().to_vec();
        let mut all = Vec::new();
        for (name, signal) in vars {
            let pin: u8 = name.strip_prefix("gpio0.pin").unwrap().parse().unwrap();
            let changes = wave.get_signal(signal).unwrap().iter_changes();
            for (index, value) in changes {
                if times[index as usize] <= from {
                    continue; // the levels at the beginning
                }
                let level = value.to_bit_string().unwrap() == "1";
                all.push((times[index as usize], pin, level));
            }
        }
        all.sort();
        all
    }

    fn recorded(capture: &Capture, skip: usize) -> Vec<(u64, u8, bool)> {
        let edges = capture.edges.iter().skip(skip);
        let mut all: Vec<_> = edges
            .map(|e| (nanoseconds(e.cycle, HZ), e.pin, e.level))
            .collect();
        all.sort();
        all
    }

    #[test]
    fn a_viewers_library_sees_every_edge_where_the_scope_said() {
        let mut capture = capture();
        // This recording begins without a trigger. Therefore, all its edges come after its beginning.
        capture.from = Some(180_999_000);
        let from = nanoseconds(180_999_000, HZ);
        assert_eq!(seen(vcd(&capture), from), recorded(&capture, 0));
        let fst = waveform(&capture).fst().unwrap();
        assert_eq!(seen(fst, from), recorded(&capture, 0));
    }

    #[test]
    fn the_edge_that_triggered_is_in_the_file() {
        let capture = capture();
        let text = String::from_utf8(vcd(&capture)).unwrap();
        let body = text.split("$enddefinitions $end\n").nth(1).unwrap();
        let start = "#1005555556\n$dumpvars\n0!\n0\"\n$end\n1!\n#1005572228\n1\"\n";
        assert!(body.starts_with(start), "{body}");
        assert!(text.contains("core clock 180000000 Hz; no edge lost"));
    }

    #[test]
    fn what_was_lost_is_said_and_the_file_ends_there() {
        let mut capture = capture();
        capture.lost = 5;
        capture.lost_from = Some(181_900_000);
        let text = String::from_utf8(vcd(&capture)).unwrap();
        assert!(text.contains("5 more edges lost"), "{text}");
        assert!(text.ends_with("#1010555556\n"), "{text}");
    }

    #[test]
    fn without_a_trigger_there_is_nothing_to_write() {
        let empty = Capture::default();
        let error = waveform(&empty).fst().unwrap_err().to_string();
        assert!(error.starts_with("the trigger never fired"), "{error}");
    }

    #[test]
    fn the_same_recording_gives_the_same_bytes() {
        let capture = capture();
        assert_eq!(vcd(&capture), vcd(&capture));
        assert_eq!(
            waveform(&capture).fst().unwrap(),
            waveform(&capture).fst().unwrap()
        );
    }

    /// sigrok converts the file to samples. Then it writes the changes of the samples, with times that start at 0.
    #[test]
    #[ignore = "needs sigrok-cli"]
    fn sigrok_sees_every_edge_where_the_scope_said() {
        let capture = capture();
        let name = format!("warmswitch-{}.vcd", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, vcd(&capture)).unwrap();
        let output = Command::new("sigrok-cli")
            .args(["-I", "vcd", "-O", "vcd", "-i"])
            .arg(&path)
            .output()
            .expect("sigrok-cli is installed");
        std::fs::remove_file(&path).unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let vcd = text.lines().filter(|line| !line.starts_with("META"));
        let vcd: String = vcd.flat_map(|line| [line, "\n"]).collect();
        let first = nanoseconds(capture.edges[0].cycle, HZ);
        assert_eq!(changes(&vcd, first), recorded(&capture, 1));
    }

    /// Returns the changes after the first time stamp of a VCD file. Times count from `first`.
    fn changes(text: &str, first: u64) -> Vec<(u64, u8, bool)> {
        let mut parser = vcd::Parser::new(text.as_bytes());
        let header = parser.parse_header().unwrap();
        let wire = |pin: u8| {
            let path = ["libsigrok", &format!("pin{pin}")];
            header.find_var(&path).expect("the channel").code
        };
        let wires = [(wire(2), 2), (wire(0), 0)];
        let (mut now, mut all) = (0, Vec::new());
        for command in parser {
            match command.unwrap() {
                vcd::Command::Timestamp(at) => now = at,
                vcd::Command::ChangeScalar(code, value) if now > 0 => {
                    let (_, pin) = wires.iter().find(|w| w.0 == code).unwrap();
                    all.push((first + now, *pin, value == Value::V1));
                }
                _ => {}
            }
        }
        all.sort();
        all
    }
}
