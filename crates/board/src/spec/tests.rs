// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

const SAM9263: &str = BOARDS[0].1;
const VERSATILE: &str = MACHINES[0].1;

/// Returns the message for the built-in board with one text replaced.
fn complaint(from: &str, to: &str) -> String {
    assert!(SAM9263.contains(from), "{from}");
    BoardSpec::parse("b.toml", &SAM9263.replacen(from, to, 1))
        .unwrap_err()
        .to_string()
}

fn machine_complaint(from: &str, to: &str) -> String {
    assert!(VERSATILE.contains(from), "{from}");
    Peripherals::parse("m.toml", &VERSATILE.replacen(from, to, 1))
        .unwrap_err()
        .to_string()
}

#[test]
fn every_board_is_read_and_every_number_has_its_origin() {
    for name in board_names() {
        let spec = BoardSpec::named(name).unwrap();
        assert_eq!(spec.name, name);
        assert!(spec.quantities.len() >= 20);
        assert!(spec.quantities.iter().all(|q| !q.source.is_empty()));
        assert!(spec.peripherals.quantities.len() > 60);
    }
    assert_eq!(board_names()[0], DEFAULT_BOARD);
}

#[test]
fn the_ctr_of_each_board_is_what_its_core_reads() {
    for name in board_names() {
        let spec = BoardSpec::named(name).unwrap();
        assert_eq!(
            spec.core
                .core
                .cache_type(spec.core.icache, spec.core.dcache),
            spec.ctr,
            "{name}"
        );
    }
}

#[test]
fn an_unknown_board_is_told_its_nearest_name() {
    assert_eq!(
        BoardSpec::named("sam9236").unwrap_err().to_string(),
        "boards/sam9236.toml: board: no board \"sam9236\"; did you mean \"sam9263\"?"
    );
    assert_eq!(
        BoardSpec::named("qqq").unwrap_err().to_string(),
        "boards/qqq.toml: board: no board \"qqq\"; there are: sam9263, s3c24a0, omap1610, sam9x60, at91rm9200, ixp425, sam9263-ek, at91rm9200-ek, sam9g20-ek, sam9x60-ek"
    );
}

#[test]
fn an_unknown_key_is_told_its_nearest_name() {
    assert_eq!(
        complaint("cpu_hz =", "cpu_hertz ="),
        "b.toml: clocks.cpu_hertz: unknown key; did you mean \"cpu_hz\"?"
    );
    assert_eq!(
        complaint("[clocks]", "[clock]"),
        "b.toml: clock: unknown key; did you mean \"clocks\"?"
    );
}

#[test]
fn a_number_without_source_or_confidence_is_refused() {
    let text = "{ value = 90_000_000, source = \"datasheet\", confidence = \"D\" }";
    let problem = "b.toml: clocks.bus_hz: a number needs its origin: \
                   { value = ..., source = \"key of [sources]\", confidence = \"D\" }";
    assert_eq!(complaint(text, "90_000_000"), problem);
    assert_eq!(
        complaint(text, "{ value = 90_000_000, source = \"datasheet\" }"),
        problem
    );
    assert_eq!(
        complaint(
            text,
            "{ value = 90_000_000, source = \"datashet\", confidence = \"D\" }"
        ),
        "b.toml: clocks.bus_hz.source: \"datashet\" is not in [sources]; \
         did you mean \"datasheet\"?"
    );
    assert_eq!(
        complaint(
            text,
            "{ value = 90_000_000, source = \"datasheet\", confidence = \"X\" }"
        ),
        "b.toml: clocks.bus_hz.confidence: \"X\" is not D (documented), I (inferred), \
         R (recalled) or E (estimated)"
    );
}

#[test]
fn a_missing_key_and_a_missing_table_are_named() {
    let line = "bus_hz = { value = 90_000_000, source = \"datasheet\", confidence = \"D\" }";
    assert_eq!(complaint(line, ""), "b.toml: clocks.bus_hz: is missing");
    let message = BoardSpec::parse("b.toml", "core = \"arm926ejs\"")
        .unwrap_err()
        .to_string();
    assert_eq!(message, "b.toml: clocks: is missing");
}

#[test]
fn what_is_not_toml_is_told_its_line() {
    let message = BoardSpec::parse("b.toml", "name = \"x\"\nthis")
        .unwrap_err()
        .to_string();
    assert!(message.starts_with("b.toml: line 2: "), "{message}");
}

