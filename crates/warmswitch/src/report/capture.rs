// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the frames that the Ethernet probe recorded, in the format pcapng. A frame's time stamp is the time of its
//! first bit on the wire. Time stamps count nanoseconds since power-on, in steps of 10 ns.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use board::link::{Probe, Way};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::PcapNgBlock;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness};

/// Flag of a block: the frame went to the board.
const INBOUND: u32 = 1;
/// Flag of a block: the frame came from the board.
const OUTBOUND: u32 = 2;
/// Flag of a block: the frame's checksum is wrong.
const BAD_CHECKSUM: u32 = 1 << 24;
/// The unit of time stamps is 10 to the power of minus this number, in seconds.
const NANOSECONDS: u8 = 9;

/// Writes the frames in the order of their first bits.
pub fn pcapng(probe: &Probe, out: impl Write) -> Result<()> {
    let mut writer = PcapNgWriter::with_endianness(out, Endianness::Little)?;
    let remark = match probe.lost {
        0 => "no frame lost".to_string(),
        n => format!("memory full at the end of this file: {n} more frames lost"),
    };
    let interface = InterfaceDescriptionBlock {
        linktype: DataLink::ETHERNET,
        snaplen: 0,
        options: vec![
            InterfaceDescriptionOption::IfName("eth0 of the board".into()),
            InterfaceDescriptionOption::IfDescription(remark.into()),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ],
    };
    writer.write_block(&interface.into_block())?;
    let mut frames: Vec<_> = probe.frames.iter().collect();
    frames.sort_by_key(|frame| frame.start_ns);
    for frame in frames {
        let way = match frame.way {
            Way::ToBoard => INBOUND,
            Way::FromBoard => OUTBOUND,
        };
        let bad = if frame.bad_checksum { BAD_CHECKSUM } else { 0 };
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(frame.stamp_ns()),
            original_len: frame.bytes.len() as u32,
            data: frame.bytes.as_slice().into(),
            options: vec![EnhancedPacketOption::Flags(way | bad)],
        };
        writer.write_block(&block.into_block())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use board::link::{Fate, Frame, Rate};
    use std::process::Command;

    fn frame(way: Way, start_ns: u64, length: usize) -> Frame {
        let mut bytes = vec![0xff; 6];
        bytes.extend([2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
        bytes.resize(length, 0x5a);
        Frame {
            way,
            start_ns,
            end_ns: start_ns + Rate::Hundred.frame_ns(length),
            bytes,
            bad_checksum: false,
            fate: Fate::Taken,
        }
    }

    fn probe() -> Probe {
        let mut probe = Probe::default();
        probe.frames = vec![
            frame(Way::ToBoard, 1_000_000_007, 60),
            frame(Way::FromBoard, 1_000_313_213, 1514),
            frame(Way::ToBoard, 1_000_200_000, 61),
        ];
        probe
    }

    fn file(probe: &Probe) -> Vec<u8> {
        let mut bytes = Vec::new();
        pcapng(probe, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_same_frames_give_the_same_bytes_and_losses_are_said() {
        let mut full = probe();
        assert_eq!(file(&full), file(&full));
        full.lost = 7;
        let text = String::from_utf8_lossy(&file(&full)).into_owned();
        assert!(text.contains("7 more frames lost"));
    }

    /// Runs a program of Wireshark on the file, and returns its output.
    fn run(program: &str, before: &[&str], after: &[&str]) -> String {
        let name = format!("warmswitch-{program}-{}.pcapng", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, file(&probe())).unwrap();
        let mut command = Command::new(program);
        let output = command.args(before).arg(&path).args(after).output();
        let output = output.expect("Wireshark's programs are installed");
        std::fs::remove_file(&path).unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{program}: {text}");
        text
    }

    #[test]
    #[ignore = "needs tshark"]
    fn capinfos_and_tshark_read_every_stamp_to_the_nanosecond() {
        let infos = run("capinfos", &[], &[]);
        for part in ["pcapng", "nanoseconds (9)", "Number of packets:   3"] {
            assert!(infos.contains(part), "{infos}");
        }
        let fields = [
            "-T",
            "fields",
            "-e",
            "frame.time_epoch",
            "-e",
            "frame.len",
            "-e",
            "frame.packet_flags_direction",
        ];
        assert_eq!(
            run("tshark", &["-r"], &fields),
            "1.000000000\t60\t0x00000001\n1.000200000\t61\t0x00000001\n1.000313210\t1514\t0x00000002\n"
        );
    }
}
