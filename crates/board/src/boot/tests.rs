// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::spec::DEFAULT_BOARD;

fn spec() -> BoardSpec {
    BoardSpec::named(DEFAULT_BOARD).unwrap()
}

fn dtb() -> Blob {
    let mut tree = Tree::default();
    tree.root.set_u32("#address-cells", 1);
    tree.root.set_u32("#size-cells", 1);
    tree.root.child_or_new("timclk@1").set_u32("clock-div", 24);
    Blob {
        name: "pb.dtb".to_owned(),
        bytes: tree.to_blob(),
    }
}

fn blob(name: &str, bytes: Vec<u8>) -> Blob {
    Blob {
        name: name.to_owned(),
        bytes,
    }
}

fn image() -> Blob {
    let mut bytes = vec![0; 0x4000];
    bytes[..4].copy_from_slice(&0xe321_f0d3_u32.to_le_bytes());
    blob("Image", bytes)
}

fn zimage(size: u32, len: usize) -> Blob {
    let mut bytes = vec![0; len];
    bytes[0x24..0x28].copy_from_slice(&0x016f_2818_u32.to_le_bytes());
    bytes[0x2c..0x30].copy_from_slice(&size.to_le_bytes());
    blob("zImage", bytes)
}

/// Makes an ELF executable with one segment of `bytes` at `at`.
fn elf(machine: u16, at: u32, bytes: &[u8]) -> Vec<u8> {
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    for half in [2, machine] {
        file.extend(u16::to_le_bytes(half));
    }
    for word in [1, at + 4, 52, 0, 0] {
        file.extend(u32::to_le_bytes(word));
    }
    for half in [52u16, 32, 1, 40, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    let len = bytes.len() as u32;
    for word in [1, 84, at, at, len, len + 64, 7, 4] {
        file.extend(u32::to_le_bytes(word));
    }
    file.extend(bytes);
    file
}

fn linux(kernel: Blob) -> LinuxBoot {
    LinuxBoot {
        kernel,
        place: None,
        dtb: dtb(),
        initrd: Some(blob("initrd.gz", vec![7; 5000])),
        command_line: "console=ttyAMA0".to_owned(),
        overrides: Vec::new(),
    }
}

fn load(boot: &Boot) -> Result<(Start, Sdram), BootError> {
    let spec = spec();
    let mut ram = Sdram::new(spec.ram_bytes, &spec.sdram, spec.cpu_hz, spec.bus_hz);
    boot.load(&spec, &mut ram).map(|start| (start, ram))
}

fn complaint(kernel: Blob) -> String {
    load(&Boot::Linux(linux(kernel))).unwrap_err().to_string()
}

#[test]
fn an_image_starts_at_8000_with_machine_and_tree_in_registers() {
    let (start, ram) = load(&Boot::Linux(linux(image()))).unwrap();
    assert_eq!(
        (start.pc, start.registers[..2].to_vec()),
        (0x8000, vec![0, 0x183])
    );
    assert_eq!(ram.words()[0x2000], 0xe321_f0d3);
    let at = start.registers[2];
    let blob: Vec<u8> = (at..at + 4096).filter_map(|a| ram.peek(a)).collect();
    let mut tree = Tree::parse(&blob).unwrap();
    let memory = tree.node("/memory").unwrap();
    assert_eq!(memory.get("reg").unwrap(), [0, 0, 0, 0, 4, 0, 0, 0]);
    let chosen = tree.node("/chosen").unwrap();
    assert_eq!(chosen.get("bootargs").unwrap(), b"console=ttyAMA0\0");
    let initrd = chosen.get_u32("linux,initrd-start").unwrap();
    assert_eq!(chosen.get_u32("linux,initrd-end").unwrap(), initrd + 5000);
    assert_eq!(
        (ram.peek(initrd), ram.peek(initrd + 4999)),
        (Some(7), Some(7))
    );
    assert_eq!(ram.peek(initrd + 5000), Some(0));
}

#[test]
fn a_zimage_lies_above_what_it_unpacks() {
    let (start, _) = load(&Boot::Linux(linux(zimage(0x1000, 0x1000)))).unwrap();
    assert_eq!(start.pc, 24 << 20);
    assert!(start.registers[2] > start.pc + 0x1000);
}

#[test]
fn a_vmlinux_is_loaded_to_the_physical_side_of_its_addresses() {
    let kernel = blob("vmlinux", elf(40, 0xc000_8000, &[0xaa; 16]));
    let (start, ram) = load(&Boot::Linux(linux(kernel))).unwrap();
    assert_eq!(start.pc, 0x8004);
    assert_eq!((ram.peek(0x8000), ram.peek(0x8010)), (Some(0xaa), Some(0)));
}

#[test]
fn a_bare_elf_starts_at_its_entry() {
    let boot = Boot::BareElf(blob("litmus", elf(40, 0x1_0000, &[1, 2, 3, 4])));
    let (start, ram) = load(&boot).unwrap();
    assert_eq!((start.pc, ram.peek(0x1_0002)), (0x1_0004, Some(3)));
}

#[test]
fn overrides_change_nodes_that_exist_only() {
    let mut boot = linux(image());
    boot.overrides = vec![Override {
        node: "/timclk".to_owned(),
        property: "clock-div".to_owned(),
        value: 1,
    }];
    let blob = boot.tree(&spec(), (0, 0)).unwrap();
    let mut tree = Tree::parse(&blob).unwrap();
    assert_eq!(tree.node("/timclk").unwrap().get_u32("clock-div"), Some(1));
    boot.overrides[0].node = "/nowhere".to_owned();
    let message = boot.tree(&spec(), (0, 0)).unwrap_err().to_string();
    assert_eq!(message, "pb.dtb: there is no node /nowhere");
}

#[test]
fn what_is_not_an_arm_kernel_is_named_for_what_it_is() {
    let complaint_with = |at: usize, bytes: &[u8]| {
        let mut file = vec![0; 0x2000];
        file[at..at + bytes.len()].copy_from_slice(bytes);
        complaint(blob("k", file))
    };
    assert_eq!(
        complaint_with(0, &[0x1f, 0x8b]),
        "k: is compressed with gzip: unpack it first"
    );
    assert_eq!(
        complaint_with(0x202, b"HdrS"),
        "k: is a kernel for x86, not for ARM"
    );
    assert_eq!(
        complaint_with(0x38, b"ARM\x64"),
        "k: is a kernel for 64-bit ARM, not for ARMv5"
    );
    assert_eq!(
        complaint_with(0, &[0xd0, 0x0d, 0xfe, 0xed]),
        "k: is a device tree, not a kernel"
    );
    assert_eq!(
        complaint_with(0, b"hello"),
        "k: is not an ARM kernel: neither zImage nor Image nor ELF"
    );
    assert_eq!(
        complaint(blob("k", vec![0xe3])),
        "k: is not an ARM kernel: neither zImage nor Image nor ELF"
    );
}

#[test]
fn an_elf_for_another_machine_is_refused() {
    assert_eq!(
        complaint(blob("vmlinux", elf(62, 0, &[0]))),
        "vmlinux: is an ELF file for x86-64 (machine 62), not for ARM"
    );
}

#[test]
fn no_prefix_of_an_elf_panics_or_passes() {
    let file = elf(40, 0x8000, &[1; 32]);
    for len in 0..file.len() {
        assert!(load(&Boot::BareElf(blob("f", file[..len].to_vec()))).is_err());
    }
}

#[test]
fn a_zimage_cut_short_says_by_how_much() {
    assert_eq!(
        complaint(zimage(0x2000, 0x1000)),
        "zImage: the zImage is cut short: 4096 bytes of 8192"
    );
}

#[test]
fn files_that_are_missing_or_empty_are_named() {
    let error = Blob::read(Path::new("/no/such/zImage"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("/no/such/zImage: No such file"),
        "{error}"
    );
}

#[test]
fn a_damaged_tree_names_its_file() {
    let mut boot = linux(image());
    boot.dtb.bytes.truncate(100);
    let message = load(&Boot::Linux(boot)).unwrap_err().to_string();
    assert!(
        message.starts_with("pb.dtb: not a device tree: it is cut short"),
        "{message}"
    );
}

#[test]
fn what_does_not_fit_into_ram_says_where_it_ends() {
    let mut boot = linux(image());
    boot.initrd = Some(blob("big.cpio", vec![0; 48 << 20]));
    let message = load(&Boot::Linux(boot)).unwrap_err().to_string();
    assert_eq!(
        message,
        "big.cpio: does not fit into RAM: it takes 0x01810000 to 0x04810000, \
         RAM is 0x00000000 to 0x04000000"
    );
    let boot = Boot::Bare {
        load: 0x4000_0000,
        entry: 0,
        bytes: vec![0; 4],
    };
    assert!(
        load(&boot)
            .unwrap_err()
            .to_string()
            .contains("does not fit into RAM")
    );
}

/// The addresses of the pieces after this kernel must not overflow.
#[test]
fn a_segment_near_4_gb_does_not_fit_and_says_so() {
    // Offsets of two fields of the only program header.
    let (physical, memory_size) = (52 + 12, 52 + 20);
    let with = |field: usize, value: u32| {
        let mut file = elf(40, 0xc000_8000, &[7; 8]);
        file[field..field + 4].copy_from_slice(&value.to_le_bytes());
        blob("vmlinux", file)
    };
    for size in [0xfff0_0000, 0xffff_0000, 0xffff_8000, u32::MAX] {
        let message = complaint(with(memory_size, size));
        let end = 0x8000 + u64::from(size);
        assert_eq!(
            message,
            format!(
                "vmlinux (segment 0): does not fit into RAM: it takes 0x00008000 to {end:#010x}, \
                 RAM is 0x00000000 to 0x04000000"
            )
        );
    }
    for at in [0x0400_0000, 0xfff0_0000, 0xffff_fff8, u32::MAX] {
        let boot = Boot::BareElf(with(physical, at));
        let message = load(&boot).unwrap_err().to_string();
        assert!(message.contains("does not fit into RAM"), "{message}");
    }
}

#[test]
fn pieces_that_overlap_are_both_named() {
    let spec = spec();
    let mut ram = Sdram::new(spec.ram_bytes, &spec.sdram, spec.cpu_hz, spec.bus_hz);
    let piece = |name: &str, base, bytes| Piece {
        name: name.to_owned(),
        base,
        bytes,
        size: 16,
    };
    let pieces = [
        piece("a", 0x100, &[1; 16][..]),
        piece("b", 0x10c, &[2; 8][..]),
    ];
    assert_eq!(
        place(&spec, spec.ram_bytes, &mut ram, &pieces)
            .unwrap_err()
            .to_string(),
        "b: overlaps a: 0x0000010c to 0x0000011c and 0x00000100 to 0x00000110"
    );
    assert_eq!(ram.peek(0x100), Some(0), "nothing was loaded");
}

#[test]
fn a_device_tree_of_another_machine_is_refused_by_name() {
    let mut boot = LinuxBoot {
        kernel: image(),
        dtb: dtb(),
        ..LinuxBoot::default()
    };
    let mut tree = Tree::parse(&boot.dtb.bytes).unwrap();
    tree.root.set(
        "compatible",
        b"microchip,sam9x60ek\0microchip,sam9x60\0".to_vec(),
    );
    boot.dtb.bytes = tree.to_blob();
    let message = |boot: &LinuxBoot| {
        Boot::Linux(boot.clone())
            .on(spec())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(&boot),
        "pb.dtb: the device tree is for \"microchip,sam9x60ek\", but the board's machine is versatilepb \
         (\"arm,versatile-pb\"): use a device tree for \"arm,versatile-pb\""
    );
    tree.root
        .set_text("compatible", &spec().peripherals.compatible);
    boot.dtb.bytes = tree.to_blob();
    assert_eq!(Boot::Linux(boot).on(spec()), Ok(spec()));
}

#[test]
fn a_zimage_for_ram_elsewhere_is_refused_with_both_places() {
    let mut kernel = zimage(0x6000, 0x6000);
    kernel.bytes[0x5000..0x5003].copy_from_slice(b"\x1f\x8b\x08");
    let boot = |word: u32| {
        let mut kernel = kernel.clone();
        kernel.bytes[0x4000..0x4004].copy_from_slice(&word.to_le_bytes());
        let linux = LinuxBoot {
            kernel,
            dtb: dtb(),
            ..LinuxBoot::default()
        };
        linux.kernel_pieces(&spec(), spec().ram_bytes).map(|_| ())
    };
    let message = boot(0x2000_8000).unwrap_err().to_string();
    assert_eq!(
        message,
        "zImage: the zImage unpacks its kernel to 0x20008000, but this board's RAM is 0x00000000 to \
         0x04000000: build it with CONFIG_AUTO_ZRELADDR, which fits any RAM"
    );
    // A zImage may have an address in this board's RAM, an instruction in the place of the address, or no address.
    assert_eq!(boot(0x0000_8000), Ok(()));
    assert_eq!(boot(0xe1a0_8000), Ok(()));
    assert_eq!(place_of(&[0; 16]), None);
}

#[test]
fn a_zimage_for_ram_at_0_is_refused_where_ram_is_elsewhere() {
    let mut kernel = zimage(0x6000, 0x6000);
    let high = with_ram_at(0x2000_0000);
    assert_eq!(kernel.clone().check_kernel(&high, None), Ok(()));
    // mov r4, #0x8000
    kernel.bytes[0xa0..0xa4].copy_from_slice(&0xe3a0_4902_u32.to_le_bytes());
    assert_eq!(kernel.clone().check_kernel(&spec(), None), Ok(()));
    let message = kernel.check_kernel(&high, None).unwrap_err().to_string();
    assert!(
        message.contains("unpacks its kernel to 0x00008000, but this board's RAM is 0x20000000"),
        "{message}"
    );
}

#[test]
fn with_mem_all_pieces_lie_in_the_ram_that_the_kernel_uses() {
    let mut small = linux(image());
    small.command_line = "mem=16M".to_owned();
    let (start, ram) = load(&Boot::Linux(small.clone())).unwrap();
    assert_eq!(start.registers[2], 8 << 20);
    assert_eq!(ram.peek((8 << 20) + 0x1_0000), Some(7));
    small.initrd = Some(blob("initrd.gz", vec![7; 9 << 20]));
    let error = load(&Boot::Linux(small.clone())).unwrap_err().to_string();
    assert!(
        error.contains("initrd.gz: does not fit into RAM"),
        "{error}"
    );
    assert!(error.contains("RAM is 0x00000000 to 0x01000000"), "{error}");
    small.command_line = "mem=65M".to_owned();
    let error = load(&Boot::Linux(small)).unwrap_err().to_string();
    assert!(
        error.contains("the kernel's command line: mem=65M"),
        "{error}"
    );
}

/// A board like the default one, with its RAM at another address.
fn with_ram_at(ram_base: u32) -> BoardSpec {
    let mut spec = spec();
    spec.peripherals.ram_base = ram_base;
    spec
}

#[test]
fn a_kernel_of_a_u_boot_image_starts_where_the_image_says() {
    let spec = with_ram_at(0x2000_0000);
    let place = Some(Place {
        load: 0x2000_8000,
        entry: 0x2000_8040,
    });
    for kernel in [image(), zimage(0x1000, 0x1000)] {
        let boot = LinuxBoot {
            place,
            ..linux(kernel.clone())
        };
        let mut ram = Sdram::new(spec.ram_bytes, &spec.sdram, spec.cpu_hz, spec.bus_hz);
        let start = Boot::Linux(boot).load(&spec, &mut ram).unwrap();
        assert_eq!(start.pc, 0x2000_8040);
        assert_eq!(ram.peek(0x8024), Some(kernel.bytes[0x24]));
        assert_eq!(kernel.check_kernel(&spec, place), Ok(()));
    }
}

#[test]
fn a_u_boot_image_for_ram_elsewhere_is_refused() {
    let check = |load, entry| {
        let place = Some(Place { load, entry });
        let checked = image().check_kernel(&with_ram_at(0x2000_0000), place);
        checked.unwrap_err().to_string()
    };
    assert_eq!(
        check(0x8000, 0x8000),
        "Image: the U-Boot image loads its kernel to 0x00008000, but this board's RAM is 0x20000000 to \
         0x24000000: make the image with mkimage -a 0x20008000"
    );
    assert!(check(0xffff_ff00, 0xffff_ff00).contains("loads its kernel to 0xffffff00"));
    assert!(check(0x2000_8000, 0x2000_7ffc).contains("starts its kernel at 0x20007ffc, outside"));
    assert!(check(0x23ff_c000, 0x23ff_c000).contains("does not fit into RAM"));
}

/// A zImage that unpacks to more than its own RAM must not write over the device tree.
#[test]
fn the_device_tree_lies_above_the_kernel_that_a_zimage_unpacks() {
    let mut kernel = zimage(0x1000, 0x1000);
    let words = [(0x34, 0x4545_4545), (0x38, 0x100), (0x104, 0x5a53_4c4b)];
    let sizes = [(0x108, 0x200), (0x10c, 1 << 20), (0x200, 30 << 20)];
    for (at, word) in words.into_iter().chain(sizes) {
        kernel.bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(word));
    }
    assert_eq!(unpacked_bytes(&kernel.bytes), Some(31 << 20));
    let boot = LinuxBoot {
        place: Some(Place {
            load: 0x8000,
            entry: 0x8000,
        }),
        ..linux(kernel.clone())
    };
    let (start, _) = load(&Boot::Linux(boot)).unwrap();
    assert!(start.registers[2] > 31 << 20, "{:#x}", start.registers[2]);
    // A damaged table gives no size.
    kernel.bytes[0x38..0x3c].fill(0xff);
    assert_eq!(unpacked_bytes(&kernel.bytes), None);
}