#[test]
fn clocks_are_from_1_mhz_to_2_ghz() {
    assert_eq!(
        complaint("180_000_000", "0"),
        "b.toml: clocks.cpu_hz: 0 is not from 1000000 to 2000000000 Hz"
    );
    assert_eq!(
        complaint("180_000_000", "-1"),
        "b.toml: clocks.cpu_hz: -1 is not from 1000000 to 2000000000 Hz"
    );
    assert_eq!(
        complaint("180_000_000", "\"fast\""),
        "b.toml: clocks.cpu_hz: \"fast\" is not a whole number"
    );
}

#[test]
fn the_core_is_1_to_16_times_as_fast_as_its_bus() {
    for cpu in ["80_000_000", "1_500_000_000"] {
        let hz = cpu.replace('_', "");
        assert_eq!(
            complaint("180_000_000", cpu),
            format!(
                "b.toml: clocks.bus_hz: the core clock of {hz} Hz is not 1 to 16 times the bus clock \
                 of 90000000 Hz"
            )
        );
    }
}

#[test]
fn cache_sizes_are_powers_of_two_from_4_to_128_kb() {
    for size in ["0", "2048", "12288", "262144"] {
        assert_eq!(
            complaint(
                "dcache_bytes = { value = 16384",
                &format!("dcache_bytes = {{ value = {size}")
            ),
            format!(
                "b.toml: caches.dcache_bytes: {size} bytes is not a cache size: a power of two \
                 from 4096 to 131072"
            )
        );
    }
}

#[test]
fn the_cache_type_register_must_agree_with_the_sizes() {
    assert_eq!(
        complaint(
            "dcache_bytes = { value = 16384",
            "dcache_bytes = { value = 8192"
        ),
        "b.toml: caches.ctr: 0x1d152152 describes a data cache of 16384 bytes in 4 ways of 32-byte \
         lines, but the board's has 8192 bytes in 4 ways of 32-byte lines: remove ctr, or write \
         0x1d112152"
    );
    let left_out: String = SAM9263
        .split_inclusive('\n')
        .filter(|l| !l.starts_with("ctr"))
        .collect();
    let spec = BoardSpec::parse("b.toml", &left_out).unwrap();
    assert_eq!(spec.ctr, 0x1d15_2152);
}

