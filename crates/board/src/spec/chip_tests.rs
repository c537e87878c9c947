// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of what a machine file can say about a chip.

use super::*;

const VERSATILE: &str = MACHINES[0].1;

/// The names of stored runs contain a board's identity.
#[test]
fn what_only_chips_have_leaves_the_identities_of_other_boards() {
    let identity = BoardSpec::named("sam9263").unwrap().identity().to_hex();
    assert_eq!(&identity[..32], "c8e823e11d47d846af26ed60bcdfa386");
}

#[test]
fn a_machine_may_lack_qemu_and_network_and_may_abort() {
    let text = VERSATILE.replacen("qemu = \"versatilepb\"", "unmapped = \"abort\"", 1);
    let text = text.replacen("network = \"net\"", "", 1);
    let machine = Peripherals::parse("m.toml", &text).unwrap();
    assert_eq!((machine.qemu, machine.network), (None, None));
    assert!(machine.unmapped_aborts);
    let text = VERSATILE.replacen("qemu =", "unmapped = \"panic\"\nqemu =", 1);
    assert_eq!(
        Peripherals::parse("m.toml", &text).unwrap_err().to_string(),
        "m.toml: unmapped: \"panic\" is no answer: write \"abort\" or \"stop\""
    );
}

#[test]
fn an_ignored_region_may_have_constants_and_a_node() {
    let region = "[[ignored]]\nname = \"emac\"\nbase = 0x7000_0010\nsize = 0x20\nreason = \"later\"\n\
                  node = \"/ahb/emac\"\nsource = \"dts\"\nconfidence = \"D\"\n\
                  values.r1c = { value = 4, source = \"dts\", confidence = \"I\" }\n\
                  values.r8 = { value = 5, source = \"dts\", confidence = \"I\" }\n";
    let text = VERSATILE.to_owned() + region;
    let machine = Peripherals::parse("m.toml", &text).unwrap();
    let emac = &machine.ignored[0];
    assert_eq!(emac.values, [(8, 5), (0x1c, 4)]);
    assert_eq!(emac.node.as_deref(), Some("/ahb/emac"));
    for wrong in ["x8", "r9", "r20", "rr", "r"] {
        let text = VERSATILE.to_owned() + &region.replace("r8", wrong);
        let message = Peripherals::parse("m.toml", &text).unwrap_err().to_string();
        let begin = format!("m.toml: ignored.emac.values: {wrong} = 0x5 is not a 32-bit register");
        assert!(message.starts_with(&begin), "{message}");
    }
    let text = VERSATILE.to_owned() + &region.replace("r8", "r01c");
    let message = Peripherals::parse("m.toml", &text).unwrap_err().to_string();
    assert!(
        message.contains("register 0x1c has two values"),
        "{message}"
    );
}
