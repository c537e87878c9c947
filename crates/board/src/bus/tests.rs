// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::spec::DEFAULT_BOARD;
use arm::{Bus as _, Pa};

const UART0: u32 = 0x101f_1000;
const GPIO0: u32 = 0x101e_4000;
const TIMER0: u32 = 0x101e_2000;
const VIC: u32 = 0x1014_0000;
const SIC: u32 = 0x1000_3000;

fn spec() -> BoardSpec {
    BoardSpec::named(DEFAULT_BOARD).unwrap()
}

pub(super) fn bus() -> SystemBus {
    let mut bus = SystemBus::new(&spec()).unwrap();
    bus.advance(0);
    bus
}

pub(super) fn set(bus: &mut SystemBus, now: u64, pa: u32, value: u32) -> u32 {
    bus.write(now, Pa(pa), Width::Word, value).unwrap()
}

pub(super) fn get(bus: &mut SystemBus, now: u64, pa: u32) -> u32 {
    bus.read(now, Pa(pa), Width::Word).unwrap().0
}

#[test]
fn ram_and_devices_answer_where_the_map_has_them() {
    let mut bus = bus();
    set(&mut bus, 0, 0x100, 0x1234_5678);
    assert_eq!(get(&mut bus, 0, 0x100), 0x1234_5678);
    assert_eq!(get(&mut bus, 0, 0x1000_0000), 0x4100_7004, "SYS_ID");
    assert_eq!(get(&mut bus, 0, VIC + 0xfe0), 0x90, "PL190");
    assert_eq!(bus.take_stop(), None);
}

#[test]
fn a_transfer_to_a_peripheral_takes_what_the_board_says() {
    let mut bus = bus();
    let (_, cycles) = bus.read(0, Pa(0x1000_0000), Width::Word).unwrap();
    assert_eq!(cycles, 16, "8 bus clocks at 2 to 1");
    assert_eq!(set(&mut bus, 0, 0x1000_0008, 0), 12);
}

#[test]
fn an_unmapped_access_ends_the_run_and_the_first_one_is_reported() {
    let mut bus = bus();
    assert!(bus.write(5, Pa(0x5000_0004), Width::Half, 0xbeef).is_err());
    assert!(bus.read(6, Pa(0x6000_0000), Width::Word).is_err());
    assert_eq!(bus.next_event(), 0);
    assert!(bus.advance(7).attention);
    let access = Transaction {
        kind: Kind::Write,
        pa: 0x5000_0004,
        width: Width::Half,
        value: 0xbeef,
    };
    assert_eq!(bus.take_stop(), Some(Stop::Unmapped(access)));
    assert!(bus.advance(8).attention, "a final stop stays");
}

#[test]
fn an_unmapped_access_can_be_an_external_abort_instead() {
    let mut bus = bus();
    bus.set_unmapped_aborts(true);
    assert!(bus.read(0, Pa(0x6000_0000), Width::Word).is_err());
    assert!(!bus.advance(1).attention);
}