#[test]
fn a_machine_is_looked_for_beside_the_board_and_then_in_the_data() {
    let dir = std::env::temp_dir().join(format!("board-machines-{}", std::process::id()));
    let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../boards"));
    std::fs::create_dir_all(dir.join("machine")).unwrap();
    let board = dir.join("mine.toml");
    std::fs::write(&board, SAM9263.replacen("versatilepb", "mine", 1)).unwrap();
    let message = BoardSpec::from_file(&board, data, &[])
        .unwrap_err()
        .to_string();
    assert!(message.contains("no machine \"mine\""), "{message}");
    let text = VERSATILE.replacen("versatilepb", "mine", 1);
    std::fs::write(dir.join("machine/mine.toml"), text).unwrap();
    let spec = BoardSpec::from_file(&board, data, &[]).unwrap();
    assert_eq!(spec.peripherals.name, "mine");
    std::fs::write(&board, SAM9263).unwrap();
    let spec = BoardSpec::from_file(&board, data, &[]).unwrap();
    assert_eq!(spec, BoardSpec::named("sam9263").unwrap());
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn ram_is_1_mb_to_256_mb_in_whole_mb() {
    for size in ["0", "0x1000", "0x2000_0000"] {
        let message = complaint("value = 0x0400_0000", &format!("value = {size}"));
        assert!(
            message.ends_with("is not from 1048576 to 268435456 bytes"),
            "{message}"
        );
    }
    assert_eq!(
        complaint("value = 0x0400_0000", "value = 0x0400_0004"),
        "b.toml: ram.size: 67108868 is not a multiple of 1048576"
    );
}

#[test]
fn memory_timing_must_make_sense() {
    assert_eq!(
        complaint(
            "first_word_row_miss_bus = { value = 11",
            "first_word_row_miss_bus = { value = 6"
        ),
        "b.toml: sdram.first_word_row_miss_bus: a row miss cannot be faster than a row hit"
    );
    assert_eq!(
        complaint("banks = { value = 4", "banks = { value = 3"),
        "b.toml: sdram.banks: 3 is not a power of two"
    );
    assert_eq!(
        complaint("row_bytes = { value = 2048", "row_bytes = { value = 512"),
        "b.toml: sdram.row_bytes: 512 is not from 1024 to 65536 bytes"
    );
    assert_eq!(
        complaint(
            "clk_per_word_bus = { value = 1.0",
            "clk_per_word_bus = { value = 0.0"
        ),
        "b.toml: sdram.clk_per_word_bus: 0 is not from 0.125 to 64"
    );
    assert_eq!(
        complaint(
            "tail_exposed = { value = 0.6",
            "tail_exposed = { value = 1.5"
        ),
        "b.toml: core_timing.tail_exposed: 1.5 is not from 0 to 1"
    );
}

#[test]
fn unknown_cores_and_machines_are_told_what_there_is() {
    assert_eq!(
        complaint("\"arm926ejs\"", "\"arm926\""),
        "b.toml: core: no core \"arm926\"; did you mean \"arm926ejs\"?"
    );
    assert_eq!(
        complaint("\"versatilepb\"", "\"integrator\""),
        "b.toml: machine: no machine \"integrator\"; there are: at91rm9200, at91sam9263, at91sam9g20, at91sam9x60, versatilepb"
    );
}

#[test]
fn a_core_has_the_caches_that_were_made_of_it() {
    let at91 = include_str!("../../../../boards/at91rm9200.toml");
    let complaint = |from: &str, to: &str| {
        assert!(at91.contains(from), "{from}");
        let parsed = BoardSpec::parse("b.toml", &at91.replacen(from, to, 1));
        parsed.unwrap_err().to_string()
    };
    assert_eq!(
        complaint("ways = { value = 64", "ways = { value = 4"),
        "b.toml: caches.ways: caches of arm920t have 64 ways"
    );
    assert_eq!(
        complaint(
            "dcache_bytes = { value = 16384",
            "dcache_bytes = { value = 8192"
        ),
        "b.toml: caches.dcache_bytes: 8192 bytes is not a cache size: arm920t has 16384"
    );
    assert_eq!(
        complaint(
            "[ram]",
            "lines_tested_per_op = { value = 8, source = \"estimate\", confidence = \"E\" }\n[ram]"
        ),
        "b.toml: core_timing.lines_tested_per_op: arm920t has no test-and-clean operation: remove this key"
    );
}

#[test]
fn overlapping_regions_are_named() {
    assert_eq!(
        machine_complaint("base = 0x101f_2000", "base = 0x101f_1000"),
        "m.toml: uart1: \"uart1\" at 0x101f1000 (size 0x1000) overlaps \"uart0\" at 0x101f1000 \
         (size 0x1000)"
    );
}

#[test]
fn ram_does_not_overlap_devices() {
    let root = "name = \"x\"\n[ram]\n";
    let document = Document::parse("b.toml", root).unwrap();
    let root = document.root(&["name", "ram"]).unwrap();
    let ram = root.section("ram", &[]).unwrap();
    let mut spec = BoardSpec::named(DEFAULT_BOARD).unwrap();
    spec.peripherals.ram_base = 0x0e00_0000;
    assert_eq!(
        spec.check_ram_place(&ram).unwrap_err().to_string(),
        "b.toml: ram.size: RAM from 0x0e000000 to 0x12000000 overlaps \"sysreg\""
    );
}

#[test]
fn regions_are_whole_granules_of_the_address_space() {
    assert_eq!(
        machine_complaint(
            "base = 0x1000_0000\nsize = 0x1000",
            "base = 0x1000_0000\nsize = 0"
        ),
        "m.toml: device.sysreg.size: the region has no bytes: write at least 16"
    );
    assert_eq!(
        machine_complaint("base = 0x1000_0000", "base = 0x1000_0008"),
        "m.toml: device.sysreg.base: 0x10000008 is not a multiple of 16"
    );
    assert_eq!(
        machine_complaint("base = 0x3400_0000", "base = 0xfe00_0000"),
        "m.toml: device.flash.size: the region ends beyond 4 GB"
    );
}

#[test]
fn parts_and_their_values_are_checked() {
    assert_eq!(
        machine_complaint("part = \"pl190\"", "part = \"pl191\""),
        "m.toml: device.vic.part: no part \"pl191\"; did you mean \"pl190\"?"
    );
    let values = "part = \"pl190\"\nvalues = { speed = 3 }";
    assert_eq!(
        machine_complaint("part = \"pl190\"", values),
        "m.toml: device.vic.values.speed: a number needs its origin: \
         { value = ..., source = \"key of [sources]\", confidence = \"D\" }"
    );
}

#[test]
fn wires_name_devices_and_pins_that_exist() {
    for (wire, problem) in [
        (
            "sic.0 -> vik.31",
            "no device \"vik\"; did you mean \"vic\"?",
        ),
        ("sic.0 -> vic.64", "\"64\" is not a pin: write 0 to 63"),
        ("sic.32 -> vic.1", "\"32\" is not a pin: write 0 to 31"),
        (
            "sic.0 -> cpu.nmi",
            "the core has no input \"nmi\": write irq, fiq or stop",
        ),
        (
            "sic.0 -> board.off",
            "the board has no input \"off\": write reset",
        ),
        (
            "sic.0 vic.31",
            "write a wire as \"device.output -> device.input\"",
        ),
        (
            "sic -> vic.31",
            "write a wire as \"device.output -> device.input\"",
        ),
    ] {
        assert_eq!(
            machine_complaint("sic.0 -> vic.31", wire),
            format!("m.toml: wiring.wires: \"{wire}\": {problem}")
        );
    }
}

#[test]
fn names_are_unique_and_console_and_probes_exist() {
    assert_eq!(
        machine_complaint("name = \"uart1\"", "name = \"uart0\""),
        "m.toml: uart0: two devices have this name: rename one"
    );
    assert_eq!(
        machine_complaint("console = \"uart0\"", "console = \"uart9\""),
        "m.toml: console: no device \"uart9\"; did you mean \"uart0\"?"
    );
}

#[test]
fn nanoseconds_become_cycles_without_overflow() {
    let spec = BoardSpec::named("sam9263").unwrap();
    assert_eq!(spec.cycles_of_ns(1_000_000_000), 180_000_000);
    assert_eq!(spec.cycles_of_ns(5), 0);
    assert!(spec.cycles_of_ns(u64::MAX) > 1 << 60);
}

#[test]
fn a_number_can_be_changed_by_its_key_and_becomes_a_part_of_the_name() {
    let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../boards"));
    let of = |changes: &[&str]| {
        let changes: Vec<Change> = changes.iter().map(|c| c.parse().unwrap()).collect();
        let spec = BoardSpec::from_file(&data.join("sam9263.toml"), data, &changes);
        spec.map_err(|e| e.to_string())
    };
    let spec = of(&["caches.dcache_bytes=32K", "caches.icache_bytes=32K"]).unwrap();
    assert_eq!(
        spec.name,
        "sam9263+caches.dcache_bytes=32K+caches.icache_bytes=32K"
    );
    assert_eq!((spec.core.dcache.size, spec.ctr), (32768, 0x1d19_2192));
    let changed = spec
        .quantities
        .iter()
        .find(|q| q.key == "caches.dcache_bytes");
    assert!(changed.is_some_and(|q| q.source.starts_with("set by the user")));
    assert_eq!(
        of(&[]).unwrap(),
        BoardSpec::named("sam9263").unwrap_or_else(|e| panic!("{e}"))
    );
    let wrong = of(&["caches.dcache_byte=32K"]).unwrap_err();
    assert!(
        wrong.contains("did you mean \"caches.dcache_bytes\"?"),
        "{wrong}"
    );
    let wrong = of(&["caches.dcache_bytes=33K"]).unwrap_err();
    assert!(wrong.contains("33792 bytes is not a cache size"), "{wrong}");
    let wrong = of(&["clocks.cpu_hz=9GHz"]).unwrap_err();
    assert!(
        wrong.contains("is not from 1000000 to 2000000000 Hz"),
        "{wrong}"
    );
}

/// Returns a number's bounds and a value beyond each bound, as texts for `--set`. The flags say which are valid.
fn probes(limits: &Limits) -> [(String, bool); 4] {
    let text = |value: f64| match limits.step {
        Step::Any => format!("{value:?}"),
        _ => format!("{}", value as i64),
    };
    [
        (text(limits.lowest), true),
        (text(limits.highest), true),
        (text(limits.lowest - 1.0), false),
        (text(limits.highest + 1.0), false),
    ]
}

#[test]
fn every_number_of_every_board_is_listed_and_its_limits_are_those_that_are_enforced() {
    let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../boards"));
    for board in board_names() {
        let path = data.join(format!("{board}.toml"));
        let listed = BoardSpec::numbers(&path, data, &[]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut keys = change::numbers(&text.parse().unwrap(), "");
        let mut names: Vec<String> = listed.iter().map(|(q, _)| q.key.clone()).collect();
        keys.sort();
        names.sort();
        assert_eq!(names, keys, "{board}");
        for (quantity, limits) in &listed {
            let key = &quantity.key;
            let set = |value: &str| {
                let change: Change = format!("{key}={value}").parse().unwrap();
                BoardSpec::from_file(&path, data, &[change])
            };
            for (value, right) in probes(limits) {
                let read = set(&value);
                assert_eq!(
                    read.is_ok(),
                    right,
                    "{board}: {key}={value}: {:?}",
                    read.err()
                );
            }
            let between = match limits.step {
                Step::Any => continue,
                Step::Of(1) => "1.5".to_owned(),
                Step::Of(_) | Step::PowerOfTwo => format!("{}", limits.highest as i64 - 1),
            };
            assert!(set(&between).is_err(), "{board}: {key}={between}");
        }
    }
}
