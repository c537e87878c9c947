// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of complete report texts.

use super::*;
use crate::coherence::tests::report;
use arm::Side;
use board::bus::dma::Purpose;
use watch::checker::{Buffer, Direction, LineEvent, Moment, Movement, Newest, ReportKind};

fn names() -> Names {
    Names::by_hand(&[
        (0xc000_1000, "copy_user_page"),
        (0xc001_0000, "flush_range"),
        (0xc002_0000, "set_pte"),
    ])
}

fn text(report: &Report, count: u64) -> String {
    Style {
        names: &names(),
        cpu_hz: 200_000_000,
        replay: &|at| format!("warmswitch debug {:#010x}@{}", at.pc, at.cycle),
    }
    .text(report, count)
}

#[test]
fn a_stale_read_names_both_sides_the_history_and_the_missing_operation() {
    let mut found = report();
    let event = |cycle, movement| LineEvent {
        cycle,
        pc: 0xc001_0004,
        mva: 0xb6d8_50e0,
        pa: 0x0238_50e0,
        movement,
    };
    found.since = vec![
        event(1_500_000, Movement::Fill(Side::Data)),
        event(
            1_600_000,
            Movement::WriteBack {
                halves: 2,
                victim: true,
                old: 0,
            },
        ),
    ];
    assert_eq!(
        text(&found, 212),
        "error[stale-read]: a load got old data (212 times)
  used by: 0xc0001008 copy_user_page+0x8
    a word from the D-cache at VA 0xc23850e4 (MVA 0xc23850e4), PA 0x023850e4: 0x3206e7ad instead of 0x1841f209
    cycle 2000000, 0.010000 s of board time
    Supervisor mode, address space with its page table at PA 0x00a34000
  newest value written by: 0x00010400 in user land
    through VA 0xb6d850e4 (MVA 0xb6d850e4), into a D-cache line
    cycle 1000000, 0.005000 s of board time
  newest value was: dirty in the D-cache line at MVA 0xb6d850e0
  history of the line at PA 0x023850e0 since the newest write:
    cycle 1500000: D-cache line at MVA 0xb6d850e0 filled by 0xc0010004 flush_range+0x4
    cycle 1600000: D-cache line at MVA 0xb6d850e0: upper half written back to make room by 0xc0010004 flush_range+0x4
  needed: clean the D-cache line at MVA 0xb6d850e0 (c7,c10,1), and invalidate the line at MVA 0xc23850e0 (c7,c6,1), before the read
  replay: warmswitch debug 0xc0001008@2000000
"
    );
}

#[test]
fn a_walk_says_where_the_descriptor_is_and_for_which_address() {
    let mut found = report();
    found.kind = ReportKind::UnseenDescriptor;
    found.access = Access::Walk;
    found.context.mode = 0x10;
    found.context.pc = 0x0001_0500;
    found.mva = Mva(0x0001_0500);
    found.writer.pc = 0xc002_0010;
    found.writer.mva = 0xc238_50e4;
    found.writer.space = arm::AddressSpace::new(0x00a3_8000, 0);
    found.place = Newest::Buffer;
    assert_eq!(
        text(&found, 1),
        "error[unseen-descriptor]: a table walk read a descriptor that is not the newest
  used by: 0x00010500 in user land
    the descriptor at PA 0x023850e4 for 0x00010500: 0x3206e7ad instead of 0x1841f209
    cycle 2000000, 0.010000 s of board time
    User mode, address space with its page table at PA 0x00a34000
  newest value written by: 0xc0020010 set_pte+0x10
    through VA 0xc23850e4 (MVA 0xc23850e4), into a D-cache line
    cycle 1000000, 0.005000 s of board time
    address space with its page table at PA 0x00a38000
  newest value was: in the write buffer
  history of the line at PA 0x023850e0 since the newest write: no event
  needed: drain the write buffer (c7,c10,4) after the descriptor was written
  replay: warmswitch debug 0x00010500@2000000
"
    );
}

#[test]
fn fcse_addresses_are_given_as_the_program_knows_them_and_as_the_cache_does() {
    assert_eq!(
        through(3 << 25, Mva(0x0600_8000)),
        "VA 0x00008000 (MVA 0x06008000)"
    );
    assert_eq!(
        through(3 << 25, Mva(0xc000_8000)),
        "VA 0xc0008000 (MVA 0xc0008000)"
    );
    assert!(process(3 << 25, arm::AddressSpace::new(0x4000, 2)).ends_with("ASID 2, FCSE PID 3"));
}