#[test]
fn a_line_fill_from_a_device_ends_the_run() {
    let mut bus = bus();
    assert!(bus.read_line(0, Pa(UART0), &mut [0; 8]).is_err());
    match bus.take_stop() {
        Some(Stop::Unmodelled { device, access, .. }) => {
            assert_eq!((device.as_str(), access.kind), ("uart0", Kind::LineFill));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_refused_access_carries_the_devices_name_and_words() {
    let mut bus = bus();
    assert!(bus.write(0, Pa(UART0 + 0x48), Width::Word, 1).is_err());
    match bus.take_stop() {
        Some(Stop::Unmodelled { device, reason, .. }) => {
            assert_eq!(device, "uart0");
            assert!(!reason.is_empty());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn ignored_regions_read_zero_and_are_counted() {
    let mut spec = spec();
    spec.peripherals.ignored.push(crate::spec::IgnoredSpec {
        name: "x".to_owned(),
        base: 0x7000_0000,
        size: 0x2000,
        reason: "test".to_owned(),
        node: None,
        values: Vec::new(),
    });
    let mut bus = SystemBus::new(&spec).unwrap();
    assert_eq!(get(&mut bus, 0, 0x7000_1ffc), 0);
    set(&mut bus, 0, 0x7000_0000, 1);
    set(&mut bus, 0, 0x7000_0000, 1);
    assert_eq!((bus.ignored()[0].reads, bus.ignored()[0].writes), (1, 2));
    assert_eq!(bus.take_stop(), None);
}

#[test]
fn a_chip_tells_what_it_does_not_model() {
    let mut spec = spec();
    spec.peripherals.unmapped_aborts = true;
    spec.peripherals.ignored.push(crate::spec::IgnoredSpec {
        name: "emac".to_owned(),
        base: 0x7000_0010,
        size: 0x20,
        reason: "test".to_owned(),
        node: Some("/ahb/emac".to_owned()),
        values: vec![(8, 0x1234)],
    });
    let mut bus = SystemBus::new(&spec).unwrap();
    assert!(bus.notes().is_empty());
    assert_eq!(get(&mut bus, 0, 0x7000_0018), 0x1234);
    assert_eq!(bus.read(0, Pa(0x7000_0019), Width::Byte).unwrap().0, 0x12);
    assert_eq!(get(&mut bus, 0, 0x7000_001c), 0);
    set(&mut bus, 0, 0x7000_0018, 1);
    assert_eq!(get(&mut bus, 0, 0x7000_0018), 0x1234);
    for pa in [0x7000_000c, 0x7000_0030] {
        assert!(bus.read(0, Pa(pa), Width::Word).is_err());
    }
    let notes = [
        "emac is not modelled (test): 4 reads, 1 writes; the first is a read from 0x70000018 (register 0x8, node \
         /ahb/emac)",
        "the bus gave 2 external aborts: no unit owns the address; the first is a read from 0x7000000c",
    ];
    assert_eq!(bus.notes(), notes);
    let mut saved = Vec::new();
    arm::State::save(&bus, &mut saved);
    let mut other = SystemBus::new(&spec).unwrap();
    arm::State::restore(&mut other, &mut arm::Saved::new(&saved)).unwrap();
    assert_eq!(other.notes(), notes);
    assert_eq!(bus.take_stop(), None);
}

#[test]
fn a_timer_reaches_the_core_through_the_interrupt_controller() {
    let mut bus = bus();
    set(&mut bus, 0, VIC + 0x10, 1 << 4);
    set(&mut bus, 0, TIMER0, 24);
    set(&mut bus, 0, TIMER0 + 8, 0xa2);
    let due = bus.next_event();
    assert!((180..200).contains(&due), "1 us at 180 MHz: {due}");
    assert!(!bus.advance(due - 1).irq);
    assert!(bus.advance(due).irq);
    set(&mut bus, due + 10, TIMER0 + 12, 1);
    assert_eq!(bus.next_event(), 0, "the core must look at its lines again");
    assert!(!bus.advance(due + 10).irq);
    assert!(bus.next_event() > due + 10);
}

#[test]
fn a_cascaded_interrupt_passes_both_controllers_at_once() {
    let mut bus = bus();
    set(&mut bus, 0, VIC + 0x10, 1 << 31);
    set(&mut bus, 0, SIC + 0x08, 1 << 7);
    set(&mut bus, 0, SIC + 0x10, 1 << 7);
    assert!(bus.advance(1).irq, "a software interrupt of the SIC");
    set(&mut bus, 2, SIC + 0x14, 1 << 7);
    assert!(!bus.advance(3).irq);
}

#[test]
fn pins_of_the_probed_port_are_recorded_as_edges() {
    let mut bus = bus();
    set(&mut bus, 0, GPIO0 + 0x400, 0xff);
    set(&mut bus, 100, GPIO0 + (5 << 2), 5);
    set(&mut bus, 200, GPIO0 + (4 << 2), 0);
    set(&mut bus, 300, GPIO0 + (4 << 2), 0);
    let edge = |cycle, pin, level| Edge { cycle, pin, level };
    assert_eq!(
        bus.edges(),
        [edge(100, 0, true), edge(100, 2, true), edge(200, 2, false)]
    );
    assert_eq!(bus.take_stop(), None);
}

#[test]
fn an_edge_ends_the_run_when_asked_and_the_run_can_go_on() {
    let mut bus = bus();
    set(&mut bus, 0, GPIO0 + 0x400, 1);
    bus.set_stop_on_edge(true);
    set(&mut bus, 9, GPIO0 + 4, 1);
    assert_eq!(bus.next_event(), 0);
    assert!(bus.advance(9).attention);
    assert_eq!(bus.take_stop(), Some(Stop::Edge));
    assert!(!bus.advance(10).attention);
}

#[test]
fn the_reset_register_ends_the_run() {
    let mut bus = bus();
    set(&mut bus, 0, 0x1000_0020, 0xa05f);
    set(&mut bus, 0, 0x1000_0040, 0x105);
    assert_eq!(bus.take_stop(), Some(Stop::Reset));
}

#[test]
fn wires_in_a_ring_end_the_run_instead_of_hanging() {
    let mut spec = spec();
    let gpio = spec
        .peripherals
        .devices
        .iter()
        .position(|d| d.name == "gpio1")
        .unwrap();
    // The pin's interrupt is level-sensitive and active low. The interrupt output drives the same pin.
    let to = Sink::Device(gpio, 0);
    spec.peripherals.wires.push(crate::spec::Wire {
        from: gpio,
        pin: 0,
        to,
    });
    let mut bus = SystemBus::new(&spec).unwrap();
    let port = GPIO0 + 0x1000;
    set(&mut bus, 0, port + 0x404, 1);
    set(&mut bus, 0, port + 0x410, 1);
    assert_eq!(
        bus.take_stop(),
        Some(Stop::WireLoop {
            device: "gpio1".to_owned()
        })
    );
}

#[test]
fn a_burst_to_a_device_arrives_word_by_word() {
    let mut bus = bus();
    set(&mut bus, 0, 0x1000_0030, 0);
    let cycles = bus.write_words(0, Pa(0x1000_0030), &[3]).unwrap();
    assert_eq!(
        (cycles, get(&mut bus, 1, 0x1000_0030)),
        (12, 3),
        "SYS_FLAGS"
    );
}

/// The part of a burst beyond the end of RAM must not vanish.
#[test]
fn a_burst_that_ends_behind_the_ram_stops_as_single_writes_do() {
    let end = spec().ram_bytes;
    let words = [1, 2, 3, 4, 5, 6, 7, 8];
    for inside in 0..=8u32 {
        let at = end - 4 * inside;
        let (mut burst, mut single) = (bus(), bus());
        let result = burst.write_words(0, Pa(at), &words);
        let mut each = (at..).step_by(4).zip(words);
        let all = each.all(|(at, word)| single.write(0, Pa(at), Width::Word, word).is_ok());
        assert_eq!(result.is_ok(), all, "{inside} words inside");
        let stop = burst.take_stop();
        assert_eq!(stop, single.take_stop());
        let unmapped = Stop::Unmapped(Transaction {
            kind: Kind::Write,
            pa: end,
            width: Width::Word,
            value: inside + 1,
        });
        assert_eq!(stop, (inside < 8).then_some(unmapped));
        assert_eq!(burst.ram().words(), single.ram().words());
    }
}

/// A burst that leaves RAM, or that begins below address 0, aborts if unmapped accesses abort.
#[test]
fn a_burst_that_leaves_or_enters_the_ram_aborts_where_nothing_is() {
    for at in [spec().ram_bytes - 4, 0xffff_fffc] {
        let mut bus = bus();
        bus.set_unmapped_aborts(true);
        assert!(bus.write_words(0, Pa(at), &[7, 8]).is_err());
        assert_eq!(bus.take_stop(), None);
        assert_eq!(bus.peek(Pa(0)), Some(0), "the word behind is not written");
    }
}

#[test]
fn peek_and_poke_see_ram_only() {
    let mut bus = bus();
    assert!(bus.poke(Pa(3), 0xab));
    assert_eq!(bus.peek(Pa(3)), Some(0xab));
    assert_eq!(bus.peek(Pa(UART0)), None);
    assert!(!bus.poke(Pa(UART0), 1));
}