#[test]
fn every_kind_has_words_and_json_has_the_same_facts() {
    for wrong in ReportKind::ALL {
        let mut found = report();
        found.kind = wrong;
        assert!(text(&found, 1).starts_with(&format!("error[{}]: {}", wrong.name(), what(wrong))));
    }
    let names = names();
    let style = Style {
        names: &names,
        cpu_hz: 200_000_000,
        replay: &|_| "r".to_string(),
    };
    let json = style.json(&report(), 7);
    assert_eq!(json["wrong"], "stale-read");
    assert_eq!(json["count"], 7);
    assert_eq!(json["used"]["by"]["function"], "copy_user_page");
    assert_eq!(json["writer"]["by"]["function"], "user");
    assert_eq!(json["newest_was"], "dirty");
}

#[test]
fn a_report_names_those_who_had_to_do_with_it() {
    let mut found = report();
    let writer = Writer {
        cycle: 900_000,
        pc: 0xc002_0004,
        mva: 0xc0a1_fc80,
        path: Path::Line,
        ..Writer::default()
    };
    found.trace = Trace {
        used: vec![0xc001_0010, 0xc000_1020],
        written: vec![0xc001_0020],
        running: vec![0xc001_0020],
        mapped: vec![Mapped {
            mva: Mva(0xb6d8_50e4),
            writer,
            callers: vec![0xc001_0030],
            before: Some((writer, Vec::new())),
        }],
        switched: Some(Switch {
            cycle: 950_000,
            pc: 0xc001_0040,
            callers: Vec::new(),
        }),
        since: 900_000,
        ..Trace::default()
    };
    let text = text(&found, 1);
    for part in [
        "    called from 0xc0010010 flush_range+0x10, copy_user_page\n  newest value",
        "    called from 0xc0010020 flush_range+0x20\n    flush_range had not returned yet\n",
        "  MVA 0xb6d850e4 was mapped in cycle 900000 by: 0xc0020004 set_pte+0x4\n    called from \
         0xc0010030 flush_range+0x30\n    before that in cycle 900000 by: 0xc0020004 set_pte+0x4\n",
        "  the address space changed last in cycle 950000 by: 0xc0010040 flush_range+0x40\n",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

/// A device read the data, so the text must not name an instruction, user land, a mode or a page table.
#[test]
fn a_read_by_a_device_has_no_instruction_and_no_address_space() {
    let mut found = report();
    found.kind = ReportKind::StaleDmaRead;
    found.access = Access::Dma {
        master: 3,
        purpose: Purpose::Data,
        writes: false,
    };
    found.context = arm::Context {
        cycle: 2_000_000,
        ..arm::Context::default()
    };
    found.mva = Mva(found.pa.0);
    let text = text(&found, 1);
    for wrong in [
        "used by: 0x00000000 in user land",
        "an unknown mode",
        "PA 0x00000000",
        "debug 0x00000000@",
    ] {
        assert!(!text.contains(wrong), "{text}");
    }
}

/// The kernel loads from a buffer that it has given to a device.
#[test]
fn a_use_of_a_devices_buffer_names_the_buffer_its_mapping_and_the_missing_call() {
    let mut found = report();
    found.kind = ReportKind::TouchedWhileMapped;
    found.writer.path = Path::Call;
    found.buffer = Some(Buffer {
        pa: Pa(0x0238_5000),
        bytes: 512,
        direction: Some(Direction::FromDevice),
        mapped: Some(Moment {
            cycle: 900_000,
            pc: 0xc001_0010,
            callers: vec![0xc002_0008],
        }),
        synced: None,
        unmapped: None,
        again: None,
    });
    let all = text(&found, 1);
    for part in [
        "error[touched-while-mapped]: the core used a buffer that a device owns\n  used by: 0xc0001008",
        "\n    a load of a word at VA 0xc23850e4 (MVA 0xc23850e4), PA 0x023850e4\n",
        "\n  buffer: 512 bytes at PA 0x02385000, DMA_FROM_DEVICE\n  mapped in cycle 900000 by: \
         0xc0010010 flush_range+0x10\n    called from 0xc0020008 set_pte+0x8\n",
        "\n    in Linux: dma_sync_*_for_cpu or dma_unmap_*",
    ] {
        assert!(all.contains(part), "{part} in\n{all}");
    }
    assert!(
        !all.contains("newest value") && !all.contains("history"),
        "{all}"
    );
    let names = names();
    let style = Style {
        names: &names,
        cpu_hz: 200_000_000,
        replay: &|_| "r".to_string(),
    };
    let json = style.json(&found, 1);
    assert_eq!(json["buffer"]["direction"], "DMA_FROM_DEVICE");
    assert_eq!(json["buffer"]["mapped"]["function"], "flush_range");
    assert_eq!(json["writer"]["path"], "call");
}
